//! The frames of `ctx.fetch` on a run's fetch socket. Every payload opens with
//! a `u32` little-endian stream id; heads and errors follow as JSON, chunks as
//! raw bytes, credit as a `u32`. Sizes are bounded here; whether a frame fits
//! its stream's order is decided in [`super::streams`]; what a request may do is
//! decided by the proxy, never from here.

use super::{Frame, FrameError, FrameLimits, FrameWriter};
use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;

/// Largest body chunk, bytes. Small enough that eight streams share fairly.
pub const CHUNK_MAX: usize = 64 * 1024;
/// Largest head, bytes of JSON: path 8 KB, query 16 KB, headers 16 KB, doubled
/// by escapes.
pub const HEAD_MAX: usize = 96 * 1024;
/// Most headers of a head; the proxy's own limit is lower.
pub const HEADERS_MAX: usize = 256;
/// Bytes of body a side may send on a stream before it is given more credit.
pub const WINDOW: u32 = 256 * 1024;
/// What the parent accepts on one run's fetch socket: requests of 10 MB bodies
/// (16 of them), in chunks as small as a kilobyte, and the credit for replies.
pub const FETCH_BUDGET: FrameLimits =
    FrameLimits { payload: HEAD_MAX + 4, frames: 400_000, bytes: 200 * 1024 * 1024 };

const REQUEST: u8 = 1;
const REQUEST_CHUNK: u8 = 2;
const REQUEST_END: u8 = 3;
const RESPONSE: u8 = 4;
const RESPONSE_CHUNK: u8 = 5;
const RESPONSE_END: u8 = 6;
const CREDIT: u8 = 7;
const CANCEL: u8 = 8;
const ERROR: u8 = 9;

/// A request as the module made it. Header values are byte strings: each
/// character is one byte, U+0000 to U+00FF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestHead {
    /// As written, after the Fetch set was upper-cased.
    pub method: String,
    /// Label or name of the host; absent means the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Path and query, or an absolute URL when `sdk`.
    pub target: String,
    /// Names and values in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Chunks follow. Without it the request has no body and is complete.
    #[serde(default)]
    pub body: bool,
    /// Came through the global `fetch`.
    #[serde(default)]
    pub sdk: bool,
}

/// A reply's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseHead {
    /// Vendor status, or 202 for a preview.
    pub status: u16,
    /// Names and values in order; values are byte strings.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Nothing was sent; the body is a preview.
    #[serde(default)]
    pub intercepted: bool,
}

/// Why a stream got no (whole) reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchFault {
    /// Stable snake_case code.
    pub code: String,
    /// One sentence.
    pub message: String,
}

/// One frame of a fetch socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchFrame {
    /// Worker opens a stream.
    Request(RequestHead),
    /// Piece of the request body.
    RequestChunk(Bytes),
    /// The request body is complete.
    RequestEnd,
    /// Parent answers.
    Response(ResponseHead),
    /// Piece of the response body.
    ResponseChunk(Bytes),
    /// The response body is complete; the stream is closed.
    ResponseEnd,
    /// The other side may send so many more body bytes.
    Credit(u32),
    /// The worker does not want the reply any more; the stream is closed.
    Cancel,
    /// No (whole) reply; the stream is closed.
    Error(FetchFault),
}

impl FetchFrame {
    /// Parses a frame into its stream id and meaning.
    pub fn parse(frame: Frame) -> Result<(u32, Self), FrameError> {
        let mut payload = frame.payload;
        if payload.len() < 4 {
            return Err(FrameError::Malformed("stream id"));
        }
        let stream = payload.get_u32_le();
        let parsed = match frame.kind {
            REQUEST => Self::Request(head(&payload, "request head", |h: &RequestHead| {
                h.headers.len() <= HEADERS_MAX && byte_strings(&h.headers)
            })?),
            REQUEST_CHUNK => Self::RequestChunk(chunk(payload)?),
            REQUEST_END => empty(&payload, Self::RequestEnd)?,
            RESPONSE => Self::Response(head(&payload, "response head", |h: &ResponseHead| {
                h.headers.len() <= HEADERS_MAX && byte_strings(&h.headers)
            })?),
            RESPONSE_CHUNK => Self::ResponseChunk(chunk(payload)?),
            RESPONSE_END => empty(&payload, Self::ResponseEnd)?,
            CREDIT if payload.len() == 4 => Self::Credit(payload.get_u32_le()),
            CREDIT => return Err(FrameError::Malformed("credit")),
            CANCEL => empty(&payload, Self::Cancel)?,
            ERROR => Self::Error(head(&payload, "fault", |_: &FetchFault| true)?),
            other => return Err(FrameError::Kind(other)),
        };
        Ok((stream, parsed))
    }

    /// Sends this frame on `stream`.
    pub async fn send<W: AsyncWrite + Unpin>(
        &self,
        stream: u32,
        writer: &mut FrameWriter<W>,
    ) -> Result<(), FrameError> {
        let id = stream.to_le_bytes();
        match self {
            Self::Request(head) => writer.send_parts(REQUEST, &[&id, &json(head)?]).await,
            Self::RequestChunk(bytes) => writer.send_parts(REQUEST_CHUNK, &[&id, bytes]).await,
            Self::RequestEnd => writer.send(REQUEST_END, &id).await,
            Self::Response(head) => writer.send_parts(RESPONSE, &[&id, &json(head)?]).await,
            Self::ResponseChunk(bytes) => writer.send_parts(RESPONSE_CHUNK, &[&id, bytes]).await,
            Self::ResponseEnd => writer.send(RESPONSE_END, &id).await,
            Self::Credit(bytes) => writer.send_parts(CREDIT, &[&id, &bytes.to_le_bytes()]).await,
            Self::Cancel => writer.send(CANCEL, &id).await,
            Self::Error(fault) => writer.send_parts(ERROR, &[&id, &json(fault)?]).await,
        }
    }
}

/// The bytes of a byte string; `None` when a character is beyond U+00FF.
pub fn byte_string(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

/// The byte string of some bytes.
pub fn to_byte_string(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

fn byte_strings(headers: &[(String, String)]) -> bool {
    headers.iter().all(|(_, value)| value.chars().all(|c| u32::from(c) <= 0xff))
}

fn head<T: for<'de> Deserialize<'de>>(
    payload: &[u8],
    what: &'static str,
    sane: impl Fn(&T) -> bool,
) -> Result<T, FrameError> {
    if payload.len() > HEAD_MAX {
        return Err(FrameError::TooLarge { length: payload.len(), most: HEAD_MAX });
    }
    let head: T = serde_json::from_slice(payload).map_err(|_| FrameError::Malformed(what))?;
    if sane(&head) { Ok(head) } else { Err(FrameError::Malformed(what)) }
}

fn chunk(payload: Bytes) -> Result<Bytes, FrameError> {
    if payload.len() > CHUNK_MAX {
        return Err(FrameError::TooLarge { length: payload.len(), most: CHUNK_MAX });
    }
    if payload.is_empty() {
        return Err(FrameError::Malformed("empty chunk"));
    }
    Ok(payload)
}

fn empty(payload: &[u8], frame: FetchFrame) -> Result<FetchFrame, FrameError> {
    if payload.is_empty() { Ok(frame) } else { Err(FrameError::Malformed("frame with a tail")) }
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, FrameError> {
    let bytes = serde_json::to_vec(value).map_err(|_| FrameError::Malformed("head"))?;
    if bytes.len() > HEAD_MAX {
        return Err(FrameError::TooLarge { length: bytes.len(), most: HEAD_MAX });
    }
    Ok(bytes)
}
