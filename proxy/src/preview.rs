//! What a dry run shows instead of sending. The shape is public: it is the
//! body a module reads back and part of the answer an agent gets.

use serde::Serialize;

/// A stopped request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Always true: this came of a dry run.
    pub dry_run: bool,
    /// Always true: nothing was sent.
    pub intercepted: bool,
    /// What would have gone.
    pub request: PreviewRequest,
}

/// The request of a [`Preview`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRequest {
    /// Upper-case method.
    pub method: String,
    /// Host, with its port unless 443.
    pub host: String,
    /// Path as on the wire.
    pub path: String,
    /// Query as on the wire, without `?`.
    pub query: Option<String>,
    /// Names of the headers, lower case, sorted.
    pub header_names: Vec<String>,
    /// Scheme and connection name, never the secret.
    pub credential: String,
    /// At most 64 KiB of the body.
    pub body: Option<String>,
    /// `utf-8` or `base64`.
    pub body_encoding: Option<&'static str>,
    /// The whole body's length in bytes.
    pub body_bytes: usize,
    /// Digest over the wire bytes, hexadecimal.
    pub digest: String,
}
