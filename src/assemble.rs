//! The parts, joined in one place and taken apart in one place. Everything that
//! can be refused is refused before anything is made: address, directory, lock,
//! sandbox, then vault, database, proxy, engine, and only then the doors.

use crate::author::ModelAuthor;
use crate::checker::JailedChecker;
use crate::cli::already;
use crate::config::Config;
use crate::control::{Audit, Client, ControlSocket, Front};
use crate::data_dir::{DATABASE, DataDir, VAULT_KEY, locked};
use crate::failure::{Failure, unproved};
use crate::first_code::FirstCodes;
use crate::listener::Listener;
use crate::notify::{self, Webhook};
use crate::outside::{self, Outside};
use crate::sandboxes::Sandboxes;
use crate::typescript::TypeScript;
use crate::workbench::JailedWorkbench;
use cambium_engine::{
    AuthorBudget, Authors, Engine, EngineError, LowLevelParts, NewAgent, Parts, PersonCredential,
    Settings,
};
use cambium_mcp::{DevAgent, HttpConfig};
use cambium_proxy::{
    Clock, DoorFrame, KeySource, Limits, Proxy, ProxyParts, SystemClock, SystemResolver, Vault,
};
use cambium_store::{Store, StoreError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Name of this node's audit chain while there is one node.
const NODE: &str = "local";
/// The vault's MAC domain of the store's ledger.
const LEDGER: &str = "ledger";
/// How long runs may go on after a signal.
const GRACE: Duration = Duration::from_secs(10);
/// How long open answers may go on after the runs have ended.
const DOORS: Duration = Duration::from_secs(3);

/// What reads and writes the data directory.
struct Ground {
    vault: Arc<Vault>,
    store: Arc<Store>,
    proxy: Arc<Proxy>,
    clock: Arc<dyn Clock>,
}

/// What runs and decides.
struct House {
    ground: Ground,
    checker: Arc<JailedChecker>,
    sandbox: Arc<Sandboxes>,
    workbench: Arc<JailedWorkbench>,
    engine: Arc<Engine>,
}

/// The running server.
pub(crate) struct Server {
    data_dir: DataDir,
    house: House,
    url: String,
    first_code: Option<String>,
    outside: Option<Arc<Outside>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Ground {
    async fn open(data_dir: &DataDir, own: Vec<SocketAddr>) -> Result<Self, Failure> {
        if data_dir.database().exists() && !data_dir.vault_key().exists() {
            // Making one would only hide that the right one is missing.
            return Err(locked_out(format!("{} is missing", data_dir.vault_key().display())));
        }
        let vault = Vault::open(&KeySource::File(data_dir.vault_key()));
        let vault = vault.map_err(|error| locked_out(error.to_string()))?;
        let vault = Arc::new(vault);
        let store = Store::open(&data_dir.database(), vault.mac_key(LEDGER)).await;
        let store = Arc::new(store.map_err(unopened)?);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let proxy = Proxy::start(ProxyParts {
            node: NODE.to_owned(),
            vault: vault.clone(),
            audit: store.clone(),
            approvals: store.clone(),
            connections: store.clone(),
            secrets: store.clone(),
            resolver: Arc::new(SystemResolver),
            clock: clock.clone(),
            limits: Limits::default(),
            own_addresses: own,
        })
        .await
        .map_err(|fault| Failure::from(EngineError::Store(fault)))?;
        Ok(Self { vault, store, proxy, clock })
    }

    fn audit(&self) -> Audit {
        Audit { proxy: self.proxy.clone(), sink: self.store.clone(), node: NODE.to_owned() }
    }

    async fn close(self) {
        self.proxy.stop().await;
        self.store.close().await;
    }
}

impl House {
    async fn build(ground: Ground, config: &Config, url: &str) -> Result<Self, Failure> {
        let authors = authors(config)?;
        let switches = &config.sandbox;
        let typescript = config.typescript.as_deref().map(TypeScript::at).transpose()?;
        if typescript.is_none() {
            tracing::info!("types are not checked: no `typescript` is configured");
        }
        let checker = JailedChecker::start(switches.zygote, switches.allow_weak, typescript);
        let checker = checker.await?;
        let checker = Arc::new(checker);
        let sandbox = Arc::new(Sandboxes::start(config).await?);
        let workbench = Arc::new(JailedWorkbench::start()?);
        let low_level = LowLevelParts { workbench: workbench.clone(), reach: config.pages.clone() };
        let engine = Engine::start(Parts {
            node: NODE.to_owned(),
            store: ground.store.clone(),
            proxy: ground.proxy.clone(),
            vault: ground.vault.clone(),
            sandbox: sandbox.clone(),
            checker: checker.clone(),
            authors,
            low_level: Some(low_level),
            clock: ground.clock.clone(),
            settings: Settings { console_url: url.to_owned(), wait_budget: config.wait_budget },
        })
        .await?;
        Ok(Self { ground, checker, sandbox, workbench, engine })
    }

    /// Takes apart what [`Engine::drain`] has left idle.
    async fn close(self) {
        self.sandbox.shutdown().await;
        self.checker.shutdown().await;
        self.workbench.shutdown().await;
        self.ground.close().await;
    }
}

/// The model a person configured, if they did.
fn authors(config: &Config) -> Result<Authors, Failure> {
    let Some(author) = &config.author else { return Ok(Authors::default()) };
    let budget = AuthorBudget { attempts: author.attempts, tokens: author.tokens };
    Ok(Authors { model: Some(Arc::new(ModelAuthor::new(author)?)), budget })
}

impl Server {
    /// Builds everything and opens the doors.
    pub(crate) async fn start(config: &Config) -> Result<Self, Failure> {
        let webhook = config.notify.as_ref().map(Webhook::new).transpose()?;
        let listener = match Listener::bind(config.listen).await {
            // The nearer reason, where it is a server of the same directory that is there.
            Err(failure) if failure.code == "listen_in_use" => {
                let there = Client::connect(&config.data_dir).await.is_ok();
                return Err(if there { locked(&config.data_dir) } else { failure });
            }
            bound => bound?,
        };
        let data_dir = DataDir::lock(&config.data_dir)?;
        let address = listener.address();
        let url = format!("http://{address}");
        let frame = outside::bind(config.sandbox.listen.clone(), &data_dir).await?;
        let mut own = vec![address];
        own.extend(frame.as_ref().and_then(DoorFrame::address));
        let ground = Ground::open(&data_dir, own).await?;
        if ground.vault.is_rotating() {
            // Cut off by a crash; nothing is served under two keys.
            let rotated = ground.proxy.rotate_vault().await;
            let rotated = rotated.map_err(|fault| Failure::from(EngineError::Store(fault)))?;
            tracing::warn!(resealed = rotated.resealed, "a rotation of the vault was taken up");
        }
        if data_dir.is_vault_locked() {
            ground.proxy.lock_vault();
            tracing::warn!("the vault is locked: no credential is used");
        }
        let house = House::build(ground, config, &url).await?;
        let clock = house.ground.clock.clone();
        let first_codes = FirstCodes::new(house.engine.clone(), clock, data_dir.path().to_owned());
        let first_codes = Arc::new(first_codes);
        let first_code = first_codes.current().await?.map(|first| first.code);
        let control = ControlSocket::bind(&data_dir.socket())?;

        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let outside = frame.and_then(|frame| {
            let way = (frame.address(), frame.socket().map(Path::to_owned));
            let door = house.ground.proxy.serve_door(frame, &tasks, stop.clone());
            Outside::new(way, door).map(Arc::new)
        });
        let front = Arc::new(Front {
            engine: house.engine.clone(),
            proxy: house.ground.proxy.clone(),
            vault: house.ground.vault.clone(),
            store: house.ground.store.clone(),
            backing_up: tokio::sync::Mutex::default(),
            outside: outside.clone(),
            audit: house.ground.audit(),
            url: url.clone(),
            data_dir: data_dir.path().to_owned(),
            first_codes: first_codes.clone(),
        });
        tasks.spawn(first_codes.keep(stop.clone()));
        tasks.spawn(control.serve(front, tasks.clone(), stop.clone()));
        let dev_agent = match &config.dev_agent {
            Some(name) => Some(dev_agent(&house.engine, name).await?),
            None => None,
        };
        let keeping = crate::keeper::keep(
            house.ground.proxy.clone(),
            house.ground.clock.clone(),
            config.audit.clone(),
            stop.clone(),
        );
        tasks.spawn(keeping);
        let (engine, clock) = (house.engine.clone(), house.ground.clock.clone());
        tasks.spawn(notify::watch(engine, clock, webhook, stop.clone()));
        let router = router(&house, &url, address, dev_agent, &stop, &tasks);
        tasks.spawn(listener.serve(router, tasks.clone(), stop.clone()));
        Ok(Self { data_dir, house, url, first_code, outside, stop, tasks })
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The code that sets the first passphrase, if none is set.
    pub(crate) fn first_code(&self) -> Option<&str> {
        self.first_code.as_deref()
    }

    /// Where everything is kept.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// Runs end first, so that their callers still hear the answer; then the
    /// doors close, the audit is flushed, and the lock goes last.
    pub(crate) async fn stop(self) {
        let Self { data_dir, house, outside, stop, tasks, .. } = self;
        if let Some(outside) = outside {
            // Nobody outside would end them by themselves.
            outside.close_all();
        }
        house.engine.drain(GRACE).await;
        stop.cancel();
        tasks.close();
        if tokio::time::timeout(DOORS, tasks.wait()).await.is_err() {
            tracing::warn!("some connections were still open and were cut");
        }
        house.close().await;
        drop(data_dir);
        tracing::info!("stopped");
    }
}

/// MCP at `/mcp`, the console everywhere else.
fn router(
    house: &House,
    url: &str,
    address: SocketAddr,
    dev_agent: Option<DevAgent>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> axum::Router {
    let mut hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
    if address.port() == 80 {
        hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
    }
    let origins = vec![url.to_owned(), format!("http://localhost:{}", address.port())];
    let mut notices = notices(&house.checker);
    if dev_agent.is_some() {
        notices
            .push("Requests without a token act as an agent (--dev-agent): for tests only.".into());
    }
    let console = cambium_console::Settings {
        hosts: hosts.clone(),
        origins: origins.clone(),
        notices,
        stop: stop.clone(),
    };
    let config =
        HttpConfig { hosts, origins, dev_agent, cancel: stop.clone(), tasks: tasks.clone() };
    let audit = cambium_console::Audit { sink: house.ground.store.clone(), node: NODE.to_owned() };
    cambium_mcp::http_service(house.engine.clone(), config).merge(cambium_console::router(
        house.engine.clone(),
        audit,
        console,
    ))
}

/// What the console says on every page: what is weaker here than it could be.
fn notices(checker: &JailedChecker) -> Vec<String> {
    let user = rustix::process::getuid().as_raw();
    let mut notices = vec![format!(
        "This server runs as user {user}. An agent that runs as the same user and has a shell can \
         read its files: give the server a user of its own."
    )];
    let missing: Vec<&str> = checker
        .layers()
        .iter()
        .filter(|layer| !layer.holds)
        .map(|layer| layer.layer.as_str())
        .collect();
    if !missing.is_empty() {
        notices.push(format!(
            "Not every layer of the sandbox holds on this machine: {}. `cambium doctor` says more.",
            missing.join(", ")
        ));
    }
    notices
}

/// A token for requests that carry none. Whoever starts the server could read
/// its first code, too; the listener takes loopback addresses only.
async fn dev_agent(engine: &Engine, name: &str) -> Result<DevAgent, Failure> {
    tracing::warn!(agent = name, "requests without a token act as this agent");
    let code = engine.issue_code().await?;
    let proof = engine.prove_person(PersonCredential::Code(code)).await?;
    let agent = match engine.agent(name).await {
        Ok(agent) => agent.id,
        Err(EngineError::AgentNotFound(_)) => {
            let new = NewAgent { name: name.to_owned(), cap: 20, idle_days: 21 };
            engine.create_agent(&proof, new).await?.0.id
        }
        Err(error) => return Err(error.into()),
    };
    Ok(DevAgent { agent, proof: Arc::new(proof) })
}

/// Sets the passphrase on a directory no server runs on. `choose` is asked only
/// once it is known that one may be set, and is given the one in force. `old` is
/// told whether it is the first.
pub(crate) async fn set_passphrase(
    config: &Config,
    data_dir: &DataDir,
    change: bool,
    old: impl FnOnce(bool) -> Result<Option<PersonCredential>, Failure>,
    choose: impl FnOnce(Option<&str>) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let ground = Ground::open(data_dir, Vec::new()).await?;
    let house = House::build(ground, config, "http://127.0.0.1").await?;
    let engine = &house.engine;
    let set = async {
        let first = engine.needs_setup().await?;
        if !first && !change {
            return Err(already());
        }
        let credential = match old(first)? {
            Some(credential) => credential,
            // Whoever holds the lock on the directory could read its code.
            None => PersonCredential::Code(engine.issue_code().await?),
        };
        let in_force = match &credential {
            PersonCredential::Passphrase(text) => Some(text.clone()),
            PersonCredential::Code(_) => None,
        };
        let proof = engine.prove_person(credential).await;
        let proof = proof.map_err(|error| unproved(error, in_force.is_some(), first))?;
        let chosen = PersonCredential::Passphrase(choose(in_force.as_deref())?);
        engine.set_passphrase(&proof, chosen).await?;
        Ok(())
    };
    let set = set.await;
    house.engine.drain(GRACE).await;
    house.close().await;
    set
}

/// A directory no server runs on, under its lock, for questions about its audit.
pub(crate) struct Offline {
    ground: Ground,
    audit: Audit,
    _data_dir: DataDir,
}

impl Offline {
    /// Opens what is in it.
    pub(crate) async fn open(data_dir: DataDir) -> Result<Self, Failure> {
        let ground = Ground::open(&data_dir, Vec::new()).await?;
        let audit = ground.audit();
        Ok(Self { ground, audit, _data_dir: data_dir })
    }

    /// Answers for its audit.
    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Closes it again.
    pub(crate) async fn close(self) {
        self.ground.close().await;
    }
}

/// Ends in a restored directory what a backup must not carry on.
pub(crate) async fn begin_epoch(directory: &Path) -> Result<cambium_engine::Ended, Failure> {
    let vault = Vault::open(&KeySource::File(directory.join(VAULT_KEY)));
    let vault = vault.map_err(|error| locked_out(error.to_string()))?;
    let store = Store::adopt(directory.join(DATABASE), vault.mac_key(LEDGER)).await;
    let store = store.map_err(unopened)?;
    let clock = SystemClock::default();
    let ended = cambium_engine::begin_epoch(&store, &vault, &clock).await;
    store.close().await;
    ended.map_err(|fault| Failure::from(EngineError::Store(fault)))
}

fn locked_out(reason: String) -> Failure {
    Failure::new(
        "vault_key",
        reason,
        "restore the key file from a backup with mode 0600; without it nothing sealed can be read",
    )
}

fn unopened(error: StoreError) -> Failure {
    let code = match error {
        StoreError::Tampered { .. } | StoreError::WrongKey { .. } => error.code(),
        _ => "store_unavailable",
    };
    Failure::new(code, error.to_string(), error.next())
}
