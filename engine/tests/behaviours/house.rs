//! A whole engine on a real SQLite, a real vault and a real proxy. Only the
//! sandbox is not: it plays a script of requests against the real session, so
//! that what is held, sent and refused is what a module would see. The vendor's
//! port is closed; what the proxy let go is counted in its audit.

use crate::acquiring::Writer;
use crate::low_level::Puppet;
use cambium_engine::{
    Agent, AskView, Authors, CallRequest, Caller, CheckReport, Checker, DecideRequest,
    DocumentFault, Drafts, Engine, EngineError, Envelope, Event, Job, Live, LowLevelParts,
    NewAgent, NewConnection, Outcome, Parts, PersonCredential, PersonProof, PublishRequest,
    Published, Publisher, RunReport, Sandbox, Settings, StageTimes, ToolName, ToolResult, Wanted,
    check_importing, check_module, draft_document,
};
use cambium_proxy::{
    Answer, AuditEvent, AuditKind, AuditSink, BoxFuture, Clock, Connection, Exception, Host,
    KeySource, Limits, OutboundRequest, PageReach, Proxy, ProxyParts, Resolve, Scheme, Secret,
    Session, Vault,
};
use cambium_store::Store;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

const NODE: &str = "node";
/// A port nothing listens on.
const CLOSED_PORT: u16 = 1;
/// Milliseconds UTC at the start of every test.
pub(crate) const START_MS: i64 = 1_800_000_000_000;
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Time a test sets.
pub(crate) struct TestClock {
    now: AtomicI64,
    ticks: AtomicU64,
}

impl TestClock {
    pub(crate) fn advance(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }
    fn ticks_us(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }
}

struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

struct InProcess;

impl Checker for InProcess {
    fn check<'a>(
        &'a self,
        source: &'a str,
        packages: &'a [String],
    ) -> BoxFuture<'a, Result<CheckReport, String>> {
        Box::pin(async move { Ok(check_importing(source, packages)) })
    }

    fn check_all<'a>(
        &'a self,
        sources: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<CheckReport>, String>> {
        Box::pin(async move { Ok(sources.iter().map(|source| check_module(source)).collect()) })
    }

    fn draft<'a>(
        &'a self,
        document: &'a [u8],
        wanted: &'a Wanted,
    ) -> BoxFuture<'a, Result<Result<Drafts, DocumentFault>, String>> {
        Box::pin(async move { Ok(draft_document(document, wanted)) })
    }
}

/// What the scripted module does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// One request; its outcome becomes part of the result.
    Send(&'static str, &'static str, &'static str),
    /// Says that it is here, then waits for the word.
    Wait(Arc<Notify>, Arc<Notify>),
    /// Returns this.
    Return(Value),
    /// Throws this.
    Throw(&'static str),
    /// Ends so, whatever came before.
    End(Outcome),
    /// Panics, as a sandbox should not.
    Panic,
}

/// Plays scripts by tool; a tool without one sends nothing and returns `null`.
#[derive(Default)]
pub(crate) struct Scripted {
    scripts: Mutex<HashMap<String, Vec<Step>>>,
    pub(crate) ran: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    pub(crate) fn plays(&self, tool: &str, steps: impl Into<Vec<Step>>) {
        self.scripts.lock().unwrap().insert(tool.to_owned(), steps.into());
    }

    async fn play(steps: Vec<Step>, session: &Session) -> Outcome {
        let mut said = Vec::new();
        for step in steps {
            match step {
                Step::Send(method, target, body) => {
                    let request = OutboundRequest {
                        method: method.to_owned(),
                        host: None,
                        target: target.to_owned(),
                        headers: Vec::new(),
                        body: body.as_bytes().to_vec().into(),
                        sdk: false,
                    };
                    said.push(match session.send(request).await {
                        Ok(reply) => json!(reply.status),
                        Err(refusal) => json!(refusal.code()),
                    });
                }
                Step::Wait(here, word) => {
                    here.notify_one();
                    word.notified().await;
                }
                Step::Return(value) => return Outcome::Ok(ToolResult::Value(value.to_string())),
                Step::Throw(message) => {
                    let (message, stack) = (message.to_owned(), "at module:1:1".to_owned());
                    return Outcome::ToolError { message, stack };
                }
                Step::End(outcome) => return outcome,
                Step::Panic => panic!("a sandbox with a bug"),
            }
        }
        Outcome::Ok(ToolResult::Value(Value::Array(said).to_string()))
    }
}

impl Sandbox for Scripted {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            self.ran.lock().unwrap().push((job.tool.clone(), job.javascript.to_string()));
            let steps = self.scripts.lock().unwrap().get(&job.tool).cloned().unwrap_or_default();
            let outcome = tokio::select! {
                biased;
                outcome = Self::play(steps, &session) => outcome,
                () = session.ended() => Outcome::PolicyDenied,
            };
            let times = StageTimes::default();
            RunReport { outcome, logs: Vec::new(), logs_dropped: 0, times, evidence: None }
        })
    }
}

/// The engine and what it stands on.
pub(crate) struct House {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<Store>,
    pub(crate) sandbox: Arc<Scripted>,
    pub(crate) workbench: Arc<Puppet>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) clock: Arc<TestClock>,
    proxy: Arc<Proxy>,
    key: KeyFile,
    wait_budget: Duration,
}

/// The vault's key, gone with the test.
#[derive(Clone)]
struct KeyFile(Arc<KeyPath>);
struct KeyPath(std::path::PathBuf);

impl Drop for KeyPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl KeyFile {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("cambium-engine-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(Arc::new(KeyPath(path)))
    }
}

impl House {
    /// A call waits long enough for a test to answer.
    pub(crate) async fn new() -> Self {
        Self::waiting(Duration::from_secs(20)).await
    }

    /// A call waits so long for a person.
    pub(crate) async fn waiting(wait_budget: Duration) -> Self {
        let clock = Arc::new(TestClock { now: AtomicI64::new(START_MS), ticks: AtomicU64::new(0) });
        let store = Arc::new(Store::in_memory().await.unwrap());
        Self::on(NODE, store, clock, KeyFile::new(), wait_budget).await
    }

    /// The same data directory after the process died: nothing was drained.
    pub(crate) async fn restarted(&self) -> Self {
        self.restarted_waiting(self.wait_budget).await
    }

    pub(crate) async fn restarted_waiting(&self, wait_budget: Duration) -> Self {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Self::on(NODE, store, clock, self.key.clone(), wait_budget).await
    }

    /// The same database under another vault's key, on another node: a node's
    /// own audit would already refuse to start.
    pub(crate) async fn under_another_key(&self) -> Self {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Self::on("elsewhere", store, clock, KeyFile::new(), self.wait_budget).await
    }

    async fn on(
        node: &str,
        store: Arc<Store>,
        clock: Arc<TestClock>,
        key: KeyFile,
        wait_budget: Duration,
    ) -> Self {
        let vault = Arc::new(Vault::open(&KeySource::File(key.0.0.join("vault.key"))).unwrap());
        let proxy = Proxy::start(ProxyParts {
            node: node.into(),
            vault: vault.clone(),
            audit: store.clone(),
            approvals: store.clone(),
            connections: store.clone(),
            secrets: store.clone(),
            resolver: Arc::new(Loopback),
            clock: clock.clone(),
            limits: Limits::default(),
            own_addresses: Vec::new(),
        })
        .await
        .unwrap();
        let sandbox = Arc::new(Scripted::default());
        let workbench = Arc::new(Puppet::default());
        let writer = Arc::new(Writer::default());
        let engine = Engine::start(Parts {
            node: node.into(),
            store: store.clone(),
            proxy: proxy.clone(),
            vault,
            sandbox: sandbox.clone(),
            checker: Arc::new(InProcess),
            authors: Authors { model: Some(writer.clone()), ..Authors::default() },
            low_level: Some(LowLevelParts {
                workbench: workbench.clone(),
                reach: PageReach::default(),
            }),
            clock: clock.clone(),
            settings: Settings { console_url: "http://127.0.0.1:7171".into(), wait_budget },
        })
        .await
        .unwrap();
        Self { engine, store, sandbox, workbench, writer, clock, proxy, key, wait_budget }
    }

    /// A person with a code in hand.
    pub(crate) async fn person(&self) -> PersonProof {
        let code = self.engine.issue_code().await.unwrap();
        self.engine.prove_person(PersonCredential::Code(code)).await.unwrap()
    }

    /// A person at the console, who showed nothing just now.
    pub(crate) async fn console(&self) -> PersonProof {
        let token = self.engine.open_session(&self.person().await).await.unwrap();
        self.engine.session(&token).await.unwrap()
    }

    pub(crate) async fn agent(&self, name: &str) -> (Agent, Caller) {
        let new = NewAgent { name: name.into(), cap: 20, idle_days: 21 };
        let (agent, token) = self.engine.create_agent(&self.person().await, new).await.unwrap();
        let caller = self.engine.authenticate(&token).await.unwrap();
        (agent, caller)
    }

    pub(crate) async fn shop(&self) -> Connection {
        self.engine
            .create_connection(&self.person().await, shop(), Some(Secret::new(b"s3cret".to_vec())))
            .await
            .unwrap()
    }

    /// An agent and the shop's connection.
    pub(crate) async fn furnished(&self) -> (Agent, Caller) {
        self.shop().await;
        self.agent("claude").await
    }

    pub(crate) async fn publish(&self, caller: &Caller, name: &str, source: &str) -> Published {
        self.try_publish(caller, name, source).await.unwrap()
    }

    pub(crate) async fn try_publish(
        &self,
        caller: &Caller,
        name: &str,
        source: &str,
    ) -> Result<Published, EngineError> {
        let request = PublishRequest { tool: tool(name), connection: None, source: source.into() };
        self.engine.publish(&Publisher::Agent(caller.clone()), request).await
    }

    pub(crate) async fn call(&self, caller: &Caller, name: &str) -> Envelope {
        self.call_as(caller, request(name)).await
    }

    pub(crate) async fn dry_run(&self, caller: &Caller, name: &str) -> Envelope {
        self.call_as(caller, CallRequest { dry_run: true, ..request(name) }).await
    }

    pub(crate) async fn call_as(&self, caller: &Caller, request: CallRequest) -> Envelope {
        self.engine.call(caller, request, Live::new(CancellationToken::new())).await
    }

    /// A call in the background.
    pub(crate) fn calling(&self, caller: &Caller, name: &str) -> tokio::task::JoinHandle<Envelope> {
        let (engine, caller, request) = (self.engine.clone(), caller.clone(), request(name));
        tokio::spawn(async move {
            engine.call(&caller, request, Live::new(CancellationToken::new())).await
        })
    }

    /// The ask that is opened next.
    pub(crate) async fn opened(&self, events: &mut broadcast::Receiver<Event>) -> AskView {
        loop {
            if let Event::AskOpened(ask) = next(events).await {
                return self.engine.ask(&ask).await.unwrap();
            }
        }
    }

    pub(crate) async fn decide(
        &self,
        ask: &AskView,
        answer: Answer,
    ) -> Result<AskView, EngineError> {
        self.decide_as(&self.person().await, ask, answer).await
    }

    pub(crate) async fn decide_as(
        &self,
        proof: &PersonProof,
        ask: &AskView,
        answer: Answer,
    ) -> Result<AskView, EngineError> {
        let request = DecideRequest { ask: ask.id.clone(), answer, channel: "console".into() };
        self.engine.decide(proof, request).await
    }

    /// Requests of a method the proxy let go, from its audit.
    pub(crate) async fn let_go(&self, method: &str) -> usize {
        let intent = |event: &AuditEvent| event.kind == AuditKind::Intent && event.method == method;
        self.audited().await.into_iter().filter(intent).count()
    }

    /// The same once the proxy has written its last row; it sends nothing after.
    pub(crate) async fn audited_to_the_end(&self) -> Vec<AuditEvent> {
        self.proxy.stop().await;
        self.audited().await
    }

    /// What the proxy wrote down, in order.
    pub(crate) async fn audited(&self) -> Vec<AuditEvent> {
        let rows = self.store.rows(NODE, 0, 10_000).await.unwrap();
        rows.iter().map(|row| serde_json::from_str(&row.event).unwrap()).collect()
    }

    /// Names in the agent's list.
    pub(crate) async fn listed(&self, caller: &Caller) -> Vec<String> {
        let listed = self.engine.tool_list(caller).await.unwrap();
        listed.into_iter().map(|listed| listed.tool.to_string()).collect()
    }
}

pub(crate) async fn next(events: &mut broadcast::Receiver<Event>) -> Event {
    tokio::time::timeout(Duration::from_secs(20), events.recv()).await.unwrap().unwrap()
}

/// What was sent so far.
pub(crate) fn sent(events: &mut broadcast::Receiver<Event>) -> Vec<Event> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

pub(crate) fn tool(name: &str) -> ToolName {
    ToolName::new("shop", name).unwrap()
}

pub(crate) fn request(name: &str) -> CallRequest {
    CallRequest {
        tool: tool(name),
        input: json!({}),
        dry_run: false,
        detached: false,
        timeout_seconds: None,
    }
}

pub(crate) fn shop() -> NewConnection {
    NewConnection {
        slug: "shop".into(),
        vendor: "shop".into(),
        display_name: "Shop".into(),
        hosts: vec![Host {
            label: "api.shop.example".into(),
            name: "api.shop.example".into(),
            port: CLOSED_PORT,
        }],
        scheme: Scheme::Bearer,
        exceptions: vec![Exception { cidr: "127.0.0.1/32".parse().unwrap(), port: CLOSED_PORT }],
        ca_pem: None,
        overrides: cambium_proxy::Overrides::default(),
        agents: Vec::new(),
    }
}

/// A module that does what `call` says.
pub(crate) fn module(description: &str, call: &str) -> String {
    format!(
        r#"export const description = "{description}";
export const inputSchema = {{
  type: "object",
  properties: {{ n: {{ type: "integer", maximum: 3 }} }},
  additionalProperties: false,
}} as const;
export default async function (ctx: Context, input: Input) {{
  return await ctx.fetch({call});
}}
"#
    )
}

/// Reads the orders.
pub(crate) fn reads() -> String {
    module("Lists orders.", r#""/orders""#)
}

/// Creates an order.
pub(crate) fn writes() -> String {
    module("Creates an order.", r#""/orders", { method: "POST", body: { n: input.n } }"#)
}

/// Deletes an order.
pub(crate) fn destroys() -> String {
    module("Deletes an order.", r#""/orders", { method: "DELETE" }"#)
}

/// One POST, as [`writes`] would send it.
pub(crate) fn posts(body: &'static str) -> Vec<Step> {
    vec![Step::Send("POST", "/orders", body)]
}

pub(crate) fn code(envelope: &Envelope) -> &str {
    envelope.code.unwrap_or("no code")
}
