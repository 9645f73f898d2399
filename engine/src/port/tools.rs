//! The toolbox: versions and pointers, both append-only. A pointer row says
//! which version is current; the newest stands. MACs are made and checked in
//! `toolbox.rs`, the store keeps them as bytes. Files that go with versions are
//! kept by what is in them.

use super::Answering;
use crate::{ToolName, Version};
use cambium_proxy::{AgentId, ContentHash, PersonId};

/// A version with its MAC.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionRow {
    /// The version.
    pub version: Version,
    /// Over every field of it.
    pub mac: Vec<u8>,
}

/// Which version is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Whose toolbox.
    pub person: PersonId,
    /// The tool.
    pub tool: ToolName,
    /// Rises per tool, starts at 1; the newest stands.
    pub sequence: u64,
    /// The current version's number.
    pub number: u32,
    /// Its content.
    pub hash: ContentHash,
    /// When it moved here, milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above.
    pub mac: Vec<u8>,
}

/// A publish, stored whole or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishRow {
    /// The new version; `None` when the pointer moves to one that is there.
    pub version: Option<VersionRow>,
    /// The new pointer.
    pub pointer: Pointer,
    /// Promoted in the same step (cause publish) unless it is already.
    pub promote_for: Option<AgentId>,
}

/// Keeps the toolbox.
pub trait ToolStore: Send + Sync {
    /// The newest pointer of a tool.
    fn pointer<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<Pointer>>;
    /// The newest pointer of every tool, by wire name.
    fn pointers<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Pointer>>;
    /// One version.
    fn version<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
        number: u32,
    ) -> Answering<'a, Option<VersionRow>>;
    /// The highest version number of a tool; 0 when there is none.
    fn newest_number<'a>(&'a self, person: &'a PersonId, tool: &'a ToolName) -> Answering<'a, u32>;
    /// Appends version and pointer and promotes. Conflict when the number or
    /// the pointer's sequence is taken; nothing changed then. Answers whether
    /// the promotion was new. Spans tools and working sets.
    fn publish<'a>(&'a self, publish: &'a PublishRow) -> Answering<'a, bool>;
    /// Keeps a file under its SHA-256; one that is there stays.
    fn put_file<'a>(
        &'a self,
        person: &'a PersonId,
        digest: &'a ContentHash,
        bytes: &'a [u8],
        now_ms: i64,
    ) -> Answering<'a, ()>;
    /// The file of a SHA-256. Who asked compares.
    fn file<'a>(
        &'a self,
        person: &'a PersonId,
        digest: &'a ContentHash,
    ) -> Answering<'a, Option<Vec<u8>>>;
    /// [`Self::publish`] for many, in one transaction: all of them or none.
    fn publish_all<'a>(&'a self, publishes: &'a [PublishRow]) -> Answering<'a, Vec<bool>>;
    /// The agents whose working set holds the tool, by id.
    fn holders<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
    ) -> Answering<'a, Vec<AgentId>>;
}
