//! What a run gives out at its end, searched once more for what its requests
//! were sent with. A module may decode an answer in a way nobody foresaw; what
//! it makes of that is not to leave in any form this crate knows.

use crate::scrub::Redactor;
use bytes::Bytes;

/// Hides a run's secrets in its results, errors and console lines.
#[derive(Clone)]
pub struct Veil(Redactor);

impl Veil {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self(redactor)
    }

    /// A text without them.
    pub fn text(&self, text: String) -> String {
        match self.0.text(&text) {
            (_, 0) => text,
            (hidden, _) => hidden,
        }
    }

    /// A body without them.
    pub fn bytes(&self, bytes: Bytes) -> Bytes {
        self.0.bytes(bytes).0
    }
}

impl std::fmt::Debug for Veil {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Veil")
    }
}
