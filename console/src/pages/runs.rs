//! The newest runs: which tool, for whom, how each ended and how long it took,
//! and the last calls of each tool as bars.

use super::{Frame, render};
use crate::Console;
use crate::chart::{Chart, chart};
use crate::civil::duration;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use cambium_engine::Agent;
use cambium_engine::port::{RunRow, ToolRuns};
use http::{HeaderMap, StatusCode, Uri};

/// Runs the charts are drawn from.
const READ: u32 = 500;
/// Runs shown one by one.
const SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    runs: Vec<Call>,
    tools: Vec<Tool>,
}

/// One run, as a person reads it.
pub(super) struct Call {
    pub(super) run: String,
    pub(super) tool: String,
    pub(super) version: u32,
    pub(super) agent: String,
    pub(super) begun: String,
    pub(super) outcome: String,
    pub(super) took: String,
}

struct Tool {
    name: String,
    calls: u64,
    errors: u64,
    mean: String,
    longest: String,
    last: String,
    chart: Option<Chart>,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agents = console.engine.agents().await?;
    let runs = console.engine.runs(READ).await?;
    let tools = console.engine.statistics().await?.iter().map(|of| tool(of, &runs)).collect();
    let runs = runs.iter().take(SHOWN).map(|run| call(run, &agents)).collect();
    Ok(render(StatusCode::OK, &RunsPage { frame, runs, tools }))
}

pub(super) fn call(run: &RunRow, agents: &[Agent]) -> Call {
    let agent = agents.iter().find(|agent| agent.id == run.agent);
    let outcome = run.outcome.as_deref().unwrap_or("running");
    let took = run.ended_ms.map(|ended| ended.saturating_sub(run.begun_ms));
    Call {
        run: visible::line(run.id.as_str()),
        tool: visible::line(&run.tool.to_string()),
        version: run.number,
        agent: agent.map(|agent| visible::line(&agent.name)).unwrap_or_default(),
        begun: civil::time(run.begun_ms),
        outcome: match run.dry_run {
            true => format!("{} (dry run)", visible::line(outcome)),
            false => visible::line(outcome),
        },
        took: took.map(|ms| duration(ms.unsigned_abs())).unwrap_or_default(),
    }
}

fn tool(of: &ToolRuns, runs: &[RunRow]) -> Tool {
    let its = runs.iter().filter(|run| run.tool.to_string() == of.tool);
    Tool {
        name: visible::line(&of.tool),
        calls: of.calls,
        errors: of.errors,
        mean: duration(of.mean_ms),
        longest: duration(of.longest_ms),
        last: civil::time(of.last_ms),
        chart: chart(its),
    }
}
