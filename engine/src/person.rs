//! The person who decides. A decision takes a [`PersonProof`], which only a
//! checked passphrase, a redeemed code or a console session can make.

/// What a person shows.
pub enum PersonCredential {
    /// The passphrase.
    Passphrase(String),
    /// A one-time code.
    Code(String),
}

/// Proof that a person is there.
#[derive(Debug)]
pub struct PersonProof {
    pub(crate) fresh: bool,
}

impl PersonProof {
    /// True when the passphrase or a code was given just now; standing and
    /// destructive answers need it.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}
