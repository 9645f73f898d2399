//! The OpenAPI document a person pinned on a connection. A pin is never changed;
//! a later one takes its place.

use super::Answering;
use cambium_proxy::{ConnectionId, ContentHash};

/// Which document stands for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// For which connection.
    pub connection: ConnectionId,
    /// Rises per connection, starts at 1; the newest stands.
    pub sequence: u64,
    /// SHA-256 of its bytes.
    pub digest: ContentHash,
    /// In front of every path.
    pub base_path: String,
    /// Milliseconds UTC.
    pub at_ms: i64,
}

/// Keeps pinned documents.
pub trait DocumentStore: Send + Sync {
    /// The newest pin.
    fn document<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Option<DocumentRow>>;
    /// Appends a pin of a file that is kept. Conflict when its sequence is taken.
    fn pin_document<'a>(&'a self, row: &'a DocumentRow) -> Answering<'a, ()>;
}
