//! Connections: made and revoked by a person only. The secret goes straight to
//! the proxy, which seals it; nothing here ever holds it longer than one call.

use crate::agents::taken;
use crate::id::new_id;
use crate::{ConnectionChange, Engine, EngineError, Event, NewConnection, PersonProof, ToolName};
use cambium_proxy::{
    AgentId, Answer, Connection, ConnectionId, ConnectionStatus, DecisionRow, EntryFault,
    Exception, Host, Overrides, Proxy, Refusal, Secret,
};
use std::collections::BTreeSet;

/// Hosts of one connection.
const HOSTS_MAX: usize = 16;
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
        valid(&new, secret.as_ref())?;
        self.parts.proxy.check_exceptions(&new.exceptions)?;
        for agent in &new.agents {
            self.agent_by_id(agent).await?;
        }
        let now = self.now();
        // A connection that can be used is one whose secret is there.
        let waits = secret.is_some() || new.scheme.needs_sign_in();
        let status = if waits { ConnectionStatus::Pending } else { ConnectionStatus::Connected };
        let mut connection = Connection {
            id: ConnectionId::new(new_id(now)?),
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
        self.parts
            .store
            .insert_connection(&connection, &new.agents, now)
            .await
            .map_err(|fault| taken(fault, &connection.slug))?;
        if let Some(secret) = secret {
            self.parts.proxy.seal(&connection, secret).await?;
            if !connection.scheme.needs_sign_in() {
                self.parts.store.mark_connected(&connection.id).await?;
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
        self.usable(&before, None).await?;
        let mut after = before.clone();
        if let Some(exceptions) = change.exceptions {
            after.exceptions = exceptions;
        }
        if let Some(overrides) = change.overrides {
            after.overrides = overrides;
        }
        if after == before {
            return Ok(before);
        }
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
                Err(cambium_proxy::StoreFault::Conflict(_)) if tries < REVOKE_TRIES => tries += 1,
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
            ConnectionStatus::Revoked => {
                return Err(Refusal::ConnectionRevoked(format!("`{slug}` was revoked")).into());
            }
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

/// An entry at fault, by its field.
fn field(fault: EntryFault) -> EngineError {
    EngineError::ArgumentInvalid { name: fault.field.to_owned(), reason: fault.reason }
}

fn valid(new: &NewConnection, secret: Option<&Secret>) -> Result<(), EngineError> {
    let wrong = |name: &str, reason: String| {
        Err(EngineError::ArgumentInvalid { name: name.to_owned(), reason })
    };
    // both become halves of wire names, the slug of `execute__<slug>`
    ToolName::new(crate::execute::VENDOR, &new.slug)?;
    ToolName::new(&new.vendor, "x")?;
    if new.vendor == "execute" {
        return wrong("vendor", "`execute` is reserved; choose another".into());
    }
    let length = new.display_name.chars().count();
    if length == 0 || length > DISPLAY_CHARS || new.display_name.chars().any(char::is_control) {
        return wrong("displayName", format!("must be 1 to {DISPLAY_CHARS} plain characters"));
    }
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
    if new.ca_pem.as_ref().is_some_and(|pem| pem.len() > CA_BYTES) {
        return wrong("caPem", format!("must be at most {CA_BYTES} bytes"));
    }
    if let Some(Err(refusal)) = new.ca_pem.as_deref().map(Proxy::check_authority) {
        return wrong("caPem", refusal.to_string());
    }
    new.scheme.check(&new.exceptions).map_err(field)?;
    Proxy::check_secret(&new.scheme, secret).map_err(field)
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
            lines
        };
    let (then, now) = (before.map(words).unwrap_or_default(), words(after));
    let added = now.iter().filter(|line| !then.contains(line)).map(|line| format!("now: {line}"));
    let gone = then.iter().filter(|line| !now.contains(line)).map(|l| format!("no longer: {l}"));
    added.chain(gone).collect()
}
