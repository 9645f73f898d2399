//! How much one run may ask for: requests in all, and at the same time.

use crate::{Limits, Refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a run has left.
pub(super) struct Budget {
    asked: AtomicUsize,
    most: usize,
    slots: Arc<Semaphore>,
    concurrent: usize,
    patience: Duration,
}

impl Budget {
    pub(super) fn new(limits: &Limits, most: usize) -> Self {
        Self {
            asked: AtomicUsize::new(0),
            most,
            slots: Arc::new(Semaphore::new(limits.concurrent)),
            concurrent: limits.concurrent,
            patience: limits.exchange,
        }
    }

    /// Counts a request; answers its number, from 1.
    pub(super) fn number(&self) -> u32 {
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        u32::try_from(before.saturating_add(1)).unwrap_or(u32::MAX)
    }

    /// Requests it may make in all.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether the request of that number is still allowed.
    pub(super) fn allows(&self, number: u32) -> Result<(), Refusal> {
        if usize::try_from(number).is_ok_and(|number| number <= self.most) {
            return Ok(());
        }
        Err(Refusal::RunRequestCap(format!("a run may make {} requests", self.most)))
    }

    /// A place among the requests under way, kept until its body ends. A run
    /// that never reads its replies waits for itself, so the wait has an end.
    pub(super) async fn slot(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        match tokio::time::timeout(self.patience, self.slots.clone().acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Refusal::RunRequestCap(format!(
                "{} requests are under way and none of their replies was read to its end",
                self.concurrent
            ))),
        }
    }
}
