//! Connections: made and revoked by a person only. The secret goes straight to
//! the proxy, which seals it; nothing here ever holds it longer than one call.

use crate::agents::taken;
use crate::changes::Topic;
use crate::id::{new_id, secret_hash};
use crate::{ConnectionChange, Engine, EngineError, Event, NewConnection, PersonProof, ToolName};
use cambium_proxy::{
    AgentId, Answer, Connection, ConnectionId, ConnectionStatus, DecisionRow, Endpoint, EntryFault,
    Exception, Host, Overrides, Proxy, Refusal, Scheme, Secret, StoreFault,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Hosts of one connection.
pub(crate) const HOSTS_MAX: usize = 16;
/// Exceptions of one connection.
const EXCEPTIONS_MAX: usize = 16;
/// Longest certificate authority, bytes of PEM.
const CA_BYTES: usize = 64 * 1024;
/// Characters of a display name.
const DISPLAY_CHARS: usize = 80;
/// How often a revoke is tried again when a decision comes between.
const REVOKE_TRIES: usize = 4;

impl Engine {
    /// Only a person makes one: it says where a credential may go. `secret` is
    /// sealed at once and never kept elsewhere.
    pub async fn create_connection(
        &self,
        _proof: &PersonProof,
        new: NewConnection,
        secret: Option<Secret>,
    ) -> Result<Connection, EngineError> {
        let id = ConnectionId::new(new_id(self.now())?);
        self.make_connection(id, new, secret).await
    }

    /// The same under an id that is known beforehand: made again after it was
    /// cut off, it is the same connection, which is brought to its end.
    pub(crate) async fn make_connection(
        &self,
        id: ConnectionId,
        new: NewConnection,
        secret: Option<Secret>,
    ) -> Result<Connection, EngineError> {
        valid(&new)?;
        Proxy::check_secret(&new.scheme, secret.as_ref()).map_err(field)?;
        self.parts.proxy.check_exceptions(&new.exceptions)?;
        for agent in &new.agents {
            self.agent_by_id(agent).await?;
        }
        let now = self.now();
        // A connection that can be used is one whose secret is there.
        let waits = secret.is_some() || new.scheme.needs_sign_in();
        let status = if waits { ConnectionStatus::Pending } else { ConnectionStatus::Connected };
        let mut connection = Connection {
            id,
            person: self.person.clone(),
            slug: new.slug,
            vendor: new.vendor,
            display_name: new.display_name,
            hosts: new.hosts,
            scheme: new.scheme,
            exceptions: new.exceptions,
            ca_pem: new.ca_pem,
            overrides: new.overrides,
            generation: 1,
            status,
        };
        let begun = self.parts.store.find_connection(&self.person, connection.id.as_str()).await?;
        if let Some(begun) = begun.filter(|found| found.id == connection.id) {
            match begun.status {
                ConnectionStatus::Pending => connection = begun,
                ConnectionStatus::Connected => return Ok(begun),
                ConnectionStatus::Revoked => return Err(revoked(&begun)),
            }
        } else if let Err(fault) =
            self.parts.store.insert_connection(&connection, &new.agents, now).await
        {
            let holder = self.parts.store.find_connection(&self.person, &connection.slug).await?;
            let holder = holder.filter(|found| found.status == ConnectionStatus::Revoked);
            return Err(holder.map_or_else(
                || taken(fault, &connection.slug),
                // Its name stays its own: a revoke can be taken back.
                |found| revoked(&found),
            ));
        }
        if let Some(secret) = secret {
            self.parts.proxy.seal(&connection, secret).await?;
            if !connection.scheme.needs_sign_in() {
                self.parts.store.mark_connected(&connection.id, now).await?;
                connection.status = ConnectionStatus::Connected;
            }
        }
        let changes = changes(None, &connection);
        if !changes.is_empty() {
            self.parts.proxy.record_change(&connection, changes).await?;
        }
        self.send(Event::list_changed(self.in_scope(&connection.id).await?));
        Ok(connection)
    }

    /// Changes what a person may change of the policy: the connection gets a
    /// new generation, so pooled sockets are dropped, runs under way end, and
    /// what was allowed *from now on* is asked again.
    pub async fn change_connection(
        &self,
        _proof: &PersonProof,
        id: &ConnectionId,
        change: ConnectionChange,
    ) -> Result<Connection, EngineError> {
        let before = self.connection(id.as_str()).await?;
        let mut after = before.clone();
        if let Some(exceptions) = change.exceptions {
            after.exceptions = exceptions;
        }
        if let Some(overrides) = change.overrides {
            after.overrides = overrides;
        }
        if let Some(ca_pem) = change.ca_pem {
            authority(ca_pem.as_deref())?;
            after.ca_pem = ca_pem;
        }
        if after == before {
            return Ok(before);
        }
        self.usable(&before, None).await?;
        reachable(&after.hosts, &after.exceptions)?;
        self.parts.proxy.check_exceptions(&after.exceptions)?;
        bounded(&after.overrides)?;
        after.scheme.check(&after.exceptions).map_err(field)?;
        after.generation += 1;
        // On record before it holds: a change nobody can read is not made.
        self.parts.proxy.record_change(&after, changes(Some(&before), &after)).await?;
        // Until it is stored: the key it is sealed under must not leave meanwhile.
        let sealing = self.parts.proxy.sealing().await;
        let secret = self.parts.proxy.reseal(&sealing, &before, &after).await?;
        self.parts.store.change_connection(&after, secret.as_ref()).await?;
        drop(sealing);
        self.changed(Topic::Lists);
        Ok(after)
    }

    /// Whom a connection is for; empty means all of the person's agents.
    pub async fn scope_of(&self, connection: &ConnectionId) -> Result<Vec<AgentId>, EngineError> {
        Ok(self.parts.store.scope(connection).await?)
    }

    /// Changes whom a connection is for. An agent that is no longer among them
    /// finds it no more and its calls over it are refused; what was allowed stays
    /// for when it is.
    pub async fn change_scope(
        &self,
        _proof: &PersonProof,
        id: &ConnectionId,
        agents: &[AgentId],
    ) -> Result<(), EngineError> {
        let connection = self.connection(id.as_str()).await?;
        let mut names = Vec::with_capacity(agents.len());
        for agent in agents {
            names.push(self.agent_by_id(agent).await?.name);
        }
        let mut told: BTreeSet<AgentId> = self.in_scope(id).await?.into_iter().collect();
        let whom = match names.is_empty() {
            true => "every agent".to_owned(),
            false => names.join(", "),
        };
        self.parts.proxy.record_change(&connection, vec![format!("now: for {whom}")]).await?;
        self.parts.store.change_scope(id, agents, self.now()).await?;
        told.extend(self.in_scope(id).await?);
        self.send(Event::list_changed(told));
        Ok(())
    }

    /// Puts another secret in the place of a connection's. `same_account` keeps
    /// what was allowed on it; without, the connection gets a new generation and
    /// is asked about again.
    pub async fn enter_secret(
        &self,
        _proof: &PersonProof,
        id: &ConnectionId,
        secret: Secret,
        same_account: bool,
    ) -> Result<Connection, EngineError> {
        let before = self.connection(id.as_str()).await?;
        if before.status == ConnectionStatus::Revoked {
            return Err(revoked(&before));
        }
        Proxy::check_secret(&before.scheme, Some(&secret)).map_err(field)?;
        let mut after = before.clone();
        after.generation += u64::from(!same_account);
        let said = match same_account {
            true => "now: another secret of the same account",
            false => "now: another secret",
        };
        let proxy = &self.parts.proxy;
        proxy.record_change(&after, vec![said.to_owned()]).await?;
        if same_account {
            proxy.seal(&after, secret).await?;
        } else {
            // Until it is stored: the key it is sealed under must not leave meanwhile.
            let sealing = proxy.sealing().await;
            let sealed = proxy.seal_for(&sealing, &after, &secret)?;
            self.parts.store.change_connection(&after, Some(&sealed)).await?;
            drop(sealing);
        }
        self.credential_entered(&after.id).await?;
        self.changed(Topic::Lists);
        Ok(after)
    }

    /// Takes a revoke back: with the stored secret or another one, under a new
    /// generation. The tools it took out of working sets return; what was
    /// allowed does not.
    pub async fn reconnect_connection(
        &self,
        _proof: &PersonProof,
        id: &ConnectionId,
        secret: Option<Secret>,
    ) -> Result<Connection, EngineError> {
        let before = self.connection(id.as_str()).await?;
        if before.status != ConnectionStatus::Revoked {
            let reason = "is not revoked; there is nothing to take back".to_owned();
            return Err(EngineError::ArgumentInvalid { name: before.slug, reason });
        }
        if let Some(secret) = &secret {
            Proxy::check_secret(&before.scheme, Some(secret)).map_err(field)?;
        }
        let mut after = before.clone();
        after.generation += 1;
        after.status = match before.scheme.needs_sign_in() {
            true => ConnectionStatus::Pending,
            false => ConnectionStatus::Connected,
        };
        let proxy = &self.parts.proxy;
        proxy.record_change(&after, vec!["now: reconnected".to_owned()]).await?;
        let sealing = proxy.sealing().await;
        let sealed = match secret {
            Some(secret) => Some(proxy.seal_for(&sealing, &after, &secret)?),
            None => proxy.reseal(&sealing, &before, &after).await?,
        };
        let now = self.now();
        let returned = self.parts.store.reconnect_connection(&after, sealed.as_ref(), now).await;
        drop(sealing);
        let mut agents: BTreeSet<AgentId> = self.in_scope(id).await?.into_iter().collect();
        agents.extend(returned?.back.into_iter().map(|(agent, _)| agent));
        self.send(Event::list_changed(agents));
        Ok(after)
    }

    /// All connections by slug, revoked ones included.
    pub async fn connections(&self) -> Result<Vec<Connection>, EngineError> {
        Ok(self.parts.store.connections(&self.person).await?)
    }

    /// By id or slug.
    pub async fn connection(&self, id_or_slug: &str) -> Result<Connection, EngineError> {
        let found = self.parts.store.find_connection(&self.person, id_or_slug).await?;
        found.ok_or_else(|| EngineError::ConnectionNotFound(id_or_slug.chars().take(64).collect()))
    }

    /// By id or slug, as an agent may name it: one outside its scope reads as
    /// none, so that names cannot be tried out.
    pub(crate) async fn connection_for(
        &self,
        agent: &AgentId,
        named: &str,
    ) -> Result<Connection, EngineError> {
        let found = self.parts.store.find_connection(&self.person, named).await?;
        // Asked for a name nobody has too: the answers take the same time.
        let id = found.as_ref().map_or_else(|| ConnectionId::new(named), |found| found.id.clone());
        let scope = self.parts.store.scope(&id).await?;
        let within = scope.is_empty() || scope.contains(agent);
        found
            .filter(|_| within)
            .ok_or_else(|| EngineError::ConnectionNotFound(named.chars().take(64).collect()))
    }

    /// Takes a connection back: its tools leave every working set at once and
    /// its standing answers are withdrawn by new rows. Nothing else is lost.
    pub async fn revoke_connection(
        &self,
        _proof: &PersonProof,
        id: &ConnectionId,
    ) -> Result<(), EngineError> {
        let connection = self.connection(id.as_str()).await?;
        let scope = self.in_scope(id).await?;
        let _deciding = self.approvals.deciding().await;
        let mut tries = 0;
        let revoked = loop {
            let withdrawals = self.withdrawals(&connection.id).await?;
            let now = self.now();
            match self.parts.store.revoke_connection(id, &withdrawals, now).await {
                Err(StoreFault::Conflict(_)) if tries < REVOKE_TRIES => tries += 1,
                answer => break answer?,
            }
        };
        if revoked.changed {
            let mut agents: BTreeSet<AgentId> = scope.into_iter().collect();
            agents.extend(revoked.left.into_iter().map(|(agent, _)| agent));
            self.send(Event::list_changed(agents));
        }
        Ok(())
    }

    /// A connection that can be used by this agent now.
    pub(crate) async fn usable(
        &self,
        connection: &Connection,
        agent: Option<&AgentId>,
    ) -> Result<(), EngineError> {
        let slug = &connection.slug;
        match connection.status {
            ConnectionStatus::Connected => {}
            ConnectionStatus::Pending => {
                let said = format!("`{slug}` waits for a person to sign in at the vendor's");
                return Err(Refusal::CredentialUnavailable(said).into());
            }
            ConnectionStatus::Revoked => return Err(revoked(connection)),
        }
        if let Some(agent) = agent {
            let scope = self.parts.store.scope(&connection.id).await?;
            if !scope.is_empty() && !scope.contains(agent) {
                let said = format!("`{slug}` is not in this agent's scope");
                return Err(Refusal::ConnectionNotInScope(said).into());
            }
        }
        Ok(())
    }

    /// Which agents may use a connection.
    pub(crate) async fn in_scope(
        &self,
        connection: &ConnectionId,
    ) -> Result<Vec<AgentId>, EngineError> {
        let scope = self.parts.store.scope(connection).await?;
        if !scope.is_empty() {
            return Ok(scope);
        }
        Ok(self.agents().await?.into_iter().map(|agent| agent.id).collect())
    }

    /// Signed withdrawals of every standing yes on a connection.
    async fn withdrawals(&self, on: &ConnectionId) -> Result<Vec<DecisionRow>, EngineError> {
        let mut rows = Vec::new();
        for row in self.parts.store.decisions_on(on).await? {
            if row.answer == Answer::Standing {
                let Ok(tool) = ToolName::parse(&row.tool) else { continue };
                rows.push(self.approvals.withdrawal(row, &tool, "revoke").await?);
            }
        }
        Ok(rows)
    }
}

pub(crate) fn revoked(connection: &Connection) -> EngineError {
    Refusal::ConnectionRevoked(format!("`{}` was revoked", connection.slug)).into()
}

/// `HOST`, `HOST:PORT` or `LABEL=HOST:PORT`.
pub fn read_host(text: &str) -> Option<Host> {
    let (label, rest) = match text.split_once('=') {
        Some((label, rest)) => (Some(label), rest),
        None => (None, text),
    };
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (rest, 443),
    };
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let name = name.to_ascii_lowercase();
    Some(Host { label: label.map_or_else(|| name.clone(), str::to_owned), name, port })
}

/// A scheme from its name and fields. The fault is a sentence that names the
/// field.
pub fn read_scheme(
    name: &str,
    fields: Map<String, Value>,
    exceptions: &[Exception],
) -> Result<Scheme, String> {
    // Looked at one by one, so that the field at fault is named.
    for (field, value) in fields.iter().filter(|(field, _)| field.ends_with("_url")) {
        let parsed = value.as_str().unwrap_or_default().parse::<Endpoint>();
        parsed.map_err(|why| format!("{field} {why}"))?;
    }
    let mut object = fields.clone();
    object.insert("scheme".into(), name.into());
    let scheme: Scheme =
        serde_json::from_value(object.into()).map_err(|error| error.to_string())?;
    // A scheme without fields takes any in silence.
    let known = serde_json::to_value(&scheme).unwrap_or_default();
    if let Some(field) = fields.keys().find(|field| known.get(field).is_none()) {
        return Err(format!("it has no field `{field}`"));
    }
    scheme.check(exceptions).map_err(|fault| fault.to_string())?;
    Ok(scheme)
}

/// An entry at fault, by its field.
fn field(fault: EntryFault) -> EngineError {
    EngineError::ArgumentInvalid { name: fault.field.to_owned(), reason: fault.reason }
}

/// Everything of a new connection but its secret.
pub(crate) fn valid(new: &NewConnection) -> Result<(), EngineError> {
    let wrong = |name: &str, reason: String| {
        Err(EngineError::ArgumentInvalid { name: name.to_owned(), reason })
    };
    named(&new.slug, &new.vendor)?;
    displayed(&new.display_name)?;
    if new.hosts.is_empty() || new.hosts.len() > HOSTS_MAX {
        return wrong("hosts", format!("must be 1 to {HOSTS_MAX} hosts"));
    }
    reachable(&new.hosts, &new.exceptions)?;
    bounded(&new.overrides)?;
    let mut labels = BTreeSet::new();
    for Host { label, name, port } in &new.hosts {
        if *port == 0 {
            return wrong("hosts", format!("`{name}` needs a port from 1 to 65535"));
        }
        if label.is_empty() || label.len() > 253 || !labels.insert(label) {
            return wrong("hosts", format!("the label of `{name}` is empty, too long or taken"));
        }
    }
    authority(new.ca_pem.as_deref())?;
    new.scheme.check(&new.exceptions).map_err(field)
}

/// Slug and vendor: both become halves of wire names, the slug of `execute__<slug>`.
pub(crate) fn named(slug: &str, vendor: &str) -> Result<(), EngineError> {
    ToolName::new(crate::execute::VENDOR, slug)?;
    ToolName::new(vendor, "x")?;
    if vendor == "execute" {
        let reason = "`execute` is reserved; choose another".into();
        return Err(EngineError::ArgumentInvalid { name: "vendor".into(), reason });
    }
    Ok(())
}

/// What a person calls it.
pub(crate) fn displayed(name: &str) -> Result<(), EngineError> {
    let length = name.chars().count();
    if length == 0 || length > DISPLAY_CHARS || name.chars().any(char::is_control) {
        let reason = format!("must be 1 to {DISPLAY_CHARS} plain characters");
        return Err(EngineError::ArgumentInvalid { name: "displayName".into(), reason });
    }
    Ok(())
}

fn authority(pem: Option<&str>) -> Result<(), EngineError> {
    let Some(pem) = pem else { return Ok(()) };
    let wrong = |reason: String| EngineError::ArgumentInvalid { name: "caPem".into(), reason };
    if pem.len() > CA_BYTES {
        return Err(wrong(format!("must be at most {CA_BYTES} bytes")));
    }
    Proxy::check_authority(pem).map_err(|refusal| wrong(refusal.to_string()))
}

/// Whether the hosts may stand beside these exceptions.
fn reachable(hosts: &[Host], exceptions: &[Exception]) -> Result<(), EngineError> {
    if exceptions.len() > EXCEPTIONS_MAX {
        return Err(EngineError::ArgumentInvalid {
            name: "exceptions".into(),
            reason: format!("must be at most {EXCEPTIONS_MAX}"),
        });
    }
    hosts.iter().try_for_each(|host| Ok(Proxy::check_host(&host.name, exceptions)?))
}

fn bounded(overrides: &Overrides) -> Result<(), EngineError> {
    overrides.check().map_err(|fault| EngineError::ArgumentInvalid {
        name: fault.name.to_owned(),
        reason: fault.reason,
    })
}

/// What differs from the usual, or from before, in words for the audit.
fn changes(before: Option<&Connection>, after: &Connection) -> Vec<String> {
    let words =
        |connection: &Connection| {
            let mut lines = connection.overrides.lines();
            lines.extend(connection.exceptions.iter().map(|exception| {
                format!("{} port {} may be dialled", exception.cidr, exception.port)
            }));
            lines.extend(connection.ca_pem.as_ref().map(|pem| {
                let digest: String =
                    secret_hash(pem).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("certificates of its own authority {digest}")
            }));
            lines
        };
    let (then, now) = (before.map(words).unwrap_or_default(), words(after));
    let added = now.iter().filter(|line| !then.contains(line)).map(|line| format!("now: {line}"));
    let gone = then.iter().filter(|line| !now.contains(line)).map(|l| format!("no longer: {l}"));
    added.chain(gone).collect()
}
