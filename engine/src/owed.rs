//! Ends of runs the store could not take at the time. An unrecorded end would
//! keep its agent's set from being swept until the next start, so each is
//! offered again at every sweep.

use crate::changes::{Herald, Topic};
use crate::port::{RunEnd, Store};
use std::sync::{Mutex, PoisonError};

/// Ends kept; what is beyond is ended as lost at the next start.
const KEPT: usize = 1_000;

/// Ends that are owed.
pub(crate) struct Owed {
    herald: Herald,
    ends: Mutex<Vec<RunEnd>>,
}

impl Owed {
    pub(crate) fn new(herald: Herald) -> Self {
        Self { herald, ends: Mutex::default() }
    }

    /// Records an end now, or later.
    pub(crate) async fn record(&self, store: &dyn Store, end: RunEnd) {
        if let Err(fault) = store.end_run(&end).await {
            tracing::error!(%fault, run = %end.id, "the end of a run could not be stored yet");
            let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            if ends.len() < KEPT {
                ends.push(end);
            }
            return;
        }
        self.herald.changed(Topic::Runs);
    }

    /// Offers what is owed again.
    pub(crate) async fn pay(&self, store: &dyn Store) {
        let owed = std::mem::take(&mut *self.ends.lock().unwrap_or_else(PoisonError::into_inner));
        for end in owed {
            self.record(store, end).await;
        }
    }
}
