//! `execute__<connection>`: one request, written by the agent, without a tool.
//! Reads go; every write asks for itself and no answer stands. It is a run like
//! any other, only that instead of a module one request goes to its session.

use crate::canonical::{canonical, digest};
use crate::changes::Topic;
use crate::command::Caller;
use crate::desk::RunDesk;
use crate::id::new_id;
use crate::port::RunRow;
use crate::running::Running;
use crate::{
    Engine, EngineError, Envelope, ExecuteRequest, Job, Live, Outcome, RunLimits, RunReport,
    Sandbox, StageTimes, ToolName, ToolResult,
};
use cambium_proxy::{
    Admission, BoxFuture, CallSite, Connection, ConnectionStatus, ContentHash, Hints,
    MethodPattern, OutboundRequest, PathPattern, Refusal, RunId, Session, SessionSpec,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The reserved vendor.
pub(crate) const VENDOR: &str = "execute";
/// A request's own time; a vendor has 30 s of it.
const WALL: Duration = Duration::from_secs(60);
/// It may write and delete: the policy asks about each.
const HINTS: Hints = Hints { read_only: false, destructive: true };

impl Engine {
    /// The connections an agent may send single requests over, by slug.
    pub async fn executes(&self, caller: &Caller) -> Result<Vec<Connection>, EngineError> {
        let mut usable = Vec::new();
        for connection in self.connections().await? {
            if connection.status == ConnectionStatus::Connected
                && self.usable(&connection, Some(&caller.agent.id)).await.is_ok()
            {
                usable.push(connection);
            }
        }
        Ok(usable)
    }

    /// Sends one request.
    pub async fn execute(&self, caller: &Caller, request: ExecuteRequest, live: Live) -> Envelope {
        let mut run = None;
        let key = live.call_id.as_deref().map(|call_id| call_key(&request, call_id));
        let send = |key| self.send_one(caller, request, live, key, &mut run);
        self.once(caller, key, send).await.unwrap_or_else(|error| {
            let mut envelope = Envelope::from(&error);
            envelope.run = run.map(|run: RunId| run.to_string());
            envelope
        })
    }

    async fn send_one(
        &self,
        caller: &Caller,
        request: ExecuteRequest,
        live: Live,
        call_key: Option<String>,
        run: &mut Option<RunId>,
    ) -> Result<Envelope, EngineError> {
        caller.active()?;
        let connection = self.connection_for(&caller.agent.id, &request.connection).await?;
        let dry_run = request.dry_run;
        let loose = Loose {
            connection,
            content: content(),
            hints: HINTS,
            dry_run,
            detached: false,
            wall: WALL,
            budget: self.parts.settings.wait_budget,
            requests: None,
            call_key,
            sandbox: Arc::new(OneRequest(outbound(request)?)),
        };
        self.run_loose(caller, loose, live, run).await
    }

    /// Carries out a run that no version stands behind.
    pub(crate) async fn run_loose(
        &self,
        caller: &Caller,
        loose: Loose,
        live: Live,
        run: &mut Option<RunId>,
    ) -> Result<Envelope, EngineError> {
        let came_us = self.parts.clock.ticks_us();
        let Loose { connection, content, hints, dry_run, detached, wall, budget, .. } = loose;
        let agent = &caller.agent.id;
        let tool = ToolName::new(VENDOR, &connection.slug)?;
        let guard = self.flights.begin(agent).await?;
        let known = self.agent_by_id(agent).await?;
        if known.paused {
            return Err(EngineError::AgentPaused(known.name));
        }
        let begun_ms = self.now();
        let row = RunRow {
            id: RunId::new(new_id(begun_ms)?),
            person: self.person.clone(),
            agent: agent.clone(),
            tool: tool.clone(),
            number: 0,
            version: content,
            connection: connection.id.clone(),
            dry_run,
            detached,
            node: self.parts.node.clone(),
            call_key: loose.call_key,
            begun_ms,
            outcome: None,
            ended_ms: None,
            evidence: None,
        };
        self.parts.store.begin_run(&row).await?;
        self.changed(Topic::Runs);
        *run = Some(row.id.clone());
        let admitted = async {
            self.usable(&connection, Some(agent)).await?;
            let question = Admission {
                person: &self.person,
                agent,
                tool: &tool.to_string(),
                version: &content,
                connection: &connection,
                hints,
                dry_run,
                each: true,
            };
            Ok::<_, EngineError>(self.parts.proxy.admit(question).await?)
        };
        let grant = match admitted.await {
            Ok(grant) => grant,
            Err(error) => {
                self.end_unrun(&row.id, &error).await;
                return Err(error);
            }
        };
        let desk = RunDesk::new(
            self.approvals.clone(),
            self.flights.clone(),
            tool.clone(),
            0,
            budget,
            live.held.clone(),
        );
        let spec = SessionSpec {
            run: row.id.clone(),
            person: row.person.clone(),
            agent: row.agent.clone(),
            tool: tool.to_string(),
            version: content,
            sites: sites(&connection),
            connection: connection.clone(),
            hints,
            grant,
        };
        let session = self.parts.proxy.open_for(spec, Arc::new(desk), loose.requests);
        let running = Running {
            parts: self.parts.clone(),
            sandbox: loose.sandbox,
            counts: false,
            owed: self.owed.clone(),
            guard,
            agent_name: known.name,
            job: job(&row, &connection, wall),
            row,
            connection,
            session,
            backstop: wall + budget,
            notes: Vec::new(),
            came_us,
        };
        self.run(running, detached, live).await
    }
}

/// A run that no version stands behind: what it is, and what sends its requests
/// where a sandbox would run a module.
pub(crate) struct Loose {
    pub(crate) connection: Connection,
    /// Stands for the content of a version.
    pub(crate) content: ContentHash,
    pub(crate) hints: Hints,
    pub(crate) dry_run: bool,
    pub(crate) detached: bool,
    pub(crate) wall: Duration,
    /// How long a write waits for a person.
    pub(crate) budget: Duration,
    /// Requests it may make, where the usual number is not meant.
    pub(crate) requests: Option<usize>,
    /// What makes two calls the same one.
    pub(crate) call_key: Option<String>,
    pub(crate) sandbox: Arc<dyn Sandbox>,
}

/// Sends its request where a sandbox would run a module.
struct OneRequest(OutboundRequest);

impl OneRequest {
    async fn send(&self, session: &Session, most: usize) -> Result<ToolResult, Refusal> {
        let reply = session.send(self.0.clone()).await?;
        let content_type = reply.headers.iter().find(|(name, _)| name == "content-type");
        let content_type =
            content_type.map(|(_, value)| value.to_ascii_lowercase()).unwrap_or_default();
        let (status, mut from, mut body) = (reply.status, reply.body, Vec::new());
        while let Some(chunk) = from.chunk().await {
            body.extend_from_slice(&chunk?);
            if body.len() > most {
                return Err(Refusal::ResponseTooLarge(format!(
                    "the answer is longer than the {most} bytes a result may have"
                )));
            }
        }
        Ok(ToolResult::Response { status, content_type, body: body.into() })
    }
}

impl Sandbox for OneRequest {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let outcome = tokio::select! {
                biased;
                sent = self.send(&session, job.limits.result_bytes) => match sent {
                    Ok(result) => Outcome::Ok(result),
                    Err(refusal) => {
                        Outcome::ToolError { message: refusal.to_string(), stack: String::new() }
                    }
                },
                () = session.ended() => Outcome::PolicyDenied,
            };
            let times = StageTimes::default();
            RunReport { outcome, logs: Vec::new(), logs_dropped: 0, times, evidence: None }
        })
    }
}

/// What makes two requests of one agent the same call.
fn call_key(request: &ExecuteRequest, call_id: &str) -> String {
    let body = request.body.as_ref().map(canonical).unwrap_or_default();
    let fields = json!([request.host, request.query, request.headers]);
    let key = digest(&[
        b"execute",
        request.connection.as_bytes(),
        request.method.as_bytes(),
        request.path.as_bytes(),
        canonical(&fields).as_bytes(),
        body.as_bytes(),
        &[u8::from(request.dry_run)],
        call_id.as_bytes(),
    ]);
    ContentHash(key).to_string()
}

/// What stands for the content of a version: there is no code.
fn content() -> ContentHash {
    ContentHash(digest(&[b"execute"]))
}

/// Any path of any host of the connection, by any method.
fn sites(connection: &Connection) -> Vec<CallSite> {
    let methods = [MethodPattern::Any, MethodPattern::Exactly("DELETE".into())];
    let of = |label: &str| {
        let host = Some(label.to_owned());
        methods.clone().map(|method| CallSite {
            method,
            host: host.clone(),
            path: PathPattern::Any,
        })
    };
    connection.hosts.iter().flat_map(|host| of(&host.label)).collect()
}

fn outbound(request: ExecuteRequest) -> Result<OutboundRequest, EngineError> {
    let mut target = request.path;
    for (at, (name, value)) in request.query.iter().enumerate() {
        target.push(if at == 0 && !target.contains('?') { '?' } else { '&' });
        encode(&mut target, name);
        target.push('=');
        encode(&mut target, value);
    }
    let mut headers: Vec<(String, Vec<u8>)> =
        request.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let body = match request.body {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.into_bytes(),
        Some(json) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("content-type".into(), b"application/json".to_vec()));
            }
            json.to_string().into_bytes()
        }
    };
    let method = request.method.to_ascii_uppercase();
    if matches!(method.as_str(), "GET" | "HEAD") && !body.is_empty() {
        return Err(EngineError::ArgumentInvalid {
            name: "body".into(),
            reason: format!("{method} takes no body"),
        });
    }
    let body = body.into();
    Ok(OutboundRequest { method, host: request.host, target, headers, body, sdk: false })
}

fn encode(target: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            let _ = write!(target, "%{byte:02X}");
        }
    }
}

fn job(row: &RunRow, connection: &Connection, wall: Duration) -> Job {
    Job {
        run: row.id.clone(),
        agent: row.agent.clone(),
        version: row.version,
        tool: row.tool.to_string(),
        javascript: "".into(),
        modules: Vec::new(),
        component: None,
        input: "{}".into(),
        connection_slug: connection.slug.clone(),
        vendor: connection.vendor.clone(),
        display_name: connection.display_name.clone(),
        proxy_base: String::new(),
        limits: RunLimits { wall, ..RunLimits::default() },
    }
}
