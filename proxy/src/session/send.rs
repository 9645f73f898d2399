//! One request from what a module asked for to what may go: read, judged,
//! previewed or cleared. Nothing here touches the network; `carry` does.

use super::trail::Trail;
use super::{Inner, carry, hold};
use crate::policy::{Decision, Facts, SiteMatch, decide};
use crate::scrub::Redactor;
use crate::site::match_sites;
use crate::target::Target;
use crate::{
    AuditKind, Body, Effect, HeldRequest, OutboundRequest, Permit, Preview, Refusal, Reply,
    StoreFault, credential, effect, headers,
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
    let mut trail = Trail::begin(inner, redactor, &request.method, &request.target);
    // A panic is this request's and nobody else's.
    let prepared = AssertUnwindSafe(prepare(inner, &mut trail, request)).catch_unwind().await;
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
    let (draft, decision) = judge(inner, trail, request)?;
    if matches!(decision, Decision::Forward | Decision::NeedsPermit { .. }) {
        inner.line.gauge.count(trail.ticks())?;
    }
    let way = match decision {
        Decision::Refuse(refusal) => return Err(refusal),
        Decision::Forward => Way::Go(Clearance::Read),
        Decision::Preview => Way::Preview(Preview::of(&draft.held, &inner.spec.connection)),
        Decision::NeedsPermit { standing_counts } => {
            let permit = hold::clear(inner, trail, &draft, standing_counts).await?;
            trail.approval = Some(permit.ask().clone());
            Way::Go(Clearance::Write(permit))
        }
    };
    Ok((draft, slot, way))
}

/// Everything that is decided from the request and the session alone.
fn judge(
    inner: &Inner,
    trail: &mut Trail,
    request: OutboundRequest,
) -> Result<(Draft, Decision), Refusal> {
    let (spec, limits) = (&inner.spec, &inner.shared.parts.limits);
    let OutboundRequest { method, host, target, headers: given, body, sdk } = request;
    let mut target = Target::read(&spec.connection, host.as_deref(), &target, sdk, limits)?;
    let dropped = credential::clean_query(&spec.connection.scheme, &mut target);
    trail.aims(&target);
    if dropped > 0 {
        trail.note("query_parameter_dropped");
    }
    credential::check_path(&spec.connection.scheme, &target)?;
    let by_method = effect::effect(&method)?;
    trail.effect = Some(by_method);
    if body.len() > limits.request_body_bytes {
        return Err(Refusal::BodyTooLarge(format!(
            "the body is {} bytes, at most {} are sent",
            body.len(),
            limits.request_body_bytes
        )));
    }
    let headers = headers::request_headers(&given, &spec.connection, limits)?;
    headers.notes.iter().for_each(|note| trail.note(note));
    let content_type = headers.passed.iter().find(|(name, _)| name == "content-type");
    let content_type = content_type.map(|(_, value)| value.as_str());
    let asked = effect::Asked { method: &method, target: &target, content_type, body: &body };
    let effect = effect::counts_as(&spec.connection.overrides, by_method, &asked);
    trail.effect = Some(effect);
    let site = match_sites(&spec.sites, spec.hints, &spec.connection, &method, by_method, &target);
    let grant = spec.grant.kind();
    let (hints, body_there) = (spec.hints, !body.is_empty());
    let facts = Facts { grant, hints, method: by_method, effect, site, body: body_there, sdk };
    let (decision, rule) = decide(&facts);
    rule.clone_into(&mut trail.rule);
    let held = held(inner, effect, method, &target, headers.passed, body);
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
