//! Runs and whole results. A run has a row from its admission on, so that a
//! node which dies leaves runs that can be ended as `lost`.

use super::Answering;
use crate::ToolName;
use cambium_proxy::{AgentId, ConnectionId, ContentHash, PersonId, RunId};

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// Whose toolbox.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The pinned version's number.
    pub number: u32,
    /// Its content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// Reads only, writes previewed.
    pub dry_run: bool,
    /// Answered at once.
    pub detached: bool,
    /// Which node runs it.
    pub node: String,
    /// Digest of tool, input and the client's own call id, when it gave one.
    pub call_key: Option<String>,
    /// Milliseconds UTC.
    pub begun_ms: i64,
    /// `ok`, an error code, `lost`; absent while it lasts.
    pub outcome: Option<String>,
    /// Milliseconds UTC.
    pub ended_ms: Option<i64>,
    /// What was seen of its process's end, as JSON; for a person.
    pub evidence: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Which run.
    pub id: RunId,
    /// `ok` or an error code.
    pub outcome: String,
    /// It started executing: sets the agent's last use of the tool (to this
    /// end's time, never back), whether the tool is promoted or not.
    pub used: bool,
    /// Milliseconds UTC.
    pub ended_ms: i64,
    /// What was seen of its process's end, as JSON.
    pub evidence: Option<String>,
}

/// A result kept whole because the answer was cut, or to be collected later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// Of which run.
    pub run: RunId,
    /// Whose.
    pub agent: AgentId,
    /// Its mime type: `application/json` or `text/plain`.
    pub mime_type: String,
    /// The whole text.
    pub text: String,
    /// Milliseconds UTC.
    pub stored_ms: i64,
}

/// What became of a tool's runs, all agents together.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRuns {
    /// The tool.
    pub tool: String,
    /// Runs that ended, dry ones included.
    pub calls: u64,
    /// Of those, the ones that ended as an error.
    pub errors: u64,
    /// Mean from begin to end, milliseconds, waiting for a person included.
    pub mean_ms: u64,
    /// The longest, milliseconds.
    pub longest_ms: u64,
    /// When the last one began, milliseconds UTC.
    pub last_ms: i64,
}

/// Runs a statistic looks at.
pub const STATISTICS_RUNS: u32 = 10_000;

/// Keeps runs and results.
pub trait RunStore: Send + Sync {
    /// Writes the row of a run that begins. Need not be durable.
    fn begin_run<'a>(&'a self, run: &'a RunRow) -> Answering<'a, ()>;
    /// Ends a run that lasts; no error when it was ended before. With `used`
    /// spans runs and working sets.
    fn end_run<'a>(&'a self, end: &'a RunEnd) -> Answering<'a, ()>;
    /// Ends every run of a node that has no outcome as `lost`; answers how many.
    fn end_lost<'a>(&'a self, node: &'a str, now_ms: i64) -> Answering<'a, u64>;
    /// How many runs of this agent last, on any node.
    fn lasting_runs<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, u32>;
    /// A person's newest runs, newest first, at most so many.
    fn newest_runs<'a>(&'a self, person: &'a PersonId, most: u32) -> Answering<'a, Vec<RunRow>>;
    /// One run.
    fn run<'a>(&'a self, id: &'a RunId) -> Answering<'a, Option<RunRow>>;
    /// The run of this agent that carries a call's key, if one does.
    fn run_of_call<'a>(
        &'a self,
        agent: &'a AgentId,
        call_key: &'a str,
    ) -> Answering<'a, Option<RunRow>>;
    /// Runs that ended, of the newest [`STATISTICS_RUNS`], by tool.
    fn statistics<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<ToolRuns>>;
    /// Keeps a whole result.
    fn put_result<'a>(&'a self, result: &'a StoredResult) -> Answering<'a, ()>;
    /// A whole result of this agent's run.
    fn result<'a>(
        &'a self,
        agent: &'a AgentId,
        run: &'a RunId,
    ) -> Answering<'a, Option<StoredResult>>;
}
