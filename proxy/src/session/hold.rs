//! A write that needs a person's word. First what is already stored: a no, a
//! standing yes, an unused *once* for exactly these bytes. Only then the desk
//! is asked, and what it answers names an ask whose decision is read and
//! checked here. No path through this file ends in a permit without a stored
//! decision whose MAC holds.

use super::trail::Trail;
use super::{Inner, send::Draft};
use crate::approval::{self, Reading, Standing};
use crate::{AuditKind, HeldRequest, HoldOutcome, Parked, Permit, Refusal};
use std::sync::Arc;

/// How often one request may be put to a person because the answer was for
/// other bytes: once for each request a run may have under way, and one more.
const ROUNDS: usize = 9;

/// The permit that lets a write go.
pub(super) async fn clear(
    inner: &Arc<Inner>,
    trail: &mut Trail,
    draft: &Draft,
    standing_counts: bool,
) -> Result<Permit, Refusal> {
    let (source, vault) = (&*inner.shared.parts.approvals, &*inner.shared.parts.vault);
    let digest = draft.held.digest;
    match approval::standing(source, vault, inner.about()).await? {
        Standing::Denied => return Err(approval::denied()),
        Standing::Allowed(permit) if standing_counts && permit.lets(draft.site, digest) => {
            return Ok(permit);
        }
        Standing::Allowed(_) | Standing::Nothing => {}
    }
    if let Some(permit) = approval::once(source, vault, inner.about(), digest).await? {
        return Ok(permit);
    }
    check_showable(inner, &draft.held)?;
    let each = matches!(inner.spec.grant, crate::Grant::AskEach);
    for _ in 0..ROUNDS {
        let ask = match ask(inner, trail, &draft.held).await? {
            HoldOutcome::Decided(ask) => ask,
            HoldOutcome::Parked(parked) => return Err(park(inner, trail, parked)),
            HoldOutcome::Dismissed(ask) => {
                trail.approval = Some(ask);
                let why = "a person put the question about this write aside; nothing was sent";
                return Err(Refusal::AskDismissed(why.into()));
            }
            HoldOutcome::TooMany => {
                let why = "this agent has too many questions open; nothing was sent";
                return Err(Refusal::RateLimited(why.into()));
            }
            HoldOutcome::Failed => {
                let why = "the question to a person could not be stored; nothing was sent";
                return Err(Refusal::AuditUnavailable(why.into()));
            }
        };
        trail.approval = Some(ask.clone());
        match approval::decision(source, vault, inner.about(), &ask).await? {
            Reading::Denied => return Err(approval::denied()),
            Reading::Standing(permit, shown) => {
                if standing_counts && permit.lets(draft.site, digest) {
                    return Ok(permit);
                }
                // What a person saw they said yes to, wherever it came from;
                // "every time" alone knows no *from now on*.
                if !each && shown == digest {
                    return Ok(permit.only(shown));
                }
            }
            // A decision releases one request: the store's compare-and-swap
            // says which.
            Reading::Once(shown) if shown == digest => {
                if let Some(permit) = approval::once(source, vault, inner.about(), digest).await? {
                    return Ok(permit);
                }
            }
            Reading::Once(_) => {}
            Reading::Elsewhere => {
                let why = "the answer was for another version or another state of the connection";
                return Err(Refusal::ApprovalExpired(why.into()));
            }
        }
    }
    let why = "the answers given were for other requests; nothing was sent";
    Err(Refusal::AwaitingApproval(why.into()))
}

/// Leaves a request with an open ask. One that is about another request is not
/// this one's: its row names none.
fn park(inner: &Inner, trail: &mut Trail, parked: Parked) -> Refusal {
    let why = if parked.shown {
        trail.approval = Some(parked.ask.clone());
        "a person was asked and has not answered yet; nothing was sent"
    } else {
        "a person is asked about another request of this tool first, and about this one after it; \
         nothing was sent"
    };
    let mut report = inner.report();
    if report.parked.as_ref().is_none_or(|before| parked.shown && !before.shown) {
        report.parked = Some(parked);
    }
    Refusal::AwaitingApproval(why.into())
}

/// Puts the request to the desk, the run's clock stopped.
async fn ask(
    inner: &Arc<Inner>,
    trail: &mut Trail,
    held: &HeldRequest,
) -> Result<HoldOutcome, Refusal> {
    trail.decision = "hold";
    trail.row(AuditKind::Hold, false).stored().await.map_err(super::send::unrecorded)?;
    let since = trail.ticks();
    let guard = inner.hold_clock();
    let outcome = tokio::select! {
        biased;
        () = inner.stop.cancelled() => Err(super::send::closed()),
        outcome = inner.desk.hold(held.clone()) => Ok(outcome),
    };
    drop(guard);
    trail.held_us += trail.ticks().saturating_sub(since);
    outcome
}

/// A person must be able to see what they allow.
fn check_showable(inner: &Inner, held: &HeldRequest) -> Result<(), Refusal> {
    let most = inner.shared.parts.limits.approval_body_bytes;
    if held.body.len() > most {
        return Err(Refusal::BodyTooLargeForApproval(format!(
            "the body is {} bytes, a person can be asked about {most}",
            held.body.len()
        )));
    }
    let content_type = held.headers.iter().find(|(name, _)| name == "content-type");
    let content_type = content_type.map(|(_, value)| value.to_ascii_lowercase());
    let text = content_type.is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.starts_with("text/")
            || ["json", "xml", "x-www-form-urlencoded", "javascript", "graphql"]
                .iter()
                .any(|ending| kind.ends_with(ending))
    });
    if text && std::str::from_utf8(&held.body).is_err() {
        return Err(Refusal::BodyUnreadableForApproval(
            "the body is sent as text and is not UTF-8".into(),
        ));
    }
    Ok(())
}
