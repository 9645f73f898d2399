//! A served console on a real engine and store, and a client that speaks plain
//! HTTP to it.

use cambium_console::{Audit, Settings, router};
use cambium_engine::port::{AskReason, AskRow, AskState, AskStore, PersonStore};
use cambium_engine::{
    Authors, CheckReport, Checker, DocumentFault, Drafts, Engine, Job, NewAgent, NewConnection,
    Outcome, Parts, PersonCredential, PublishRequest, Publisher, RunReport, Sandbox, StageTimes,
    ToolName, ToolResult, Wanted, check_importing, check_module, draft_document,
};
use cambium_engine::{Command, CommandEnd, CommandFault, LowLevelParts, Readable, Workbench};
use cambium_proxy::PageReach;
use cambium_proxy::{
    AskId, BoxFuture, Clock, ContentHash, Effect, Host, KeySource, Limits, Proxy, ProxyParts,
    RunId, Scheme, Session, SystemClock, SystemResolver, Vault, request_digest,
};
use cambium_store::Store;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub(crate) const PASSPHRASE: &str = "correct horse battery";

/// Answers with its input; what a module may do is tested elsewhere.
struct Echo;
impl Sandbox for Echo {
    fn run<'a>(&'a self, job: Job, _: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            RunReport {
                outcome: Outcome::Ok(ToolResult::Value(job.input.to_string())),
                logs: Vec::new(),
                logs_dropped: 0,
                times: StageTimes::default(),
                evidence: None,
            }
        })
    }
}

struct Here;
impl Checker for Here {
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

/// Nothing is run or read here.
struct Idle;
impl Workbench for Idle {
    fn run<'a>(&'a self, _: &'a Command) -> BoxFuture<'a, Result<CommandEnd, CommandFault>> {
        Box::pin(async { Err(CommandFault::Output) })
    }

    fn readable<'a>(&'a self, _: &'a [u8]) -> BoxFuture<'a, Result<Readable, String>> {
        Box::pin(async { Ok(Readable::default()) })
    }
}

/// A served console and what it stands on.
pub(crate) struct House {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<Store>,
    pub(crate) address: SocketAddr,
    pub(crate) agent_token: String,
    /// Stops the server.
    pub(crate) stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    folder: std::path::PathBuf,
}

impl Drop for House {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl House {
    pub(crate) async fn open(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("cambium-console-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let vault = Arc::new(Vault::open(&KeySource::File(folder.join("key"))).unwrap());
        let store = Arc::new(Store::in_memory().await.unwrap());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let proxy = Proxy::start(ProxyParts {
            node: "n".into(),
            vault: vault.clone(),
            audit: store.clone(),
            approvals: store.clone(),
            connections: store.clone(),
            secrets: store.clone(),
            resolver: Arc::new(SystemResolver),
            clock: clock.clone(),
            limits: Limits::default(),
            own_addresses: Vec::new(),
        })
        .await
        .unwrap();
        let engine = Engine::start(Parts {
            node: "n".into(),
            store: store.clone(),
            proxy,
            vault,
            sandbox: Arc::new(Echo),
            checker: Arc::new(Here),
            authors: Authors::default(),
            low_level: Some(LowLevelParts {
                workbench: Arc::new(Idle),
                reach: PageReach::default(),
            }),
            clock,
            settings: cambium_engine::Settings {
                console_url: "http://127.0.0.1".into(),
                wait_budget: std::time::Duration::from_secs(1),
            },
        })
        .await
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let settings = Settings {
            hosts: vec![address.to_string()],
            origins: vec![format!("http://{address}")],
            notices: vec!["Agents run as the server's own user.".into()],
            stop: stop.clone(),
        };
        let audit = Audit { sink: store.clone(), node: "n".into() };
        let pages = router(engine.clone(), audit, settings);
        let task = tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() });
        Self { engine, store, address, agent_token: String::new(), stop, task, folder }
    }

    /// Set up, with an agent, a tool and one open ask.
    pub(crate) async fn with_ask(name: &str, effect: Effect) -> (Self, String) {
        let mut house = Self::open(name).await;
        let code = house.engine.issue_code().await.unwrap();
        let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
        house
            .engine
            .set_passphrase(&proof, PersonCredential::Passphrase(PASSPHRASE.into()))
            .await
            .unwrap();
        let new = NewAgent { name: "cl\u{200b}aude".into(), cap: 20, idle_days: 21 };
        // A name with unseen characters may be refused: then a plain one.
        let (agent, token) = match house.engine.create_agent(&proof, new).await {
            Ok(made) => made,
            Err(_) => {
                let new = NewAgent { name: "claude".into(), cap: 20, idle_days: 21 };
                house.engine.create_agent(&proof, new).await.unwrap()
            }
        };
        house.agent_token = token;
        let host = Host { label: "api".into(), name: "api.acme.test".into(), port: 443 };
        let connection = house
            .engine
            .create_connection(
                &proof,
                NewConnection {
                    slug: "acme".into(),
                    vendor: "acme".into(),
                    display_name: "Acme <b>".into(),
                    hosts: vec![host],
                    scheme: Scheme::None,
                    exceptions: Vec::new(),
                    ca_pem: None,
                    overrides: cambium_proxy::Overrides::default(),
                    agents: Vec::new(),
                },
                None,
            )
            .await
            .unwrap();
        let method = if effect == Effect::Destroy { "DELETE" } else { "POST" };
        let source = format!(
            "export const description = 'Pays <script>alert(1)</script>';\n\
             export const inputSchema = {{ type: 'object' }};\n\
             export default async (ctx) => ctx.fetch('/orders', {{ method: '{method}' }});"
        );
        let tool = ToolName::new("acme", "pay").unwrap();
        let request =
            PublishRequest { tool: tool.clone(), connection: Some("acme".into()), source };
        let publisher = Publisher::Person { promote_for: Some(agent.id.clone()) };
        let published = house.engine.publish(&publisher, request).await.unwrap();
        let now = SystemClock::default().now_ms();
        let id = format!("{:032x}", 0xabcdef_u128);
        let target = "/orders?to=%E2%80%AEmoc.live&note=a+b".to_owned();
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = "{\"to\":\"al\u{202e}ecila\",\"to\":\"<img src=x>\",\"amount\":5}";
        let digest = request_digest(method, "api.acme.test", &target, &headers, body.as_bytes());
        let ask = AskRow {
            id: AskId::new(id.clone()),
            person: house.store.person().await.unwrap().unwrap().id,
            agent: agent.id,
            tool,
            version: ContentHash::try_from(published.hash).unwrap(),
            number: published.version,
            connection: connection.id,
            generation: connection.generation,
            reason: AskReason::FirstCall,
            run: RunId::new("run"),
            effect,
            method: method.into(),
            authority: "api.acme.test".into(),
            target,
            headers,
            body: body.into(),
            digest,
            state: AskState::Open,
            opened_ms: now,
            expires_ms: now + 3_600_000,
            settled_ms: None,
        };
        house.store.insert_ask(&ask).await.unwrap();
        (house, id)
    }

    pub(crate) async fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let text = format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer { status, headers, body: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str, cookie: &str) -> Answer {
        let host = self.address;
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n"), "").await
    }

    pub(crate) async fn post(&self, path: &str, cookie: &str, body: &str) -> Answer {
        let origin = format!("Origin: http://{}\r\n", self.address);
        self.post_from(path, cookie, &origin, body).await
    }

    pub(crate) async fn post_from(
        &self,
        path: &str,
        cookie: &str,
        origin: &str,
        body: &str,
    ) -> Answer {
        let host = self.address;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Cookie: {cookie}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n"
        );
        self.send(&head, body).await
    }

    /// A session's cookie and the token of its forms.
    pub(crate) async fn log_in(&self) -> (String, String) {
        let answer = self.post("/login", "", "passphrase=correct+horse+battery").await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        let cookie = answer.headers["set-cookie"].split(';').next().unwrap().to_owned();
        let page = self.get("/asks", &cookie).await;
        assert_eq!(page.status, 200);
        let form = page.body.split("name=\"form\" value=\"").nth(1).unwrap();
        (cookie, form.split('"').next().unwrap().to_owned())
    }

    pub(crate) async fn state(&self, id: &str) -> String {
        self.engine.ask(&AskId::new(id)).await.unwrap().state
    }
}
