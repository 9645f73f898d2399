//! Finding a tool by words: an index over one person's toolbox, kept in memory
//! and changed by each publish. Tools that match every word come first, then
//! partial matches above a floor, ranked by BM25 over weighted fields. Pure;
//! which tools are promoted, and what to say when nothing is found, is the
//! caller's business. How text becomes words is `find/words.rs`.

mod words;

use crate::ToolName;
use serde::Serialize;
use serde_json::Value;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Hits in one answer.
pub const HITS_MAX: usize = 10;
/// Names told as the nearest when nothing matches.
const NEAREST_MAX: usize = 3;
/// Words of a query that are looked at; the rest of a longer one is not.
const QUERY_WORDS_MAX: usize = 32;
/// Bytes of a query that are read.
const QUERY_BYTES_MAX: usize = 1_024;
/// Words of one tool that are kept, so that no schema can swell the index.
const DOCUMENT_WORDS_MAX: usize = 2_000;
/// How deep a schema is read.
const SCHEMA_DEPTH_MAX: usize = 8;
/// What a partial hit must score, in units of a word only one tool has: by a
/// single word, by several, and when the query says most of what the tool's
/// name says it is about. Else nothing matches.
const FLOOR_ONE: f32 = 2.7;
const FLOOR_SEVERAL: f32 = 1.2;
const FLOOR_ABOUT: f32 = 0.5;
/// The share of a name's subject, by rarity, that a query must say for that.
const ABOUT: f32 = 0.6;
/// Values of one enumeration that are read.
const ENUM_MAX: usize = 64;
/// BM25's saturation of repeats.
const K1: f32 = 2.0;
/// BM25's length normalisation.
const B: f32 = 0.6;

/// A field of a tool: its weight, and the length at which a word counts as is.
/// The lengths are fixed, not measured, so that one publish changes one tool.
struct Field {
    weight: f32,
    usual_words: f32,
}

const VENDOR: Field = Field { weight: 0.5, usual_words: 1.0 };
const NAME: Field = Field { weight: 3.0, usual_words: 3.0 };
const DESCRIPTION: Field = Field { weight: 1.2, usual_words: 16.0 };
const PROPERTY: Field = Field { weight: 1.2, usual_words: 8.0 };
const PROPERTY_TEXT: Field = Field { weight: 0.3, usual_words: 80.0 };

/// A tool as the index reads it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Vendor and name.
    pub tool: &'a ToolName,
    /// Title, if it has one.
    pub title: Option<&'a str>,
    /// The agent's account.
    pub description: &'a str,
    /// Its property names, descriptions and enumerated values are searched.
    pub input_schema: &'a Value,
}

/// One tool a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The tool.
    pub tool: ToolName,
    /// It matched only some of the words.
    pub partial: bool,
    /// Comparable within one answer only.
    pub score: f32,
}

/// What one word of a query gave a tool's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordScore {
    /// The word as it is compared: lower case, stemmed.
    pub word: String,
    /// How rare it is among the tools: 0 when every one has it.
    pub rarity: f32,
    /// How often the tool has it, weighted by field and field length.
    pub count: f32,
    /// What it added.
    pub score: f32,
}

/// What a query found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Best first, at most [`HITS_MAX`].
    pub hits: Vec<Found>,
    /// How many matched in all.
    pub total: usize,
    /// When the query was a vendor's name alone: every further tool, in order.
    pub more: Vec<ToolName>,
    /// When nothing matches: at most three that say some of it and came to no floor.
    pub nearest: Vec<ToolName>,
}

/// The words of one person's toolbox.
#[derive(Debug, Default)]
pub struct Index {
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_tool: HashMap<ToolName, u32>,
    /// Word to (slot, weighted count), by rising slot.
    postings: BTreeMap<Box<str>, Vec<(u32, f32)>>,
    /// Vendor to its words and its tools in wire order.
    vendors: BTreeMap<Box<str>, Vendor>,
    vendor_words: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
struct Entry {
    tool: ToolName,
    /// What its name says it is about.
    subject: Vec<Box<str>>,
    words: Vec<Box<str>>,
}

#[derive(Debug, Default)]
struct Vendor {
    words: Vec<Box<str>>,
    tools: BTreeMap<Box<str>, u32>,
}

/// What one query gathers about one slot.
#[derive(Clone, Copy, Default)]
struct Gathered {
    score: f32,
    /// Which words of the query it holds, a bit each.
    words: u32,
}

/// What a query's words bring together.
#[derive(Default)]
struct Gather {
    /// Hold every word.
    full: Vec<(f32, u32)>,
    /// Hold enough of them; with whether they are of a vendor that was named.
    partial: Vec<(f32, u32, bool)>,
    /// Hold some, looked for while nothing better is there.
    nearest: Vec<(f32, u32)>,
}

thread_local! {
    /// An entry for each slot, all of them empty between two searches: for 100,000
    /// tools it would be 800 KB to clear and fault in each time.
    static SCRATCH: Cell<Vec<Gathered>> = const { Cell::new(Vec::new()) };
}

/// A word of a query: its place there, and the slots that hold it.
type Listed<'a> = (usize, &'a Asked, &'a [(u32, f32)]);
/// Vendors a query names.
type Named<'a> = BTreeMap<&'a str, &'a Vendor>;

impl Index {
    /// Adds a tool, or replaces what was known of it.
    pub fn upsert(&mut self, document: Document<'_>) {
        self.remove(document.tool);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let counts = weigh(document);
        let mut kept = Vec::with_capacity(counts.len());
        for (word, weight) in counts {
            let list = self.postings.entry(word.clone()).or_default();
            let at = list.partition_point(|(other, _)| *other < slot);
            list.insert(at, (slot, weight));
            kept.push(word);
        }
        self.enter_vendor(document.tool, slot);
        let subject = words::subject(document.tool.vendor(), document.tool.name());
        let tool = document.tool.clone();
        self.slots[slot as usize] = Some(Entry { tool, subject, words: kept });
        self.by_tool.insert(document.tool.clone(), slot);
    }

    /// Forgets a tool; a name it does not hold is no error.
    pub fn remove(&mut self, tool: &ToolName) {
        let Some(slot) = self.by_tool.remove(tool) else { return };
        let Some(entry) = self.slots[slot as usize].take() else { return };
        for word in entry.words {
            if let Some(list) = self.postings.get_mut(&word) {
                let at = list.partition_point(|(other, _)| *other < slot);
                if list.get(at).is_some_and(|(other, _)| *other == slot) {
                    list.remove(at);
                }
                if list.is_empty() {
                    self.postings.remove(&word);
                }
            }
        }
        self.leave_vendor(tool);
        self.free.push(slot);
    }

    /// Tools held.
    pub fn len(&self) -> usize {
        self.by_tool.len()
    }

    /// Holds none.
    pub fn is_empty(&self) -> bool {
        self.by_tool.is_empty()
    }

    /// Looks for the query's words. An empty answer means: nothing matches.
    pub fn search(&self, query: &str) -> Findings {
        let query = self.read(query);
        if query.is_empty() {
            return Findings::default();
        }
        let named = self.named_vendors(&query);
        let vendor_only =
            !named.is_empty() && query.iter().all(|w| named.values().any(|v| v.has(&w.word)));
        if vendor_only {
            return self.list_vendors(&query, &named);
        }
        let distinct = named.into_iter().filter(|(_, vendor)| self.is_distinct(vendor)).collect();
        self.rank(&query, &distinct)
    }

    /// What each word of the query gives one tool; words it lacks give nothing.
    pub fn explain(&self, query: &str, tool: &ToolName) -> Vec<WordScore> {
        let Some(slot) = self.by_tool.get(tool) else { return Vec::new() };
        let of_slot = |asked: &Asked| -> Option<f32> {
            let list = self.postings.get(&asked.word)?;
            let at = list.partition_point(|(other, _)| other < slot);
            list.get(at).filter(|(other, _)| other == slot).map(|(_, count)| *count)
        };
        let words = self.read(query).into_iter().map(|asked| {
            let count = of_slot(&asked).unwrap_or(0.0);
            WordScore {
                rarity: asked.weight,
                count,
                score: asked.score(count),
                word: asked.word.into(),
            }
        });
        words.collect()
    }

    /// Whether a vendor's name narrows: its words are mostly of vendors' names. A
    /// vendor called `weather` among others that speak of weather does not.
    fn is_distinct(&self, vendor: &Vendor) -> bool {
        let all = |word: &str| self.postings.get(word).map_or(0, Vec::len);
        let own = |word: &str| -> usize {
            self.vendors.values().filter(|v| v.has(word)).map(|v| v.tools.len()).sum()
        };
        vendor.words.iter().all(|word| own(word) * 3 >= all(word) * 2)
    }

    /// The query's words with what each weighs, none twice.
    fn read(&self, query: &str) -> Vec<Asked> {
        let end = query.floor_char_boundary(QUERY_BYTES_MAX);
        let mut seen = HashSet::new();
        let known =
            |word: &str| self.postings.contains_key(word) || self.vendor_words.contains_key(word);
        words::of_query(&query[..end], known)
            .into_iter()
            .filter(|word| seen.insert(word.clone()))
            .take(QUERY_WORDS_MAX)
            .map(|word| {
                let held = self.postings.get(&word).map_or(0, Vec::len);
                Asked { weight: self.rarity(held), word }
            })
            .collect()
    }

    /// BM25's inverse document frequency.
    #[allow(clippy::cast_precision_loss)]
    fn rarity(&self, held: usize) -> f32 {
        let (all, held) = (self.len() as f32, held as f32);
        (1.0 + (all - held + 0.5).max(0.0) / (held + 0.5)).ln()
    }

    /// Vendors all of whose words the query holds, by name.
    fn named_vendors(&self, query: &[Asked]) -> Named<'_> {
        if !query.iter().any(|asked| self.vendor_words.contains_key(&asked.word)) {
            return Named::new();
        }
        let asked: HashSet<&str> = query.iter().map(|asked| &*asked.word).collect();
        let all_asked = |vendor: &Vendor| vendor.words.iter().all(|w| asked.contains(&**w));
        let vendors = self.vendors.iter().filter(|(_, vendor)| all_asked(vendor));
        vendors.map(|(name, vendor)| (&**name, vendor)).collect()
    }

    /// A query that is only a vendor's name: its tools by wire name, then others
    /// that speak of it.
    fn list_vendors(&self, query: &[Asked], named: &Named<'_>) -> Findings {
        let own: Vec<u32> = named.values().flat_map(|v| v.tools.values().copied()).collect();
        let mut others = self.gather(query, &Named::new()).full;
        let listed: HashSet<u32> = own.iter().copied().collect();
        others.retain(|(_, slot)| !listed.contains(slot));

        let total = own.len() + others.len();
        let mut tools = own.iter().filter_map(|slot| self.found(*slot, 0.0, false));
        let mut hits: Vec<Found> = tools.by_ref().take(HITS_MAX).collect();
        let more = tools.map(|found| found.tool).collect();
        hits.extend(self.best(others, false, HITS_MAX - hits.len()));
        Findings { hits, total, more, nearest: Vec::new() }
    }

    fn rank(&self, query: &[Asked], named: &Named<'_>) -> Findings {
        let Gather { full, mut partial, nearest } = self.gather(query, named);
        // A vendor's name narrows: others than its tools are shown only when it
        // has nothing to show.
        if partial.iter().any(|(_, _, own)| *own) {
            partial.retain(|(_, _, own)| *own);
        } else if !named.is_empty() && !full.is_empty() {
            partial.clear();
        }
        let total = full.len() + partial.len();
        let mut hits = self.best(full, false, HITS_MAX);
        let partial = partial.into_iter().map(|(score, slot, _)| (score, slot)).collect();
        hits.extend(self.best(partial, true, HITS_MAX - hits.len()));
        let nearest =
            if hits.is_empty() { self.best(nearest, true, NEAREST_MAX) } else { Vec::new() };
        let nearest = nearest.into_iter().map(|found| found.tool).collect();
        Findings { hits, total, more: Vec::new(), nearest }
    }

    /// The tools the query's words bring together.
    fn gather(&self, query: &[Asked], named: &Named<'_>) -> Gather {
        let rare = self.rarity(1);
        let least = FLOOR_ABOUT * rare;
        let (mut slots, touched) = self.touched(query, named.is_empty().then_some(least));
        let all: u32 = u32::MAX >> (32 - query.len().clamp(1, 32));
        let vendors = self.vendor_matches(query);
        // A partial hit is made by words that are not a vendor's name: else a
        // vendor's word would bring in every tool of it.
        let named_words = named.values().fold(0, |mask, vendor| mask | vendor.mask(query));

        let mut gather = Gather::default();
        for slot in touched {
            let here = std::mem::take(&mut slots[slot as usize]);
            if here.words == all {
                gather.full.push((here.score, slot));
                continue;
            }
            // Below every floor: most of what a common word touches.
            if here.score < least && named.is_empty() {
                continue;
            }
            let Some(entry) = &self.slots[slot as usize] else { continue };
            let by_vendor = vendors.get(entry.tool.vendor()).copied().unwrap_or(0);
            let own = named.contains_key(entry.tool.vendor());
            let floor = match (here.words & !named_words & !by_vendor).count_ones() {
                0 => continue,
                // The vendor was named: one word about its tools is enough.
                _ if own => 0.0,
                1 if here.words.count_ones() == 1 => FLOOR_ONE,
                _ => FLOOR_SEVERAL,
            };
            let enough = here.score >= floor * rare;
            if enough || (here.score >= least && self.says_what_it_is_about(entry, query)) {
                gather.partial.push((here.score, slot, own));
            } else if here.score >= least && gather.full.is_empty() && gather.partial.is_empty() {
                gather.nearest.push((here.score, slot));
            }
        }
        SCRATCH.set(slots);
        gather
    }

    /// What each slot gets from the query's words, and the slots that could come to
    /// `least`, if there is one, or hold every word. The rarest word goes first: once all that follow
    /// could not make up `least` together, they only add to what is there.
    fn touched(&self, query: &[Asked], least: Option<f32>) -> (Vec<Gathered>, Vec<u32>) {
        let mut gathered = SCRATCH.take();
        gathered.resize(gathered.len().max(self.slots.len()), Gathered::default());
        let mut touched = Vec::new();
        let mut words: Vec<Listed<'_>> = query
            .iter()
            .enumerate()
            .filter_map(|(at, asked)| Some((at, asked, self.postings.get(&asked.word)?.as_slice())))
            .collect();
        words.sort_by_key(|(_, _, list)| list.len());
        let mut left: f32 = words.iter().map(|(_, asked, _)| asked.most()).sum();
        for (number, (at, asked, list)) in words.into_iter().enumerate() {
            let adds_none = number > 0 && least.is_some_and(|least| left < least);
            left -= asked.most();
            for (slot, count) in list {
                let here = &mut gathered[*slot as usize];
                if here.words == 0 {
                    if adds_none {
                        continue;
                    }
                    touched.push(*slot);
                }
                here.words |= 1 << at;
                here.score += asked.score(*count);
            }
        }
        (gathered, touched)
    }

    /// Whether the query says most of what the tool's name says it is about. A
    /// word many tools share is weak as a word, and yet all there is to say of
    /// `find-events`.
    fn says_what_it_is_about(&self, entry: &Entry, query: &[Asked]) -> bool {
        let (mut all, mut said) = (0.0, 0.0);
        for word in &entry.subject {
            let weight = self.rarity(self.postings.get(word).map_or(0, Vec::len));
            all += weight;
            if query.iter().any(|asked| asked.word == *word) {
                said += weight;
            }
        }
        said > 0.0 && said >= ABOUT * all
    }

    /// For each vendor that holds some of the words: which.
    fn vendor_matches(&self, query: &[Asked]) -> HashMap<&str, u32> {
        if !query.iter().any(|asked| self.vendor_words.contains_key(&asked.word)) {
            return HashMap::new();
        }
        let masks = self.vendors.iter().map(|(name, vendor)| (&**name, vendor.mask(query)));
        masks.filter(|(_, mask)| *mask != 0).collect()
    }

    fn best(&self, mut rows: Vec<(f32, u32)>, partial: bool, room: usize) -> Vec<Found> {
        let order = |a: &(f32, u32), b: &(f32, u32)| {
            let name = |slot: u32| self.slots[slot as usize].as_ref().map(|entry| &entry.tool);
            b.0.total_cmp(&a.0).then_with(|| name(a.1).cmp(&name(b.1)))
        };
        if rows.len() > room && room > 0 {
            rows.select_nth_unstable_by(room - 1, order);
        }
        rows.truncate(room);
        rows.sort_by(order);
        rows.into_iter().filter_map(|(score, slot)| self.found(slot, score, partial)).collect()
    }

    fn found(&self, slot: u32, score: f32, partial: bool) -> Option<Found> {
        let entry = self.slots.get(slot as usize)?.as_ref()?;
        Some(Found { tool: entry.tool.clone(), partial, score })
    }

    fn enter_vendor(&mut self, tool: &ToolName, slot: u32) {
        let vendor = self.vendors.entry(tool.vendor().into()).or_default();
        if vendor.words.is_empty() {
            vendor.words = words::of_text(tool.vendor());
            for word in &vendor.words {
                *self.vendor_words.entry(word.clone()).or_default() += 1;
            }
        }
        vendor.tools.insert(tool.name().into(), slot);
    }

    fn leave_vendor(&mut self, tool: &ToolName) {
        let Some(vendor) = self.vendors.get_mut(tool.vendor()) else { return };
        vendor.tools.remove(tool.name());
        if !vendor.tools.is_empty() {
            return;
        }
        for word in std::mem::take(&mut vendor.words) {
            if let Some(count) = self.vendor_words.get_mut(&word) {
                *count -= 1;
                if *count == 0 {
                    self.vendor_words.remove(&word);
                }
            }
        }
        self.vendors.remove(tool.vendor());
    }
}

/// A word of a query.
struct Asked {
    word: Box<str>,
    weight: f32,
}

impl Asked {
    /// What [`Self::score`] stays below.
    fn most(&self) -> f32 {
        self.weight * (K1 + 1.0)
    }

    /// BM25's part of one word.
    fn score(&self, count: f32) -> f32 {
        self.weight * count * (K1 + 1.0) / (count + K1)
    }
}

impl Vendor {
    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| &**own == word)
    }

    fn mask(&self, query: &[Asked]) -> u32 {
        let bit = |(at, asked): (usize, &Asked)| u32::from(self.has(&asked.word)) << at;
        query.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }
}

/// Each word of a tool with its count, weighted by field and field length.
fn weigh(document: Document<'_>) -> BTreeMap<Box<str>, f32> {
    let mut counts = BTreeMap::new();
    let mut left = DOCUMENT_WORDS_MAX;
    let mut add = |field: &Field, words: Vec<Box<str>>| {
        #[allow(clippy::cast_precision_loss)]
        let length = words.len() as f32 / field.usual_words;
        let unit = field.weight / (1.0 - B + B * length);
        for word in words.into_iter().take(left) {
            left -= 1;
            *counts.entry(word).or_insert(0.0) += unit;
        }
    };
    add(&VENDOR, words::of_text(document.tool.vendor()));
    add(&NAME, words::of_text(document.tool.name()));
    let mut account = document.title.map(words::of_text).unwrap_or_default();
    account.extend(words::of_text(document.description));
    add(&DESCRIPTION, account);
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    read_schema(document.input_schema, SCHEMA_DEPTH_MAX, &mut names, &mut texts);
    add(&PROPERTY, names);
    add(&PROPERTY_TEXT, texts);
    counts
}

fn read_schema(schema: &Value, depth: usize, names: &mut Vec<Box<str>>, texts: &mut Vec<Box<str>>) {
    if depth == 0 || names.len() + texts.len() > DOCUMENT_WORDS_MAX {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            names.extend(words::of_text(name));
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                texts.extend(words::of_text(text));
            }
            let values = property.get("enum").and_then(Value::as_array);
            for value in values.into_iter().flatten().filter_map(Value::as_str).take(ENUM_MAX) {
                texts.extend(words::of_text(value));
            }
            read_schema(property, depth - 1, names, texts);
        }
    }
    if let Some(items) = schema.get("items") {
        let values = items.get("enum").and_then(Value::as_array);
        for value in values.into_iter().flatten().filter_map(Value::as_str).take(ENUM_MAX) {
            texts.extend(words::of_text(value));
        }
        read_schema(items, depth - 1, names, texts);
    }
}
