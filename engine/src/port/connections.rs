//! Connections and which agents may use them. The proxy reads a connection by
//! id through its own port; sealed secrets never pass here.

use super::Answering;
use crate::ToolName;
use cambium_proxy::{AgentId, Connection, ConnectionId, DecisionRow, PersonId, SealedSecret};

/// What a revoke changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revoked {
    /// False when it was revoked before: nothing else changed then.
    pub changed: bool,
    /// Every tool that left a working set, with the agent whose set it was.
    pub left: Vec<(AgentId, ToolName)>,
}

/// What came back with a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Returned {
    /// Every tool that is in a working set again, with the agent whose set it is.
    pub back: Vec<(AgentId, ToolName)>,
}

/// Keeps connections and scopes.
pub trait ConnectionStore: Send + Sync {
    /// Creates a connection in scope for these agents; no agent means all of
    /// the person's. Conflict when the person has a connection of that slug.
    fn insert_connection<'a>(
        &'a self,
        connection: &'a Connection,
        scope: &'a [AgentId],
        now_ms: i64,
    ) -> Answering<'a, ()>;
    /// One connection of the person by id or slug, revoked ones included.
    fn find_connection<'a>(
        &'a self,
        person: &'a PersonId,
        id_or_slug: &'a str,
    ) -> Answering<'a, Option<Connection>>;
    /// All connections of the person by slug, revoked ones included.
    fn connections<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Connection>>;
    /// The agents a connection is in scope for; empty means all.
    fn scope<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<AgentId>>;
    /// Changes the agents a connection is in scope for; no agent means all of the
    /// person's. What was before stays as a row.
    fn change_scope<'a>(
        &'a self,
        connection: &'a ConnectionId,
        agents: &'a [AgentId],
        now_ms: i64,
    ) -> Answering<'a, ()>;
    /// Marks a connection connected, once what it needs is sealed. The
    /// generation stays. In the same transaction the tools that its revoke took
    /// out return, as by [`Self::reconnect_connection`]. Conflict when it was
    /// revoked: nothing takes that back here.
    fn mark_connected<'a>(
        &'a self,
        connection: &'a ConnectionId,
        now_ms: i64,
    ) -> Answering<'a, Returned>;
    /// Stores changed exceptions, overrides and authority under the next generation, and
    /// the secret sealed anew for it, in one transaction. Conflict when the
    /// stored generation is not the one before.
    fn change_connection<'a>(
        &'a self,
        connection: &'a Connection,
        secret: Option<&'a SealedSecret>,
    ) -> Answering<'a, ()>;
    /// Makes a revoked connection what is given, under its next generation, with
    /// the secret sealed for it. Once that is connected, in the same transaction
    /// every tool that this revoke took out of a working set, and nothing has
    /// moved since, is put back with a history row (cause reconnect); one that
    /// waits for a sign-in brings none back yet. Conflict when it is not revoked at
    /// the generation before. Spans connections, secrets and working sets.
    fn reconnect_connection<'a>(
        &'a self,
        connection: &'a Connection,
        secret: Option<&'a SealedSecret>,
        now_ms: i64,
    ) -> Answering<'a, Returned>;
    /// Revokes a connection. In the same transaction every tool whose current
    /// version runs on it leaves every working set with a history row (cause
    /// revoke), and the signed withdrawals are appended to the decisions
    /// (Conflict when one of their sequences is taken; nothing changed then).
    /// Spans connections, working sets and decisions.
    fn revoke_connection<'a>(
        &'a self,
        connection: &'a ConnectionId,
        withdrawals: &'a [DecisionRow],
        now_ms: i64,
    ) -> Answering<'a, Revoked>;
}
