//! The parts of the proxy, joined: admits runs, opens sessions, seals secrets.

mod rotate;

pub use rotate::Rotated;

use crate::address::metadata_in;
use crate::approval::{self, About};
use crate::audit::writer::Writer;
use crate::audit::{AuditEvent, segment, verify};
use crate::credential::{self, Consent, Credential, Errand};
use crate::gauge::Gauge;
use crate::resolve;
use crate::upstream;
use crate::upstream::{Network, Tasks, Upstream};
use crate::{
    AgentId, Anchor, ApprovalSource, AskRecord, AuditBreak, AuditSink, Clock, CommandRecord,
    Connection, ConnectionId, ConnectionSource, ConnectionStatus, ContentHash, Desk, EntryFault,
    Exception, Grant, Hints, Limits, PersonId, Refusal, Resolve, Scheme, SealedSecret, Secret,
    SecretStore, Session, SessionSpec, StoreFault, Vault, VerifiedChain,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, OwnedRwLockReadGuard, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a proxy is built from.
pub struct ProxyParts {
    /// Name of this node's audit chain.
    pub node: String,
    /// Opened vault.
    pub vault: Arc<Vault>,
    /// Where audit rows go.
    pub audit: Arc<dyn AuditSink>,
    /// Where decisions are read.
    pub approvals: Arc<dyn ApprovalSource>,
    /// Where connections are read anew before a write.
    pub connections: Arc<dyn ConnectionSource>,
    /// Where sealed secrets are.
    pub secrets: Arc<dyn SecretStore>,
    /// Where addresses of hosts come from; `SystemResolver` unless a test injects answers.
    pub resolver: Arc<dyn Resolve>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Limits of every session.
    pub limits: Limits,
    /// Our own listeners, never dialled.
    pub own_addresses: Vec<SocketAddr>,
}

/// What is asked at admission.
#[derive(Debug)]
pub struct Admission<'a> {
    /// Whose toolbox.
    pub person: &'a PersonId,
    /// Which agent.
    pub agent: &'a AgentId,
    /// `<vendor>__<name>`.
    pub tool: &'a str,
    /// The pinned version.
    pub version: &'a ContentHash,
    /// The connection as it stands.
    pub connection: &'a Connection,
    /// The version's hints.
    pub hints: Hints,
    /// Reads go, everything else is previewed.
    pub dry_run: bool,
    /// Each write asks for itself.
    pub each: bool,
}

/// No rotation of the sealing key begins while one of these lives.
#[derive(Debug)]
pub struct Sealing {
    _held: OwnedRwLockReadGuard<()>,
}

/// The only way out.
pub struct Proxy {
    shared: Arc<Shared>,
}

/// What the proxy and its sessions share.
pub(crate) struct Shared {
    pub(crate) parts: ProxyParts,
    pub(crate) writer: Writer,
    pub(crate) tasks: Tasks,
    /// Token calls under way; they are let end when the proxy stops, since a
    /// rotated refresh token is worth nothing half redeemed.
    pub(crate) mints: TaskTracker,
    /// Read to walk the audit, written to let rows of it go.
    letting_go: RwLock<()>,
    /// Read to seal a secret, written to rotate the key it is sealed under.
    sealing: Arc<RwLock<()>>,
    network: Network,
    /// The same for token calls, whose sockets outlive the sessions'.
    minting: Network,
    lines: Mutex<HashMap<ConnectionId, Arc<Line>>>,
    /// No credential is lent.
    locked: AtomicBool,
}

/// One state of one connection: its clients and its opened credential. A new
/// generation gets a new one, so no pooled socket and no secret outlives the
/// state it was made for.
pub(crate) struct Line {
    connection: Connection,
    upstream: OnceCell<Upstream>,
    tokens: Option<Result<Upstream, Refusal>>,
    credential: OnceCell<Arc<Credential>>,
    pub(crate) gauge: Gauge,
}

impl Line {
    /// The state it was made for.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The clients of this state, made at first use: they may need its
    /// certificate.
    pub(crate) async fn upstream(&self, shared: &Shared) -> Result<&Upstream, Refusal> {
        let make = || async {
            let identity = self.credential(shared).await?.identity()?;
            Upstream::new(&self.connection, identity, &shared.network)
        };
        self.upstream.get_or_try_init(make).await
    }

    /// The way to its token endpoint.
    pub(crate) fn token_endpoint(&self) -> Result<&Upstream, Refusal> {
        let none = || Refusal::CredentialUnavailable("the scheme has no token endpoint".into());
        self.tokens.as_ref().ok_or_else(none)?.as_ref().map_err(Refusal::clone)
    }

    /// The opened credential; read and opened at first use.
    pub(crate) async fn credential(&self, shared: &Shared) -> Result<Arc<Credential>, Refusal> {
        shared.unlocked(&self.connection)?;
        let open = || async {
            let scheme = &self.connection.scheme;
            let sealed = if scheme.takes_secret() || scheme.needs_sign_in() {
                shared.parts.secrets.secret(&self.connection.id).await
            } else {
                Ok(None)
            };
            credential::open(&shared.parts.vault, &self.connection, sealed).map(Arc::new)
        };
        self.credential.get_or_try_init(open).await.cloned()
    }
}

impl Proxy {
    /// Joins the parts and starts the audit writer.
    pub async fn start(parts: ProxyParts) -> Result<Arc<Self>, StoreFault> {
        let writer =
            Writer::start(parts.node.clone(), parts.vault.clone(), parts.audit.clone()).await?;
        let tasks = Tasks { tracker: TaskTracker::new(), stop: CancellationToken::new() };
        let network = Network {
            resolver: parts.resolver.clone(),
            own: parts.own_addresses.clone().into(),
            limits: parts.limits,
            tasks: tasks.clone(),
        };
        let own = Tasks { tracker: TaskTracker::new(), stop: CancellationToken::new() };
        let minting = Network { tasks: own, ..network.clone() };
        let (lines, mints, sealing) = (Mutex::default(), TaskTracker::new(), Arc::default());
        let (letting_go, locked) = (RwLock::default(), AtomicBool::new(false));
        let shared = Shared {
            parts,
            writer,
            tasks,
            mints,
            letting_go,
            sealing,
            network,
            minting,
            lines,
            locked,
        };
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }

    /// Turns what is stored into a grant. The only place that makes
    /// [`Grant::Write`]. A standing deny is `tool_denied`, dry run or not.
    pub async fn admit(&self, question: Admission<'_>) -> Result<Grant, Refusal> {
        let Admission { person, agent, tool, version, connection, hints, dry_run, each } = question;
        usable(connection.status)?;
        let about = About {
            person,
            agent,
            tool,
            version,
            connection: &connection.id,
            generation: connection.generation,
        };
        let parts = &self.shared.parts;
        // A read-only version may still meet a path a person raised.
        let read_only = hints.read_only && !connection.overrides.raises_reads();
        let wanted = approval::Wanted { read_only, dry_run, each };
        approval::admit(&*parts.approvals, &parts.vault, about, wanted).await
    }

    /// Opens the one session of a run. `desk` is asked when a write is held.
    pub fn open(self: &Arc<Self>, spec: SessionSpec, desk: Arc<dyn Desk>) -> Arc<Session> {
        self.open_for(spec, desk, None)
    }

    /// The same for a run that may make another number of requests than usual.
    pub fn open_for(
        self: &Arc<Self>,
        spec: SessionSpec,
        desk: Arc<dyn Desk>,
        requests: Option<usize>,
    ) -> Arc<Session> {
        let line = self.shared.line(&spec.connection);
        let most = requests.unwrap_or(self.shared.parts.limits.requests);
        Session::new(self.shared.clone(), spec, desk, line, most)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Seals a secret for a connection as it stands and stores it.
    pub async fn seal(&self, connection: &Connection, secret: Secret) -> Result<(), Refusal> {
        let _sealing = self.shared.sealing.read().await;
        let sealed = credential::seal(&self.shared.parts.vault, connection, &secret)?;
        self.shared.store_secret(&sealed).await
    }

    /// The link at which a person signs in, and what is to be kept until their
    /// browser comes back to `redirect_uri`.
    pub fn begin_consent(
        connection: &Connection,
        redirect_uri: &str,
    ) -> Result<(String, Consent), Refusal> {
        credential::begin(connection, redirect_uri)
    }

    /// Redeems the code a browser brought back. With `same_account` the
    /// connection stays as it is and what was got is stored. Without, the
    /// connection's next generation and what is sealed for it are answered, to
    /// be stored in one step: what a person allowed is then asked again.
    pub async fn finish_consent(
        &self,
        _sealing: &Sealing,
        connection: &Connection,
        consent: Consent,
        code: &Secret,
        issuer: Option<&str>,
        same_account: bool,
    ) -> Result<(Connection, Option<SealedSecret>), Refusal> {
        let shared = &self.shared;
        let mut after = connection.clone();
        after.generation += u64::from(!same_account);
        let errand = Errand::of_person(shared.clone(), shared.line(connection));
        let sealed = credential::finish(&errand, &after, consent, code, issuer).await?;
        if !same_account {
            return Ok((after, Some(sealed)));
        }
        shared.store_secret(&sealed).await?;
        Ok((after, None))
    }

    /// Whether a host may be an entry of a connection: a valid public name, or
    /// one the exceptions allow. The error names the rule.
    pub fn check_host(host: &str, exceptions: &[Exception]) -> Result<(), Refusal> {
        resolve::check_host(host, exceptions)
    }

    /// Whether a secret can be one of this scheme. The fault names the field.
    pub fn check_secret(scheme: &Scheme, secret: Option<&Secret>) -> Result<(), EntryFault> {
        credential::check_secret(scheme, secret)
    }

    /// Whether a connection's own authority can be used: PEM with at least one
    /// certificate.
    pub fn check_authority(pem: &str) -> Result<(), Refusal> {
        upstream::check_authority(pem)
    }

    /// Refuses an exception that would reach one of our own listeners or a
    /// metadata service: no exception lifts those, so a person is told when they
    /// write it.
    pub fn check_exceptions(&self, exceptions: &[Exception]) -> Result<(), Refusal> {
        let own = &self.shared.parts.own_addresses;
        let opens = |exception: &Exception, listener: &SocketAddr| {
            let address = listener.ip().to_canonical();
            exception.port == listener.port()
                && (address.is_unspecified() || exception.cidr.contains(&address))
        };
        for exception in exceptions {
            let Exception { cidr, port } = exception;
            if own.iter().any(|listener| opens(exception, listener)) {
                return Err(Refusal::SelfAddress(format!(
                    "{cidr} port {port} holds one of our own listeners, which no connection may reach"
                )));
            }
            if let Some(address) = metadata_in(cidr) {
                return Err(Refusal::AddressDenied(format!(
                    "{cidr} holds {address}, a cloud metadata address, which no connection may reach; \
                     name a narrower range"
                )));
            }
        }
        Ok(())
    }

    /// Records what a person changed of a connection, before it holds.
    pub async fn record_change(
        &self,
        connection: &Connection,
        changes: Vec<String>,
    ) -> Result<(), Refusal> {
        let event = AuditEvent::change(self.shared.parts.clock.now_ms(), connection, changes);
        self.shared.writer.put(event, true).stored().await.map_err(|fault| {
            tracing::error!(%fault, "a change could not be recorded");
            Refusal::AuditUnavailable(
                "the change could not be recorded, nothing was changed".into(),
            )
        })
    }

    /// Records what becomes of an ask without a decision, before it does.
    pub async fn record_ask(&self, said: AskRecord<'_>) -> Result<(), Refusal> {
        let event = AuditEvent::asked(self.shared.parts.clock.now_ms(), said);
        self.shared.writer.put(event, true).stored().await.map_err(|fault| {
            tracing::error!(%fault, "what became of a question could not be recorded");
            Refusal::AuditUnavailable("the question could not be settled".into())
        })
    }

    /// Records an agent's command, before it runs and after it ended.
    pub async fn record_command(&self, said: CommandRecord<'_>) -> Result<(), Refusal> {
        let event = AuditEvent::command(self.shared.parts.clock.now_ms(), said);
        self.shared.writer.put(event, true).stored().await.map_err(|fault| {
            tracing::error!(%fault, "a command could not be recorded");
            Refusal::AuditUnavailable("the command could not be recorded".into())
        })
    }

    /// Keeps the sealing key as it is while this lives: taken before a secret is
    /// resealed, dropped when it is stored.
    pub async fn sealing(&self) -> Sealing {
        Sealing { _held: self.shared.sealing.clone().read_owned().await }
    }

    /// Another secret, sealed for a connection's next state.
    pub fn seal_for(
        &self,
        _sealing: &Sealing,
        after: &Connection,
        secret: &Secret,
    ) -> Result<SealedSecret, Refusal> {
        credential::seal(&self.shared.parts.vault, after, secret)
    }

    /// The secret of a connection, sealed for its next state. `None` when its
    /// scheme has none.
    pub async fn reseal(
        &self,
        _sealing: &Sealing,
        before: &Connection,
        after: &Connection,
    ) -> Result<Option<SealedSecret>, Refusal> {
        if !before.scheme.takes_secret() && !before.scheme.needs_sign_in() {
            return Ok(None);
        }
        let parts = &self.shared.parts;
        let sealed = parts.secrets.secret(&before.id).await;
        credential::reseal(&parts.vault, before, after, sealed, parts.clock.now_ms()).map(Some)
    }

    /// Puts a new sealing key in the vault and seals every secret anew; takes
    /// up a rotation that was cut off.
    pub async fn rotate_vault(&self) -> Result<Rotated, StoreFault> {
        rotate::rotate(&self.shared).await
    }

    /// Lends no credential from here on, to runs under way neither, and drops
    /// those that were opened and their sockets.
    pub fn lock_vault(&self) {
        self.shared.locked.store(true, Ordering::SeqCst);
        self.shared.lines().clear();
    }

    /// Takes that back.
    pub fn unlock_vault(&self) {
        self.shared.locked.store(false, Ordering::SeqCst);
    }

    /// Walks every node's audit chain and holds it against the anchors; answers
    /// what was walked, or the first row that does not hold and why. Without its
    /// anchors a chain that was cut at its end looks whole.
    pub async fn verify_audit(&self, anchors: &[Anchor]) -> Result<Vec<VerifiedChain>, AuditBreak> {
        let parts = &self.shared.parts;
        let _steady = self.shared.letting_go.read().await;
        if let Err(fault) = self.shared.writer.caught_up().await {
            tracing::warn!(%fault, "rows that could not be stored are not judged");
        }
        verify::verify(&parts.vault, &*parts.audit, anchors).await
    }

    /// States how far this node's audit has come.
    pub async fn anchor(&self) -> Result<Anchor, StoreFault> {
        let parts = &self.shared.parts;
        self.shared.writer.caught_up().await?;
        let last = parts.audit.last(&parts.node).await?;
        let (rows, hash) = last.map_or((0, vec![0; 32]), |row| (row.sequence, row.hash));
        Ok(Anchor::sign(&parts.vault, &parts.node, rows, &hash, parts.clock.now_ms()))
    }

    /// Lets this node's audit rows before a time go; a signed segment stands for
    /// them. Answers how many went.
    pub async fn expire_audit(&self, before_ms: i64) -> Result<u64, StoreFault> {
        let parts = &self.shared.parts;
        let now = parts.clock.now_ms();
        let _alone = self.shared.letting_go.write().await;
        self.shared.writer.caught_up().await?;
        segment::expire(&parts.vault, &*parts.audit, &parts.node, before_ms, now).await
    }

    /// Ends what is under way, writes what is queued and stops.
    pub async fn stop(&self) {
        self.shared.tasks.stop.cancel();
        self.shared.tasks.tracker.close();
        self.shared.tasks.tracker.wait().await;
        // Bounded by the deadline of a token call.
        self.shared.mints.close();
        self.shared.mints.wait().await;
        let Tasks { tracker, stop } = &self.shared.minting.tasks;
        stop.cancel();
        tracker.close();
        tracker.wait().await;
        self.shared.writer.stop().await;
    }
}

/// Whether a connection can be used at all.
pub(crate) fn usable(status: ConnectionStatus) -> Result<(), Refusal> {
    match status {
        ConnectionStatus::Connected => Ok(()),
        ConnectionStatus::Pending => Err(Refusal::CredentialUnavailable(
            "a person has yet to sign in at the vendor's".into(),
        )),
        ConnectionStatus::Revoked => {
            Err(Refusal::ConnectionRevoked("the connection was revoked".into()))
        }
    }
}

impl Shared {
    /// What a client of its own is made with.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The line of a connection as it stands; an older state's is dropped.
    fn line(&self, connection: &Connection) -> Arc<Line> {
        let mut lines = self.lines();
        if let Some(line) = lines.get(&connection.id)
            && line.connection == *connection
        {
            return line.clone();
        }
        let endpoint = connection.scheme.token_endpoint();
        let line = Arc::new(Line {
            connection: connection.clone(),
            upstream: OnceCell::new(),
            tokens: endpoint.map(|to| Upstream::to_endpoint(to, connection, &self.minting)),
            credential: OnceCell::new(),
            gauge: Gauge::new(&connection.overrides, &self.parts.limits),
        });
        lines.insert(connection.id.clone(), line.clone());
        line
    }

    /// Whether a connection's credential may be used.
    pub(crate) fn unlocked(&self, connection: &Connection) -> Result<(), Refusal> {
        let scheme = &connection.scheme;
        let lends = scheme.takes_secret() || scheme.needs_sign_in();
        if lends && self.locked.load(Ordering::SeqCst) {
            let why = "a person locked the vault; no credential is used until they unlock it";
            return Err(Refusal::VaultLocked(why.into()));
        }
        Ok(())
    }

    async fn store_secret(&self, sealed: &SealedSecret) -> Result<(), Refusal> {
        self.parts.secrets.put_secret(sealed).await.map_err(|fault| {
            tracing::error!(%fault, "a sealed secret could not be stored");
            Refusal::CredentialUnavailable("the sealed secret could not be stored".into())
        })?;
        self.forget(&sealed.connection);
        Ok(())
    }

    /// Drops what is kept for a connection: its secret or its state changed.
    pub(crate) fn forget(&self, connection: &ConnectionId) {
        self.lines().remove(connection);
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
