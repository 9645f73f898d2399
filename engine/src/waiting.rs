//! Held requests of this node, by the ask they wait for. Bounded per agent and
//! for the node; a place leaves when its holder is dropped, so that a run that
//! ends never leaves one behind.

use cambium_proxy::{AgentId, AskId, ContentHash, RunId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Held requests of one agent: each keeps a worker and up to 1 MiB.
pub(crate) const HELD_PER_AGENT: usize = 4;
/// Held requests of this node.
pub(crate) const HELD_PER_NODE: usize = 64;

/// What a decision means to one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answers this request: read it.
    Answered,
    /// It was about another request: be held anew.
    Anew,
}

/// Who waits, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Waiter {
    /// Which run.
    pub(crate) run: RunId,
    /// Of which agent.
    pub(crate) agent: AgentId,
    /// The held request.
    pub(crate) digest: ContentHash,
    /// False while an ask of another version stands in the way: no answer to
    /// that one but a deny is about this request.
    pub(crate) joins: bool,
}

/// All who wait.
#[derive(Default)]
pub(crate) struct Waiting {
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    next: u64,
    by_ask: HashMap<AskId, Vec<Seat>>,
}

struct Seat {
    number: u64,
    waiter: Waiter,
    wake: oneshot::Sender<Verdict>,
}

/// A place among those who wait.
pub(crate) struct Place {
    waiting: Arc<Waiting>,
    ask: AskId,
    number: u64,
    /// Resolves with what the decision means to this request.
    pub(crate) verdict: oneshot::Receiver<Verdict>,
}

impl Waiting {
    /// Takes a place, unless too many wait.
    pub(crate) fn take(self: &Arc<Self>, ask: &AskId, waiter: Waiter) -> Option<Place> {
        let mut places = self.places();
        let all = places.by_ask.values().flatten();
        let mine = all.clone().filter(|seat| seat.waiter.agent == waiter.agent).count();
        if mine >= HELD_PER_AGENT || all.count() >= HELD_PER_NODE {
            return None;
        }
        places.next += 1;
        let number = places.next;
        let (wake, verdict) = oneshot::channel();
        places.by_ask.entry(ask.clone()).or_default().push(Seat { number, waiter, wake });
        Some(Place { waiting: self.clone(), ask: ask.clone(), number, verdict })
    }

    /// A run that waits for this ask with the request it shows, the run that
    /// opened it first.
    pub(crate) fn shown(&self, ask: &AskId, opener: &RunId, digest: ContentHash) -> Option<RunId> {
        let places = self.places();
        let seats = places.by_ask.get(ask)?;
        first_shown(seats, opener, digest).map(|index| seats[index].waiter.run.clone())
    }

    /// What this run waits for.
    pub(crate) fn ask_of(&self, run: &RunId) -> Option<AskId> {
        let places = self.places();
        let waits = |seats: &Vec<Seat>| seats.iter().any(|seat| seat.waiter.run == *run);
        places.by_ask.iter().find(|(_, seats)| waits(seats)).map(|(ask, _)| ask.clone())
    }

    /// Whether anyone waits for this ask.
    pub(crate) fn any(&self, ask: &AskId) -> bool {
        self.places().by_ask.contains_key(ask)
    }

    /// Wakes all who wait for an ask with what `means` says to each.
    pub(crate) fn wake_all(&self, ask: &AskId, means: impl Fn(&Waiter) -> Verdict) {
        for seat in self.leave(ask) {
            let verdict = means(&seat.waiter);
            let _ = seat.wake.send(verdict);
        }
    }

    /// Wakes all; one of them, whose request was shown, is answered.
    pub(crate) fn wake_one(&self, ask: &AskId, opener: &RunId, digest: ContentHash) {
        let seats = self.leave(ask);
        let answered = first_shown(&seats, opener, digest);
        for (index, seat) in seats.into_iter().enumerate() {
            let verdict = if answered == Some(index) { Verdict::Answered } else { Verdict::Anew };
            let _ = seat.wake.send(verdict);
        }
    }

    fn leave(&self, ask: &AskId) -> Vec<Seat> {
        self.places().by_ask.remove(ask).unwrap_or_default()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn first_shown(seats: &[Seat], opener: &RunId, digest: ContentHash) -> Option<usize> {
    let shown = |seat: &Seat| seat.waiter.joins && seat.waiter.digest == digest;
    seats
        .iter()
        .position(|seat| shown(seat) && seat.waiter.run == *opener)
        .or_else(|| seats.iter().position(shown))
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.waiting.places();
        if let Some(seats) = places.by_ask.get_mut(&self.ask) {
            seats.retain(|seat| seat.number != self.number);
            if seats.is_empty() {
                places.by_ask.remove(&self.ask);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn waiter(run: &str, digest: u8) -> Waiter {
        Waiter {
            run: RunId::new(run),
            agent: AgentId::new("a"),
            digest: ContentHash([digest; 32]),
            joins: true,
        }
    }

    #[test]
    fn b062_once_answers_only_the_run_whose_request_was_shown() {
        let waiting = Arc::new(Waiting::default());
        let ask = AskId::new("ask");
        let mut other = waiting.take(&ask, waiter("other", 2)).unwrap();
        let mut twin = waiting.take(&ask, waiter("twin", 1)).unwrap();
        let mut opener = waiting.take(&ask, waiter("opener", 1)).unwrap();
        waiting.wake_one(&ask, &RunId::new("opener"), ContentHash([1; 32]));
        assert_eq!(opener.verdict.try_recv(), Ok(Verdict::Answered));
        assert_eq!(twin.verdict.try_recv(), Ok(Verdict::Anew));
        assert_eq!(other.verdict.try_recv(), Ok(Verdict::Anew));
        assert!(!waiting.any(&ask));
    }

    #[test]
    fn held_requests_are_bounded_and_leave_with_their_run() {
        let waiting = Arc::new(Waiting::default());
        let ask = AskId::new("ask");
        let mut held: Vec<Place> =
            (0..HELD_PER_AGENT).map(|_| waiting.take(&ask, waiter("r", 1)).unwrap()).collect();
        assert!(waiting.take(&ask, waiter("r", 1)).is_none());
        held.pop();
        assert!(waiting.take(&ask, waiter("r", 1)).is_some());
        drop(held);
        assert!(!waiting.any(&ask));
    }
}
