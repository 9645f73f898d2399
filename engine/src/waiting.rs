//! Held requests of this node, by the ask they wait for. Bounded per agent and
//! for the node; a place leaves when its holder is dropped, so that a run that
//! ends never leaves one behind.

use cambium_proxy::{AgentId, AskId, RunId};
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
    /// A person put the question about this request aside.
    PutAside,
    /// Its own harness was asked and no person answered: wait no longer.
    Unanswered,
    /// Nobody waits any more for the request the ask shows.
    Left,
}

/// How an ask is about a request that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    /// It shows exactly this request.
    Shown,
    /// It shows other bytes of the same version: of its answers, only *from now
    /// on* and a deny are about this request.
    Behind,
    /// It is about another version: only a deny is about this request.
    Apart,
}

/// Who waits, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Waiter {
    /// Which run.
    pub(crate) run: RunId,
    /// Of which agent.
    pub(crate) agent: AgentId,
    /// Whether the ask is about the held request.
    pub(crate) stands: Stands,
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
    pub(crate) fn shown(&self, ask: &AskId, opener: &RunId) -> Option<RunId> {
        let places = self.places();
        let seats = places.by_ask.get(ask)?;
        first_shown(seats, opener).map(|index| seats[index].waiter.run.clone())
    }

    /// What this run waits for, an ask that shows its request before any other.
    pub(crate) fn ask_of(&self, run: &RunId) -> Option<(AskId, Stands)> {
        let places = self.places();
        let mine = places.by_ask.iter().flat_map(|(ask, seats)| {
            let seats = seats.iter().filter(|seat| seat.waiter.run == *run);
            seats.map(move |seat| (ask, seat.waiter.stands))
        });
        let found = mine.min_by_key(|(_, stands)| *stands != Stands::Shown);
        found.map(|(ask, stands)| (ask.clone(), stands))
    }

    /// Whether anyone waits for the request this ask shows.
    pub(crate) fn any_shown(&self, ask: &AskId) -> bool {
        self.places().by_ask.get(ask).is_some_and(|seats| is_shown_to_one(seats))
    }

    /// Wakes all who wait for an ask with what `means` says to each.
    pub(crate) fn wake_all(&self, ask: &AskId, means: impl Fn(&Waiter) -> Verdict) {
        for seat in self.leave(ask) {
            let verdict = means(&seat.waiter);
            let _ = seat.wake.send(verdict);
        }
    }

    /// Wakes those of one agent whose request this ask shows.
    pub(crate) fn wake_shown(&self, ask: &AskId, agent: &AgentId, verdict: Verdict) {
        let mut places = self.places();
        let Some(seats) = places.by_ask.remove(ask) else { return };
        let shown =
            |seat: &Seat| seat.waiter.stands == Stands::Shown && seat.waiter.agent == *agent;
        let (woken, left): (Vec<Seat>, Vec<Seat>) = seats.into_iter().partition(shown);
        for seat in woken {
            let _ = seat.wake.send(verdict);
        }
        for seat in left {
            let _ = seat.wake.send(Verdict::Left);
        }
    }

    /// Wakes all; one of them, whose request was shown, is answered.
    pub(crate) fn wake_one(&self, ask: &AskId, opener: &RunId) {
        let seats = self.leave(ask);
        let answered = first_shown(&seats, opener);
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

fn is_shown_to_one(seats: &[Seat]) -> bool {
    seats.iter().any(|seat| seat.waiter.stands == Stands::Shown)
}

fn first_shown(seats: &[Seat], opener: &RunId) -> Option<usize> {
    let shown = |seat: &Seat| seat.waiter.stands == Stands::Shown;
    seats
        .iter()
        .position(|seat| shown(seat) && seat.waiter.run == *opener)
        .or_else(|| seats.iter().position(shown))
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.waiting.places();
        let Some(seats) = places.by_ask.get_mut(&self.ask) else { return };
        let before = seats.len();
        seats.retain(|seat| seat.number != self.number);
        // The last one the ask was about: who stands behind it need not wait for
        // an answer that nobody waits for.
        if seats.len() < before && !is_shown_to_one(seats) {
            for seat in places.by_ask.remove(&self.ask).unwrap_or_default() {
                let _ = seat.wake.send(Verdict::Left);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn waiter(run: &str, stands: Stands) -> Waiter {
        Waiter { run: RunId::new(run), agent: AgentId::new("a"), stands }
    }

    #[test]
    fn b062_once_answers_only_the_run_whose_request_was_shown() {
        let waiting = Arc::new(Waiting::default());
        let ask = AskId::new("ask");
        let mut other = waiting.take(&ask, waiter("other", Stands::Behind)).unwrap();
        let mut twin = waiting.take(&ask, waiter("twin", Stands::Shown)).unwrap();
        let mut opener = waiting.take(&ask, waiter("opener", Stands::Shown)).unwrap();
        waiting.wake_one(&ask, &RunId::new("opener"));
        assert_eq!(opener.verdict.try_recv(), Ok(Verdict::Answered));
        assert_eq!(twin.verdict.try_recv(), Ok(Verdict::Anew));
        assert_eq!(other.verdict.try_recv(), Ok(Verdict::Anew));
        assert!(!waiting.any_shown(&ask));
    }

    #[test]
    fn who_stands_behind_a_request_is_told_when_the_last_that_waited_with_it_left() {
        let waiting = Arc::new(Waiting::default());
        let ask = AskId::new("ask");
        let opener = waiting.take(&ask, waiter("opener", Stands::Shown)).unwrap();
        let twin = waiting.take(&ask, waiter("twin", Stands::Shown)).unwrap();
        let gone = waiting.take(&ask, waiter("gone", Stands::Behind)).unwrap();
        let mut behind = waiting.take(&ask, waiter("behind", Stands::Behind)).unwrap();
        drop((gone, opener));
        assert!(behind.verdict.try_recv().is_err(), "a twin still waits");
        assert_eq!(waiting.ask_of(&RunId::new("behind")), Some((ask.clone(), Stands::Behind)));
        drop(twin);
        assert_eq!(behind.verdict.try_recv(), Ok(Verdict::Left));
        assert_eq!(waiting.ask_of(&RunId::new("behind")), None);
    }

    #[test]
    fn held_requests_are_bounded_and_leave_with_their_run() {
        let waiting = Arc::new(Waiting::default());
        let ask = AskId::new("ask");
        let take = || waiting.take(&ask, waiter("r", Stands::Shown));
        let mut held: Vec<Place> = (0..HELD_PER_AGENT).map(|_| take().unwrap()).collect();
        assert!(take().is_none());
        held.pop();
        assert!(take().is_some());
        drop(held);
        assert!(!waiting.any_shown(&ask));
    }
}
