//! A cleared request to the vendor and its reply back. The connection is read
//! once more, the intent is stored, then bytes go; whatever happens after, an
//! outcome is written. A write that may have gone and whose answer is not whole
//! is `outcome_unknown`, so that nobody is told to try again.

use super::Inner;
use super::follow;
use super::send::{Clearance, Draft, closed, unrecorded};
use super::trail::Trail;
use crate::credential::{Credential, Errand, Placement};
use crate::proxy::usable;
use crate::request::Piece;
use crate::scrub::{Coding, Decoder, Mask, Redactor, Stream};
use crate::upstream::{Incomplete, Outgoing, body_refusal};
use crate::{AuditKind, Body, Connection, Effect, Refusal, Reply, StoreFault, headers};
use bytes::Bytes;
use futures_util::FutureExt;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Sleep;

/// Everything one exchange needs.
pub(super) struct Parcel {
    pub(super) inner: Arc<Inner>,
    pub(super) trail: Trail,
    pub(super) draft: Draft,
    pub(super) clearance: Clearance,
    pub(super) credential: Arc<Credential>,
    /// Kept until the body's end.
    pub(super) slot: OwnedSemaphorePermit,
}

/// What signatures with a date allow, minutes: AWS's and most others' rule.
const SKEW_MINUTES: u64 = 15;

pub(super) type Head = oneshot::Sender<Result<Reply, Refusal>>;

/// Takes a request to its end, a panic on the way included: the asker is told,
/// and the outcome is written down. Runs in a task the proxy owns.
pub(super) async fn guarded(parcel: Parcel, head: Head) {
    let (mut trail, effect) = (parcel.trail.clone(), parcel.draft.held.effect);
    if AssertUnwindSafe(carry(parcel, head)).catch_unwind().await.is_err() {
        trail.decision = "forward";
        outcome(&mut trail, effect, Some(&broken(effect)));
    }
}

async fn carry(mut parcel: Parcel, mut head: Head) {
    let errand = errand(&parcel);
    let (place, mut placement) = match prepare(&parcel, &errand, &mut head).await {
        Ok(prepared) => prepared,
        Err(refusal) => {
            parcel.trail.refused(&refusal).await;
            let _ = head.send(Err(refusal));
            return;
        }
    };
    let effect = parcel.draft.held.effect;
    parcel.trail.decision = "forward";
    let intent = parcel.trail.row(AuditKind::Intent, effect != Effect::Read);
    if let Err(refusal) = intent.stored().await.map_err(unrecorded) {
        parcel.trail.fatal(&refusal);
        parcel.trail.settle(Some(&refusal), None);
        let _ = head.send(Err(refusal));
        return;
    }
    parcel.trail.wired = true;
    let mut deadline = Box::pin(tokio::time::sleep(parcel.inner.shared.parts.limits.exchange));
    let sent = exchange(&mut parcel, &errand, &mut placement, &mut deadline, &mut head).await;
    let reply = match sent {
        Ok(reply) => reply,
        Err(refusal) => {
            outcome(&mut parcel.trail, effect, Some(&refusal));
            let _ = head.send(Err(refusal));
            return;
        }
    };
    let Opened { headers, decoder, stream, incoming } = reply;
    let (feed, body) = Body::fed();
    let status = parcel.trail.status.unwrap_or_default();
    let reply = Reply { status, headers, body, intercepted: false };
    // Nobody there any more: the pump notices at its first piece.
    let _ = head.send(Ok(reply));
    let Parcel { inner, mut trail, slot, .. } = parcel;
    let mask = Mask::new(&inner.spec.connection.slug);
    let mut pump = Pump { inner: &inner, trail: &mut trail, decoder, stream, mask, feed: &feed };
    let end = pump.run(incoming, &mut deadline).await;
    let redactions = pump.stream.redactions().saturating_add(pump.mask.masked());
    let decoded = pump.decoder.produced();
    trail.bytes = Some(decoded as u64);
    trail.redactions = trail.redactions.saturating_add(redactions);
    let piece = match end {
        Ok(()) => {
            outcome(&mut trail, effect, None);
            Piece::End
        }
        Err(Cut::NotRead) => {
            trail.note("body_not_read");
            outcome(&mut trail, effect, None);
            Piece::Failed(closed())
        }
        Err(Cut::Failed(refusal)) => {
            let refusal = after_sending(effect, refusal, trail.status);
            outcome(&mut trail, effect, Some(&refusal));
            Piece::Failed(refusal)
        }
    };
    drop((slot, place));
    // A reader that never comes must not keep this task: it sees the cut.
    tokio::select! {
        () = inner.stop.cancelled() => {}
        () = &mut deadline => {}
        _ = feed.send(piece) => {}
    }
}

/// On whose behalf a token may have to be got.
fn errand(parcel: &Parcel) -> Errand {
    let spec = &parcel.inner.spec;
    Errand {
        shared: parcel.inner.shared.clone(),
        line: parcel.inner.line.clone(),
        run: spec.run.clone(),
        agent: spec.agent.clone(),
        tool: spec.tool.clone(),
        version: spec.version.to_string(),
        request: parcel.trail.number(),
        dry_run: matches!(spec.grant, crate::Grant::Preview),
    }
}

/// A place among the connection's requests, the last checks, and the credential
/// for exactly this request. Getting a token takes time, so what was checked
/// before is checked after it too.
async fn prepare(
    parcel: &Parcel,
    errand: &Errand,
    head: &mut Head,
) -> Result<(OwnedSemaphorePermit, Placement), Refusal> {
    let patience = parcel.inner.shared.parts.limits.exchange;
    let place = parcel.inner.line.gauge.slot(patience).await?;
    check_before_wire(parcel).await?;
    let placement = tokio::select! {
        biased;
        () = parcel.inner.stop.cancelled() => return Err(closed()),
        () = head.closed() => return Err(given_up()),
        placement = parcel.credential.place(&parcel.draft.held, errand) => placement?,
    };
    parcel.inner.learns(&placement.redactor);
    if placement.token_is_new {
        check_before_wire(parcel).await?;
    }
    Ok((place, placement))
}

/// What is checked last before bytes go.
async fn check_before_wire(parcel: &Parcel) -> Result<(), Refusal> {
    let inner = &parcel.inner;
    match (&parcel.clearance, parcel.draft.held.effect) {
        (Clearance::Read, Effect::Read) => {}
        (Clearance::Write(permit), Effect::Write | Effect::Destroy)
            if permit.lets(parcel.draft.site, parcel.draft.held.digest) => {}
        _ => return Err(Refusal::MethodExceedsHint("the permit is for another request".into())),
    }
    if inner.stop.is_cancelled() {
        return Err(closed());
    }
    inner.shared.unlocked(&inner.spec.connection)?;
    let id = &inner.spec.connection.id;
    let unread = |fault: StoreFault| {
        tracing::error!(%fault, "the connection could not be read");
        Refusal::AuditUnavailable("the connection could not be read; nothing was sent".into())
    };
    let connections = &inner.shared.parts.connections;
    let now = connections.connection(id).await.map_err(unread)?;
    still_the_same(now, &inner.spec.connection).inspect_err(|_| inner.shared.forget(id))?;
    match connections.is_for(id, &inner.spec.agent).await.map_err(unread)? {
        true => Ok(()),
        false => {
            let why = "the connection was taken from this agent while the run was under way";
            Err(Refusal::ConnectionNotInScope(why.into()))
        }
    }
}

fn still_the_same(now: Option<Connection>, then: &Connection) -> Result<(), Refusal> {
    let Some(now) = now else {
        return Err(Refusal::ConnectionRevoked("the connection is gone".into()));
    };
    usable(now.status)?;
    if now.generation != then.generation {
        let why = "the connection was changed while the run was under way";
        return Err(Refusal::ConnectionRevoked(why.into()));
    }
    Ok(())
}

/// A reply whose head has been judged.
struct Opened {
    headers: Vec<(String, String)>,
    decoder: Decoder,
    stream: Stream,
    incoming: Incoming,
}

async fn exchange(
    parcel: &mut Parcel,
    errand: &Errand,
    placement: &mut Placement,
    deadline: &mut Pin<Box<Sleep>>,
    head: &mut Head,
) -> Result<Opened, Refusal> {
    let mut reply = attempt(parcel, placement, deadline, head).await?;
    if reply.status == StatusCode::UNAUTHORIZED
        && let Some(earlier) = placement.earlier.take()
    {
        // The vendor ended the token before its time. The next request gets a
        // new one; only a read is made again, once.
        parcel.credential.spoil(&earlier);
        parcel.trail.note("token_refused");
        if parcel.draft.held.effect == Effect::Read {
            reply.poison();
            drop(reply);
            let before = std::mem::replace(&mut placement.redactor, Redactor::none());
            *placement = tokio::select! {
                biased;
                () = parcel.inner.stop.cancelled() => return Err(closed()),
                () = head.closed() => return Err(given_up()),
                () = &mut *deadline => return Err(late(&parcel.draft.target.authority)),
                placed = parcel.credential.place(&parcel.draft.held, errand) => placed?,
            };
            parcel.inner.learns(&placement.redactor);
            placement.redactor = placement.redactor.and(&before);
            reply = attempt(parcel, placement, deadline, head).await?;
        }
    }
    parcel.trail.status = Some(reply.status.as_u16());
    check_clock(parcel, &reply)?;
    let reply = follow::follow(parcel, placement, reply, deadline, head).await?;
    let effect = parcel.draft.held.effect;
    open(parcel, placement, reply)
        .map_err(|refusal| after_sending(effect, refusal, parcel.trail.status))
}

/// Sends once and waits for the head of the answer.
async fn attempt(
    parcel: &mut Parcel,
    placement: &Placement,
    deadline: &mut Pin<Box<Sleep>>,
    head: &mut Head,
) -> Result<Incomplete, Refusal> {
    let effect = parcel.draft.held.effect;
    let since = parcel.trail.ticks();
    let sending = upstream(parcel, placement);
    let answer = tokio::select! {
        biased;
        () = parcel.inner.stop.cancelled() => Err(after_sending(effect, closed(), None)),
        () = head.closed() => Err(after_sending(effect, given_up(), None)),
        () = &mut *deadline => Err(after_sending(effect, late(&parcel.draft.target.authority), None)),
        // Says itself whether a write may have gone.
        answer = sending => answer,
    };
    parcel.trail.vendor_us += parcel.trail.ticks().saturating_sub(since);
    answer
}

/// A vendor that refuses a dated signature and whose clock is far from ours
/// says nothing of that in words we could pass on.
fn check_clock(parcel: &Parcel, reply: &Incomplete) -> Result<(), Refusal> {
    let dated = parcel.inner.spec.connection.scheme.is_dated();
    if !dated || !matches!(reply.status.as_u16(), 400 | 401 | 403) {
        return Ok(());
    }
    let date = reply.headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let since = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
    let Some(theirs) = since.and_then(|since| i64::try_from(since.as_millis()).ok()) else {
        return Ok(());
    };
    let ours = parcel.inner.shared.parts.clock.now_ms();
    let minutes = ours.abs_diff(theirs) / 60_000;
    if minutes < SKEW_MINUTES {
        return Ok(());
    }
    reply.poison();
    Err(Refusal::ClockSkew(format!(
        "the vendor answered {}, and its clock is {minutes} minutes from this machine's",
        reply.status.as_u16()
    )))
}

async fn upstream(parcel: &Parcel, placement: &Placement) -> Result<Incomplete, Refusal> {
    let held = &parcel.draft.held;
    let mut headers = headers::wire(&held.headers)?;
    // Last, so that nothing after can take it off or put another beside it.
    for (name, value) in &placement.headers {
        headers.insert(name.clone(), value.clone());
    }
    let outgoing = Outgoing {
        method: &held.method,
        effect: held.effect,
        again: held.effect == Effect::Read && matches!(held.method.as_str(), "GET" | "HEAD"),
        authority: &held.authority,
        path_and_query: &placement.target,
        headers,
        body: held.body.clone(),
    };
    parcel.inner.line.upstream(&parcel.inner.shared).await?.send(outgoing).await
}

/// Judges the head of a reply and prepares its body.
fn open(parcel: &mut Parcel, placement: &Placement, reply: Incomplete) -> Result<Opened, Refusal> {
    let limits = &parcel.inner.shared.parts.limits;
    let spec = &parcel.inner.spec;
    let passed = headers::response_headers(&reply.headers, &spec.connection, &parcel.draft.target);
    let redactor = &placement.redactor;
    let mut redactions = 0;
    let headers = passed
        .into_iter()
        .map(|(name, value)| {
            let (value, count) = redactor.text(&value);
            redactions += count;
            (name, value)
        })
        .collect();
    parcel.trail.redactions = redactions;
    let coding = if reply.body.is_end_stream() {
        Coding::Identity
    } else {
        Coding::of(&reply.headers).inspect_err(|_| reply.poison())?
    };
    let announced = reply.body.size_hint().lower();
    if announced > limits.response_bytes as u64 {
        reply.poison();
        return Err(Refusal::ResponseTooLarge(format!(
            "the answer is {announced} bytes, at most {} are taken",
            limits.response_bytes
        )));
    }
    let decoder = Decoder::new(coding, limits);
    Ok(Opened { headers, decoder, stream: redactor.stream(), incoming: reply.body })
}

/// Why a body was not moved to its end.
enum Cut {
    /// Nobody wants it: the run is over or let the reply go. The vendor's
    /// status is known, so nothing about the request is in doubt.
    NotRead,
    /// The vendor's fault, or a limit.
    Failed(Refusal),
}

impl From<Refusal> for Cut {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal)
    }
}

/// Moves a body from the vendor to the module.
struct Pump<'a> {
    inner: &'a Inner,
    trail: &'a mut Trail,
    decoder: Decoder,
    stream: Stream,
    mask: Mask,
    feed: &'a mpsc::Sender<Piece>,
}

impl Pump<'_> {
    fn late(&self) -> Refusal {
        late(self.trail.host())
    }

    async fn run(
        &mut self,
        mut incoming: Incoming,
        deadline: &mut Pin<Box<Sleep>>,
    ) -> Result<(), Cut> {
        let idle = self.inner.shared.parts.limits.idle;
        loop {
            let since = self.trail.ticks();
            let frame = tokio::select! {
                biased;
                () = self.inner.stop.cancelled() => return Err(Cut::NotRead),
                () = &mut *deadline => return Err(self.late().into()),
                frame = tokio::time::timeout(idle, incoming.frame()) => frame,
            };
            self.trail.vendor_us += self.trail.ticks().saturating_sub(since);
            let Some(frame) = frame.map_err(|_| self.late())? else {
                let rest = self.decoder.finish()?;
                let mut last = self.stream.push(rest).to_vec();
                last.extend_from_slice(&self.stream.finish());
                let last = self.mask.push(last.into());
                return self.give(last, deadline).await;
            };
            // Trailers are dropped: no reader of ours wants them.
            let Ok(data) = frame.map_err(|error| body_refusal(&error))?.into_data() else {
                continue;
            };
            let decoded = self.decoder.push(data)?;
            let scrubbed = self.mask.push(self.stream.push(decoded));
            self.give(scrubbed, deadline).await?;
        }
    }

    async fn give(&mut self, bytes: Bytes, deadline: &mut Pin<Box<Sleep>>) -> Result<(), Cut> {
        if bytes.is_empty() {
            return Ok(());
        }
        let since = self.trail.ticks();
        let given = tokio::select! {
            biased;
            () = self.inner.stop.cancelled() => Err(Cut::NotRead),
            () = &mut *deadline => Err(self.late().into()),
            given = self.feed.send(Piece::Data(bytes)) => given.map_err(|_| Cut::NotRead),
        };
        self.trail.reader_us += self.trail.ticks().saturating_sub(since);
        given
    }
}

fn given_up() -> Refusal {
    Refusal::RunClosed("the request was given up".into())
}

/// The deadline of the whole exchange.
pub(super) fn late(host: &str) -> Refusal {
    Refusal::UpstreamTimeout(format!("{host} did not finish in time"))
}

/// What a request is told whose task ended in a panic.
pub(super) fn broken(effect: Effect) -> Refusal {
    let failed = Refusal::ProxyFailed("the proxy failed while it carried the request".into());
    after_sending(effect, failed, None)
}

/// What a failure is once bytes may have gone: for a write the agent must look
/// before it writes again, whatever the failure was.
fn after_sending(effect: Effect, refusal: Refusal, status: Option<u16>) -> Refusal {
    match (effect, &refusal) {
        (Effect::Read, _) | (_, Refusal::OutcomeUnknown(_)) => refusal,
        (Effect::Write | Effect::Destroy, _) => {
            let code = refusal.code();
            Refusal::OutcomeUnknown(match status {
                Some(status) => {
                    format!("the vendor answered {status}, its answer is not whole ({code})")
                }
                None => format!("the write may have reached the vendor ({code})"),
            })
        }
    }
}

/// Writes what came of an intent. It is queued, not awaited: the intent stands,
/// and an outcome that is missing reads as unknown.
fn outcome(trail: &mut Trail, effect: Effect, refusal: Option<&Refusal>) {
    refusal.map_or("completed", Refusal::code).clone_into(&mut trail.rule);
    if let Some(refusal) = refusal {
        trail.fatal(refusal);
    }
    trail.settle(refusal, None);
    match effect {
        Effect::Read => trail.row_later(AuditKind::Outcome),
        Effect::Write | Effect::Destroy => drop(trail.row(AuditKind::Outcome, true)),
    }
}
