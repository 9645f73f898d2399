//! What happened, for whoever watches: MCP sessions (list-changed), the
//! console and the terminal. Sent after the change is stored.

use cambium_proxy::{AgentId, AskId};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The tool list of these agents changed; one notice each.
    ListChanged(Vec<AgentId>),
    /// A person is asked.
    AskOpened(AskId),
    /// An ask was decided or expired.
    AskSettled(AskId),
}
