//! The policy: one pure table from what is known of a request to what happens
//! to it. No IO, no clock, no state; each row has a name, the audit carries it
//! and a test stands for it. Permits and asks are `approval.rs` and
//! `session/hold.rs`.

use crate::{Effect, Hints, Refusal};

/// What the table is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// What the grant of the session says.
    pub(crate) grant: GrantKind,
    /// The hints the version was published with.
    pub(crate) hints: Hints,
    /// What its method says it does.
    pub(crate) method: Effect,
    /// What it counts as on this connection.
    pub(crate) effect: Effect,
    /// How far the request's place in the code was followed.
    pub(crate) site: SiteMatch,
    /// It has a body.
    pub(crate) body: bool,
    /// It came through an SDK's `fetch`.
    pub(crate) sdk: bool,
}

/// A grant without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantKind {
    ReadOnly,
    Preview,
    Ask,
    AskEach,
    Write,
}

/// How a request meets the recorded call sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteMatch {
    /// One site names its method and path.
    Recorded,
    /// Only a site with "any method" or "any path" admits it.
    Open,
    /// The same, and a person let *from now on* cover such sites here.
    Opened,
    /// None admits it.
    Outside,
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Sent at once: a read.
    Forward,
    /// Sent if a person's permit lets it through, else held. A standing answer
    /// counts only where `standing_counts`.
    NeedsPermit { standing_counts: bool },
    /// Shown instead of sent.
    Preview,
    /// Not sent.
    Refuse(Refusal),
}

/// The table. The first row that applies decides.
pub(crate) fn decide(facts: &Facts) -> (Decision, &'static str) {
    let Facts { grant, hints, method, effect, site, body, sdk } = *facts;
    let exceeds = |why: &str| Decision::Refuse(Refusal::MethodExceedsHint(why.to_owned()));
    if hints.read_only && method != Effect::Read {
        let why = "the version is published as read-only and asked for a write";
        return (exceeds(why), "read_only_hint");
    }
    if hints.read_only && sdk {
        let why = "the version is published as read-only and called through an SDK";
        return (exceeds(why), "sdk_is_a_write");
    }
    if method == Effect::Destroy && sdk {
        return (exceeds("DELETE is never sent through an SDK"), "sdk_never_destroys");
    }
    if method == Effect::Destroy && !hints.destructive {
        let why = "the version is not published as destructive and asked for DELETE";
        return (exceeds(why), "destructive_hint");
    }
    if method == Effect::Read && body {
        let refusal = Refusal::BodyOnRead("GET and HEAD carry no body".into());
        return (Decision::Refuse(refusal), "read_without_body");
    }
    if site == SiteMatch::Outside {
        let why = "the request is not one the version's code was seen to make";
        return (Decision::Refuse(Refusal::OutsideCallSites(why.into())), "recorded_sites");
    }
    match (grant, effect) {
        (_, Effect::Read) if method != Effect::Read => (Decision::Forward, "queries_go"),
        (_, Effect::Read) => (Decision::Forward, "reads_go"),
        (GrantKind::ReadOnly, Effect::Write | Effect::Destroy) => {
            (exceeds("the run may only read"), "read_only_grant")
        }
        (GrantKind::Preview, Effect::Write | Effect::Destroy) => {
            (Decision::Preview, "dry_run_shows")
        }
        (GrantKind::AskEach, Effect::Write | Effect::Destroy) => {
            (Decision::NeedsPermit { standing_counts: false }, "each_asks")
        }
        // Nobody saw that it destroys when they said *from now on*.
        (GrantKind::Ask | GrantKind::Write, Effect::Destroy) if method != Effect::Destroy => {
            (Decision::NeedsPermit { standing_counts: false }, "raised_to_destroy_asks")
        }
        (GrantKind::Ask | GrantKind::Write, Effect::Write | Effect::Destroy) => match site {
            SiteMatch::Recorded => {
                (Decision::NeedsPermit { standing_counts: true }, "recorded_site_needs_permit")
            }
            SiteMatch::Opened => {
                (Decision::NeedsPermit { standing_counts: true }, "opened_site_needs_permit")
            }
            SiteMatch::Open | SiteMatch::Outside => {
                (Decision::NeedsPermit { standing_counts: false }, "open_site_needs_permit")
            }
        },
    }
}

#[cfg(test)]
mod tests;
