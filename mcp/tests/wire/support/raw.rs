//! Requests as bytes, straight into the door.

use super::{HOST, ORIGIN};
use axum::Router;
use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tower_service::Service;

/// One request in the making.
pub(crate) struct Raw {
    method: Method,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Raw {
    /// A POST of one JSON-RPC message, as a client of the older era sends it.
    pub(crate) fn post(token: &str, message: &Value) -> Self {
        let raw = Self { method: Method::POST, headers: Vec::new(), body: message.to_string() };
        raw.with("host", HOST)
            .with("authorization", &format!("Bearer {token}"))
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream")
    }

    pub(crate) fn of(method: Method, token: &str) -> Self {
        let mut raw = Self::post(token, &Value::Null);
        raw.method = method;
        raw.body.clear();
        raw
    }

    pub(crate) fn initialize(token: &str) -> Self {
        Self::post(
            token,
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            }}),
        )
    }

    pub(crate) fn call(token: &str, id: u32, name: &str, arguments: &Value) -> Self {
        Self::post(
            token,
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": name, "arguments": arguments}}),
        )
    }

    /// Replaces a header.
    pub(crate) fn with(self, name: &'static str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    /// Adds one, beside any of the same name.
    pub(crate) fn also(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self
    }

    pub(crate) fn on_our_page(self) -> Self {
        self.with("origin", ORIGIN)
    }

    pub(crate) async fn send(self, router: &Router) -> Response<Body> {
        let mut request = Request::builder().method(self.method).uri("/mcp");
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.body)).unwrap();
        router.clone().call(request).await.unwrap()
    }

    pub(crate) async fn status(self, router: &Router) -> StatusCode {
        self.send(router).await.status()
    }

    /// Opens a session; answers its id.
    pub(crate) async fn session(token: &str, router: &Router) -> String {
        let response = Self::initialize(token).send(router).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        messages(response).await;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let status =
            Self::post(token, &initialized).with("mcp-session-id", &id).status(router).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        id
    }
}

/// All messages of a finished answer, whichever way it was sent.
pub(crate) async fn messages(response: Response<Body>) -> Vec<Value> {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
    let text = std::str::from_utf8(&bytes).unwrap();
    if let Ok(message) = serde_json::from_str(text) {
        return vec![message];
    }
    text.lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .filter(|data| !data.trim().is_empty())
        .map(|data| serde_json::from_str(data.trim()).unwrap())
        .collect()
}
