//! Everything about a request that is decided from values alone: no IO, no
//! clock, no session. A session acts on what comes out; the reviewer's tools
//! (`review.rs`) print it. Both ask here, so they cannot differ.

use crate::headers::{self, RequestHeaders};
use crate::policy::{Decision, Facts, GrantKind, SiteMatch, decide};
use crate::site::match_sites;
use crate::target::Target;
use crate::{
    CallSite, Connection, Effect, Hints, Limits, OutboundRequest, Refusal, credential, effect,
};

/// What a request is judged against.
pub(crate) struct Case<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) sites: &'a [CallSite],
    pub(crate) hints: Hints,
    pub(crate) grant: GrantKind,
    pub(crate) limits: &'a Limits,
}

/// What was found out, as far as it came: a refusal leaves the rest empty.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Where it goes.
    pub(crate) target: Option<Target>,
    /// Parameters taken out because they are the credential's.
    pub(crate) parameters_dropped: usize,
    /// What its method says it does.
    pub(crate) method: Option<Effect>,
    /// What it counts as on this connection.
    pub(crate) effect: Option<Effect>,
    /// What goes with it and what was left out.
    pub(crate) headers: Option<RequestHeaders>,
    /// How far its place in the code was followed.
    pub(crate) site: Option<SiteMatch>,
    /// The row of the policy that decided; empty when none was asked.
    pub(crate) rule: &'static str,
}

/// Judges one request, step by step; each step can end it.
pub(crate) fn judge(
    case: &Case<'_>,
    request: &OutboundRequest,
    found: &mut Findings,
) -> Result<Decision, Refusal> {
    let Case { connection, sites, hints, grant, limits } = *case;
    let OutboundRequest { method, host, target, headers: given, body, sdk } = request;
    let mut target = Target::read(connection, host.as_deref(), target, *sdk, limits)?;
    found.parameters_dropped = credential::clean_query(&connection.scheme, &mut target);
    let target = found.target.insert(target);
    credential::check_path(&connection.scheme, target)?;
    let by_method = effect::effect(method)?;
    found.method = Some(by_method);
    if body.len() > limits.request_body_bytes {
        return Err(Refusal::BodyTooLarge(format!(
            "the body is {} bytes, at most {} are sent",
            body.len(),
            limits.request_body_bytes
        )));
    }
    let headers = found.headers.insert(headers::request_headers(given, connection, limits)?);
    let content_type = headers.passed.iter().find(|(name, _)| name == "content-type");
    let content_type = content_type.map(|(_, value)| value.as_str());
    let asked = effect::Asked { method, target, content_type, body };
    let effect = effect::counts_as(&connection.overrides, by_method, &asked);
    found.effect = Some(effect);
    let site = match_sites(sites, hints, connection, method, by_method, target);
    found.site = Some(site);
    let body = !body.is_empty();
    let (decision, rule) =
        decide(&Facts { grant, hints, method: by_method, effect, site, body, sdk: *sdk });
    found.rule = rule;
    Ok(decision)
}
