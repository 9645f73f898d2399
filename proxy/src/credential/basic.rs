//! `basic`: user name and password as one base64 text. The pair and the text
//! are as secret as the password: both are hidden in replies.

use super::Unfit;
use super::header::header;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderName, HeaderValue};
use zeroize::Zeroizing;

/// What a secret must be besides visible ASCII.
pub(super) fn check_secret(username: Option<&str>, secret: &[u8]) -> Result<(), Unfit> {
    if username.is_none() && secret.contains(&b':') {
        return Err("holds `:`, which ends a user name in this scheme");
    }
    Ok(())
}

/// The pair and its base64.
pub(super) fn pair(username: Option<&str>, secret: &[u8]) -> [Zeroizing<Vec<u8>>; 2] {
    let mut pair = Zeroizing::new(Vec::with_capacity(secret.len() + 64));
    match username {
        Some(username) => {
            pair.extend_from_slice(username.as_bytes());
            pair.push(b':');
            pair.extend_from_slice(secret);
        }
        None => {
            pair.extend_from_slice(secret);
            pair.push(b':');
        }
    }
    let encoded = Zeroizing::new(STANDARD.encode(&*pair).into_bytes());
    [pair, encoded]
}

/// The header of an encoded pair.
pub(super) fn place(encoded: &[u8]) -> Result<(HeaderName, HeaderValue), Unfit> {
    header("authorization", "Basic ", encoded)
}
