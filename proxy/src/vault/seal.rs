//! XChaCha20-Poly1305 with a data key of its own for each secret, wrapped by a
//! key derived from the sealing key, whose number stands before it. Both layers
//! carry the same associated data, so a row moved to another connection,
//! generation, scheme or host set does not open.

use super::{Vault, derived};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

const NONCE: usize = 24;
/// The sealing key's number.
const NUMBER: usize = 4;

/// A sealed secret: a number and nonce before the wrapped key, a nonce before
/// the rest.
pub(crate) struct Sealed {
    pub(crate) wrapped_key: Vec<u8>,
    pub(crate) sealed: Vec<u8>,
}

impl Vault {
    /// Seals bytes under a fresh data key; `None` when randomness fails.
    pub(crate) fn seal(&self, plain: &[u8], bound_to: &[u8]) -> Option<Sealed> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).ok()?;
        let keys = self.keys();
        let current = keys.sealing.last()?;
        let mut wrapped_key = current.number.to_be_bytes().to_vec();
        let wrap = derived(&current.bytes, "wrap", "secret");
        wrapped_key.extend(encrypt(&wrap, &*key, bound_to)?);
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
        let (number, wrapped_key) = wrapped_key.split_at_checked(NUMBER)?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        let keys = self.keys();
        let sealing = keys.sealing.iter().find(|key| key.number == number)?;
        let wrap = derived(&sealing.bytes, "wrap", "secret");
        let unwrapped = decrypt(&wrap, wrapped_key, bound_to)?;
        let mut key = Zeroizing::new([0; 32]);
        if unwrapped.len() != key.len() {
            return None;
        }
        key.copy_from_slice(&unwrapped);
        decrypt(&key, sealed, bound_to)
    }

    /// Whether it is wrapped by the sealing key in use.
    pub(crate) fn is_current(&self, wrapped_key: &[u8]) -> bool {
        let current = self.keys().sealing.last().map(|key| key.number.to_be_bytes());
        current.is_some_and(|number| wrapped_key.starts_with(&number))
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
