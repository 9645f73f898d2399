//! Jobs of acquire: what an agent asked to be made, how far it came, and what
//! became of it. A job outlives the process; its progress only grows.

use super::Answering;
use cambium_proxy::{AgentId, ConnectionId};
use serde::{Deserialize, Serialize};

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Not begun.
    Queued,
    /// Under way, here or in the process before this one.
    Running,
    /// Its tool is published.
    Succeeded,
    /// It ended without one.
    Failed,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorJobRow {
    /// UUIDv7.
    pub id: String,
    /// Whose it is.
    pub agent: AgentId,
    /// What it is made against.
    pub connection: ConnectionId,
    /// The agent's words.
    pub goal: String,
    /// JSON of what the agent said besides, if anything.
    pub hints: Option<String>,
    /// How far it is.
    pub status: JobStatus,
    /// Tries of a model so far, over every start.
    pub attempts: u32,
    /// Tokens of a model so far.
    pub tokens: u64,
    /// JSON of how it ended.
    pub result: Option<String>,
    /// Milliseconds UTC.
    pub created_ms: i64,
}

/// Keeps jobs of acquire.
pub trait AuthorStore: Send + Sync {
    /// Stores a new job.
    fn insert_author_job<'a>(&'a self, job: &'a AuthorJobRow) -> Answering<'a, ()>;
    /// One job.
    fn author_job<'a>(&'a self, id: &'a str) -> Answering<'a, Option<AuthorJobRow>>;
    /// Jobs that have not ended, oldest first.
    fn open_author_jobs(&self) -> Answering<'_, Vec<AuthorJobRow>>;
    /// Stores status, attempts, tokens and result. Conflict when it has ended.
    fn update_author_job<'a>(&'a self, job: &'a AuthorJobRow) -> Answering<'a, ()>;
    /// Appends a line of progress.
    fn add_author_line<'a>(
        &'a self,
        job: &'a AuthorJobRow,
        text: &'a str,
        now_ms: i64,
    ) -> Answering<'a, ()>;
    /// Lines after a number, in order; they are numbered from 1 without gaps.
    fn author_lines<'a>(&'a self, id: &'a str, after: u64) -> Answering<'a, Vec<String>>;
}
