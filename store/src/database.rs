//! The database file: how it is opened, who may write and who reads. There is
//! one pen: every write transaction takes it first, so that writers of this
//! process queue in order instead of polling for SQLite's lock. Two connections
//! write, one that waits for the disk at each commit and one that does not
//! (both survive the death of the process; only the first a loss of power).

use crate::checkpoint::Checkpoints;
use crate::error::fault;
use crate::ledger::{Claim, Ledger, Place};
use crate::memory::{Memory, Question};
use crate::pool::{Line, Pool, Transaction};
use crate::seal::RowName;
use crate::{StoreError, checkpoint, schema};
use cambium_proxy::{BoxFuture, MacKey, StoreFault};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// How long a statement waits for another process's lock.
const BUSY: Duration = Duration::from_secs(5);
/// How long a writer waits for the pen.
const TURN: Duration = Duration::from_secs(10);
/// Readers at once; each is a thread.
const READERS: u32 = 4;
/// A file up to this size is checked whole when it is opened; a larger one
/// would delay the start, `cambium doctor` is for it.
const CHECKED_BYTES: u64 = 64 * 1024 * 1024;

/// The store: implements every port of `proxy` and `engine`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pen: Mutex<()>,
    durable: Pool,
    quick: Pool,
    readers: Pool,
    /// None of a database in memory.
    checkpoints: Option<Checkpoints>,
    /// The file, unless it is in memory.
    path: Option<PathBuf>,
    /// Set once the file was opened, before anybody has the store.
    ledger: OnceLock<Ledger>,
    memory: Memory,
}

/// When a write transaction's commit answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// After the disk has it.
    Durable,
    /// After the write-ahead log has it.
    Quick,
}

/// A write transaction, with the pen. Dropped without [`Writing::commit`],
/// nothing of it stays.
pub(crate) struct Writing<'a> {
    // Declared first: rolled back before the pen passes on.
    transaction: Transaction,
    store: &'a Store,
    how: Commit,
    /// Rows that decide something, to be sealed at the commit.
    changed: Vec<RowName>,
    /// Node, number and hash of the last audit row in it.
    audit_end: Option<(String, u64, Vec<u8>)>,
    /// A sealed secret is written in it.
    secrets: bool,
    _pen: MutexGuard<'a, ()>,
}

/// One statement that is its own transaction, with the pen: for rows no ledger
/// entry goes with, on the path of every call. Each statement is a trip to the
/// database's thread, and `BEGIN` and `COMMIT` are two more.
pub(crate) struct Alone<'a> {
    connection: Line,
    well: bool,
    store: &'a Store,
    _pen: MutexGuard<'a, ()>,
}

impl Alone<'_> {
    /// Where the statement goes.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    /// It was done. Without this word its connection is not used again.
    pub(crate) fn done(mut self) {
        self.well = true;
        self.store.committed();
    }

    /// It was done, and brought a node's audit to here.
    pub(crate) fn audited(self, node: &str, sequence: u64, hash: &[u8]) -> Result<(), StoreFault> {
        self.store.ledger()?.audited(node, sequence, hash);
        self.done();
        Ok(())
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if !self.well {
            self.connection.spoil();
        }
    }
}

/// What a read answers, and what it rests on.
pub(crate) type Seen<T> = Result<(T, Vec<Claim>), StoreFault>;

impl Store {
    /// Opens the database file, making it (mode 0600) and its directory (mode
    /// 0700) if they are not there, brings its schema up to date and compares
    /// every row that decides something with the ledger, whose key this is.
    pub async fn open(path: impl AsRef<Path>, key: MacKey) -> Result<Self, StoreError> {
        Self::open_as(path.as_ref(), key, Place::File).await
    }

    /// Opens a database that came out of a backup and has no head yet.
    pub async fn adopt(path: impl AsRef<Path>, key: MacKey) -> Result<Self, StoreError> {
        Self::open_as(path.as_ref(), key, Place::Restored).await
    }

    async fn open_as(path: &Path, key: MacKey, place: Place) -> Result<Self, StoreError> {
        make_file(path).await?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .pragma("wal_autocheckpoint", checkpoint::AT_LAST);
        let one = |synchronous| Pool::new(1, options.clone().synchronous(synchronous));
        let readers = options.clone().pragma("query_only", "1");
        let store = Self::of(Inner {
            pen: Mutex::new(()),
            durable: one(SqliteSynchronous::Full),
            quick: one(SqliteSynchronous::Normal),
            readers: Pool::new(READERS, readers),
            checkpoints: Some(Checkpoints::start(one(SqliteSynchronous::Normal))),
            path: Some(path.to_owned()),
            ledger: OnceLock::new(),
            memory: Memory::default(),
        });
        store.prepare(path, key, place).await?;
        Ok(store)
    }

    /// A store that is gone when it is dropped, on a single connection.
    pub async fn in_memory() -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(true);
        let only = Pool::in_memory(options);
        let store = Self::of(Inner {
            pen: Mutex::new(()),
            durable: only.clone(),
            quick: only.clone(),
            readers: only,
            checkpoints: None,
            path: None,
            ledger: OnceLock::new(),
            memory: Memory::default(),
        });
        // Nobody else can write it: its ledger needs nobody's key.
        store.prepare(&PathBuf::from(":memory:"), MacKey::new([0; 32]), Place::Memory).await?;
        Ok(store)
    }

    /// Writes a consistent copy of the database into a new file of mode 0600,
    /// while others read and write.
    pub async fn snapshot(&self, to: &Path) -> Result<(), StoreFault> {
        let path = self.inner.path.as_ref();
        let path = path.ok_or_else(|| StoreFault::Unavailable("it is in memory".into()))?;
        let mut file = tokio::fs::OpenOptions::new();
        // SQLite fills an empty file that is there, and leaves its mode alone.
        let made = file.write(true).create_new(true).mode(0o600).open(to).await;
        made.map_err(|error| StoreFault::Unavailable(format!("{}: {error}", to.display())))?;
        // A connection of its own: the pool's readers may not write anywhere.
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY);
        let mut on = options.connect().await.map_err(fault)?;
        let copied = sqlx::query("VACUUM INTO $1").bind(to.to_string_lossy()).execute(&mut on);
        let copied = copied.await.map_err(fault);
        on.close().await.map_err(fault)?;
        copied.map(drop)
    }

    /// Waits for what is under way, then closes the file. Every call after it
    /// is refused.
    pub async fn close(&self) {
        let _pen = self.inner.pen.lock().await;
        if let Some(checkpoints) = &self.inner.checkpoints {
            checkpoints.stop().await;
        }
        self.inner.readers.close().await;
        self.inner.quick.close().await;
        self.inner.durable.close().await;
    }

    fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    async fn prepare(&self, path: &Path, key: MacKey, place: Place) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| StoreError::opening(path, &error);
        let mut writer = self.inner.durable.acquire().await.map_err(failed)?;
        let size = tokio::fs::metadata(path).await.map_or(0, |file| file.len());
        if (1..=CHECKED_BYTES).contains(&size) {
            let said: String = sqlx::query_scalar("PRAGMA quick_check(1)")
                .fetch_one(&mut *writer)
                .await
                .map_err(failed)?;
            if said != "ok" {
                return Err(StoreError::Corrupt { path: path.to_owned(), reason: said });
            }
        }
        schema::apply(&mut writer, path).await?;
        schema::compare(&mut writer, path).await?;
        // Under the lock: of two that open a new file, one begins the ledger.
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await.map_err(failed)?;
        let ledger = Ledger::open(&mut writer, key, place, path).await;
        let end = if ledger.is_ok() { "COMMIT" } else { "ROLLBACK" };
        sqlx::query(end).execute(&mut *writer).await.map_err(failed)?;
        let ledger = ledger.map_err(|broken| StoreError::broken(path, broken))?;
        ledger.write_head();
        let _ = self.inner.ledger.set(ledger);
        Ok(())
    }

    /// What every row that decides something must be.
    pub(crate) fn ledger(&self) -> Result<&Ledger, StoreFault> {
        let late = || StoreFault::Unavailable("the database is not open yet".into());
        self.inner.ledger.get().ok_or_else(late)
    }

    /// Reads until what the ledger says and what was read are of one moment;
    /// what still differs then was changed by somebody else.
    pub(crate) async fn believed<'a, T>(
        &'a self,
        read: impl Fn() -> BoxFuture<'a, Seen<T>> + Send + Sync,
    ) -> Result<T, StoreFault> {
        self.borne_out(read).await.map(|(value, _)| value)
    }

    /// The same for what every call asks: an answer is given again as long as
    /// the ledger bears out what it rests on.
    pub(crate) async fn remembered<'a, T: Clone + Send + Sync + 'static>(
        &'a self,
        question: Question,
        read: impl Fn() -> BoxFuture<'a, Seen<T>> + Send + Sync,
    ) -> Result<T, StoreFault> {
        let memory = self.memory();
        if let Some(answer) = memory.recall(&question, self.ledger()?) {
            return Ok(answer);
        }
        let (answer, claims) = self.borne_out(read).await?;
        memory.keep(question, &answer, claims);
        Ok(answer)
    }

    async fn borne_out<'a, T>(
        &'a self,
        read: impl Fn() -> BoxFuture<'a, Seen<T>> + Send + Sync,
    ) -> Seen<T> {
        let ledger = self.ledger()?;
        let mut known = None;
        loop {
            let (value, claims) = read().await?;
            let Some(odd) = ledger.odd(&claims) else { return Ok((value, claims)) };
            let mut writing = self.write(Commit::Quick).await?;
            writing.catch_up().await?;
            drop(writing);
            if known == Some(ledger.end()) {
                tracing::error!(odd, "the database was changed by somebody else");
                let text = format!("the database was changed by somebody else: {odd}");
                return Err(StoreFault::Corrupt(text));
            }
            known = Some(ledger.end());
        }
    }

    /// The pen for one statement, whose commit waits for the log only.
    pub(crate) async fn alone(&self) -> Result<Alone<'_>, StoreFault> {
        let pen = self.pen().await?;
        let connection = self.inner.quick.acquire().await.map_err(fault)?;
        Ok(Alone { connection, well: false, store: self, _pen: pen })
    }

    async fn pen(&self) -> Result<MutexGuard<'_, ()>, StoreFault> {
        let late = |_| StoreFault::Unavailable("the writers before this one took too long".into());
        tokio::time::timeout(TURN, self.inner.pen.lock()).await.map_err(late)
    }

    /// Begins a write transaction once the pen is free.
    pub(crate) async fn write(&self, commit: Commit) -> Result<Writing<'_>, StoreFault> {
        let pen = self.pen().await?;
        let pool = match commit {
            Commit::Durable => &self.inner.durable,
            Commit::Quick => &self.inner.quick,
        };
        let line = pool.acquire().await.map_err(fault)?;
        let transaction = Transaction::begin(line).await.map_err(fault)?;
        Ok(Writing {
            transaction,
            store: self,
            how: commit,
            changed: Vec::new(),
            audit_end: None,
            secrets: false,
            _pen: pen,
        })
    }

    fn committed(&self) {
        if let Some(checkpoints) = &self.inner.checkpoints {
            checkpoints.count();
        }
    }

    /// What is kept of earlier answers.
    pub(crate) fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// A connection that reads.
    pub(crate) async fn read(&self) -> Result<Line, StoreFault> {
        self.inner.readers.acquire().await.map_err(fault)
    }
}

impl Writing<'_> {
    /// The connection the transaction runs on.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        self.transaction.on()
    }

    /// A row that decides something was written in this transaction.
    pub(crate) fn changed(&mut self, row: RowName) {
        if !self.changed.contains(&row) {
            self.changed.push(row);
        }
    }

    /// A sealed secret was written in this transaction.
    pub(crate) fn changes_secrets(&mut self) {
        self.secrets = true;
    }

    /// The transaction brings a node's audit to here.
    pub(crate) fn audits_to(&mut self, node: &str, sequence: u64, hash: &[u8]) {
        self.audit_end = Some((node.to_owned(), sequence, hash.to_vec()));
    }

    /// Refuses unless the ledger, as this transaction sees it, bears all out.
    pub(crate) async fn believe(&mut self, claims: &[Claim]) -> Result<(), StoreFault> {
        self.catch_up().await?;
        match self.store.ledger()?.odd(claims) {
            None => Ok(()),
            Some(odd) => {
                tracing::error!(odd, "the database was changed by somebody else");
                let text = format!("the database was changed by somebody else: {odd}");
                Err(StoreFault::Corrupt(text))
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreFault> {
        let ledger = self.store.ledger()?;
        Ok(ledger.catch_up(self.transaction.on(), None).await?)
    }

    /// Makes it stay, sealed.
    pub(crate) async fn commit(mut self) -> Result<(), StoreFault> {
        let ledger = self.store.ledger()?;
        let entries = if self.changed.is_empty() {
            Vec::new()
        } else {
            ledger.append(self.transaction.on(), &self.changed).await?
        };
        let secrets = self.secrets.then(|| self.store.memory().commit_secrets());
        self.transaction.commit().await.map_err(fault)?;
        self.store.committed();
        if let Some(secrets) = secrets {
            secrets.done();
        }
        // Before the pen passes on, so that the next writer finds it counted.
        ledger.stored(entries);
        if let Some((node, sequence, hash)) = &self.audit_end {
            ledger.audited(node, *sequence, hash);
        }
        if self.how == Commit::Durable {
            ledger.write_head();
        }
        Ok(())
    }
}

async fn make_file(path: &Path) -> Result<(), StoreError> {
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| StoreError::Unwritable { path, reason: error.to_string() }
    };
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let mut builder = tokio::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory).await.map_err(unwritable(directory))?;
    }
    // SQLite gives its journal files the mode of the database, so the mode is
    // right from the first byte on.
    let mut file = tokio::fs::OpenOptions::new();
    file.read(true).write(true).create(true).truncate(false).mode(0o600);
    file.open(path).await.map_err(unwritable(path))?;
    Ok(())
}
