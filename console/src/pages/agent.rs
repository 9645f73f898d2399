//! One agent: its working set as its harness sees it, with who promoted what,
//! the last use and when each tool will leave; the history of how it came to
//! be; what stands for it; and what a person can change of all that.

use super::agents::{Row, row, slip, token_page, whole};
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::form::Fields;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use cambium_engine::port::Permission;
use cambium_engine::{Agent, EngineError, MoveCause, SweepPlan, ToolName};
use cambium_proxy::Answer;
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    fault: Option<String>,
    agent: Row,
    set: Vec<Promoted>,
    in_flight: bool,
    stands: Vec<Stands>,
    /// What was allowed beside tools.
    allowed: Vec<Allowed>,
    history: Vec<Move>,
}

struct Promoted {
    tool: String,
    by: &'static str,
    promoted: String,
    used: String,
    leaves: String,
}

struct Allowed {
    /// In words.
    what: String,
    /// The field of its form, and the value.
    field: &'static str,
    value: String,
}

struct Stands {
    tool: String,
    answer: &'static str,
    /// The one request a *once* is for, its ask, and the first of its body.
    request: Option<String>,
    ask: String,
    excerpt: String,
    connection: String,
    since: String,
}

struct Move {
    tool: String,
    went: &'static str,
    cause: &'static str,
    at: String,
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let agent = console.engine.agent(&id).await?;
    page(&console, &visitor, &agent, StatusCode::OK, None).await
}

pub(crate) async fn change(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let fields = Fields::read(&body)?;
    visitor.check_form(fields.text("form"))?;
    let agent = console.engine.agent(&id).await?;
    let done = if fields.says("do", "rotate") {
        let rotated = console.engine.rotate_token(&visitor.proof, &agent.id).await;
        match rotated {
            Ok(token) => return token_page(&console, &visitor, &agent, token, false).await,
            Err(error) => Err(error),
        }
    } else {
        carry_out(&console, &visitor, &agent, &fields).await
    };
    match done {
        Ok(()) => Ok(Redirect::to(&format!("/agents/{}", agent.id)).into_response()),
        Err(error) => {
            let fault = Some(slip(error)?);
            page(&console, &visitor, &agent, StatusCode::BAD_REQUEST, fault).await
        }
    }
}

async fn carry_out(
    console: &Console,
    visitor: &Visitor,
    agent: &Agent,
    fields: &Fields,
) -> Result<(), EngineError> {
    let (engine, proof) = (&console.engine, &visitor.proof);
    match fields.text("do") {
        "edit" => {
            let name = Some(fields.text("name").to_owned());
            let cap = whole("cap", fields.text("cap"), "a whole number from 1 to 500")?;
            let rule = "a whole number from 1 to 3650";
            let idle = whole("idle window", fields.text("idle_days"), rule)?;
            let paused = Some(fields.says("paused", "yes"));
            let set = engine.set_agent(proof, &agent.id, name, Some(cap), Some(idle), paused);
            set.await.map(drop)
        }
        "withdraw" => {
            engine.withdraw(proof, &agent.id, &ToolName::parse(fields.text("tool"))?).await
        }
        "forget" => {
            let host = fields.text("host").to_owned();
            let permission = match host.is_empty() {
                false => Permission::ReadPages { host },
                true => Permission::MakeTools { connection: fields.text("connection").to_owned() },
            };
            engine.withdraw_permission(proof, &agent.id, &permission).await
        }
        "demote" => {
            let caller = engine.stand_in(proof, &agent.id).await?;
            engine.demote(&caller, &ToolName::parse(fields.text("tool"))?).await.map(drop)
        }
        "promote" => {
            let caller = engine.stand_in(proof, &agent.id).await?;
            engine.promote(&caller, &ToolName::parse(fields.text("tool"))?).await.map(drop)
        }
        _ => Err(EngineError::ArgumentInvalid {
            name: "do".to_owned(),
            reason: "must be edit, rotate, withdraw, forget, promote or demote".to_owned(),
        }),
    }
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    agent: &Agent,
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, Problem> {
    let engine = &console.engine;
    let frame = Frame::of(console, visitor).await?;
    let plans = engine.sweep_plan().await?;
    let plan = plans.iter().find(|plan| plan.agent == agent.id);
    let set = engine.working_set(&agent.id).await?;
    let set = set.iter().map(|entry| Promoted {
        tool: visible::line(&entry.tool.to_string()),
        by: promoter(entry.promoted_by),
        promoted: civil::time(entry.promoted_ms),
        used: entry.last_used_ms.map_or_else(|| "never".to_owned(), civil::time),
        leaves: leaves(plan, &entry.tool),
    });
    let stands = engine.standing_answers().await?;
    let stands = stands.iter().filter(|one| one.agent == agent.id).map(|one| Stands {
        tool: visible::line(&one.tool),
        answer: match one.answer {
            Answer::Standing => "allowed from now on",
            Answer::Once => "allowed once, not used yet:",
            Answer::Deny => "denied",
            Answer::Withdrawn => "withdrawn",
        },
        request: one.request.as_deref().map(visible::line),
        ask: visible::line(one.ask.as_str()),
        excerpt: visible::line(one.excerpt.as_deref().unwrap_or_default()),
        connection: visible::line(&one.connection_slug),
        since: civil::time(one.at_ms),
    });
    let mut allowed = Vec::new();
    for permission in engine.permissions(&agent.id).await? {
        allowed.push(match permission {
            Permission::ReadPages { host } => {
                let what = visible::line(&format!("to read pages of {host}"));
                Allowed { what, field: "host", value: host }
            }
            Permission::MakeTools { connection } => {
                let slug = engine.connection(&connection).await?.slug;
                let what = visible::line(&format!("to have tools made against {slug}"));
                Allowed { what, field: "connection", value: connection }
            }
        });
    }
    let history = engine.history(&agent.id).await?;
    let history = history.iter().map(|entry| Move {
        tool: visible::line(&entry.tool.to_string()),
        went: if entry.promoted { "in" } else { "out" },
        cause: cause(entry.cause),
        at: civil::time(entry.at_ms),
    });
    let page = AgentPage {
        frame,
        fault,
        agent: row(agent),
        set: set.collect(),
        in_flight: plan.is_some_and(|plan| plan.in_flight),
        stands: stands.collect(),
        allowed,
        history: history.collect(),
    };
    Ok(render(status, &page))
}

/// The forecast: when the rule takes a tool if nothing happens, and why.
fn leaves(plan: Option<&SweepPlan>, tool: &ToolName) -> String {
    let leaving = plan.and_then(|plan| plan.leaving.iter().find(|one| one.tool == *tool));
    leaving.map_or_else(String::new, |one| match one.now {
        true => format!("at the next sweep: {}", cause(one.cause)),
        false => format!("after {}: {}", civil::time(one.after_ms), cause(one.cause)),
    })
}

/// The *Promoted by* column.
fn promoter(cause: MoveCause) -> &'static str {
    match cause {
        MoveCause::Agent => "the agent",
        MoveCause::Publish => "a publish",
        MoveCause::Person => "you",
        MoveCause::Idle | MoveCause::Cap | MoveCause::Revoke | MoveCause::Reconnect => "the rule",
    }
}

fn cause(cause: MoveCause) -> &'static str {
    match cause {
        MoveCause::Agent => "the agent asked",
        MoveCause::Publish => "published for the agent",
        MoveCause::Person => "you moved it",
        MoveCause::Idle => "unused past the idle window",
        MoveCause::Cap => "over the working-set cap",
        MoveCause::Revoke => "its connection was revoked",
        MoveCause::Reconnect => "its connection came back",
    }
}
