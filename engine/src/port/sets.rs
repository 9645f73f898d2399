//! Working sets, their history, and when an agent last used a tool. The last
//! use outlives a demotion: it is kept per agent and tool, not per promotion.

use super::Answering;
use crate::{HistoryEntry, MoveCause, ToolName};
use cambium_proxy::AgentId;

/// A tool in a working set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRow {
    /// The tool.
    pub tool: ToolName,
    /// What put it there.
    pub cause: MoveCause,
    /// Milliseconds UTC.
    pub promoted_ms: i64,
    /// The last use by this agent, before or after the promotion.
    pub last_used_ms: Option<i64>,
}

/// What a move did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// How many tools moved; 0 is a no-op and wrote no history.
    pub changed: usize,
    /// The set's size afterwards.
    pub size: usize,
}

/// Keeps working sets and history. Each move writes one history row in the
/// transaction that moves the tool.
pub trait SetStore: Send + Sync {
    /// The set, by wire name.
    fn set<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, Vec<SetRow>>;
    /// Adds a tool unless it is there. The caller has seen that it exists.
    fn promote<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
        cause: MoveCause,
        now_ms: i64,
    ) -> Answering<'a, Moved>;
    /// Removes the tools that are there, all in one transaction.
    fn demote<'a>(
        &'a self,
        agent: &'a AgentId,
        tools: &'a [(ToolName, MoveCause)],
        now_ms: i64,
    ) -> Answering<'a, Moved>;
    /// Newest first, at most `limit`.
    fn history<'a>(&'a self, agent: &'a AgentId, limit: u32) -> Answering<'a, Vec<HistoryEntry>>;
}
