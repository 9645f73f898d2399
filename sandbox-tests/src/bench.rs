//! The fixture of the proxy's attack rows: connection `acme` on a raw vendor,
//! names that resolve to what a test says, and a search, after every exchange,
//! of everything that came out of it for the secret in any form.

use crate::leak::decoded;
pub use crate::leak::forms;
use crate::memory::{Memory, ScriptedDesk};
use crate::vendor::{Identity, Script, Speaks, Vendor, answer};
use bytes::Bytes;
use cambium_proxy::{
    Admission, AgentId, AuditEvent, AuditKind, BoxFuture, CallSite, Clock, Connection,
    ConnectionId, ConnectionStatus, ContentHash, Exception, Grant, Hints, Host, KeySource, Limits,
    MethodPattern, OutboundRequest, Overrides, PathPattern, PersonId, Proxy, ProxyParts, Refusal,
    Resolve, RunId, Scheme, Secret, Session, SessionSpec, SystemClock, Vault,
};
use std::collections::HashMap;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The secret of connection `acme`.
pub const SECRET: &str = "sk_live_S3CRET0123456789";

/// Answers names from a table; a name may answer differently each time.
#[derive(Debug, Default)]
pub struct Names {
    table: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
}

impl Names {
    /// A name's answers, one look-up after the other; the last repeats.
    pub fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse =
            |list: &&[&str]| list.iter().map(|ip| ip.parse().expect("an address")).collect();
        let answers = answers.iter().map(parse).collect();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(name.to_owned(), answers);
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(answers) = table.get_mut(host) else {
                return Err(std::io::Error::other("no such name"));
            };
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        })
    }
}

/// A clock that a test may set forward; it runs like the machine's otherwise.
#[derive(Debug, Default)]
pub struct Ahead {
    clock: SystemClock,
    by_ms: AtomicI64,
}

impl Ahead {
    /// That much later.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).expect("a short time");
        self.by_ms.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn now_ms(&self) -> i64 {
        self.clock.now_ms() + self.by_ms.load(Ordering::SeqCst)
    }

    fn ticks_us(&self) -> u64 {
        let by = self.by_ms.load(Ordering::SeqCst).unsigned_abs();
        self.clock.ticks_us() + by * 1000
    }
}

/// The host of a vendor's authorization server.
pub const ISSUER: &str = "id.acme.test";

/// An authorization server of the vendor's, and the scheme that goes with it.
pub struct IssuerSetup {
    /// What it answers.
    pub script: Script,
    /// The scheme, from `https://id.acme.test:<port>`.
    pub scheme: fn(&str) -> Scheme,
}

/// What a test may change before it starts.
pub struct Setup {
    /// An authorization server; its scheme replaces `scheme`.
    pub issuer: Option<IssuerSetup>,
    /// The vendor takes only clients with one of these certificates.
    pub clients: Vec<Identity>,
    /// What the vendor answers.
    pub script: Script,
    /// The connection's scheme.
    pub scheme: Scheme,
    /// Whether a secret is sealed.
    pub secret: Option<&'static str>,
    /// Whether the person allowed the vendor's address.
    pub excepted: bool,
    /// Limits of every session.
    pub limits: Limits,
    /// Whether the vendor's address is one of our own listeners.
    pub own: bool,
    /// What a person changed of the policy.
    pub overrides: Overrides,
    /// What the vendor speaks.
    pub speaks: Speaks,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            script: Arc::new(|_| {
                answer("200 OK", "content-type: application/json\r\n", b"{\"ok\":true}")
            }),
            issuer: None,
            clients: Vec::new(),
            scheme: Scheme::Bearer,
            secret: Some(SECRET),
            excepted: true,
            limits: Limits::default(),
            own: false,
            overrides: Overrides::default(),
            speaks: Speaks::Lines,
        }
    }
}

impl Setup {
    /// The usual one on a connection a person changed.
    pub fn changed(overrides: Overrides) -> Self {
        Self { overrides, ..Self::default() }
    }

    /// The usual one with a vendor that answers so.
    pub fn answering(
        script: impl Fn(&crate::vendor::Heard) -> Vec<crate::vendor::Step> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script), ..Self::default() }
    }
}

/// The running fixture.
pub struct Bench {
    /// The vendor.
    pub vendor: Vendor,
    /// Its authorization server, if the setup has one.
    pub issuer: Option<Vendor>,
    /// The clock.
    pub clock: Arc<Ahead>,
    /// Limits of every session.
    limits: Limits,
    /// The ports.
    pub memory: Arc<Memory>,
    /// The person.
    pub desk: Arc<ScriptedDesk>,
    /// The vault.
    pub vault: Arc<Vault>,
    /// The proxy.
    pub proxy: Arc<Proxy>,
    /// Connection `acme`.
    pub connection: Connection,
    /// Names and their addresses.
    pub names: Arc<Names>,
    runs: AtomicU64,
    seen: Mutex<Vec<u8>>,
    hidden: Mutex<Vec<Vec<u8>>>,
    directory: PathBuf,
}

/// A reply, read to its end.
#[derive(Debug)]
pub struct Got {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body, or why it is not whole.
    pub body: Result<Vec<u8>, Refusal>,
    /// What came before the body broke off.
    pub partial: Vec<u8>,
    /// It was a preview.
    pub intercepted: bool,
}

impl Got {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The whole body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.body.as_ref().expect("a whole body")).into_owned()
    }
}

/// A request of a module.
pub fn request(method: &str, target: &str) -> OutboundRequest {
    OutboundRequest {
        method: method.into(),
        host: None,
        target: target.into(),
        headers: Vec::new(),
        body: Bytes::new(),
        sdk: false,
    }
}

/// The same with a body, as JSON.
pub fn with_body(method: &str, target: &str, body: &str) -> OutboundRequest {
    let headers = vec![("content-type".into(), b"application/json".to_vec())];
    OutboundRequest {
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
        ..request(method, target)
    }
}

/// The same with headers.
pub fn with_headers(method: &str, target: &str, headers: &[(&str, &[u8])]) -> OutboundRequest {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), value.to_vec())).collect();
    OutboundRequest { headers, ..request(method, target) }
}

/// A read-only version.
pub const READS: Hints = Hints { read_only: true, destructive: false };
/// A write version.
pub const WRITES: Hints = Hints { read_only: false, destructive: false };
/// A version that uses DELETE.
pub const DESTROYS: Hints = Hints { read_only: false, destructive: true };

/// A site.
pub fn site(method: &str, path: &str) -> CallSite {
    CallSite {
        method: MethodPattern::Exactly(method.into()),
        host: None,
        path: PathPattern::Template(path.into()),
    }
}

/// Any of these methods, on either host, on any path.
pub fn anywhere(methods: &[&str]) -> Vec<CallSite> {
    let hosts = [None, Some("files".to_owned())];
    let one = |method: &&str| {
        let method = MethodPattern::Exactly((*method).into());
        hosts.clone().map(|host| CallSite { method: method.clone(), host, path: PathPattern::Any })
    };
    methods.iter().flat_map(one).collect()
}

impl Bench {
    /// The usual one.
    pub async fn new() -> Self {
        Self::start(Setup::default()).await
    }

    /// Starts one.
    pub async fn start(setup: Setup) -> Self {
        logs();
        let hosts = ["api.acme.test", "files.acme.test"];
        let named = [&hosts[..], &["cdn.test", "store.test"]].concat();
        let clients: Vec<&Identity> = setup.clients.iter().collect();
        let vendor = match clients.is_empty() {
            true => Vendor::speaking(setup.speaks, &named, setup.script).await,
            false => Vendor::mutual(&named, &clients, setup.script).await,
        };
        let port = vendor.address.port();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let directory =
            std::env::temp_dir().join(format!("cambium-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of our own");
        let vault =
            Arc::new(Vault::open(&KeySource::File(directory.join("key"))).expect("a vault"));
        let memory = Arc::new(Memory::default());
        let names = Arc::new(Names::default());
        for host in named {
            names.set(host, &[&["127.0.0.1"]]);
        }
        let exception = |port| Exception { cidr: "127.0.0.0/8".parse().expect("a range"), port };
        let mut exceptions = vec![exception(port)];
        let (mut scheme, mut ca_pem) = (setup.scheme, vendor.ca_pem.clone());
        let mut issuer = None;
        if let Some(setup) = setup.issuer {
            let server = Vendor::start(&[ISSUER], setup.script).await;
            names.set(ISSUER, &[&["127.0.0.1"]]);
            let port = server.address.port();
            exceptions.push(exception(port));
            scheme = (setup.scheme)(&format!("https://{ISSUER}:{port}"));
            ca_pem.push_str(&server.ca_pem);
            issuer = Some(server);
        }
        let host = |label: &str, name: &str| Host { label: label.into(), name: name.into(), port };
        let connection = Connection {
            id: ConnectionId::new("connection-acme"),
            person: PersonId::new("person"),
            slug: "acme".into(),
            vendor: "acme".into(),
            display_name: "Acme".into(),
            hosts: vec![host("api", hosts[0]), host("files", hosts[1])],
            scheme,
            exceptions: if setup.excepted { exceptions } else { Vec::new() },
            ca_pem: Some(ca_pem),
            overrides: setup.overrides,
            generation: 1,
            status: ConnectionStatus::Connected,
        };
        memory.put_connection(connection.clone());
        let clock = Arc::new(Ahead::default());
        let proxy = Proxy::start(ProxyParts {
            node: "node".into(),
            vault: vault.clone(),
            audit: memory.clone(),
            approvals: memory.clone(),
            connections: memory.clone(),
            secrets: memory.clone(),
            resolver: names.clone(),
            clock: clock.clone(),
            limits: setup.limits,
            own_addresses: if setup.own { vec![vendor.address] } else { Vec::new() },
        })
        .await
        .expect("a proxy");
        if let Some(secret) = setup.secret
            && connection.scheme.takes_secret()
        {
            proxy.seal(&connection, Secret::new(secret.into())).await.expect("a sealed secret");
        }
        let desk = ScriptedDesk::new(memory.clone(), vault.clone());
        let runs = AtomicU64::new(0);
        let seen = Mutex::default();
        let secret = setup.secret.unwrap_or(SECRET).as_bytes().to_vec();
        let hidden = Mutex::new(vec![secret]);
        Self {
            vendor,
            issuer,
            clock,
            limits: setup.limits,
            memory,
            desk,
            vault,
            proxy,
            connection,
            names,
            runs,
            seen,
            hidden,
            directory,
        }
    }

    /// From here on this value is searched for as well: something made of the
    /// secret, or a token got for it.
    pub fn hide(&self, value: impl Into<Vec<u8>>) {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner).push(value.into());
    }

    /// A second instance over the same store, with an audit of its own.
    pub async fn second(&self) -> (Arc<Proxy>, Arc<Memory>) {
        let audit = Arc::new(Memory::default());
        let proxy = Proxy::start(ProxyParts {
            node: "second".into(),
            vault: self.vault.clone(),
            audit: audit.clone(),
            approvals: self.memory.clone(),
            connections: self.memory.clone(),
            secrets: self.memory.clone(),
            resolver: self.names.clone(),
            clock: self.clock.clone(),
            limits: self.limits,
            own_addresses: Vec::new(),
        });
        (proxy.await.expect("a proxy"), audit)
    }

    /// The authorization server.
    pub fn issuer(&self) -> &Vendor {
        self.issuer.as_ref().expect("a setup with an issuer")
    }

    /// Changes the connection as a person would, its secret entered anew.
    pub async fn change(&mut self, change: impl FnOnce(&mut Connection)) {
        change(&mut self.connection);
        self.memory.put_connection(self.connection.clone());
        if self.connection.scheme.takes_secret() {
            let secret = Secret::new(SECRET.into());
            self.proxy.seal(&self.connection, secret).await.expect("a sealed secret");
        }
    }

    /// A run of a version with these hints and sites under a grant.
    pub fn open(&self, hints: Hints, sites: Vec<CallSite>, grant: Grant) -> Arc<Session> {
        self.open_on(&self.proxy, hints, sites, grant)
    }

    /// The same on another instance.
    pub fn open_on(
        &self,
        proxy: &Arc<Proxy>,
        hints: Hints,
        sites: Vec<CallSite>,
        grant: Grant,
    ) -> Arc<Session> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        proxy.open(
            SessionSpec {
                run: RunId::new(format!("run-{run}")),
                person: self.connection.person.clone(),
                agent: AgentId::new("agent"),
                tool: "acme__tool".into(),
                version: ContentHash([1; 32]),
                connection: self.connection.clone(),
                sites,
                hints,
                grant,
            },
            self.desk.clone(),
        )
    }

    /// A run that reads anything.
    pub fn reader(&self) -> Arc<Session> {
        self.open(READS, anywhere(&["GET", "HEAD"]), Grant::ReadOnly)
    }

    /// A run of a write version nobody has answered for.
    pub fn writer(&self) -> Arc<Session> {
        let sites =
            vec![site("POST", "/orders"), site("POST", "/orders/{}"), site("GET", "/orders")];
        self.open(WRITES, sites, Grant::Ask)
    }

    /// A dry run of anything but DELETE.
    pub fn dry(&self) -> Arc<Session> {
        let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "PROPFIND", "QUERY"];
        self.open(WRITES, anywhere(&methods), Grant::Preview)
    }

    /// What is asked at admission of the usual tool.
    pub async fn admit(&self, hints: Hints, dry_run: bool, each: bool) -> Result<Grant, Refusal> {
        let question = Admission {
            person: &self.connection.person,
            agent: &AgentId::new("agent"),
            tool: "acme__tool",
            version: &ContentHash([1; 32]),
            connection: &self.connection,
            hints,
            dry_run,
            each,
        };
        self.proxy.admit(question).await
    }

    /// Sends and reads the reply to its end, then searches for the secret.
    pub async fn send(&self, session: &Session, request: OutboundRequest) -> Result<Got, Refusal> {
        let reply = session.send(request).await;
        let got = match reply {
            Err(refusal) => Err(refusal),
            Ok(mut reply) => {
                let mut partial = Vec::new();
                let mut failed = None;
                while let Some(chunk) = reply.body.chunk().await {
                    match chunk {
                        Ok(bytes) => partial.extend_from_slice(&bytes),
                        Err(refusal) => failed = Some(refusal),
                    }
                }
                let body = failed.map_or_else(|| Ok(partial.clone()), Err);
                let (status, headers) = (reply.status, reply.headers);
                Ok(Got { status, headers, body, partial, intercepted: reply.intercepted })
            }
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &got {
            Ok(got) => {
                seen.extend_from_slice(format!("{:?}\n", got.headers).as_bytes());
                seen.extend_from_slice(&got.partial);
            }
            Err(refusal) => seen.extend_from_slice(format!("{refusal:?} {refusal}\n").as_bytes()),
        }
        seen.extend_from_slice(format!("{:?}\n", session.report()).as_bytes());
        drop(seen);
        self.assert_no_secret();
        got
    }

    /// Sends what must be refused with a code: nothing reaches the vendor, and
    /// the audit has a row with the code.
    pub async fn refused(&self, session: &Session, request: OutboundRequest, code: &str) {
        let shown = format!("{request:?}");
        let (connections, rows) = (self.vendor.connections(), self.memory.events().len());
        let refusal = self.send(session, request).await.expect_err(&shown);
        assert_eq!(refusal.code(), code, "{shown}: {refusal}");
        assert_eq!(self.vendor.connections(), connections, "{shown} reached the vendor");
        let events = self.memory.events();
        let row = events[rows..].iter().find(|event| event.kind == AuditKind::Refusal);
        let row = row.unwrap_or_else(|| panic!("{shown}: no refusal row"));
        assert_eq!(row.rule, code, "{shown}");
        assert!(
            !refusal.next().is_empty() && !refusal.to_string().contains("127.0.0.1"),
            "{shown}"
        );
    }

    /// Waits until a row of a kind is there; outcomes are stored behind the
    /// reply's back.
    pub async fn row(&self, kind: AuditKind) -> AuditEvent {
        // What is queued is stored first, so that no older row is taken for it.
        let _ = self.proxy.anchor().await;
        loop {
            if let Some(event) = self.memory.events().into_iter().rev().find(|e| e.kind == kind) {
                return event;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The vault's key file.
    pub fn key(&self) -> PathBuf {
        self.directory.join("key")
    }

    /// Ends everything, checks the audit's chain and searches once more.
    pub async fn finish(self) {
        self.proxy.stop().await;
        let rows = self.memory.with_rows(|rows| rows.len());
        let verified = self.proxy.verify_audit(&[]).await.expect("the chain holds");
        assert_eq!(
            verified.iter().map(|chain| chain.rows - chain.let_go).sum::<u64>(),
            rows as u64
        );
        self.assert_no_secret();
    }

    /// Nothing that came out holds the secret in any form.
    pub fn assert_no_secret(&self) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let dump = self.memory.dump();
        let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        let hidden = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        for form in hidden.iter().flat_map(|value| forms(value)) {
            for (place, bytes) in
                [("reply", seen.as_slice()), ("store", dump.as_bytes()), ("log", log.as_slice())]
            {
                let found = memchr::memmem::find(bytes, &form).is_some();
                assert!(!found, "the {place} holds {:?}", String::from_utf8_lossy(&form));
            }
        }
        for (place, bytes) in [("reply", seen.as_slice()), ("store", dump.as_bytes())] {
            let decoded = decoded(bytes);
            for value in hidden.iter() {
                let found = memchr::memmem::find(&decoded, value).is_some();
                assert!(!found, "the {place} holds {:?} escaped", String::from_utf8_lossy(value));
            }
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Everything logged in this process, at every level.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn logs() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_writer(|| Log)
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    });
}

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
