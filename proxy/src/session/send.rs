//! One request from what a module asked for to what may go: read, judged,
//! previewed or cleared. Nothing here touches the network; `carry` does.

use super::trail::Trail;
use super::{Inner, carry, hold};
use crate::judge::{Case, Findings, judge};
use crate::policy::{Decision, SiteMatch};
use crate::scrub::Redactor;
use crate::target::Target;
use crate::{
    AuditKind, Body, Effect, HeldRequest, OutboundRequest, Permit, Preview, Refusal, Reply,
    StoreFault,
};
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A request that is complete but for its credential.
pub(super) struct Draft {
    pub(super) held: HeldRequest,
    pub(super) target: Target,
    pub(super) site: SiteMatch,
}

/// What lets a request go.
pub(super) enum Clearance {
    /// It reads.
    Read,
    /// A person said so.
    Write(Permit),
}

/// What becomes of a draft.
enum Way {
    Preview(Preview),
    Go(Clearance),
}

pub(super) async fn send(inner: &Arc<Inner>, request: OutboundRequest) -> Result<Reply, Refusal> {
    let credential = inner.line.credential(&inner.shared).await;
    let redactor = match &credential {
        Ok(credential) => credential.redactor(),
        // Without a secret there is nothing to hide.
        Err(_) => Redactor::none(),
    };
    inner.learns(&redactor);
    let mut trail = Trail::begin(inner, redactor, &request.method, &request.target);
    // A panic is this request's and nobody else's.
    let unready = credential.as_ref().err();
    let prepared = prepare(inner, &mut trail, request, unready);
    let prepared = AssertUnwindSafe(prepared).catch_unwind().await;
    let prepared = prepared.unwrap_or_else(|_| {
        Err(Refusal::ProxyFailed("the proxy failed on this request; nothing was sent".into()))
    });
    let (draft, slot, way) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => {
            trail.refused(&refusal).await;
            return Err(refusal);
        }
    };
    match way {
        Way::Preview(preview) => show(&mut trail, preview).await,
        Way::Go(clearance) => {
            let credential = match credential {
                Ok(credential) => credential,
                Err(refusal) => {
                    trail.refused(&refusal).await;
                    return Err(refusal);
                }
            };
            // A task of its own: whoever waits may go away, the outcome must
            // be written down all the same.
            let effect = draft.held.effect;
            let (head, reply) = oneshot::channel();
            let parcel =
                carry::Parcel { inner: inner.clone(), trail, draft, clearance, credential, slot };
            inner.shared.tasks.tracker.spawn(carry::guarded(parcel, head));
            reply.await.unwrap_or_else(|_| Err(carry::broken(effect)))
        }
    }
}

async fn prepare(
    inner: &Arc<Inner>,
    trail: &mut Trail,
    request: OutboundRequest,
    unready: Option<&Refusal>,
) -> Result<(Draft, OwnedSemaphorePermit, Way), Refusal> {
    if inner.stop.is_cancelled() {
        return Err(closed());
    }
    if inner.ended.is_cancelled() {
        return Err(Refusal::RunClosed("a refusal has ended the run".into()));
    }
    inner.budget.allows(trail.number())?;
    let slot = tokio::select! {
        biased;
        () = inner.stop.cancelled() => return Err(closed()),
        slot = inner.budget.slot() => slot?,
    };
    let (draft, decision) = draft(inner, trail, request)?;
    if matches!(decision, Decision::Forward | Decision::NeedsPermit { .. }) {
        inner.line.gauge.count(trail.ticks())?;
    }
    let way = match decision {
        Decision::Refuse(refusal) => return Err(refusal),
        Decision::Forward => Way::Go(Clearance::Read),
        Decision::Preview => Way::Preview(Preview::of(&draft.held, &inner.spec.connection)),
        Decision::NeedsPermit { standing_counts } => {
            // Nobody is asked about what could not be sent.
            if let Some(refusal) = unready {
                return Err(refusal.clone());
            }
            let permit = hold::clear(inner, trail, &draft, standing_counts).await?;
            trail.approval = Some(permit.ask().clone());
            Way::Go(Clearance::Write(permit))
        }
    };
    Ok((draft, slot, way))
}

/// What the session is asked to send, judged, and complete but for its
/// credential.
fn draft(
    inner: &Inner,
    trail: &mut Trail,
    request: OutboundRequest,
) -> Result<(Draft, Decision), Refusal> {
    let spec = &inner.spec;
    let case = Case {
        connection: &spec.connection,
        sites: &spec.sites,
        hints: spec.hints,
        grant: spec.grant.kind(),
        limits: &inner.shared.parts.limits,
    };
    let mut found = Findings::default();
    let decision = judge(&case, &request, &mut found);
    trail.learns(&found);
    let decision = decision?;
    let Findings { target: Some(target), effect: Some(effect), headers: Some(headers), .. } = found
    else {
        return Err(Refusal::ProxyFailed("a judged request has no target".into()));
    };
    let site = found.site.unwrap_or(SiteMatch::Outside);
    let held = held(inner, effect, request.method, &target, headers.passed, request.body);
    trail.digest = Some(held.digest);
    Ok((Draft { held, target, site }, decision))
}

fn held(
    inner: &Inner,
    effect: Effect,
    method: String,
    target: &Target,
    headers: Vec<(String, String)>,
    body: Bytes,
) -> HeldRequest {
    let spec = &inner.spec;
    let path_and_query = target.path_and_query();
    let digest =
        crate::hold::request_digest(&method, &target.authority, &path_and_query, &headers, &body);
    HeldRequest {
        run: spec.run.clone(),
        person: spec.person.clone(),
        agent: spec.agent.clone(),
        tool: spec.tool.clone(),
        version: spec.version,
        connection: spec.connection.id.clone(),
        generation: spec.connection.generation,
        effect,
        method,
        authority: target.authority.clone(),
        target: path_and_query,
        headers,
        body,
        digest,
    }
}

/// A dry run's stop: recorded, shown, never sent.
async fn show(trail: &mut Trail, preview: Preview) -> Result<Reply, Refusal> {
    trail.decision = "preview";
    if let Err(refusal) = trail.row(AuditKind::Preview, false).stored().await.map_err(unrecorded) {
        trail.fatal(&refusal);
        trail.settle(Some(&refusal), None);
        return Err(refusal);
    }
    let body = serde_json::to_vec(&preview).unwrap_or_default();
    trail.settle(None, Some(preview));
    Ok(Reply {
        status: 202,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Body::whole(body.into()),
        intercepted: true,
    })
}

/// The run is over.
pub(super) fn closed() -> Refusal {
    Refusal::RunClosed("the run has ended".into())
}

/// A row that could not be stored.
pub(super) fn unrecorded(fault: StoreFault) -> Refusal {
    tracing::error!(%fault, "the audit is unavailable");
    Refusal::AuditUnavailable("the audit could not record the request; nothing was sent".into())
}
