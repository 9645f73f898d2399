//! Hides some secrets in a stream: where one stands, in any form `needle` and
//! `spelling` know, the module gets `[REDACTED:<connection>]`. What is encoded
//! in a form they do not know (reversed, encrypted, one letter a line) cannot be
//! found; that a secret only ever goes to its own hosts is the defence there.

use super::needle::{Found, Needles, Steps};
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::Arc;

/// Shortest secret looked for; a shorter one would redact innocent text. Whoever
/// enters such a one is warned.
pub(crate) const SHORTEST: usize = 8;

/// The forms of some secrets and what replaces them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Redactor {
    needles: Vec<Arc<Needles>>,
    longest: usize,
    marker: Arc<[u8]>,
}

impl Redactor {
    /// Looks for nothing.
    pub(crate) fn none() -> Self {
        Self { needles: Vec::new(), longest: 0, marker: Arc::new([]) }
    }

    /// Looks for every form of some secrets.
    pub(crate) fn new(secrets: &[&[u8]], slug: &str) -> Self {
        let marker = format!("[REDACTED:{slug}]").into_bytes().into();
        Self { needles: Vec::new(), longest: 0, marker }.with(secrets)
    }

    /// The same, and looks for every form of these too.
    pub(crate) fn with(&self, secrets: &[&[u8]]) -> Self {
        let long = secrets.iter().copied().filter(|secret| secret.len() >= SHORTEST);
        let needles = Needles::new(long);
        let mut all = self.clone();
        if needles.longest > 0 {
            all.longest = all.longest.max(needles.longest);
            all.needles.push(Arc::new(needles));
        }
        all
    }

    /// The same, and looks for what another looks for.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for needles in &other.needles {
            if !all.needles.iter().any(|have| Arc::ptr_eq(have, needles)) {
                all.needles.push(needles.clone());
            }
        }
        if all.marker.is_empty() {
            all.marker = other.marker.clone();
        }
        all.longest = self.longest.max(other.longest);
        all
    }

    /// What is looked for, and whether in any spelling.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn needles(&self) -> Vec<(&[u8], bool)> {
        self.needles.iter().flat_map(|needles| needles.texts()).collect()
    }

    /// A whole text at once; answers how often something was hidden.
    pub(crate) fn text(&self, text: &str) -> (String, u32) {
        let (bytes, count) = self.bytes(Bytes::copy_from_slice(text.as_bytes()));
        match count {
            0 => (text.to_owned(), 0),
            _ => (String::from_utf8_lossy(&bytes).into_owned(), count),
        }
    }

    /// A whole body at once.
    pub(crate) fn bytes(&self, bytes: Bytes) -> (Bytes, u32) {
        let mut stream = self.stream();
        if self.longest == 0 {
            return (bytes, 0);
        }
        stream.steps.earn(bytes.len());
        stream.held = BytesMut::from(bytes);
        let out = stream.finish();
        (out, stream.redactions())
    }

    /// A stream of its own for one body.
    pub(crate) fn stream(&self) -> Stream {
        Stream {
            redactor: self.clone(),
            held: BytesMut::new(),
            steps: Steps::new(),
            searched: 0,
            done: 0,
            redactions: 0,
        }
    }

    /// Every place something stands, overlaps joined, in order.
    fn find(&self, text: &[u8], whole: bool, steps: &mut Steps) -> Found {
        let mut found = Found::default();
        for needles in &self.needles {
            needles.find(text, whole, steps, &mut found);
        }
        found.ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in found.ranges.drain(..) {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        found.ranges = joined;
        found
    }
}

/// Redacts one body as it comes. It holds back what may be the beginning of
/// something to hide: the longest needle's length less one, and what is escaped
/// from its first byte on, so a secret split anywhere is still found.
pub(crate) struct Stream {
    redactor: Redactor,
    held: BytesMut,
    steps: Steps,
    /// How much of `held` was there when it was last searched.
    searched: usize,
    /// How much of `held` has already been given out or hidden.
    done: usize,
    redactions: u32,
}

/// What is held is searched again once it has grown by this part of itself: a
/// body that comes byte by byte costs no more than a few times one that comes
/// at once.
const GROWTH: usize = 4;

impl Stream {
    /// Takes the next bytes and gives out what can no longer be part of a form.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Bytes {
        if self.redactor.longest == 0 {
            return chunk;
        }
        if chunk.is_empty() || self.steps.are_spent() {
            return Bytes::new();
        }
        self.steps.earn(chunk.len());
        self.held.extend_from_slice(&chunk);
        if self.held.len() - self.searched < self.searched / GROWTH {
            return Bytes::new();
        }
        let out = self.release(false);
        self.searched = self.held.len();
        out
    }

    /// The end of the body.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.release(true)
    }

    /// How often something was hidden.
    pub(crate) fn redactions(&self) -> u32 {
        self.redactions
    }

    fn release(&mut self, whole: bool) -> Bytes {
        if self.held.is_empty() {
            return Bytes::new();
        }
        let found = self.redactor.find(&self.held, whole, &mut self.steps);
        if self.steps.are_spent() {
            self.held.clear();
            self.redactions = self.redactions.saturating_add(1);
            return Bytes::copy_from_slice(&self.redactor.marker);
        }
        let safe = match whole {
            true => self.held.len(),
            false => {
                let tail = self.held.len().saturating_sub(self.redactor.longest - 1);
                found.open.map_or(tail, |open| tail.min(open))
            }
        };
        if found.ranges.is_empty() && self.done == 0 {
            return self.held.split_to(safe).freeze();
        }
        let mut out = Vec::with_capacity(safe);
        for range in found.ranges {
            if range.start >= safe && range.start >= self.done {
                break;
            }
            if range.end <= self.done {
                continue;
            }
            // One that begins in what is already hidden only makes it longer.
            if range.start >= self.done {
                out.extend_from_slice(&self.held[self.done..range.start]);
                out.extend_from_slice(&self.redactor.marker);
                self.redactions = self.redactions.saturating_add(1);
            }
            self.done = range.end;
        }
        if self.done < safe {
            out.extend_from_slice(&self.held[self.done..safe]);
            self.done = safe;
        }
        let _ = self.held.split_to(safe);
        self.done -= safe;
        out.into()
    }
}

#[cfg(test)]
mod tests;
