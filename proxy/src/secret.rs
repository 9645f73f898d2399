//! A secret as a type: it cannot be printed, copied, serialised or compared,
//! and only `credential.rs` opens it. It is wiped when dropped.

use zeroize::Zeroizing;

/// The bytes a person entered, or what was derived from them.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Whether it is too short to be looked for in answers: hiding it would
    /// hide innocent text.
    pub fn is_too_short_to_hide(&self) -> bool {
        self.0.len() < crate::scrub::SHORTEST
    }
}

impl Secret {
    /// Takes over what the vault opened.
    pub(crate) fn take(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes. Called in `credential.rs` and nowhere else; a test reads the
    /// sources to hold that.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}
