//! Which headers pass, each way, from lists: what is not named does not pass.
//! Framing, host, hops and credentials are ours; a module's are dropped and
//! noted, those that try to change what a request means are refused. Redaction
//! of values that pass is `scrub`'s, the credential is `credential.rs`'s.

use crate::target::{Target, authority};
use crate::{Connection, Limits, Refusal};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Ours on every request, so that a vendor can name us and no module can pose
/// as something else.
pub(crate) const USER_AGENT: &str = concat!("cambium/", env!("CARGO_PKG_VERSION"));

/// The one content coding we decode.
const ACCEPT_ENCODING: &str = "gzip";

/// Request headers that mean something to a vendor and nothing to a hop.
/// `range` is left out, unless a person opens it: slices of an echo evade redaction.
const REQUEST: &[&str] = &[
    "accept",
    "accept-language",
    "content-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "prefer",
    "x-idempotency-key",
];

/// Dated API versions: `notion-version`, `x-github-api-version`.
const REQUEST_SUFFIX: &str = "-version";

/// Headers that change the method, the target or the coding behind the
/// policy's back. Dropping them would send something else than was meant.
const REFUSED: &[&str] =
    &["content-encoding", "x-http-method", "x-http-method-override", "x-method-override"];

/// Headers every client sets and we set ourselves: dropping a module's changes
/// nothing it could have meant.
pub(crate) const ALWAYS_OURS: &[&str] =
    &["accept-encoding", "connection", "content-length", "host", "user-agent"];

/// Response headers a module may read.
const RESPONSE: &[&str] = &[
    "accept-ranges",
    "age",
    "allow",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-range",
    "content-type",
    "date",
    "deprecation",
    "etag",
    "expires",
    "last-modified",
    "link",
    "preference-applied",
    "request-id",
    "retry-after",
    "sunset",
    "vary",
    "x-correlation-id",
    "x-next-page",
    "x-page",
    "x-per-page",
    "x-prev-page",
    "x-request-id",
    "x-total",
    "x-total-count",
    "x-total-pages",
];

/// Rate limits under the names vendors give them.
const RESPONSE_PREFIXES: &[&str] = &["ratelimit-", "x-rate-limit-", "x-ratelimit-"];

/// Names the host a redirect points at when it is another one; the redirect
/// itself is never followed and its address not shown.
const REDIRECT_HOST: &str = "x-cambium-redirect-host";

/// What passed and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestHeaders {
    /// In wire order, ours included, without host, length and credential.
    pub(crate) passed: Vec<(String, String)>,
    /// `header_dropped:<name>`, for the audit.
    pub(crate) notes: Vec<String>,
}

/// Sorts a module's headers into passed, dropped and refused.
pub(crate) fn request_headers(
    given: &[(String, Vec<u8>)],
    connection: &Connection,
    limits: &Limits,
) -> Result<RequestHeaders, Refusal> {
    let total: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if given.len() > limits.header_count || total > limits.header_bytes {
        return Err(Refusal::HeaderRefused(format!(
            "more than {} headers or {} bytes of them",
            limits.header_count, limits.header_bytes
        )));
    }
    let mut headers = RequestHeaders::default();
    for (name, value) in given {
        let name = request_name(name)?;
        if !passes(&name, connection) {
            let note = format!("header_dropped:{name}");
            if !headers.notes.contains(&note) {
                headers.notes.push(note);
            }
            continue;
        }
        let value = request_value(&name, value)?;
        if headers.passed.iter().any(|(other, _)| *other == name) {
            return Err(Refusal::HeaderRefused(format!("`{name}` is there twice")));
        }
        headers.passed.push((name, value));
    }
    headers.passed.push(("accept-encoding".into(), ACCEPT_ENCODING.into()));
    headers.passed.push(("user-agent".into(), USER_AGENT.into()));
    Ok(headers)
}

fn request_name(name: &str) -> Result<String, Refusal> {
    let lower = name.to_ascii_lowercase();
    let shown = || name.chars().take(64).collect::<String>().escape_debug().to_string();
    // `_` and `-` are the same to servers that map headers to variables, so
    // one name must not be able to pose as another.
    let token = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if lower.is_empty() || !lower.bytes().all(token) {
        return Err(Refusal::HeaderRefused(format!("`{}` is not a header name we send", shown())));
    }
    if REFUSED.contains(&lower.as_str()) {
        return Err(Refusal::HeaderRefused(format!("`{lower}` changes what the request means")));
    }
    Ok(lower)
}

fn passes(name: &str, connection: &Connection) -> bool {
    let overrides = &connection.overrides;
    let opened = overrides.headers.iter().any(|header| header == name)
        || (overrides.range && name == "range");
    // `proxy-version` ends like a version and is a hop's all the same.
    let dated = name.ends_with(REQUEST_SUFFIX) && !crate::overrides::never(name);
    let usual = REQUEST.contains(&name) || dated;
    !connection.scheme.owns_header(name) && (usual || opened)
}

fn request_value(name: &str, value: &[u8]) -> Result<String, Refusal> {
    let plain = value.iter().all(|b| (0x20..0x7f).contains(b) || *b == b'\t');
    let trimmed =
        !matches!(value.first(), Some(b' ' | b'\t')) && !matches!(value.last(), Some(b' ' | b'\t'));
    match std::str::from_utf8(value) {
        Ok(text) if plain && trimmed => Ok(text.to_owned()),
        _ => Err(Refusal::HeaderRefused(format!(
            "the value of `{name}` holds something else than visible ASCII"
        ))),
    }
}

/// The headers of a reply a module may read, before redaction.
pub(crate) fn response_headers(
    headers: &HeaderMap,
    connection: &Connection,
    target: &Target,
) -> Vec<(String, String)> {
    let mut passed = Vec::new();
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        if name == http::header::LOCATION {
            passed.extend(location(value, connection, target));
        } else if reads(name) {
            passed.push((name.as_str().to_owned(), value.to_owned()));
        }
    }
    passed
}

fn reads(name: &HeaderName) -> bool {
    let name = name.as_str();
    RESPONSE.contains(&name)
        || name.ends_with(REQUEST_SUFFIX)
        || RESPONSE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A redirect on the request's own host as the path a module can ask for; any
/// other as the host it names.
fn location(value: &str, connection: &Connection, target: &Target) -> Option<(String, String)> {
    let host = &connection.hosts[target.host];
    let limits = Limits::default();
    let here = Some(host.label.as_str());
    if let Ok(read) = Target::read(connection, here, value, true, &limits)
        && read.authority == authority(host)
        && !value.get(..7).is_some_and(|head| head.eq_ignore_ascii_case("http://"))
    {
        return Some(("location".into(), read.path_and_query()));
    }
    Some((REDIRECT_HOST.into(), redirect_host(value)))
}

/// The host of a foreign redirect, or `unreadable`: never the vendor's text.
fn redirect_host(value: &str) -> String {
    let after_scheme = value.split_once("://").map(|(_, rest)| rest);
    let after_slashes = || {
        let rest = value.trim_start_matches(['/', '\\']);
        (value.len() - rest.len() >= 2 || value.starts_with('\\')).then_some(rest)
    };
    let named = after_scheme.or_else(after_slashes).unwrap_or_default();
    let named = named.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let named = named.rsplit('@').next().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
    if named.is_empty() || named.len() > 253 || !named.bytes().all(plain) {
        return "unreadable".into();
    }
    named.to_ascii_lowercase()
}

/// The wire's header map of what passed.
pub(crate) fn wire(passed: &[(String, String)]) -> Result<HeaderMap, Refusal> {
    let mut map = HeaderMap::with_capacity(passed.len() + 2);
    for (name, value) in passed {
        let refused = || Refusal::HeaderRefused(format!("`{name}` is malformed"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        let value = HeaderValue::from_str(value).map_err(|_| refused())?;
        map.append(name, value);
    }
    Ok(map)
}
