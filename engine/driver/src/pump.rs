//! Carries a run's requests from its fetch socket to its session and the
//! replies back. The worker is hostile: order, windows and budgets are checked
//! by the jail's tables, bodies are counted before they are kept, and any fault
//! ends the run. What a request may do is the session's to decide.

use bytes::{Bytes, BytesMut};
use cambium_jail::frames::fetch::{
    CHUNK_MAX, FETCH_BUDGET, FetchFault, FetchFrame, RequestHead, ResponseHead, byte_string,
    to_byte_string,
};
use cambium_jail::frames::streams::{Event, Streams};
use cambium_jail::frames::{FrameError, FrameReader, FrameWriter};
use cambium_proxy::{OutboundRequest, Refusal, Reply, Session};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Largest request body kept, bytes. Over the proxy's own limit by one chunk,
/// so that the session is the one to refuse.
const BODY_MAX: usize = 10 * 1024 * 1024 + CHUNK_MAX;
/// Requests of one run beyond which the worker is taken for broken. The
/// session refuses far earlier.
const REQUESTS_MAX: u32 = 1_000;
/// Frames waiting for the socket.
const QUEUE: usize = 16;

/// Why the pump stopped by itself.
#[derive(Debug)]
pub(crate) enum PumpEnd {
    /// The worker closed its side.
    Closed,
    /// It broke a rule; kill it.
    Forged(String),
    /// It asked more often than any tool does.
    Flood,
}

impl From<FrameError> for PumpEnd {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(_) | FrameError::Truncated => Self::Closed,
            other => Self::Forged(other.to_string()),
        }
    }
}

struct Open {
    head: Option<RequestHead>,
    body: BytesMut,
    /// Told when the worker takes more of the reply.
    credit: Arc<Notify>,
    task: Option<AbortHandle>,
}

/// Runs until the worker is gone or at fault. Dropping it drops every request.
pub(crate) async fn pump(socket: UnixStream, session: Arc<Session>) -> PumpEnd {
    let (reader, writer) = socket.into_split();
    let (out, queue) = mpsc::channel(QUEUE);
    tokio::select! {
        end = read(FrameReader::new(reader, FETCH_BUDGET), session, out) => end,
        end = write(FrameWriter::new(writer), queue) => end,
    }
}

async fn write(
    mut writer: FrameWriter<OwnedWriteHalf>,
    mut queue: mpsc::Receiver<(u32, FetchFrame)>,
) -> PumpEnd {
    while let Some((stream, frame)) = queue.recv().await {
        if let Err(error) = frame.send(stream, &mut writer).await {
            return error.into();
        }
    }
    PumpEnd::Closed
}

async fn read(
    mut reader: FrameReader<tokio::net::unix::OwnedReadHalf>,
    session: Arc<Session>,
    out: mpsc::Sender<(u32, FetchFrame)>,
) -> PumpEnd {
    let streams = Arc::new(Mutex::new(Streams::default()));
    let line = Line { session, streams: streams.clone(), out: out.clone() };
    let mut open: BTreeMap<u32, Open> = BTreeMap::new();
    let mut tasks: JoinSet<(u32, FetchFrame)> = JoinSet::new();
    let mut requests = 0;
    loop {
        let frame = tokio::select! {
            // What the worker has said already is judged before the end of a
            // request: it was said before, and is not late.
            biased;
            frame = reader.next() => frame,
            Some(done) = tasks.join_next() => {
                // Closed before the worker is told, so that its next request
                // never finds the stream still counted.
                if let Ok((stream, last)) = done {
                    table(&streams).close(stream);
                    open.remove(&stream);
                    if out.send((stream, last)).await.is_err() {
                        return PumpEnd::Closed;
                    }
                }
                continue;
            }
        };
        let step = match frame {
            Ok(Some(frame)) => FetchFrame::parse(frame)
                .and_then(|(stream, frame)| Ok((stream, table(&streams).accept(stream, frame)?))),
            Ok(None) => return PumpEnd::Closed,
            Err(error) => Err(error),
        };
        let (stream, event) = match step {
            Ok(step) => step,
            Err(error) => return error.into(),
        };
        match event {
            Event::Open(head) => {
                requests += 1;
                if requests > REQUESTS_MAX {
                    return PumpEnd::Flood;
                }
                let body_follows = head.body;
                open.insert(
                    stream,
                    Open {
                        head: Some(head),
                        body: BytesMut::new(),
                        credit: Arc::default(),
                        task: None,
                    },
                );
                if !body_follows {
                    start(stream, &mut open, &mut tasks, &line);
                }
            }
            Event::Chunk(chunk) => {
                let Some(request) = open.get_mut(&stream) else { continue };
                if request.body.len() + chunk.len() > BODY_MAX {
                    return PumpEnd::Forged("a body over every limit".into());
                }
                request.body.extend_from_slice(&chunk);
                let size = u32::try_from(chunk.len()).unwrap_or(0);
                table(&streams).gave_credit(stream, size);
                if out.send((stream, FetchFrame::Credit(size))).await.is_err() {
                    return PumpEnd::Closed;
                }
            }
            Event::Complete => start(stream, &mut open, &mut tasks, &line),
            Event::Credit(_) => {
                if let Some(request) = open.get(&stream) {
                    request.credit.notify_one();
                }
            }
            Event::Cancelled => {
                if let Some(task) = open.remove(&stream).and_then(|request| request.task) {
                    task.abort();
                }
            }
            Event::Late => {}
        }
    }
}

fn start(
    stream: u32,
    open: &mut BTreeMap<u32, Open>,
    tasks: &mut JoinSet<(u32, FetchFrame)>,
    line: &Line,
) {
    let Some(request) = open.get_mut(&stream) else { return };
    let Some(head) = request.head.take() else { return };
    let body = std::mem::take(&mut request.body).freeze();
    let carry = Carry { stream, line: line.clone(), credit: request.credit.clone() };
    request.task = Some(tasks.spawn(async move { (stream, carry.run(head, body).await) }));
}

/// The table of streams is the one place that counts credit, for what the
/// worker gives and for what is sent to it alike.
fn table(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every request of a run shares.
#[derive(Clone)]
struct Line {
    session: Arc<Session>,
    streams: Arc<Mutex<Streams>>,
    out: mpsc::Sender<(u32, FetchFrame)>,
}

/// One request on its way.
struct Carry {
    stream: u32,
    line: Line,
    credit: Arc<Notify>,
}

impl Carry {
    /// Sends everything but the last frame, which is the answer.
    async fn run(self, head: RequestHead, body: Bytes) -> FetchFrame {
        let headers = head
            .headers
            .into_iter()
            .filter_map(|(name, value)| byte_string(&value).map(|value| (name, value)))
            .collect();
        let request = OutboundRequest {
            method: head.method,
            host: head.host,
            target: head.target,
            headers,
            body,
            sdk: head.sdk,
        };
        match self.line.session.send(request).await {
            Ok(reply) => self.reply(reply).await,
            Err(refusal) => fault(&refusal),
        }
    }

    async fn reply(&self, reply: Reply) -> FetchFrame {
        let Reply { status, headers, mut body, intercepted } = reply;
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name, to_byte_string(value.as_bytes())))
            .collect();
        self.say(FetchFrame::Response(ResponseHead { status, headers, intercepted })).await;
        while let Some(chunk) = body.chunk().await {
            let mut chunk = match chunk {
                Ok(chunk) => chunk,
                Err(refusal) => return fault(&refusal),
            };
            while !chunk.is_empty() {
                let wanted = u32::try_from(chunk.len().min(CHUNK_MAX)).unwrap_or(u32::MAX);
                let charged = table(&self.line.streams).charge(self.stream, wanted);
                let size = match charged {
                    // The worker gave the request up.
                    None => return FetchFrame::ResponseEnd,
                    Some(0) => {
                        // Credit that came since is kept by the notice.
                        self.credit.notified().await;
                        continue;
                    }
                    Some(size) => size as usize,
                };
                self.say(FetchFrame::ResponseChunk(chunk.split_to(size))).await;
            }
        }
        FetchFrame::ResponseEnd
    }

    /// A send that fails means that the worker is gone; nobody listens.
    async fn say(&self, frame: FetchFrame) {
        let _ = self.line.out.send((self.stream, frame)).await;
    }
}

fn fault(refusal: &Refusal) -> FetchFrame {
    FetchFrame::Error(FetchFault { code: refusal.code().to_owned(), message: refusal.to_string() })
}
