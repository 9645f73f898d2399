//! The console's one script: a file of its own, under a name that changes with
//! its content, so that a browser keeps it for good and never has an old one.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../templates/console.js");

static PATH: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::digest(TEXT);
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("/console-{name}.js")
});

/// Where it is.
pub(crate) fn path() -> &'static str {
    &PATH
}

pub(crate) async fn show() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    (headers, TEXT).into_response()
}
