//! Connections to the file, handed from one use to the next as they are. The
//! library's own pool asks each one it takes back whether it still lives; for
//! SQLite that is a trip to the connection's thread and back, as long as a small
//! write, and the next user waits for it.

use sqlx::sqlite::{SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{ConnectOptions, Connection, Error, SqlSafeStr, SqliteConnection};
// The library gives this trait no name in its front crate.
use sqlx_core::transaction::TransactionManager;
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
    free: Arc<Semaphore>,
    idle: Mutex<Vec<SqliteConnection>>,
}

/// A connection; it goes back when this is dropped. What an abandoned statement
/// still does is over before the next one begins: a connection has one thread.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Option<SqliteConnection>,
    pool: Arc<Inner>,
    // Last: whoever gets the place finds the connection.
    _place: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(size: u32, options: SqliteConnectOptions) -> Self {
        let free = Arc::new(Semaphore::new(size as usize));
        Self { inner: Arc::new(Inner { size, options, free, idle: Mutex::default() }) }
    }

    /// Waits for a connection that nobody uses.
    pub(crate) async fn acquire(&self) -> Result<Line, Error> {
        let place = tokio::time::timeout(TURN, self.inner.free.clone().acquire_owned()).await;
        let place = place.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)?;
        let idle = self.inner.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.inner.options.connect().await?,
        };
        Ok(Line { connection: Some(connection), pool: self.inner.clone(), _place: place })
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
    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.pool.idle().extend(self.connection.take());
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
        SqliteTransactionManager::begin(&mut line, Some("BEGIN IMMEDIATE".into_sql_str())).await?;
        Ok(Self { line, open: true })
    }

    /// The connection it runs on.
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.line
    }

    pub(crate) async fn commit(mut self) -> Result<(), Error> {
        SqliteTransactionManager::commit(&mut self.line).await?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            SqliteTransactionManager::start_rollback(&mut self.line);
        }
    }
}
