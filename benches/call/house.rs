//! The product's own parts on a temporary directory and a loopback TLS vendor:
//! SQLite on disk, sealed secret, audit, redaction, every layer of the jail.

use cambium_engine::{
    Authors, CallRequest, Caller, CheckReport, Checker, DocumentFault, Drafts, Engine, EngineError,
    Envelope, Live, NewAgent, NewConnection, Parts, PersonCredential, PublishRequest, Publisher,
    Settings, Status, ToolName, Wanted, check_importing, check_module, draft_document,
};
use cambium_isolate::{IsolateConfig, IsolateSandbox};
use cambium_mcp::{HttpConfig, http_service};
use cambium_proxy::{
    BoxFuture, Exception, Host, KeySource, Limits, Proxy, ProxyParts, Scheme, Secret, SystemClock,
    Vault,
};
use cambium_sandbox_tests::bench::Names;
use cambium_sandbox_tests::vendor::{Step, Vendor, answer};
use cambium_store::Store;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The vendor's name; its address comes from the bench's own resolver.
pub(crate) const HOST: &str = "api.shop.test";
/// The credential the vendor wants to see.
pub(crate) const TOKEN: &str = "bench-token-0123456789abcdef";
/// The tool that is called.
pub(crate) const TOOL: &str = r#"
export const description = "Lists orders.";
export const inputSchema = {
  type: "object",
  properties: { limit: { type: "integer" } },
  additionalProperties: false,
} as const;
export default async function (ctx: Context, input: Input) {
  const response = await ctx.fetch(`/orders?limit=${input.limit ?? 20}`);
  const { orders } = await response.json();
  return orders.map((order: any) => ({ id: order.id, total: order.total }));
}
"#;

/// The tool that writes.
const WRITING: &str = r#"
export const description = "Orders an item.";
export const inputSchema = {
  type: "object",
  properties: { item: { type: "string" } },
  required: ["item"],
  additionalProperties: false,
} as const;
export default async function (ctx: Context, input: Input) {
  const response = await ctx.fetch("/orders", { method: "POST", body: JSON.stringify(input) });
  return await response.json();
}
"#;

/// The check without its own process: publishing is not what is measured.
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

/// A vendor that lists twenty orders to who shows the token.
pub(crate) async fn vendor() -> Vendor {
    vendor_after(&[]).await
}

/// The same, which takes some steps before each answer.
pub(crate) async fn vendor_after(first: &'static [Step]) -> Vendor {
    let orders: Vec<_> = (0..20)
        .map(|n| json!({ "id": n, "customer": "C-17", "total": 1999 + n, "note": "leave at the door" }))
        .collect();
    let body = json!({ "orders": orders }).to_string().into_bytes();
    let script = move |heard: &cambium_sandbox_tests::vendor::Heard| {
        if heard.header("authorization") != [format!("Bearer {TOKEN}")] {
            return answer("401 Unauthorized", "", b"");
        }
        let orders = answer("200 OK", "content-type: application/json\r\n", &body);
        [first, &orders].concat()
    };
    Vendor::start(&[HOST, "localhost"], Arc::new(script)).await
}

/// Everything a call goes through.
pub(crate) struct House {
    /// The engine.
    pub(crate) engine: Arc<Engine>,
    /// Who calls.
    pub(crate) caller: Caller,
    /// Its token, for MCP.
    pub(crate) token: String,
    /// The proxy alone.
    pub(crate) proxy: Arc<Proxy>,
    /// Its vault.
    pub(crate) vault: Arc<Vault>,
    /// Where its workers come from.
    pub(crate) sandbox: Arc<IsolateSandbox>,
    directory: PathBuf,
}

impl House {
    /// Builds it with a pool of so many ready workers an agent.
    pub(crate) async fn build(vendor: &Vendor, pool: usize, name: &str) -> Self {
        Self::at(vendor.address, &vendor.ca_pem, pool, name).await
    }

    /// The same for a vendor at an address, under an authority of its own.
    pub(crate) async fn at(vendor: SocketAddr, ca_pem: &str, pool: usize, name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("cambium-call-{}-{name}", std::process::id()));
        Self::made(directory, vendor, ca_pem, pool).await
    }

    /// The same in a directory that may be opened again.
    pub(crate) async fn made(
        directory: PathBuf,
        vendor: SocketAddr,
        ca_pem: &str,
        pool: usize,
    ) -> Self {
        std::fs::create_dir_all(&directory).expect("a directory of our own");
        let frame = Frame::open(&directory, pool).await;
        let token = furnish(&frame.engine, vendor, ca_pem).await;
        frame.house(directory, token).await
    }

    /// Opens one that [`House::leave`] has left.
    pub(crate) async fn again(directory: PathBuf, token: String, pool: usize) -> Self {
        let frame = Frame::open(&directory, pool).await;
        frame.house(directory, token).await
    }

    /// One call of the tool; panics when it did not list the orders.
    pub(crate) async fn call(&self) -> Envelope {
        self.call_as(&self.caller).await
    }

    /// The same for one of several agents.
    pub(crate) async fn call_as(&self, caller: &Caller) -> Envelope {
        let envelope = self.ask(caller, list_orders()).await;
        assert_eq!(envelope.status, Status::Ok, "{:?} {:?}", envelope.code, envelope.message);
        envelope
    }

    /// The same, unless the answer is `busy`.
    pub(crate) async fn called_as(&self, caller: &Caller) -> bool {
        let envelope = self.ask(caller, list_orders()).await;
        let busy = envelope.code == Some("busy");
        assert!(busy || envelope.status == Status::Ok, "{:?}", envelope.message);
        !busy
    }

    /// Any call, however it ends.
    pub(crate) async fn ask(&self, caller: &Caller, request: CallRequest) -> Envelope {
        self.engine.call(caller, request, Live::new(CancellationToken::new())).await
    }

    /// Publishes a further version of the tool, told apart by a number, and the
    /// tool that writes.
    pub(crate) async fn publish(&self, number: usize) -> Result<(), EngineError> {
        self.publish_as("shop__list-orders", format!("{TOOL}// {number}\n")).await?;
        self.publish_as("shop__create-order", WRITING.into()).await
    }

    /// Publishes any source by a name.
    pub(crate) async fn publish_as(&self, name: &str, source: String) -> Result<(), EngineError> {
        let tool = ToolName::parse(name).expect("a name");
        let request = PublishRequest { tool, connection: None, source };
        self.engine.publish(&Publisher::Agent(self.caller.clone()), request).await.map(|_| ())
    }

    /// So many further agents.
    pub(crate) async fn agents(&self, count: usize) -> Vec<Caller> {
        let code = self.engine.issue_code().await.expect("a code");
        let proof = self.engine.prove_person(PersonCredential::Code(code)).await.expect("a person");
        let mut callers = Vec::with_capacity(count);
        for number in 0..count {
            let new = NewAgent { name: format!("caller-{number}"), cap: 20, idle_days: 21 };
            let (_, token) = self.engine.create_agent(&proof, new).await.expect("an agent");
            callers.push(self.engine.authenticate(&token).await.expect("a caller"));
        }
        callers
    }

    /// Serves MCP on loopback; answers its address.
    pub(crate) async fn serve(&self, cancel: CancellationToken) -> std::net::SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let config = HttpConfig {
            hosts: vec![address.to_string()],
            origins: Vec::new(),
            dev_agent: None,
            cancel: cancel.clone(),
            tasks: TaskTracker::new(),
        };
        let router = http_service(self.engine.clone(), config);
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            // As the product's own listener does: an answer is never held back.
            let _ = stream.set_nodelay(true);
        });
        tokio::spawn(async move {
            let served = axum::serve(listener, router);
            served.with_graceful_shutdown(cancel.cancelled_owned()).await
        });
        address
    }

    /// The database, for whoever fills it by the thousand.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join("store")
    }

    /// Ends what runs and leaves nothing behind.
    pub(crate) async fn close(self) {
        self.end().await;
        let _ = std::fs::remove_dir_all(&self.directory);
    }

    /// Ends what runs and leaves the directory.
    pub(crate) async fn leave(self) {
        self.end().await;
    }

    async fn end(&self) {
        self.engine.drain(Duration::from_secs(5)).await;
        self.sandbox.shutdown().await;
        self.proxy.stop().await;
    }
}

/// The parts of a house, before anybody lives in it.
struct Frame {
    engine: Arc<Engine>,
    proxy: Arc<Proxy>,
    vault: Arc<Vault>,
    sandbox: Arc<IsolateSandbox>,
}

impl Frame {
    async fn open(directory: &Path, pool: usize) -> Self {
        let vault = Vault::open(&KeySource::File(directory.join("key"))).expect("a vault");
        let vault = Arc::new(vault);
        let store = Arc::new(
            Store::open(&directory.join("store"), vault.mac_key("ledger")).await.expect("a store"),
        );
        let names = Names::default();
        names.set(HOST, &[&["127.0.0.1"]]);
        let clock = Arc::new(SystemClock::default());
        let proxy = Proxy::start(ProxyParts {
            node: "bench".into(),
            vault: vault.clone(),
            audit: store.clone(),
            approvals: store.clone(),
            connections: store.clone(),
            secrets: store.clone(),
            resolver: Arc::new(names),
            clock: clock.clone(),
            limits: Limits::default(),
            own_addresses: Vec::new(),
        });
        let proxy = proxy.await.expect("a proxy");
        let config = IsolateConfig { pool, ..IsolateConfig::default() };
        let sandbox = Arc::new(IsolateSandbox::start(config).await.expect("a sandbox"));
        let engine = Engine::start(Parts {
            node: "bench".into(),
            store,
            proxy: proxy.clone(),
            vault: vault.clone(),
            sandbox: sandbox.clone(),
            checker: Arc::new(InProcess),
            authors: Authors::default(),
            low_level: None,
            clock,
            settings: Settings {
                console_url: "http://127.0.0.1:1".into(),
                wait_budget: Duration::from_secs(1),
            },
        });
        let engine = engine.await.expect("an engine");
        Self { engine, proxy, vault, sandbox }
    }

    async fn house(self, directory: PathBuf, token: String) -> House {
        let Self { engine, proxy, vault, sandbox } = self;
        let caller = engine.authenticate(&token).await.expect("a caller");
        House { engine, caller, token, proxy, vault, sandbox, directory }
    }
}

/// The call that is measured.
pub(crate) fn list_orders() -> CallRequest {
    CallRequest {
        tool: ToolName::parse("shop__list-orders").expect("a name"),
        input: json!({ "limit": 20 }),
        dry_run: false,
        detached: false,
        timeout_seconds: None,
    }
}

/// The call of the tool that writes, which only says what it would send.
pub(crate) fn create_order() -> CallRequest {
    CallRequest {
        tool: ToolName::parse("shop__create-order").expect("a name"),
        input: json!({ "item": "tea" }),
        dry_run: true,
        ..list_orders()
    }
}

async fn furnish(engine: &Engine, vendor: SocketAddr, ca_pem: &str) -> String {
    let code = engine.issue_code().await.expect("a code");
    let proof = engine.prove_person(PersonCredential::Code(code)).await.expect("a person");
    let port = vendor.port();
    let connection = NewConnection {
        slug: "shop".into(),
        vendor: "shop".into(),
        display_name: "Shop".into(),
        hosts: vec![Host { label: HOST.into(), name: HOST.into(), port }],
        scheme: Scheme::Bearer,
        exceptions: vec![Exception { cidr: "127.0.0.1/32".parse().expect("a range"), port }],
        ca_pem: Some(ca_pem.to_owned()),
        overrides: cambium_proxy::Overrides::default(),
        agents: Vec::new(),
    };
    let secret = Some(Secret::new(TOKEN.as_bytes().to_vec()));
    engine.create_connection(&proof, connection, secret).await.expect("a connection");
    let new = NewAgent { name: "bench".into(), cap: 20, idle_days: 21 };
    let (_, token) = engine.create_agent(&proof, new).await.expect("an agent");
    let caller = engine.authenticate(&token).await.expect("a caller");
    let tool = ToolName::parse("shop__list-orders").expect("a name");
    let request = PublishRequest { tool, connection: None, source: TOOL.into() };
    engine.publish(&Publisher::Agent(caller), request).await.expect("a publish");
    token
}
