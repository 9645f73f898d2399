//! A path as a module wrote it → the one string that policy, audit and wire
//! use, under an authority that is a constant of the connection. Nothing is
//! resolved, stripped or repaired: what two parsers could read differently is
//! refused. `http::PathAndQuery` and the WHATWG parser are not validators, so
//! neither decides anything here.

use crate::{Connection, Host, Limits, Refusal};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Where a request goes. Only [`Target::read`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Index into the connection's hosts.
    pub(crate) host: usize,
    /// `name`, or `name:port` when the port is not 443.
    pub(crate) authority: String,
    /// Percent-encoded path.
    pub(crate) path: String,
    /// Percent-encoded query, without `?`.
    pub(crate) query: Option<String>,
}

/// How often a path may be decoded until nothing of it is an escape. One that
/// means something is written with one or two.
const DECODED_MAX: usize = 8;

/// What RFC 3986 leaves out of a path, besides controls and non-ASCII.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The same for a query; brackets stay, `filter[x]=` is too common to touch.
const QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

impl Target {
    /// Reads what a module asked for.
    pub(crate) fn read(
        connection: &Connection,
        host: Option<&str>,
        target: &str,
        sdk: bool,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        refuse_controls(target)?;
        let (index, rest) = match absolute(target) {
            Some(rest) if sdk => absolute_host(connection, rest)?,
            Some(_) => {
                return Err(Refusal::HostNotInConnection(
                    "the path is an absolute URL; the host is the connection's".into(),
                ));
            }
            None => (select_host(connection, host)?, target),
        };
        let (path, query) = split(rest, limits, connection.overrides.encoded_slash)?;
        let authority = authority(&connection.hosts[index]);
        Ok(Self { host: index, authority, path, query })
    }

    /// Path and query as on the wire.
    pub(crate) fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The keys of the query, sorted and without their values, for the audit.
    pub(crate) fn query_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self
            .query
            .iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.is_empty())
            .map(|pair| match pair.split_once('=') {
                Some((key, _)) => key.to_owned(),
                // A pair without `=` may be a value (`?<token>`): never kept.
                None => "‹no key›".to_owned(),
            })
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }
}

/// `name`, or `name:port` when the port is not 443.
pub(crate) fn authority(host: &Host) -> String {
    let name = if host.name.contains(':') { format!("[{}]", host.name) } else { host.name.clone() };
    if host.port == 443 { name } else { format!("{name}:{}", host.port) }
}

/// The host a label, an exact name or a whole authority selects; the primary
/// without one.
pub(crate) fn select_host(connection: &Connection, wanted: Option<&str>) -> Result<usize, Refusal> {
    let hosts = &connection.hosts;
    let found = match wanted {
        None => (!hosts.is_empty()).then_some(0),
        Some(wanted) => hosts
            .iter()
            .position(|host| host.label == wanted)
            .or_else(|| hosts.iter().position(|host| host.name == wanted))
            .or_else(|| hosts.iter().position(|host| authority(host) == wanted)),
    };
    found.ok_or_else(|| {
        let wanted = wanted.unwrap_or_default();
        Refusal::HostNotInConnection(format!(
            "`{}` is not a host of the connection",
            wanted.chars().take(64).collect::<String>().escape_debug()
        ))
    })
}

/// Percent-encodes a path once, leaving what is already encoded.
pub(crate) fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

fn refuse_controls(target: &str) -> Result<(), Refusal> {
    let wrong = |what: &str| Err(Refusal::PathInvalid(format!("the path holds {what}")));
    // Controls are never stripped: WHATWG drops tab and newline, others do not.
    if target.chars().any(char::is_control) {
        return wrong("a control character");
    }
    if target.contains('\u{fffd}') {
        return wrong("a character that could not be decoded");
    }
    if target.starts_with(char::is_whitespace) {
        return wrong("white space at its start");
    }
    Ok(())
}

/// What follows `http(s)://` in any case.
fn absolute(target: &str) -> Option<&str> {
    let after = |scheme: &str| {
        let head = target.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then(|| &target[scheme.len()..])
    };
    after("https://").or_else(|| after("http://"))
}

/// An SDK's absolute URL, reduced to a path on one of the connection's hosts.
fn absolute_host<'a>(connection: &Connection, rest: &'a str) -> Result<(usize, &'a str), Refusal> {
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (named, rest) = rest.split_at(end);
    let found = connection.hosts.iter().position(|host| {
        let plain = authority(host);
        named == plain || (host.port == 443 && named.strip_suffix(":443") == Some(plain.as_str()))
    });
    let index = found.ok_or_else(|| {
        Refusal::HostNotInConnection("the URL's host is not one of the connection's".into())
    })?;
    Ok((index, if rest.is_empty() { "/" } else { rest }))
}

fn split(
    rest: &str,
    limits: &Limits,
    encoded_slash: bool,
) -> Result<(String, Option<String>), Refusal> {
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    if !path.starts_with('/') {
        let message = "the path does not start with `/`";
        // `\\host` is as good as `//host` to half the parsers of the world.
        return Err(if path.starts_with('\\') {
            Refusal::PathAmbiguous("the path holds a backslash".into())
        } else {
            Refusal::PathNotRelative(message.into())
        });
    }
    if rest.contains('#') {
        return Err(Refusal::PathInvalid("the path holds `#`; write it as %23".into()));
    }
    if path.len() > limits.path_bytes || query.is_some_and(|q| q.len() > limits.query_bytes) {
        return Err(too_long(limits));
    }
    check_path(path, encoded_slash)?;
    if let Some(query) = query {
        escapes(query)?;
    }
    let path = encode_path(path);
    let query = query.map(|query| utf8_percent_encode(query, QUERY).to_string());
    if path.len() > limits.path_bytes
        || query.as_ref().is_some_and(|q| q.len() > limits.query_bytes)
    {
        return Err(too_long(limits));
    }
    Ok((path, query))
}

fn too_long(limits: &Limits) -> Refusal {
    Refusal::PathTooLong(format!(
        "the path is over {} bytes or the query over {}",
        limits.path_bytes, limits.query_bytes
    ))
}

/// With `encoded_slash` a `%2F` stays as it is; what it would make of the path
/// where a server decodes it must be plain all the same.
fn check_path(path: &str, encoded_slash: bool) -> Result<(), Refusal> {
    let ambiguous = |what: &str| Err(Refusal::PathAmbiguous(format!("the path holds {what}")));
    if path.contains('\\') {
        return ambiguous("a backslash");
    }
    if path.contains("//") {
        return ambiguous("`//`");
    }
    for byte in escapes(path)? {
        match byte {
            b'/' if encoded_slash => {}
            b'/' => return ambiguous("an encoded slash"),
            b'\\' => return ambiguous("an encoded backslash"),
            0..=0x1f | 0x7f => {
                return Err(Refusal::PathInvalid("the path holds an encoded control".into()));
            }
            _ => {}
        }
    }
    let mut decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    for _ in 0..DECODED_MAX {
        if decoded.windows(2).any(|pair| pair == b"//") {
            return ambiguous("`//` once it is decoded");
        }
        for segment in decoded.split(|byte| *byte == b'/') {
            // `..;x` is a dot segment to servers that strip path parameters.
            let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
            if name == b"." || name == b".." {
                return ambiguous("a dot segment");
            }
        }
        // A vendor that decodes again would meet what was hidden from us.
        let hidden = escapes_bytes(&decoded);
        if hidden.is_empty() {
            return Ok(());
        }
        if hidden.iter().any(|b| matches!(b, b'.' | b'/' | b'\\' | 0..=0x1f | 0x7f)) {
            return ambiguous("a dot, slash or control that is encoded more than once");
        }
        decoded = percent_encoding::percent_decode(&decoded).collect();
    }
    ambiguous("escapes of escapes of escapes")
}

/// The bytes every escape stands for; a malformed escape is refused.
fn escapes(text: &str) -> Result<Vec<u8>, Refusal> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        match hex_pair(bytes, at + 1) {
            Some(byte) => found.push(byte),
            None => {
                return Err(Refusal::PathInvalid(
                    "the path holds `%` without two hexadecimal digits".into(),
                ));
            }
        }
    }
    Ok(found)
}

/// The bytes every well-formed escape stands for.
fn escapes_bytes(bytes: &[u8]) -> Vec<u8> {
    let percents = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    percents.filter_map(|(at, _)| hex_pair(bytes, at + 1)).collect()
}

fn hex_pair(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}
