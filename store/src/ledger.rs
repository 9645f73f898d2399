//! The ledger: for every row that decides something, what it was when we last
//! wrote it, as a chain of MACed entries written in the transaction that changes
//! the row. At the start the chain is walked and every such table compared with
//! it; afterwards what it says is known in memory, and a row is believed only
//! as the ledger has it. So somebody who can write the database file cannot
//! take back a use, a withdrawal, a passphrase or a token unseen.

use crate::error::fault;
use crate::head::{Head, HeadFile, path_of};
use crate::row::{Read, whole};
use crate::seal::{Part, RowName, Table};
use cambium_proxy::{MacKey, StoreFault};
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries read at a time.
const PAGE: i64 = 1_000;
/// What the entry that begins a chain is about.
const FIRST: &str = "ledger";

const AFTER: &str = "SELECT sequence, table_name, row_key, digest, mac FROM ledger
    WHERE sequence >= $1 ORDER BY sequence LIMIT $2";
const SCHEMA: &str = "SELECT schema_version FROM pragma_schema_version";
const AUDIT_AT: &str = "SELECT hash FROM audit WHERE node = $1 AND sequence = $2";
const AUDIT_ENDS: &str = "SELECT node, sequence, hash FROM audit a WHERE sequence = (
    SELECT MAX(sequence) FROM audit b WHERE b.node = a.node)";
// Already compared with the ledger when this is asked.
const LET_GO: &str =
    "SELECT COUNT(*) FROM audit_segments WHERE node = $1 AND $2 BETWEEN first AND last";

/// Where a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file with its head beside it.
    File,
    /// In a file that came out of a backup, which has no head.
    Restored,
    /// In memory.
    Memory,
}

/// Why a ledger cannot be opened.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It was written under another key.
    WrongKey,
    /// It, or a table it is about, was changed by somebody else.
    Tampered(String),
    /// The head file cannot be read or written.
    Unwritable(String),
    /// The database did not answer.
    Store(StoreFault),
}

impl From<StoreFault> for Broken {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Corrupt(why) => Self::Tampered(why),
            fault @ (StoreFault::Unavailable(_) | StoreFault::Conflict(_)) => Self::Store(fault),
        }
    }
}

/// What a read rests on.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The row stands so.
    Is(RowName, String),
    /// There is no such row.
    IsNot(RowName),
    /// So many rows belong to the set that these parts of a key name.
    Counts(Table, Vec<String>, u64),
    /// So many rows are in the table.
    Total(Table, u64),
    /// Of an agent's decisions on a tool, or denies of a content under another
    /// name, the row of this tool and number is the one that stands.
    Stands { agent: String, tool: String, version: Option<String>, row: Option<(String, u64)> },
    /// The newest decision of an agent on a tool has this number.
    Newest(String, String, u64),
    /// No deny or withdrawal of the agent's on the tool is newer than this.
    NotTakenBack(String, String, u64),
}

/// A decision, as far as the ledger names it.
struct Known {
    tool: String,
    sequence: u64,
    version: String,
    answer: String,
}

impl Known {
    /// Out of a ledger key: agent, tool, number, version, answer.
    fn read(key: &str) -> Option<(&str, Self)> {
        let mut parts = key.split('/');
        let agent = parts.next()?;
        let tool = parts.next()?.to_owned();
        let sequence = parts.next()?.parse().ok()?;
        let (version, answer) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some((agent, Self { tool, sequence, version, answer }))
    }

    fn takes_back(&self) -> bool {
        ["deny", "withdrawn"].contains(&&*self.answer)
    }
}

/// An entry on its way.
pub(crate) struct Entry {
    sequence: u64,
    table: String,
    key: String,
    digest: Vec<u8>,
    mac: Vec<u8>,
}

/// What the ledger says, in memory.
#[derive(Default)]
struct State {
    end: u64,
    mac: Vec<u8>,
    rows: HashMap<[u8; 16], [u8; 32]>,
    sets: HashMap<(Table, String), u64>,
    totals: HashMap<Table, u64>,
    /// By agent.
    decisions: HashMap<String, Vec<Known>>,
    /// Last audit row of each node: number and hash, whether or not the disk has it.
    audit: BTreeMap<String, (u64, String)>,
    written: u64,
}

impl State {
    fn of(&self, agent: &str) -> &[Known] {
        self.decisions.get(agent).map_or(&[], Vec::as_slice)
    }

    /// What stands, said by the ledger alone.
    fn stands(
        &self,
        agent: &str,
        tool: &str,
        version: Option<&str>,
        row: Option<&(String, u64)>,
    ) -> bool {
        let known = self.of(agent);
        let newest = |tool: &str| {
            let counting = known.iter().filter(|k| k.tool == tool && k.answer != "once");
            counting.max_by_key(|k| k.sequence)
        };
        let is = |k: &Known| row.is_some_and(|(tool, at)| k.tool == *tool && k.sequence == *at);
        let mut elsewhere = known.iter().filter(|k| {
            version == Some(k.version.as_str())
                && k.tool != tool
                && k.answer == "deny"
                && newest(&k.tool).is_some_and(|newest| newest.sequence == k.sequence)
        });
        match elsewhere.next() {
            Some(first) => is(first) || elsewhere.any(is),
            None => match newest(tool) {
                Some(newest) => is(newest),
                None => row.is_none(),
            },
        }
    }
}

/// The ledger of one database.
pub(crate) struct Ledger {
    key: MacKey,
    state: Mutex<State>,
    head: Option<HeadFile>,
    /// SQLite's count of schema changes: a foreign trigger shows in it.
    schema: AtomicI64,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("end", &self.state().end).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Walks the chain, compares every table with it and both with the head. The
    /// caller holds the database's lock, and writes the head once it has committed.
    pub(crate) async fn open(
        on: &mut SqliteConnection,
        key: MacKey,
        place: Place,
        database: &Path,
    ) -> Result<Self, Broken> {
        let unwritable = |error: std::io::Error| Broken::Unwritable(error.to_string());
        let path = (place != Place::Memory).then(|| path_of(database));
        let found = match &path {
            Some(path) => HeadFile::open(path, &key).map_err(unwritable)?,
            None => None,
        };
        let head = match &found {
            Some(file) => file.read().map_err(unwritable)?,
            None => None,
        };
        let mut ledger = Self {
            key: key.clone(),
            state: Mutex::default(),
            head: found,
            schema: AtomicI64::new(0),
        };
        ledger.schema.store(schema_version(on).await?, Ordering::Relaxed);
        ledger.catch_up(on, head.as_ref()).await?;
        let end = ledger.state().end;
        match &head {
            Some(head) if head.ledger.0 > end => {
                let known = head.ledger.0;
                return Err(Broken::Tampered(format!(
                    "the ledger ends at {end}, and it had come to {known}"
                )));
            }
            // Beyond its first entry a database always has a head.
            None if end > 1 && place == Place::File => {
                return Err(Broken::Tampered(
                    "the head beside it is missing, or is not one of this server's".into(),
                ));
            }
            _ => {}
        }
        ledger.compare(on).await?;
        if let Some(head) = head {
            compare_audit(on, &head).await?;
            let mut state = ledger.state();
            state.audit = head.audit;
            state.written = head.written;
        } else {
            let ends = sqlx::query(AUDIT_ENDS).fetch_all(&mut *on).await.map_err(fault)?;
            for row in &ends {
                let (node, hash): (String, Vec<u8>) = (row.get_as("node")?, row.get_as("hash")?);
                ledger.audited(&node, row.unsigned("sequence")?, &hash);
            }
        }
        if let (Some(path), None) = (&path, &ledger.head) {
            ledger.head = Some(HeadFile::make(path, &key).map_err(unwritable)?);
        }
        if end == 0 {
            ledger.begin(on).await?;
        }
        Ok(ledger)
    }

    /// The end of the chain.
    pub(crate) fn end(&self) -> u64 {
        self.state().end
    }

    /// Number and MAC of the last entry.
    pub(crate) fn last(&self) -> (u64, Vec<u8>) {
        let state = self.state();
        (state.end, state.mac.clone())
    }

    /// The first claim the ledger does not bear out.
    pub(crate) fn odd(&self, claims: &[Claim]) -> Option<String> {
        let state = self.state();
        claims.iter().find_map(|claim| match claim {
            Claim::Is(row, seal) => {
                let said = state.rows.get(&self.place(row.table.name(), &row.key()));
                match said {
                    Some(digest) if *digest == self.digest(seal) => None,
                    Some(_) => Some(format!("a row of {} was changed", row.table.name())),
                    None => Some(format!("a row of {} was put in", row.table.name())),
                }
            }
            Claim::IsNot(row) => state
                .rows
                .contains_key(&self.place(row.table.name(), &row.key()))
                .then(|| format!("a row of {} was taken out", row.table.name())),
            Claim::Counts(table, parts, count) => {
                let known = state.sets.get(&(*table, parts.join("/"))).copied().unwrap_or_default();
                (known != *count).then(|| {
                    format!("{} holds {count} rows where {known} were written", table.name())
                })
            }
            Claim::Total(table, count) => {
                let known = state.totals.get(table).copied().unwrap_or_default();
                (known != *count).then(|| {
                    format!("{} holds {count} rows where {known} were written", table.name())
                })
            }
            Claim::Stands { agent, tool, version, row } => {
                let stands = state.stands(agent, tool, version.as_deref(), row.as_ref());
                (!stands).then(|| format!("another decision about {tool} stands"))
            }
            Claim::Newest(agent, tool, sequence) => {
                let mine = state.of(agent).iter().filter(|known| known.tool == *tool);
                let newest = mine.map(|known| known.sequence).max().unwrap_or_default();
                (newest != *sequence).then(|| format!("the newest decision about {tool} is gone"))
            }
            Claim::NotTakenBack(agent, tool, sequence) => state
                .of(agent)
                .iter()
                .any(|k| k.tool == *tool && k.sequence > *sequence && k.takes_back())
                .then(|| format!("a decision about {tool} was taken out")),
        })
    }

    /// Reads what other writers of the file have appended, in one transaction
    /// with what follows or under the pen.
    pub(crate) async fn catch_up(
        &self,
        on: &mut SqliteConnection,
        head: Option<&Head>,
    ) -> Result<(), Broken> {
        if schema_version(on).await? != self.schema.load(Ordering::Relaxed) {
            return Err(Broken::Tampered("the schema was changed by somebody else".into()));
        }
        loop {
            let (end, mac) = self.last();
            let from = whole(end)?;
            let page = sqlx::query(AFTER).bind(from).bind(PAGE).fetch_all(&mut *on).await;
            let page = page.map_err(fault)?;
            let mut entries = Vec::with_capacity(page.len());
            for row in &page {
                entries.push(Entry {
                    sequence: row.unsigned("sequence")?,
                    table: row.get_as("table_name")?,
                    key: row.get_as("row_key")?,
                    digest: row.get_as("digest")?,
                    mac: row.get_as("mac")?,
                });
            }
            let mut entries = entries.into_iter();
            if end > 0 {
                let last = entries.next().filter(|last| last.sequence == end && last.mac == mac);
                if last.is_none() {
                    return Err(Broken::Tampered(format!("ledger entry {end} is gone or changed")));
                }
            }
            let mut came = false;
            for entry in entries {
                came = true;
                self.follow(entry, head)?;
            }
            if !came {
                return Ok(());
            }
        }
    }

    /// Writes an entry for each changed row; they count once
    /// [`Self::stored`] says that the transaction was committed.
    pub(crate) async fn append(
        &self,
        on: &mut SqliteConnection,
        changed: &[RowName],
    ) -> Result<Vec<Entry>, StoreFault> {
        self.catch_up(on, None).await.map_err(StoreFault::from)?;
        let (mut sequence, mut previous) = self.last();
        let mut entries = Vec::with_capacity(changed.len());
        for row in changed {
            let mut query = sqlx::query(row.table.one());
            for part in &row.parts {
                query = match part {
                    Part::Text(text) => query.bind(text),
                    Part::Bytes(bytes) => query.bind(bytes),
                    Part::Number(number) => query.bind(number),
                };
            }
            let found = query.fetch_optional(&mut *on).await.map_err(fault)?;
            let found = found.ok_or_else(|| {
                StoreFault::Corrupt(format!("a row of {} went as it came", row.table.name()))
            })?;
            let seal: String = found.get_as("seal")?;
            sequence += 1;
            let entry = self.entry(
                sequence,
                &previous,
                row.table.name(),
                row.key(),
                self.digest(&seal).to_vec(),
            );
            insert(on, &entry).await?;
            previous.clone_from(&entry.mac);
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Counts entries whose transaction was committed.
    pub(crate) fn stored(&self, entries: Vec<Entry>) {
        let mut state = self.state();
        for entry in entries {
            self.apply(&mut state, entry);
        }
    }

    /// Notes the end of a node's audit; the disk may not have it yet.
    pub(crate) fn audited(&self, node: &str, sequence: u64, hash: &[u8]) {
        self.state().audit.insert(node.to_owned(), (sequence, hex(hash)));
    }

    /// Writes the head, after a commit that the disk has. A head that cannot be
    /// written stays behind, which loses protection and nothing else.
    pub(crate) fn write_head(&self) {
        let Some(file) = &self.head else { return };
        let mut state = self.state();
        state.written += 1;
        let head = Head {
            written: state.written,
            ledger: (state.end, hex(&state.mac)),
            audit: state.audit.clone(),
        };
        if let Err(error) = file.write(&head) {
            tracing::error!(%error, "the head of the ledger could not be written");
        }
    }

    /// The first entry, by which a key is known again.
    async fn begin(&self, on: &mut SqliteConnection) -> Result<(), StoreFault> {
        let (end, previous) = self.last();
        let entry = self.entry(end + 1, &previous, FIRST, "1".to_owned(), vec![0; 32]);
        insert(on, &entry).await?;
        self.stored(vec![entry]);
        Ok(())
    }

    /// Compares every table with what the chain says.
    async fn compare(&self, on: &mut SqliteConnection) -> Result<(), Broken> {
        for table in Table::ALL {
            let name = table.name();
            let rows = sqlx::query(table.every()).fetch_all(&mut *on).await.map_err(fault)?;
            let state = self.state();
            for row in &rows {
                let (key, seal): (String, String) = (row.get_as("row_key")?, row.get_as("seal")?);
                let why = match state.rows.get(&self.place(name, &key)) {
                    Some(digest) if *digest == self.digest(&seal) => continue,
                    Some(_) => "was changed",
                    None => "was put in",
                };
                return Err(Broken::Tampered(format!("the row {key} of {name} {why}")));
            }
            let known = state.totals.get(&table).copied().unwrap_or_default();
            if known != rows.len() as u64 {
                let found = rows.len();
                return Err(Broken::Tampered(format!(
                    "{name} holds {found} rows where {known} were written"
                )));
            }
        }
        Ok(())
    }

    fn follow(&self, entry: Entry, head: Option<&Head>) -> Result<(), Broken> {
        let mut state = self.state();
        let at = entry.sequence;
        if at != state.end + 1 {
            return Err(Broken::Tampered(format!("ledger entry {} is missing", state.end + 1)));
        }
        if !self.key.holds(
            &[
                &state.mac,
                &at.to_be_bytes(),
                entry.table.as_bytes(),
                entry.key.as_bytes(),
                &entry.digest,
            ],
            &entry.mac,
        ) {
            return Err(match at {
                1 => Broken::WrongKey,
                _ => Broken::Tampered(format!("ledger entry {at} does not hold")),
            });
        }
        if head.is_some_and(|head| head.ledger.0 == at && head.ledger.1 != hex(&entry.mac)) {
            return Err(Broken::Tampered(format!("ledger entry {at} is another than it was")));
        }
        self.apply(&mut state, entry);
        Ok(())
    }

    fn entry(
        &self,
        sequence: u64,
        previous: &[u8],
        table: &str,
        key: String,
        digest: Vec<u8>,
    ) -> Entry {
        let fields =
            [previous, &sequence.to_be_bytes(), table.as_bytes(), key.as_bytes(), &digest[..]];
        let mac = self.key.mac(&fields).to_vec();
        Entry { sequence, table: table.to_owned(), key, digest, mac }
    }

    fn apply(&self, state: &mut State, entry: Entry) {
        let Entry { sequence, table, key, digest, mac } = entry;
        (state.end, state.mac) = (sequence, mac);
        let (Some(of), Ok(digest)) = (Table::of(&table), digest.try_into()) else { return };
        if state.rows.insert(self.place(&table, &key), digest).is_none() {
            *state.totals.entry(of).or_default() += 1;
            if let (Table::Decisions, Some((agent, known))) = (of, Known::read(&key)) {
                state.decisions.entry(agent.to_owned()).or_default().push(known);
            }
            if of.set_parts() > 0 {
                let set: Vec<&str> = key.split('/').take(of.set_parts()).collect();
                *state.sets.entry((of, set.join("/"))).or_default() += 1;
            }
        }
    }

    fn digest(&self, seal: &str) -> [u8; 32] {
        self.key.mac(&[b"row", seal.as_bytes()])
    }

    /// Where a row is kept in memory: half a MAC, since ids are long and many.
    fn place(&self, table: &str, key: &str) -> [u8; 16] {
        let mac = self.key.mac(&[b"place", table.as_bytes(), key.as_bytes()]);
        let mut place = [0; 16];
        place.copy_from_slice(&mac[..16]);
        place
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Broken> for StoreFault {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::WrongKey => Self::Corrupt("the ledger is another key's".into()),
            Broken::Tampered(why) => {
                tracing::error!(why, "the database was changed by somebody else");
                Self::Corrupt(format!("the database was changed by somebody else: {why}"))
            }
            Broken::Unwritable(why) => Self::Unavailable(why),
            Broken::Store(fault) => fault,
        }
    }
}

async fn insert(on: &mut SqliteConnection, entry: &Entry) -> Result<(), StoreFault> {
    sqlx::query(
        "INSERT INTO ledger (sequence, table_name, row_key, digest, mac)
        VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(whole(entry.sequence)?)
    .bind(&entry.table)
    .bind(&entry.key)
    .bind(&entry.digest)
    .bind(&entry.mac)
    .execute(on)
    .await
    .map_err(fault)?;
    Ok(())
}

async fn schema_version(on: &mut SqliteConnection) -> Result<i64, StoreFault> {
    sqlx::query_scalar(SCHEMA).fetch_one(on).await.map_err(fault)
}

/// The audit has at least the rows the disk had.
async fn compare_audit(on: &mut SqliteConnection, head: &Head) -> Result<(), Broken> {
    for (node, (sequence, hash)) in &head.audit {
        let row = sqlx::query(AUDIT_AT).bind(node).bind(whole(*sequence)?);
        let row = row.fetch_optional(&mut *on).await.map_err(fault)?;
        let found: Option<Vec<u8>> = row.map(|row| row.get_as("hash")).transpose()?;
        if found.is_none() {
            let let_go = sqlx::query_scalar(LET_GO).bind(node).bind(whole(*sequence)?);
            let let_go: i64 = let_go.fetch_one(&mut *on).await.map_err(fault)?;
            if let_go > 0 {
                continue;
            }
        }
        if found.is_none_or(|found| hex(&found) != *hash) {
            return Err(Broken::Tampered(format!(
                "audit row {sequence} of node {node} is gone or changed"
            )));
        }
    }
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
