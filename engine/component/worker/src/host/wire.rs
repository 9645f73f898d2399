//! The run's own socket to its session, several requests at a time. Replies wait
//! here until the component reads them, within the credit it was given, so that a
//! vendor that sends much fills nothing. Whether a request goes is the session's.

use bytes::Bytes;
use cambium_jail::frames::fetch::{
    CHUNK_MAX, FETCH_BUDGET, FetchFault, FetchFrame, RequestHead, ResponseHead, WINDOW,
};
use cambium_jail::frames::streams::STREAMS_MAX;
use cambium_jail::frames::{FrameError, FrameLimits, FrameReader, FrameWriter};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use wasmtime::{Error, Result};

/// What the parent sends is ours; the sizes still hold.
const REPLY_LIMITS: FrameLimits =
    FrameLimits { payload: FETCH_BUDGET.payload, frames: u64::MAX, bytes: u64::MAX };

type Heard = std::result::Result<(u32, FetchFrame), FrameError>;

/// The socket, and what has come on it.
pub(crate) struct Wire {
    tokio: Runtime,
    /// Unbounded, and yet within the credit of each stream.
    heard: UnboundedReceiver<Heard>,
    writer: FrameWriter<OwnedWriteHalf>,
    exchanges: BTreeMap<u32, Exchange>,
    last: u32,
}

/// One request's reply, as far as it has come.
#[derive(Default)]
struct Exchange {
    head: Option<ResponseHead>,
    chunks: VecDeque<Bytes>,
    end: Option<std::result::Result<(), FetchFault>>,
    window: usize,
}

/// What a read of a reply's body gives.
pub(crate) enum Piece {
    /// Bytes, or none yet.
    Bytes(Vec<u8>),
    /// It is complete.
    End,
    /// It broke off.
    Fault(FetchFault),
}

impl Wire {
    /// Over the fetch socket; reads whenever the runtime is entered.
    pub(crate) fn new(tokio: Runtime, fetch: UnixStream) -> Self {
        let (reader, writer) = fetch.into_split();
        let (tell, heard) = unbounded_channel();
        tokio.spawn(async move {
            let mut reader = FrameReader::new(reader, REPLY_LIMITS);
            loop {
                let frame = match reader.next().await {
                    Ok(Some(frame)) => FetchFrame::parse(frame),
                    // The parent closed: it ends the run.
                    Ok(None) => return,
                    Err(error) => Err(error),
                };
                let over = frame.is_err();
                if tell.send(frame).is_err() || over {
                    return;
                }
            }
        });
        let writer = FrameWriter::new(writer);
        Self { tokio, heard, writer, exchanges: BTreeMap::new(), last: 0 }
    }

    /// The runtime, for what else the run waits for.
    pub(crate) fn into_runtime(self) -> Runtime {
        self.tokio
    }

    /// Sends a whole request and answers its stream.
    pub(crate) fn request(&mut self, mut head: RequestHead, mut body: Bytes) -> Result<u32> {
        self.last += 1;
        let stream = self.last;
        self.look()?;
        if self.exchanges.values().filter(|exchange| exchange.end.is_none()).count() >= STREAMS_MAX
        {
            let end = Some(Err(broken("too many requests at once; read their replies first")));
            self.exchanges.insert(stream, Exchange { end, ..Exchange::default() });
            return Ok(stream);
        }
        let window = WINDOW as usize;
        self.exchanges.insert(stream, Exchange { window, ..Exchange::default() });
        head.body = !body.is_empty();
        let has_body = head.body;
        self.send(stream, &FetchFrame::Request(head))?;
        while !body.is_empty() {
            let open = |wire: &Self| match wire.exchanges.get(&stream) {
                Some(exchange) if exchange.end.is_none() => exchange.window,
                // It was answered before all of it was sent.
                _ => 0,
            };
            let may = open(self);
            if may == 0 {
                if self.has_reply(stream) {
                    return Ok(stream);
                }
                self.wait(None, |wire| open(wire) > 0 || wire.has_reply(stream))?;
                continue;
            }
            let chunk = body.split_to(body.len().min(CHUNK_MAX).min(may));
            if let Some(exchange) = self.exchanges.get_mut(&stream) {
                exchange.window -= chunk.len();
            }
            self.send(stream, &FetchFrame::RequestChunk(chunk))?;
        }
        if has_body {
            self.send(stream, &FetchFrame::RequestEnd)?;
        }
        Ok(stream)
    }

    /// Whether the reply's head, or why there is none, has come.
    pub(crate) fn has_reply(&self, stream: u32) -> bool {
        let known = self.exchanges.get(&stream);
        known.is_none_or(|exchange| exchange.head.is_some() || exchange.end.is_some())
    }

    /// Whether a read of the reply's body gives something.
    pub(crate) fn has_data(&self, stream: u32) -> bool {
        let known = self.exchanges.get(&stream);
        known.is_none_or(|exchange| !exchange.chunks.is_empty() || exchange.end.is_some())
    }

    /// The reply's head, once; `None` before it has come.
    pub(crate) fn take_head(
        &mut self,
        stream: u32,
    ) -> Option<std::result::Result<ResponseHead, FetchFault>> {
        let exchange = self.exchanges.get_mut(&stream)?;
        if let Some(head) = exchange.head.take() {
            return Some(Ok(head));
        }
        match &exchange.end {
            Some(Err(fault)) => Some(Err(fault.clone())),
            Some(Ok(())) => Some(Err(broken("the reply has no head"))),
            None => None,
        }
    }

    /// Up to `most` bytes of the reply's body.
    pub(crate) fn read(&mut self, stream: u32, most: usize) -> Result<Piece> {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return Ok(Piece::End) };
        let mut piece = Vec::new();
        while piece.len() < most
            && let Some(chunk) = exchange.chunks.front_mut()
        {
            let some = chunk.split_to(chunk.len().min(most - piece.len()));
            piece.extend_from_slice(&some);
            if chunk.is_empty() {
                exchange.chunks.pop_front();
            }
        }
        if piece.is_empty() && exchange.chunks.is_empty() {
            match exchange.end.clone() {
                None => {}
                Some(Ok(())) => return Ok(Piece::End),
                Some(Err(fault)) => return Ok(Piece::Fault(fault)),
            }
        }
        if !piece.is_empty() && exchange.end.is_none() {
            let credit = u32::try_from(piece.len()).unwrap_or(0);
            self.send(stream, &FetchFrame::Credit(credit))?;
        }
        Ok(Piece::Bytes(piece))
    }

    /// Nobody reads this reply any further.
    pub(crate) fn give_up(&mut self, stream: u32) -> Result<()> {
        match self.exchanges.remove(&stream) {
            Some(exchange) if exchange.end.is_none() => self.send(stream, &FetchFrame::Cancel),
            _ => Ok(()),
        }
    }

    /// Takes what has come, without waiting.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.tokio.block_on(tokio::task::yield_now());
        while let Ok(heard) = self.heard.try_recv() {
            self.take(heard)?;
        }
        Ok(())
    }

    /// Waits until something is so, or a time has come.
    pub(crate) fn wait(
        &mut self,
        until: Option<Instant>,
        so: impl Fn(&Self) -> bool,
    ) -> Result<()> {
        self.look()?;
        while !so(self) {
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(());
            }
            let running = self.exchanges.values().any(|exchange| exchange.end.is_none());
            if !running && until.is_none() {
                return Err(Error::msg("it waits for something that never comes"));
            }
            let heard = &mut self.heard;
            let heard = self.tokio.block_on(async {
                match until {
                    None => Some(heard.recv().await),
                    Some(until) => tokio::time::timeout_at(until.into(), heard.recv()).await.ok(),
                }
            });
            match heard {
                // The time has come.
                None => return Ok(()),
                Some(Some(heard)) => self.take(heard)?,
                Some(None) => return Err(Error::msg("the session is gone")),
            }
        }
        Ok(())
    }

    fn send(&mut self, stream: u32, frame: &FetchFrame) -> Result<()> {
        let sent = self.tokio.block_on(frame.send(stream, &mut self.writer));
        sent.map_err(|error| Error::msg(error.to_string()))
    }

    fn take(&mut self, heard: Heard) -> Result<()> {
        let (stream, frame) = heard.map_err(|error| Error::msg(error.to_string()))?;
        // Late words about a stream that was given up.
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return Ok(()) };
        match frame {
            FetchFrame::Response(head) => exchange.head = Some(head),
            FetchFrame::ResponseChunk(chunk) => exchange.chunks.push_back(chunk),
            FetchFrame::ResponseEnd => exchange.end = Some(Ok(())),
            FetchFrame::Error(fault) => exchange.end = Some(Err(fault)),
            FetchFrame::Credit(size) => exchange.window += size as usize,
            FetchFrame::Request(_)
            | FetchFrame::RequestChunk(_)
            | FetchFrame::RequestEnd
            | FetchFrame::Cancel => return Err(Error::msg("a frame only a worker sends")),
        }
        Ok(())
    }
}

/// A fault of the exchange itself.
pub(crate) fn broken(why: &str) -> FetchFault {
    FetchFault { code: "fetch_failed".to_owned(), message: why.to_owned() }
}
