//! What an agent may ask a person for: a connection to make, a credential to
//! enter again, something to be allowed (`permissions.rs`). An agent gets a link; it locates and never authorises, is
//! signed, names its agent and is good for an hour. What comes of it is made by
//! the person, with the functions of `connections`.

use crate::changes::Topic;
use crate::connections::{HOSTS_MAX, displayed, named, read_host, read_scheme, revoked, valid};
use crate::domain::{HostView, look, spoken_of};
use crate::id::new_proposal_id;
use crate::port::{AskState, Permission, Proposal, ProposalRow, ProposalState};
use crate::{
    Acceptance, AskRef, Caller, Engine, EngineError, Envelope, Event, Faults, NewConnection,
    PersonProof, ProposalView, Status, WantedConnection, Wants,
};
use cambium_proxy::{
    Connection, ConnectionId, ConnectionStatus, ContentHash, Host, Overrides, Proxy, Scheme, Secret,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How long a link is good for, milliseconds.
const LIFE_MS: i64 = 60 * 60 * 1000;
/// Proposals of one agent that may wait for the person.
const OPEN_MAX: usize = 8;
/// How long a refusal is told to an agent that proposes the same, milliseconds.
const REFUSED_MS: i64 = 24 * 60 * 60 * 1000;
/// How long after it was entered a credential is not asked for anew, milliseconds.
const ENTERED_MS: i64 = 10 * 60 * 1000;
/// Proposals shown at once.
const SHOWN: u32 = 100;
/// Characters of an agent's reason.
const REASON_CHARS: usize = 500;
/// Bytes of a documentation address.
const DOCS_BYTES: usize = 512;
/// Hexadecimal digits of a link's signature: 128 bits.
const SIGNATURE_DIGITS: usize = 32;

impl Engine {
    /// An agent proposes a connection. Answers the link to give to the person;
    /// the same proposal again gets the same one, then `connected`.
    pub async fn propose_connection(
        &self,
        caller: &Caller,
        wanted: WantedConnection,
    ) -> Result<Envelope, EngineError> {
        self.propose_as_read(caller, wanted, Faults::default()).await
    }

    /// The same of what was not all there to be read: what was found at fault is
    /// told together with what is found here, and nothing is proposed.
    pub async fn propose_as_read(
        &self,
        caller: &Caller,
        wanted: WantedConnection,
        found: Faults,
    ) -> Result<Envelope, EngineError> {
        caller.active()?;
        let proposal = proposed(wanted, found)?;
        let Proposal::Connection { vendor, hosts, scheme, .. } = &proposal else {
            return Err(argument("vendor", "names no connection"));
        };
        let same =
            |c: &&Connection| c.vendor == *vendor && c.hosts == *hosts && c.scheme == **scheme;
        for found in self.connections().await?.iter().filter(same) {
            let scope = self.in_scope(&found.id).await?;
            if !scope.contains(&caller.agent.id) {
                continue;
            }
            match found.status {
                ConnectionStatus::Connected => return Ok(connected(found)),
                ConnectionStatus::Pending => return self.want_credential(caller, found, "").await,
                // A person took it back; they may make it anew.
                ConnectionStatus::Revoked => {}
            }
        }
        let what = serde_json::to_vec(&(vendor, hosts, scheme)).unwrap_or_default();
        let digest = digest(&[b"connection", &what]);
        self.propose(caller, digest, proposal, None).await
    }

    /// An agent asks for the credential of a connection again.
    pub async fn propose_credential(
        &self,
        caller: &Caller,
        connection: &str,
        reason: &str,
    ) -> Result<Envelope, EngineError> {
        caller.active()?;
        let connection = self.connection_for(&caller.agent.id, connection).await?;
        if connection.status == ConnectionStatus::Revoked {
            return Err(revoked(&connection));
        }
        if connection.status == ConnectionStatus::Connected {
            self.usable(&connection, Some(&caller.agent.id)).await?;
        }
        if !connection.scheme.takes_secret() && !connection.scheme.needs_sign_in() {
            return Err(argument("connectionId", "names a connection without a credential"));
        }
        if reason.chars().count() > REASON_CHARS {
            let rule = format!("must be at most {REASON_CHARS} characters");
            return Err(argument("reason", &rule));
        }
        self.want_credential(caller, &connection, reason).await
    }

    async fn want_credential(
        &self,
        caller: &Caller,
        connection: &Connection,
        reason: &str,
    ) -> Result<Envelope, EngineError> {
        let digest = digest(&[b"credential", connection.id.as_str().as_bytes()]);
        let proposal = Proposal::Credential { reason: reason.to_owned() };
        self.propose(caller, digest, proposal, Some(connection)).await
    }

    pub(crate) async fn propose(
        &self,
        caller: &Caller,
        digest: ContentHash,
        proposal: Proposal,
        about: Option<&Connection>,
    ) -> Result<Envelope, EngineError> {
        let _alone = self.proposing.lock().await;
        let (store, now, agent) = (&self.parts.store, self.now(), &caller.agent);
        if let Some(newest) = store.newest_proposal(&agent.id, &digest).await? {
            let settled = newest.settled_ms.unwrap_or(newest.opened_ms);
            match newest.state {
                ProposalState::Open if newest.expires_ms > now => {
                    return Ok(awaiting(&newest, self.link(&newest)));
                }
                ProposalState::Open => {
                    self.settle_proposal(&newest.id, ProposalState::Expired, None).await?;
                }
                ProposalState::Refused if now - settled < REFUSED_MS => {
                    return Err(EngineError::ProposalRefused(said(&proposal, about)));
                }
                ProposalState::Accepted if entered(&proposal) && now - settled < ENTERED_MS => {
                    return Ok(about.map(connected).unwrap_or_else(|| Envelope::of(Status::Ok)));
                }
                ProposalState::Refused | ProposalState::Accepted | ProposalState::Expired => {}
            }
        }
        let open = store.proposals(&self.person, SHOWN).await?;
        let waits = |row: &&ProposalRow| {
            row.state == ProposalState::Open && row.expires_ms > now && row.agent == agent.id
        };
        let open = open.iter().filter(waits).count();
        if open >= OPEN_MAX {
            return Err(EngineError::ProposalsFull(open));
        }
        let row = ProposalRow {
            id: new_proposal_id()?,
            person: self.person.clone(),
            agent: agent.id.clone(),
            digest,
            proposal,
            connection: about.map(|connection| connection.id.clone()),
            state: ProposalState::Open,
            opened_ms: now,
            expires_ms: now + LIFE_MS,
            settled_ms: None,
        };
        store.insert_proposal(&row).await?;
        self.send(Event::Proposed(row.id.clone()));
        Ok(awaiting(&row, self.link(&row)))
    }

    /// How many asks and proposals wait for the person.
    pub async fn waiting(&self) -> Result<usize, EngineError> {
        let (store, now) = (&self.parts.store, self.now());
        let asks = store.asks(&self.person, SHOWN).await?;
        let asks = asks.iter().filter(|ask| ask.state == AskState::Open && ask.expires_ms > now);
        let proposals = store.proposals(&self.person, SHOWN).await?;
        let open = |row: &&ProposalRow| row.state == ProposalState::Open && row.expires_ms > now;
        Ok(asks.count() + proposals.iter().filter(open).count())
    }

    /// What waits for the person, then what was answered.
    pub async fn proposals(&self) -> Result<Vec<ProposalView>, EngineError> {
        let rows = self.parts.store.proposals(&self.person, SHOWN).await?;
        let mut views = Vec::with_capacity(rows.len());
        for row in rows {
            views.push(self.proposal_view(row).await?);
        }
        Ok(views)
    }

    /// One, by the end of its link, or by its id where a person typed it.
    pub async fn proposal(&self, link: &str) -> Result<ProposalView, EngineError> {
        let row = self.proposal_row(link).await?;
        self.proposal_view(row).await
    }

    /// Makes the proposed connection as the person confirmed it.
    pub async fn accept_connection(
        &self,
        _proof: &PersonProof,
        link: &str,
        acceptance: Acceptance,
        secret: Option<Secret>,
    ) -> Result<Connection, EngineError> {
        let _alone = self.proposing.lock().await;
        let row = self.open_row(link).await?;
        let Wants::Connection { vendor, hosts, scheme, overrides, .. } =
            self.proposal_view(row.clone()).await?.wants
        else {
            return Err(argument("proposal", "asks for no connection"));
        };
        let Proposal::Connection { hosts: own, .. } = row.proposal else {
            return Err(argument("proposal", "asks for no connection"));
        };
        confirm(&hosts, &acceptance)?;
        let new = NewConnection {
            slug: acceptance.slug,
            vendor,
            display_name: acceptance.display_name,
            hosts: own,
            scheme: *scheme,
            exceptions: Vec::new(),
            ca_pem: None,
            overrides: *overrides,
            agents: acceptance.agents,
        };
        // Its id is the proposal's: accepted again after a crash between the two,
        // it is the same connection.
        let made = self.make_connection(ConnectionId::new(&row.id), new, secret).await?;
        self.settle_proposal(&row.id, ProposalState::Accepted, Some(&made.id)).await?;
        Ok(made)
    }

    /// Enters the credential that was asked for.
    pub async fn accept_credential(
        &self,
        proof: &PersonProof,
        link: &str,
        secret: Secret,
        same_account: bool,
    ) -> Result<Connection, EngineError> {
        let row = self.open_row(link).await?;
        let connection = match (row.proposal, row.connection) {
            (Proposal::Credential { .. }, Some(connection)) => connection,
            _ => return Err(argument("proposal", "asks for no credential")),
        };
        self.enter_secret(proof, &connection, secret, same_account).await
    }

    /// Says no; the agent is told, and told again for a day.
    pub async fn refuse_proposal(
        &self,
        _proof: &PersonProof,
        link: &str,
    ) -> Result<(), EngineError> {
        let _alone = self.proposing.lock().await;
        let row = self.open_row(link).await?;
        self.settle_proposal(&row.id, ProposalState::Refused, None).await
    }

    /// Settles what asked for the credential of a connection: it was entered.
    pub(crate) async fn credential_entered(&self, id: &ConnectionId) -> Result<(), EngineError> {
        let _alone = self.proposing.lock().await;
        for row in self.parts.store.proposals(&self.person, SHOWN).await? {
            let about = matches!(row.proposal, Proposal::Credential { .. })
                && row.connection.as_ref() == Some(id);
            if about && row.state == ProposalState::Open {
                self.settle_proposal(&row.id, ProposalState::Accepted, None).await?;
            }
        }
        Ok(())
    }

    /// Settles a proposal, and tells who shows it.
    pub(crate) async fn settle_proposal(
        &self,
        id: &str,
        to: ProposalState,
        connection: Option<&ConnectionId>,
    ) -> Result<(), EngineError> {
        self.parts.store.settle_proposal(id, to, connection, self.now()).await?;
        self.changed(Topic::Asks);
        Ok(())
    }

    pub(crate) async fn open_row(&self, link: &str) -> Result<ProposalRow, EngineError> {
        let row = self.proposal_row(link).await?;
        let state = match row.state {
            ProposalState::Open if row.expires_ms > self.now() => return Ok(row),
            ProposalState::Open | ProposalState::Expired => "expired",
            ProposalState::Accepted => "accepted",
            ProposalState::Refused => "refused",
        };
        Err(EngineError::AskSettled { ask: row.id, state: state.to_owned() })
    }

    async fn proposal_row(&self, link: &str) -> Result<ProposalRow, EngineError> {
        let unknown = || EngineError::ProposalNotFound(link.chars().take(64).collect());
        let (id, signature) = match link.split_once('-') {
            Some((id, signature)) => (id, Some(signature)),
            None => (link, None),
        };
        let row = self.parts.store.proposal(id).await?;
        let row = row.filter(|row| row.person == self.person).ok_or_else(unknown)?;
        // An id alone comes from a person's own list; a link has to be whole.
        match signature {
            Some(signature) if signature != self.signature(&row) => Err(unknown()),
            _ => Ok(row),
        }
    }

    async fn proposal_view(&self, row: ProposalRow) -> Result<ProposalView, EngineError> {
        let agent = self.agent_by_id(&row.agent).await?;
        let link = self.link(&row);
        let wants = match row.proposal {
            Proposal::Permission(permission) => {
                let connection = match &row.connection {
                    Some(id) => Some(Box::new(self.connection(id.as_str()).await?)),
                    None => None,
                };
                Wants::Permission { permission, connection }
            }
            Proposal::Credential { reason } => {
                let id = row.connection.as_ref().map_or("", ConnectionId::as_str);
                Wants::Credential { connection: Box::new(self.connection(id).await?), reason }
            }
            Proposal::Connection { vendor, display_name, hosts, scheme, docs_url } => {
                let slug = self.free_slug(&vendor).await?;
                let known = spoken_of(&vendor, &display_name);
                let overrides = known
                    .filter(|preset| hosts.iter().all(|host| preset.knows(&host.name)))
                    .map_or_else(Overrides::default, |preset| preset.policy.clone());
                let overrides = Box::new(overrides);
                let hosts = looked_at(&vendor, &display_name, &hosts, &scheme);
                Wants::Connection { vendor, display_name, hosts, scheme, docs_url, slug, overrides }
            }
        };
        let state = match row.state {
            ProposalState::Open if row.expires_ms <= self.now() => ProposalState::Expired,
            state => state,
        };
        Ok(ProposalView {
            id: row.id,
            state,
            agent: row.agent,
            agent_name: agent.name,
            link,
            wants,
            opened_ms: row.opened_ms,
            expires_ms: row.expires_ms,
        })
    }

    async fn free_slug(&self, vendor: &str) -> Result<String, EngineError> {
        let taken: Vec<String> = self.connections().await?.into_iter().map(|c| c.slug).collect();
        let numbered = (2..).map(|number| format!("{vendor}-{number}"));
        let mut slugs = std::iter::once(vendor.to_owned()).chain(numbered);
        Ok(slugs.find(|slug| !taken.contains(slug)).unwrap_or_default())
    }

    fn link(&self, row: &ProposalRow) -> String {
        let console = self.parts.settings.console_url.trim_end_matches('/');
        format!("{console}/handoff/{}-{}", row.id, self.signature(row))
    }

    fn signature(&self, row: &ProposalRow) -> String {
        let expires = row.expires_ms.to_be_bytes();
        let fields: [&[u8]; 3] = [row.id.as_bytes(), row.agent.as_str().as_bytes(), &expires];
        let mac = self.parts.vault.mac("handoff", &fields);
        let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.chars().take(SIGNATURE_DIGITS).collect()
    }
}

/// Reads what an agent wants, strictly; tells everything that is wrong with it at
/// once, beside what was found before.
fn proposed(wanted: WantedConnection, mut faults: Faults) -> Result<Proposal, EngineError> {
    faults.kept("vendor", named(&wanted.vendor, &wanted.vendor));
    // Counted before they are looked at, each beside all the others.
    if wanted.hosts.len() >= HOSTS_MAX {
        let rule = format!("must be fewer than {HOSTS_MAX} beside the primary one");
        faults.kept::<()>("hosts", Err(argument("hosts", &rule)));
    }
    let mut hosts = Vec::with_capacity(HOSTS_MAX);
    let texts = std::iter::once(("primaryHost", &wanted.primary_host));
    let others = wanted.hosts.iter().take(HOSTS_MAX).map(|text| ("hosts", text));
    for (name, text) in texts.chain(others) {
        let host = read_host(text)
            .ok_or_else(|| argument(name, "must be HOST or HOST:PORT, without a scheme or a path"));
        let host = host.and_then(|host| {
            Proxy::check_host(&host.name, &[])?;
            Ok(host)
        });
        hosts.extend(faults.kept(name, host).filter(|host| !hosts.contains(host)));
    }
    // Without a scheme nothing can be said of its fields.
    let scheme = match faults.names("scheme") {
        true => None,
        false => match read_scheme(&wanted.scheme, wanted.scheme_config, &[]) {
            Ok(scheme) => Some(scheme),
            Err(why) => {
                let known = !why.contains("unknown variant");
                let name = if known { "schemeConfig" } else { "scheme" };
                faults.kept(name, Err(argument(name, &why)))
            }
        },
    };
    if let Some(name) = &wanted.display_name {
        faults.kept("displayName", displayed(name));
    }
    if let Some(docs) = &wanted.docs_url
        && (docs.len() > DOCS_BYTES || !docs.starts_with("https://"))
    {
        let rule = format!("must be an https address of at most {DOCS_BYTES} bytes");
        faults.kept::<()>("docsUrl", Err(argument("docsUrl", &rule)));
    }
    faults.end()?;
    let Some(scheme) = scheme else { return Err(argument("scheme", "is no scheme")) };
    let display_name = wanted.display_name.unwrap_or_else(|| wanted.vendor.clone());
    let new = NewConnection {
        slug: wanted.vendor,
        vendor: String::new(),
        display_name,
        hosts,
        scheme,
        exceptions: Vec::new(),
        ca_pem: None,
        overrides: Overrides::default(),
        agents: Vec::new(),
    };
    let new = NewConnection { vendor: new.slug.clone(), ..new };
    valid(&new)?;
    Ok(Proposal::Connection {
        vendor: new.vendor,
        display_name: new.display_name,
        hosts: new.hosts,
        scheme: Box::new(new.scheme),
        docs_url: wanted.docs_url,
    })
}

/// Every host a credential or a token would go to or come from.
fn looked_at(vendor: &str, said: &str, hosts: &[Host], scheme: &Scheme) -> Vec<HostView> {
    let known = spoken_of(vendor, said);
    let primary = hosts.first().map_or("", |host| host.name.as_str());
    let see = |name: &str, port, used_for: &str| look((name, port), used_for, primary, known);
    let mut seen: Vec<_> =
        hosts.iter().map(|host| see(&host.name, host.port, "requests")).collect();
    let fields = serde_json::to_value(scheme).unwrap_or_default();
    for (field, value) in fields.as_object().into_iter().flatten() {
        let url = value.as_str().filter(|_| field.ends_with("_url")).unwrap_or_default();
        let authority = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
        if let Some(host) = authority.and_then(read_host) {
            seen.push(see(&host.name, host.port, field));
        }
    }
    seen
}

/// Each host ticked by the person, and typed where there is something to look
/// at twice.
fn confirm(hosts: &[HostView], acceptance: &Acceptance) -> Result<(), EngineError> {
    for host in hosts {
        let typed = acceptance.typed.contains(&host.name);
        if !typed && !host.flags.is_empty() {
            let why = format!("`{}` has to be typed: {}", host.name, host.flags.join("; "));
            return Err(argument("hosts", &why));
        }
        if !typed && !acceptance.confirmed.contains(&host.name) {
            return Err(argument("hosts", &format!("`{}` was not confirmed", host.name)));
        }
    }
    Ok(())
}

fn said(proposal: &Proposal, about: Option<&Connection>) -> String {
    match (proposal, about) {
        (Proposal::Credential { .. }, about) => {
            format!("the credential of `{}`", about.map_or("", |found| found.slug.as_str()))
        }
        (Proposal::Permission(Permission::ReadPages { host }), _) => format!("pages of {host}"),
        (Proposal::Permission(Permission::MakeTools { .. }), about) => {
            format!("tools made against `{}`", about.map_or("", |found| found.slug.as_str()))
        }
        (Proposal::Connection { vendor, hosts, .. }, _) => {
            format!("`{vendor}` at {}", hosts.first().map_or("", |host| host.name.as_str()))
        }
    }
}

/// Whether a yes was an entry that the agent may only not have seen yet.
fn entered(proposal: &Proposal) -> bool {
    match proposal {
        Proposal::Credential { .. } => true,
        Proposal::Connection { .. } | Proposal::Permission(_) => false,
    }
}

fn connected(connection: &Connection) -> Envelope {
    let hosts: Vec<&str> = connection.hosts.iter().map(|host| host.name.as_str()).collect();
    Envelope {
        result: Some(json!({
            "connected": true,
            "connectionId": connection.id,
            "slug": connection.slug,
            "vendor": connection.vendor,
            "hosts": Value::from(hosts),
        })),
        ..Envelope::of(Status::Ok)
    }
}

fn awaiting(row: &ProposalRow, link: String) -> Envelope {
    let (status, next) = match row.proposal {
        Proposal::Connection { .. } => (
            Status::AwaitingConnection,
            "give the person the link: they check the hosts and enter the secret there, never \
             here; then propose the same again, and it answers `connected`",
        ),
        Proposal::Credential { .. } => (
            Status::AwaitingCredential,
            "give the person the link: they enter the credential there, never here; then make \
             the call again that failed",
        ),
        Proposal::Permission(_) => (
            Status::AwaitingApproval,
            "give the person the link; once they have allowed it, make the same call again",
        ),
    };
    let ask = AskRef { id: row.id.clone(), link, expires_ms: row.expires_ms };
    Envelope { ask: Some(ask), next: Some(next.to_owned()), ..Envelope::of(status) }
}

pub(crate) fn digest(parts: &[&[u8]]) -> ContentHash {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    ContentHash(hash.finalize().into())
}

fn argument(name: &str, reason: &str) -> EngineError {
    EngineError::ArgumentInvalid { name: name.to_owned(), reason: reason.to_owned() }
}
