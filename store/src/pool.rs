//! Connections to the file, handed from one use to the next as they are. The
//! library's own pool asks each one it takes back whether it still lives; for
//! SQLite that is a trip to the connection's thread and back, as long as a small
//! write, and the next user waits for it. Instead, one that was in use when
//! something failed is closed, and the next user opens another: after a COMMIT
//! that found the disk full the library takes the transaction for open for good.

use sqlx::sqlite::{SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{ConnectOptions, Connection, Error, SqlSafeStr, SqliteConnection};
// The library gives this trait no name in its front crate.
use sqlx_core::transaction::TransactionManager;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long anybody waits for a connection.
const TURN: Duration = Duration::from_secs(10);

/// So many connections of one kind, opened as they are wanted and kept.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    size: u32,
    options: SqliteConnectOptions,
    /// A database in memory is gone with its only connection.
    only: bool,
    free: Arc<Semaphore>,
    /// The one that came back longest ago first: one that came back just now may
    /// still be at work on what was abandoned.
    idle: Mutex<VecDeque<SqliteConnection>>,
}

/// A connection; it goes back when this is dropped. What an abandoned statement
/// still does is over before the next one begins: a connection has one thread.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Option<SqliteConnection>,
    spoilt: bool,
    pool: Arc<Inner>,
    // Last: whoever gets the place finds the connection.
    _place: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(size: u32, options: SqliteConnectOptions) -> Self {
        Self::of(size, options, false)
    }

    /// The only connection of a database in memory.
    pub(crate) fn in_memory(options: SqliteConnectOptions) -> Self {
        Self::of(1, options, true)
    }

    fn of(size: u32, options: SqliteConnectOptions, only: bool) -> Self {
        let free = Arc::new(Semaphore::new(size as usize));
        Self { inner: Arc::new(Inner { size, options, only, free, idle: Mutex::default() }) }
    }

    /// Waits for a connection that nobody uses.
    pub(crate) async fn acquire(&self) -> Result<Line, Error> {
        let place = tokio::time::timeout(TURN, self.inner.free.clone().acquire_owned()).await;
        let place = place.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)?;
        let idle = self.inner.idle().pop_front();
        let connection = match idle {
            Some(connection) => connection,
            None => self.inner.options.connect().await?,
        };
        Ok(Line {
            connection: Some(connection),
            spoilt: false,
            pool: self.inner.clone(),
            _place: place,
        })
    }

    /// Waits until all are back and closes them; nobody gets one any more.
    pub(crate) async fn close(&self) {
        let all = self.inner.free.acquire_many(self.inner.size).await;
        self.inner.free.close();
        drop(all);
        let idle = std::mem::take(&mut *self.inner.idle());
        for connection in idle {
            if let Err(error) = connection.close().await {
                tracing::warn!(%error, "a connection to the database did not close");
            }
        }
    }
}

impl Inner {
    fn idle(&self) -> MutexGuard<'_, VecDeque<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// It is closed instead of used again.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Another connection in this one's place.
    async fn renew(&mut self) -> Result<(), Error> {
        tracing::warn!("a connection to the database is opened anew");
        self.connection = Some(self.pool.options.connect().await?);
        Ok(())
    }
}

impl Deref for Line {
    type Target = SqliteConnection;

    #[allow(clippy::expect_used)]
    fn deref(&self) -> &SqliteConnection {
        self.connection.as_ref().expect("taken out by `drop` alone")
    }
}

impl DerefMut for Line {
    #[allow(clippy::expect_used)]
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("taken out by `drop` alone")
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let connection = self.connection.take();
        if self.spoilt && !self.pool.only {
            tracing::warn!("a connection to the database is closed after a failure");
        } else {
            self.pool.idle().extend(connection);
        }
    }
}

/// A write transaction. Dropped without [`Self::commit`], it is rolled back
/// before its connection's next statement.
#[derive(Debug)]
pub(crate) struct Transaction {
    line: Line,
    open: bool,
}

impl Transaction {
    pub(crate) async fn begin(mut line: Line) -> Result<Self, Error> {
        match start(&mut line).await {
            // What came before did not end as the library thinks.
            Err(Error::InvalidSavePointStatement | Error::WorkerCrashed) if !line.pool.only => {
                line.renew().await?;
                start(&mut line).await?;
            }
            begun => begun?,
        }
        Ok(Self { line, open: true })
    }

    /// The connection it runs on.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.line
    }

    pub(crate) async fn commit(mut self) -> Result<(), Error> {
        let done = SqliteTransactionManager::commit(&mut self.line).await;
        // What a failed one left is rolled back where its connection is closed.
        self.open = false;
        if done.is_err() {
            self.line.spoil();
        }
        done
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            SqliteTransactionManager::start_rollback(&mut self.line);
        }
    }
}

async fn start(on: &mut SqliteConnection) -> Result<(), Error> {
    SqliteTransactionManager::begin(on, Some("BEGIN IMMEDIATE".into_sql_str())).await
}
