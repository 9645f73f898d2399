//! A run's requests as its own process keeps them: which wait, which are open,
//! what of a reply has come. Operations fill it, the worker's loop carries its
//! frames to the socket and back. Order and windows are kept so that the parent
//! never has a reason to call a frame forged.

use bytes::Bytes;
use cambium_jail::frames::fetch::{
    CHUNK_MAX, FetchFault, FetchFrame, HEAD_MAX, HEADERS_MAX, RequestHead, ResponseHead, WINDOW,
};
use cambium_jail::frames::streams::STREAMS_MAX;
use cambium_jail::job::EXIT_PANIC;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Largest request body that travels, bytes; the session's own limit is this.
const BODY_MAX: usize = 10 * 1024 * 1024;
/// Longest path and query that travel, bytes; the session's limits are lower.
const TARGET_MAX: usize = 32 * 1024;
/// Bytes of a line beyond which nothing of it is kept, whatever the cap.
const LINE_MAX: usize = 64 * 1024;

/// Hands a line and a count of dropped bytes to the parent.
pub(crate) type Say = Box<dyn Fn(&str, u64)>;

/// One run's requests, lines and failure.
pub(crate) struct Link {
    started: Instant,
    state: RefCell<State>,
    /// Rung when there is something to send.
    out: Notify,
    log_left: Cell<usize>,
    failed: RefCell<Option<(String, String)>>,
    say: Say,
    unsaid: Cell<u64>,
    /// What every request is answered at once.
    prepared: Option<(ResponseHead, Bytes)>,
}

#[derive(Default)]
struct State {
    last: u32,
    last_stream: u32,
    exchanges: BTreeMap<u32, Exchange>,
    by_stream: BTreeMap<u32, u32>,
    waiting: VecDeque<u32>,
    out: VecDeque<(u32, FetchFrame)>,
}

struct Exchange {
    request: Option<RequestHead>,
    body: Bytes,
    stream: Option<u32>,
    may_send: u32,
    head: Option<ResponseHead>,
    chunks: VecDeque<Bytes>,
    end: Option<Result<(), FetchFault>>,
    arrived: Rc<Notify>,
}

impl Link {
    /// `say` hands a console line and the bytes dropped before it to the
    /// parent at once, so that the lines of a run that is killed are kept.
    pub(crate) fn new(log_bytes: usize, say: Say) -> Self {
        Self {
            started: Instant::now(),
            state: RefCell::default(),
            out: Notify::new(),
            log_left: Cell::new(log_bytes),
            failed: RefCell::default(),
            say,
            unsaid: Cell::new(0),
            prepared: None,
        }
    }

    /// One without a socket, for the warm-up: every answer is there before it is
    /// waited for. An operation that waited would leave its waking with the tokio
    /// runtime of the boot, and no fork would ever be woken.
    pub(crate) fn prepared(head: ResponseHead, body: Bytes) -> Self {
        Self { prepared: Some((head, body)), ..Self::new(0, Box::new(|_, _| {})) }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Queues a request; at most [`STREAMS_MAX`] are open at a time.
    /// What could not travel is refused here, in the words of the proxy.
    pub(crate) fn request(&self, head: RequestHead, body: Bytes) -> u32 {
        let refusal = unfit(&head, &body);
        let mut state = self.state.borrow_mut();
        state.last += 1;
        let id = state.last;
        let exchange = Exchange {
            request: Some(head),
            body,
            stream: None,
            may_send: WINDOW,
            head: None,
            chunks: VecDeque::new(),
            end: None,
            arrived: Rc::new(Notify::new()),
        };
        if let Some(fault) = refusal {
            let exchange = Exchange { end: Some(Err(fault)), body: Bytes::new(), ..exchange };
            state.exchanges.insert(id, exchange);
            return id;
        }
        if let Some((head, body)) = &self.prepared {
            let (head, chunks) = (Some(head.clone()), VecDeque::from([body.clone()]));
            let exchange = Exchange { head, chunks, end: Some(Ok(())), ..exchange };
            state.exchanges.insert(id, exchange);
            return id;
        }
        state.exchanges.insert(id, exchange);
        state.waiting.push_back(id);
        state.open_waiting();
        drop(state);
        self.out.notify_one();
        id
    }

    /// The head of a reply, and whether all of it is here.
    pub(crate) async fn head(&self, id: u32) -> Result<(ResponseHead, bool), FetchFault> {
        loop {
            let arrived = {
                let mut state = self.state.borrow_mut();
                let Some(exchange) = state.exchanges.get_mut(&id) else { return Err(gone()) };
                if let Some(head) = exchange.head.take() {
                    return Ok((head, exchange.end.is_some()));
                }
                if let Some(Err(fault)) = &exchange.end {
                    let fault = fault.clone();
                    state.exchanges.remove(&id);
                    return Err(fault);
                }
                exchange.arrived.clone()
            };
            arrived.notified().await;
        }
    }

    /// The next piece of a reply; `None` at its complete end.
    pub(crate) async fn chunk(&self, id: u32) -> Result<Option<Bytes>, FetchFault> {
        loop {
            let arrived = {
                let mut state = self.state.borrow_mut();
                let Some(exchange) = state.exchanges.get_mut(&id) else { return Err(gone()) };
                if let Some(chunk) = exchange.chunks.pop_front() {
                    if let (Some(stream), None) = (exchange.stream, &exchange.end) {
                        let size = u32::try_from(chunk.len()).unwrap_or(0);
                        state.out.push_back((stream, FetchFrame::Credit(size)));
                        self.out.notify_one();
                    }
                    return Ok(Some(chunk));
                }
                if let Some(end) = exchange.end.clone() {
                    state.exchanges.remove(&id);
                    return end.map(|()| None);
                }
                exchange.arrived.clone()
            };
            arrived.notified().await;
        }
    }

    /// Gives an exchange up, open or not.
    pub(crate) fn cancel(&self, id: u32) {
        let mut state = self.state.borrow_mut();
        state.waiting.retain(|&waiting| waiting != id);
        let Some(exchange) = state.exchanges.get_mut(&id) else { return };
        if exchange.end.is_some() {
            return;
        }
        exchange.end = Some(Err(gone()));
        exchange.chunks.clear();
        exchange.body = Bytes::new();
        exchange.arrived.notify_waiters();
        exchange.arrived.notify_one();
        if let Some(stream) = exchange.stream.take() {
            state.by_stream.remove(&stream);
            state.out.push_back((stream, FetchFrame::Cancel));
            state.open_waiting();
        }
        drop(state);
        self.out.notify_one();
    }

    /// Takes a frame of the parent. False when it makes no sense: the parent is
    /// ours, so the worker ends.
    pub(crate) fn accept(&self, stream: u32, frame: FetchFrame) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(&id) = state.by_stream.get(&stream) else { return true };
        let Some(exchange) = state.exchanges.get_mut(&id) else { return true };
        match frame {
            FetchFrame::Response(head) => exchange.head = Some(head),
            FetchFrame::ResponseChunk(chunk) => exchange.chunks.push_back(chunk),
            FetchFrame::Credit(bytes) => {
                exchange.may_send = exchange.may_send.saturating_add(bytes);
                state.send_body(id);
                drop(state);
                self.out.notify_one();
                return true;
            }
            FetchFrame::ResponseEnd | FetchFrame::Error(_) => {
                exchange.end = Some(match frame {
                    FetchFrame::Error(fault) => Err(fault),
                    _ => Ok(()),
                });
                exchange.stream = None;
                exchange.body = Bytes::new();
                exchange.arrived.notify_one();
                state.by_stream.remove(&stream);
                state.open_waiting();
                drop(state);
                self.out.notify_one();
                return true;
            }
            FetchFrame::Request(_)
            | FetchFrame::RequestChunk(_)
            | FetchFrame::RequestEnd
            | FetchFrame::Cancel => return false,
        }
        exchange.arrived.notify_one();
        true
    }

    /// The next frame to send.
    pub(crate) async fn outgoing(&self) -> (u32, FetchFrame) {
        loop {
            if let Some(frame) = self.state.borrow_mut().out.pop_front() {
                return frame;
            }
            self.out.notified().await;
        }
    }

    /// A console line, kept while the run's log has room.
    pub(crate) fn log(&self, line: &str, cut: u32) {
        let left = self.log_left.get();
        let mut take = line.len().min(left).min(LINE_MAX);
        while !line.is_char_boundary(take) {
            take -= 1;
        }
        let dropped = (line.len() - take) as u64 + u64::from(cut);
        if left == 0 {
            self.unsaid.set(self.unsaid.get() + dropped);
            return;
        }
        // A line costs a little even when it is empty.
        self.log_left.set(left.saturating_sub(take + 1));
        (self.say)(&line[..take], dropped);
    }

    /// Bytes of lines that were dropped without a word since the log was full.
    pub(crate) fn unsaid(&self) -> u64 {
        self.unsaid.get()
    }

    /// Notes the first failure outside the tool's promise.
    pub(crate) fn fail(&self, message: &str, stack: &str) {
        self.failed.borrow_mut().get_or_insert_with(|| (message.to_owned(), stack.to_owned()));
    }

    /// The failure, if there was one.
    pub(crate) fn failure(&self) -> Option<(String, String)> {
        self.failed.borrow_mut().take()
    }
}

impl State {
    /// Opens what waits while there is room.
    fn open_waiting(&mut self) {
        while self.by_stream.len() < STREAMS_MAX {
            let Some(id) = self.waiting.pop_front() else { return };
            let Some(exchange) = self.exchanges.get_mut(&id) else { continue };
            let Some(head) = exchange.request.take() else { continue };
            self.last_stream += 1;
            let stream = self.last_stream;
            exchange.stream = Some(stream);
            self.by_stream.insert(stream, id);
            self.out.push_back((stream, FetchFrame::Request(head)));
            self.send_body(id);
        }
    }

    /// Sends what the window allows of a body.
    fn send_body(&mut self, id: u32) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(stream) = exchange.stream else { return };
        if exchange.body.is_empty() {
            return;
        }
        while exchange.may_send > 0 && !exchange.body.is_empty() {
            let size = exchange.body.len().min(exchange.may_send as usize).min(CHUNK_MAX);
            let chunk = exchange.body.split_to(size);
            exchange.may_send -= u32::try_from(size).unwrap_or(exchange.may_send);
            self.out.push_back((stream, FetchFrame::RequestChunk(chunk)));
        }
        if exchange.body.is_empty() {
            self.out.push_back((stream, FetchFrame::RequestEnd));
        }
    }
}

/// Why a request fits no frame, if it does not.
fn unfit(head: &RequestHead, body: &Bytes) -> Option<FetchFault> {
    let fault = |code: &str, message: &str| {
        Some(FetchFault { code: code.to_owned(), message: message.to_owned() })
    };
    if body.len() > BODY_MAX {
        return fault("body_too_large", "the request body is over 10 MiB");
    }
    if head.target.len() > TARGET_MAX {
        return fault("path_too_long", "path and query are too long");
    }
    if head.headers.len() > HEADERS_MAX {
        return fault("header_refused", "there are too many headers");
    }
    match serde_json::to_vec(head) {
        Ok(bytes) if bytes.len() <= HEAD_MAX => None,
        Ok(_) | Err(_) => fault("header_refused", "method, path and headers are too large"),
    }
}

fn gone() -> FetchFault {
    FetchFault { code: "aborted".into(), message: "the request was given up".into() }
}

/// Random bytes from the kernel, drawn in this process. Without them nothing
/// can go on safely.
pub(crate) fn random(buffer: &mut [u8]) {
    if getrandom::fill(buffer).is_err() {
        std::process::exit(EXIT_PANIC);
    }
}
