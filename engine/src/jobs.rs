//! Detached runs, so that they can be collected: each has a place here from
//! its beginning until some time after its end. Their results also outlive the
//! answer in the store, if they were cut.

use crate::{Envelope, Status};
use cambium_proxy::{AgentId, RunId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Ended runs kept for collection, and answers kept for calls that come again,
/// over all agents.
const KEPT: usize = 256;

/// Where the answer of a detached run will be.
pub(crate) type Collected = watch::Receiver<Option<Arc<Envelope>>>;

/// The detached runs of this node.
#[derive(Default)]
pub(crate) struct Jobs {
    places: Mutex<VecDeque<JobPlace>>,
}

/// One detached run.
#[derive(Clone)]
pub(crate) struct JobPlace {
    run: RunId,
    agent: AgentId,
    /// When it began, milliseconds UTC.
    pub(crate) begun_ms: i64,
    /// Ends it.
    pub(crate) cancel: CancellationToken,
    /// Its answer, once there.
    pub(crate) answer: Collected,
}

impl Jobs {
    /// Takes a place. The oldest that has ended makes room.
    pub(crate) fn add(
        &self,
        run: RunId,
        agent: AgentId,
        begun_ms: i64,
        cancel: CancellationToken,
    ) -> watch::Sender<Option<Arc<Envelope>>> {
        let (done, answer) = watch::channel(None);
        let mut places = locked(&self.places);
        if places.len() >= KEPT
            && let Some(oldest) = places.iter().position(|place| place.answer.borrow().is_some())
        {
            places.remove(oldest);
        }
        places.push_back(JobPlace { run, agent, begun_ms, cancel, answer });
        done
    }

    /// The place of this agent's run.
    pub(crate) fn of(&self, agent: &AgentId, run: &RunId) -> Option<JobPlace> {
        locked(&self.places)
            .iter()
            .find(|place| place.run == *run && place.agent == *agent)
            .cloned()
    }
}

type CallOf = (AgentId, String);

/// Calls that carry a name of the client's own, and their answers.
#[derive(Default)]
pub(crate) struct Replays(Arc<Mutex<HashMap<CallOf, Collected>>>);

/// Whether a call is here for the first time.
pub(crate) enum Entered {
    /// It is: its answer goes into this place.
    First(CallPlace),
    /// It was here before: its answer is or will be there.
    Again(Collected),
}

/// The place of a call. Dropped without an answer that lasts, it is gone, and
/// the same call runs anew.
pub(crate) struct CallPlace {
    calls: Arc<Mutex<HashMap<CallOf, Collected>>>,
    call: CallOf,
    answer: watch::Sender<Option<Arc<Envelope>>>,
    lasts: bool,
}

impl Replays {
    /// Looks for the call and takes its place if it is new.
    pub(crate) fn enter(&self, agent: &AgentId, key: &str) -> Entered {
        let call = (agent.clone(), key.to_owned());
        let mut calls = locked(&self.0);
        if let Some(answer) = calls.get(&call) {
            return Entered::Again(answer.clone());
        }
        if calls.len() >= KEPT
            && let Some(old) =
                calls.iter().find(|(_, c)| c.borrow().is_some()).map(|(call, _)| call.clone())
        {
            // What is forgotten here is still known to the store.
            calls.remove(&old);
        }
        let (answer, collected) = watch::channel(None);
        calls.insert(call.clone(), collected);
        Entered::First(CallPlace { calls: self.0.clone(), call, answer, lasts: false })
    }
}

impl CallPlace {
    /// Keeps the answer, unless it says that the same call may be made again.
    pub(crate) fn answered(mut self, envelope: &Envelope) {
        self.lasts =
            envelope.status != Status::AwaitingApproval && envelope.retryable != Some(true);
        self.answer.send_replace(Some(Arc::new(envelope.clone())));
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        if !self.lasts {
            locked(&self.calls).remove(&self.call);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
