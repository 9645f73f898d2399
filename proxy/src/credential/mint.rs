//! Access tokens: got when a cleared request needs one and never before, kept
//! in memory until they end, and got once however many wait. A token call goes
//! through the same guarded dialler as everything else and has its own audit
//! rows. When none can be got the request is refused; a token that is over or
//! that the vendor refused is never used again.

use super::bundle::{Bundle, digest};
use super::hmac::nonce;
use super::token::{self, Granted, Hidden, TokenCall};
use super::{Credential, unavailable};
use crate::proxy::{Line, Shared};
use crate::scrub::{Coding, Decoder, Redactor};
use crate::upstream::Outgoing;
use crate::{
    AgentId, AuditEvent, AuditKind, ContentHash, Effect, Refusal, RunId, Scheme, SealedSecret,
    StoreFault,
};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http_body_util::BodyExt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// Largest answer of a token endpoint, bytes: a few tokens of 8 KiB.
const ANSWER_BYTES: usize = 64 * 1024;

/// How often the store is asked whether another redemption has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often: as long as a claim lasts, and a little.
const LOOKS: usize = 1_300;

/// Whose request a token is got for, as the audit names it.
#[derive(Clone)]
pub(crate) struct Errand {
    pub(crate) shared: Arc<Shared>,
    pub(crate) line: Arc<Line>,
    pub(crate) run: RunId,
    pub(crate) agent: AgentId,
    pub(crate) tool: String,
    pub(crate) version: String,
    pub(crate) request: u32,
    pub(crate) dry_run: bool,
}

impl Errand {
    /// A person's own, outside any run.
    pub(crate) fn of_person(shared: Arc<Shared>, line: Arc<Line>) -> Self {
        Self {
            shared,
            line,
            run: RunId::new(""),
            agent: AgentId::new(""),
            tool: String::new(),
            version: String::from(ContentHash([0; 32])),
            request: 0,
            dry_run: false,
        }
    }
}

/// A token in use.
pub(crate) struct Live {
    pub(super) header: (HeaderName, HeaderValue),
    pub(super) redactor: Redactor,
    /// When it is over, by the monotonic clock.
    until_us: u64,
    digest: [u8; 32],
}

/// The tokens of one credential.
#[derive(Default)]
pub(super) struct Tokens {
    live: RwLock<Option<Arc<Live>>>,
    /// Held by whoever gets a token; the others wait for it.
    flight: Arc<tokio::sync::Mutex<Flight>>,
    /// The last token the vendor refused before its end.
    refused: Mutex<Option<[u8; 32]>>,
}

#[derive(Default)]
struct Flight {
    /// When the last try failed and why, for those who waited for it.
    failed: Option<(u64, Refusal)>,
    /// New tokens that could not be stored yet, and what they replace.
    unsaved: Option<(SealedSecret, SealedSecret)>,
}

impl Tokens {
    /// The token in use, over or not.
    pub(super) fn known(&self) -> Option<Arc<Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn current(&self, now_us: u64) -> Option<Arc<Live>> {
        self.known().filter(|live| live.until_us > now_us)
    }

    fn put(&self, live: Option<Arc<Live>>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, Option<[u8; 32]>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The vendor refused this one: it is not used again.
    pub(super) fn spoil(&self, spoilt: &Arc<Live>) {
        *self.refused() = Some(spoilt.digest);
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, spoilt)) {
            *live = None;
        }
    }
}

/// A token that may be used now, and whether it was got for this very request.
pub(super) async fn live(
    credential: &Arc<Credential>,
    errand: &Errand,
) -> Result<(Arc<Live>, bool), Refusal> {
    let clock = errand.shared.parts.clock.clone();
    if let Some(live) = credential.tokens.current(clock.ticks_us()) {
        return Ok((live, false));
    }
    let arrived = clock.ticks_us();
    let mut flight = credential.tokens.flight.clone().lock_owned().await;
    if let Some(live) = credential.tokens.current(clock.ticks_us()) {
        return Ok((live, false));
    }
    if let Some((at, refusal)) = &flight.failed
        && *at >= arrived
    {
        return Err(refusal.clone());
    }
    // A task of its own: a caller that goes away must not take a rotated
    // refresh token with it.
    let (done, answer) = oneshot::channel();
    let (credential, errand) = (credential.clone(), errand.clone());
    let mints = errand.shared.mints.clone();
    mints.spawn(async move {
        let minted = mint(&credential, &errand, &mut flight).await;
        match &minted {
            Ok(live) => credential.tokens.put(Some(live.clone())),
            Err(refusal) => flight.failed = Some((clock.ticks_us(), refusal.clone())),
        }
        drop(flight);
        // Whoever asked may be gone; the token is kept for the next.
        let _ = done.send(minted);
    });
    match answer.await {
        Ok(minted) => minted.map(|live| (live, true)),
        Err(_) => Err(unavailable("no token could be got")),
    }
}

async fn mint(
    credential: &Credential,
    errand: &Errand,
    flight: &mut Flight,
) -> Result<Arc<Live>, Refusal> {
    let now_ms = errand.shared.parts.clock.now_ms();
    match &credential.connection.scheme {
        Scheme::JwtAssertion(scheme) if scheme.token_url.is_none() => {
            let signed = credential.assertion(now_ms)?;
            let lifetime_ms = super::jwt::lifetime_ms(scheme);
            credential.live(errand, &Hidden::new(&signed), &[], lifetime_ms)
        }
        Scheme::Oauth2AuthorizationCode(_) => refresh(credential, errand, flight).await,
        _ => {
            let granted = ask(errand, credential.token_call(now_ms)?).await?;
            credential.live(errand, &granted.access, &[], granted.lifetime_s * 1000)
        }
    }
}

/// Redeems the refresh token, once for everybody who shares the store: the
/// claim is stored before it is redeemed, the new one before it is used.
async fn refresh(
    credential: &Credential,
    errand: &Errand,
    flight: &mut Flight,
) -> Result<Arc<Live>, Refusal> {
    let parts = &errand.shared.parts;
    let (store, connection) = (&*parts.secrets, &credential.connection);
    if let Some((old, new)) = &flight.unsaved {
        match store.replace_secret(old, new).await {
            Ok(()) | Err(StoreFault::Conflict(_)) => flight.unsaved = None,
            Err(fault) => return Err(unstored(&fault)),
        }
    }
    let me = nonce().map_err(unavailable)?;
    for _ in 0..LOOKS {
        let sealed = store.secret(&connection.id).await;
        let (sealed, bundle) = super::open_bundle(&parts.vault, connection, sealed)?;
        let now_ms = parts.clock.now_ms();
        let refused = *credential.tokens.refused();
        if let Some((access, left_ms)) = bundle.usable(now_ms, refused) {
            return credential.live_of(errand, access, &bundle, left_ms);
        }
        let Some(call) = credential.refresh_call(&bundle)? else {
            return Err(unavailable(
                "nobody is signed in at the vendor's; a person has to sign in",
            ));
        };
        if bundle.claimed(now_ms) {
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        }
        let seal = |bundle: &Bundle| super::seal_bundle(&parts.vault, connection, bundle);
        let claimed = seal(&bundle.claim(Some(&me), now_ms))?;
        match store.replace_secret(&sealed, &claimed).await {
            Ok(()) => {}
            Err(StoreFault::Conflict(_)) => continue,
            Err(fault) => return Err(unstored(&fault)),
        }
        let granted = match ask(errand, call).await {
            Ok(granted) => granted,
            Err(refusal) => {
                let freed = seal(&bundle.claim(None, now_ms))?;
                if let Err(fault) = store.replace_secret(&claimed, &freed).await {
                    tracing::warn!(%fault, "a claim on a refresh token was not taken back");
                }
                return Err(refusal);
            }
        };
        let renewed = bundle.renewed(&granted, parts.clock.now_ms());
        let sealed = seal(&renewed)?;
        match store.replace_secret(&claimed, &sealed).await {
            Ok(()) => {
                let lifetime_ms = granted.lifetime_s * 1000;
                return credential.live_of(errand, &granted.access, &renewed, lifetime_ms);
            }
            // A person signed in anew meanwhile; theirs counts.
            Err(StoreFault::Conflict(_)) => {}
            Err(fault) => {
                flight.unsaved = Some((claimed, sealed));
                return Err(unstored(&fault));
            }
        }
    }
    Err(unavailable("another refresh of this connection's token did not end"))
}

fn unstored(fault: &StoreFault) -> Refusal {
    tracing::error!(%fault, "tokens could not be stored");
    unavailable("the connection's tokens could not be stored, so none is used")
}

impl Credential {
    /// A token made ready for use; `also` are other secrets an answer may hold.
    fn live(
        &self,
        errand: &Errand,
        access: &Hidden,
        also: &[&[u8]],
        lifetime_ms: i64,
    ) -> Result<Arc<Live>, Refusal> {
        let header = super::header::header("authorization", "Bearer ", access.as_bytes())
            .map_err(unavailable)?;
        let made = [&[access.as_bytes()], also].concat();
        let lifetime_us = u64::try_from(lifetime_ms).unwrap_or(0).saturating_mul(1000);
        Ok(Arc::new(Live {
            header,
            redactor: self.redactor.with(&made),
            until_us: errand.shared.parts.clock.ticks_us().saturating_add(lifetime_us),
            digest: digest(access),
        }))
    }

    fn live_of(
        &self,
        errand: &Errand,
        access: &Hidden,
        bundle: &Bundle,
        lifetime_ms: i64,
    ) -> Result<Arc<Live>, Refusal> {
        let secrets: Vec<&[u8]> = bundle.secrets().collect();
        self.live(errand, access, &secrets, lifetime_ms)
    }
}

/// One call of a token endpoint, between its two audit rows.
pub(super) async fn ask(errand: &Errand, call: TokenCall) -> Result<Granted, Refusal> {
    let shared = &errand.shared;
    let intent = errand.event(AuditKind::Intent, &call, "token_call", None, None);
    shared.writer.put(intent, true).stored().await.map_err(|fault| {
        tracing::error!(%fault, "the audit is unavailable");
        Refusal::AuditUnavailable(
            "the audit could not record the token call; nothing was sent".into(),
        )
    })?;
    let since = shared.parts.clock.ticks_us();
    let answered =
        tokio::time::timeout(shared.parts.limits.exchange, exchange(errand, &call)).await;
    let took = shared.parts.clock.ticks_us().saturating_sub(since);
    let late = || Err(Refusal::UpstreamTimeout("the token endpoint did not finish in time".into()));
    let (status, read) = match answered.unwrap_or_else(|_| late()) {
        Ok((status, body)) => {
            let read = token::read(status, &body).map_err(|why| unavailable(&why));
            (Some(status), read)
        }
        Err(refusal) => (None, Err(unreached(refusal))),
    };
    let rule = read.as_ref().err().map_or("completed", Refusal::code);
    // Queued, not awaited: the intent stands, a missing outcome reads as unknown.
    drop(
        shared.writer.put(errand.event(AuditKind::Outcome, &call, rule, status, Some(took)), true),
    );
    read
}

/// A person can do something about an address; the rest is one fact.
fn unreached(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::AddressDenied(why) => Refusal::AddressDenied(format!("the token endpoint: {why}")),
        Refusal::SelfAddress(why) => Refusal::SelfAddress(format!("the token endpoint: {why}")),
        other => unavailable(&format!("the token endpoint did not answer ({})", other.code())),
    }
}

async fn exchange(errand: &Errand, call: &TokenCall) -> Result<(u16, Bytes), Refusal> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(CONTENT_TYPE, form);
    headers.insert(USER_AGENT, HeaderValue::from_static(crate::headers::USER_AGENT));
    for (name, value) in &call.headers {
        headers.insert(name.clone(), value.clone());
    }
    let authority = call.endpoint.authority();
    let outgoing = Outgoing {
        method: "POST",
        // Never sent again by itself: a code or a refresh token is good once.
        effect: Effect::Write,
        again: false,
        authority: &authority,
        path_and_query: call.endpoint.path(),
        headers,
        body: Bytes::copy_from_slice(call.body.as_bytes()),
    };
    let mut reply = errand.line.token_endpoint()?.send(outgoing).await?;
    let limits = crate::Limits { response_bytes: ANSWER_BYTES, ..errand.shared.parts.limits };
    let mut decoder = Decoder::new(Coding::of(&reply.headers)?, &limits);
    let mut body = Vec::new();
    while let Some(frame) = reply.body.frame().await {
        let frame = frame.map_err(|error| crate::upstream::body_refusal(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        body.extend_from_slice(&decoder.push(data)?);
    }
    body.extend_from_slice(&decoder.finish()?);
    Ok((reply.status.as_u16(), body.into()))
}

impl Errand {
    fn event(
        &self,
        kind: AuditKind,
        call: &TokenCall,
        rule: &str,
        status: Option<u16>,
        took_us: Option<u64>,
    ) -> AuditEvent {
        AuditEvent {
            kind,
            at_ms: self.shared.parts.clock.now_ms(),
            run: self.run.to_string(),
            request: self.request,
            agent: self.agent.to_string(),
            tool: self.tool.clone(),
            version: self.version.clone(),
            connection: self.line.connection().id.to_string(),
            approval: None,
            effect: None,
            decision: "token".to_owned(),
            rule: rule.to_owned(),
            method: "POST".to_owned(),
            host: call.endpoint.authority(),
            path: call.endpoint.path().to_owned(),
            query_keys: Vec::new(),
            digest: None,
            status,
            bytes: None,
            vendor_us: took_us,
            proxy_us: None,
            redactions: None,
            dry_run: self.dry_run,
            notes: Vec::new(),
        }
    }
}
