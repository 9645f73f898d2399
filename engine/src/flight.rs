//! Which agents have a run in flight, and how many may. A [`RunGuard`] is the
//! flight: from its making to its drop the rule leaves its agent alone. The
//! gate keeps a sweep of one agent and the beginning of a run apart.

use crate::EngineError;
use cambium_proxy::AgentId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{RwLock, RwLockWriteGuard};
use tokio_util::sync::CancellationToken;

/// Runs of one agent at the same time: a harness calls a few tools in parallel.
pub(crate) const RUNS_PER_AGENT: usize = 8;
/// Runs of this node at work at the same time: each is a process with its own
/// heap. One that waits for a person does not count here, or a few unanswered
/// questions would keep every other agent out; how many may wait is bounded by
/// `waiting.rs`.
pub(crate) const RUNS_PER_NODE: usize = 32;

/// The runs of this node.
#[derive(Default)]
pub(crate) struct Flights {
    counts: Mutex<Counts>,
    gate: RwLock<()>,
}

#[derive(Default)]
struct Counts {
    by_agent: HashMap<AgentId, Flight>,
    all: usize,
    /// Of these, those that wait for a person.
    waiting: usize,
    draining: bool,
}

/// A run that waits for a person, from its making to its drop.
pub(crate) struct WaitGuard {
    flights: Arc<Flights>,
}

/// The runs of one agent.
#[derive(Default)]
struct Flight {
    runs: usize,
    /// Ends those that began before it was fired.
    stop: CancellationToken,
}

/// One run in flight.
pub(crate) struct RunGuard {
    flights: Arc<Flights>,
    agent: AgentId,
    stop: CancellationToken,
}

impl RunGuard {
    /// Whose.
    pub(crate) fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Fires when the agent is stopped.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }
}

impl Flights {
    /// Begins a run, unless there are too many or the node drains.
    pub(crate) async fn begin(self: &Arc<Self>, agent: &AgentId) -> Result<RunGuard, EngineError> {
        let _open = self.gate.read().await;
        let mut counts = self.counts();
        let mine = counts.by_agent.get(agent).map_or(0, |flight| flight.runs);
        if counts.draining || mine >= RUNS_PER_AGENT || counts.at_work() >= RUNS_PER_NODE {
            return Err(EngineError::Busy);
        }
        let flight = counts.by_agent.entry(agent.clone()).or_default();
        flight.runs += 1;
        let stop = flight.stop.clone();
        counts.all += 1;
        Ok(RunGuard { flights: self.clone(), agent: agent.clone(), stop })
    }

    /// Counts a run as waiting for a person.
    pub(crate) fn wait(self: &Arc<Self>) -> WaitGuard {
        self.counts().waiting += 1;
        WaitGuard { flights: self.clone() }
    }

    /// Ends every run of the agent that has begun.
    pub(crate) fn stop(&self, agent: &AgentId) {
        if let Some(flight) = self.counts().by_agent.get_mut(agent) {
            // Those that begin later are not meant.
            std::mem::take(&mut flight.stop).cancel();
        }
    }

    /// Holds every beginning back while it lives.
    pub(crate) async fn hold_back(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().await
    }

    /// Whether the agent has a run in flight on this node.
    pub(crate) fn has(&self, agent: &AgentId) -> bool {
        self.counts().by_agent.contains_key(agent)
    }

    /// Begins no run any more; how many there are.
    pub(crate) fn drain(&self) -> usize {
        let mut counts = self.counts();
        counts.draining = true;
        counts.all
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn at_work(&self) -> usize {
        self.all.saturating_sub(self.waiting)
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let mut counts = self.flights.counts();
        counts.waiting = counts.waiting.saturating_sub(1);
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut counts = self.flights.counts();
        counts.all = counts.all.saturating_sub(1);
        let Some(flight) = counts.by_agent.get_mut(&self.agent) else { return };
        flight.runs = flight.runs.saturating_sub(1);
        if flight.runs == 0 {
            counts.by_agent.remove(&self.agent);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b035_a_run_is_in_flight_until_its_guard_drops() {
        let flights = Arc::new(Flights::default());
        let agent = AgentId::new("a");
        let first = flights.begin(&agent).await.unwrap();
        let second = flights.begin(&agent).await.unwrap();
        drop(first);
        assert!(flights.has(&agent));
        drop(second);
        assert!(!flights.has(&agent));
    }

    #[tokio::test]
    async fn runs_that_wait_for_a_person_keep_nobody_out() {
        let flights = Arc::new(Flights::default());
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for number in 0..RUNS_PER_NODE {
            let agent = AgentId::new(format!("agent-{}", number / RUNS_PER_AGENT));
            held.push(flights.begin(&agent).await.unwrap());
        }
        let next = AgentId::new("next");
        assert_eq!(flights.begin(&next).await.err(), Some(EngineError::Busy));
        waiting.push(flights.wait());
        let _next = flights.begin(&next).await.unwrap();
        assert_eq!(flights.begin(&next).await.err(), Some(EngineError::Busy));
        waiting.clear();
        held.truncate(RUNS_PER_NODE - 2);
        assert!(flights.begin(&next).await.is_ok());
    }

    #[tokio::test]
    async fn one_agent_cannot_take_every_run() {
        let flights = Arc::new(Flights::default());
        let mut held = Vec::new();
        for _ in 0..RUNS_PER_AGENT {
            held.push(flights.begin(&AgentId::new("greedy")).await.unwrap());
        }
        assert_eq!(flights.begin(&AgentId::new("greedy")).await.err(), Some(EngineError::Busy));
        assert!(flights.begin(&AgentId::new("other")).await.is_ok());
        held.pop();
        assert!(flights.begin(&AgentId::new("greedy")).await.is_ok());
        flights.drain();
        assert_eq!(flights.begin(&AgentId::new("other")).await.err(), Some(EngineError::Busy));
    }
}
