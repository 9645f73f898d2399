//! What happened, for whoever watches: MCP sessions (list-changed), notices and
//! the terminal. Sent after the change is stored. The console is told by topic
//! only, see `changes`.

use cambium_proxy::{AgentId, AskId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The tool list of these agents changed; one notice each.
    ListChanged(Arc<BTreeSet<AgentId>>),
    /// A person is asked.
    AskOpened(AskId),
    /// An ask was decided or expired.
    AskSettled(AskId),
    /// An agent proposed a connection, or asked for a credential.
    Proposed(String),
}

impl Event {
    /// The lists of these agents changed. Each open session gets a copy of the
    /// event, so the names are shared.
    pub fn list_changed(agents: impl IntoIterator<Item = AgentId>) -> Self {
        Self::ListChanged(Arc::new(agents.into_iter().collect()))
    }
}
