//! Hides the values of JSON keys that hand out tokens. A vendor may answer a
//! tool with a token nobody has seen yet, which `redact` cannot know. It looks
//! for the keys and not for JSON, so it works in the middle of other text and
//! in JSON inside a JSON string, however the key's characters are escaped.

use super::spelling::{leads, readings};
use bytes::Bytes;

/// Keys whose string values are hidden.
const KEYS: &[&[u8]] =
    &[b"access_token", b"refresh_token", b"id_token", b"accessToken", b"refreshToken", b"idToken"];

/// Longer than any key with each of its characters escaped three times over.
const WORD: usize = 160;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside; `word` holds what came since the last quote.
    Word,
    /// After a key, its closing quote passed.
    Key,
    /// After the colon.
    Colon,
    /// Inside a value. `inner`: of a JSON string inside another.
    Hidden { inner: bool, escaped: bool },
}

/// Masks one body as it comes.
pub(crate) struct Mask {
    state: State,
    word: Vec<u8>,
    /// The last byte was a backslash.
    slash: bool,
    marker: Vec<u8>,
    masked: u32,
}

impl Mask {
    pub(crate) fn new(slug: &str) -> Self {
        let marker = format!("[REDACTED:{slug}]").into_bytes();
        Self { state: State::Word, word: Vec::new(), slash: false, marker, masked: 0 }
    }

    /// How often something was hidden.
    pub(crate) fn masked(&self) -> u32 {
        self.masked
    }

    /// The next bytes, values hidden.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Bytes {
        let mut out = Vec::new();
        // What of the chunk is passed on next; `None` inside a value.
        let hidden = matches!(self.state, State::Hidden { .. });
        let mut from = (!hidden).then_some(0);
        let mut at = 0;
        while at < chunk.len() {
            if self.state == State::Word {
                at = self.skip_word(&chunk, at);
                if at == chunk.len() {
                    break;
                }
            }
            let byte = chunk[at];
            let before = self.state;
            self.state = self.next(byte);
            match (before, self.state) {
                (State::Colon, State::Hidden { .. }) => {
                    out.extend_from_slice(&chunk[from.unwrap_or(at)..=at]);
                    out.extend_from_slice(&self.marker);
                    self.masked = self.masked.saturating_add(1);
                    from = None;
                }
                (State::Hidden { inner, .. }, State::Word) => {
                    out.extend_from_slice(if inner { b"\\" } else { b"" });
                    from = Some(at);
                }
                _ => {}
            }
            at += 1;
        }
        match from {
            Some(0) if out.is_empty() => chunk,
            Some(from) => {
                out.extend_from_slice(&chunk[from..]);
                out.into()
            }
            None => out.into(),
        }
    }

    /// Moves on to the next quote, keeping the end of what stands before it.
    fn skip_word(&mut self, chunk: &[u8], at: usize) -> usize {
        let rest = &chunk[at..];
        let length = memchr::memchr(b'"', rest).unwrap_or(rest.len());
        let word = &rest[..length];
        self.word.extend_from_slice(&word[word.len().saturating_sub(WORD)..]);
        if word.len() > WORD || self.word.len() > WORD {
            // Too long to be a key, and must not be cut to one.
            self.word.clear();
            self.word.push(0);
        }
        at + length
    }

    fn next(&mut self, byte: u8) -> State {
        let slash = std::mem::replace(&mut self.slash, byte == b'\\');
        match self.state {
            State::Word | State::Key | State::Colon if byte == b'"' => {
                let opens = self.state == State::Colon;
                let word = std::mem::take(&mut self.word);
                let word = word.strip_suffix(b"\\").unwrap_or(&word);
                if opens {
                    State::Hidden { inner: slash, escaped: false }
                } else if is_key(word) {
                    State::Key
                } else {
                    State::Word
                }
            }
            State::Word => State::Word,
            State::Key if byte == b':' => State::Colon,
            State::Colon if byte == b'\\' => State::Colon,
            State::Key | State::Colon if byte.is_ascii_whitespace() => self.state,
            State::Key | State::Colon => State::Word,
            State::Hidden { inner, escaped } => match byte {
                b'"' if inner || !escaped => State::Word,
                b'\\' => State::Hidden { inner, escaped: !escaped },
                _ => State::Hidden { inner, escaped: false },
            },
        }
    }
}

/// Whether a word is a key, or a spelling of one.
fn is_key(word: &[u8]) -> bool {
    if !word.iter().any(|byte| leads(*byte)) {
        return KEYS.contains(&word);
    }
    KEYS.iter().any(|key| spells(word, 0, key))
}

/// Whether what stands from `at` on can be read as the key and nothing else.
fn spells(word: &[u8], at: usize, key: &[u8]) -> bool {
    let Some((first, rest)) = key.split_first() else { return at == word.len() };
    readings(word, at).iter().any(|read| read.byte == *first && spells(word, read.end, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str, size: usize) -> (String, u32) {
        let mut mask = Mask::new("acme");
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            out.extend_from_slice(&mask.push(Bytes::copy_from_slice(chunk)));
        }
        (String::from_utf8_lossy(&out).into_owned(), mask.masked())
    }

    #[test]
    fn h11_token_keys_are_masked_at_every_cut() {
        for (text, masked) in [
            ("{\"a\":1}", "{\"a\":1}"),
            (
                "{\"access_token\":\"abc\",\"b\":2}",
                "{\"access_token\":\"[REDACTED:acme]\",\"b\":2}",
            ),
            (
                "x 5\" {\"refresh_token\" : \n \"a\\\"b\\\\\" }",
                "x 5\" {\"refresh_token\" : \n \"[REDACTED:acme]\" }",
            ),
            ("[{\"idToken\":\"\"}]", "[{\"idToken\":\"[REDACTED:acme]\"}]"),
            (
                "{\"s\":\"{\\\"access_token\\\":\\\"abc\\\",\\\"c\\\":1}\"}",
                "{\"s\":\"{\\\"access_token\\\":\\\"[REDACTED:acme]\\\",\\\"c\\\":1}\"}",
            ),
            (
                "{\"\\u0061ccess\\u005Ftoken\":\"abc\"}",
                "{\"\\u0061ccess\\u005Ftoken\":\"[REDACTED:acme]\"}",
            ),
            (
                "{\"s\":\"{\\\"id\\\\u0054oken\\\":\\\"abc\\\"}\"}",
                "{\"s\":\"{\\\"id\\\\u0054oken\\\":\\\"[REDACTED:acme]\\\"}\"}",
            ),
            ("{\"\\u0061n_access_token\":\"3\"}", "{\"\\u0061n_access_token\":\"3\"}"),
            ("{\"access_token\":null,\"x\":\"y\"}", "{\"access_token\":null,\"x\":\"y\"}"),
            ("{\"my_access_token_count\":\"3\"}", "{\"my_access_token_count\":\"3\"}"),
            ("{\"an_access_token\":\"3\"}", "{\"an_access_token\":\"3\"}"),
            ("[\"access_token\",\"b\"]", "[\"access_token\",\"b\"]"),
        ] {
            for size in 1..=text.len() {
                let (out, count) = mask(text, size);
                assert_eq!(out, masked, "by {size}");
                assert_eq!(count, u32::from(text != masked));
            }
        }
    }

    #[test]
    fn h11_a_value_that_never_ends_stays_hidden() {
        assert_eq!(mask("{\"access_token\":\"abc", 3).0, "{\"access_token\":\"[REDACTED:acme]");
    }
}
