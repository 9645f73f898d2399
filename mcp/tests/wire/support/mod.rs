//! What the tests stand on: a whole house in a directory of its own, clients of
//! both eras over both transports, and raw HTTP.

mod client;
mod raw;
mod sandbox;

pub(crate) use client::{
    Client, Era, Form, Heard, Over, connect, connect_asked, connect_paged, connect_stream,
    connect_tasked, object,
};
pub(crate) use raw::{Raw, messages};
pub(crate) use sandbox::Puppet;

use axum::Router;
use cambium_engine::{
    Authors, CheckReport, Checker, DocumentFault, Drafts, Engine, NewAgent, NewConnection, Parts,
    PersonCredential, PersonProof, PublishRequest, Publisher, Settings, ToolName, Wanted,
    check_importing, check_module, draft_document,
};
use cambium_mcp::HttpConfig;
use cambium_proxy::{
    AgentId, BoxFuture, Clock, Host, KeySource, Limits, Proxy, ProxyParts, Scheme, SystemClock,
    SystemResolver, Vault,
};
use cambium_store::Store;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The `Host` the door answers to where no socket is used.
pub(crate) const HOST: &str = "127.0.0.1:7171";
/// The one `Origin` it answers to.
pub(crate) const ORIGIN: &str = "http://127.0.0.1:7171";

/// Reads by GET.
pub(crate) const READ: &str = r#"
export const description = "Lists the open orders.";
export const inputSchema = {
  type: "object",
  properties: { do: { type: "string" }, seconds: { type: "integer" } },
  additionalProperties: false,
};
export default async function (ctx, input) { return await ctx.fetch("/orders"); }
"#;

/// Writes by POST.
pub(crate) const WRITE: &str = r#"
export const description = "Creates an order.";
export const inputSchema = {
  type: "object", properties: { do: { type: "string" }, body: { type: "string" } },
  additionalProperties: false,
};
export default async function (ctx, input) {
  return await ctx.fetch("/orders", { method: "POST", body: "{}" });
}
"#;

/// An agent with its token.
pub(crate) struct TestAgent {
    pub(crate) id: AgentId,
    pub(crate) token: String,
}

/// A house with everything in it.
pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) proof: Arc<PersonProof>,
    pub(crate) clock: Arc<LateClock>,
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: TaskTracker,
    directory: PathBuf,
}

/// The system's time, and what a test added to it.
#[derive(Default)]
pub(crate) struct LateClock {
    system: SystemClock,
    late_ms: AtomicI64,
}

impl LateClock {
    pub(crate) fn advance(&self, ms: i64) {
        self.late_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for LateClock {
    fn now_ms(&self) -> i64 {
        self.system.now_ms() + self.late_ms.load(Ordering::SeqCst)
    }
    fn ticks_us(&self) -> u64 {
        self.system.ticks_us()
    }
}

struct InProcess;

impl Checker for InProcess {
    fn check<'a>(
        &'a self,
        source: &'a str,
        packages: &'a [String],
    ) -> BoxFuture<'a, Result<CheckReport, String>> {
        Box::pin(std::future::ready(Ok(check_importing(source, packages))))
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

impl World {
    pub(crate) async fn new() -> Self {
        Self::waiting(Duration::from_secs(50)).await
    }

    /// A call waits so long for a person.
    pub(crate) async fn waiting(wait_budget: Duration) -> Self {
        let directory = fresh_directory();
        let vault = Arc::new(Vault::open(&KeySource::File(directory.join("vault.key"))).unwrap());
        let store = Arc::new(
            Store::open(&directory.join("cambium.db"), vault.mac_key("ledger")).await.unwrap(),
        );
        let clock = Arc::new(LateClock::default());
        let proxy = Proxy::start(ProxyParts {
            node: "test".into(),
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
        let puppet = Arc::new(Puppet::default());
        let engine = Engine::start(Parts {
            node: "test".into(),
            store,
            proxy,
            vault,
            sandbox: puppet.clone(),
            checker: Arc::new(InProcess),
            authors: Authors::default(),
            low_level: None,
            clock: clock.clone(),
            settings: Settings { console_url: "http://127.0.0.1:7171".into(), wait_budget },
        })
        .await
        .unwrap();
        let code = engine.issue_code().await.unwrap();
        let proof = engine.prove_person(PersonCredential::Code(code)).await.unwrap();
        let world = Self {
            engine,
            puppet,
            proof: Arc::new(proof),
            clock,
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            directory,
        };
        world.connection("acme").await;
        world
    }

    pub(crate) async fn connection(&self, vendor: &str) {
        let new = NewConnection {
            slug: vendor.into(),
            vendor: vendor.into(),
            display_name: vendor.into(),
            hosts: vec![Host {
                label: format!("{vendor}.example"),
                name: format!("{vendor}.example"),
                port: 443,
            }],
            scheme: Scheme::None,
            exceptions: Vec::new(),
            ca_pem: None,
            overrides: cambium_proxy::Overrides::default(),
            agents: Vec::new(),
        };
        self.engine.create_connection(&self.proof, new, None).await.unwrap();
    }

    pub(crate) async fn agent(&self, name: &str) -> TestAgent {
        let new = NewAgent { name: name.into(), cap: 20, idle_days: 21 };
        let (agent, token) = self.engine.create_agent(&self.proof, new).await.unwrap();
        TestAgent { id: agent.id, token }
    }

    /// Publishes without promoting for anybody.
    pub(crate) async fn publish(&self, vendor: &str, name: &str, source: &str) {
        let request = PublishRequest {
            tool: ToolName::new(vendor, name).unwrap(),
            connection: None,
            source: source.into(),
        };
        let publisher = Publisher::Person { promote_for: None };
        self.engine.publish(&publisher, request).await.unwrap();
    }

    pub(crate) async fn promote(&self, agent: &TestAgent, vendor: &str, name: &str) {
        let caller = self.engine.authenticate(&agent.token).await.unwrap();
        self.engine.promote(&caller, &ToolName::new(vendor, name).unwrap()).await.unwrap();
    }

    /// The door without a socket.
    pub(crate) fn router(&self) -> Router {
        self.router_for(vec![HOST.into()])
    }

    fn router_for(&self, hosts: Vec<String>) -> Router {
        let config = HttpConfig {
            hosts,
            origins: vec![ORIGIN.into()],
            dev_agent: None,
            cancel: self.cancel.clone(),
            tasks: self.tasks.clone(),
        };
        cambium_mcp::http_service(self.engine.clone(), config)
    }

    /// The door on a socket of its own; answers its URL.
    pub(crate) async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = self.router_for(vec![address.to_string()]);
        let stop = self.cancel.clone();
        self.tasks.spawn(async move {
            let served = axum::serve(listener, router)
                .with_graceful_shutdown(async move { stop.cancelled().await });
            served.await.unwrap();
        });
        format!("http://{address}/mcp")
    }

    /// Everything ends, and in time: a test of its own, at the end of each.
    pub(crate) async fn close(self) {
        self.engine.drain(Duration::from_secs(1)).await;
        self.cancel.cancel();
        self.tasks.close();
        tokio::time::timeout(Duration::from_secs(20), self.tasks.wait()).await.unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory =
        std::env::temp_dir().join(format!("cambium-mcp-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}
