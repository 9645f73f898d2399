//! `cookie`: the secret is the value of one cookie. A module's own `Cookie`
//! header never passes, and a vendor's `Set-Cookie` is never kept, so this
//! cookie is the only one a vendor ever sees.

use super::Unfit;
use super::header::header;
use http::header::{HeaderName, HeaderValue};

/// RFC 6265's cookie-octets: nothing that ends a cookie or begins another.
pub(super) fn check_secret(secret: &[u8]) -> Result<(), Unfit> {
    let ends = |byte: &u8| matches!(byte, b' ' | b'"' | b',' | b';' | b'\\');
    if secret.iter().any(ends) {
        return Err("holds a space, quote, comma, semicolon or backslash, which end a cookie");
    }
    Ok(())
}

/// `cookie: <name>=<secret>`.
pub(super) fn place(name: &str, secret: &[u8]) -> Result<(HeaderName, HeaderValue), Unfit> {
    header("cookie", &format!("{name}="), secret)
}
