//! `api_key_query`: the secret is a query parameter. A module's own parameters
//! that a vendor could read as that one are taken out before the policy sees
//! the request, so that the vendor gets the name once, with our value.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use zeroize::Zeroizing;

/// RFC 3986's unreserved characters stay as they are.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How often a name is decoded before it is compared: once for the vendor, once
/// for whatever stands before it.
const DECODINGS: usize = 2;

/// A query without the parameters that read as one that is `ours`, and how many
/// were taken out.
pub(super) fn without(query: &str, ours: impl Fn(&str) -> bool) -> (Option<String>, usize) {
    let mut dropped = 0;
    let mut reads_as_ours = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        let found = ours(&plain(name));
        dropped += usize::from(found);
        found
    };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        // `;` parts pairs for some servers and is data for others: what stands
        // behind one can only be left out, never reordered.
        let parts: Vec<&str> = pair.split(';').filter(|part| !reads_as_ours(part)).collect();
        if !parts.is_empty() {
            kept.push(parts.join(";"));
        }
    }
    if dropped == 0 {
        return (Some(query.to_owned()), 0);
    }
    ((!kept.is_empty()).then(|| kept.join("&")), dropped)
}

/// A name as the laxest of servers reads it: decoded, one case, up to `[`, and
/// what PHP turns into `_` as that.
pub(super) fn plain(name: &str) -> String {
    let mut name = name.to_owned();
    for _ in 0..DECODINGS {
        name = percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned();
    }
    let name = name.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let name = name.split(['[', '\0']).next().unwrap_or_default();
    name.to_ascii_lowercase().replace(['.', ' ', '-'], "_")
}

/// Path and query as sent.
pub(super) fn place(parameter: &str, secret: &[u8], target: &str) -> Zeroizing<Vec<u8>> {
    let joint = match target.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    let value = value(secret);
    let length = target.len() + joint.len() + parameter.len() + 1 + value.len();
    let mut placed = Zeroizing::new(Vec::with_capacity(length));
    placed.extend_from_slice(target.as_bytes());
    placed.extend_from_slice(joint.as_bytes());
    placed.extend_from_slice(parameter.as_bytes());
    placed.push(b'=');
    placed.extend_from_slice(&value);
    placed
}

/// The secret as it stands in a query.
pub(super) fn value(secret: &[u8]) -> Zeroizing<Vec<u8>> {
    // A secret is visible ASCII, see `check_secret`.
    let secret = Zeroizing::new(String::from_utf8_lossy(secret).into_owned());
    let mut value = Zeroizing::new(Vec::with_capacity(3 * secret.len()));
    for part in utf8_percent_encode(&secret, VALUE) {
        value.extend_from_slice(part.as_bytes());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d01_names_a_vendor_could_read_as_ours() {
        let ours = |name: &str| name == plain("api_key");
        for (query, kept) in [
            ("a=1", Some("a=1")),
            ("", Some("")),
            ("a=1&&b", Some("a=1&&b")),
            ("api_key=x", None),
            ("a=1&api_key=x&b=2", Some("a=1&b=2")),
            ("api%5Fkey=x", None),
            ("api%255Fkey=x", None),
            ("API_KEY=x&Api_Key", None),
            ("a=1&api_key=x&api_key=y", Some("a=1")),
            ("api.key=x&api+key=x&api%20key=x&+api_key=x", None),
            ("api_key[]=x&api_key%5Ba%5D=x&api_key[=x", None),
            ("api_key%00=x", None),
            ("a=1;api_key=x&b=2", Some("a=1&b=2")),
            ("a=b;c", Some("a=b;c")),
            ("my_api_key=1&api_key2=3&api=key", Some("my_api_key=1&api_key2=3&api=key")),
        ] {
            assert_eq!(without(query, ours).0.as_deref(), kept, "{query}");
        }
    }

    #[test]
    fn a_key_goes_last_and_encoded() {
        for (target, placed) in
            [("/x", "/x?k=a%26b"), ("/x?", "/x?k=a%26b"), ("/x?a=1", "/x?a=1&k=a%26b")]
        {
            assert_eq!(&place("k", b"a&b", target)[..], placed.as_bytes());
        }
    }
}
