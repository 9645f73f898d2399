//! That something changed, by topic, for whoever shows it: counters beside the
//! events. A watcher that is slow misses no topic and holds nothing up, however
//! often something happens meanwhile; what changed it looks up itself.

use crate::{Engine, Event};
use tokio::sync::{broadcast, watch};

/// Events a slow watcher may be behind before it misses some.
const EVENTS_KEPT: usize = 1_024;

/// What can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What waits for a person: asks and proposals.
    Asks,
    /// Agents and their sets, what stands for them, connections, tools.
    Lists,
    /// Runs: one began or ended.
    Runs,
    /// A console session was ended before its time.
    Sessions,
}

const TOPICS: [Topic; 4] = [Topic::Asks, Topic::Lists, Topic::Runs, Topic::Sessions];

/// How often each topic changed since the start.
type Counts = [u64; TOPICS.len()];

/// Tells what happened.
#[derive(Clone)]
pub(crate) struct Herald {
    events: broadcast::Sender<Event>,
    counts: watch::Sender<Counts>,
}

/// What changes from now on.
pub struct Changes {
    counts: watch::Receiver<Counts>,
    seen: Counts,
}

impl Default for Herald {
    fn default() -> Self {
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        Self { events, counts: watch::Sender::new(Counts::default()) }
    }
}

impl Herald {
    /// Tells whoever watches; that nobody does is no error.
    pub(crate) fn send(&self, event: Event) {
        self.changed(match &event {
            Event::AskOpened(_) | Event::AskSettled(_) | Event::Proposed(_) => Topic::Asks,
            Event::ListChanged(_) => Topic::Lists,
        });
        if !matches!(&event, Event::ListChanged(agents) if agents.is_empty()) {
            let _ = self.events.send(event);
        }
    }

    /// Counts a change no event is sent of.
    pub(crate) fn changed(&self, topic: Topic) {
        self.counts.send_modify(|counts| {
            for (count, counted) in counts.iter_mut().zip(TOPICS) {
                *count += u64::from(counted == topic);
            }
        });
    }

    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    fn changes(&self) -> Changes {
        let mut counts = self.counts.subscribe();
        let seen = *counts.borrow_and_update();
        Changes { counts, seen }
    }
}

impl Changes {
    /// Waits for a change and answers the topics that changed since the last
    /// answer, each once; `None` when the engine is gone. Losing the future
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Vec<Topic>> {
        let seen = self.seen;
        let now = *self.counts.wait_for(|now| *now != seen).await.ok()?;
        self.seen = now;
        let changed = TOPICS.into_iter().zip(now.iter().zip(seen));
        Some(changed.filter(|(_, (now, seen))| *now != seen).map(|(topic, _)| topic).collect())
    }
}

impl Engine {
    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.herald.events()
    }

    /// Which topics change from now on.
    pub fn changes(&self) -> Changes {
        self.herald.changes()
    }

    pub(crate) fn send(&self, event: Event) {
        self.herald.send(event);
    }

    pub(crate) fn changed(&self, topic: Topic) {
        self.herald.changed(topic);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_topic_is_told_once_however_often_it_changed() {
        let herald = Herald::default();
        herald.changed(Topic::Asks);
        let mut changes = herald.changes();
        for _ in 0..10_000 {
            herald.changed(Topic::Runs);
            herald.send(Event::list_changed([]));
        }
        assert_eq!(changes.next().await.unwrap(), [Topic::Lists, Topic::Runs]);
        herald.send(Event::Proposed("p".into()));
        assert_eq!(changes.next().await.unwrap(), [Topic::Asks]);
        drop(herald);
        assert_eq!(changes.next().await, None);
    }
}
