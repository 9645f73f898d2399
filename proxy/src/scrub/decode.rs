//! Decodes gzip under an output cap and a ratio cap, both checked every few
//! KiB of input so that a bomb is stopped before it has grown. Any other
//! coding, and more than one, is refused: we asked for gzip.

use crate::{Limits, Refusal};
use bytes::Bytes;
use flate2::write::GzDecoder;
use http::header::{CONTENT_ENCODING, HeaderMap};
use std::io::{self, Write};

/// Input per step: gzip expands at most about 1,030-fold, so a step adds at
/// most some 4 MiB before the caps are looked at again.
const STEP: usize = 4 * 1024;

/// Output a short answer may have whatever its ratio: headers of tiny
/// documents compress beyond any ratio that still stops a bomb.
const FREE: usize = 64 * 1024;

/// The content coding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
}

impl Coding {
    /// Reads it from an answer's headers.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal::UpstreamProtocol("the answer is in a content coding we did not ask for".into())
        };
        let mut found = Self::Identity;
        let mut count = 0;
        for value in headers.get_all(CONTENT_ENCODING) {
            for name in value.to_str().map_err(|_| wrong())?.split(',') {
                match name.trim().to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => found = Self::Gzip,
                    _ => return Err(wrong()),
                }
                count += 1;
            }
        }
        if count > 1 { Err(wrong()) } else { Ok(found) }
    }
}

/// Decodes one body.
pub(crate) struct Decoder {
    gzip: Option<GzDecoder<Capped>>,
    limits: Limits,
    received: usize,
    produced: usize,
}

impl Decoder {
    pub(crate) fn new(coding: Coding, limits: &Limits) -> Self {
        let gzip = (coding == Coding::Gzip).then(|| GzDecoder::new(Capped::default()));
        Self { gzip, limits: *limits, received: 0, produced: 0 }
    }

    /// Decodes the next bytes.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Result<Bytes, Refusal> {
        let Some(gzip) = &mut self.gzip else {
            self.produced += chunk.len();
            return if self.produced > self.limits.response_bytes {
                Err(too_large(&self.limits))
            } else {
                Ok(chunk)
            };
        };
        let mut out = Vec::new();
        for step in chunk.chunks(STEP) {
            self.received += step.len();
            let by_ratio = self.received.saturating_mul(self.limits.decode_ratio) + FREE;
            let sink = gzip.get_mut();
            sink.room = by_ratio.min(self.limits.response_bytes).saturating_sub(self.produced);
            let written = gzip.write_all(step).and_then(|()| gzip.flush());
            let sink = gzip.get_mut();
            if sink.overflowed {
                return Err(too_large(&self.limits));
            }
            written.map_err(|_| malformed())?;
            self.produced += sink.bytes.len();
            out.append(&mut sink.bytes);
        }
        Ok(out.into())
    }

    /// The end of the body: a coding that is not complete is an error.
    pub(crate) fn finish(&mut self) -> Result<Bytes, Refusal> {
        let Some(gzip) = &mut self.gzip else { return Ok(Bytes::new()) };
        if self.received == 0 {
            return Ok(Bytes::new());
        }
        let finished = gzip.try_finish();
        let sink = gzip.get_mut();
        if sink.overflowed {
            return Err(too_large(&self.limits));
        }
        finished.map_err(|_| truncated())?;
        self.produced += sink.bytes.len();
        Ok(std::mem::take(&mut sink.bytes).into())
    }

    /// Decoded bytes so far.
    pub(crate) fn produced(&self) -> usize {
        self.produced
    }
}

fn too_large(limits: &Limits) -> Refusal {
    Refusal::ResponseTooLarge(format!(
        "the answer is over {} bytes, or expands more than {} times",
        limits.response_bytes, limits.decode_ratio
    ))
}

fn malformed() -> Refusal {
    Refusal::UpstreamProtocol("the answer's gzip coding is broken".into())
}

fn truncated() -> Refusal {
    Refusal::UpstreamTruncated("the answer's gzip coding ends early".into())
}

/// Output that fails instead of growing past its room.
#[derive(Default)]
struct Capped {
    bytes: Vec<u8>,
    room: usize,
    overflowed: bool,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.room {
            self.overflowed = true;
            return Err(io::Error::other("over the cap"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
