//! The rules for the text of a path, as far as it is written out, and the
//! template it makes. Pure. The proxy applies its own rules to every path it is
//! given; these only say earlier what it would say.
//!
//! A hole is taken to stay inside its segment only when its text cannot hold a
//! `/`, `?` or `#` (percent-encoded, a number, one of some words). Any other
//! value before the query makes the whole path `Any`: a template that claimed
//! less would make the proxy refuse calls that the author meant, and one that
//! claimed more would let a person allow a path nobody showed them.

use cambium_proxy::PathPattern;

/// Longest path the proxy sends, in bytes.
const PATH_MAX: usize = 8 * 1024;

/// A piece of a path expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Written out.
    Text(String),
    /// A value that stays inside one segment.
    Segment,
    /// A value that may be anything.
    Open,
}

/// Why a literal path is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathFault {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The template of a path, its query dropped.
pub(super) fn template(parts: &[Part]) -> Result<PathPattern, PathFault> {
    // Each hole is one NUL, which no path may hold, until the text is judged.
    let mut path = String::new();
    let mut open = false;
    'parts: for part in parts {
        match part {
            Part::Text(text) => {
                if text.contains('\0') {
                    return Err(control());
                }
                let end = text.find('?');
                path.push_str(&text[..end.unwrap_or(text.len())]);
                if end.is_some() {
                    break 'parts;
                }
            }
            Part::Segment if !path.ends_with('\0') => path.push('\0'),
            Part::Segment => {}
            Part::Open => {
                open = true;
                if !path.ends_with('\0') {
                    path.push('\0');
                }
            }
        }
    }
    judge(&path)?;
    if open {
        return Ok(PathPattern::Any);
    }
    Ok(PathPattern::Template(encoded(&path)))
}

/// A word that means itself inside a segment.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~'))
}

fn judge(path: &str) -> Result<(), PathFault> {
    let fault = |code, message: &str| Err(PathFault { code, message: message.to_owned() });
    if path.len() > PATH_MAX {
        return fault("path_too_long", "a path is at most 8192 bytes");
    }
    if names_host(path) {
        return fault(
            "host_in_path",
            "the path names a scheme or host; start it with one `/`, the connection supplies the host",
        );
    }
    if path.chars().any(|character| character.is_control() && character != '\0') {
        return Err(control());
    }
    // A value may come first, and then nothing is known of how it begins.
    if !path.starts_with(['/', '\0']) && !path.starts_with('\\') {
        return fault("path_not_relative", "a path starts with one `/`");
    }
    if path.contains('\\') {
        return fault("path_ambiguous", "a path holds no backslash");
    }
    if path.contains("//") {
        return fault("path_ambiguous", "a path holds no empty segment (`//`)");
    }
    if path.contains('#') {
        return fault("path_invalid", "a path has no fragment (`#`); encode the value");
    }
    escapes(path)?;
    let dots = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    if path.split('/').any(dots) {
        return fault("path_ambiguous", "a path holds no `.` or `..` segment");
    }
    Ok(())
}

/// `https:…`, `javascript:…`: a scheme before the first `/`.
fn names_host(path: &str) -> bool {
    let path = path.trim_start_matches(|character: char| character <= ' ');
    let head = path.split('/').next().unwrap_or("");
    head.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

fn escapes(path: &str) -> Result<(), PathFault> {
    let bytes = path.as_bytes();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        let code = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let (code, message) = match code {
            None => ("path_invalid", "`%` must be followed by two hexadecimal digits"),
            Some(b'/' | b'\\') => {
                ("path_ambiguous", "an encoded slash or backslash hides where a segment ends")
            }
            Some(0..=0x1f | 0x7f) => ("path_invalid", "a path holds no control character"),
            Some(_) => continue,
        };
        return Err(PathFault { code, message: message.to_owned() });
    }
    Ok(())
}

fn control() -> PathFault {
    PathFault { code: "path_invalid", message: "a path holds no control character".to_owned() }
}

/// The text as the wire will have it, so that the proxy compares like with
/// like, and `{}` for each hole. A literal brace is encoded, so no literal text
/// can pass for a hole.
fn encoded(path: &str) -> String {
    use std::fmt::Write as _;
    let mut template = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            0 => template.push_str("{}"),
            b' ' | b'"' | b'<' | b'>' | b'[' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                let _ = write!(template, "%{byte:02X}");
            }
            byte => template.push(char::from(byte)),
        }
    }
    template
}
