//! What a person allowed an agent beside tools and connections, once for each
//! thing: to read pages of a host, to have tools made against a connection. An
//! agent gets a link, as for any proposal; the yes is a signed switch and stands
//! until the person takes it back.

use crate::port::{Permission, Proposal, ProposalState};
use crate::{Caller, Engine, EngineError, Envelope, PersonProof};
use cambium_proxy::{AgentId, Connection};

/// Switches that list what was allowed, as JSON.
const PAGES: &str = "page_hosts";
const BUILDS: &str = "builds";
/// Things of one kind that one agent may be allowed.
const MOST: usize = 200;

impl Engine {
    /// What an agent was allowed, hosts of pages first.
    pub async fn permissions(&self, agent: &AgentId) -> Result<Vec<Permission>, EngineError> {
        let hosts = self.allowed(agent, PAGES).await?;
        let hosts = hosts.into_iter().map(|host| Permission::ReadPages { host });
        let builds = self.allowed(agent, BUILDS).await?;
        let builds = builds.into_iter().map(|connection| Permission::MakeTools { connection });
        Ok(hosts.chain(builds).collect())
    }

    /// Whether it was.
    pub(crate) async fn is_allowed(
        &self,
        agent: &AgentId,
        permission: &Permission,
    ) -> Result<bool, EngineError> {
        let (switch, thing) = stored(permission);
        Ok(self.allowed(agent, switch).await?.iter().any(|one| one == thing))
    }

    /// Asks the person, by a link.
    pub(crate) async fn ask_permission(
        &self,
        caller: &Caller,
        permission: Permission,
        about: Option<&Connection>,
    ) -> Result<Envelope, EngineError> {
        let (switch, thing) = stored(&permission);
        let digest = crate::proposals::digest(&[switch.as_bytes(), thing.as_bytes()]);
        self.propose(caller, digest, Proposal::Permission(permission), about).await
    }

    /// Allows what was asked for.
    pub async fn accept_permission(
        &self,
        _proof: &PersonProof,
        link: &str,
    ) -> Result<(), EngineError> {
        let _alone = self.proposing.lock().await;
        let row = self.open_row(link).await?;
        let Proposal::Permission(permission) = &row.proposal else {
            return Err(EngineError::ArgumentInvalid {
                name: "proposal".into(),
                reason: "asks for something that is entered, not allowed".into(),
            });
        };
        // First what holds: cut off between the two, the question is only asked again.
        let (switch, thing) = stored(permission);
        let mut allowed = self.allowed(&row.agent, switch).await?;
        if !allowed.iter().any(|one| one == thing) {
            if allowed.len() >= MOST {
                return Err(EngineError::ArgumentInvalid {
                    name: "proposal".into(),
                    reason: format!("the agent has {MOST} of them; take one back first"),
                });
            }
            allowed.push(thing.to_owned());
            self.allow(&row.agent, switch, &allowed).await?;
        }
        self.settle_proposal(&row.id, ProposalState::Accepted, None).await
    }

    /// Takes it back. What was never allowed is no error.
    pub async fn withdraw_permission(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
        permission: &Permission,
    ) -> Result<(), EngineError> {
        let _alone = self.proposing.lock().await;
        let (switch, thing) = stored(permission);
        let before = self.allowed(agent, switch).await?;
        let after: Vec<String> = before.iter().filter(|one| *one != thing).cloned().collect();
        match after.len() == before.len() {
            true => Ok(()),
            false => self.allow(agent, switch, &after).await,
        }
    }

    async fn allowed(&self, agent: &AgentId, switch: &str) -> Result<Vec<String>, EngineError> {
        let value = self.switch(agent, switch).await?;
        // A value of another release allows nothing.
        Ok(value.and_then(|value| serde_json::from_str(&value).ok()).unwrap_or_default())
    }

    async fn allow(
        &self,
        agent: &AgentId,
        switch: &str,
        things: &[String],
    ) -> Result<(), EngineError> {
        let value = serde_json::to_string(things).unwrap_or_default();
        self.set_switch(agent, switch, &value).await
    }
}

fn stored(permission: &Permission) -> (&'static str, &str) {
    match permission {
        Permission::ReadPages { host } => (PAGES, host),
        Permission::MakeTools { connection } => (BUILDS, connection),
    }
}
