//! One tool: what a version calls, its source, what changed from another
//! version, and a dry run from the page, in which reads reach the vendor and
//! nothing else leaves.

use super::agents::slip;
use super::asks::site;
use super::toolbox::kind;
use super::{Frame, render};
use crate::Console;
use crate::colour::{self, Piece};
use crate::error::Problem;
use crate::form::Fields;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use cambium_engine::{CallRequest, EngineError, Live, ToolName, ToolSource};
use cambium_proxy::AgentId;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Versions listed, newest first.
const VERSIONS: usize = 100;
/// Characters of a dry run's answer that are shown.
const ANSWER_CHARS: usize = 64_000;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Wanted {
    version: Option<u32>,
    from: Option<u32>,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    fault: Option<String>,
    tool: String,
    version: u32,
    current: u32,
    versions: Vec<Listed>,
    kind: &'static str,
    description: String,
    hash: String,
    sites: Vec<String>,
    source: Vec<Piece>,
    published: String,
    from: Option<u32>,
    diff: Vec<Line>,
    agents: Vec<(String, String, bool)>,
    input: String,
    answer: Option<String>,
}

struct Listed {
    number: u32,
    published: String,
    kind: &'static str,
}

/// A line of a difference.
struct Line {
    class: &'static str,
    text: String,
}

/// A dry run that was asked for: its input as typed, and its answer.
struct Tried {
    agent: String,
    input: String,
    answer: Option<String>,
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(tool): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let tool = ToolName::parse(&tool)?;
    page(&console, &visitor, &tool, &wanted, StatusCode::OK, None, None).await
}

pub(crate) async fn try_it(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(tool): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let fields = Fields::read(&body)?;
    visitor.check_form(fields.text("form"))?;
    let tool = ToolName::parse(&tool)?;
    let mut tried = Tried {
        agent: fields.text("agent").to_owned(),
        input: fields.text("input").to_owned(),
        answer: None,
    };
    let (status, fault) = match dry_run(&console, &visitor, &tool, &tried).await {
        Ok(answer) => {
            tried.answer = Some(answer);
            (StatusCode::OK, None)
        }
        Err(error) => (StatusCode::BAD_REQUEST, Some(slip(error)?)),
    };
    page(&console, &visitor, &tool, &Wanted::default(), status, fault, Some(tried)).await
}

async fn dry_run(
    console: &Console,
    visitor: &Visitor,
    tool: &ToolName,
    tried: &Tried,
) -> Result<String, EngineError> {
    let input = serde_json::from_str::<Value>(&tried.input).ok().filter(Value::is_object);
    let input = input.ok_or_else(|| EngineError::ArgumentInvalid {
        name: "input".to_owned(),
        reason: "must be a JSON object".to_owned(),
    })?;
    let agent = AgentId::new(tried.agent.clone());
    let caller = console.engine.stand_in(&visitor.proof, &agent).await?;
    let request = CallRequest {
        tool: tool.clone(),
        input,
        dry_run: true,
        detached: false,
        timeout_seconds: None,
    };
    // Ends with the request: whoever closes the page has no use for it.
    let gone = CancellationToken::new();
    let _ends = gone.clone().drop_guard();
    let envelope = console.engine.call(&caller, request, Live::new(gone)).await;
    let text = serde_json::to_string_pretty(&envelope).unwrap_or_default();
    Ok(text.chars().take(ANSWER_CHARS).collect())
}

async fn page(
    console: &Console,
    visitor: &Visitor,
    tool: &ToolName,
    wanted: &Wanted,
    status: StatusCode,
    fault: Option<String>,
    tried: Option<Tried>,
) -> Result<Response, Problem> {
    let engine = &console.engine;
    let frame = Frame::of(console, visitor).await?;
    let found = engine.read_tool_source(tool, wanted.version).await?;
    let mut versions = versions(console, tool).await?;
    versions.reverse();
    versions.truncate(VERSIONS);
    let diff = match wanted.from {
        Some(from) => lines(&engine.version_diff(tool, from, found.version).await?),
        None => Vec::new(),
    };
    let example = |found: &ToolSource| {
        let required = found.input_schema["required"].as_array().is_some_and(|all| !all.is_empty());
        if required { "{\n}" } else { "{}" }.to_owned()
    };
    let chosen = tried.as_ref().map(|tried| tried.agent.clone()).unwrap_or_default();
    let agents = engine.agents().await?;
    let agents = agents.iter().map(|agent| {
        let id = visible::line(agent.id.as_str());
        let is = id == chosen;
        (id, visible::line(&agent.name), is)
    });
    let page = ToolPage {
        frame,
        fault,
        tool: visible::line(&found.tool),
        version: found.version,
        current: found.current,
        versions,
        kind: kind(found.hints),
        description: visible::lines(&found.description),
        hash: visible::line(&found.hash),
        sites: found.call_sites.iter().map(site).collect(),
        source: colour::pieces(&visible::lines(&found.source)),
        published: civil::time(found.published_ms),
        from: wanted.from,
        diff,
        agents: agents.collect(),
        input: tried.as_ref().map_or_else(|| example(&found), |tried| visible::lines(&tried.input)),
        answer: tried.and_then(|tried| tried.answer).map(|answer| visible::lines(&answer)),
    };
    Ok(render(status, &page))
}

/// Every version there is, oldest first: numbers have no gaps.
async fn versions(console: &Console, tool: &ToolName) -> Result<Vec<Listed>, Problem> {
    let mut versions = Vec::new();
    for number in 1.. {
        match console.engine.read_tool_source(tool, Some(number)).await {
            Ok(found) => versions.push(Listed {
                number,
                published: civil::time(found.published_ms),
                kind: kind(found.hints),
            }),
            Err(EngineError::VersionNotFound { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(versions)
}

fn lines(diff: &str) -> Vec<Line> {
    let class = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(_) | None => "same",
    };
    diff.lines().map(|line| Line { class: class(line), text: visible::line(line) }).collect()
}
