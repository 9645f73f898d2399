//! What must hold for any bytes, as functions that panic where it does not.
//! `fuzz/` calls them with a fuzzer's bytes (`./dev fuzz`), the tests below with
//! bytes of their own making, the same each time. Not part of a build for use.

use crate::effect::{Asked, counts_as};
use crate::headers::{self, USER_AGENT};
use crate::scrub::{Coding, Decoder, Redactor, readings};
use crate::target::Target;
use crate::{
    AgentId, Connection, ConnectionId, ConnectionStatus, Effect, HeldRequest, Host, Limits,
    Overrides, PersonId, Preview, RunId, Scheme, request_digest,
};
use bytes::Bytes;

const HOST: &str = "api.acme.test";
const SECRET: &str = "sk_live_S3CRET+/0123456789";

fn connection(overrides: Overrides) -> Connection {
    let host = |label: &str, name: &str| Host { label: label.into(), name: name.into(), port: 443 };
    Connection {
        id: ConnectionId::new("connection"),
        person: PersonId::new("person"),
        slug: "acme".into(),
        vendor: "acme".into(),
        display_name: "Acme".into(),
        hosts: vec![host("api", HOST), host("files", "files.acme.test")],
        scheme: Scheme::Bearer,
        exceptions: Vec::new(),
        ca_pem: None,
        overrides,
        generation: 1,
        status: ConnectionStatus::Connected,
    }
}

/// Splits off the first byte.
fn first(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// A path never leaves the authority, is the same string for policy and wire,
/// is its own reading, and reads one way only.
pub fn path(data: &[u8]) {
    let (flags, rest) = first(data);
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (sdk, slash) = (flags & 1 != 0, flags & 2 != 0);
    let connection = connection(Overrides { encoded_slash: slash, ..Overrides::default() });
    let limits = Limits::default();
    let Ok(target) = Target::read(&connection, None, text, sdk, &limits) else { return };
    let wire = target.path_and_query();
    let hosts = [HOST, "files.acme.test"];
    assert_eq!(target.authority, hosts[target.host], "{text:?}");
    assert!(sdk || target.host == 0, "{text:?}");
    assert!(wire.starts_with('/') && !target.path.contains("//"), "{text:?}: {wire}");
    assert!(wire.bytes().all(|b| (0x21..0x7f).contains(&b)), "{text:?}: {wire}");
    assert!(!wire.contains(['\\', '#']), "{text:?}: {wire}");
    let uri = http::Uri::builder()
        .scheme("https")
        .authority(target.authority.as_str())
        .path_and_query(wire.as_str())
        .build();
    let uri = uri.unwrap_or_else(|error| panic!("{text:?}: {wire}: {error}"));
    assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some(&*target.authority));
    assert_eq!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), Some(&*wire));
    let label = connection.hosts[target.host].label.as_str();
    let again = Target::read(&connection, Some(label), &wire, false, &limits);
    assert_eq!(again.as_ref(), Ok(&target), "{text:?}");
    // As whoever decodes as often as they like would read it.
    let mut read = target.path.clone();
    for _ in 0..4 {
        for segment in read.split('/') {
            let name = segment.split(';').next().unwrap_or_default();
            assert!(name != "." && name != "..", "{text:?}: {read}");
        }
        assert!(!read.contains('\\') && !read.chars().any(char::is_control), "{text:?}: {read}");
        assert!(!read.contains("//"), "{text:?}: {read}");
        read = percent_encoding::percent_decode_str(&read).decode_utf8_lossy().into_owned();
    }
}

/// What passes is on a list, ours is ours, and the wire takes it.
pub fn header_filter(data: &[u8]) {
    let (flags, rest) = first(data);
    let opened = if flags & 1 == 0 { Vec::new() } else { vec!["sudo".to_owned()] };
    let connection =
        connection(Overrides { headers: opened, range: flags & 2 != 0, ..Overrides::default() });
    let given: Vec<(String, Vec<u8>)> = rest
        .split(|byte| *byte == 0xff)
        .map(|line| {
            let mut halves = line.splitn(2, |byte| *byte == b':');
            let name = String::from_utf8_lossy(halves.next().unwrap_or_default()).into_owned();
            (name, halves.next().unwrap_or_default().to_vec())
        })
        .collect();
    let Ok(found) = headers::request_headers(&given, &connection, &Limits::default()) else {
        return;
    };
    let mut names: Vec<&str> = found.passed.iter().map(|(name, _)| name.as_str()).collect();
    for name in &names {
        for never in ["authorization", "host", "cookie", "connection", "te", "expect", "upgrade"] {
            assert_ne!(*name, never);
        }
        let frames = matches!(*name, "content-length" | "transfer-encoding");
        assert!(!frames && !name.starts_with("proxy-") && !name.contains('_'), "{name}");
        assert!(*name != "range" || flags & 2 != 0);
        assert!(*name != "sudo" || flags & 1 != 0);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a header twice");
    let wire = headers::wire(&found.passed).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(wire.get("user-agent").map(|value| value.as_bytes()), Some(USER_AGENT.as_bytes()));
    assert_eq!(wire.get("accept-encoding").map(|value| value.as_bytes()), Some(&b"gzip"[..]));
    assert!(
        wire.values().all(|value| !value.as_bytes().iter().any(|b| matches!(b, b'\r' | b'\n' | 0)))
    );
}

/// Most bytes of a scrubber's body: below what searching any of them may cost.
const BODY: usize = 2 * 1024;

/// Whatever the chunks, the scrubber's output is the naive one's, and holds no
/// secret.
pub fn scrubber(data: &[u8]) {
    let (step, rest) = first(data);
    let redactor = Redactor::new(&[SECRET.as_bytes()], "acme");
    let needles = redactor.needles();
    // High bytes stand for needles, whole or cut short, plain or escaped in some
    // of their bytes, so that hits are common.
    let mut body = Vec::new();
    for (at, byte) in rest.iter().enumerate() {
        if body.len() > BODY {
            break;
        }
        let (needle, _) = needles[usize::from(byte & 0x1f) % needles.len()];
        match byte {
            0x80..=0x9f => body.extend(needle),
            0xa0..=0xbf => body.extend(&needle[..needle.len() - 1]),
            0xc0..=0xff => escape(needle, at + usize::from(*byte), &mut body),
            _ => body.push(*byte),
        }
    }
    let mut stream = redactor.stream();
    let mut found = Vec::new();
    let mut size = usize::from(step) % 61 + 1;
    let mut left = body.as_slice();
    while !left.is_empty() {
        let (chunk, after) = left.split_at(size.min(left.len()));
        found.extend_from_slice(&stream.push(Bytes::copy_from_slice(chunk)));
        left = after;
        size = size * 7 % 61 + 1;
    }
    found.extend_from_slice(&stream.finish());
    assert_eq!(
        String::from_utf8_lossy(&found),
        String::from_utf8_lossy(&naively(&body, &needles)),
        "{:?} by {step}",
        String::from_utf8_lossy(&body)
    );
    assert!(memchr::memmem::find(&found, SECRET.as_bytes()).is_none());
}

/// Writes some bytes of a needle as one escape or another, as `seed` says.
fn escape(needle: &[u8], seed: usize, out: &mut Vec<u8>) {
    for (at, byte) in needle.iter().enumerate() {
        let text = match (seed + at * (seed % 5)) % 13 {
            0 => format!("\\u{byte:04x}"),
            1 => format!("%{byte:02X}"),
            2 => format!("&#{byte};"),
            3 => format!("&#x{byte:x}"),
            4 => format!("\\\\u{byte:04X}"),
            5 => format!("%25{byte:02x}"),
            6 => format!("&amp;#{byte};"),
            7 => format!("\\x{byte:02x}"),
            _ => char::from(*byte).to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Every byte that is part of a needle in any spelling is hidden; overlapping
/// ones as one. Looks at every place for every needle and goes every way.
fn naively(body: &[u8], needles: &[(&[u8], bool)]) -> Vec<u8> {
    let mut ends = vec![0; body.len()];
    for (at, end) in ends.iter_mut().enumerate() {
        let here = needles.iter().filter_map(|(needle, spelled)| match spelled {
            true => furthest(body, at, needle),
            false => body[at..].starts_with(needle).then(|| at + needle.len()),
        });
        *end = here.max().unwrap_or(0);
    }
    let (mut out, mut at) = (Vec::new(), 0);
    while at < body.len() {
        let mut end = ends[at];
        if end == 0 {
            out.push(body[at]);
            at += 1;
            continue;
        }
        let mut within = at;
        while within < end {
            end = end.max(ends[within]);
            within += 1;
        }
        out.extend_from_slice(b"[REDACTED:acme]");
        at = end;
    }
    out
}

/// Where a needle that stands at a place ends at the latest.
fn furthest(body: &[u8], at: usize, needle: &[u8]) -> Option<usize> {
    let mut places = std::collections::BTreeSet::from([at]);
    for byte in needle {
        let open = places.iter().filter(|place| **place < body.len());
        places = open
            .flat_map(|place| {
                let read = readings(body, *place);
                let meant: Vec<usize> =
                    read.iter().filter(|it| it.byte == *byte).map(|it| it.end).collect();
                meant
            })
            .collect();
    }
    places.last().copied()
}

/// A preview is JSON, says what would go, and shows a bounded part of the body.
pub fn preview(data: &[u8]) {
    let (flags, body) = first(data);
    let connection = connection(Overrides::default());
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    let target = if flags & 1 == 0 { "/x" } else { "/x?a=1" };
    let body = match flags & 2 {
        0 => body.to_vec(),
        _ => body.iter().copied().cycle().take(if body.is_empty() { 0 } else { 70_000 }).collect(),
    };
    let digest = request_digest("POST", HOST, target, &headers, &body);
    let length = body.len();
    let held = HeldRequest {
        run: RunId::new("run"),
        person: PersonId::new("person"),
        agent: AgentId::new("agent"),
        tool: "acme__tool".into(),
        version: digest,
        connection: connection.id.clone(),
        generation: 1,
        effect: Effect::Write,
        method: "POST".into(),
        authority: HOST.into(),
        target: target.into(),
        headers,
        body: body.into(),
        digest,
    };
    let shown = Preview::of(&held, &connection).request;
    assert_eq!((shown.body_bytes, shown.digest), (length, digest.to_string()));
    let text = shown.body.unwrap_or_default();
    match shown.body_encoding {
        None => assert_eq!(length, 0),
        Some("utf-8") => assert!(text.len() <= 64 * 1024 && held.body.starts_with(text.as_bytes())),
        Some(_) => assert!(text.len() <= 64 * 1024 * 4 / 3 + 4),
    }
    serde_json::to_string(&Preview::of(&held, &connection)).unwrap_or_else(|e| panic!("{e}"));
}

/// A GraphQL body is a read or a write, and never a panic or a wait.
pub fn graphql(data: &[u8]) {
    let overrides = Overrides { graphql: Some("/graphql".into()), ..Overrides::default() };
    let target = Target { host: 0, authority: HOST.into(), path: "/graphql".into(), query: None };
    let text = String::from_utf8_lossy(data);
    let body = serde_json::json!({ "query": text }).to_string();
    let ask = |body: &[u8]| {
        let content_type = Some("application/json");
        let asked = Asked { method: "POST", target: &target, content_type, body };
        counts_as(&overrides, Effect::Write, &asked)
    };
    ask(data);
    let read = ask(body.as_bytes()) == Effect::Read;
    // Without the word outside of strings and comments there is no mutation; with
    // nothing but the word there is no query.
    assert!(!(read && text.trim_start().starts_with("mutation")), "{text:?}");
}

/// A gzip body never grows past its caps.
pub fn decoder(data: &[u8]) {
    let (step, rest) = first(data);
    let limits = Limits { response_bytes: 64 * 1024, ..Limits::default() };
    let mut decoder = Decoder::new(Coding::Gzip, &limits);
    let mut total = 0;
    for chunk in rest.chunks(usize::from(step) + 1) {
        match decoder.push(Bytes::copy_from_slice(chunk)) {
            Ok(bytes) => total += bytes.len(),
            Err(_) => return,
        }
        assert!(total <= limits.response_bytes);
    }
    if let Ok(bytes) = decoder.finish() {
        assert!(total + bytes.len() <= limits.response_bytes);
    }
}

#[cfg(test)]
mod tests;
