//! `wasi:http`, the asking half. A request is sent when it was handed over and
//! its body is complete: the session shows and digests it whole anyway.

use super::io::{Asked, Body, BodyState, InputStream, IoError, OutputStream, Pollable};
use super::kinds::{ErrorCode, HeaderError, Method, Scheme};
use super::wire::broken;
use super::{Host, Instance};
use bytes::Bytes;
use cambium_jail::frames::fetch::{
    FetchFault, HEAD_MAX, HEADERS_MAX, RequestHead, byte_string, to_byte_string,
};
use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// Most header fields one collection takes.
const FIELDS: usize = 1_000;
/// Longest path and query that travel, bytes; the session's limits are lower.
const TARGET_MAX: usize = 32 * 1024;

type Fallible<T> = std::result::Result<T, ()>;
type Answer<T> = std::result::Result<T, ErrorCode>;

/// `fields`.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    entries: Vec<(String, Vec<u8>)>,
    fixed: bool,
}

/// `outgoing-request`.
pub(crate) struct OutgoingRequest {
    method: Method,
    path: Option<String>,
    scheme: Option<Scheme>,
    authority: Option<String>,
    headers: Fields,
    body: Option<u32>,
}

/// `outgoing-body`.
pub(crate) struct OutgoingBody {
    body: u32,
    written: bool,
}

/// `request-options`; the run's own limits hold whatever they say.
#[derive(Default)]
pub(crate) struct Options([Option<u64>; 3]);

/// `future-incoming-response`.
pub(crate) struct Future {
    asked: Asked,
    fault: Option<FetchFault>,
    taken: bool,
}

/// `incoming-response`.
pub(crate) struct IncomingResponse {
    status: u16,
    headers: Fields,
    /// Until its body is asked for.
    stream: Option<u32>,
}

/// `incoming-body`.
pub(crate) struct IncomingBody(Option<u32>);

/// `future-trailers`: there are never any.
pub(crate) struct Trailers;

/// `wasi:http/types`.
pub(super) fn types(to: &mut Instance<'_>) -> Result<()> {
    to.gives("http-error-code", |host, (error,): (Resource<IoError>,)| {
        let IoError(fault) = host.table.get(&error)?;
        Ok(Some(ErrorCode::from(fault)))
    })?;
    fields(to)?;
    changing_fields(to)?;
    request(to)?;
    options(to)?;
    outgoing_body(to)?;
    future(to)?;
    response(to)
}

/// `wasi:http/outgoing-handler`.
pub(super) fn handler(to: &mut Instance<'_>) -> Result<()> {
    type Request = Resource<OutgoingRequest>;
    to.gives("handle", |host, (request, options): (Request, Option<Resource<Options>>)| {
        if let Some(options) = options {
            host.table.delete(options)?;
        }
        let request = host.table.delete(request)?;
        let future = host.hand_over(request)?;
        Ok(Answer::Ok(host.table.push(future)?))
    })
}

fn fields(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<Fields>;
    to.gives("[constructor]fields", |host, (): ()| Ok(host.table.push(Fields::default())?))?;
    to.gives("[static]fields.from-list", |host, (entries,): (Vec<(String, Vec<u8>)>,)| {
        if entries.len() > FIELDS || !entries.iter().all(|(name, value)| is_field(name, value)) {
            return Ok(Err(HeaderError::InvalidSyntax));
        }
        Ok(Ok(host.table.push(Fields { entries, fixed: false })?))
    })?;
    to.gives("[method]fields.get", |host, (this, name): (This, String)| {
        let found = host.table.get(&this)?.entries.iter();
        let found = found.filter(|(known, _)| known.eq_ignore_ascii_case(&name));
        Ok(found.map(|(_, value)| value.clone()).collect::<Vec<_>>())
    })?;
    to.gives("[method]fields.has", |host, (this, name): (This, String)| {
        let fields = host.table.get(&this)?;
        Ok(fields.entries.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)))
    })?;
    to.gives("[method]fields.entries", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.entries.clone())
    })?;
    to.gives("[method]fields.clone", |host, (this,): (This,)| {
        let entries = host.table.get(&this)?.entries.clone();
        Ok(host.table.push(Fields { entries, fixed: false })?)
    })
}

fn changing_fields(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<Fields>;
    type Change = (This, String, Vec<Vec<u8>>);
    to.gives("[method]fields.set", |host, (this, name, values): Change| {
        Ok(host.table.get_mut(&this)?.change(&name, values, true))
    })?;
    to.gives("[method]fields.delete", |host, (this, name): (This, String)| {
        Ok(host.table.get_mut(&this)?.change(&name, Vec::new(), true))
    })?;
    to.gives("[method]fields.append", |host, (this, name, value): (This, String, Vec<u8>)| {
        Ok(host.table.get_mut(&this)?.change(&name, vec![value], false))
    })
}

impl Fields {
    fn fixed(entries: Vec<(String, Vec<u8>)>) -> Self {
        Self { entries, fixed: true }
    }

    fn change(
        &mut self,
        name: &str,
        values: Vec<Vec<u8>>,
        replaces: bool,
    ) -> std::result::Result<(), HeaderError> {
        if self.fixed {
            return Err(HeaderError::Immutable);
        }
        let fits = self.entries.len() + values.len() <= FIELDS;
        if !fits || !is_field(name, b"") || !values.iter().all(|value| is_field(name, value)) {
            return Err(HeaderError::InvalidSyntax);
        }
        if replaces {
            self.entries.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        }
        self.entries.extend(values.into_iter().map(|value| (name.to_owned(), value)));
        Ok(())
    }
}

fn request(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<OutgoingRequest>;
    to.gives("[constructor]outgoing-request", |host, (headers,): (Resource<Fields>,)| {
        let headers = Fields::fixed(host.table.delete(headers)?.entries);
        let request = OutgoingRequest {
            method: Method::Get,
            path: None,
            scheme: None,
            authority: None,
            headers,
            body: None,
        };
        Ok(host.table.push(request)?)
    })?;
    to.gives("[method]outgoing-request.body", |host, (this,): (This,)| {
        if host.table.get(&this)?.body.is_some() {
            return Ok(Err(()));
        }
        host.last_body += 1;
        let body = host.last_body;
        host.bodies.insert(body, Body::default());
        host.table.get_mut(&this)?.body = Some(body);
        Ok(Fallible::Ok(host.table.push(OutgoingBody { body, written: false })?))
    })?;
    to.gives("[method]outgoing-request.method", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.method.clone())
    })?;
    to.gives("[method]outgoing-request.set-method", |host, (this, method): (This, Method)| {
        host.table.get_mut(&this)?.method = method;
        Ok(Fallible::Ok(()))
    })?;
    to.gives("[method]outgoing-request.path-with-query", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.path.clone())
    })?;
    type Text = (This, Option<String>);
    to.gives("[method]outgoing-request.set-path-with-query", |host, (this, path): Text| {
        host.table.get_mut(&this)?.path = path;
        Ok(Fallible::Ok(()))
    })?;
    to.gives("[method]outgoing-request.scheme", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.scheme.clone())
    })?;
    type Schemed = (This, Option<Scheme>);
    to.gives("[method]outgoing-request.set-scheme", |host, (this, scheme): Schemed| {
        host.table.get_mut(&this)?.scheme = scheme;
        Ok(Fallible::Ok(()))
    })?;
    to.gives("[method]outgoing-request.authority", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.authority.clone())
    })?;
    to.gives("[method]outgoing-request.set-authority", |host, (this, authority): Text| {
        host.table.get_mut(&this)?.authority = authority;
        Ok(Fallible::Ok(()))
    })?;
    to.gives("[method]outgoing-request.headers", |host, (this,): (This,)| {
        let headers = host.table.get(&this)?.headers.clone();
        Ok(host.table.push(headers)?)
    })
}

fn options(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<Options>;
    to.gives("[constructor]request-options", |host, (): ()| {
        Ok(host.table.push(Options::default())?)
    })?;
    let names = ["connect-timeout", "first-byte-timeout", "between-bytes-timeout"];
    for (at, name) in names.into_iter().enumerate() {
        to.gives(&format!("[method]request-options.{name}"), move |host, (this,): (This,)| {
            Ok(host.table.get(&this)?.0[at])
        })?;
        let name = format!("[method]request-options.set-{name}");
        to.gives(&name, move |host, (this, time): (This, Option<u64>)| {
            host.table.get_mut(&this)?.0[at] = time;
            Ok(Fallible::Ok(()))
        })?;
    }
    Ok(())
}

fn outgoing_body(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<OutgoingBody>;
    to.gives("[method]outgoing-body.write", |host, (this,): (This,)| {
        let this = host.table.get_mut(&this)?;
        if std::mem::replace(&mut this.written, true) {
            return Ok(Err(()));
        }
        let stream = OutputStream::Body(this.body);
        Ok(Fallible::Ok(host.table.push(stream)?))
    })?;
    type End = (This, Option<Resource<Fields>>);
    to.gives("[static]outgoing-body.finish", |host, (this, trailers): End| {
        let this = host.table.delete(this)?;
        if let Some(trailers) = trailers {
            let trailers = host.table.delete(trailers)?;
            if !trailers.entries.is_empty() {
                host.abandon(this.body);
                let fault = broken("a request has no trailers here");
                return Ok(Err(ErrorCode::from(&fault)));
            }
        }
        host.complete(this.body)?;
        Ok(Answer::Ok(()))
    })
}

fn future(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<Future>;
    to.gives("[method]future-incoming-response.subscribe", |host, (this,): (This,)| {
        let asked = host.table.get(&this)?.asked;
        Ok(host.table.push(Pollable::Reply(asked))?)
    })?;
    to.gives("[method]future-incoming-response.get", |host, (this,): (This,)| {
        host.wire.look()?;
        host.reply(&this)
    })
}

fn response(to: &mut Instance<'_>) -> Result<()> {
    type This = Resource<IncomingResponse>;
    to.gives("[method]incoming-response.status", |host, (this,): (This,)| {
        Ok(host.table.get(&this)?.status)
    })?;
    to.gives("[method]incoming-response.headers", |host, (this,): (This,)| {
        let headers = host.table.get(&this)?.headers.clone();
        Ok(host.table.push(headers)?)
    })?;
    to.gives("[method]incoming-response.consume", |host, (this,): (This,)| {
        let Some(stream) = host.table.get_mut(&this)?.stream.take() else { return Ok(Err(())) };
        Ok(Fallible::Ok(host.table.push(IncomingBody(Some(stream)))?))
    })?;
    type BodyOf = Resource<IncomingBody>;
    to.gives("[method]incoming-body.stream", |host, (this,): (BodyOf,)| {
        let Some(stream) = host.table.get_mut(&this)?.0.take() else { return Ok(Err(())) };
        Ok(Fallible::Ok(host.table.push(InputStream::Reply(stream))?))
    })?;
    to.gives("[static]incoming-body.finish", |host, (this,): (BodyOf,)| {
        let IncomingBody(stream) = host.table.delete(this)?;
        if let Some(stream) = stream {
            host.wire.give_up(stream)?;
        }
        Ok(host.table.push(Trailers)?)
    })?;
    type None = Option<Fallible<Answer<Option<Resource<Fields>>>>>;
    to.gives("[method]future-trailers.subscribe", |host, _: (Resource<Trailers>,)| {
        Ok(host.table.push(Pollable::Ready)?)
    })?;
    to.gives("[method]future-trailers.get", |_, _: (Resource<Trailers>,)| {
        Ok(None::Some(Ok(Ok(Option::None))))
    })
}

impl Host {
    /// Sends a request, or keeps it until its body is complete.
    fn hand_over(&mut self, request: OutgoingRequest) -> Result<Future> {
        let body = request.body;
        let head = match head(request) {
            Ok(head) => head,
            Err(fault) => {
                if let Some(body) = body {
                    self.abandon(body);
                }
                return Ok(Future { asked: Asked::Refused, fault: Some(fault), taken: false });
            }
        };
        let asked = match body {
            None => Asked::Stream(self.wire.request(head, Bytes::new())?),
            Some(body) => {
                let held = self.bodies.get_mut(&body);
                let held = held.ok_or_else(|| Error::msg("a body that is not there"))?;
                match held.state {
                    BodyState::Open => held.state = BodyState::Waited(head),
                    BodyState::Complete => self.send_body(body, head)?,
                    BodyState::Waited(_) | BodyState::Sent(_) | BodyState::Abandoned => {}
                }
                Asked::Body(body)
            }
        };
        Ok(Future { asked, fault: None, taken: false })
    }

    /// A body is complete.
    fn complete(&mut self, body: u32) -> Result<()> {
        let Some(held) = self.bodies.get_mut(&body) else { return Ok(()) };
        match std::mem::replace(&mut held.state, BodyState::Complete) {
            BodyState::Waited(head) => self.send_body(body, head),
            BodyState::Open | BodyState::Complete => Ok(()),
            other @ (BodyState::Sent(_) | BodyState::Abandoned) => {
                held.state = other;
                Ok(())
            }
        }
    }

    fn send_body(&mut self, body: u32, head: RequestHead) -> Result<()> {
        let Some(held) = self.bodies.get_mut(&body) else { return Ok(()) };
        let bytes = std::mem::take(&mut held.bytes);
        let stream = self.wire.request(head, bytes.into())?;
        if let Some(held) = self.bodies.get_mut(&body) {
            held.state = BodyState::Sent(stream);
        }
        Ok(())
    }

    fn abandon(&mut self, body: u32) {
        if let Some(held) = self.bodies.get_mut(&body)
            && !matches!(held.state, BodyState::Sent(_))
        {
            *held = Body { bytes: Vec::new(), state: BodyState::Abandoned };
        }
    }

    fn reply(
        &mut self,
        this: &Resource<Future>,
    ) -> Result<Option<Fallible<Answer<Resource<IncomingResponse>>>>> {
        let future = self.table.get(this)?;
        if future.taken {
            return Ok(Some(Err(())));
        }
        let (asked, fault) = (future.asked, future.fault.clone());
        let answer = match self.stream_of(asked) {
            Err(()) => {
                Err(fault.unwrap_or_else(|| broken("the request's body was dropped unfinished")))
            }
            Ok(None) => return Ok(None),
            Ok(Some(stream)) => match self.wire.take_head(stream) {
                None => return Ok(None),
                Some(Err(fault)) => Err(fault),
                Some(Ok(head)) => {
                    let bytes =
                        |(name, value): (String, String)| Some((name, byte_string(&value)?));
                    let entries = head.headers.into_iter().filter_map(bytes).collect();
                    let headers = Fields::fixed(entries);
                    Ok(IncomingResponse { status: head.status, headers, stream: Some(stream) })
                }
            },
        };
        self.table.get_mut(this)?.taken = true;
        Ok(Some(Ok(match answer {
            Ok(response) => Ok(self.table.push(response)?),
            Err(fault) => Err(ErrorCode::from(&fault)),
        })))
    }

    /// A body that is dropped is not complete.
    pub(super) fn dropped_body(&mut self, gone: &OutgoingBody) -> Result<()> {
        self.abandon(gone.body);
        Ok(())
    }

    /// A reply nobody waits for.
    pub(super) fn dropped_future(&mut self, gone: &Future) -> Result<()> {
        match (gone.taken, self.stream_of(gone.asked)) {
            (false, Ok(Some(stream))) => self.wire.give_up(stream),
            _ => Ok(()),
        }
    }

    /// A reply whose body nobody reads.
    pub(super) fn dropped_response(&mut self, gone: &IncomingResponse) -> Result<()> {
        gone.stream.map_or(Ok(()), |stream| self.wire.give_up(stream))
    }
}

/// The request as it travels, if it fits. Which host it may go to, by which
/// method and with which headers, the session decides.
fn head(request: OutgoingRequest) -> std::result::Result<RequestHead, FetchFault> {
    let fault = |code: &str, message: &str| FetchFault {
        code: code.to_owned(),
        message: message.to_owned(),
    };
    if !matches!(request.scheme, None | Some(Scheme::Https)) {
        return Err(fault("host_not_in_connection", "a vendor is asked over https only"));
    }
    let target = match request.path {
        Some(path) if !path.is_empty() => path,
        _ => "/".to_owned(),
    };
    if target.len() > TARGET_MAX {
        return Err(fault("path_too_long", "path and query are too long"));
    }
    if request.headers.entries.len() > HEADERS_MAX {
        return Err(fault("header_refused", "there are too many headers"));
    }
    let headers = request.headers.entries.into_iter();
    let head = RequestHead {
        method: request.method.text().to_owned(),
        host: request.authority.map(|authority| match authority.strip_suffix(":443") {
            Some(name) => name.to_owned(),
            None => authority,
        }),
        target,
        headers: headers.map(|(name, value)| (name, to_byte_string(&value))).collect(),
        body: false,
        sdk: false,
    };
    match serde_json::to_vec(&head) {
        Ok(bytes) if bytes.len() <= HEAD_MAX => Ok(head),
        Ok(_) | Err(_) => {
            Err(fault("header_refused", "method, host, path and headers are too large"))
        }
    }
}

fn is_field(name: &str, value: &[u8]) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(token)
        && value.iter().all(|&byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f))
}
