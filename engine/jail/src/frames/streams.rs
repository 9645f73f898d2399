//! The order of frames on a fetch socket as the parent enforces it: a pure
//! table of the open streams of one run. A frame it refuses is a forgery (our
//! glue never sends it), so the caller kills the worker. It sends nothing and
//! knows no proxy.

use super::FrameError;
use super::fetch::{FetchFrame, RequestHead, WINDOW};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Streams of one run open at the same time.
pub const STREAMS_MAX: usize = 8;

/// What an accepted frame means to the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request began; its body follows when `head.body`.
    Open(RequestHead),
    /// A piece of its body. Give the same number of bytes back as credit once
    /// it is used.
    Chunk(Bytes),
    /// The request is complete.
    Complete,
    /// The worker takes so many more bytes of the reply.
    Credit(u32),
    /// The worker gave up; the stream is closed.
    Cancelled,
    /// A frame that crossed the closing of its stream; ignore it.
    Late,
}

#[derive(Debug)]
struct Stream {
    body_open: bool,
    may_receive: u32,
    may_send: u32,
}

/// The open streams of one run.
#[derive(Debug, Default)]
pub struct Streams {
    open: BTreeMap<u32, Stream>,
    last: u32,
}

impl Streams {
    /// Checks one frame of the worker. Ids start at 1 and rise.
    pub fn accept(&mut self, stream: u32, frame: FetchFrame) -> Result<Event, FrameError> {
        let broken = |rule| Err(FrameError::Stream { stream, rule });
        if let FetchFrame::Request(head) = frame {
            if stream <= self.last {
                return broken("ids must rise");
            }
            if self.open.len() >= STREAMS_MAX {
                return broken("too many at once");
            }
            self.last = stream;
            let state = Stream { body_open: head.body, may_receive: WINDOW, may_send: WINDOW };
            self.open.insert(stream, state);
            return Ok(Event::Open(head));
        }
        if stream == 0 || stream > self.last {
            return broken("was never opened");
        }
        let Some(state) = self.open.get_mut(&stream) else {
            return match frame {
                FetchFrame::RequestChunk(_)
                | FetchFrame::RequestEnd
                | FetchFrame::Credit(_)
                | FetchFrame::Cancel => Ok(Event::Late),
                FetchFrame::Request(_)
                | FetchFrame::Response(_)
                | FetchFrame::ResponseChunk(_)
                | FetchFrame::ResponseEnd
                | FetchFrame::Error(_) => broken("only the parent answers"),
            };
        };
        match frame {
            FetchFrame::RequestChunk(bytes) => {
                if !state.body_open {
                    return broken("a chunk after the end");
                }
                let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let Some(left) = state.may_receive.checked_sub(size) else {
                    return broken("more than its credit");
                };
                state.may_receive = left;
                Ok(Event::Chunk(bytes))
            }
            FetchFrame::RequestEnd => {
                if !std::mem::replace(&mut state.body_open, false) {
                    return broken("ended twice");
                }
                Ok(Event::Complete)
            }
            FetchFrame::Credit(bytes) => {
                let Some(sum) = state.may_send.checked_add(bytes).filter(|&sum| sum <= WINDOW)
                else {
                    return broken("more credit than the window");
                };
                state.may_send = sum;
                Ok(Event::Credit(bytes))
            }
            FetchFrame::Cancel => {
                self.open.remove(&stream);
                Ok(Event::Cancelled)
            }
            FetchFrame::Request(_)
            | FetchFrame::Response(_)
            | FetchFrame::ResponseChunk(_)
            | FetchFrame::ResponseEnd
            | FetchFrame::Error(_) => broken("only the parent answers"),
        }
    }

    /// Notes that the parent returned `bytes` of credit to the worker.
    pub fn gave_credit(&mut self, stream: u32, bytes: u32) {
        if let Some(state) = self.open.get_mut(&stream) {
            state.may_receive = state.may_receive.saturating_add(bytes).min(WINDOW);
        }
    }

    /// How much of a reply may be sent now, at most `wanted`; charges it.
    /// `None` when the stream is closed; `Some(0)` means: wait for credit.
    pub fn charge(&mut self, stream: u32, wanted: u32) -> Option<u32> {
        let state = self.open.get_mut(&stream)?;
        let size = wanted.min(state.may_send);
        state.may_send -= size;
        Some(size)
    }

    /// The parent ended the stream (end or error); late frames are ignored.
    pub fn close(&mut self, stream: u32) {
        self.open.remove(&stream);
    }

    /// Open streams.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// No stream is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
