//! The parts of the proxy, joined: admits runs, opens sessions, seals secrets.

use crate::{
    AgentId, ApprovalSource, AuditSink, Clock, Connection, ConnectionSource, ContentHash, Desk,
    Exception, Grant, Hints, Limits, PersonId, Refusal, Resolve, Secret, SecretStore, Session,
    SessionSpec, StoreFault, Vault,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// What a proxy is built from.
pub struct ProxyParts {
    /// Name of this node's audit chain.
    pub node: String,
    /// Opened vault.
    pub vault: Arc<Vault>,
    /// Where audit rows go.
    pub audit: Arc<dyn AuditSink>,
    /// Where decisions are read.
    pub approvals: Arc<dyn ApprovalSource>,
    /// Where connections are read anew before a write.
    pub connections: Arc<dyn ConnectionSource>,
    /// Where sealed secrets are.
    pub secrets: Arc<dyn SecretStore>,
    /// Where addresses of hosts come from; `SystemResolver` unless a test injects answers.
    pub resolver: Arc<dyn Resolve>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Limits of every session.
    pub limits: Limits,
    /// Our own listeners, never dialled.
    pub own_addresses: Vec<SocketAddr>,
}

/// What is asked at admission.
#[derive(Debug)]
pub struct Admission<'a> {
    /// Whose toolbox.
    pub person: &'a PersonId,
    /// Which agent.
    pub agent: &'a AgentId,
    /// `<vendor>__<name>`.
    pub tool: &'a str,
    /// The pinned version.
    pub version: &'a ContentHash,
    /// The connection as it stands.
    pub connection: &'a Connection,
    /// The version's hints.
    pub hints: Hints,
    /// Reads go, everything else is previewed.
    pub dry_run: bool,
    /// Each write asks for itself.
    pub each: bool,
}

/// The only way out.
pub struct Proxy {
    parts: ProxyParts,
}

#[allow(clippy::unused_async, clippy::todo, unused_variables)]
impl Proxy {
    /// Joins the parts and starts the audit writer.
    pub async fn start(parts: ProxyParts) -> Result<Arc<Self>, StoreFault> {
        Ok(Arc::new(Self { parts }))
    }

    /// Turns what is stored into a grant. The only place that makes
    /// [`Grant::Write`]. A standing deny is `tool_denied`, dry run or not.
    pub async fn admit(&self, question: Admission<'_>) -> Result<Grant, Refusal> {
        let _ = &self.parts;
        todo!()
    }

    /// Opens the one session of a run. `desk` is asked when a write is held.
    pub fn open(self: &Arc<Self>, spec: SessionSpec, desk: Arc<dyn Desk>) -> Arc<Session> {
        todo!()
    }

    /// Seals a secret for a connection as it stands and stores it.
    pub async fn seal(&self, connection: &Connection, secret: Secret) -> Result<(), Refusal> {
        todo!()
    }

    /// Whether a host may be an entry of a connection: a valid public name, or
    /// one the exceptions allow. The error names the rule.
    pub fn check_host(host: &str, exceptions: &[Exception]) -> Result<(), Refusal> {
        todo!()
    }

    /// Walks the audit chain; answers the number of rows, or the first row that
    /// does not hold and why.
    pub async fn verify_audit(&self) -> Result<u64, (u64, String)> {
        todo!()
    }

    /// Writes what is queued and stops.
    pub async fn stop(&self) {}
}
