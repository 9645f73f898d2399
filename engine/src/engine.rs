//! The engine's front door: every command a harness, a person or the ticker
//! can give, each handed to the file that carries it out.

use crate::{
    Agent, AskView, CallRequest, Caller, CheckReport, DecideRequest, EngineError, Envelope, Event,
    FindReply, HistoryEntry, ListedTool, Live, NewAgent, NewConnection, PublishRequest, Published,
    Publisher, ToolName, ToolSource, Version, WorkingSetEntry,
};
use crate::{Checker, Sandbox, port::Store};
use crate::{PersonCredential, PersonProof};
use cambium_proxy::{AgentId, AskId, Clock, Connection, ConnectionId, Proxy, Vault};
use std::sync::Arc;
use tokio::sync::broadcast;

/// What the engine is built from.
pub struct Parts {
    /// Name of this node: its runs end as lost when it starts anew.
    pub node: String,
    /// The database.
    pub store: Arc<dyn Store>,
    /// The only way out.
    pub proxy: Arc<Proxy>,
    /// Signs and checks versions, pointers and decisions.
    pub vault: Arc<Vault>,
    /// Runs modules.
    pub sandbox: Arc<dyn Sandbox>,
    /// Reads modules without running them.
    pub checker: Arc<dyn Checker>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What a person set.
    pub settings: Settings,
}

/// What a person can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the console is reached, for links: `http://127.0.0.1:7171`.
    pub console_url: String,
    /// How long a call waits for a person.
    pub wait_budget: std::time::Duration,
}

/// Everything a call means.
pub struct Engine {}

#[allow(clippy::unused_async, missing_docs, clippy::todo, unused_variables)]
impl Engine {
    /// Joins the parts: makes the person on first start, ends the runs this
    /// node lost, and starts the ticker. [`Self::drain`] stops it again.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, EngineError> {
        todo!()
    }
    // who calls
    pub async fn authenticate(&self, token: &str) -> Result<Caller, EngineError> {
        todo!()
    }
    /// A person in an agent's place: what it calls runs as that agent's, what it
    /// moves is recorded as the person's.
    pub async fn stand_in(
        &self,
        proof: &PersonProof,
        agent: &AgentId,
    ) -> Result<Caller, EngineError> {
        todo!()
    }
    // what an agent does
    pub async fn tool_list(&self, caller: &Caller) -> Result<Vec<ListedTool>, EngineError> {
        todo!()
    }
    pub async fn call(&self, caller: &Caller, request: CallRequest, live: Live) -> Envelope {
        todo!()
    }
    pub async fn find_tool(&self, caller: &Caller, query: &str) -> Result<FindReply, EngineError> {
        todo!()
    }
    /// Answers the set's new size and the tool's schema.
    pub async fn promote(
        &self,
        caller: &Caller,
        tool: &ToolName,
    ) -> Result<(usize, ListedTool), EngineError> {
        todo!()
    }
    /// Answers the set's new size.
    pub async fn demote(&self, caller: &Caller, tool: &ToolName) -> Result<usize, EngineError> {
        todo!()
    }
    pub async fn check_tool(&self, source: &str) -> Result<CheckReport, EngineError> {
        todo!()
    }
    pub async fn publish(
        &self,
        publisher: &Publisher,
        request: PublishRequest,
    ) -> Result<Published, EngineError> {
        todo!()
    }
    pub async fn read_tool_source(
        &self,
        tool: &ToolName,
        version: Option<u32>,
    ) -> Result<ToolSource, EngineError> {
        todo!()
    }
    pub fn events(&self) -> broadcast::Receiver<Event> {
        todo!()
    }
    // what a person does
    /// Answers the agent and its token, shown once.
    pub async fn create_agent(
        &self,
        proof: &PersonProof,
        new: NewAgent,
    ) -> Result<(Agent, String), EngineError> {
        todo!()
    }
    /// A new token; the old one is refused from now on.
    pub async fn rotate_token(
        &self,
        proof: &PersonProof,
        agent: &AgentId,
    ) -> Result<String, EngineError> {
        todo!()
    }
    pub async fn set_agent(
        &self,
        agent: &AgentId,
        name: Option<String>,
        cap: Option<u32>,
        idle_days: Option<u32>,
        paused: Option<bool>,
    ) -> Result<Agent, EngineError> {
        todo!()
    }
    /// By id or name.
    pub async fn agent(&self, id_or_name: &str) -> Result<Agent, EngineError> {
        todo!()
    }
    pub async fn agents(&self) -> Result<Vec<Agent>, EngineError> {
        todo!()
    }
    pub async fn working_set(&self, agent: &AgentId) -> Result<Vec<WorkingSetEntry>, EngineError> {
        todo!()
    }
    pub async fn history(&self, agent: &AgentId) -> Result<Vec<HistoryEntry>, EngineError> {
        todo!()
    }
    /// `secret` is sealed at once and never kept elsewhere.
    pub async fn create_connection(
        &self,
        new: NewConnection,
        secret: Option<cambium_proxy::Secret>,
    ) -> Result<Connection, EngineError> {
        todo!()
    }
    pub async fn connections(&self) -> Result<Vec<Connection>, EngineError> {
        todo!()
    }
    /// By id or slug.
    pub async fn connection(&self, id_or_slug: &str) -> Result<Connection, EngineError> {
        todo!()
    }
    pub async fn revoke_connection(
        &self,
        proof: &PersonProof,
        id: &ConnectionId,
    ) -> Result<(), EngineError> {
        todo!()
    }
    /// Every tool's current version, by wire name.
    pub async fn tools(&self) -> Result<Vec<Version>, EngineError> {
        todo!()
    }
    /// Open ones first, then the newest settled, at most 200.
    pub async fn asks(&self) -> Result<Vec<AskView>, EngineError> {
        todo!()
    }
    pub async fn ask(&self, id: &AskId) -> Result<AskView, EngineError> {
        todo!()
    }
    pub async fn decide(
        &self,
        proof: &PersonProof,
        request: DecideRequest,
    ) -> Result<AskView, EngineError> {
        todo!()
    }
    /// Withdraws the standing answer of an agent for a tool.
    pub async fn withdraw(
        &self,
        proof: &PersonProof,
        agent: &AgentId,
        tool: &ToolName,
    ) -> Result<(), EngineError> {
        todo!()
    }
    // who decides
    /// True until a passphrase is set.
    pub async fn needs_setup(&self) -> Result<bool, EngineError> {
        todo!()
    }
    /// A one-time code (ten minutes, single use) for the server's terminal, its
    /// 0600 file, or, from a proved person, for the command line.
    pub async fn issue_code(&self) -> Result<String, EngineError> {
        todo!()
    }
    /// Checks a passphrase or redeems a code. Slow on purpose; counts failures.
    pub async fn prove_person(
        &self,
        credential: PersonCredential,
    ) -> Result<PersonProof, EngineError> {
        todo!()
    }
    pub async fn set_passphrase(
        &self,
        proof: &PersonProof,
        passphrase: PersonCredential,
    ) -> Result<(), EngineError> {
        todo!()
    }
    /// Opens a console session; answers its token, stored hashed.
    pub async fn open_session(&self, proof: &PersonProof) -> Result<String, EngineError> {
        todo!()
    }
    /// The proof of a console session: not fresh.
    pub async fn session(&self, token: &str) -> Result<PersonProof, EngineError> {
        todo!()
    }
    pub async fn close_session(&self, token: &str) -> Result<(), EngineError> {
        todo!()
    }
    // the ticker
    /// One sweep over all agents; answers how many tools were demoted.
    pub async fn sweep(&self) -> Result<usize, EngineError> {
        todo!()
    }
    /// Stops admitting, waits for runs up to `grace`, cancels the rest.
    pub async fn drain(&self, grace: std::time::Duration) {
        todo!()
    }
}
