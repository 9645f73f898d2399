//! The texts that are looked for where a secret is to be hidden: itself, its
//! base64 at each alignment, its hex, and both kinds of UTF-16. How each of them
//! may be escaped is `spelling`'s.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::OnceLock;
use zeroize::{Zeroize, Zeroizing};

use super::spelling::{leads, readings};

/// Steps of searching a byte of text pays for. The densest that honest writers
/// make takes some five, each time it is searched.
const STEPS_A_BYTE: u64 = 64;
/// And those every text has.
const STEPS_FREE: u64 = 1 << 20;

/// How much searching a text may still cost. A vendor could make one in which
/// everything nearly matches; where this ends, the rest is hidden unread.
pub(super) struct Steps(u64);

impl Steps {
    pub(super) fn new() -> Self {
        Self(STEPS_FREE)
    }

    pub(super) fn earn(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(STEPS_A_BYTE * bytes as u64);
    }

    pub(super) fn are_spent(&self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self, steps: usize) -> bool {
        self.0 = self.0.saturating_sub(steps as u64);
        self.0 > 0
    }
}

/// What is looked for on behalf of some secrets.
pub(super) struct Needles {
    needles: Vec<Needle>,
    /// One holds a space, which a form writes as `+`.
    spaced: bool,
    /// Made when the first escape is met.
    index: OnceLock<Index>,
    pub(super) longest: usize,
}

/// Every byte of every needle that may be escaped, in order.
struct Index {
    places: Vec<Place>,
    /// Where each byte's begin; the next one's are their end.
    begins: [usize; 257],
}

/// A byte of a needle and the one before it. What an escape stands for and what
/// comes before it name the few places that are worth a look.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Place {
    byte: u8,
    before: Option<u8>,
    needle: usize,
    at: usize,
}

struct Needle {
    bytes: Zeroizing<Vec<u8>>,
    finder: Finder<'static>,
    /// It may be escaped; UTF-16 is looked for as it stands.
    spelled: bool,
}

/// Where something was found, and from where on it is not yet known.
#[derive(Default)]
pub(super) struct Found {
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) open: Option<usize>,
}

impl Needles {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut texts: Vec<(Vec<u8>, bool)> = secrets.flat_map(forms).collect();
        texts.sort();
        texts.dedup();
        let needle = |(bytes, spelled): (Vec<u8>, bool)| Needle {
            finder: Finder::new(&bytes).into_owned(),
            bytes: Zeroizing::new(bytes),
            spelled,
        };
        let needles: Vec<Needle> = texts.into_iter().map(needle).collect();
        let spaced = needles.iter().any(|needle| needle.spelled && needle.bytes.contains(&b' '));
        let longest = needles.iter().map(|needle| needle.bytes.len()).max().unwrap_or(0);
        Self { needles, spaced, index: OnceLock::new(), longest }
    }

    /// The places of a byte that begin a needle, or come after another byte.
    fn places(&self, byte: u8, before: Option<u8>) -> impl Iterator<Item = &Place> {
        let index = self.index.get_or_init(|| self.index());
        let byte = usize::from(byte);
        let places = &index.places[index.begins[byte]..index.begins[byte + 1]];
        places.iter().filter(move |place| place.before.is_none() || place.before == before)
    }

    fn index(&self) -> Index {
        let spelled = self.needles.iter().enumerate().filter(|(_, needle)| needle.spelled);
        let mut places: Vec<Place> = spelled
            .flat_map(|(number, needle)| {
                needle.bytes.iter().enumerate().map(move |(at, byte)| Place {
                    byte: *byte,
                    before: at.checked_sub(1).map(|before| needle.bytes[before]),
                    needle: number,
                    at,
                })
            })
            .collect();
        places.sort_unstable();
        let mut begins = [places.len(); 257];
        for (byte, begin) in begins.iter_mut().enumerate() {
            *begin = places.partition_point(|place| usize::from(place.byte) < byte);
        }
        Index { places, begins }
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn texts(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.needles.iter().map(|needle| (needle.bytes.as_slice(), needle.spelled))
    }

    /// Every place a needle stands, as it is or escaped. `whole` says that
    /// nothing follows the text.
    pub(super) fn find(&self, text: &[u8], whole: bool, steps: &mut Steps, found: &mut Found) {
        for needle in &self.needles {
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| needle.finder.find(rest)) {
                let start = from + at;
                found.ranges.push(start..start + needle.bytes.len());
                if !steps.spend(needle.bytes.len()) {
                    return;
                }
                // One on, not past: a needle may overlap itself.
                from = start + 1;
            }
        }
        for at in memchr::memchr3_iter(b'\\', b'%', b'&', text) {
            self.at_escape(text, at, whole, steps, found);
        }
        if self.spaced {
            for at in memchr::memchr_iter(b'+', text) {
                self.at_escape(text, at, whole, steps, found);
            }
        }
    }

    /// The needles whose first escaped byte may be the one at `at`.
    fn at_escape(&self, text: &[u8], at: usize, whole: bool, steps: &mut Steps, found: &mut Found) {
        let read = readings(text, at);
        if !steps.spend(read.looks) {
            return;
        }
        if read.short && !whole {
            found.keep(at.saturating_sub(self.longest - 1));
        }
        let before = at.checked_sub(1).map(|before| text[before]);
        for reading in read.iter().filter(|reading| reading.end > at + 1 || reading.byte == b' ') {
            for place in self.places(reading.byte, before) {
                let needle = &self.needles[place.needle].bytes;
                if !steps.spend(1) {
                    return;
                }
                let place = place.at;
                if place > at || text[at - place..at] != needle[..place] {
                    continue;
                }
                let start = at - place;
                match follow(text, &needle[place + 1..], reading.end, whole, steps) {
                    Followed::To(end) => found.ranges.push(start..end),
                    Followed::Open => found.keep(start),
                    Followed::Lost => {}
                }
            }
        }
    }
}

impl Found {
    fn keep(&mut self, from: usize) {
        self.open = Some(self.open.map_or(from, |open| open.min(from)));
    }
}

enum Followed {
    To(usize),
    /// The text ends before that is known.
    Open,
    Lost,
}

/// Whether the rest of a needle stands at `at`, and where it ends at the latest.
fn follow(text: &[u8], rest: &[u8], at: usize, whole: bool, steps: &mut Steps) -> Followed {
    let (mut places, mut next) = (vec![at], Vec::new());
    for byte in rest {
        for &place in &places {
            if !steps.spend(1) {
                return Followed::Lost;
            }
            let Some(lead) = text.get(place) else {
                if whole {
                    continue;
                }
                return Followed::Open;
            };
            if !leads(*lead) {
                next.extend((lead == byte).then_some(place + 1));
                continue;
            }
            let read = readings(text, place);
            steps.spend(read.looks);
            if read.short && !whole {
                return Followed::Open;
            }
            next.extend(read.iter().filter(|it| it.byte == *byte).map(|it| it.end));
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(&mut places, &mut next);
        next.clear();
        if places.is_empty() {
            return Followed::Lost;
        }
    }
    places.into_iter().max().map_or(Followed::Lost, Followed::To)
}

/// Every text looked for, and whether it may be escaped.
fn forms(secret: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut forms = vec![(secret.to_vec(), true)];
    forms.extend(base64_forms(secret).into_iter().map(|form| (form, true)));
    let hex = |write: fn(u8) -> String| secret.iter().map(|byte| write(*byte)).collect::<String>();
    forms.push((hex(|byte| format!("{byte:02x}")).into_bytes(), true));
    forms.push((hex(|byte| format!("{byte:02X}")).into_bytes(), true));
    forms.push((secret.iter().flat_map(|byte| [*byte, 0]).collect(), false));
    forms.push((secret.iter().flat_map(|byte| [0, *byte]).collect(), false));
    forms
}

/// Base64 at the three places a secret can begin in a group of three bytes,
/// without the letters that depend on its neighbours; both alphabets.
fn base64_forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for shift in 0..3 {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(secret);
        // Letters that hold bits of what stands before, and of what follows.
        let before = [0, 2, 3][shift];
        let whole = (padded.len() * 8) / 6;
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let mut text = alphabet.encode(&padded);
            forms.push(text.as_bytes()[before..whole].to_vec());
            text.zeroize();
        }
        padded.zeroize();
    }
    forms
}
