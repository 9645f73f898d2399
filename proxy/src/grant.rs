//! What a session may do. A permission is a value here, never a flag: the one
//! that lets a write through can only be made from a decision whose MAC holds.

use crate::policy::{GrantKind, SiteMatch};
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

impl Grant {
    /// What the policy is told of it.
    pub(crate) fn kind(&self) -> GrantKind {
        match self {
            Self::ReadOnly => GrantKind::ReadOnly,
            Self::Preview => GrantKind::Preview,
            Self::Ask => GrantKind::Ask,
            Self::AskEach => GrantKind::AskEach,
            Self::Write(_) => GrantKind::Write,
        }
    }
}

impl Permit {
    /// Whether it lets one request through.
    pub(crate) fn lets(&self, site: SiteMatch, digest: ContentHash) -> bool {
        match self.covers {
            Covers::RecordedSites => matches!(site, SiteMatch::Recorded | SiteMatch::Opened),
            Covers::Digest(shown) => shown == digest && site != SiteMatch::Outside,
        }
    }

    /// The same answer for the bytes a person was shown, and no others.
    pub(crate) fn only(self, shown: ContentHash) -> Self {
        Self { ask: self.ask, covers: Covers::Digest(shown) }
    }

    /// The ask whose answer this is, for the audit.
    pub fn ask(&self) -> &AskId {
        &self.ask
    }
}
