//! acquire: a tool made for an agent that lacks it. A job is stored before it is
//! answered and taken up again after a restart; two authors may carry it out,
//! the connection's pinned document (`acquire/document.rs`) and a model a person
//! configured (`acquire/model.rs`). Whoever wrote it, a module passes the check
//! and a dry run (`acquire/trial.rs`) before it is published.

mod document;
mod model;
mod trial;

use crate::command::Caller;
use crate::id::new_id;
use crate::port::{AuthorJobRow, JobStatus, Permission};
use crate::{Agent, Engine, EngineError, Envelope, MoveCause, Published};
use cambium_proxy::{AgentId, BoxFuture, Connection, StoreFault};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Longest goal, characters: a wish, not a document.
const GOAL_CHARS: usize = 2_000;
/// Longest hints, bytes of JSON.
const HINTS_BYTES: usize = 16 * 1024;
/// Jobs of one agent that have not ended.
const OPEN_MAX: usize = 4;
/// Jobs carried out at once: each may hold a document of tens of megabytes.
const AT_ONCE: usize = 2;
/// From a job's turn to its end, whoever carries it out.
const JOB_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// How long a question for a job's next line waits; clients give up at 60 s.
const STATUS_WAIT: Duration = Duration::from_secs(25);
/// Longest line of progress, characters.
const LINE_CHARS: usize = 500;

/// What one answer of a model was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its text.
    pub text: String,
    /// What question and answer cost together.
    pub tokens: u64,
}

/// One turn of the conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The model said it; else we did.
    pub by_model: bool,
    /// The text.
    pub text: String,
}

/// A model a person configured. It is given schemas and status codes, never a
/// value of a vendor's and never a credential.
pub trait Author: Send + Sync {
    /// Asks for the next turn. The error is a sentence without a key in it.
    fn ask<'a>(&'a self, system: &'a str, turns: &'a [Turn])
    -> BoxFuture<'a, Result<Said, String>>;
}

/// What a model may use for one job, over every restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorBudget {
    /// Answers asked for.
    pub attempts: u32,
    /// Tokens of all questions and answers.
    pub tokens: u64,
}

/// Who may write a tool besides the connection's document.
#[derive(Clone)]
pub struct Authors {
    /// A model, if a person configured one.
    pub model: Option<Arc<dyn Author>>,
    /// What it may use.
    pub budget: AuthorBudget,
}

impl Default for Authors {
    fn default() -> Self {
        Self { model: None, budget: AuthorBudget { attempts: 6, tokens: 60_000 } }
    }
}

/// What an agent says besides its goal; all of it is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Hints {
    /// An operation of the document, by id or as `GET /path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// An input whose values exist at the vendor, for the dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example_input: Option<Value>,
    /// Anything else, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A job as its agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its id.
    pub job_id: String,
    /// How far it is.
    pub status: JobStatus,
    /// Lines after the one asked for, oldest first.
    pub progress: Vec<String>,
    /// What to pass as `after` to get only what follows.
    pub after: u64,
    /// How it ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ended: Option<JobEnd>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// The tool, as its publish answered.
    Tool(Value),
    /// Why there is none.
    Error(JobError),
}

/// What came of an acquire.
#[derive(Debug, Clone, PartialEq)]
pub enum Acquired {
    /// A job.
    Job(JobView),
    /// The person is asked first.
    Asked(Box<Envelope>),
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobError {
    /// Stable snake_case code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// The next step.
    pub next: String,
    /// The module that was not published, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Jobs under way here.
pub(crate) struct Authoring {
    turns: Semaphore,
    /// Changes with each line and each end.
    news: watch::Sender<()>,
    /// Ends every job at once; they are taken up at the next start.
    pub(crate) stop: CancellationToken,
}

impl Default for Authoring {
    fn default() -> Self {
        let news = watch::Sender::new(());
        Self { turns: Semaphore::new(AT_ONCE), news, stop: CancellationToken::new() }
    }
}

/// A job being carried out.
struct Work<'e> {
    engine: &'e Engine,
    row: AuthorJobRow,
    caller: Caller,
    connection: Connection,
    hints: Hints,
    /// Modules of operations that may be near the goal.
    references: Vec<String>,
}

/// Why an author has no tool.
enum Short {
    /// This author cannot do it; the next may.
    NotMine(String),
    /// Nobody can.
    Failed(JobError),
    /// The store or the sandbox failed.
    Engine(EngineError),
}

impl From<EngineError> for Short {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreFault> for Short {
    fn from(fault: StoreFault) -> Self {
        Self::Engine(fault.into())
    }
}

impl Engine {
    /// Stores a job and begins it. Answers at once. The person is asked once for
    /// each agent and connection.
    pub async fn acquire(
        &self,
        caller: &Caller,
        connection: &str,
        goal: &str,
        hints: Hints,
    ) -> Result<Acquired, EngineError> {
        caller.active()?;
        let connection = self.connection_for(&caller.agent.id, connection).await?;
        self.usable(&connection, Some(&caller.agent.id)).await?;
        let wrong = |name: &str, reason: String| {
            Err(EngineError::ArgumentInvalid { name: name.into(), reason })
        };
        let length = goal.trim().chars().count();
        if length == 0 || length > GOAL_CHARS {
            return wrong("goal", format!("must be 1 to {GOAL_CHARS} characters, not {length}"));
        }
        let hints = match hints == Hints::default() {
            true => None,
            false => serde_json::to_string(&hints).ok(),
        };
        if hints.as_ref().is_some_and(|hints| hints.len() > HINTS_BYTES) {
            return wrong("hints", format!("must be at most {HINTS_BYTES} bytes"));
        }
        let document = self.parts.store.document(&connection.id).await?;
        if document.is_none() && self.parts.authors.model.is_none() {
            return Err(EngineError::AcquireUnconfigured(connection.slug));
        }
        let made = Permission::MakeTools { connection: connection.id.to_string() };
        if !self.is_allowed(&caller.agent.id, &made).await? {
            let asked = self.ask_permission(caller, made, Some(&connection)).await?;
            return Ok(Acquired::Asked(Box::new(asked)));
        }
        let open = self.parts.store.open_author_jobs().await?;
        if open.iter().filter(|job| job.agent == caller.agent.id).count() >= OPEN_MAX {
            return Err(EngineError::Busy);
        }
        let now = self.now();
        let row = AuthorJobRow {
            id: new_id(now)?,
            agent: caller.agent.id.clone(),
            connection: connection.id,
            goal: goal.trim().to_owned(),
            hints,
            status: JobStatus::Queued,
            attempts: 0,
            tokens: 0,
            result: None,
            created_ms: now,
        };
        self.parts.store.insert_author_job(&row).await?;
        let id = row.id.clone();
        self.begin_job(row);
        Ok(Acquired::Job(JobView {
            job_id: id,
            status: JobStatus::Queued,
            progress: Vec::new(),
            after: 0,
            ended: None,
        }))
    }

    /// How far a job of this agent is, with the lines after a number. Whoever
    /// names one waits for the next line or the end, so that nobody has to ask
    /// again and again.
    pub async fn acquire_status(
        &self,
        caller: &Caller,
        job: &str,
        after: Option<u64>,
    ) -> Result<JobView, EngineError> {
        let mut news = self.authoring.news.subscribe();
        let wait = tokio::time::sleep(STATUS_WAIT);
        tokio::pin!(wait);
        loop {
            let view = self.job_view(caller, job, after.unwrap_or(0)).await?;
            if after.is_none() || !view.progress.is_empty() || view.ended.is_some() {
                return Ok(view);
            }
            tokio::select! {
                _ = news.changed() => {}
                () = &mut wait => return Ok(view),
            }
        }
    }

    async fn job_view(
        &self,
        caller: &Caller,
        job: &str,
        after: u64,
    ) -> Result<JobView, EngineError> {
        let row = self.parts.store.author_job(job).await?;
        // Another agent's job is not there, and nothing tells it from one that is not.
        let row = row.filter(|row| row.agent == caller.agent.id);
        let row = row.ok_or_else(|| EngineError::JobNotFound(job.chars().take(64).collect()))?;
        let progress = self.parts.store.author_lines(job, after).await?;
        Ok(JobView {
            job_id: row.id,
            status: row.status,
            after: after + progress.len() as u64,
            progress,
            ended: row.result.and_then(|result| serde_json::from_str(&result).ok()),
        })
    }

    /// Takes up the jobs that had not ended when the last process did.
    pub(crate) async fn resume_jobs(&self) -> Result<(), EngineError> {
        for row in self.parts.store.open_author_jobs().await? {
            if row.status == JobStatus::Running {
                self.line(&row, "taken up again after a restart").await;
            }
            self.begin_job(row);
        }
        Ok(())
    }

    fn begin_job(&self, row: AuthorJobRow) {
        let Some(engine) = self.me.upgrade() else { return };
        let stop = self.authoring.stop.clone();
        self.tasks.spawn(async move {
            let carried = async {
                let Ok(_turn) = engine.authoring.turns.acquire().await else { return };
                engine.carry_job(row).await;
            };
            // Stopped between two steps, it stays as it is and is taken up later.
            stop.run_until_cancelled(carried).await;
        });
    }

    async fn carry_job(&self, mut row: AuthorJobRow) {
        row.status = JobStatus::Running;
        if let Err(fault) = self.parts.store.update_author_job(&row).await {
            return tracing::warn!(%fault, job = row.id, "a job could not begin");
        }
        let authored = tokio::time::timeout(JOB_DEADLINE, self.author(&mut row)).await;
        let ended = match authored {
            Ok(Ok(published)) => Ok(published),
            Ok(Err(Short::NotMine(message))) => Err(failed("no_author_fits", message, OWN_PEN)),
            Ok(Err(Short::Failed(error))) => Err(error),
            Ok(Err(Short::Engine(error))) => {
                Err(failed(error.code(), error.to_string(), &error.next()))
            }
            Err(_) => Err(failed(
                "job_deadline",
                format!("it took longer than {} minutes", JOB_DEADLINE.as_secs() / 60),
                "ask for something smaller, or write the module yourself with publish_tool",
            )),
        };
        let end = match ended {
            Ok(published) => {
                self.line(&row, &format!("published {}", published.tool)).await;
                row.status = JobStatus::Succeeded;
                JobEnd::Tool(serde_json::to_value(published).unwrap_or_default())
            }
            Err(error) => {
                self.line(&row, &format!("failed: {}", error.message)).await;
                row.status = JobStatus::Failed;
                JobEnd::Error(error)
            }
        };
        row.result = serde_json::to_string(&end).ok();
        if let Err(fault) = self.parts.store.update_author_job(&row).await {
            // It is taken up at the next start, and a publish of the same is a no-op.
            tracing::error!(%fault, job = row.id, "how a job ended could not be stored");
        }
        self.authoring.news.send_replace(());
    }

    async fn author(&self, row: &mut AuthorJobRow) -> Result<Published, Short> {
        let (caller, connection) = self.may_author(row).await?;
        let hints = row.hints.as_deref().and_then(|hints| serde_json::from_str(hints).ok());
        let hints = hints.unwrap_or_default();
        let mut work = Work {
            engine: self,
            row: row.clone(),
            caller,
            connection,
            hints,
            references: Vec::new(),
        };
        let published = work.by_document().await;
        let published = match (published, &self.parts.authors.model) {
            (Err(Short::NotMine(reason)), Some(model)) => {
                work.line(&format!("the document has no tool for it: {reason}")).await;
                work.by_model(model.as_ref()).await
            }
            (published, _) => published,
        };
        (row.attempts, row.tokens) = (work.row.attempts, work.row.tokens);
        published
    }

    /// Whether a job may go on, as things are now: a person may have paused its
    /// agent, or taken the permission or the connection back since it began.
    async fn may_author(&self, row: &AuthorJobRow) -> Result<(Caller, Connection), Short> {
        let caller = caller_of(self.agent_by_id(&row.agent).await?);
        caller.active()?;
        let connection = self.connection(row.connection.as_str()).await?;
        self.usable(&connection, Some(&row.agent)).await?;
        let made = Permission::MakeTools { connection: connection.id.to_string() };
        if !self.is_allowed(&row.agent, &made).await? {
            let said = format!("a person took back that tools are made for `{}`", connection.slug);
            let next = "acquire again: the person is asked anew";
            return Err(Short::Failed(failed("permission_withdrawn", said, next)));
        }
        Ok((caller, connection))
    }

    /// Adds a line of progress. One that cannot be stored stops nothing.
    async fn line(&self, row: &AuthorJobRow, text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(LINE_CHARS).collect();
        if let Err(fault) = self.parts.store.add_author_line(row, &text, self.now()).await {
            tracing::warn!(%fault, job = row.id, "a line of progress was lost");
        }
        self.authoring.news.send_replace(());
    }
}

impl Work<'_> {
    async fn line(&self, text: &str) {
        self.engine.line(&self.row, text).await;
    }

    /// The agent whose job it is.
    fn agent(&self) -> &AgentId {
        &self.row.agent
    }
}

/// What an agent can always do itself.
const OWN_PEN: &str =
    "give other hints, or write the module yourself: check_tool, then publish_tool";

fn failed(code: &str, message: impl Into<String>, next: &str) -> JobError {
    JobError { code: code.into(), message: message.into(), next: next.into(), source: None }
}

/// An agent in whose name its own job goes on.
fn caller_of(agent: Agent) -> Caller {
    Caller { agent: Arc::new(agent), cause: MoveCause::Agent }
}
