//! Files of agents' workspaces. They change and decide nothing; an agent reads
//! and writes its own.

use super::Answering;
use cambium_proxy::AgentId;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Whose.
    pub agent: AgentId,
    /// Where in the workspace.
    pub path: String,
    /// Its text.
    pub content: String,
    /// Milliseconds UTC.
    pub written_ms: i64,
}

/// What one agent may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceRoom {
    /// Files.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Keeps files of workspaces.
pub trait WorkspaceStore: Send + Sync {
    /// Writes a file, unless the agent would then keep more than it may: false
    /// then, and nothing changed.
    fn put_workspace_file<'a>(
        &'a self,
        file: &'a WorkspaceFile,
        room: WorkspaceRoom,
    ) -> Answering<'a, bool>;
    /// The text of a file.
    fn workspace_file<'a>(
        &'a self,
        agent: &'a AgentId,
        path: &'a str,
    ) -> Answering<'a, Option<String>>;
    /// Every path, in order.
    fn workspace_paths<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, Vec<String>>;
}
