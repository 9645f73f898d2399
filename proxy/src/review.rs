//! The policy for a reviewer: what would become of a request, and the rows that
//! led to it. Nothing is sent, stored or asked; the judge is the session's own.

use crate::judge::{Case, Findings, judge};
use crate::policy::{Decision, GrantKind, SiteMatch};
use crate::{CallSite, Connection, Effect, Hints, Limits, OutboundRequest, Refusal};
use serde::{Deserialize, Serialize};

/// The grant a review supposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Supposed {
    /// What admission gives when nobody has answered yet.
    #[default]
    Usual,
    /// A dry run.
    DryRun,
    /// Every write asks for itself.
    Each,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Sent at once.
    Forward,
    /// Sent once a person allows it, or if what they allowed covers it.
    Ask,
    /// Shown instead of sent.
    Preview,
    /// Not sent.
    Refuse,
}

/// What is reviewed.
#[derive(Debug)]
pub struct Review<'a> {
    /// The connection as it stands, or as somebody would have it.
    pub connection: &'a Connection,
    /// What the version is recorded to call.
    pub sites: &'a [CallSite],
    /// Its hints.
    pub hints: Hints,
    /// What it may do.
    pub supposed: Supposed,
    /// The request.
    pub request: &'a OutboundRequest,
}

/// What would become of a request, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens.
    pub verdict: Verdict,
    /// The row of the policy that decided; `None` when it came to none.
    pub rule: Option<&'static str>,
    /// The refusal's code.
    pub code: Option<&'static str>,
    /// The refusal's sentence.
    pub message: Option<String>,
    /// The refusal's next step.
    pub next: Option<&'static str>,
    /// Authority on the wire.
    pub host: Option<String>,
    /// Path and query on the wire.
    pub path: Option<String>,
    /// What its method says.
    pub method_effect: Option<Effect>,
    /// What it counts as.
    pub effect: Option<Effect>,
    /// One line for each step, in the order they were taken.
    pub steps: Vec<String>,
}

impl Review<'_> {
    /// Judges the request as a session would.
    pub fn explain(&self, limits: &Limits) -> Explanation {
        let Self { connection, sites, hints, supposed, request } = self;
        let reads = hints.read_only && !connection.overrides.raises_reads();
        let grant = match supposed {
            Supposed::DryRun => GrantKind::Preview,
            Supposed::Usual | Supposed::Each if reads => GrantKind::ReadOnly,
            Supposed::Usual => GrantKind::Ask,
            Supposed::Each => GrantKind::AskEach,
        };
        let mut found = Findings::default();
        let case = Case { connection, sites, hints: *hints, grant, limits };
        let decided = judge(&case, request, &mut found);
        let (verdict, refusal) = match decided {
            Ok(Decision::Forward) => (Verdict::Forward, None),
            Ok(Decision::NeedsPermit { .. }) => (Verdict::Ask, None),
            Ok(Decision::Preview) => (Verdict::Preview, None),
            Ok(Decision::Refuse(refusal)) | Err(refusal) => (Verdict::Refuse, Some(refusal)),
        };
        let steps = steps(&found, grant, *hints, refusal.as_ref());
        Explanation {
            verdict,
            rule: (!found.rule.is_empty()).then_some(found.rule),
            code: refusal.as_ref().map(Refusal::code),
            message: refusal.as_ref().map(Refusal::to_string),
            next: refusal.as_ref().map(Refusal::next),
            host: found.target.as_ref().map(|target| target.authority.clone()),
            path: found.target.as_ref().map(crate::target::Target::path_and_query),
            method_effect: found.method,
            effect: found.effect,
            steps,
        }
    }
}

fn steps(
    found: &Findings,
    grant: GrantKind,
    hints: Hints,
    refusal: Option<&Refusal>,
) -> Vec<String> {
    let mut steps = Vec::new();
    if let Some(target) = &found.target {
        steps.push(format!("target: https://{}{}", target.authority, target.path_and_query()));
    }
    if found.parameters_dropped > 0 {
        let count = found.parameters_dropped;
        steps.push(format!("query: {count} parameters of the credential's name are left out"));
    }
    if let Some(method) = found.method {
        let counts = match found.effect {
            Some(effect) if effect != method => {
                format!("; on this connection it counts as a {}", word(effect))
            }
            Some(_) | None => String::new(),
        };
        steps.push(format!("effect: the method is a {}{counts}", word(method)));
    }
    if let Some(headers) = &found.headers {
        let passed: Vec<&str> = headers.passed.iter().map(|(name, _)| name.as_str()).collect();
        steps.push(format!("headers: {} go{}", passed.join(", "), dropped(&headers.notes)));
    }
    if let Some(site) = found.site {
        steps.push(format!(
            "site: {}",
            match site {
                SiteMatch::Recorded => "a recorded call site names its method and path",
                SiteMatch::Open => "only a site with any method or any path admits it",
                SiteMatch::Opened => {
                    "only a site with any method or any path admits it, which from now on may cover"
                }
                SiteMatch::Outside => "no recorded call site admits it",
            }
        ));
        steps.push(format!(
            "hints: readOnly {}, destructive {}",
            hints.read_only, hints.destructive
        ));
        steps.push(format!(
            "grant: {}",
            match grant {
                GrantKind::ReadOnly => "the run may only read",
                GrantKind::Preview => "a dry run",
                GrantKind::Ask => "nobody has answered for this version yet",
                GrantKind::AskEach => "every write asks for itself",
                GrantKind::Write => "a person said from now on",
            }
        ));
    }
    if !found.rule.is_empty() {
        steps.push(format!("rule: {}", found.rule));
    }
    if let Some(refusal) = refusal {
        steps.push(format!("refused: {}: {refusal}", refusal.code()));
    }
    steps
}

fn dropped(notes: &[String]) -> String {
    let names: Vec<&str> =
        notes.iter().filter_map(|note| note.strip_prefix("header_dropped:")).collect();
    if names.is_empty() { String::new() } else { format!("; {} are left out", names.join(", ")) }
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Destroy => "destroy",
    }
}
