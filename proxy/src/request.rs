//! A request as a module made it and a reply as it gets it. Both are plain
//! values: nothing in them is believed until the session has looked.

use bytes::Bytes;

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
    pub(crate) chunks: tokio::sync::mpsc::Receiver<Result<Bytes, crate::Refusal>>,
}

impl Body {
    /// The next chunk; `None` at the complete end. An error means that what
    /// came before is not the whole body.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, crate::Refusal>> {
        self.chunks.recv().await
    }
}
