//! The one grammar of a door: a request in origin form, in HTTP/1.1, for this
//! door by name, by no browser, that carries a token. Pure. What is asked of the
//! vendor in it is the session's to judge.

use crate::Refusal;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Version};

/// Where SDKs put what they take for the vendor's key. The last is for those
/// that need the others for something else.
const TOKENS: &[&str] = &["authorization", "x-api-key", "cambium-token"];

/// Chooses one of the connection's hosts by its label.
const HOST_LABEL: &str = "cambium-host";

/// Whether the request is one a door takes at all.
pub(super) fn check(head: &Parts, hosts: &[String]) -> Result<(), Refusal> {
    let wrong = |why: &str| Err(Refusal::HeaderRefused(why.into()));
    if head.version != Version::HTTP_11 {
        return wrong("a door speaks HTTP/1.1 only");
    }
    if head.method == Method::CONNECT {
        return Err(Refusal::MethodInvalid("CONNECT is never sent".into()));
    }
    let origin_form = head.uri.scheme().is_none()
        && head.uri.authority().is_none()
        && head.uri.path().starts_with('/');
    if !origin_form {
        let why = "the target must be a path; the host is the connection's";
        return Err(Refusal::PathNotRelative(why.into()));
    }
    let host = one(head, &HOST)?.unwrap_or_default();
    if !hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host)) {
        return Err(Refusal::HostNotInConnection("`Host` must be this door's address".into()));
    }
    let browser = |name: &HeaderName| *name == ORIGIN || name.as_str().starts_with("sec-");
    if head.headers.keys().any(browser) {
        return wrong("a browser's page has no business at a door");
    }
    let upgrades = |value: &http::HeaderValue| {
        value.as_bytes().split(|byte| *byte == b',').any(|word| {
            let word = word.trim_ascii();
            word.eq_ignore_ascii_case(b"upgrade") || word.eq_ignore_ascii_case(b"http2-settings")
        })
    };
    let switches = head.headers.contains_key(UPGRADE)
        || head.headers.contains_key("http2-settings")
        || head.headers.get_all(CONNECTION).iter().any(upgrades);
    if switches {
        return wrong("a door changes to no other protocol");
    }
    let length = one(head, &CONTENT_LENGTH)?;
    let coding = one(head, &TRANSFER_ENCODING)?;
    if length.is_some() && coding.is_some() {
        return wrong("a body has a length or comes in chunks, not both");
    }
    if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"chunked")) {
        return wrong("a body's only transfer coding is `chunked`");
    }
    Ok(())
}

/// The token, wherever it stands; two that differ are none.
pub(super) fn token(head: &Parts) -> Result<Option<&[u8]>, Refusal> {
    let mut found: Option<&[u8]> = None;
    for name in TOKENS {
        let name = HeaderName::from_static(name);
        let Some(value) = one(head, &name)? else { continue };
        let value = match value.split_first_chunk::<7>() {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest,
            _ if name == AUTHORIZATION => continue,
            _ => value,
        };
        if found.is_some_and(|before| before != value) {
            return Err(Refusal::RunClosed("the request carries two tokens".into()));
        }
        found = Some(value);
    }
    Ok(found)
}

/// The host chosen and the headers the session is asked to send, without what
/// was for the door.
pub(super) fn passed_on(head: &Parts) -> (Option<String>, Vec<(String, Vec<u8>)>) {
    let ours = |name: &str| {
        TOKENS.contains(&name)
            || name == HOST_LABEL
            || matches!(name, "host" | "content-length" | "transfer-encoding" | "connection")
    };
    let headers = head
        .headers
        .iter()
        .filter(|(name, _)| !ours(name.as_str()))
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    let host = head.headers.get(HOST_LABEL);
    (host.map(|label| String::from_utf8_lossy(label.as_bytes()).into_owned()), headers)
}

/// A header's value, where it is there once.
fn one<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<&'a [u8]>, Refusal> {
    let mut values = head.headers.get_all(name).iter();
    let value = values.next().map(http::HeaderValue::as_bytes);
    match values.next() {
        None => Ok(value),
        Some(_) => Err(Refusal::HeaderRefused(format!("`{name}` is there twice"))),
    }
}
