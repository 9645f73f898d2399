//! What agents proposed to a person: a connection to make, a credential to enter
//! again, something to be allowed. A proposal gives no right: a person makes what it speaks of, or
//! refuses it, and it leaves `open` once, by compare-and-swap.

use super::Answering;
use cambium_proxy::{AgentId, ConnectionId, ContentHash, Host, PersonId, Scheme};
use serde::{Deserialize, Serialize};

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// Nobody has answered.
    Open,
    /// A person did what it asked for.
    Accepted,
    /// A person will not.
    Refused,
    /// Nobody answered in time.
    Expired,
}

/// What is proposed, in the agent's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Proposal {
    /// A new connection.
    Connection {
        /// Vendor half of its tools.
        vendor: String,
        /// What it is to be called.
        display_name: String,
        /// First is primary.
        hosts: Vec<Host>,
        /// How the credential is placed.
        scheme: Box<Scheme>,
        /// Where the vendor is said to describe its API.
        docs_url: Option<String>,
    },
    /// The credential of a connection, again.
    Credential {
        /// Why, in the agent's words; empty when it gave none.
        reason: String,
    },
    /// To be allowed something, once for it.
    Permission(Permission),
}

/// What a person can allow an agent by a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case", deny_unknown_fields)]
pub enum Permission {
    /// To read pages of a host.
    ReadPages {
        /// `HOST` or `HOST:PORT`.
        host: String,
    },
    /// To have tools made against a connection.
    MakeTools {
        /// Its id.
        connection: String,
    },
}

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalRow {
    /// Its id: 128 random bits.
    pub id: String,
    /// Whose connections.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// Over what makes two proposals the same.
    pub digest: ContentHash,
    /// What is proposed.
    pub proposal: Proposal,
    /// The connection it is about, or that was made of it.
    pub connection: Option<ConnectionId>,
    /// Where it stands.
    pub state: ProposalState,
    /// Milliseconds UTC.
    pub opened_ms: i64,
    /// Milliseconds UTC.
    pub expires_ms: i64,
    /// When it left `open`, milliseconds UTC.
    pub settled_ms: Option<i64>,
}

/// Keeps proposals.
pub trait ProposalStore: Send + Sync {
    /// Opens one. Conflict when the same is open for this agent.
    fn insert_proposal<'a>(&'a self, row: &'a ProposalRow) -> Answering<'a, ()>;
    /// One proposal.
    fn proposal<'a>(&'a self, id: &'a str) -> Answering<'a, Option<ProposalRow>>;
    /// The newest of this agent with this digest.
    fn newest_proposal<'a>(
        &'a self,
        agent: &'a AgentId,
        digest: &'a ContentHash,
    ) -> Answering<'a, Option<ProposalRow>>;
    /// Open ones first, then the newest settled, at most `limit`.
    fn proposals<'a>(&'a self, person: &'a PersonId, limit: u32)
    -> Answering<'a, Vec<ProposalRow>>;
    /// Takes one out of `open` by compare-and-swap. False when it was not open.
    fn settle_proposal<'a>(
        &'a self,
        id: &'a str,
        to: ProposalState,
        connection: Option<&'a ConnectionId>,
        now_ms: i64,
    ) -> Answering<'a, bool>;
}
