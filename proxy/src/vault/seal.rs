//! XChaCha20-Poly1305 with a data key of its own for each secret, wrapped by a
//! key derived from the master. Both layers carry the same associated data, so
//! a row moved to another connection, generation, scheme or host set does not
//! open.

use super::Vault;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

const NONCE: usize = 24;

/// A sealed secret: both parts begin with their nonce.
pub(crate) struct Sealed {
    pub(crate) wrapped_key: Vec<u8>,
    pub(crate) sealed: Vec<u8>,
}

impl Vault {
    /// Seals bytes under a fresh data key; `None` when randomness fails.
    pub(crate) fn seal(&self, plain: &[u8], bound_to: &[u8]) -> Option<Sealed> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).ok()?;
        let wrapped_key = encrypt(&self.derive("wrap", "secret"), &*key, bound_to)?;
        let sealed = encrypt(&key, plain, bound_to)?;
        Some(Sealed { wrapped_key, sealed })
    }

    /// Opens what [`Vault::seal`] made under the same associated data.
    pub(crate) fn unseal(
        &self,
        wrapped_key: &[u8],
        sealed: &[u8],
        bound_to: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let unwrapped = decrypt(&self.derive("wrap", "secret"), wrapped_key, bound_to)?;
        let mut key = Zeroizing::new([0; 32]);
        if unwrapped.len() != key.len() {
            return None;
        }
        key.copy_from_slice(&unwrapped);
        decrypt(&key, sealed, bound_to)
    }
}

fn encrypt(key: &[u8; 32], plain: &[u8], bound_to: &[u8]) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).ok()?;
    let cipher = XChaCha20Poly1305::new(key.into());
    let sealed = cipher.encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: bound_to });
    let mut out = nonce.to_vec();
    out.extend(sealed.ok()?);
    Some(out)
}

fn decrypt(key: &[u8; 32], sealed: &[u8], bound_to: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
    let cipher = XChaCha20Poly1305::new(key.into());
    let payload = Payload { msg: sealed, aad: bound_to };
    cipher.decrypt(XNonce::from_slice(nonce), payload).ok().map(Zeroizing::new)
}
