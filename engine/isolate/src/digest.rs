//! SHA-2 and HMAC for `crypto.subtle`, by the name a module gives.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The digest of `data`; empty for a name that is none.
pub(crate) fn digest(name: &str, data: &[u8]) -> Vec<u8> {
    match name {
        "SHA-256" => Sha256::digest(data).to_vec(),
        "SHA-384" => Sha384::digest(data).to_vec(),
        "SHA-512" => Sha512::digest(data).to_vec(),
        _ => Vec::new(),
    }
}

/// The HMAC of `data`; empty for a name that is none.
pub(crate) fn hmac(name: &str, key: &[u8], data: &[u8]) -> Vec<u8> {
    fn with<M: Mac + hmac::digest::KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
        let Ok(mut mac) = <M as Mac>::new_from_slice(key) else { return Vec::new() };
        mac.update(data);
        mac.finalize().into_bytes().to_vec()
    }
    match name {
        "SHA-256" => with::<Hmac<Sha256>>(key, data),
        "SHA-384" => with::<Hmac<Sha384>>(key, data),
        "SHA-512" => with::<Hmac<Sha512>>(key, data),
        _ => Vec::new(),
    }
}
