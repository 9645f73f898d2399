//! Length-prefixed frames between the engine and a worker. A frame is a `u32`
//! little-endian length (of what follows), one kind byte and a payload. The
//! reader checks the length before it allocates and charges every frame to the
//! run's budget; the peer is hostile, so any error here means: kill the worker.
//! What the kinds of the job socket mean is the guest's business (from
//! [`GUEST_KINDS`] up); the kinds of the fetch socket are in [`fetch`].

pub mod fetch;
pub mod streams;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// First frame of a worker on its job socket: locked and ready. Empty payload.
pub const READY: u8 = 1;
/// A worker could not be made ready; the payload is a sentence for the operator.
pub const FAILED: u8 = 2;
/// Input of a one-shot job.
pub(crate) const ONESHOT_INPUT: u8 = 3;
/// Output of a one-shot job.
pub(crate) const ONESHOT_OUTPUT: u8 = 4;
/// Kinds from here up on the job socket belong to the guest and its driver.
pub const GUEST_KINDS: u8 = 16;

/// Bytes of the length and the kind.
const HEAD: usize = 5;
/// Most that is allocated ahead of bytes that have not arrived.
const READ_AHEAD: usize = 64 * 1024;
/// Payloads up to here are copied next to their head and sent by one call.
const COPY_MAX: usize = 16 * 1024;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: u8,
    /// What it carries.
    pub payload: Bytes,
}

/// What one reader accepts over its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// Largest payload of one frame, bytes.
    pub payload: usize,
    /// Frames in all.
    pub frames: u64,
    /// Payload bytes in all.
    pub bytes: u64,
}

/// Why a frame was not taken or not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Io(std::io::ErrorKind),
    /// The peer closed in the middle of a frame.
    #[error("the peer closed in the middle of a frame")]
    Truncated,
    /// A frame without a kind byte.
    #[error("a frame of length 0")]
    Empty,
    /// A frame larger than this reader takes.
    #[error("a frame of {length} bytes, the most is {most}")]
    TooLarge {
        /// Announced payload length.
        length: usize,
        /// Largest allowed.
        most: usize,
    },
    /// The run's budget is used up.
    #[error("more {0} than a run may send")]
    Budget(&'static str),
    /// A kind that has no place here.
    #[error("kind {0} has no place here")]
    Kind(u8),
    /// A payload that is not what its kind says.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A frame that breaks the order of its stream.
    #[error("stream {stream}: {rule}")]
    Stream {
        /// The stream at fault.
        stream: u32,
        /// The rule it broke.
        rule: &'static str,
    },
    /// An earlier send was cancelled half-way; the socket is unusable.
    #[error("an earlier frame was cut off")]
    CutOff,
}

impl From<std::io::Error> for FrameError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// Reads frames; safe to cancel between and inside frames.
#[derive(Debug)]
pub struct FrameReader<R> {
    inner: R,
    buffer: BytesMut,
    limits: FrameLimits,
    frames: u64,
    bytes: u64,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from `inner` within `limits`.
    pub fn new(inner: R, limits: FrameLimits) -> Self {
        Self { inner, buffer: BytesMut::new(), limits, frames: 0, bytes: 0 }
    }

    /// Replaces the limits; what was read so far stays charged.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// The next frame; `None` when the peer closed between two frames.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let missing = match self.parse()? {
                Step::Frame(frame) => return Ok(Some(frame)),
                Step::Missing(bytes) => bytes,
            };
            self.buffer.reserve(missing.clamp(HEAD, READ_AHEAD));
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::Truncated) };
            }
        }
    }

    fn parse(&mut self) -> Result<Step, FrameError> {
        let Some(head) = self.buffer.first_chunk::<4>() else {
            return Ok(Step::Missing(HEAD));
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length - 1 > self.limits.payload {
            return Err(FrameError::TooLarge { length: length - 1, most: self.limits.payload });
        }
        let total = 4 + length;
        if self.buffer.len() < total {
            return Ok(Step::Missing(total - self.buffer.len()));
        }
        self.frames += 1;
        self.bytes += (length - 1) as u64;
        if self.frames > self.limits.frames {
            return Err(FrameError::Budget("frames"));
        }
        if self.bytes > self.limits.bytes {
            return Err(FrameError::Budget("bytes"));
        }
        let mut whole = self.buffer.split_to(total).freeze();
        whole.advance(4);
        let kind = whole.get_u8();
        Ok(Step::Frame(Frame { kind, payload: whole }))
    }
}

enum Step {
    Frame(Frame),
    Missing(usize),
}

/// Writes frames. A send that is cancelled half-way makes every later one fail,
/// since the peer could no longer tell where a frame starts.
#[derive(Debug)]
pub struct FrameWriter<W> {
    inner: W,
    scratch: Vec<u8>,
    sending: bool,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    /// Writes to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, scratch: Vec::new(), sending: false }
    }

    /// Sends one frame.
    pub async fn send(&mut self, kind: u8, payload: &[u8]) -> Result<(), FrameError> {
        self.send_parts(kind, &[payload]).await
    }

    /// Sends one frame whose payload comes in pieces.
    pub async fn send_parts(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), FrameError> {
        if std::mem::replace(&mut self.sending, true) {
            return Err(FrameError::CutOff);
        }
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(size + 1)
            .map_err(|_| FrameError::TooLarge { length: size, most: u32::MAX as usize - 1 })?;
        self.scratch.clear();
        self.scratch.extend_from_slice(&length.to_le_bytes());
        self.scratch.push(kind);
        if size <= COPY_MAX {
            parts.iter().for_each(|part| self.scratch.extend_from_slice(part));
            self.inner.write_all(&self.scratch).await?;
        } else {
            self.inner.write_all(&self.scratch).await?;
            for part in parts {
                self.inner.write_all(part).await?;
            }
        }
        self.sending = false;
        Ok(())
    }

    /// The socket itself, to shut it down.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

#[cfg(test)]
mod tests;
