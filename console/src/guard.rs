//! Which requests reach a page at all, and what every answer carries. A page of
//! another site must not be able to read, frame or submit anything here, even
//! when its name is made to resolve to this machine.

use crate::Settings;
use crate::error::Problem;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use std::sync::Arc;

/// `same-origin` and not `no-referrer`: under the latter a browser sends
/// `Origin: null` with our own forms.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Exact `Host` always; exact `Origin` where there is one, and always with a
/// form.
pub(crate) async fn check(
    State(settings): State<Arc<Settings>>,
    request: Request,
    next: Next,
) -> Response {
    match refused(&settings, request.method(), request.headers()) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

/// Adds the headers of [`HEADERS`] to whatever is answered. Only what says
/// otherwise of itself is kept by anybody.
pub(crate) async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let kept = response.headers_mut().entry(header::CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refused(settings: &Settings, method: &Method, headers: &HeaderMap) -> Option<Problem> {
    let only = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Some(value.to_str().unwrap_or("")),
            // Two are none of ours.
            (Some(_), Some(_)) => Some(""),
            (None, _) => None,
        }
    };
    let among = |value: &str, known: &[String]| known.iter().any(|one| one == value);
    if !only(header::HOST).is_some_and(|host| among(host, &settings.hosts)) {
        return Some(Problem::host());
    }
    let safe = method == Method::GET || method == Method::HEAD;
    match only(header::ORIGIN) {
        Some(origin) if among(origin, &settings.origins) => {}
        None if safe => {}
        _ => return Some(Problem::origin()),
    }
    match only(HeaderName::from_static("sec-fetch-site")) {
        Some("cross-site" | "same-site") if !safe => Some(Problem::origin()),
        _ => None,
    }
}
