//! Detached runs, so that they can be collected: each has a place here from
//! its beginning until some time after its end. Their results also outlive the
//! answer in the store, if they were cut.

use crate::Envelope;
use cambium_proxy::{AgentId, RunId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Ended runs kept for collection, over all agents.
const KEPT: usize = 256;

/// Where the answer of a detached run will be.
pub(crate) type Collected = watch::Receiver<Option<Arc<Envelope>>>;

/// The detached runs of this node.
#[derive(Default)]
pub(crate) struct Jobs {
    places: Mutex<VecDeque<(RunId, AgentId, Collected)>>,
}

impl Jobs {
    /// Takes a place. The oldest that has ended makes room.
    pub(crate) fn add(&self, run: RunId, agent: AgentId) -> watch::Sender<Option<Arc<Envelope>>> {
        let (done, collected) = watch::channel(None);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= KEPT
            && let Some(oldest) = places.iter().position(|(_, _, c)| c.borrow().is_some())
        {
            places.remove(oldest);
        }
        places.push_back((run, agent, collected));
        done
    }

    /// The place of this agent's run.
    pub(crate) fn of(&self, agent: &AgentId, run: &RunId) -> Option<Collected> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = places.iter().find(|(id, owner, _)| id == run && owner == agent)?;
        Some(mine.2.clone())
    }
}
