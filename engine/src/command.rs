//! What the engine can be asked, and the shapes it answers with. Wire names
//! are the callers' business.

use crate::{Agent, Diagnostic, MoveCause, ToolName};
use cambium_proxy::{
    AgentId, Answer, AskId, CallSite, ConnectionId, Effect, Exception, Hints, Host, Overrides,
    RunId, Scheme,
};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Whoever holds a valid agent token. Only [`crate::Engine::authenticate`] makes one
/// from a token, at each request; a person stands in by
/// [`crate::Engine::stand_in`], or lets a test runner be it by
/// [`crate::Engine::act_as`].
#[derive(Debug, Clone)]
pub struct Caller {
    pub(crate) agent: Arc<Agent>,
    /// Recorded for what it moves.
    pub(crate) cause: MoveCause,
}

impl Caller {
    /// The agent it is.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Which tool.
    pub tool: ToolName,
    /// Its input; `{}` when omitted.
    pub input: Value,
    /// Reads go, everything else is previewed.
    pub dry_run: bool,
    /// Answer at once, run on.
    pub detached: bool,
    /// Clamped to 1..=300 (detached 1..=3600) and said.
    pub timeout_seconds: Option<u64>,
}

/// The caller's side of a call while it lasts.
#[derive(Debug, Clone)]
pub struct Live {
    /// Cancelled when the caller goes away.
    pub cancel: CancellationToken,
    /// Told of each ask a request of this call is held for.
    pub held: Option<mpsc::UnboundedSender<AskId>>,
    /// The client's own name for this call: the same name, tool and input again
    /// is the same call, and never a second write.
    pub call_id: Option<String>,
}

impl Live {
    /// A caller who only waits.
    pub fn new(cancel: CancellationToken) -> Self {
        Self { cancel, held: None, call_id: None }
    }
}

/// One request of `execute__<connection>`.
#[derive(Debug, Clone)]
pub struct ExecuteRequest {
    /// Slug of the connection.
    pub connection: String,
    /// The method, any case.
    pub method: String,
    /// Path, and query if `query` is not given.
    pub path: String,
    /// Label or name of the host; `None` is the primary.
    pub host: Option<String>,
    /// Put behind the path, encoded.
    pub query: Vec<(String, String)>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body: text as it is, anything else as JSON.
    pub body: Option<Value>,
    /// Reads go, everything else is previewed.
    pub dry_run: bool,
}

/// When a tool leaves an agent's set if nothing happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// The tool.
    pub tool: ToolName,
    /// Milliseconds UTC of the first sweep that may take it is after this.
    pub after_ms: i64,
    /// Why.
    pub cause: MoveCause,
    /// The next sweep takes it.
    pub now: bool,
}

/// What a sweep would do to one agent's set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepPlan {
    /// Which agent.
    pub agent: AgentId,
    /// What a person calls it.
    pub agent_name: String,
    /// Tools in its set.
    pub size: usize,
    /// Its cap.
    pub cap: u32,
    /// A run is in flight: the next sweep leaves it alone.
    pub in_flight: bool,
    /// Soonest first.
    pub leaving: Vec<Leaving>,
}

/// The answer of `find_tool`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindReply {
    /// Best first, at most ten.
    pub hits: Vec<FindHit>,
    /// How many matched in all.
    pub total: usize,
    /// Further names, when the query was a vendor's alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// When nothing matches: at most three names that come nearest by their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// Said when nothing matches: points at acquire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When nothing matches: connections a tool could be acquired against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<String>,
}

/// One hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindHit {
    /// Vendor half.
    pub vendor: String,
    /// Name half.
    pub name: String,
    /// `<vendor>__<name>`.
    pub wire_name: String,
    /// The agent's account.
    pub description: String,
    /// In the calling agent's working set now.
    pub promoted: bool,
    /// Annotation.
    pub read_only_hint: bool,
    /// Annotation.
    pub destructive_hint: bool,
    /// So that run_tool needs no list refresh.
    pub input_schema: Value,
    /// What it returns, if the module says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// It matched only some of the words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// Who publishes.
#[derive(Debug, Clone)]
pub enum Publisher {
    /// An agent: the tool is promoted for it.
    Agent(Caller),
    /// A person, by CLI or import; promoted for the agent they name, if any.
    Person {
        /// Promote for this agent.
        promote_for: Option<AgentId>,
    },
}

/// A module to publish.
#[derive(Debug, Clone)]
pub struct PublishRequest {
    /// Vendor and name.
    pub tool: ToolName,
    /// Id or slug; `None` takes the vendor's only connection.
    pub connection: Option<String>,
    /// The module.
    pub source: String,
}

/// What a publish did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// `<vendor>__<name>`.
    pub tool: String,
    /// The version now current.
    pub version: u32,
    /// Its content hash.
    pub hash: String,
    /// Identical content: nothing was written.
    pub unchanged: bool,
    /// Annotation.
    pub read_only_hint: bool,
    /// Annotation.
    pub destructive_hint: bool,
    /// What it calls.
    pub call_sites: Vec<CallSite>,
    /// The connection it is bound to, by slug.
    pub connection: String,
    /// Promoted for the publishing agent by this publish.
    pub promoted: bool,
    /// Advice of the check.
    pub advice: Vec<Diagnostic>,
}

/// What `read_tool_source` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSource {
    /// `<vendor>__<name>`.
    pub tool: String,
    /// Which version this is.
    pub version: u32,
    /// The current one.
    pub current: u32,
    /// Content hash.
    pub hash: String,
    /// The agent's account.
    pub description: String,
    /// The module as published.
    pub source: String,
    /// Annotations.
    pub hints: Hints,
    /// What it calls.
    pub call_sites: Vec<CallSite>,
    /// Input schema.
    pub input_schema: Value,
    /// Output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Milliseconds UTC.
    pub published_ms: i64,
}

/// One of a tool's versions, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionLine {
    /// 1, 2, 3, ….
    pub number: u32,
    /// Content hash.
    pub hash: String,
    /// Milliseconds UTC.
    pub published_ms: i64,
    /// The agent that published it, by name; `None` for the person.
    pub published_by: Option<String>,
    /// Whether it is the one that runs.
    pub current: bool,
}

/// An agent to create.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// Unique per person.
    pub name: String,
    /// 1..=500.
    pub cap: u32,
    /// 1..=3650.
    pub idle_days: u32,
}

/// A connection a person makes. The secret goes to the vault by itself.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// Unique per person, kebab-case.
    pub slug: String,
    /// Vendor half of its tools.
    pub vendor: String,
    /// What a person calls it.
    pub display_name: String,
    /// First is primary.
    pub hosts: Vec<Host>,
    /// How the credential is placed.
    pub scheme: Scheme,
    /// Private ranges a person allows.
    pub exceptions: Vec<Exception>,
    /// PEM of its own certificate authority.
    pub ca_pem: Option<String>,
    /// What a person changed of the policy for it.
    pub overrides: Overrides,
    /// Agents it is in scope for; empty means all of the person's.
    pub agents: Vec<AgentId>,
}

/// A connection an agent proposes, in the words it used.
#[derive(Debug, Clone, Default)]
pub struct WantedConnection {
    /// Vendor half of its tools.
    pub vendor: String,
    /// `HOST`, `HOST:PORT` or `LABEL=HOST:PORT`.
    pub primary_host: String,
    /// Further ones.
    pub hosts: Vec<String>,
    /// Name of the scheme.
    pub scheme: String,
    /// Its fields.
    pub scheme_config: serde_json::Map<String, Value>,
    /// What it is to be called.
    pub display_name: Option<String>,
    /// Where the vendor describes its API.
    pub docs_url: Option<String>,
}

/// What a person enters when they accept a proposed connection.
#[derive(Debug, Clone, Default)]
pub struct Acceptance {
    /// Its slug.
    pub slug: String,
    /// What they call it.
    pub display_name: String,
    /// Agents it is in scope for; empty means all.
    pub agents: Vec<AgentId>,
    /// Names of the hosts they ticked.
    pub confirmed: Vec<String>,
    /// Names of the hosts they typed.
    pub typed: Vec<String>,
}

/// A proposal as a person sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposalView {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: crate::port::ProposalState,
    /// Which agent.
    pub agent: AgentId,
    /// What a person calls it.
    pub agent_name: String,
    /// Where a person answers.
    pub link: String,
    /// What it wants.
    pub wants: Wants,
    /// Milliseconds UTC.
    pub opened_ms: i64,
    /// Milliseconds UTC.
    pub expires_ms: i64,
}

/// What a proposal wants.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Wants {
    /// A new connection.
    Connection {
        /// Vendor half of its tools.
        vendor: String,
        /// The agent's name for it.
        display_name: String,
        /// Every host, those of the scheme's fields included.
        hosts: Vec<crate::HostView>,
        /// How the credential is placed.
        scheme: Box<Scheme>,
        /// The agent's account of where the API is described.
        docs_url: Option<String>,
        /// A slug that is free.
        slug: String,
        /// What would differ from the usual policy: known of the vendor.
        overrides: Box<Overrides>,
    },
    /// A credential, again.
    Credential {
        /// The connection as it stands.
        connection: Box<cambium_proxy::Connection>,
        /// The agent's words.
        reason: String,
    },
    /// To be allowed something.
    Permission {
        /// What.
        permission: crate::port::Permission,
        /// The connection it is about, if it is about one.
        connection: Option<Box<cambium_proxy::Connection>>,
    },
}

/// An answer of a person that stands until they change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StandingAnswer {
    /// Which agent.
    pub agent: AgentId,
    /// What a person calls it.
    pub agent_name: String,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// Standing, deny, or a *once* that nothing was sent with yet.
    pub answer: Answer,
    /// The ask it answered.
    pub ask: AskId,
    /// Method, host, path and query of the one request a *once* is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The first of its body, or of its digest. Foreign text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Slug of the connection it was given for.
    pub connection_slug: String,
    /// `console`, `cli` or `elicitation`.
    pub channel: String,
    /// Milliseconds UTC.
    pub at_ms: i64,
}

/// What a person changes of a connection; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionChange {
    /// Private ranges allowed.
    pub exceptions: Option<Vec<Exception>>,
    /// What differs from the usual policy, whole.
    pub overrides: Option<Overrides>,
    /// PEM of its own authority; `Some(None)` goes back to the public roots.
    pub ca_pem: Option<Option<String>>,
}

/// A tool in a working set, as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkingSetEntry {
    /// The tool.
    pub tool: ToolName,
    /// What put it there.
    pub promoted_by: MoveCause,
    /// Milliseconds UTC.
    pub promoted_ms: i64,
    /// The last use since any promotion, if there was one.
    pub last_used_ms: Option<i64>,
}

/// One move, as the History card shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The tool.
    pub tool: ToolName,
    /// True for in, false for out.
    pub promoted: bool,
    /// Why.
    pub cause: MoveCause,
    /// Milliseconds UTC.
    pub at_ms: i64,
}

/// A question to a person, as the console and the terminal show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskView {
    /// Its id.
    pub id: AskId,
    /// `open`, `allowed_standing`, `allowed_once`, `denied`, `expired`, `superseded`,
    /// `dismissed`.
    pub state: String,
    /// What became of a *once*: `unused`, `used`, `ended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once: Option<&'static str>,
    /// What tells it from its kin in a list: the first of the body, or of the
    /// digest. Foreign text, as long as 72 characters.
    pub excerpt: String,
    /// Which agent.
    pub agent: AgentId,
    /// What a person calls it.
    pub agent_name: String,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// Version number.
    pub version: u32,
    /// The agent's account of the tool.
    pub description: String,
    /// Why it is asked: first call, republished, connection changed.
    pub reason: String,
    /// What changed in the code since the version that was last answered for,
    /// as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Connection id.
    pub connection: ConnectionId,
    /// Connection slug.
    pub connection_slug: String,
    /// Write or destroy.
    pub effect: Effect,
    /// Upper-case method.
    pub method: String,
    /// Host as on the wire.
    pub authority: String,
    /// Path and query as on the wire.
    pub target: String,
    /// Headers as on the wire, without the credential.
    pub headers: Vec<(String, String)>,
    /// The body as text, when it is UTF-8.
    pub body: Option<String>,
    /// Its length in bytes.
    pub body_bytes: usize,
    /// Digest over the wire bytes, hexadecimal.
    pub digest: String,
    /// What *from now on* would cover.
    pub call_sites: Vec<CallSite>,
    /// Whether *from now on* can be given.
    pub can_stand: bool,
    /// The run that waits now, if one does.
    pub waiting_run: Option<RunId>,
    /// Milliseconds UTC.
    pub opened_ms: i64,
    /// Milliseconds UTC.
    pub expires_ms: i64,
}

/// A person's answer.
#[derive(Debug, Clone)]
pub struct DecideRequest {
    /// The ask.
    pub ask: AskId,
    /// Standing, once or deny.
    pub answer: Answer,
    /// `console` or `cli`; what a harness passed on is recorded as `elicitation`.
    pub channel: String,
}
