//! The first run, step by step: the passphrase that is set by now, an agent, the
//! lines for its harness, whether the harness has called, and from there on to a
//! connection and a first tool. It needs no script: a page is looked at again,
//! and says where one stands.

use super::asks::{Wanted, waiting};
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use cambium_engine::Connection;
use cambium_proxy::ConnectionStatus;
use http::{HeaderMap, StatusCode, Uri};
use std::cmp::Reverse;

/// What a harness is told, by its name.
pub(super) struct Harness {
    pub(super) name: &'static str,
    /// Where the lines go.
    pub(super) at: &'static str,
    pub(super) lines: String,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage {
    frame: Frame,
    agents: Vec<Step>,
    /// A harness has.
    called: bool,
    ahead: Ahead,
}

/// What comes after the harness.
struct Ahead {
    /// What agents ask for meanwhile.
    proposals: Vec<Wanted>,
    /// The slugs of those that work.
    connections: Vec<String>,
    /// Newest first.
    tools: Vec<String>,
}

/// One agent, and whether its harness has called.
struct Step {
    id: String,
    name: String,
    seen: Option<String>,
}

#[derive(Template)]
#[template(path = "connected.html")]
struct ConnectedPage {
    frame: Frame,
    step: Step,
    harnesses: Vec<Harness>,
    ahead: Ahead,
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agents = console.engine.agents().await?;
    let agents: Vec<Step> = agents.iter().map(|agent| step(&console, agent)).collect();
    let called = agents.iter().any(|agent| agent.seen.is_some());
    let ahead = ahead(&console).await?;
    Ok(render(StatusCode::OK, &StartPage { frame, agents, called, ahead }))
}

pub(crate) async fn connected(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agent = console.engine.agent(&id).await?;
    let harnesses = harnesses(&console);
    let step = step(&console, &agent);
    let ahead = ahead(&console).await?;
    Ok(render(StatusCode::OK, &ConnectedPage { frame, step, harnesses, ahead }))
}

async fn ahead(console: &Console) -> Result<Ahead, Problem> {
    let connections = console.engine.connections().await?;
    let works = |one: &&Connection| one.status == ConnectionStatus::Connected;
    let mut tools = console.engine.tools().await?;
    tools.sort_by_key(|version| Reverse(version.published_ms));
    Ok(Ahead {
        proposals: waiting(console).await?,
        connections: connections.iter().filter(works).map(|one| visible::line(&one.slug)).collect(),
        tools: tools.iter().map(|version| visible::line(&version.tool.to_string())).collect(),
    })
}

fn step(console: &Console, agent: &cambium_engine::Agent) -> Step {
    Step {
        id: visible::line(agent.id.as_str()),
        name: visible::line(&agent.name),
        seen: console.engine.last_seen(&agent.id).map(civil::time),
    }
}

/// The lines for each harness; the token is in `CAMBIUM_TOKEN`, never in them.
pub(super) fn harnesses(console: &Console) -> Vec<Harness> {
    let base = console.settings.origins.first().map_or("", String::as_str);
    let url = format!("{base}/mcp");
    let claude = format!(
        "claude mcp add --transport http cambium {url} --header \"Authorization: Bearer $CAMBIUM_TOKEN\""
    );
    let codex =
        format!("[mcp_servers.cambium]\nurl = \"{url}\"\nbearer_token_env_var = \"CAMBIUM_TOKEN\"");
    let cursor = format!(
        "{{\"mcpServers\": {{\"cambium\": {{\"url\": \"{url}\",\n  \"headers\": \
         {{\"Authorization\": \"Bearer ${{env:CAMBIUM_TOKEN}}\"}}}}}}}}"
    );
    vec![
        Harness { name: "Claude Code", at: "in a terminal", lines: claude },
        Harness { name: "Codex", at: "in ~/.codex/config.toml", lines: codex },
        Harness { name: "Cursor", at: "in ~/.cursor/mcp.json", lines: cursor },
    ]
}
