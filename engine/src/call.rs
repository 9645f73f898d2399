//! The spine: one call of a tool as one straight function. find, validate,
//! begin, admit, open, run, record. A first-class call, run_tool and a dry run
//! all come through here. The run itself is a task the engine owns
//! (`running.rs`), so that a caller who goes away never leaves a row open.

use crate::canonical::{canonical, digest};
use crate::changes::Topic;
use crate::command::Caller;
use crate::desk::RunDesk;
use crate::id::new_id;
use crate::jobs::Entered;
use crate::port::{RunEnd, RunRow, StoredResult};
use crate::process;
use crate::running::Running;
use crate::toolbox::Loaded;
use crate::{CallRequest, Engine, EngineError, Envelope, Job, Live, RunLimits, Status};
use cambium_proxy::{Admission, Connection, ContentHash, Grant, Refusal, RunId, SessionSpec};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Seconds a waited run may take, and what it gets unasked.
const WAITED_SECONDS: (u64, u64) = (60, 300);
/// The same for a detached one.
const DETACHED_SECONDS: (u64, u64) = (600, 3_600);
/// How long a detached run waits for a person: its worker is kept all the time.
const DETACHED_WAIT: Duration = Duration::from_secs(60 * 60);

impl Engine {
    /// Calls a tool, promoted or not.
    pub async fn call(&self, caller: &Caller, request: CallRequest, live: Live) -> Envelope {
        let mut run = None;
        let answered = async {
            caller.active()?;
            let (_, loaded) = self.known(&request.tool).await?;
            let key = live.call_id.as_deref().map(|call_id| call_key(&request, call_id));
            let spine = |key| self.spine(caller, loaded, &request, live, key, &mut run);
            self.once(caller, key, spine).await
        };
        let answered = answered.await;
        answered_or(answered, run)
    }

    /// Dry-runs a version that is not published.
    pub(crate) async fn try_draft(
        &self,
        caller: &Caller,
        draft: Arc<Loaded>,
        input: Value,
        live: Live,
    ) -> Envelope {
        let request = CallRequest {
            tool: draft.version.tool.clone(),
            input,
            dry_run: true,
            detached: false,
            timeout_seconds: None,
        };
        let mut run = None;
        let answered = self.spine(caller, draft, &request, live, None, &mut run).await;
        answered_or(answered, run)
    }

    /// A call with a name of the client's own runs once, however often it comes.
    pub(crate) async fn once<Run>(
        &self,
        caller: &Caller,
        key: Option<String>,
        run: impl FnOnce(Option<String>) -> Run,
    ) -> Result<Envelope, EngineError>
    where
        Run: Future<Output = Result<Envelope, EngineError>>,
    {
        let Some(key) = key else { return run(None).await };
        let agent = &caller.agent.id;
        let place = match self.replays.enter(agent, &key) {
            Entered::First(place) => place,
            Entered::Again(mut answer) => {
                let again = answer.wait_for(Option::is_some).await.ok();
                let again = again.and_then(|envelope| envelope.as_deref().cloned());
                // Its first call was dropped without an answer: the store knows.
                return match again {
                    Some(envelope) => Ok(repeated(envelope)),
                    None => Err(EngineError::Busy),
                };
            }
        };
        if let Some(row) = self.parts.store.run_of_call(agent, &key).await?
            && let Some(envelope) = self.ran_before(row).await?
        {
            return Ok(envelope);
        }
        let envelope = run(Some(key)).await?;
        place.answered(&envelope);
        Ok(envelope)
    }

    /// What is told of a call this node no longer holds the answer of; `None`
    /// when nothing was sent, so that it may run.
    async fn ran_before(&self, row: RunRow) -> Result<Option<Envelope>, EngineError> {
        let id = &row.id;
        let outcome = row.outcome.as_deref().unwrap_or("lost");
        if row.dry_run || NOT_SENT.contains(&outcome) {
            return Ok(None);
        }
        if outcome != "ok" {
            return Err(Refusal::OutcomeUnknown(format!(
                "this call was made before as run {id}, which ended as {outcome}; whether it wrote \
                 is not known"
            ))
            .into());
        }
        let mut envelope = Envelope::of(Status::Ok);
        envelope.run = Some(id.to_string());
        envelope.notes.push(match self.parts.store.result(&row.agent, id).await? {
            Some(_) => format!("this call ran before; its result is read_file result://{id}"),
            None => "this call ran before and was not sent again; its result is not kept".into(),
        });
        Ok(Some(envelope))
    }

    /// The whole text of a result that was cut, for the agent whose run it was.
    pub async fn result(&self, caller: &Caller, run: &str) -> Result<StoredResult, EngineError> {
        let kept = self.parts.store.result(&caller.agent.id, &RunId::new(run)).await?;
        kept.ok_or_else(|| EngineError::RunNotFound(run.chars().take(64).collect()))
    }

    async fn spine(
        &self,
        caller: &Caller,
        loaded: Arc<Loaded>,
        request: &CallRequest,
        live: Live,
        call_key: Option<String>,
        run: &mut Option<RunId>,
    ) -> Result<Envelope, EngineError> {
        // First, so that a node that has enough to do says so at little cost.
        let came_us = self.parts.clock.ticks_us();
        let guard = self.flights.begin(&caller.agent.id).await?;
        let input = self
            .validators
            .check(loaded.version.hash, &loaded.listed.input_schema, &request.input)
            .await?;
        let pace = Pace::of(request);

        // Read anew: who paused the agent since the caller was known has ended
        // every run that had begun by then, and this one had not.
        let agent = self.agent_by_id(&caller.agent.id).await?;
        if agent.paused {
            return Err(EngineError::AgentPaused(agent.name));
        }
        let row = self.begin(caller, &loaded, request.dry_run, pace.detached, call_key).await?;
        *run = Some(row.id.clone());
        let admitted = self.admit(caller, &loaded, request.dry_run).await;
        let Admitted { connection, grant, modules, component } = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                self.end_unrun(&row.id, &error).await;
                return Err(error);
            }
        };
        let mut job = job(&row, &loaded, &connection, modules, input, &pace);
        job.component = component;
        let budget = if pace.detached { DETACHED_WAIT } else { self.parts.settings.wait_budget };
        let desk = RunDesk::new(
            self.approvals.clone(),
            self.flights.clone(),
            loaded.version.tool.clone(),
            loaded.version.number,
            budget,
            live.held.clone(),
        );
        let spec = SessionSpec {
            run: row.id.clone(),
            person: row.person.clone(),
            agent: row.agent.clone(),
            tool: loaded.version.tool.to_string(),
            version: loaded.version.hash,
            connection: connection.clone(),
            sites: loaded.version.sites.clone(),
            hints: loaded.version.hints,
            grant,
        };
        let session = self.parts.proxy.open(spec, Arc::new(desk));
        let running = Running {
            parts: self.parts.clone(),
            sandbox: self.parts.sandbox.clone(),
            counts: true,
            owed: self.owed.clone(),
            guard,
            agent_name: agent.name,
            row,
            connection,
            session,
            job,
            backstop: pace.wall + budget,
            notes: pace.notes,
            came_us,
        };
        self.run(running, pace.detached, live).await
    }

    /// Runs in a task of its own and waits for it, unless it is detached.
    pub(crate) async fn run(
        &self,
        running: Running,
        detached: bool,
        live: Live,
    ) -> Result<Envelope, EngineError> {
        let id = running.row.id.clone();
        let cancel = self.stop_runs.child_token();
        if detached {
            let (agent, begun_ms) = (running.row.agent.clone(), running.row.begun_ms);
            let done = self.jobs.add(id.clone(), agent, begun_ms, cancel.clone());
            self.tasks.spawn(async move {
                let envelope = running.carry_out(cancel).await;
                done.send_replace(Some(Arc::new(envelope)));
            });
            return Ok(process::running(&id));
        }
        // Dropping this future is the caller going away, too.
        let _gone = cancel.clone().drop_guard();
        let mut task = self.tasks.spawn(running.carry_out(cancel.clone()));
        let ended = tokio::select! {
            ended = &mut task => ended,
            () = live.cancel.cancelled() => {
                cancel.cancel();
                task.await
            }
        };
        ended.map_err(|_| EngineError::SandboxUnavailable("the run ended without an answer".into()))
    }

    async fn begin(
        &self,
        caller: &Caller,
        loaded: &Loaded,
        dry_run: bool,
        detached: bool,
        call_key: Option<String>,
    ) -> Result<RunRow, EngineError> {
        let begun_ms = self.now();
        let row = RunRow {
            id: RunId::new(new_id(begun_ms)?),
            person: self.person.clone(),
            agent: caller.agent.id.clone(),
            tool: loaded.version.tool.clone(),
            number: loaded.version.number,
            version: loaded.version.hash,
            connection: loaded.version.connection.clone(),
            dry_run,
            detached,
            node: self.parts.node.clone(),
            call_key,
            begun_ms,
            outcome: None,
            ended_ms: None,
            evidence: None,
        };
        self.parts.store.begin_run(&row).await?;
        self.changed(Topic::Runs);
        Ok(row)
    }

    async fn admit(
        &self,
        caller: &Caller,
        loaded: &Loaded,
        dry_run: bool,
    ) -> Result<Admitted, EngineError> {
        let version = &loaded.version;
        let connection = self.connection(version.connection.as_str()).await?;
        self.usable(&connection, Some(&caller.agent.id)).await?;
        let each = self.every_time(&caller.agent.id, &version.tool).await?;
        let question = Admission {
            person: &self.person,
            agent: &caller.agent.id,
            tool: &version.tool.to_string(),
            version: &version.hash,
            connection: &connection,
            hints: version.hints,
            dry_run,
            each,
        };
        let grant = self.parts.proxy.admit(question).await?;
        let modules = self.modules(version, &connection).await?;
        let component = self.component(version).await?;
        Ok(Admitted { connection, grant, modules, component })
    }

    /// Ends a run that never started executing: not a use.
    pub(crate) async fn end_unrun(&self, run: &RunId, error: &EngineError) {
        let end = RunEnd {
            id: run.clone(),
            outcome: error.code().to_owned(),
            used: false,
            ended_ms: self.now(),
            evidence: None,
        };
        self.owed.record(self.parts.store.as_ref(), end).await;
    }
}

/// Outcomes of runs that let nothing go: the same call may run again.
const NOT_SENT: [&str; 10] = [
    "ask_dismissed",
    "awaiting_approval",
    "busy",
    "connection_not_in_scope",
    "connection_revoked",
    "credential_missing",
    "rate_limited",
    "sandbox_unavailable",
    "sdk_not_listed",
    "tool_denied",
];

fn answered_or(answered: Result<Envelope, EngineError>, run: Option<RunId>) -> Envelope {
    answered.unwrap_or_else(|error| {
        let mut envelope = Envelope::from(&error);
        envelope.run = run.map(|run| run.to_string());
        envelope
    })
}

fn repeated(mut envelope: Envelope) -> Envelope {
    envelope.notes.push("this is the answer to the same call, which was made before".into());
    envelope
}

/// What makes two calls of one agent the same call.
fn call_key(request: &CallRequest, call_id: &str) -> String {
    let key = digest(&[
        request.tool.to_string().as_bytes(),
        canonical(&request.input).as_bytes(),
        &[u8::from(request.dry_run), u8::from(request.detached)],
        call_id.as_bytes(),
    ]);
    ContentHash(key).to_string()
}

/// A call that may run, and what it runs with.
struct Admitted {
    connection: Connection,
    grant: Grant,
    modules: Vec<(String, Arc<str>)>,
    component: Option<(ContentHash, Arc<[u8]>)>,
}

/// How long a call may take and whether it is waited for.
struct Pace {
    detached: bool,
    wall: Duration,
    notes: Vec<String>,
}

impl Pace {
    fn of(request: &CallRequest) -> Self {
        let mut notes = Vec::new();
        // A dry run is there to be read.
        let detached = request.detached && !request.dry_run;
        if request.detached && request.dry_run {
            notes.push("a dry run is waited for; detached was left out".into());
        }
        let (usual, most) = if detached { DETACHED_SECONDS } else { WAITED_SECONDS };
        let asked = request.timeout_seconds.unwrap_or(usual);
        let seconds = asked.clamp(1, most);
        if seconds != asked {
            notes
                .push(format!("timeoutSeconds {asked} is outside 1 to {most}; {seconds} was used"));
        }
        Self { detached, wall: Duration::from_secs(seconds), notes }
    }
}

fn job(
    row: &RunRow,
    loaded: &Loaded,
    connection: &Connection,
    modules: Vec<(String, Arc<str>)>,
    input: Arc<str>,
    pace: &Pace,
) -> Job {
    let proxy_base = connection.hosts.first().map_or_else(String::new, |host| match host.port {
        443 => format!("https://{}", host.name),
        port => format!("https://{}:{port}", host.name),
    });
    Job {
        run: row.id.clone(),
        agent: row.agent.clone(),
        version: loaded.version.hash,
        tool: loaded.version.tool.to_string(),
        javascript: loaded.javascript.clone(),
        modules,
        component: None,
        input,
        connection_slug: connection.slug.clone(),
        vendor: connection.vendor.clone(),
        display_name: connection.display_name.clone(),
        proxy_base,
        limits: RunLimits { wall: pace.wall, ..RunLimits::default() },
    }
}
