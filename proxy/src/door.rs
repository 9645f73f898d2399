//! A way in for sandboxes that are not ours: a container whose SDK speaks
//! HTTP/1.1 to a loopback port or a socket, and reaches one connection through
//! the same [`Session`] a module has. Off unless a person opens it. Who may
//! come in is decided here and in `speak`; what may go out is the session's.

mod reply;
mod speak;

use crate::proxy::Shared;
use crate::{AuditEvent, OutboundRequest, Proxy, Refusal, Session};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use reply::Answer;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

/// Connections at once, whoever they are. Each carries one request; those that
/// have said nothing yet count too, so this is well above one token's share.
const CONNECTIONS: usize = 256;
/// Requests of one token at once: a sandbox that is stuck keeps no other out.
const REQUESTS: usize = 16;
/// A request's head must be complete within this.
const HEAD: Duration = Duration::from_secs(10);
/// Largest head, bytes: a session takes a path of 8 KiB, a query of 16 and
/// headers of 16.
const HEAD_BYTES: usize = 64 * 1024;
/// Bytes of a token: 256 bits, so that none is guessed.
const TOKEN: usize = 32;
/// Rows a minute for who was turned away without a session; more would let
/// anybody on this machine fill the audit. What is beyond them is logged.
const TURNED_AWAY: u32 = 60;

/// Where a door is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoorAt {
    /// A loopback address; port 0 takes a free one.
    Loopback(SocketAddr),
    /// A socket, mode 0600, in a directory of our own.
    Socket(PathBuf),
}

/// A bound door, before there is a proxy behind it.
#[derive(Debug)]
pub struct DoorFrame {
    listener: Listener,
    /// What `Host` may be.
    hosts: Vec<String>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl DoorFrame {
    /// Binds it. A file in a socket's place must be left from a process that is
    /// gone: the caller holds the directory's lock.
    pub async fn bind(at: &DoorAt) -> IoResult<Self> {
        match at {
            DoorAt::Loopback(address) if !address.ip().is_loopback() => {
                Err(Error::new(ErrorKind::InvalidInput, "not a loopback address"))
            }
            DoorAt::Loopback(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = listener.local_addr()?;
                let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
                Ok(Self { listener: Listener::Tcp(listener, address), hosts })
            }
            DoorAt::Socket(path) => {
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let listener = UnixListener::bind(path)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                let listener = Listener::Unix(listener, path.clone());
                Ok(Self { listener, hosts: vec!["localhost".into()] })
            }
        }
    }

    /// The address no connection may dial, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Tcp(_, address) => Some(*address),
            Listener::Unix(..) => None,
        }
    }

    /// The socket's file, if it is one.
    pub fn socket(&self) -> Option<&Path> {
        match &self.listener {
            Listener::Tcp(..) => None,
            Listener::Unix(_, path) => Some(path),
        }
    }
}

/// The open door.
pub struct Door {
    shared: Arc<Shared>,
    rooms: Mutex<HashMap<[u8; 32], Arc<Room>>>,
    hosts: Vec<String>,
    turned_away: Mutex<(i64, u32)>,
}

/// What is behind one token.
struct Room {
    session: Arc<Session>,
    /// Requests under way, until their replies are written.
    busy: watch::Sender<usize>,
    /// Cancelled when its token is worth nothing any more.
    over: CancellationToken,
}

/// One token's right to come in; it ends with this.
pub struct Pass {
    door: Arc<Door>,
    digest: [u8; 32],
    token: Zeroizing<String>,
    busy: watch::Receiver<usize>,
}

impl Pass {
    /// The token, for whoever is to come in.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Resolves when nobody has come in for so long.
    pub async fn unused_for(&mut self, idle: Duration) {
        loop {
            match tokio::time::timeout(idle, self.busy.changed()).await {
                Ok(Ok(())) => {}
                Err(_) if *self.busy.borrow() > 0 => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(room) = self.door.rooms().remove(&self.digest) {
            room.session.close();
            room.over.cancel();
        }
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pass")
    }
}

impl Proxy {
    /// Puts the proxy behind a bound door and serves it until `stop` fires.
    pub fn serve_door(
        &self,
        frame: DoorFrame,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Door> {
        let DoorFrame { listener, hosts } = frame;
        let door = Arc::new(Door {
            shared: self.shared().clone(),
            rooms: Mutex::default(),
            hosts,
            turned_away: Mutex::default(),
        });
        tasks.spawn(accept(door.clone(), listener, tasks.clone(), stop));
        door
    }
}

impl Door {
    /// Lets a session's requests in, under a new token.
    pub fn admit(self: &Arc<Self>, session: Arc<Session>) -> IoResult<Pass> {
        let mut bytes = Zeroizing::new([0; TOKEN]);
        getrandom::fill(&mut *bytes).map_err(|error| Error::other(error.to_string()))?;
        let token = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
        let digest = digest(token.as_bytes());
        let (busy, watched) = watch::channel(0);
        let over = CancellationToken::new();
        self.rooms().insert(digest, Arc::new(Room { session, busy, over }));
        Ok(Pass { door: self.clone(), digest, token, busy: watched })
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request, answered whatever it is.
    async fn answer(&self, request: Request<Incoming>, visit: &Visit) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let (room, asked) = match self.take(&head, body, visit).await {
            Ok(taken) => taken,
            Err(refusal) => {
                self.turn_away(&refusal, Some(&head)).await;
                visit.answered.send_replace(Some(Voice::Ours));
                return reply::refused(&refusal);
            }
        };
        match room.session.send(asked).await {
            Ok(got) => {
                visit.answered.send_replace(Some(Voice::Vendors));
                reply::answered(got)
            }
            Err(refusal) => {
                visit.answered.send_replace(Some(Voice::Ours));
                reply::refused(&refusal)
            }
        }
    }

    /// Gives a request its place and takes it whole.
    async fn take<'v>(
        &self,
        head: &http::request::Parts,
        body: Incoming,
        visit: &'v Visit,
    ) -> Result<(&'v Room, OutboundRequest), Refusal> {
        let busy = Busy::new(self.let_in(head)?)?;
        let room: &Room = &visit.place.get_or_init(|| busy).0;
        let limits = &self.shared.parts.limits;
        let body = Limited::new(body, limits.request_body_bytes).collect();
        let body = tokio::select! {
            body = tokio::time::timeout(limits.exchange, body) => body,
            () = room.over.cancelled() => {
                let said = "the session was closed before the request was whole";
                return Err(Refusal::RunClosed(said.into()));
            }
        };
        let body = match body {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) => {
                return Err(match error.downcast_ref::<LengthLimitError>() {
                    Some(_) => Refusal::BodyTooLarge(format!(
                        "the body is over {} bytes",
                        limits.request_body_bytes
                    )),
                    None => Refusal::HeaderRefused("the request's body is not whole".into()),
                });
            }
            Err(_) => {
                return Err(Refusal::HeaderRefused("the request's body did not come".into()));
            }
        };
        let (host, headers) = speak::passed_on(head);
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let method = head.method.as_str().to_owned();
        Ok((room, OutboundRequest { method, host, target, headers, body, sdk: false }))
    }

    /// Whose request it is. Who has no token learns nothing of who has.
    fn let_in(&self, head: &http::request::Parts) -> Result<Arc<Room>, Refusal> {
        speak::check(head, &self.hosts)?;
        let none = || Refusal::RunClosed("no open session has this token".into());
        let token = speak::token(head)?.ok_or_else(none)?;
        self.rooms().get(&digest(token)).cloned().ok_or_else(none)
    }

    /// Writes down who had no session to write it down.
    async fn turn_away(&self, refusal: &Refusal, head: Option<&http::request::Parts>) {
        let now = self.shared.parts.clock.now_ms();
        let minute = now.div_euclid(60_000);
        let counted = {
            let mut turned = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
            if turned.0 != minute {
                *turned = (minute, 0);
            }
            turned.1 = turned.1.saturating_add(1);
            turned.1
        };
        tracing::warn!(code = refusal.code(), "a request was turned away at the door");
        if counted > TURNED_AWAY {
            return;
        }
        let shown = |text: &str| text.chars().take(64).collect::<String>();
        let method = head.map(|head| shown(head.method.as_str())).unwrap_or_default();
        let mut event = AuditEvent::turned_away(now, refusal.code(), method);
        if counted == TURNED_AWAY {
            event.notes.push("more_this_minute_are_only_logged".into());
        }
        if let Err(fault) = self.shared.writer.put(event, false).stored().await {
            tracing::error!(%fault, "a refusal at the door could not be recorded");
        }
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// A place among its token's requests, counted until it is dropped.
struct Busy(Arc<Room>);

impl Busy {
    fn new(room: Arc<Room>) -> Result<Self, Refusal> {
        let taken = room.busy.send_if_modified(|busy| {
            let free = *busy < REQUESTS;
            *busy += usize::from(free);
            free
        });
        match taken {
            true => Ok(Self(room)),
            false => Err(Refusal::RateLimited(format!(
                "this token has {REQUESTS} requests under way at the door"
            ))),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.send_modify(|busy| *busy -= 1);
    }
}

/// Whose words a reply is.
#[derive(Clone, Copy)]
enum Voice {
    /// A refusal: a few words, which may be what ended the session.
    Ours,
    /// The vendor's answer, as large as it likes.
    Vendors,
}

/// What one connection came to. Its place is kept until the reply is written: a
/// client that does not read is as much in the way as one that does not send.
struct Visit {
    place: OnceLock<Busy>,
    answered: watch::Sender<Option<Voice>>,
}

impl Visit {
    /// Resolves when the reply has been written for too long, or is a vendor's
    /// and its session is over. hyper itself has no deadline on writing.
    async fn overstayed(&self, reading: Duration) {
        let mut answered = self.answered.subscribe();
        // The sender is our own, so there is always an answer to wait for.
        let voice = answered.wait_for(Option::is_some).await.ok().and_then(|voice| *voice);
        let over = async {
            match (voice, self.place.get()) {
                (Some(Voice::Vendors), Some(Busy(room))) => room.over.cancelled().await,
                (Some(Voice::Vendors | Voice::Ours) | None, _) => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(reading, over).await;
    }
}

/// Only the digest is kept and looked up, so neither time nor memory tells of a
/// token that is near one.
fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

async fn accept(door: Arc<Door>, listener: Listener, tasks: TaskTracker, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = next(&listener) => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok(stream) => {
                let (door, stop) = (door.clone(), stop.clone());
                tasks.spawn(async move {
                    let _place = place;
                    tokio::select! {
                        () = converse(&door, stream) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
            Err(error) => {
                // Out of descriptors: give those in use a moment to close.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    if let Listener::Unix(_, path) = &listener {
        let _ = std::fs::remove_file(path);
    }
}

/// A stream of either kind.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

async fn next(listener: &Listener) -> IoResult<Box<dyn Wire>> {
    match listener {
        Listener::Tcp(listener, _) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Listener::Unix(listener, _) => {
            let (stream, _) = listener.accept().await?;
            Ok(Box::new(stream))
        }
    }
}

/// One request, then the connection closes: what is sent behind it is nobody's.
async fn converse(door: &Arc<Door>, stream: Box<dyn Wire>) {
    let visit = Visit { place: OnceLock::new(), answered: watch::Sender::new(None) };
    let answer = service_fn(|request| {
        let visit = &visit;
        async move { Ok::<_, Infallible>(door.answer(request, visit).await) }
    });
    let mut connection = http1::Builder::new();
    connection
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD);
    // The vendor may take one exchange to the end of its answer; the client has
    // another to read what is left.
    let reading = door.shared.parts.limits.exchange * 2;
    let served = tokio::select! {
        served = connection.serve_connection(TokioIo::new(stream), answer) => served,
        () = visit.overstayed(reading) => {
            return tracing::warn!("a reply at the door was not read to its end");
        }
    };
    // What hyper could not read has had no other chance to be written down.
    if let Err(error) = served
        && error.is_parse()
    {
        let refusal = Refusal::HeaderRefused("the request is not well-formed HTTP/1.1".into());
        door.turn_away(&refusal, None).await;
    }
}
