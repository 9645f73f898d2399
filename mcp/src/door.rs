//! The HTTP door of `/mcp`: exact Host and Origin, the agent's token at every
//! request, a session only for the agent that opened it. What passes goes to
//! the library's streamable HTTP with the caller inside the request.

use crate::asking::Parking;
use crate::handler::{Handler, Listener, Who};
use crate::sessions::{AgentSessions, as_caller};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use cambium_engine::{AgentId, Caller, Engine, EngineError, Envelope, PersonProof};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Largest message, bytes; a module's source fits many times over.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// How `/mcp` is served.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Values of `Host` that are answered, port included unless it is the
    /// scheme's own: `127.0.0.1:7171`.
    pub hosts: Vec<String>,
    /// Values of `Origin` that are answered: `http://127.0.0.1:7171`. A request
    /// without one comes from no browser and passes.
    pub origins: Vec<String>,
    /// Whom requests that carry no token are taken for, so that a test runner
    /// without credentials acts as one agent. Only for loopback, and never by
    /// default.
    pub dev_agent: Option<DevAgent>,
    /// Ends every session and stream.
    pub cancel: CancellationToken,
    /// Owns what outlives a request; close it and wait for it at shutdown.
    pub tasks: TaskTracker,
}

/// An agent a person lets requests act as that carry no token.
#[derive(Debug, Clone)]
pub struct DevAgent {
    /// Which agent. Its own token stays as it is.
    pub agent: AgentId,
    /// That a person said so.
    pub proof: Arc<PersonProof>,
}

struct Door<H: ServerHandler> {
    engine: Arc<Engine>,
    hosts: Vec<String>,
    origins: Vec<String>,
    dev_agent: Option<DevAgent>,
    sessions: Arc<AgentSessions>,
    service: StreamableHttpService<H, AgentSessions>,
}

/// The route `/mcp`. Call it inside a tokio runtime: the reaper starts here.
pub fn http_service(engine: Arc<Engine>, config: HttpConfig) -> Router {
    let parking = Arc::new(Parking::default());
    let tasks = config.tasks.clone();
    let make = {
        let engine = engine.clone();
        move || Handler::new(engine.clone(), Who::Request, None, tasks.clone(), parking.clone())
    };
    http_service_with(engine, config, make)
}

/// The same door, sessions and reaper before another MCP server: for a test that
/// holds them to what a product's own tools cannot show.
pub fn http_service_with<H: ServerHandler>(
    engine: Arc<Engine>,
    config: HttpConfig,
    make: impl Fn() -> H + Send + Sync + 'static,
) -> Router {
    let HttpConfig { hosts, origins, dev_agent, cancel, tasks } = config;
    let sessions = Arc::new(AgentSessions::default());
    tasks.spawn({
        let (sessions, cancel) = (sessions.clone(), cancel.clone());
        async move { sessions.reap(cancel).await }
    });
    let service = StreamableHttpService::new(
        move || Ok(make()),
        sessions.clone(),
        // the door checks Host and Origin itself: the library takes an entry
        // without a port for any port
        StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MESSAGE_BYTES_MAX)
            .with_cancellation_token(cancel),
    );
    let lower = |list: Vec<String>| list.iter().map(|entry| entry.to_ascii_lowercase()).collect();
    let (hosts, origins) = (lower(hosts), lower(origins));
    let door = Arc::new(Door { engine, hosts, origins, dev_agent, sessions, service });
    Router::new().route("/mcp", any(enter::<H>)).with_state(door)
}

async fn enter<H: ServerHandler>(
    State(door): State<Arc<Door<H>>>,
    mut request: Request,
) -> Response {
    if !door.host_is_ours(&request) {
        return plain(StatusCode::MISDIRECTED_REQUEST, "this server does not answer to that Host");
    }
    if !door.origin_is_ours(request.headers()) {
        return plain(StatusCode::FORBIDDEN, "pages of that Origin may not use this server");
    }
    let caller = match door.caller(request.headers()).await {
        Ok(caller) => caller,
        Err(refusal) => return *refusal,
    };
    if let Some(id) = request.headers().get(SESSION_ID) {
        // the same answer as for an id that never was
        if !id.to_str().is_ok_and(|id| door.sessions.may_use(id, &caller)) {
            tracing::warn!(agent = %caller.agent().id, "a session of another agent was refused");
            return plain(StatusCode::NOT_FOUND, "no such session; initialize again");
        }
    }
    // the token has been used; nothing behind the door needs to see it
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(caller.clone());
    let listener = Listener(CancellationToken::new());
    request.extensions_mut().insert(listener.clone());
    // dropped with this future or with the answer's body, whoever drops them
    let listens = listener.0.drop_guard();
    let ends = request.method() == Method::DELETE;
    let response = as_caller(caller, door.service.handle(request)).await;
    let mut response = response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &listens;
            frame
        }))
    });
    // the library answers 202, which some clients report as a failure to end
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

impl<H: ServerHandler> Door<H> {
    fn host_is_ours(&self, request: &Request) -> bool {
        let mut values = request.headers().get_all(HOST).iter();
        let host = match (values.next(), values.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, None) => request.uri().authority().map(http::uri::Authority::as_str),
            _ => None,
        };
        host.is_some_and(|host| self.hosts.contains(&host.to_ascii_lowercase()))
    }

    fn origin_is_ours(&self, headers: &HeaderMap) -> bool {
        headers.get_all(ORIGIN).iter().all(|origin| {
            origin.to_str().is_ok_and(|origin| self.origins.contains(&origin.to_ascii_lowercase()))
        })
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Box<Response>> {
        let known = match (bearer(headers), &self.dev_agent) {
            (Some(token), _) => self.engine.authenticate(token).await,
            (None, Some(dev)) if !headers.contains_key(AUTHORIZATION) => {
                self.engine.act_as(&dev.proof, &dev.agent).await
            }
            (None, Some(_) | None) => {
                return Err(Box::new(unauthenticated(r#"Bearer realm="cambium""#)));
            }
        };
        known.map_err(|error| match error {
            EngineError::Unauthenticated => Box::new(unauthenticated(
                r#"Bearer realm="cambium", error="invalid_token", error_description="the agent token is not valid""#,
            )),
            error => {
                tracing::error!(%error, "an agent token could not be looked up");
                Box::new(refusal(StatusCode::SERVICE_UNAVAILABLE, &error))
            }
        })
    }
}

/// The one bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unauthenticated(challenge: &'static str) -> Response {
    let mut response = refusal(StatusCode::UNAUTHORIZED, &EngineError::Unauthenticated);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn refusal(status: StatusCode, error: &EngineError) -> Response {
    let body = serde_json::to_string(&Envelope::from(error)).unwrap_or_default();
    answer(status, "application/json", body)
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    answer(status, "text/plain; charset=utf-8", text)
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
