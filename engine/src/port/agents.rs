//! Agents and the hashes of their tokens.

use super::{Answering, SecretHash};
use crate::Agent;
use cambium_proxy::{AgentId, PersonId};

/// Keeps agents.
pub trait AgentStore: Send + Sync {
    /// Creates an agent with its first token. Conflict when the person has an
    /// agent of that name.
    fn insert_agent<'a>(&'a self, agent: &'a Agent, token: &'a SecretHash) -> Answering<'a, ()>;
    /// Writes name, cap, idle days and paused. Conflict when the name is taken.
    fn update_agent<'a>(&'a self, agent: &'a Agent) -> Answering<'a, ()>;
    /// One agent.
    fn agent<'a>(&'a self, id: &'a AgentId) -> Answering<'a, Option<Agent>>;
    /// All agents of a person, oldest first.
    fn agents<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Agent>>;
    /// The agent of a token that is not revoked.
    fn agent_of_token<'a>(&'a self, token: &'a SecretHash) -> Answering<'a, Option<Agent>>;
    /// Revokes every token of the agent and adds this one.
    fn rotate_token<'a>(
        &'a self,
        agent: &'a AgentId,
        token: &'a SecretHash,
        now_ms: i64,
    ) -> Answering<'a, ()>;
}
