//! An agent's workspace: a few small text files of its own, kept as rows, so
//! that a module can be written, checked and published by its path. Nothing on
//! this machine's disk is read or written by a name an agent chose.

use crate::command::Caller;
use crate::port::{WorkspaceFile, WorkspacePut, WorkspaceRoom};
use crate::{Engine, EngineError};
use serde::Serialize;

/// Longest file, bytes: the longest module that is checked.
pub(crate) const FILE_BYTES: usize = 256 * 1024;
/// What one agent may keep.
pub(crate) const ROOM: WorkspaceRoom = WorkspaceRoom { files: 200, bytes: 8 * 1024 * 1024 };
/// Longest path, bytes.
const PATH_BYTES: usize = 200;
/// Most folders in a path.
const FOLDERS_MAX: usize = 8;

/// What a write of a file did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileWritten {
    /// Its path.
    pub path: String,
    /// Its length.
    pub bytes: usize,
    /// Every file of the workspace, by path.
    pub files: Vec<String>,
}

impl Engine {
    /// Writes a file of the agent's workspace, new or over what was there.
    pub async fn write_file(
        &self,
        caller: &Caller,
        path: &str,
        content: &str,
    ) -> Result<FileWritten, EngineError> {
        caller.active()?;
        let path = workspace_path(path)?;
        if content.len() > FILE_BYTES {
            return Err(EngineError::ArgumentInvalid {
                name: "content".into(),
                reason: format!("a file is at most {FILE_BYTES} bytes, this has {}", content.len()),
            });
        }
        let file = WorkspaceFile {
            agent: caller.agent.id.clone(),
            path: path.to_owned(),
            content: content.to_owned(),
            written_ms: self.now(),
        };
        let refused = match self.parts.store.put_workspace_file(&file, &[], ROOM).await? {
            WorkspacePut::Written => None,
            WorkspacePut::Full => Some(format!(
                "the workspace is full: at most {} files and {} bytes; write over one that is not \
                 needed",
                ROOM.files, ROOM.bytes
            )),
            WorkspacePut::Clash(kept) => Some(format!(
                "`{kept}` is in the workspace, and a file cannot be a folder too; choose another \
                 path"
            )),
        };
        if let Some(reason) = refused {
            return Err(EngineError::ArgumentInvalid { name: "path".into(), reason });
        }
        let files = self.parts.store.workspace_paths(&caller.agent.id).await?;
        Ok(FileWritten { path: path.to_owned(), bytes: content.len(), files })
    }

    /// The text of a file of the agent's own workspace.
    pub async fn workspace_file(&self, caller: &Caller, path: &str) -> Result<String, EngineError> {
        let path = workspace_path(path)?;
        let found = self.parts.store.workspace_file(&caller.agent.id, path).await?;
        match found {
            Some(content) => Ok(content),
            None => {
                let there = self.parts.store.workspace_paths(&caller.agent.id).await?;
                let there = match there.is_empty() {
                    true => "it is empty".to_owned(),
                    false => format!("it has {}", there.join(", ")),
                };
                Err(EngineError::ArgumentInvalid {
                    name: "path".into(),
                    reason: format!("no file `{path}` is in the workspace; {there}"),
                })
            }
        }
    }
}

/// Whether one of two paths would be a folder of the other.
pub(crate) fn clash(one: &str, other: &str) -> bool {
    let below = |path: &str, folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    below(one, other) || below(other, one)
}

/// A path of plain names: relative, without dots that lead elsewhere.
pub(crate) fn workspace_path(path: &str) -> Result<&str, EngineError> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let fits = path.len() <= PATH_BYTES
        && path.split('/').count() <= FOLDERS_MAX + 1
        && path.split('/').all(plain);
    match fits {
        true => Ok(path),
        false => Err(EngineError::ArgumentInvalid {
            name: "path".into(),
            reason: format!(
                "must be like tools/list-orders.ts: names of letters, digits, `.`, `_` and `-` \
                 that do not begin with `.`, at most {PATH_BYTES} bytes and {FOLDERS_MAX} folders"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_clashes_with_its_folders_and_with_what_is_in_it() {
        for (one, other) in [("a", "a/b"), ("a/b", "a"), ("a/b", "a/b/c/d")] {
            assert!(clash(one, other), "{one} {other}");
        }
        for (one, other) in [("a", "a"), ("a", "a.b"), ("a", "ab/c"), ("a/b", "a/c")] {
            assert!(!clash(one, other), "{one} {other}");
        }
    }

    #[test]
    fn only_plain_relative_paths_are_names_of_files() {
        for path in ["a", "a.ts", "tools/list-orders.ts", "a/b/c/d/e/f/g/h/i"] {
            assert!(workspace_path(path).is_ok(), "{path}");
        }
        let long = "x".repeat(201);
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "./a",
            ".ssh/key",
            "a b",
            "a\\b",
            "a\0",
            "é",
            "~/x",
            "a/b/c/d/e/f/g/h/i/j",
            &long,
            "result://x",
            "C:x",
        ] {
            assert_eq!(workspace_path(path).unwrap_err().code(), "argument_invalid", "{path}");
        }
    }
}
