//! `wasi:io`: streams of a reply, of a request body and of standard output, and
//! what a component waits for. Waiting is done here, on the one thread.

use super::kinds::StreamError;
use super::wire::Piece;
use super::{Host, Instance};
use cambium_jail::frames::fetch::FetchFault;
use std::time::Instant;
use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// Largest request body, bytes; the session's own limit is this.
pub(crate) const BODY_MAX: usize = 10 * 1024 * 1024;
/// Most bytes one read or one write is asked to carry.
const PIECE: u64 = 64 * 1024;

/// `error`.
pub(crate) struct IoError(pub(crate) FetchFault);

/// `input-stream`.
pub(crate) enum InputStream {
    /// Standard input.
    Empty,
    /// A reply's body.
    Reply(u32),
}

/// `output-stream`.
#[derive(Clone, Copy)]
pub(crate) enum OutputStream {
    /// Standard output and error: log lines.
    Log,
    /// A request's body.
    Body(u32),
}

/// A request's body while it is written.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) state: BodyState,
}

/// How far a body is.
#[derive(Default)]
pub(crate) enum BodyState {
    /// Being written; its request may have been handed over.
    #[default]
    Open,
    /// The same, and the request waits for it.
    Waited(cambium_jail::frames::fetch::RequestHead),
    /// Complete, before its request was handed over.
    Complete,
    /// Its request went out.
    Sent(u32),
    /// It was dropped unfinished.
    Abandoned,
}

/// `pollable`.
#[derive(Clone, Copy)]
pub(crate) enum Pollable {
    /// Always ready.
    Ready,
    /// Ready then.
    Until(Instant),
    /// Ready when the reply to this request has begun.
    Reply(Asked),
    /// Ready when a read gives something.
    Data(u32),
}

/// A request that was handed over.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    /// It went out as this stream.
    Stream(u32),
    /// It waits for this body.
    Body(u32),
    /// It was refused; the reason waits with its future.
    Refused,
}

impl Pollable {
    /// Ready at a time; one that cannot be told is one that never comes.
    pub(crate) fn at(when: Option<Instant>) -> Self {
        let far = || Instant::now() + std::time::Duration::from_secs(24 * 60 * 60);
        Self::Until(when.unwrap_or_else(far))
    }
}

type Streamed<T> = std::result::Result<T, StreamError>;

/// `wasi:io/error`.
pub(super) fn errors(to: &mut Instance<'_>) -> Result<()> {
    to.gives("[method]error.to-debug-string", |host, (error,): (Resource<IoError>,)| {
        let IoError(fault) = host.table.get(&error)?;
        Ok(format!("{}: {}", fault.code, fault.message))
    })
}

/// `wasi:io/poll`.
pub(super) fn poll(to: &mut Instance<'_>) -> Result<()> {
    to.gives("[method]pollable.ready", |host, (one,): (Resource<Pollable>,)| {
        let one = *host.table.get(&one)?;
        host.wire.look()?;
        Ok(host.is_ready(one))
    })?;
    to.does("[method]pollable.block", |host, (one,): (Resource<Pollable>,)| {
        let one = *host.table.get(&one)?;
        host.wait(&[one])
    })?;
    to.gives("poll", |host, (all,): (Vec<Resource<Pollable>>,)| {
        if all.is_empty() {
            return Err(Error::msg("it polls nothing"));
        }
        let all: Vec<Pollable> =
            all.iter().map(|one| Ok(*host.table.get(one)?)).collect::<Result<_>>()?;
        host.wait(&all)?;
        let ready = all.iter().zip(0u32..).filter(|(one, _)| host.is_ready(**one));
        Ok(ready.map(|(_, at)| at).collect::<Vec<u32>>())
    })
}

/// `wasi:io/streams`.
pub(super) fn streams(to: &mut Instance<'_>) -> Result<()> {
    type In = Resource<InputStream>;
    type Out = Resource<OutputStream>;
    for (name, waits) in [("read", false), ("blocking-read", true)] {
        let name = format!("[method]input-stream.{name}");
        to.gives(&name, move |host, (stream, most): (In, u64)| host.read(&stream, most, waits))?;
    }
    for (name, waits) in [("skip", false), ("blocking-skip", true)] {
        let name = format!("[method]input-stream.{name}");
        to.gives(&name, move |host, (stream, most): (In, u64)| {
            Ok(host.read(&stream, most, waits)?.map(|bytes| bytes.len() as u64))
        })?;
    }
    to.gives("[method]input-stream.subscribe", |host, (stream,): (In,)| {
        let waits = match host.table.get(&stream)? {
            InputStream::Empty => Pollable::Ready,
            InputStream::Reply(stream) => Pollable::Data(*stream),
        };
        Ok(host.table.push(waits)?)
    })?;
    to.gives("[method]output-stream.check-write", |_, _: (Out,)| Ok(Streamed::Ok(PIECE)))?;
    for name in ["write", "blocking-write-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        to.gives(&name, |host, (stream, bytes): (Out, Vec<u8>)| host.write(&stream, &bytes))?;
    }
    for name in ["write-zeroes", "blocking-write-zeroes-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        to.gives(&name, |host, (stream, length): (Out, u64)| {
            let length = usize::try_from(length.min(PIECE))?;
            host.write(&stream, &vec![0; length])
        })?;
    }
    for name in ["flush", "blocking-flush"] {
        let name = format!("[method]output-stream.{name}");
        to.gives(&name, |_, _: (Out,)| Ok(Streamed::Ok(())))?;
    }
    to.gives("[method]output-stream.subscribe", |host, _: (Out,)| {
        Ok(host.table.push(Pollable::Ready)?)
    })
}

impl Host {
    /// Whether waiting for it is over, as far as is known.
    fn is_ready(&self, one: Pollable) -> bool {
        match one {
            Pollable::Ready => true,
            Pollable::Until(when) => when <= Instant::now(),
            Pollable::Data(stream) => self.wire.has_data(stream),
            Pollable::Reply(asked) => match self.stream_of(asked) {
                Ok(Some(stream)) => self.wire.has_reply(stream),
                Ok(None) => false,
                Err(()) => true,
            },
        }
    }

    /// The stream of a request; none while its body is open, an error when it
    /// will never have one.
    pub(super) fn stream_of(&self, asked: Asked) -> std::result::Result<Option<u32>, ()> {
        let body = match asked {
            Asked::Stream(stream) => return Ok(Some(stream)),
            Asked::Refused => return Err(()),
            Asked::Body(body) => body,
        };
        match self.bodies.get(&body).map(|body| &body.state) {
            Some(BodyState::Sent(stream)) => Ok(Some(*stream)),
            Some(BodyState::Abandoned) | None => Err(()),
            Some(BodyState::Open | BodyState::Waited(_) | BodyState::Complete) => Ok(None),
        }
    }

    /// Waits until one of them is ready.
    fn wait(&mut self, all: &[Pollable]) -> Result<()> {
        self.wire.look()?;
        if all.iter().any(|one| self.is_ready(*one)) {
            return Ok(());
        }
        // What depends on a body that this thread has yet to write does not come
        // while it waits; the wire says so.
        let (mut until, mut replies, mut data) = (None::<Instant>, Vec::new(), Vec::new());
        for one in all {
            match *one {
                Pollable::Ready => {}
                Pollable::Until(when) => until = Some(until.map_or(when, |least| least.min(when))),
                Pollable::Data(stream) => data.push(stream),
                Pollable::Reply(asked) => {
                    replies.extend(self.stream_of(asked).unwrap_or_default());
                }
            }
        }
        self.wire.wait(until, |wire| {
            replies.iter().any(|stream| wire.has_reply(*stream))
                || data.iter().any(|stream| wire.has_data(*stream))
        })
    }

    fn read(
        &mut self,
        stream: &Resource<InputStream>,
        most: u64,
        waits: bool,
    ) -> Result<Streamed<Vec<u8>>> {
        let InputStream::Reply(stream) = *self.table.get(stream)? else {
            return Ok(Err(StreamError::Closed));
        };
        if waits {
            self.wire.wait(None, |wire| wire.has_data(stream))?;
        } else {
            self.wire.look()?;
        }
        let most = usize::try_from(most.min(PIECE))?;
        if most == 0 {
            return Ok(Ok(Vec::new()));
        }
        Ok(match self.wire.read(stream, most)? {
            Piece::Bytes(bytes) => Ok(bytes),
            Piece::End => Err(StreamError::Closed),
            Piece::Fault(fault) => Err(self.failed(fault)?),
        })
    }

    fn write(&mut self, stream: &Resource<OutputStream>, bytes: &[u8]) -> Result<Streamed<()>> {
        let body = match *self.table.get(stream)? {
            OutputStream::Log => {
                self.print(bytes);
                return Ok(Ok(()));
            }
            OutputStream::Body(body) => self.bodies.get_mut(&body),
        };
        let Some(Body { bytes: held, state: BodyState::Open | BodyState::Waited(_) }) = body else {
            return Ok(Err(StreamError::Closed));
        };
        if held.len() + bytes.len() > BODY_MAX {
            let message = "the request body is over 10 MiB".to_owned();
            let fault = FetchFault { code: "body_too_large".to_owned(), message };
            return Ok(Err(self.failed(fault)?));
        }
        held.extend_from_slice(bytes);
        Ok(Ok(()))
    }

    fn failed(&mut self, fault: FetchFault) -> Result<StreamError> {
        Ok(StreamError::Failed(self.table.push(IoError(fault))?))
    }

    /// A reply's body that is not read to its end.
    pub(super) fn dropped_input(&mut self, gone: &InputStream) -> Result<()> {
        match gone {
            InputStream::Empty => Ok(()),
            InputStream::Reply(stream) => self.wire.give_up(*stream),
        }
    }
}
