//! The only file that dials. One [`Upstream`] per connection and generation:
//! its own TLS configuration and two clients, since a write must never be sent
//! again by a pool that means well. Redirects are not followed, environment
//! proxies not read, verification cannot be turned off. Which addresses may be
//! dialled is `resolve.rs`'s, what a reply may carry `headers.rs`'s.

mod dial;
mod tls;
mod wire;

use crate::credential::Identity;
use crate::{Connection, Effect, Endpoint, Host, Limits, PageReach, Refusal, Resolve};
use bytes::Bytes;
use dial::{DialError, Dialler};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioTimer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Whether a connection's own authority can be used at all.
pub(crate) fn check_authority(pem: &str) -> Result<(), Refusal> {
    tls::config(Some(pem), None).map(drop)
}

/// Whether a certificate and its key can be used.
pub(crate) fn check_identity(identity: Identity) -> Result<(), ()> {
    tls::config(None, Some(identity)).map(drop).map_err(drop)
}

/// How long an idle read connection is kept: below the 60 s after which common
/// load balancers drop it.
const IDLE_READS: Duration = Duration::from_secs(50);

/// The same for writes: short, because a write that meets a connection the
/// vendor has just closed fails and is not sent again.
const IDLE_WRITES: Duration = Duration::from_secs(10);

/// Idle connections kept to a token endpoint or for a page: as many as one run may
/// use at a time. To a vendor's hosts together it is as many as its connection may
/// have requests at a time: under load what is dropped is dialled again at once, and a handshake is
/// the dearest part of a small read.
const IDLE_PER_HOST: usize = 8;

/// Largest response head: common servers send at most 16 KiB; twice that twice.
const HEAD_BYTES: usize = 64 * 1024;

/// What every upstream shares.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) own: Arc<[SocketAddr]>,
    pub(crate) limits: Limits,
    pub(crate) tasks: Tasks,
}

/// Owns the tasks that drive connections: they end when the proxy stops.
#[derive(Clone)]
pub(crate) struct Tasks {
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = future => {}
            }
        });
    }
}

/// A vendor, as one generation of a connection reaches it.
pub(crate) struct Upstream {
    reads: Client<Dialler, Full<Bytes>>,
    writes: Client<Dialler, Full<Bytes>>,
    head: Duration,
}

/// One request, complete.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'a str,
    pub(crate) effect: Effect,
    /// It may be sent a second time: its method and its effect both read.
    pub(crate) again: bool,
    pub(crate) authority: &'a str,
    pub(crate) path_and_query: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A reply whose head is complete.
pub(crate) struct Incomplete {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Incoming,
    connection: CaptureConnection,
}

impl Incomplete {
    /// The connection is not used again: its peer did something odd, or its
    /// body was not read to the end.
    pub(crate) fn poison(&self) {
        if let Some(connected) = self.connection.connection_metadata().as_ref() {
            connected.poison();
        }
    }
}

impl Upstream {
    /// Prepares TLS and the two clients; dials nothing.
    pub(crate) fn new(
        connection: &Connection,
        identity: Option<Identity>,
        network: &Network,
    ) -> Result<Self, Refusal> {
        let tls = tls::config(connection.ca_pem.as_deref(), identity)?;
        let (hosts, exceptions) = (&connection.hosts, &connection.exceptions);
        let most = connection.overrides.most_at_a_time(&network.limits);
        let idle = IDLE_PER_HOST.max(most / hosts.len().max(1));
        Ok(Self::over(Dialler::new(hosts, exceptions, network.clone(), tls), network, idle))
    }

    /// The way to a connection's token endpoint and to nothing else: a client
    /// of its own, so that no tool's request ever travels on it.
    pub(crate) fn to_endpoint(
        endpoint: &Endpoint,
        connection: &Connection,
        network: &Network,
    ) -> Result<Self, Refusal> {
        let tls = tls::config(connection.ca_pem.as_deref(), None)?;
        let hosts = std::slice::from_ref(endpoint.host());
        let dialler = Dialler::new(hosts, &connection.exceptions, network.clone(), tls);
        Ok(Self::over(dialler, network, IDLE_PER_HOST))
    }

    /// The way to one host of a page, with no connection and no credential
    /// behind it.
    pub(crate) fn to_page(
        host: &Host,
        reach: &PageReach,
        network: &Network,
    ) -> Result<Self, Refusal> {
        let tls = tls::config(reach.ca_pem.as_deref(), None)?;
        let hosts = std::slice::from_ref(host);
        let dialler = Dialler::new(hosts, &reach.exceptions, network.clone(), tls);
        Ok(Self::over(dialler, network, IDLE_PER_HOST))
    }

    fn over(dialler: Dialler, network: &Network, most_idle: usize) -> Self {
        let client = |idle: Duration, again: bool| {
            let mut builder = Client::builder(network.tasks.clone());
            builder
                .pool_timer(TokioTimer::new())
                .timer(TokioTimer::new())
                .pool_idle_timeout(idle)
                .pool_max_idle_per_host(most_idle)
                .retry_canceled_requests(again)
                .http1_max_buf_size(HEAD_BYTES)
                .http2_max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
                .build(dialler.clone())
        };
        Self {
            reads: client(IDLE_READS, true),
            writes: client(IDLE_WRITES, false),
            head: network.limits.head,
        }
    }

    /// Sends a request and waits for the head of its reply. A read that met a
    /// connection the vendor had closed is sent once more, a write never.
    pub(crate) async fn send(&self, outgoing: Outgoing<'_>) -> Result<Incomplete, Refusal> {
        let request = build(&outgoing)?;
        if outgoing.again {
            let again = build(&outgoing)?;
            return match attempt(&self.reads, request, self.head).await {
                Err(Failure { again: true, .. }) => {
                    attempt(&self.reads, again, self.head).await.map_err(|f| f.refusal)
                }
                other => other.map_err(|failure| failure.refusal),
            };
        }
        let sent = attempt(&self.writes, request, self.head).await;
        sent.map_err(|Failure { refusal, may_have_gone, .. }| match outgoing.effect {
            Effect::Write | Effect::Destroy if may_have_gone => Refusal::OutcomeUnknown(format!(
                "the write may have reached the vendor ({})",
                refusal.code()
            )),
            Effect::Read | Effect::Write | Effect::Destroy => refusal,
        })
    }
}

struct Failure {
    refusal: Refusal,
    /// Bytes of the request may have left.
    may_have_gone: bool,
    /// A connection from the pool turned out to be closed.
    again: bool,
}

fn build(outgoing: &Outgoing<'_>) -> Result<Request<Full<Bytes>>, Refusal> {
    let uri = Uri::builder()
        .scheme("https")
        .authority(outgoing.authority)
        .path_and_query(outgoing.path_and_query)
        .build()
        .map_err(|_| Refusal::PathInvalid("the path does not fit in a URI".into()))?;
    // The last look: whatever the parts were made of, the bytes that go are
    // those the policy saw, to the host the connection names.
    let same = uri.authority().is_some_and(|found| found.as_str() == outgoing.authority)
        && uri.path_and_query().is_some_and(|found| found.as_str() == outgoing.path_and_query);
    if !same {
        return Err(Refusal::PathAmbiguous("the path reads differently as a URI".into()));
    }
    let method = Method::from_bytes(outgoing.method.as_bytes())
        .map_err(|_| Refusal::MethodInvalid("the method is malformed".into()))?;
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = outgoing.headers.clone();
    Ok(request)
}

async fn attempt(
    client: &Client<Dialler, Full<Bytes>>,
    mut request: Request<Full<Bytes>>,
    deadline: Duration,
) -> Result<Incomplete, Failure> {
    let connection = capture_connection(&mut request);
    let host = request.uri().host().unwrap_or_default().to_owned();
    let sent = tokio::time::timeout(deadline, client.request(request)).await;
    let failed = |refusal, again| {
        let may_have_gone = connection.connection_metadata().is_some();
        Failure { refusal, may_have_gone, again }
    };
    let reply = match sent {
        Err(_) => {
            let refusal = Refusal::UpstreamTimeout(format!("{host} did not answer in time"));
            return Err(failed(refusal, false));
        }
        Ok(Err(error)) => {
            let again = closed(&error);
            return Err(failed(refusal(&error), again));
        }
        Ok(Ok(reply)) => reply,
    };
    let (head, body) = reply.into_parts();
    let odd = head.extensions.get::<wire::Odd>().is_some_and(wire::Odd::is_set);
    let reply = Incomplete { status: head.status, headers: head.headers, body, connection };
    if odd {
        // Taken as it reads, but nothing more is read from this connection.
        reply.poison();
    }
    if let Err(refusal) = check_head(&reply) {
        reply.poison();
        return Err(Failure { refusal, may_have_gone: true, again: false });
    }
    Ok(reply)
}

/// What hyper lets through and two readers would frame differently.
fn check_head(reply: &Incomplete) -> Result<(), Refusal> {
    let odd = |what: &str| Err(Refusal::UpstreamProtocol(format!("the vendor sent {what}")));
    if reply.status.is_informational() {
        return odd("a protocol switch nobody asked for");
    }
    let lengths: Vec<_> = reply.headers.get_all(http::header::CONTENT_LENGTH).iter().collect();
    if !lengths.is_empty() && reply.headers.contains_key(http::header::TRANSFER_ENCODING) {
        return odd("both a length and a transfer coding");
    }
    if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
        return odd("two lengths");
    }
    Ok(())
}

/// Whether a request met a closed connection before any answer came, or an
/// HTTP/2 vendor said that it did not begin with it.
fn closed(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    let mut closed = false;
    while let Some(inner) = source {
        if let Some(hyper) = inner.downcast_ref::<hyper::Error>() {
            closed |= hyper.is_incomplete_message() || hyper.is_canceled() || hyper.is_closed();
        }
        if let Some(h2) = inner.downcast_ref::<h2::Error>() {
            let refused = h2.is_reset() && h2.reason() == Some(h2::Reason::REFUSED_STREAM);
            let leaving = h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
            return h2.is_remote() && (refused || leaving);
        }
        source = inner.source();
    }
    closed
}

/// What a client's failure is for the module: the fact, never the vendor's or
/// the network's words, which go to the operator's log.
fn refusal(error: &Error) -> Refusal {
    let mut source = std::error::Error::source(error);
    let mut protocol = false;
    while let Some(inner) = source {
        if let Some(dial) = inner.downcast_ref::<DialError>() {
            return dial.0.clone();
        }
        if let Some(hyper) = inner.downcast_ref::<hyper::Error>() {
            protocol |= hyper.is_parse() || hyper.is_parse_too_large();
        }
        if let Some(h2) = inner.downcast_ref::<h2::Error>() {
            protocol |= breaks_http2(h2);
        }
        source = inner.source();
    }
    tracing::debug!(%error, "the vendor failed");
    if protocol {
        Refusal::UpstreamProtocol("the vendor's answer is not HTTP".into())
    } else {
        Refusal::UpstreamTruncated("the vendor closed before it answered".into())
    }
}

/// What the vendor did to HTTP/2 itself, as against ending early.
fn breaks_http2(error: &h2::Error) -> bool {
    // Found by our side: frames that are not HTTP/2, or too many of them.
    error.is_library() || matches!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR))
}

/// A body's failure.
pub(crate) fn body_refusal(error: &hyper::Error) -> Refusal {
    tracing::debug!(%error, "the vendor's body failed");
    let source = std::error::Error::source(error).and_then(|inner| inner.downcast_ref());
    if error.is_parse() || error.is_parse_too_large() || source.is_some_and(breaks_http2) {
        Refusal::UpstreamProtocol("the vendor's answer is not HTTP".into())
    } else {
        Refusal::UpstreamTruncated("the vendor's answer ended early".into())
    }
}
