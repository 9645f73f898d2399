//! Makes ids, tokens and codes, and the hashes stored instead of the latter.
//! An id is UUIDv7 text made from the time handed in; what must not be guessed
//! (asks, tokens, sessions, codes) is at least 128 bits of the system's
//! randomness.

use crate::port::SecretHash;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cambium_proxy::{AskId, StoreFault};
use sha2::{Digest, Sha256};

/// Said in front of an agent's token, so that a leaked one can be recognised.
const TOKEN_PREFIX: &str = "cambium_";
/// Base 32 without the letters that read as digits (Crockford).
const CODE_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 26 letters of 5 bits hold 130 bits.
const CODE_LETTERS: usize = 26;

/// A new id: UUIDv7 text.
pub(crate) fn new_id(now_ms: i64) -> Result<String, StoreFault> {
    let millis = u64::try_from(now_ms).unwrap_or_default();
    let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random::<10>()?).into_uuid();
    Ok(uuid.to_string())
}

/// A new ask id: 128 random bits, hexadecimal.
pub(crate) fn new_ask_id() -> Result<AskId, StoreFault> {
    Ok(AskId::new(format!("{:032x}", u128::from_be_bytes(random::<16>()?))))
}

/// A new proposal id: 128 random bits, hexadecimal.
pub(crate) fn new_proposal_id() -> Result<String, StoreFault> {
    Ok(format!("{:032x}", u128::from_be_bytes(random::<16>()?)))
}

/// A new agent token: 256 random bits.
pub(crate) fn new_token() -> Result<String, StoreFault> {
    Ok(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<32>()?)))
}

/// A new console session's token: 256 random bits.
pub(crate) fn new_session() -> Result<String, StoreFault> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// A new one-time code, in groups a person can type.
pub(crate) fn new_code() -> Result<String, StoreFault> {
    let letters = random::<CODE_LETTERS>()?
        .map(|byte| char::from(CODE_ALPHABET[usize::from(byte) % CODE_ALPHABET.len()]));
    let groups: Vec<String> = letters.chunks(7).map(|group| group.iter().collect()).collect();
    Ok(groups.join("-"))
}

/// Reads a code as a person may have typed it: case, spaces and hyphens aside.
pub(crate) fn code_hash(typed: &str) -> SecretHash {
    let plain: String = typed
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| match c.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        })
        .collect();
    secret_hash(&plain)
}

/// What is stored instead of a token, session or code.
pub(crate) fn secret_hash(text: &str) -> SecretHash {
    Sha256::digest(text.as_bytes()).into()
}

/// Fresh randomness. A system without any is a fault of the machine: what
/// needed it is not carried out.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreFault> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreFault::Unavailable(format!("no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn b_a_code_is_read_as_a_person_types_it() {
        let code = new_code().unwrap();
        assert_eq!(code.len(), CODE_LETTERS + 3);
        let typed = code.to_uppercase().replace('-', " ").replace('0', "O").replace('1', "l");
        assert_eq!(code_hash(&typed), code_hash(&code));
        assert_ne!(code_hash(&new_code().unwrap()), code_hash(&code));
    }

    #[test]
    fn ids_sort_by_time() {
        let (early, late) = (new_id(1_000).unwrap(), new_id(2_000).unwrap());
        assert!(early < late);
        assert_eq!(&late[14..15], "7");
    }
}
