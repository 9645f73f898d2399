//! Asks and the decisions that answer them. An ask leaves `open` once, by
//! compare-and-swap, in the transaction that appends its decision. Decisions
//! are append-only and signed before they come here; the proxy reads them, and
//! consumes *once* permits, through its own port.

use super::Answering;
use crate::{Ended, ToolName};
use cambium_proxy::{
    AgentId, AskId, ConnectionId, ContentHash, DecisionRow, Effect, PersonId, RunId,
};

/// Where an ask stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskState {
    /// Nobody has answered.
    Open,
    /// From now on.
    AllowedStanding,
    /// This once.
    AllowedOnce,
    /// Refused until changed.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// Another version, connection or request took its place.
    Superseded,
    /// A person put it aside, which permits and refuses nothing.
    Dismissed,
}

impl AskState {
    /// As stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::AllowedStanding => "allowed_standing",
            Self::AllowedOnce => "allowed_once",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Dismissed => "dismissed",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Open,
            Self::AllowedStanding,
            Self::AllowedOnce,
            Self::Denied,
            Self::Expired,
            Self::Superseded,
            Self::Dismissed,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskReason {
    /// This agent's first write with this tool.
    FirstCall,
    /// The tool was published anew since the last answer.
    Republished,
    /// The connection was changed since the last answer.
    ConnectionChanged,
    /// The last answer covered one request only, or was taken back.
    NotStanding,
}

impl AskReason {
    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstCall => "first_call",
            Self::Republished => "republished",
            Self::ConnectionChanged => "connection_changed",
            Self::NotStanding => "not_standing",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::FirstCall, Self::Republished, Self::ConnectionChanged, Self::NotStanding]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// One question, with the exact request it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRow {
    /// Its id.
    pub id: AskId,
    /// Whose toolbox.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The version's content.
    pub version: ContentHash,
    /// The version's number.
    pub number: u32,
    /// On which connection.
    pub connection: ConnectionId,
    /// At which generation of it.
    pub generation: u64,
    /// Why it is asked.
    pub reason: AskReason,
    /// The run whose request is shown.
    pub run: RunId,
    /// Write or destroy.
    pub effect: Effect,
    /// Upper-case method.
    pub method: String,
    /// Host as on the wire.
    pub authority: String,
    /// Path and query as on the wire.
    pub target: String,
    /// Headers as on the wire, without the credential.
    pub headers: Vec<(String, String)>,
    /// The whole body, at most 1 MiB.
    pub body: Vec<u8>,
    /// Over the wire bytes.
    pub digest: ContentHash,
    /// Where it stands.
    pub state: AskState,
    /// Milliseconds UTC.
    pub opened_ms: i64,
    /// Milliseconds UTC.
    pub expires_ms: i64,
    /// When it left `open`, milliseconds UTC.
    pub settled_ms: Option<i64>,
}

/// Keeps asks and appends decisions.
pub trait AskStore: Send + Sync {
    /// Opens an ask. Conflict when one is open for this agent and tool.
    fn insert_ask<'a>(&'a self, ask: &'a AskRow) -> Answering<'a, ()>;
    /// One ask.
    fn ask<'a>(&'a self, id: &'a AskId) -> Answering<'a, Option<AskRow>>;
    /// The open ask of this agent and tool, expired or not.
    fn open_ask<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<AskRow>>;
    /// How many asks of this agent are open and not expired.
    fn count_open<'a>(&'a self, agent: &'a AgentId, now_ms: i64) -> Answering<'a, u32>;
    /// Open ones first, then the newest settled, at most `limit`.
    fn asks<'a>(&'a self, person: &'a PersonId, limit: u32) -> Answering<'a, Vec<AskRow>>;
    /// Takes an ask out of `open` by compare-and-swap and appends its decision
    /// in the same transaction. False when it was not open: nothing changed.
    /// Conflict when the decision's sequence is taken: nothing changed.
    fn settle<'a>(
        &'a self,
        id: &'a AskId,
        to: AskState,
        decision: Option<&'a DecisionRow>,
        now_ms: i64,
    ) -> Answering<'a, bool>;
    /// Marks every open ask past its expiry as expired; answers which.
    fn expire_asks(&self, now_ms: i64) -> Answering<'_, Vec<AskId>>;
    /// The newest decision of this agent for this tool, whatever it says.
    fn newest_decision<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<DecisionRow>>;
    /// The newest decision of this agent for this tool that is not *once*: the
    /// one that stands.
    fn standing_decision<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<DecisionRow>>;
    /// The same for every agent and tool, of those whose row is on this
    /// connection.
    fn decisions_on<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<DecisionRow>>;
    /// The *once* of this agent for this tool that nothing was sent with and no
    /// later row took back, oldest first.
    fn unused_of<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Vec<DecisionRow>>;
    /// The same of every agent and tool, of those given for this connection.
    fn unused_on<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<DecisionRow>>;
    /// Whether something was sent with the *once* this ask was answered with.
    fn is_used<'a>(&'a self, ask: &'a AskId) -> Answering<'a, bool>;
    /// Appends a decision that answers no open ask (a withdrawal). Conflict
    /// when its sequence is taken.
    fn append_decision<'a>(&'a self, decision: &'a DecisionRow) -> Answering<'a, ()>;
    /// The newest decision of every agent and tool, whatever it says.
    fn newest_decisions(&self) -> Answering<'_, Vec<DecisionRow>>;
    /// Ends every session, code and open ask and appends the withdrawals, all in
    /// one transaction. Spans persons, asks and decisions.
    fn begin_epoch<'a>(
        &'a self,
        withdrawals: &'a [DecisionRow],
        now_ms: i64,
    ) -> Answering<'a, Ended>;
}
