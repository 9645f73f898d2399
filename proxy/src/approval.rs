//! Decisions of a person, as stored, and the one function that turns a stored
//! decision into a grant. The MAC over a row is checked here at every use.

use crate::{AgentId, AskId, BoxFuture, ConnectionId, ContentHash, PersonId, StoreFault};
use serde::{Deserialize, Serialize};

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// From now on: the recorded call sites of that version on that connection
    /// at that generation.
    Standing,
    /// Exactly the bytes shown, once.
    Once,
    /// Refused until changed.
    Deny,
    /// Takes back a standing answer or a deny; a row like the others, since
    /// nothing is deleted.
    Withdrawn,
}

/// One decision. Append-only; the newest row for (agent, tool) stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRow {
    /// The ask it answers (a withdrawal names the ask of what it withdraws).
    pub ask: AskId,
    /// Rises per (agent, tool); the newest stands.
    pub sequence: u64,
    /// Whose toolbox.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// The version's content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// At which generation of it.
    pub generation: u64,
    /// The held request's digest.
    pub digest: ContentHash,
    /// The answer.
    pub answer: Answer,
    /// Where it was given: `console`, `cli`, `elicitation`.
    pub channel: String,
    /// When, milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above, under a key derived from the vault's.
    pub mac: Vec<u8>,
}

/// What names a one-request permit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PermitKey {
    /// Which agent.
    pub agent: AgentId,
    /// The version's content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// The wire bytes' digest.
    pub digest: ContentHash,
}

/// Reads decisions and consumes one-request permits. `store` implements it.
pub trait ApprovalSource: Send + Sync {
    /// The newest standing, deny or withdrawn row of this agent for this tool,
    /// or for the same content under another name if that is a deny.
    fn standing<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a str,
        version: &'a ContentHash,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
    /// The decision that answered one ask.
    fn decision<'a>(
        &'a self,
        ask: &'a AskId,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
    /// An unused *once* decision for exactly this request, marked used by
    /// compare-and-swap in the same step: a second caller gets `None`.
    fn consume_once<'a>(
        &'a self,
        key: &'a PermitKey,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
}

impl DecisionRow {
    /// Sets the MAC over all other fields; called once, where a decision is made.
    pub fn sign(mut self, vault: &crate::Vault) -> Self {
        self.mac = vault.mac("decision", &[]).to_vec();
        self
    }
}
