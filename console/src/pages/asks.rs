//! The asks: what waits with a count, what was settled, and one ask with the
//! exact request it is about. *From now on* and anything destructive need the
//! passphrase again in the same form.

use super::{Frame, render};
use crate::Console;
use crate::decoded::{self, Field};
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::port::Permission;
use cambium_engine::port::ProposalState;
use cambium_engine::{
    AskView, DecideRequest, EngineError, PersonCredential, ProposalView, StandingAnswer, Wants,
};
use cambium_proxy::{Answer, AskId, CallSite, Effect, MethodPattern, PathPattern};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;

/// A body of more visible text than this cannot be taken in at a glance.
const BODY_GLANCE_MAX: usize = 4 * 1024;

#[derive(Template)]
#[template(path = "asks.html")]
struct ListPage {
    frame: Frame,
    open: Vec<Row>,
    settled: Vec<Row>,
    proposals: Vec<Wanted>,
}

/// A proposal that waits.
pub(super) struct Wanted {
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) what: String,
    pub(super) until: String,
}

struct Row {
    id: String,
    state: &'static str,
    excerpt: String,
    age: String,
    method: String,
    authority: String,
    path: String,
    tool: String,
    agent: String,
    opened: String,
}

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage {
    frame: Frame,
    fault: Option<String>,
    id: String,
    open: bool,
    state: &'static str,
    /// A no that still stands.
    denied: Option<Denied>,
    destroys: bool,
    method: String,
    authority: String,
    path: String,
    query: Option<String>,
    query_fields: Vec<Field>,
    headers: Vec<Field>,
    body: Option<String>,
    body_fields: Vec<Field>,
    body_bytes: usize,
    body_long: bool,
    digest: String,
    tool: String,
    version: u32,
    agent: String,
    connection: String,
    description: String,
    diff: Option<String>,
    reason: String,
    sites: Vec<String>,
    can_stand: bool,
    waiting: bool,
    opened: String,
    expires: String,
}

/// Where a no is taken back.
struct Denied {
    agent: String,
    command: String,
}

/// A person's answer to one ask.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    #[serde(default)]
    form: String,
    answer: String,
    #[serde(default)]
    passphrase: String,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let asks = console.engine.asks().await?;
    let (open, settled): (Vec<_>, Vec<_>) = asks.iter().partition(|ask| ask.state == "open");
    let now_ms = console.engine.now();
    let rows = |asks: Vec<&AskView>| asks.into_iter().map(|ask| row(ask, now_ms)).collect();
    let proposals = waiting(&console).await?;
    let page = ListPage { frame, open: rows(open), settled: rows(settled), proposals };
    Ok(render(StatusCode::OK, &page))
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let ask = console.engine.ask(&AskId::new(id)).await?;
    page(&console, &visitor, ask, StatusCode::OK, None).await
}

pub(crate) async fn decide(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
    Form(decision): Form<Decision>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    visitor.check_form(&decision.form)?;
    let id = AskId::new(id);
    if decision.answer == "dismiss" {
        let dismissed = console.engine.dismiss(&visitor.proof, &id).await;
        return settled(&console, &visitor, &id, dismissed).await;
    }
    let answer = match decision.answer.as_str() {
        "standing" => Answer::Standing,
        "once" => Answer::Once,
        "deny" => Answer::Deny,
        _ => {
            return Err(EngineError::ArgumentInvalid {
                name: "answer".to_owned(),
                reason: "must be standing, once, deny or dismiss".to_owned(),
            }
            .into());
        }
    };
    let ask = console.engine.ask(&id).await?;
    // Which answers need it is the engine's rule; a passphrase that is given is
    // always checked, so a wrong one never passes unseen.
    let fresh = if decision.passphrase.is_empty() {
        None
    } else {
        let given = PersonCredential::Passphrase(decision.passphrase);
        match console.engine.prove_person(given).await {
            Ok(proof) => Some(proof),
            Err(EngineError::PersonRequired) => {
                let fault = "The passphrase is not right. Nothing was decided.".to_owned();
                return page(&console, &visitor, ask, StatusCode::FORBIDDEN, Some(fault)).await;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let proof = fresh.as_ref().unwrap_or(&visitor.proof);
    let request = DecideRequest { ask: id.clone(), answer, channel: "console".to_owned() };
    let decided = console.engine.decide(proof, request).await;
    settled(&console, &visitor, &id, decided).await
}

/// Back to the ask, with what was wrong if it was not settled.
async fn settled(
    console: &Console,
    visitor: &Visitor,
    id: &AskId,
    answered: Result<AskView, EngineError>,
) -> Result<Response, Problem> {
    match answered {
        Ok(_) => Ok(Redirect::to(&format!("/asks/{id}")).into_response()),
        Err(EngineError::PersonRequired) => {
            let ask = console.engine.ask(id).await?;
            let fault = "This answer needs your passphrase. Nothing was decided.".to_owned();
            page(console, visitor, ask, StatusCode::FORBIDDEN, Some(fault)).await
        }
        Err(EngineError::AskSettled { .. }) => {
            let ask = console.engine.ask(id).await?;
            let fault = format!(
                "This ask was already settled: {}. Your answer changed nothing.",
                state(&ask)
            );
            page(console, visitor, ask, StatusCode::CONFLICT, Some(fault)).await
        }
        Err(error @ EngineError::ArgumentInvalid { .. }) => {
            let ask = console.engine.ask(id).await?;
            let fault = Some(error.to_string());
            page(console, visitor, ask, StatusCode::BAD_REQUEST, fault).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    ask: AskView,
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, Problem> {
    let frame = Frame::of(console, visitor).await?;
    let (path, query) = split(&ask.target);
    let media_type = ask
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .map_or("", |(_, value)| value.as_str());
    let word = state(&ask);
    let denied = match ask.state.as_str() {
        "denied" => denies(console, &ask).await?,
        _ => None,
    };
    let body = ask.body.filter(|_| ask.body_bytes > 0);
    let page = AskPage {
        frame,
        fault,
        id: visible::line(ask.id.as_str()),
        open: ask.state == "open",
        state: word,
        denied,
        destroys: ask.effect == Effect::Destroy,
        method: visible::line(&ask.method),
        authority: visible::line(&ask.authority),
        path: visible::line(path),
        query: query.map(visible::line),
        query_fields: seen(decoded::pairs(query.unwrap_or(""))),
        headers: ask
            .headers
            .iter()
            .map(|(name, value)| Field { name: visible::line(name), value: visible::line(value) })
            .collect(),
        body_fields: seen(
            body.as_deref().map_or(Vec::new(), |text| decoded::body(media_type, text)),
        ),
        body_long: body.as_ref().is_some_and(|text| text.len() > BODY_GLANCE_MAX),
        body: body.as_deref().map(visible::lines),
        body_bytes: ask.body_bytes,
        digest: ask.digest,
        tool: visible::line(&ask.tool),
        version: ask.version,
        agent: visible::line(&ask.agent_name),
        connection: visible::line(&ask.connection_slug),
        description: visible::lines(&ask.description),
        reason: visible::line(&ask.reason),
        diff: ask.diff.as_deref().map(visible::lines),
        sites: ask.call_sites.iter().map(site).collect(),
        can_stand: ask.can_stand,
        waiting: ask.waiting_run.is_some(),
        opened: civil::time(ask.opened_ms),
        expires: civil::time(ask.expires_ms),
    };
    Ok(render(status, &page))
}

/// The proposals that wait.
pub(super) async fn waiting(console: &Console) -> Result<Vec<Wanted>, Problem> {
    let proposals = console.engine.proposals().await?;
    let waits = |one: &&ProposalView| one.state == ProposalState::Open;
    Ok(proposals.iter().filter(waits).map(wanted).collect())
}

fn wanted(proposal: &ProposalView) -> Wanted {
    let what = match &proposal.wants {
        Wants::Connection { vendor, hosts, .. } => {
            let host = hosts.first().map_or("", |host| host.name.as_str());
            format!("a connection to {vendor} at {host}")
        }
        Wants::Credential { connection, .. } => format!("the credential of {}", connection.slug),
        Wants::Permission { permission: Permission::ReadPages { host }, .. } => {
            format!("to read pages of {host}")
        }
        Wants::Permission { permission: Permission::MakeTools { .. }, connection } => {
            let slug = connection.as_ref().map_or("", |found| found.slug.as_str());
            format!("to have tools made against {slug}")
        }
    };
    Wanted {
        path: super::handoff::path(proposal),
        agent: visible::line(&proposal.agent_name),
        what: visible::line(&what),
        until: civil::time(proposal.expires_ms),
    }
}

fn row(ask: &AskView, now_ms: i64) -> Row {
    Row {
        id: visible::line(ask.id.as_str()),
        state: state(ask),
        excerpt: visible::line(&ask.excerpt),
        age: civil::age(now_ms.saturating_sub(ask.opened_ms)),
        method: visible::line(&ask.method),
        authority: visible::line(&ask.authority),
        path: visible::line(split(&ask.target).0),
        tool: visible::line(&ask.tool),
        agent: visible::line(&ask.agent_name),
        opened: civil::time(ask.opened_ms),
    }
}

fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

fn seen(fields: Vec<Field>) -> Vec<Field> {
    let seen = |field: Field| Field {
        name: visible::line(&field.name),
        value: visible::line(&field.value),
    };
    fields.into_iter().map(seen).collect()
}

/// One call site, as a person reads it.
pub(crate) fn site(site: &CallSite) -> String {
    let method = match &site.method {
        MethodPattern::Exactly(method) => method.as_str(),
        MethodPattern::Any => "any method but DELETE",
    };
    let path = match &site.path {
        PathPattern::Template(template) => template.replace("{}", "‹value›"),
        PathPattern::Any => "any path".to_owned(),
    };
    let host = site.host.as_deref().map(|label| format!(" on host {label}")).unwrap_or_default();
    visible::line(&format!("{method} {path}{host}"))
}

/// The no an ask was answered with, while it stands.
async fn denies(console: &Console, ask: &AskView) -> Result<Option<Denied>, Problem> {
    let stands = |one: &StandingAnswer| {
        one.answer == Answer::Deny && one.agent == ask.agent && one.tool == ask.tool
    };
    let (agent, halves) = (&ask.agent_name, ask.tool.replacen("__", " ", 1));
    Ok(console.engine.standing_answers().await?.iter().any(stands).then(|| Denied {
        agent: ask.agent.to_string(),
        command: visible::line(&format!("cambium approvals withdraw {agent} {halves}")),
    }))
}

fn state(ask: &AskView) -> &'static str {
    match (ask.state.as_str(), ask.once) {
        ("open", _) => "waiting for you",
        ("allowed_standing", _) => "allowed from now on",
        ("allowed_once", Some("used")) => "allowed once, used",
        ("allowed_once", Some("unused")) => "allowed once, not used yet",
        ("allowed_once", Some("ended")) => "allowed once, ended without a use",
        ("allowed_once", _) => "allowed once",
        ("denied", _) => "denied",
        ("expired", _) => "expired without an answer",
        ("superseded", _) => "replaced by a newer ask",
        ("dismissed", _) => "put aside, neither allowed nor denied",
        _ => "unknown",
    }
}
