//! One run's permission to reach one vendor. A session never outlives its
//! run: closing it refuses everything after, and drops what is held. The steps
//! of a request are in `session/`: `send` prepares, `hold` asks a person,
//! `carry` takes it to the vendor and back,
//! `follow` goes after a download, `trail` writes down what happened,
//! `budget` counts, `veil` searches what the run itself gives out.

mod budget;
mod carry;
mod follow;
mod hold;
mod send;
mod trail;
mod veil;

use crate::approval::About;
use crate::proxy::{Line, Shared};
use crate::scrub::Redactor;
use crate::{
    AgentId, CallSite, Connection, ContentHash, Desk, Grant, Hints, OutboundRequest, PersonId,
    Preview, Refusal, Reply, RunId,
};
use budget::Budget;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Everything a session is opened with.
#[derive(Debug)]
pub struct SessionSpec {
    /// The run it belongs to.
    pub run: RunId,
    /// Whose toolbox.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// The pinned version.
    pub version: ContentHash,
    /// The connection, read in one piece at admission.
    pub connection: Connection,
    /// What the version is recorded to call.
    pub sites: Vec<CallSite>,
    /// Its hints.
    pub hints: Hints,
    /// What it may do.
    pub grant: Grant,
}

/// One request of a run, for the person, the dry-run report and the timings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Method as asked.
    pub method: String,
    /// Host, empty when none was reached.
    pub host: String,
    /// Path as on the wire.
    pub path: String,
    /// Vendor status.
    pub status: Option<u16>,
    /// The preview of a stopped request.
    pub preview: Option<Preview>,
    /// Why it was refused.
    pub refusal: Option<Refusal>,
    /// Headers the module set that do not pass, without those that are ours to
    /// set on every request.
    pub dropped: Vec<String>,
    /// Microseconds with the vendor.
    pub vendor_us: u64,
    /// Microseconds in the proxy, hold time excluded.
    pub proxy_us: u64,
    /// Microseconds held for a person.
    pub held_us: u64,
}

/// What a session did, read at any time.
#[derive(Debug, Clone, Default)]
pub struct SessionReport {
    /// In the order they were asked.
    pub exchanges: Vec<Exchange>,
    /// The refusal that ends the run, if one did.
    pub fatal: Option<Refusal>,
    /// The ask a write is parked under, one that shows it before any other.
    pub parked: Option<crate::Parked>,
}

pub use veil::Veil;

/// One run's way out.
pub struct Session {
    inner: Arc<Inner>,
}

/// What the tasks of a session share. It holds no session, so a task never
/// keeps one open.
struct Inner {
    shared: Arc<Shared>,
    spec: SessionSpec,
    desk: Arc<dyn Desk>,
    line: Arc<Line>,
    budget: Budget,
    report: Mutex<SessionReport>,
    /// Hides whatever any of its requests was sent with.
    known: Mutex<Redactor>,
    /// How many requests wait for a person; locked while `waiting` changes.
    held: Mutex<usize>,
    waiting: watch::Sender<bool>,
    /// Cancelled when the session closes or the proxy stops.
    stop: CancellationToken,
    /// Cancelled when a refusal has ended the run.
    ended: CancellationToken,
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        spec: SessionSpec,
        desk: Arc<dyn Desk>,
        line: Arc<Line>,
        requests: usize,
    ) -> Arc<Self> {
        let limits = &shared.parts.limits;
        let inner = Inner {
            budget: Budget::new(limits, requests),
            stop: shared.tasks.stop.child_token(),
            ended: CancellationToken::new(),
            report: Mutex::default(),
            known: Mutex::new(Redactor::none()),
            held: Mutex::new(0),
            waiting: watch::Sender::new(false),
            shared,
            spec,
            desk,
            line,
        };
        Arc::new(Self { inner: Arc::new(inner) })
    }

    /// Decides, signs, sends, scrubs and records one request. Dropping the
    /// future gives the request up; a write that was under way is then
    /// recorded as `outcome_unknown`.
    pub async fn send(&self, request: OutboundRequest) -> Result<Reply, Refusal> {
        send::send(&self.inner, request).await
    }

    /// Resolves when a refusal has ended the run (a method beyond its hints, a
    /// denied or parked write, a revoked connection, an audit that cannot
    /// record a write). The engine then stops the sandbox.
    pub async fn ended(&self) {
        self.inner.ended.cancelled().await;
    }

    /// True while a request is held for a person: the run's clock is stopped.
    pub fn holding(&self) -> watch::Receiver<bool> {
        self.inner.waiting.subscribe()
    }

    /// Refuses everything after, drops what is held, aborts what is under way.
    pub fn close(&self) {
        self.inner.stop.cancel();
    }

    /// Hides what its requests so far were sent with in what leaves the run.
    pub fn veil(&self) -> Veil {
        Veil::new(self.inner.known().clone())
    }

    /// What it did so far.
    pub fn report(&self) -> SessionReport {
        self.inner.report().clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("run", &self.inner.spec.run).finish_non_exhaustive()
    }
}

impl Inner {
    fn report(&self) -> MutexGuard<'_, SessionReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Redactor> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a request is sent with until the run's answer is made.
    fn learns(&self, redactor: &Redactor) {
        let mut known = self.known();
        let all = known.and(redactor);
        *known = all;
    }

    fn held(&self) -> MutexGuard<'_, usize> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a decision must be about to count here.
    fn about(&self) -> About<'_> {
        About {
            person: &self.spec.person,
            agent: &self.spec.agent,
            tool: &self.spec.tool,
            version: &self.spec.version,
            connection: &self.spec.connection.id,
            generation: self.spec.connection.generation,
        }
    }

    /// Counts a request as waiting for a person until the guard is dropped.
    fn hold_clock(self: &Arc<Self>) -> HoldGuard {
        let mut held = self.held();
        *held += 1;
        self.waiting.send_replace(true);
        drop(held);
        HoldGuard { inner: self.clone() }
    }
}

struct HoldGuard {
    inner: Arc<Inner>,
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let mut held = self.inner.held();
        *held -= 1;
        self.inner.waiting.send_replace(*held > 0);
    }
}
