//! What a session may do. A permission is a value here, never a flag: the one
//! that lets a write through can only be made from a decision whose MAC holds.

use crate::{AskId, ContentHash};

/// What a run may send.
#[derive(Debug)]
pub enum Grant {
    /// A read-only version: GET and HEAD.
    ReadOnly,
    /// A dry run: reads go, everything else is previewed.
    Preview,
    /// A write version nobody has answered for: the first write is held.
    Ask,
    /// Every write is held for itself (`execute__`, "every time").
    AskEach,
    /// A standing approval.
    Write(Permit),
}

/// Proof that a person allowed writes. Made in one function of `approval`.
#[derive(Debug)]
pub struct Permit {
    pub(crate) ask: AskId,
    pub(crate) covers: Covers,
}

/// What a permit covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Covers {
    /// The recorded call sites of the version the session runs.
    RecordedSites,
    /// One request, by the digest of its wire bytes.
    Digest(ContentHash),
}

impl Permit {
    /// The ask whose answer this is, for the audit.
    pub fn ask(&self) -> &AskId {
        &self.ask
    }
}
