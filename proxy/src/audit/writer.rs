//! Writes the audit. One owned task takes events in the order they come, puts
//! what waits into one append (a group commit), chains and MACs each row, and
//! answers every writer only when its row is stored. What it cannot store it
//! says; the session then refuses. A row that nobody waits for goes with the
//! next that somebody does, or after a moment by itself.

use super::{AuditEvent, AuditRow, AuditSink, chain};
use crate::{StoreFault, Vault};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Rows in one append: keeps the transaction short enough for others to write.
const GROUP: usize = 256;

/// Events waiting: four groups. Beyond that the sink is not keeping up, and a
/// request is better refused than queued.
const QUEUE: usize = 4 * GROUP;

/// How long an append may take before the sink counts as failed: longer than a
/// database's own busy wait, shorter than anybody waits for a request.
const APPEND: Duration = Duration::from_secs(10);

/// How long a row that nobody waits for may wait for company.
const MOMENT: Duration = Duration::from_millis(10);

struct Entry {
    /// Absent where somebody only waits for what came before.
    event: Option<AuditEvent>,
    durable: bool,
    /// Nobody waits for it.
    later: bool,
    stored: oneshot::Sender<Result<(), StoreFault>>,
}

/// The way to the writing task.
pub(crate) struct Writer {
    queue: std::sync::Mutex<Option<mpsc::Sender<Entry>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// A row on its way.
pub(crate) struct Ticket(Result<oneshot::Receiver<Result<(), StoreFault>>, StoreFault>);

impl Ticket {
    /// Waits until the row is stored.
    pub(crate) async fn stored(self) -> Result<(), StoreFault> {
        self.0?.await.unwrap_or_else(|_| Err(unavailable("the audit writer has stopped")))
    }
}

impl Writer {
    /// Reads the end of the chain and starts the task.
    pub(crate) async fn start(
        node: String,
        vault: Arc<Vault>,
        sink: Arc<dyn AuditSink>,
    ) -> Result<Self, StoreFault> {
        let mut chain = Chain { node, vault, sink, end: None };
        chain.find_end().await?;
        let (queue, entries) = mpsc::channel(QUEUE);
        let task = tokio::spawn(chain.write(entries));
        Ok(Self {
            queue: std::sync::Mutex::new(Some(queue)),
            task: tokio::sync::Mutex::new(Some(task)),
        })
    }

    /// Queues an event. Rows are stored in the order of these calls.
    pub(crate) fn put(&self, event: AuditEvent, durable: bool) -> Ticket {
        self.queue(Some(event), durable, false)
    }

    /// Waits until everything queued before is stored.
    pub(crate) async fn caught_up(&self) -> Result<(), StoreFault> {
        self.queue(None, false, false).stored().await
    }

    /// Queues an event that may be stored a moment later: what came of a read.
    pub(crate) fn put_later(&self, event: AuditEvent) {
        drop(self.queue(Some(event), false, true));
    }

    fn queue(&self, event: Option<AuditEvent>, durable: bool, later: bool) -> Ticket {
        let (stored, ticket) = oneshot::channel();
        let queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let why = match &*queue {
            None => "the audit writer has stopped",
            Some(queue) => match queue.try_send(Entry { event, durable, later, stored }) {
                Ok(()) => return Ticket(Ok(ticket)),
                Err(_) => "too many audit rows are waiting",
            },
        };
        // Not everybody waits for the answer.
        tracing::error!(why, "an audit row is not stored");
        Ticket(Err(unavailable(why)))
    }

    /// Stores what is queued and stops.
    pub(crate) async fn stop(&self) {
        drop(self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        if let Some(task) = self.task.lock().await.take()
            && task.await.is_err()
        {
            tracing::error!("the audit writer ended badly");
        }
    }
}

fn unavailable(why: &str) -> StoreFault {
    StoreFault::Unavailable(why.to_owned())
}

struct Chain {
    node: String,
    vault: Arc<Vault>,
    sink: Arc<dyn AuditSink>,
    /// Sequence and hash of the last stored row; unknown after a failed append,
    /// since a timeout does not tell whether it was stored.
    end: Option<(u64, Vec<u8>)>,
}

impl Chain {
    async fn write(mut self, mut entries: mpsc::Receiver<Entry>) {
        let mut group = Vec::with_capacity(GROUP);
        while entries.recv_many(&mut group, GROUP).await > 0 {
            let mut moment = pin!(sleep(MOMENT));
            while group.iter().all(|entry| entry.later) && group.len() < GROUP {
                let room = GROUP - group.len();
                tokio::select! {
                    biased;
                    more = entries.recv_many(&mut group, room) => if more == 0 { break },
                    () = &mut moment => break,
                }
            }
            let durable = group.iter().any(|entry| entry.durable);
            let result = self.append(&group, durable).await;
            if let Err(error) = &result {
                tracing::error!(%error, rows = group.len(), "audit rows not stored");
            }
            for entry in group.drain(..) {
                // A writer that went away does not need the answer.
                let _ = entry.stored.send(result.clone());
            }
        }
    }

    async fn append(&mut self, group: &[Entry], durable: bool) -> Result<(), StoreFault> {
        let (mut sequence, mut previous) = self.find_end().await?;
        let mut rows = Vec::with_capacity(group.len());
        for event in group.iter().filter_map(|entry| entry.event.as_ref()) {
            sequence += 1;
            let event = serde_json::to_string(event)
                .map_err(|_| unavailable("an event could not be written as JSON"))?;
            let row = chain::link(&self.vault, &self.node, sequence, previous, event);
            previous = row.hash.clone();
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.end = None;
        match tokio::time::timeout(APPEND, self.sink.append(&rows, durable)).await {
            Ok(Ok(())) => {
                self.end = Some((sequence, previous));
                Ok(())
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(unavailable("the audit sink did not answer in time")),
        }
    }

    /// The end of the chain, read and checked when it is not known.
    async fn find_end(&mut self) -> Result<(u64, Vec<u8>), StoreFault> {
        if let Some(end) = &self.end {
            return Ok(end.clone());
        }
        let last = tokio::time::timeout(APPEND, self.sink.last(&self.node))
            .await
            .map_err(|_| unavailable("the audit sink did not answer in time"))??;
        let end = match last {
            None => (0, vec![0; 32]),
            Some(row) => {
                chain::check(&self.vault, &row).map_err(StoreFault::Corrupt)?;
                let AuditRow { sequence, hash, .. } = row;
                (sequence, hash)
            }
        };
        self.end = Some(end.clone());
        Ok(end)
    }
}
