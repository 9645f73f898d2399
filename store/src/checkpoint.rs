//! Moves the write-ahead log into the database beside the writers. SQLite has the
//! commit that finds the log long do it, which then waits for the disk, and
//! everybody behind it. Here a task with a connection of its own does it in time;
//! what it does not get to under load is little, and a writer's at last.

use crate::pool::Pool;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Commits from one checkpoint to the next.
const EVERY: u64 = 400;

/// Pages after which a writer does it itself.
pub(crate) const AT_LAST: &str = "8000";

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The way to the task, which ends with it.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    commits: AtomicU64,
    due: Mutex<Option<mpsc::Sender<()>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Checkpoints {
    /// Starts the task over a connection.
    pub(crate) fn start(over: Pool) -> Self {
        let (due, mut heard) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            while heard.recv().await.is_some() {
                let moved = async {
                    let mut on = over.acquire().await?;
                    sqlx::query(PASSIVE).fetch_one(&mut *on).await.map(drop)
                };
                if let Err(error) = moved.await {
                    tracing::warn!(%error, "the write-ahead log was not moved into the database");
                }
            }
            over.close().await;
        });
        Self {
            commits: AtomicU64::new(0),
            due: Mutex::new(Some(due)),
            task: tokio::sync::Mutex::new(Some(task)),
        }
    }

    /// Something was committed.
    pub(crate) fn count(&self) {
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY)
            && let Some(due) = &*self.due.lock().unwrap_or_else(PoisonError::into_inner)
        {
            // One that is due already is soon enough.
            let _ = due.try_send(());
        }
    }

    /// Waits for what is under way.
    pub(crate) async fn stop(&self) {
        drop(self.due.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(task) = self.task.lock().await.take()
            && task.await.is_err()
        {
            tracing::error!("the task that moves the write-ahead log ended badly");
        }
    }
}
