//! `url_path`: the secret is part of the path, before what a module asked for.
//! Policy, approval and audit see the module's path; only the wire has both. A
//! secret that could change where the path leads is refused at entry.

use super::Unfit;
use zeroize::Zeroizing;

/// Bytes that mean nothing in a path and need no encoding.
pub(super) fn check_secret(secret: &[u8]) -> Result<(), Unfit> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~:=+@".contains(b);
    if !secret.iter().all(plain) {
        return Err("holds something else than letters, digits and `-._~:=+@`");
    }
    if secret == b"." || secret.windows(2).any(|two| two == b"..") {
        return Err("holds a dot segment");
    }
    Ok(())
}

/// The path and query as sent.
pub(super) fn place(template: &str, secret: &[u8], target: &str) -> Zeroizing<Vec<u8>> {
    let (before, after) = template.split_once("{token}").unwrap_or((template, ""));
    let parts = [before.as_bytes(), secret, after.as_bytes(), target.as_bytes()];
    Zeroizing::new(parts.concat())
}
