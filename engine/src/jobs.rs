//! Detached runs, so that they can be collected: each has a place here from
//! its beginning until some time after its end. Their results also outlive the
//! answer in the store, if they were cut.

use crate::{Envelope, Status};
use cambium_proxy::{AgentId, RunId};
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Ended runs kept for collection, and answers kept for calls that come again,
/// over all agents.
const KEPT: usize = 256;

/// Ended runs of one agent kept for collection.
const KEPT_EACH: usize = 32;

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
    /// Takes a place. The oldest of the agent's that has ended makes room; where
    /// all agents together have too many, one of the agent that has the most.
    pub(crate) fn add(
        &self,
        run: RunId,
        agent: AgentId,
        begun_ms: i64,
        cancel: CancellationToken,
    ) -> watch::Sender<Option<Arc<Envelope>>> {
        let (done, answer) = watch::channel(None);
        let mut places = locked(&self.places);
        if let Some(oldest) = giving_way(&places, &agent) {
            places.remove(oldest);
        }
        places.push_back(JobPlace { run, agent, begun_ms, cancel, answer });
        done
    }

    /// Gives up the place of a run whose end its caller was told.
    pub(crate) fn forget(&self, run: &RunId) {
        locked(&self.places).retain(|place| place.run != *run);
    }

    /// The place of this agent's run.
    pub(crate) fn of(&self, agent: &AgentId, run: &RunId) -> Option<JobPlace> {
        locked(&self.places)
            .iter()
            .find(|place| place.run == *run && place.agent == *agent)
            .cloned()
    }
}

/// Which place is taken away for one more of this agent.
fn giving_way(places: &VecDeque<JobPlace>, agent: &AgentId) -> Option<usize> {
    let mut ended: HashMap<&AgentId, Vec<usize>> = HashMap::new();
    for (position, place) in places.iter().enumerate().filter(|(_, place)| place.ended()) {
        ended.entry(&place.agent).or_default().push(position);
    }
    let own = ended.get(agent).filter(|own| own.len() >= KEPT_EACH);
    let fullest = match own {
        None if places.len() >= KEPT => {
            ended.values().max_by_key(|ended| (ended.len(), Reverse(ended.first().copied())))
        }
        own => own,
    };
    fullest?.first().copied()
}

impl JobPlace {
    /// Answered, or its task is gone without an answer.
    fn ended(&self) -> bool {
        self.answer.borrow().is_some() || self.answer.has_changed().is_err()
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

#[cfg(test)]
mod tests {
    use super::*;

    type Done = watch::Sender<Option<Arc<Envelope>>>;

    fn agent(name: &str) -> AgentId {
        AgentId::new(name)
    }

    fn begin(jobs: &Jobs, of: &str, run: &str) -> Done {
        jobs.add(RunId::new(run), agent(of), 0, CancellationToken::new())
    }

    fn end(done: &Done) {
        done.send_replace(Some(Arc::new(Envelope::of(Status::Ok))));
    }

    fn has(jobs: &Jobs, of: &str, run: &str) -> bool {
        jobs.of(&agent(of), &RunId::new(run)).is_some()
    }

    #[test]
    fn an_agent_displaces_its_own_ended_runs_and_nobody_elses() {
        let jobs = Jobs::default();
        end(&begin(&jobs, "quiet", "kept"));
        let running = begin(&jobs, "loud", "running");
        for number in 0..2 * KEPT {
            end(&begin(&jobs, "loud", &number.to_string()));
        }
        assert!(has(&jobs, "quiet", "kept"));
        assert!(has(&jobs, "loud", "running"), "what runs has its place");
        assert_eq!(locked(&jobs.places).len(), 2 + KEPT_EACH);
        assert!(!has(&jobs, "loud", "0"));
        assert!(has(&jobs, "loud", &(2 * KEPT - 1).to_string()));
        drop(running);
    }

    #[test]
    fn all_agents_together_keep_so_many_and_the_fullest_gives_way() {
        let jobs = Jobs::default();
        end(&begin(&jobs, "quiet", "kept"));
        for number in 0..2 * KEPT {
            end(&begin(&jobs, &format!("agent{}", number % 20), &number.to_string()));
        }
        assert_eq!(locked(&jobs.places).len(), KEPT);
        assert!(has(&jobs, "quiet", "kept"));
    }

    #[test]
    fn a_run_whose_task_is_gone_makes_room_and_a_told_one_is_forgotten() {
        let jobs = Jobs::default();
        drop(begin(&jobs, "one", "panicked"));
        for number in 0..KEPT_EACH {
            end(&begin(&jobs, "one", &number.to_string()));
        }
        assert!(!has(&jobs, "one", "panicked"));
        jobs.forget(&RunId::new("0"));
        assert!(!has(&jobs, "one", "0") && has(&jobs, "one", "1"));
    }
}
