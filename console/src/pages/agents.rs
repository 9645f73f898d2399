//! The agents, and for one of them its working set as its harness sees it and
//! the history of how it came to be.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use cambium_engine::{Agent, MoveCause};
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "agents.html")]
struct ListPage {
    frame: Frame,
    agents: Vec<Row>,
}

struct Row {
    id: String,
    name: String,
    cap: u32,
    idle_days: u32,
    paused: bool,
    created: String,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    agent: Row,
    set: Vec<Promoted>,
    history: Vec<Move>,
}

struct Promoted {
    tool: String,
    by: &'static str,
    promoted: String,
    used: String,
}

struct Move {
    tool: String,
    went: &'static str,
    cause: &'static str,
    at: String,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agents = console.engine.agents().await?.iter().map(row).collect();
    Ok(render(StatusCode::OK, &ListPage { frame, agents }))
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agent = console.engine.agent(&id).await?;
    let set = console.engine.working_set(&agent.id).await?;
    let history = console.engine.history(&agent.id).await?;
    let set = set
        .iter()
        .map(|entry| Promoted {
            tool: visible::line(&entry.tool.to_string()),
            by: promoter(entry.promoted_by),
            promoted: civil::time(entry.promoted_ms),
            used: entry.last_used_ms.map_or_else(|| "never".to_owned(), civil::time),
        })
        .collect();
    let history = history
        .iter()
        .map(|entry| Move {
            tool: visible::line(&entry.tool.to_string()),
            went: if entry.promoted { "in" } else { "out" },
            cause: cause(entry.cause),
            at: civil::time(entry.at_ms),
        })
        .collect();
    Ok(render(StatusCode::OK, &AgentPage { frame, agent: row(&agent), set, history }))
}

fn row(agent: &Agent) -> Row {
    Row {
        id: visible::line(agent.id.as_str()),
        name: visible::line(&agent.name),
        cap: agent.cap,
        idle_days: agent.idle_days,
        paused: agent.paused,
        created: civil::time(agent.created_ms),
    }
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
        MoveCause::Publish => "published by the agent",
        MoveCause::Person => "you moved it",
        MoveCause::Idle => "unused past the idle window",
        MoveCause::Cap => "over the working-set cap",
        MoveCause::Revoke => "its connection was revoked",
        MoveCause::Reconnect => "its connection came back",
    }
}
