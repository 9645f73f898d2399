//! The audit: a row before the wire, a row after it, a row for each refusal,
//! hash-chained. This file holds the shape of a row and the port it goes to;
//! `writer` stores rows, `chain` makes them hold, `verify` walks them,
//! `segment` lets old ones go and `anchor` states how far they have come.

mod anchor;
pub(crate) mod chain;
pub(crate) mod segment;
pub(crate) mod verify;
pub(crate) mod writer;

pub use anchor::Anchor;
pub use segment::AuditSegment;
pub use verify::{AuditBreak, VerifiedChain};

use crate::{AgentId, AskId, BoxFuture, Connection, ConnectionId, ContentHash, RunId, StoreFault};
use serde::{Deserialize, Serialize};

/// What kind of row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// About to send.
    Intent,
    /// What came of an intent.
    Outcome,
    /// Refused; nothing was sent.
    Refusal,
    /// Stopped by a dry run.
    Preview,
    /// Held for a person.
    Hold,
    /// A person changed what a connection may do.
    Change,
    /// A command of an agent's in the jail: begun, or ended.
    Command,
}

/// What happened. Values of queries, headers and bodies are never in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEvent {
    /// Kind of row.
    pub kind: AuditKind,
    /// Milliseconds UTC.
    pub at_ms: i64,
    /// The run.
    pub run: String,
    /// Rises per request of the run; ties an outcome to its intent.
    pub request: u32,
    /// The agent.
    pub agent: String,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// Version hash, hexadecimal.
    pub version: String,
    /// Connection id.
    pub connection: String,
    /// The ask whose answer let it go, if one did.
    pub approval: Option<String>,
    /// `read`, `write`, `destroy`.
    pub effect: Option<String>,
    /// `forward`, `hold`, `preview`, `refuse`.
    pub decision: String,
    /// The policy row or refusal code that decided.
    pub rule: String,
    /// Method as sent.
    pub method: String,
    /// Host as sent.
    pub host: String,
    /// Path as sent.
    pub path: String,
    /// Query keys, sorted.
    pub query_keys: Vec<String>,
    /// Digest of the wire bytes, hexadecimal.
    pub digest: Option<String>,
    /// Vendor status of an outcome.
    pub status: Option<u16>,
    /// Decoded response bytes.
    pub bytes: Option<u64>,
    /// Microseconds spent with the vendor.
    pub vendor_us: Option<u64>,
    /// Microseconds spent in the proxy itself.
    pub proxy_us: Option<u64>,
    /// How often something was redacted.
    pub redactions: Option<u32>,
    /// A dry run's.
    pub dry_run: bool,
    /// Notes such as `header_dropped:authorization`.
    pub notes: Vec<String>,
}

impl AuditEvent {
    /// A row without a run or a request.
    fn bare(kind: AuditKind, at_ms: i64, decision: &str, rule: &str, notes: Vec<String>) -> Self {
        Self {
            kind,
            at_ms,
            run: String::new(),
            request: 0,
            agent: String::new(),
            tool: String::new(),
            version: String::new(),
            connection: String::new(),
            approval: None,
            effect: None,
            decision: decision.into(),
            rule: rule.into(),
            method: String::new(),
            host: String::new(),
            path: String::new(),
            query_keys: Vec::new(),
            digest: None,
            status: None,
            bytes: None,
            vendor_us: None,
            proxy_us: None,
            redactions: None,
            dry_run: false,
            notes,
        }
    }

    /// A person's change of a connection.
    pub(crate) fn change(at_ms: i64, connection: &Connection, changes: Vec<String>) -> Self {
        let host = connection.hosts.first().map(|host| host.name.clone()).unwrap_or_default();
        let id = connection.id.to_string();
        let bare = Self::bare(AuditKind::Change, at_ms, "change", "a_persons_word", changes);
        Self { connection: id, host, ..bare }
    }

    /// What became of a question to a person without a decision. Its path is left
    /// out: only the row of the held request has had secrets taken out of it.
    pub(crate) fn asked(at_ms: i64, said: AskRecord<'_>) -> Self {
        Self {
            run: said.run.to_string(),
            agent: said.agent.to_string(),
            tool: said.tool.to_owned(),
            version: said.version.to_string(),
            connection: said.connection.to_string(),
            approval: Some(said.ask.to_string()),
            method: said.method.to_owned(),
            host: said.authority.to_owned(),
            digest: Some(said.digest.to_string()),
            ..Self::bare(AuditKind::Change, at_ms, "change", said.became, Vec::new())
        }
    }

    /// A command of an agent's, before it runs or after it ended. Its text is the
    /// agent's own: no secret of the vault's is ever in an agent's hands.
    pub(crate) fn command(at_ms: i64, said: CommandRecord<'_>) -> Self {
        let (decision, notes) = (said.decision, said.notes);
        Self {
            run: said.run.to_string(),
            agent: said.agent.to_string(),
            tool: "run_command".into(),
            digest: Some(hex(&said.digest)),
            ..Self::bare(AuditKind::Command, at_ms, decision, "low_level", notes)
        }
    }

    /// A page that is read for an agent, without a connection.
    pub(crate) fn page(kind: AuditKind, at_ms: i64, run: &RunId, agent: &AgentId) -> Self {
        let decision = if kind == AuditKind::Refusal { "refuse" } else { "forward" };
        Self {
            run: run.to_string(),
            agent: agent.to_string(),
            tool: "read_web_page".into(),
            effect: Some("read".into()),
            method: "GET".into(),
            ..Self::bare(kind, at_ms, decision, "low_level", Vec::new())
        }
    }

    /// Somebody at the door whom no session stands behind.
    pub(crate) fn turned_away(at_ms: i64, code: &str, method: String) -> Self {
        let notes = vec!["at_the_door".into()];
        Self { method, ..Self::bare(AuditKind::Refusal, at_ms, "refuse", code, notes) }
    }
}

/// What is written down of an ask that is settled without a decision.
#[derive(Debug)]
pub struct AskRecord<'a> {
    /// `ask_superseded` or `ask_put_aside`.
    pub became: &'static str,
    /// Which ask.
    pub ask: &'a AskId,
    /// The run whose request it shows.
    pub run: &'a RunId,
    /// Whose.
    pub agent: &'a AgentId,
    /// `<vendor>__<name>`.
    pub tool: &'a str,
    /// The version's content.
    pub version: &'a ContentHash,
    /// On which connection.
    pub connection: &'a ConnectionId,
    /// Upper-case method.
    pub method: &'a str,
    /// `host` or `host:port`.
    pub authority: &'a str,
    /// Over the wire bytes.
    pub digest: &'a ContentHash,
}

/// What is written down of an agent's command.
#[derive(Debug)]
pub struct CommandRecord<'a> {
    /// Its run.
    pub run: &'a RunId,
    /// Whose.
    pub agent: &'a AgentId,
    /// `run` before it runs, `ended` after.
    pub decision: &'static str,
    /// SHA-256 of its text.
    pub digest: [u8; 32],
    /// Its text, or how it ended.
    pub notes: Vec<String>,
}

/// An event in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// Which node's chain.
    pub node: String,
    /// Starts at 1, no gaps.
    pub sequence: u64,
    /// The event as canonical JSON: what the hash is over.
    pub event: String,
    /// Hash of the row before, 32 bytes; zero for the first.
    pub previous: Vec<u8>,
    /// SHA-256 over node, sequence, previous and event.
    pub hash: Vec<u8>,
    /// MAC of `hash` under a key derived from the vault's.
    pub mac: Vec<u8>,
}

/// Where rows go. `store` implements it.
pub trait AuditSink: Send + Sync {
    /// Appends in order, in one transaction. `durable` asks for an fsync.
    fn append<'a>(
        &'a self,
        rows: &'a [AuditRow],
        durable: bool,
    ) -> BoxFuture<'a, Result<(), StoreFault>>;
    /// The last row of a node's chain.
    fn last<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Option<AuditRow>, StoreFault>>;
    /// Up to `limit` rows of a node's chain after `sequence`, in order.
    fn rows<'a>(
        &'a self,
        node: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<AuditRow>, StoreFault>>;
    /// Names of all chains.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreFault>>;
    /// What stands for rows of a node that were let go, in order.
    fn segments<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Vec<AuditSegment>, StoreFault>>;
    /// Stores a segment and takes out the rows it stands for, in one
    /// transaction. Conflict unless it follows the last one.
    fn let_go<'a>(&'a self, segment: &'a AuditSegment) -> BoxFuture<'a, Result<(), StoreFault>>;
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
