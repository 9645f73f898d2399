//! Finds a secret in every form a careless or curious vendor sends it back in,
//! in a stream, and puts `[REDACTED:<connection>]` there. What is encoded in a
//! form not listed (reversed, encrypted, one letter a line) cannot be found;
//! that a secret only ever goes to its own hosts is the defence there.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroize;

/// Shortest secret looked for; a shorter one would redact innocent text. Whoever
/// enters such a one is warned.
pub(crate) const SHORTEST: usize = 8;

/// The forms of some secrets and what replaces them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Redactor {
    forms: Vec<Arc<Forms>>,
    longest: usize,
    marker: Arc<[u8]>,
}

struct Forms {
    finders: Vec<Finder<'static>>,
}

impl Redactor {
    /// Looks for nothing.
    pub(crate) fn none() -> Self {
        Self { forms: Vec::new(), longest: 0, marker: Arc::new([]) }
    }

    /// Looks for every form of some secrets.
    pub(crate) fn new(secrets: &[&[u8]], slug: &str) -> Self {
        let marker = format!("[REDACTED:{slug}]").into_bytes().into();
        Self { forms: Vec::new(), longest: 0, marker }.with(secrets)
    }

    /// The same, and looks for every form of these too.
    pub(crate) fn with(&self, secrets: &[&[u8]]) -> Self {
        let long = secrets.iter().filter(|secret| secret.len() >= SHORTEST);
        let mut patterns: Vec<Vec<u8>> = long.flat_map(|secret| forms(secret)).collect();
        let mut all = self.clone();
        if patterns.is_empty() {
            return all;
        }
        all.longest = patterns.iter().map(Vec::len).max().unwrap_or(0).max(self.longest);
        let finders = patterns.iter().map(|form| Finder::new(form).into_owned()).collect();
        patterns.iter_mut().for_each(Zeroize::zeroize);
        all.forms.push(Arc::new(Forms { finders }));
        all
    }

    /// The same, and looks for what another looks for.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.longest = self.longest.max(other.longest);
        all.forms.extend(other.forms.iter().cloned());
        all
    }

    /// What is looked for.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn needles(&self) -> Vec<&[u8]> {
        self.forms.iter().flat_map(|forms| &forms.finders).map(Finder::needle).collect()
    }

    /// A whole text at once; answers how often something was hidden.
    pub(crate) fn text(&self, text: &str) -> (String, u32) {
        if self.ranges(text.as_bytes()).is_empty() {
            return (text.to_owned(), 0);
        }
        let mut stream = self.stream();
        let mut out = stream.push(Bytes::copy_from_slice(text.as_bytes())).to_vec();
        out.extend_from_slice(&stream.finish());
        (String::from_utf8_lossy(&out).into_owned(), stream.redactions())
    }

    /// A stream of its own for one body.
    pub(crate) fn stream(&self) -> Stream {
        Stream { forms: self.clone(), held: Vec::new(), done: 0, redactions: 0 }
    }

    /// Every place a form stands, overlaps joined, in order.
    fn ranges(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for finder in self.forms.iter().flat_map(|forms| &forms.finders) {
            let length = finder.needle().len();
            let mut from = 0;
            while let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
                let start = from + at;
                found.push(start..start + length);
                // One on, not past: a form may overlap itself.
                from = start + 1;
            }
        }
        found.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in found {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

/// Redacts one body as it comes. It holds back the longest form's length less
/// one, so a secret split anywhere is still found.
pub(crate) struct Stream {
    forms: Redactor,
    held: Vec<u8>,
    /// How much of `held` has already been given out or hidden.
    done: usize,
    redactions: u32,
}

impl Stream {
    /// Takes the next bytes and gives out what can no longer be part of a form.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Bytes {
        if self.forms.longest == 0 {
            return chunk;
        }
        self.held.extend_from_slice(&chunk);
        let safe = self.held.len().saturating_sub(self.forms.longest - 1);
        self.release(safe)
    }

    /// The end of the body.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.release(self.held.len())
    }

    /// How often something was hidden.
    pub(crate) fn redactions(&self) -> u32 {
        self.redactions
    }

    fn release(&mut self, safe: usize) -> Bytes {
        let mut out = Vec::with_capacity(safe);
        for range in self.forms.ranges(&self.held) {
            if range.start >= safe && range.start >= self.done {
                break;
            }
            if range.end <= self.done {
                continue;
            }
            // One that begins in what is already hidden only makes it longer.
            if range.start >= self.done {
                out.extend_from_slice(&self.held[self.done..range.start]);
                out.extend_from_slice(&self.forms.marker);
                self.redactions = self.redactions.saturating_add(1);
            }
            self.done = range.end;
        }
        if self.done < safe {
            out.extend_from_slice(&self.held[self.done..safe]);
            self.done = safe;
        }
        self.held.drain(..safe);
        self.done -= safe;
        out.into()
    }
}

/// Every form looked for.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec()];
    forms.extend(base64_forms(secret));
    let every = |write: &dyn Fn(u8) -> String| -> Vec<u8> {
        secret.iter().map(|byte| write(*byte)).collect::<String>().into_bytes()
    };
    let some = |plain: &dyn Fn(u8) -> bool, write: &dyn Fn(u8) -> String| -> Vec<u8> {
        let one = |byte: &u8| {
            if plain(*byte) { char::from(*byte).to_string() } else { write(*byte) }
        };
        secret.iter().map(one).collect::<String>().into_bytes()
    };
    let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let form_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    // Percent: everything, everything but letters and digits, as URIs and as
    // forms do it; both cases.
    for upper in [true, false] {
        let percent =
            |byte: u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        let form = |byte: u8| if byte == b' ' { "+".to_owned() } else { percent(byte) };
        forms.push(every(&percent));
        forms.push(some(&alphanumeric, &percent));
        forms.push(some(&unreserved, &percent));
        forms.push(some(&form_plain, &form));
        let json =
            |byte: u8| if upper { format!("\\u{byte:04X}") } else { format!("\\u{byte:04x}") };
        forms.push(every(&json));
        forms.push(some(&alphanumeric, &json));
        // What cautious JSON writers escape besides quotes.
        forms.push(some(&|byte| !b"<>&'\"\\+/=".contains(&byte), &json));
        forms.push(some(&|byte| !b"<>&'".contains(&byte), &|byte| json(byte)));
        let hex = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        forms.push(every(&hex));
        let entity =
            |byte: u8| if upper { format!("&#x{byte:X};") } else { format!("&#x{byte:x};") };
        forms.push(every(&entity));
        forms.push(some(&alphanumeric, &entity));
    }
    let backslash = |byte: u8| format!("\\{}", char::from(byte));
    forms.push(some(&|byte| !b"\"\\".contains(&byte), &backslash));
    forms.push(some(&|byte| !b"\"\\/".contains(&byte), &backslash));
    let decimal = |byte: u8| format!("&#{byte};");
    forms.push(every(&decimal));
    forms.push(some(&alphanumeric, &decimal));
    for apostrophe in ["&#39;", "&#x27;", "&apos;"] {
        forms.push(some(&|byte| !b"<>&\"'".contains(&byte), &|byte| match byte {
            b'<' => "&lt;".into(),
            b'>' => "&gt;".into(),
            b'&' => "&amp;".into(),
            b'"' => "&quot;".into(),
            _ => apostrophe.into(),
        }));
    }
    forms.push(secret.iter().flat_map(|byte| [*byte, 0]).collect());
    forms.push(secret.iter().flat_map(|byte| [0, *byte]).collect());
    forms.sort();
    forms.dedup();
    forms
}

/// Base64 at the three places a secret can begin in a group of three bytes,
/// without the letters that depend on its neighbours; both alphabets, and with
/// the escapes JSON and URLs put on `/`, `+` and `=`.
fn base64_forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for shift in 0..3 {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(secret);
        // Letters that hold bits of what stands before, and of what follows.
        let before = [0, 2, 3][shift];
        let whole = (padded.len() * 8) / 6;
        let standard = STANDARD_NO_PAD.encode(&padded);
        let url = URL_SAFE_NO_PAD.encode(&padded);
        padded.zeroize();
        let standard = &standard[before..whole];
        forms.push(url.as_bytes()[before..whole].to_vec());
        forms.push(standard.as_bytes().to_vec());
        forms.push(standard.replace('/', "\\/").into_bytes());
        forms.push(standard.replace('/', "%2F").replace('+', "%2B").into_bytes());
        forms.push(standard.replace('/', "%2f").replace('+', "%2b").into_bytes());
    }
    forms
}

#[cfg(test)]
mod tests;
