//! A request as a module made it and a reply as it gets it. Both are plain
//! values: nothing in them is believed until the session has looked.

use crate::Refusal;
use bytes::Bytes;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// What a module asked for, untouched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundRequest {
    /// As the module wrote it, after the Fetch set was upper-cased.
    pub method: String,
    /// Label or name of the host; `None` is the primary.
    pub host: Option<String>,
    /// Path and query, or, for an SDK call, an absolute URL.
    pub target: String,
    /// Names and raw values in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body; empty when there is none.
    pub body: Bytes,
    /// Came through the global `fetch` an SDK uses.
    pub sdk: bool,
}

/// What a module gets back.
#[derive(Debug)]
pub struct Reply {
    /// The vendor's status, or 202 for a preview.
    pub status: u16,
    /// Allowed response headers, redacted.
    pub headers: Vec<(String, String)>,
    /// The body: decoded, redacted and capped.
    pub body: Body,
    /// True when nothing was sent and the body is a preview.
    pub intercepted: bool,
}

/// A reply's body, scrubbed as it comes.
#[derive(Debug)]
pub struct Body {
    pieces: mpsc::Receiver<Piece>,
    over: bool,
}

/// What travels to a [`Body`]. The end is a piece of its own, so that a sender
/// that vanished never looks like a complete body.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    Failed(Refusal),
    End,
}

/// Pieces in flight: enough for a small body to be whole before it is read,
/// so that nobody has to wait for a module that is slow to look.
const PIECES: usize = 16;

impl Body {
    /// A body fed from elsewhere.
    pub(crate) fn fed() -> (mpsc::Sender<Piece>, Self) {
        let (feed, pieces) = mpsc::channel(PIECES);
        (feed, Self { pieces, over: false })
    }

    /// A body that is already there.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        let (feed, body) = Self::fed();
        // The channel is new and holds both.
        let _ = feed.try_send(Piece::Data(bytes));
        let _ = feed.try_send(Piece::End);
        body
    }

    /// The next chunk; `None` at the complete end. An error means that what
    /// came before is not the whole body.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Refusal>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// The same for whoever polls.
    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Refusal>>> {
        if self.over {
            return Poll::Ready(None);
        }
        self.pieces.poll_recv(context).map(|piece| self.read(piece))
    }

    fn read(&mut self, piece: Option<Piece>) -> Option<Result<Bytes, Refusal>> {
        match piece {
            Some(Piece::Data(bytes)) => Some(Ok(bytes)),
            Some(Piece::End) => {
                self.over = true;
                None
            }
            Some(Piece::Failed(refusal)) => {
                self.over = true;
                Some(Err(refusal))
            }
            None => {
                self.over = true;
                let why = "the exchange was cut off before its end";
                Some(Err(Refusal::UpstreamTruncated(why.into())))
            }
        }
    }
}
