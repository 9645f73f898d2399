//! The toolbox: every tool's current version, and one of them with its source
//! and what it calls.

use super::asks::site;
use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use cambium_engine::{ToolName, Version};
use cambium_proxy::Hints;
use http::{HeaderMap, StatusCode, Uri};

#[derive(Template)]
#[template(path = "toolbox.html")]
struct ListPage {
    frame: Frame,
    tools: Vec<Row>,
}

struct Row {
    tool: String,
    version: u32,
    kind: &'static str,
    description: String,
    published: String,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    tool: String,
    version: u32,
    kind: &'static str,
    description: String,
    hash: String,
    sites: Vec<String>,
    source: String,
    published: String,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let tools = console.engine.tools().await?.iter().map(row).collect();
    Ok(render(StatusCode::OK, &ListPage { frame, tools }))
}

pub(crate) async fn show(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Path(tool): Path<String>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let found = console.engine.read_tool_source(&ToolName::parse(&tool)?, None).await?;
    let page = ToolPage {
        frame,
        tool: visible::line(&found.tool),
        version: found.version,
        kind: kind(found.hints),
        description: visible::lines(&found.description),
        hash: visible::line(&found.hash),
        sites: found.call_sites.iter().map(site).collect(),
        source: visible::lines(&found.source),
        published: civil::time(found.published_ms),
    };
    Ok(render(StatusCode::OK, &page))
}

fn row(version: &Version) -> Row {
    Row {
        tool: visible::line(&version.tool.to_string()),
        version: version.number,
        kind: kind(version.hints),
        description: visible::line(&version.description),
        published: civil::time(version.published_ms),
    }
}

fn kind(hints: Hints) -> &'static str {
    match (hints.read_only, hints.destructive) {
        (true, _) => "reads",
        (false, true) => "deletes",
        (false, false) => "writes",
    }
}
