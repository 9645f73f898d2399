//! The address of a page, strictly: https, a host that may be named, no user,
//! and a target that reads the same to everyone. Pure; what the host resolves to
//! is the guard's when it is dialled.

use super::PageReach;
use crate::resolve::check_host;
use crate::target::authority;
use crate::{Host, Refusal};
use std::fmt::Write as _;

/// Longest address, bytes: a query can carry what an agent knows away.
const URL_BYTES: usize = 2048;
/// Query keys that a row keeps.
const KEYS: usize = 32;

/// An address that may be read as far as its spelling goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageUrl {
    pub(super) host: Host,
    /// Path and query, ASCII.
    pub(super) target: String,
}

impl PageUrl {
    pub(super) fn parse(text: &str, reach: &PageReach) -> Result<Self, Refusal> {
        let invalid = |why: &str| Err(Refusal::UrlInvalid(format!("the address {why}")));
        if text.len() > URL_BYTES {
            return invalid(&format!("is longer than {URL_BYTES} bytes"));
        }
        let (scheme, rest) = text.split_at_checked("https://".len()).unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("https://") {
            return invalid("does not begin with https://");
        }
        // Some readers take `\` for `/` and pass over control characters.
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return invalid("holds a backslash or a control character");
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (entry, target) = rest.split_at(end);
        if entry.contains('@') {
            return invalid("names a user");
        }
        let (name, port) = match entry.rsplit_once(':') {
            None => (entry, 443),
            Some((name, port)) => match port.parse::<u16>() {
                Ok(port) if port > 0 => (name, port),
                _ => return invalid("has a port that is none"),
            },
        };
        let lifted = reach.exceptions.iter().any(|exception| exception.port == port);
        if port != 443 && !lifted {
            return invalid("is at another port than 443");
        }
        let name = name.to_ascii_lowercase();
        check_host(&name, &reach.exceptions)?;
        let target = encoded(target);
        let target = if target.starts_with('/') { target } else { format!("/{target}") };
        Ok(Self { host: Host { label: name.clone(), name, port }, target })
    }

    /// Where a redirect leads.
    pub(super) fn join(&self, location: &str, reach: &PageReach) -> Result<Self, Refusal> {
        let location = location.trim();
        let scheme = location.find(':').is_some_and(|end| {
            end > 0
                && location
                    .bytes()
                    .take(end)
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        });
        if scheme {
            return Self::parse(location, reach);
        }
        let path = self.target.split('?').next().unwrap_or("/");
        let target = match location.as_bytes() {
            [b'/', b'/', ..] => return Self::parse(&format!("https:{location}"), reach),
            [b'/', ..] => location.to_owned(),
            [b'?', ..] => format!("{path}{location}"),
            [] | [b'#', ..] => self.target.clone(),
            _ => format!("{}{location}", &path[..path.rfind('/').map_or(0, |at| at + 1)]),
        };
        Self::parse(&format!("https://{}{target}", self.authority()), reach)
    }

    /// The name, and the port where it is not the usual one.
    pub(super) fn authority(&self) -> String {
        authority(&self.host)
    }

    pub(super) fn text(&self) -> String {
        format!("https://{}{}", self.authority(), self.target)
    }

    pub(super) fn path(&self) -> String {
        self.target.split('?').next().unwrap_or_default().to_owned()
    }

    pub(super) fn query_keys(&self) -> Vec<String> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let keys = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
        let mut keys: Vec<String> =
            keys.filter(|key| !key.is_empty()).take(KEYS).map(str::to_owned).collect();
        keys.sort();
        keys
    }
}

/// What no URI may hold, percent-encoded.
fn encoded(target: &str) -> String {
    let mut text = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte.is_ascii_graphic() && !b"\"<>^`{|}".contains(&byte) {
            true => text.push(char::from(byte)),
            false => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, &'static str> {
        PageUrl::parse(text, &PageReach::default())
            .map(|url| url.text())
            .map_err(|refusal| refusal.code())
    }

    #[test]
    fn an_address_is_https_to_a_public_name_and_reads_one_way() {
        for (text, read) in [
            ("https://docs.acme.com", "https://docs.acme.com/"),
            ("HTTPS://Docs.Acme.com:443/a?b=c#d", "https://docs.acme.com/a?b=c"),
            ("https://acme.com?x", "https://acme.com/?x"),
            ("https://acme.com/ä b", "https://acme.com/%C3%A4%20b"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(read), "{text}");
        }
        let long = format!("https://acme.com/{}", "x".repeat(2048));
        for (text, code) in [
            ("", "url_invalid"),
            ("acme.com", "url_invalid"),
            ("http://acme.com", "url_invalid"),
            ("file:///etc/passwd", "url_invalid"),
            ("https://", "address_denied"),
            ("https:///x", "address_denied"),
            ("https://user@acme.com", "url_invalid"),
            ("https://acme.com:22", "url_invalid"),
            ("https://acme.com:", "url_invalid"),
            ("https://acme.com:80:443/", "address_denied"),
            ("https://acme.com\\@evil.com", "url_invalid"),
            ("https://acme.com\t/", "url_invalid"),
            ("https://acme.com/a\r\nx: y", "url_invalid"),
            ("https://[::1]/", "url_invalid"),
            ("https://127.0.0.1/", "address_denied"),
            ("https://2130706433/", "address_denied"),
            ("https://0x7f.1/", "address_denied"),
            ("https://localhost/", "address_denied"),
            ("https://a.localhost/", "address_denied"),
            ("https://metadata.google.internal/", "address_denied"),
            ("https://acme.com./", "address_denied"),
            ("https://аcme.com/", "address_denied"),
            ("https://*.acme.com/", "address_denied"),
            (&long, "url_invalid"),
        ] {
            assert_eq!(parse(text), Err(code), "{text}");
        }
    }

    #[test]
    fn a_redirect_is_read_as_strictly_as_an_address() {
        let from = PageUrl::parse("https://acme.com/a/b?c", &PageReach::default()).unwrap();
        let to = |location: &str| {
            from.join(location, &PageReach::default())
                .map(|url| url.text())
                .map_err(|refusal| refusal.code())
        };
        for (location, read) in [
            ("/x", "https://acme.com/x"),
            ("x?y", "https://acme.com/a/x?y"),
            ("?y", "https://acme.com/a/b?y"),
            ("", "https://acme.com/a/b?c"),
            ("//other.com/x", "https://other.com/x"),
            ("https://other.com:443/x#y", "https://other.com/x"),
        ] {
            assert_eq!(to(location).as_deref(), Ok(read), "{location}");
        }
        for (location, code) in [
            ("http://acme.com/x", "url_invalid"),
            ("javascript:alert(1)", "url_invalid"),
            ("//127.0.0.1/", "address_denied"),
            ("https://169.254.169.254/latest/meta-data", "address_denied"),
            ("//user@acme.com", "url_invalid"),
            ("/\\evil.com", "url_invalid"),
        ] {
            assert_eq!(to(location), Err(code), "{location}");
        }
    }
}
