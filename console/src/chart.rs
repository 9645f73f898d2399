//! Calls and how long each took, as bars: drawn by the server, in attributes
//! only, so that the policy needs no inline style. What the bars show is said
//! in words, too.

use crate::civil::duration;
use cambium_engine::port::RunRow;

/// Calls drawn, the newest at the right.
const BARS: usize = 40;
/// Ends that the statistics count as no error, either.
const NO_ERROR: [&str; 5] = ["ok", "dry_run", "awaiting_approval", "ask_dismissed", "tool_denied"];
/// Across one bar and the gap after it, pixels.
const STEP: u32 = 4;
const HEIGHT: u64 = 24;

/// A small chart.
pub(crate) struct Chart {
    pub(crate) says: String,
    pub(crate) width: u32,
    pub(crate) bars: Vec<Bar>,
}

/// One call.
pub(crate) struct Bar {
    pub(crate) x: u32,
    pub(crate) y: u64,
    pub(crate) height: u64,
    /// It ended as an error.
    pub(crate) failed: bool,
}

/// Of runs, newest first; those under way are left out. `None` without any.
pub(crate) fn chart<'a>(runs: impl Iterator<Item = &'a RunRow>) -> Option<Chart> {
    let ended = runs.filter_map(|run| {
        let took = run.ended_ms?.saturating_sub(run.begun_ms).max(0).unsigned_abs();
        Some((took, !run.outcome.as_deref().is_some_and(|outcome| NO_ERROR.contains(&outcome))))
    });
    let mut calls: Vec<(u64, bool)> = ended.take(BARS).collect();
    calls.reverse();
    let shortest = calls.iter().map(|(took, _)| *took).min()?;
    let longest = calls.iter().map(|(took, _)| *took).max()?;
    let failed = calls.iter().filter(|(_, failed)| *failed).count();
    let says = format!(
        "last calls: {}, the shortest {}, the longest {}, errors: {failed}",
        calls.len(),
        duration(shortest),
        duration(longest),
    );
    let mut x = 0;
    let bars = calls.into_iter().map(|(took, failed)| {
        let height = (took.saturating_mul(HEIGHT) / longest.max(1)).clamp(1, HEIGHT);
        let bar = Bar { x, y: HEIGHT - height, height, failed };
        x += STEP;
        bar
    });
    let bars = bars.collect();
    Some(Chart { says, width: x, bars })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use cambium_engine::{AgentId, ToolName};
    use cambium_proxy::{ConnectionId, ContentHash, PersonId, RunId};

    fn run(took: Option<i64>, outcome: &str) -> RunRow {
        RunRow {
            id: RunId::new("r"),
            person: PersonId::new("p"),
            agent: AgentId::new("a"),
            tool: ToolName::new("acme", "pay").unwrap(),
            number: 1,
            version: ContentHash([0; 32]),
            connection: ConnectionId::new("c"),
            dry_run: false,
            detached: false,
            node: "n".into(),
            call_key: None,
            begun_ms: 1_000,
            outcome: took.map(|_| outcome.to_owned()),
            ended_ms: took.map(|took| 1_000 + took),
            evidence: None,
        }
    }

    #[test]
    fn the_newest_call_is_the_last_bar_and_the_longest_the_highest() {
        let runs = [run(None, ""), run(Some(0), "timeout"), run(Some(240), "ok")];
        let chart = chart(runs.iter()).unwrap();
        let bars: Vec<_> = chart.bars.iter().map(|b| (b.x, b.y, b.height, b.failed)).collect();
        assert_eq!(bars, [(0, 0, 24, false), (4, 23, 1, true)]);
        assert_eq!(chart.says, "last calls: 2, the shortest 0 ms, the longest 240 ms, errors: 1");
        // A clock that was set back, and more than there is room for.
        let many: Vec<RunRow> = (0..100).map(|n| run(Some(-n), "ok")).collect();
        assert_eq!(super::chart(many.iter()).unwrap().bars.len(), BARS);
        assert!(super::chart([run(None, "")].iter()).is_none());
    }
}
