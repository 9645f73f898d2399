//! Hashes a passphrase with Argon2id and checks one, as PHC text. Only the
//! parameters this file writes are read back: a hash somebody planted with
//! others does not hold.

use crate::EngineError;
use crate::id::random;
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// 19 MiB, two passes, one lane: OWASP's first recommendation.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const PREFIX: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

/// A new hash under fresh salt. Takes tens of milliseconds.
pub(crate) fn hash(passphrase: &str) -> Result<String, EngineError> {
    let salt = random::<16>()?;
    let hash = derive(passphrase, &salt)
        .ok_or_else(|| EngineError::SandboxUnavailable("no memory for Argon2".into()))?;
    Ok(format!("{PREFIX}{}${}", STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash)))
}

/// Whether the passphrase is the one hashed. Anything malformed does not hold.
pub(crate) fn holds(stored: &str, passphrase: &str) -> bool {
    let Some((salt, hash)) = stored.strip_prefix(PREFIX).and_then(|rest| rest.split_once('$'))
    else {
        return false;
    };
    let (Ok(salt), Ok(hash)) = (STANDARD_NO_PAD.decode(salt), STANDARD_NO_PAD.decode(hash)) else {
        return false;
    };
    derive(passphrase, &salt).is_some_and(|derived| equal(&derived, &hash))
}

fn derive(passphrase: &str, salt: &[u8]) -> Option<[u8; 32]> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(32)).ok()?;
    let mut out = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut out)
        .ok()?;
    Some(out)
}

/// Without an early exit; what differs is a hash, so this is belt and braces.
fn equal(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_passphrase_holds() {
        let stored = hash("correct horse").unwrap();
        assert!(stored.starts_with(PREFIX));
        assert!(holds(&stored, "correct horse"));
        assert!(!holds(&stored, "correct horsE"));
        assert!(!holds(&stored.replace("t=2", "t=1"), "correct horse"));
        assert!(!holds(&stored[..stored.len() - 4], "correct horse"));
        assert!(!holds("", ""));
    }
}
