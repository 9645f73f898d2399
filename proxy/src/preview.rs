//! What a dry run shows instead of sending. The shape is public: it is the
//! body a module reads back and part of the answer an agent gets.

use crate::{Connection, HeldRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Most of a body a preview shows, bytes: what a person can still read.
const BODY_BYTES: usize = 64 * 1024;

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

impl Preview {
    /// The preview of a request that is complete but for its credential.
    pub(crate) fn of(request: &HeldRequest, connection: &Connection) -> Self {
        let (path, query) = match request.target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (request.target.as_str(), None),
        };
        let mut header_names: Vec<String> =
            request.headers.iter().map(|(name, _)| name.clone()).collect();
        header_names.sort();
        let (body, body_encoding) = show(&request.body);
        let request = PreviewRequest {
            method: request.method.clone(),
            host: request.authority.clone(),
            path: path.to_owned(),
            query,
            header_names,
            credential: credential(connection),
            body,
            body_encoding,
            body_bytes: request.body.len(),
            digest: request.digest.to_string(),
        };
        Self { dry_run: true, intercepted: true, request }
    }
}

fn credential(connection: &Connection) -> String {
    if !connection.scheme.takes_secret() {
        return connection.scheme.name().into();
    }
    format!("{}, {}", connection.scheme.name(), connection.slug)
}

fn show(body: &[u8]) -> (Option<String>, Option<&'static str>) {
    if body.is_empty() {
        return (None, None);
    }
    let head = &body[..body.len().min(BODY_BYTES)];
    match std::str::from_utf8(head) {
        Ok(text) => (Some(text.to_owned()), Some("utf-8")),
        // Cut inside a character: what is whole is still text.
        Err(error) if error.error_len().is_none() && body.len() > BODY_BYTES => {
            let text = String::from_utf8_lossy(&head[..error.valid_up_to()]);
            (Some(text.into_owned()), Some("utf-8"))
        }
        Err(_) => (Some(STANDARD.encode(head)), Some("base64")),
    }
}
