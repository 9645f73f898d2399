//! The newest runs: which tool, for whom, how each ended and how long it took.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use cambium_engine::Agent;
use cambium_engine::port::{RunRow, ToolRuns};
use http::{HeaderMap, StatusCode, Uri};

/// Runs shown.
const SHOWN: u32 = 100;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    runs: Vec<Call>,
    tools: Vec<Tool>,
    /// The longest of the means, milliseconds: the end of each bar.
    longest: u64,
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
    mean_ms: u64,
    mean: String,
    longest: String,
    last: String,
}

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let agents = console.engine.agents().await?;
    let runs = console.engine.runs(SHOWN).await?;
    let runs = runs.iter().map(|run| call(run, &agents)).collect();
    let tools: Vec<Tool> = console.engine.statistics().await?.iter().map(tool).collect();
    let longest = tools.iter().map(|tool| tool.mean_ms).max().unwrap_or_default().max(1);
    Ok(render(StatusCode::OK, &RunsPage { frame, runs, tools, longest }))
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

fn tool(of: &ToolRuns) -> Tool {
    Tool {
        name: visible::line(&of.tool),
        calls: of.calls,
        errors: of.errors,
        mean_ms: of.mean_ms,
        mean: duration(of.mean_ms),
        longest: duration(of.longest_ms),
        last: civil::time(of.last_ms),
    }
}

/// `480 ms`, `12.5 s`, `3 min`.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_duration_reads_at_a_glance() {
        for (ms, said) in [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (180_000, "3 min")] {
            assert_eq!(super::duration(ms), said);
        }
    }
}
