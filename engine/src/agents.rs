//! Agents: who calls, their tokens, and what a person sets for each. A token is
//! shown once and stored as its hash; every request is authenticated anew.

use crate::changes::Topic;
use crate::command::Caller;
use crate::id::{new_id, new_token, secret_hash};
use crate::rule::SetLimits;
use crate::{Agent, Engine, EngineError, MoveCause, NewAgent, PersonProof};
use cambium_proxy::{AgentId, StoreFault};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Characters of an agent's name.
const NAME_CHARS: usize = 64;
/// Longest token looked at, bytes.
const TOKEN_BYTES: usize = 256;

/// When each agent called last. For a person who connects a harness; nothing is
/// decided by it, so it is kept nowhere else.
#[derive(Default)]
pub(crate) struct Seen(Mutex<HashMap<AgentId, i64>>);

impl Seen {
    /// True for the first time.
    fn note(&self, agent: &AgentId, now_ms: i64) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get_mut(agent) {
            Some(at) => {
                *at = now_ms;
                false
            }
            None => seen.insert(agent.clone(), now_ms).is_none(),
        }
    }

    fn of(&self, agent: &AgentId) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(agent).copied()
    }
}

impl Engine {
    /// The agent of a token.
    pub async fn authenticate(&self, token: &str) -> Result<Caller, EngineError> {
        if token.is_empty() || token.len() > TOKEN_BYTES {
            return Err(EngineError::Unauthenticated);
        }
        let agent = self.parts.store.agent_of_token(&secret_hash(token)).await?;
        let agent = agent.ok_or(EngineError::Unauthenticated)?;
        if self.seen.note(&agent.id, self.now()) {
            self.changed(Topic::Lists);
        }
        Ok(Caller { agent: Arc::new(agent), cause: MoveCause::Agent })
    }

    /// When an agent's token last came with a request, since this server started;
    /// milliseconds UTC.
    pub fn last_seen(&self, agent: &AgentId) -> Option<i64> {
        self.seen.of(agent)
    }

    /// A person in an agent's place: what it calls runs as that agent's and asks
    /// as that agent's would, what it moves is recorded as the person's.
    pub async fn stand_in(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
    ) -> Result<Caller, EngineError> {
        let agent = Arc::new(self.agent_by_id(agent).await?);
        Ok(Caller { agent, cause: MoveCause::Person })
    }

    /// The agent itself, without its token: what a server a person started so
    /// takes a request that carries none for. Read anew at each request.
    pub async fn act_as(&self, _: &PersonProof, agent: &AgentId) -> Result<Caller, EngineError> {
        let agent = Arc::new(self.agent_by_id(agent).await?);
        Ok(Caller { agent, cause: MoveCause::Agent })
    }

    /// Answers the agent and its token, shown once.
    pub async fn create_agent(
        &self,
        _proof: &PersonProof,
        new: NewAgent,
    ) -> Result<(Agent, String), EngineError> {
        let limits = SetLimits::new(new.cap, new.idle_days)?;
        let now = self.now();
        let agent = Agent {
            id: AgentId::new(new_id(now)?),
            person: self.person.clone(),
            name: named(&new.name)?,
            cap: limits.cap(),
            idle_days: limits.idle_days(),
            paused: false,
            created_ms: now,
        };
        let token = new_token()?;
        self.parts
            .store
            .insert_agent(&agent, &secret_hash(&token))
            .await
            .map_err(|fault| taken(fault, &agent.name))?;
        self.changed(Topic::Lists);
        Ok((agent, token))
    }

    /// A new token; the old one is refused from now on.
    pub async fn rotate_token(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
    ) -> Result<String, EngineError> {
        self.agent_by_id(agent).await?;
        let token = new_token()?;
        self.parts.store.rotate_token(agent, &secret_hash(&token), self.now()).await?;
        Ok(token)
    }

    /// Changes what is given and answers the agent as it then is.
    pub async fn set_agent(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
        name: Option<String>,
        cap: Option<u32>,
        idle_days: Option<u32>,
        paused: Option<bool>,
    ) -> Result<Agent, EngineError> {
        let mut agent = self.agent_by_id(agent).await?;
        if let Some(name) = name {
            agent.name = named(&name)?;
        }
        let limits =
            SetLimits::new(cap.unwrap_or(agent.cap), idle_days.unwrap_or(agent.idle_days))?;
        (agent.cap, agent.idle_days) = (limits.cap(), limits.idle_days());
        agent.paused = paused.unwrap_or(agent.paused);
        self.parts.store.update_agent(&agent).await.map_err(|fault| taken(fault, &agent.name))?;
        if agent.paused {
            // What is held for a person sends nothing any more; its ask stays.
            self.flights.stop(&agent.id);
        }
        self.changed(Topic::Lists);
        Ok(agent)
    }

    /// By id or name.
    pub async fn agent(&self, id_or_name: &str) -> Result<Agent, EngineError> {
        let agents = self.agents().await?;
        let named = |agent: &Agent| agent.id.as_str() == id_or_name || agent.name == id_or_name;
        agents
            .into_iter()
            .find(named)
            .ok_or_else(|| EngineError::AgentNotFound(id_or_name.chars().take(64).collect()))
    }

    /// All agents, oldest first.
    pub async fn agents(&self) -> Result<Vec<Agent>, EngineError> {
        Ok(self.parts.store.agents(&self.person).await?)
    }

    pub(crate) async fn agent_by_id(&self, id: &AgentId) -> Result<Agent, EngineError> {
        let agent = self.parts.store.agent(id).await?;
        agent.ok_or_else(|| EngineError::AgentNotFound(id.as_str().chars().take(64).collect()))
    }
}

impl Caller {
    /// Refuses for an agent a person paused.
    pub(crate) fn active(&self) -> Result<(), EngineError> {
        if self.agent.paused {
            return Err(EngineError::AgentPaused(self.agent.name.clone()));
        }
        Ok(())
    }
}

fn named(text: &str) -> Result<String, EngineError> {
    let name = text.trim();
    let length = name.chars().count();
    if length == 0 || length > NAME_CHARS || name.chars().any(char::is_control) {
        return Err(EngineError::OutOfRange {
            name: "the agent's name",
            value: name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect(),
            rule: "1 to 64 characters without control characters",
        });
    }
    Ok(name.to_owned())
}

/// A unique name that is taken is the asker's to change; the rest is ours.
pub(crate) fn taken(fault: StoreFault, name: &str) -> EngineError {
    match fault {
        StoreFault::Conflict(_) => EngineError::Taken(name.to_owned()),
        StoreFault::Unavailable(_) | StoreFault::Corrupt(_) => EngineError::Store(fault),
    }
}
