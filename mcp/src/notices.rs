//! Tells an agent's open sessions and subscriptions that its list changed, and
//! no other agent's. The engine says which agents; here each listener keeps
//! only its own.

use cambium_engine::{Agent, Event};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Most listeners that may wait to be taken up; a client that opens more
/// without going on is not owed them.
const EARLY_MAX: usize = 8;

/// Receivers made before the answer that lets a client act, so that nothing
/// said in between is missed.
#[derive(Default)]
pub(crate) struct Early(Mutex<VecDeque<Receiver<Event>>>);

impl Early {
    /// Keeps one for the listener that is about to begin.
    pub(crate) fn keep(&self, events: Receiver<Event>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < EARLY_MAX {
            kept.push_back(events);
        }
    }

    /// The oldest kept one.
    pub(crate) fn take(&self) -> Option<Receiver<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Resolves at the next change of this agent's list; `None` when the engine is
/// gone.
pub(crate) async fn next_change(events: &mut Receiver<Event>, agent: &Agent) -> Option<()> {
    loop {
        match events.recv().await {
            Ok(Event::ListChanged(agents)) if agents.contains(&agent.id) => return Some(()),
            Ok(
                Event::ListChanged(_)
                | Event::AskOpened(_)
                | Event::AskSettled(_)
                | Event::Proposed(_),
            ) => {}
            // something was missed: saying too much is harmless, too little is not
            Err(RecvError::Lagged(_)) => return Some(()),
            Err(RecvError::Closed) => return None,
        }
    }
}
