//! The toolbox: every tool's current version.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use cambium_engine::Version;
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

fn row(version: &Version) -> Row {
    Row {
        tool: visible::line(&version.tool.to_string()),
        version: version.number,
        kind: kind(version.hints),
        description: visible::line(&version.description),
        published: civil::time(version.published_ms),
    }
}

pub(super) fn kind(hints: Hints) -> &'static str {
    match (hints.read_only, hints.destructive) {
        (true, _) => "reads",
        (false, true) => "deletes",
        (false, false) => "writes",
    }
}
