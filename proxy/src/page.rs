//! One web page, read for an agent: a GET without a connection, a credential or
//! a cookie, through the same guard and the same dialling as any request. Each
//! hop of a redirect is judged, asked for and recorded like the first. What is
//! readable in the answer is another's to say; here it is bytes.

mod url;

use crate::audit::AuditEvent;
use crate::headers;
use crate::scrub::{Coding, Decoder};
use crate::upstream::{Outgoing, Upstream, body_refusal};
use crate::{AgentId, AuditKind, Effect, Exception, Limits, Proxy, Refusal, RunId};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use url::PageUrl;

/// Longest page after decoding, bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Redirects followed: to https, to `www`, to a language, and one more.
const HOPS: usize = 4;
/// All hops together.
const WHOLE: Duration = Duration::from_secs(30);
/// What is asked for.
const WANTED: &str = "text/html, application/xhtml+xml, text/plain, text/markdown, application/json;q=0.8, \
     text/*;q=0.7";

/// What a person's configuration adds to where pages may be read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageReach {
    /// Private addresses the person lifted, by range and port; never metadata.
    pub exceptions: Vec<Exception>,
    /// An authority trusted instead of the public ones, PEM.
    pub ca_pem: Option<String>,
}

/// A page that is wanted.
pub struct PageRequest<'a> {
    /// The run it is for.
    pub run: &'a RunId,
    /// The agent it is for.
    pub agent: &'a AgentId,
    /// `https://…`.
    pub url: &'a str,
    /// What a person lifted.
    pub reach: &'a PageReach,
    /// Whether this agent may read from a host.
    pub may: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// Ends it.
    pub stop: &'a CancellationToken,
}

/// A page as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it was in the end.
    pub url: String,
    /// The server's status.
    pub status: u16,
    /// Its content type, lower-case, as the server says.
    pub content_type: String,
    /// Its bytes, decoded.
    pub body: Bytes,
}

/// What came of the wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageAnswer {
    /// The page.
    Page(Page),
    /// Nobody has said that the agent may read from this host: nothing was sent
    /// to it, and its name was not looked up.
    Host(String),
}

impl Proxy {
    /// Whether an address could be a page's, and its host.
    pub fn page_host(url: &str, reach: &PageReach) -> Result<String, Refusal> {
        PageUrl::parse(url, reach).map(|url| url.authority())
    }

    /// Whether what a person lifted for pages can be: no metadata address, an
    /// authority that is one. Our own listeners are never dialled, lifted or not.
    pub fn check_reach(reach: &PageReach) -> Result<(), Refusal> {
        if let Some(pem) = &reach.ca_pem {
            crate::upstream::check_authority(pem)?;
        }
        for Exception { cidr, .. } in &reach.exceptions {
            if let Some(address) = crate::address::metadata_in(cidr) {
                return Err(Refusal::AddressDenied(format!(
                    "{cidr} holds {address}, a cloud metadata address; name a narrower range"
                )));
            }
        }
        Ok(())
    }

    /// Reads a page, following redirects as far as the agent may go.
    pub async fn read_page(&self, wanted: PageRequest<'_>) -> Result<PageAnswer, Refusal> {
        let mut deadline = Box::pin(tokio::time::sleep(WHOLE));
        let mut number = 0;
        let mut url = match PageUrl::parse(wanted.url, wanted.reach) {
            Ok(url) => url,
            Err(refusal) => return self.refused(&wanted, None, refusal).await,
        };
        loop {
            if !(wanted.may)(&url.authority()) {
                return Ok(PageAnswer::Host(url.authority()));
            }
            number += 1;
            let (status, headers, body) = self.hop(&wanted, &url, number, &mut deadline).await?;
            let onward = matches!(status, 301 | 302 | 303 | 307 | 308)
                .then(|| headers.get(LOCATION).and_then(|value| value.to_str().ok()))
                .flatten();
            let Some(onward) = onward else {
                let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
                return Ok(PageAnswer::Page(Page { url: url.text(), status, content_type, body }));
            };
            if number as usize > HOPS {
                let why = format!("it redirects more than {HOPS} times");
                return self.refused(&wanted, Some(&url), Refusal::UrlInvalid(why)).await;
            }
            url = match url.join(onward, wanted.reach) {
                Ok(next) => next,
                Err(refusal) => return self.refused(&wanted, Some(&url), refusal).await,
            };
        }
    }

    /// One request between its two rows.
    async fn hop(
        &self,
        wanted: &PageRequest<'_>,
        url: &PageUrl,
        number: u32,
        deadline: &mut Pin<Box<Sleep>>,
    ) -> Result<(u16, HeaderMap, Bytes), Refusal> {
        let shared = self.shared();
        let clock = &shared.parts.clock;
        let row = |kind| {
            let event = AuditEvent::page(kind, clock.now_ms(), wanted.run, wanted.agent);
            let (host, path, query_keys) = (url.authority(), url.path(), url.query_keys());
            AuditEvent { request: number, host, path, query_keys, ..event }
        };
        shared.writer.put(row(AuditKind::Intent), false).stored().await.map_err(unrecorded)?;
        let since = clock.ticks_us();
        let got = tokio::select! {
            biased;
            () = wanted.stop.cancelled() => Err(Refusal::RunClosed("reading it was given up".into())),
            () = &mut *deadline => {
                Err(Refusal::UpstreamTimeout(format!("{} did not finish in time", url.authority())))
            }
            got = self.exchange(wanted, url) => got,
        };
        let outcome = AuditEvent {
            rule: got.as_ref().map_or_else(Refusal::code, |_| "completed").to_owned(),
            status: got.as_ref().ok().map(|(status, _, _)| *status),
            bytes: got.as_ref().ok().map(|(_, _, body)| body.len() as u64),
            vendor_us: Some(clock.ticks_us().saturating_sub(since)),
            ..row(AuditKind::Outcome)
        };
        // Queued, not awaited: the intent stands, a missing outcome reads as unknown.
        shared.writer.put_later(outcome);
        got
    }

    async fn exchange(
        &self,
        wanted: &PageRequest<'_>,
        url: &PageUrl,
    ) -> Result<(u16, HeaderMap, Bytes), Refusal> {
        let network = self.shared().network();
        let upstream = Upstream::to_page(&url.host, wanted.reach, network)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(WANTED));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let ours = HeaderValue::from_static(headers::USER_AGENT);
        headers.insert(http::header::USER_AGENT, ours);
        let mut reply = upstream
            .send(Outgoing {
                method: "GET",
                effect: Effect::Read,
                again: false,
                authority: &url.authority(),
                path_and_query: &url.target,
                headers,
                body: Bytes::new(),
            })
            .await?;
        let limits = Limits { response_bytes: PAGE_BYTES, ..network.limits };
        let mut decoder = Decoder::new(Coding::of(&reply.headers)?, &limits);
        let mut body = Vec::new();
        while let Some(frame) = reply.body.frame().await {
            let frame = frame.map_err(|error| body_refusal(&error))?;
            if let Ok(data) = frame.into_data() {
                body.extend_from_slice(&decoder.push(data)?);
            }
        }
        body.extend_from_slice(&decoder.finish()?);
        Ok((reply.status.as_u16(), reply.headers.clone(), body.into()))
    }

    /// Records that nothing was sent, and why.
    async fn refused<T>(
        &self,
        wanted: &PageRequest<'_>,
        from: Option<&PageUrl>,
        refusal: Refusal,
    ) -> Result<T, Refusal> {
        let shared = self.shared();
        let now = shared.parts.clock.now_ms();
        let event = AuditEvent::page(AuditKind::Refusal, now, wanted.run, wanted.agent);
        let event = AuditEvent {
            rule: refusal.code().to_owned(),
            host: from.map(PageUrl::authority).unwrap_or_default(),
            path: from.map(PageUrl::path).unwrap_or_default(),
            ..event
        };
        shared.writer.put(event, false).stored().await.map_err(unrecorded)?;
        Err(refusal)
    }
}

fn unrecorded(fault: crate::StoreFault) -> Refusal {
    tracing::error!(%fault, "the audit is unavailable");
    Refusal::AuditUnavailable("the audit could not record the page; nothing was sent".into())
}
