//! One run's permission to reach one vendor. A session never outlives its
//! run: closing it refuses everything after, and drops what is held.

use crate::{
    AgentId, CallSite, Connection, ContentHash, Grant, Hints, OutboundRequest, PersonId, Preview,
    Refusal, Reply, RunId,
};

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
    /// The ask a write is parked under: id and expiry in milliseconds UTC.
    pub parked: Option<(crate::AskId, i64)>,
}

/// One run's way out.
#[derive(Debug)]
pub struct Session {
    spec: SessionSpec,
}

impl Session {
    /// Decides, signs, sends, scrubs and records one request.
    pub async fn send(&self, request: OutboundRequest) -> Result<Reply, Refusal> {
        let _ = (&self.spec, request);
        Err(Refusal::RunClosed("the run has ended".into()))
    }

    /// Resolves when a refusal has ended the run (a method beyond its hints, a
    /// denied or parked write). The engine then stops the sandbox.
    pub async fn ended(&self) {
        std::future::pending().await
    }

    /// True while a request is held for a person: the run's clock is stopped.
    pub fn holding(&self) -> tokio::sync::watch::Receiver<bool> {
        tokio::sync::watch::channel(false).1
    }

    /// Refuses everything after, drops what is held, aborts what is under way.
    pub fn close(&self) {}

    /// What it did so far.
    pub fn report(&self) -> SessionReport {
        SessionReport::default()
    }
}
