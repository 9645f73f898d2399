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

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspacePut {
    /// It is kept.
    Written,
    /// The agent would keep more than it may; nothing changed.
    Full,
    /// One of the two would have to be a file and a folder: the file that is
    /// kept there; nothing changed.
    Clash(String),
}

/// Keeps files of workspaces.
pub trait WorkspaceStore: Send + Sync {
    /// Writes a file, in place of those named too, if there is room for it and
    /// no other is its folder or in it.
    fn put_workspace_file<'a>(
        &'a self,
        file: &'a WorkspaceFile,
        instead_of: &'a [&'a str],
        room: WorkspaceRoom,
    ) -> Answering<'a, WorkspacePut>;
    /// Removes files; those that are not there are no error.
    fn remove_workspace_files<'a>(
        &'a self,
        agent: &'a AgentId,
        paths: &'a [&'a str],
    ) -> Answering<'a, ()>;
    /// The text of a file.
    fn workspace_file<'a>(
        &'a self,
        agent: &'a AgentId,
        path: &'a str,
    ) -> Answering<'a, Option<String>>;
    /// Every path, in order.
    fn workspace_paths<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, Vec<String>>;
}
