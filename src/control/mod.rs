//! The control socket: what the command line and the stdio bridge say to the
//! running server. One JSON line asks, one JSON line answers; after a `bridge`
//! hello the same stream carries MCP instead. The socket is 0600 in a 0700
//! directory, and reaching it decides nothing: acting as an agent takes its
//! token or a person's credential, and every decision takes the latter. Until a
//! passphrase is set it gives the first code away, as the file beside it does.

mod agents;
mod answer;
mod audit;
mod client;
mod proposals;
mod server;
mod watch;

pub(crate) use answer::Front;
pub(crate) use audit::{Audit, AuditAsk};
pub(crate) use client::{Client, ask, ask_with, call};
pub(crate) use server::ControlSocket;

use crate::failure::Failure;
use cambium_engine::{Asked, PersonCredential, ToolName};
use cambium_proxy::{Answer, Exception, Host, Overrides, Scheme};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest request line: a bundle of 2 MiB, escaped, with room.
const REQUEST_BYTES: u64 = 8 * 1024 * 1024;
/// Longest answer line the client takes: a result of 10 MiB, escaped, with room.
const ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// What can be asked.
#[derive(Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Address, process id, whether a passphrase is set.
    Status {},
    /// Sets the passphrase; `who` is the first code or the old passphrase.
    SetPassphrase { who: Person, passphrase: String },
    /// The code that proves a person while no passphrase is set.
    FirstCode {},
    /// A one-time code for a person who is at the command line.
    IssueCode { who: Person },
    /// Every tool's current version, without its source.
    ToolList {},
    /// One version with its source.
    ToolSource { tool: ToolName, version: Option<u32> },
    /// Every version of a tool.
    ToolVersions { tool: ToolName },
    /// As the agent's `find_tool`.
    ToolFind { actor: Actor, query: String },
    /// Into the agent's working set.
    ToolPromote { actor: Actor, tool: ToolName },
    /// Out of it.
    ToolDemote { actor: Actor, tool: ToolName },
    /// A person's publish; promoted for `agent` only if one is named.
    Publish { tool: ToolName, connection: Option<String>, source: String, agent: Option<String> },
    /// A dry run of a module that is not published, as an agent.
    Try { actor: Actor, tool: ToolName, connection: Option<String>, source: String, input: Value },
    /// Publishes what an OpenAPI document describes; `bytes` of it follow the line.
    ImportOpenapi {
        who: Person,
        connection: String,
        base_path: String,
        operations: Vec<String>,
        agent: Option<String>,
        large: bool,
        bytes: usize,
    },
    /// A person's publish of a component; `bytes` of it follow the line.
    PublishComponent {
        tool: ToolName,
        connection: Option<String>,
        manifest: String,
        agent: Option<String>,
        bytes: usize,
    },
    /// One call.
    Call { actor: Actor, tool: ToolName, input: Value, dry_run: bool, timeout_seconds: Option<u64> },
    /// Makes another version the current one.
    Rollback { who: Person, tool: ToolName, version: u32 },
    /// Two versions of a tool, line by line.
    ToolDiff { tool: ToolName, from: u32, to: u32 },
    /// Calls, errors and times by tool, and what each agent's list costs.
    Statistics {},
    /// What the next sweep would do, and when each tool leaves.
    SweepPlan {},
    /// All agents.
    AgentList {},
    /// One agent, its working set and its history.
    AgentShow { agent: String },
    /// A new agent; its token is in the answer, once.
    AgentCreate { who: Person, name: String, cap: u32, idle_days: u32 },
    /// A new token for an agent.
    AgentRotate { who: Person, agent: String },
    /// Changes what is named.
    AgentSet {
        who: Person,
        agent: String,
        name: Option<String>,
        cap: Option<u32>,
        idle_days: Option<u32>,
        paused: Option<bool>,
        in_band: Option<String>,
        low_level: Option<String>,
        /// Hosts whose pages it may read no longer.
        #[serde(default)]
        forget_hosts: Vec<String>,
    },
    /// All connections.
    ConnectionList {},
    /// A new connection with its secret.
    ConnectionAdd { who: Person, connection: Box<Connection>, secret: Option<String> },
    /// One connection, whole.
    ConnectionShow { connection: String },
    /// Lets its tools import a package, bundled into one file.
    SdkAdd {
        who: Person,
        connection: String,
        name: String,
        version: String,
        integrity: String,
        bundle: String,
    },
    /// Takes a package off the list.
    SdkRemove { who: Person, connection: String, name: String },
    /// Changes the policy of one connection, or its secret.
    ConnectionSet {
        who: Person,
        connection: String,
        change: Change,
        secret: Option<String>,
        same_account: bool,
    },
    /// Changes whom a connection is for; nobody named means every agent.
    ConnectionAgents { who: Person, connection: String, agents: Vec<String> },
    /// Takes a connection back.
    ConnectionRevoke { who: Person, connection: String },
    /// Takes a revoke back, with the stored secret or another.
    ConnectionReconnect { who: Person, connection: String, secret: Option<String> },
    /// What agents proposed.
    ProposalList {},
    /// Does what one of them asks for.
    ProposalAccept { who: Person, id: String, accept: Accept, secret: Option<String> },
    /// Says no to one.
    ProposalRefuse { who: Person, id: String },
    /// What waits for the person beside what they have seen: at once, when it
    /// comes, or nothing after a while.
    Watch { seen: Vec<String> },
    /// Every answer that stands.
    StandingList {},
    /// Open asks, then the newest settled ones.
    AskList {},
    /// One ask with the exact request.
    AskShow { ask: String },
    /// A person's answer.
    AskDecide { who: Person, ask: String, answer: Answer },
    /// Puts a question aside: neither yes nor no.
    AskDismiss { who: Person, ask: String },
    /// Takes a standing answer back.
    Withdraw { who: Person, agent: String, tool: ToolName },
    /// Puts each write of a tool to the person, or no longer.
    EveryTime { who: Person, agent: String, tool: ToolName, on: bool },
    /// What would become of a request.
    PolicyExplain {
        tool: ToolName,
        version: Option<u32>,
        asked: Asked,
        overrides: Option<Overrides>,
    },
    /// What other overrides would do to recorded requests of a connection.
    AuditReplay { connection: String, overrides: Overrides },
    /// The newest runs, or the one of this id among them.
    RunList { run: Option<String>, limit: u32 },
    /// Something of the audit.
    Audit { ask: AuditAsk },
    /// A new sealing key, every secret sealed anew.
    VaultRotate { who: Person },
    /// No credential is used, or again.
    VaultLock { who: Person, locked: bool },
    /// A session for a sandbox outside; its token is in the answer, once.
    SandboxOpen { who: Person, agent: String, connection: String, write: bool },
    /// Runs of open sessions.
    SandboxList {},
    /// Closes one.
    SandboxClose { who: Person, run: String },
    /// A backup into a new file, under the person's passphrase.
    Backup { passphrase: String, file: PathBuf },
    /// What follows on this stream is MCP, for the agent of this token.
    Bridge { token: String },
}

impl Request {
    /// Bytes that follow the line.
    fn follows(&self) -> usize {
        match self {
            Self::ImportOpenapi { bytes, .. } | Self::PublishComponent { bytes, .. } => *bytes,
            _ => 0,
        }
    }
}

/// A person's credential, as it crosses the socket.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Person {
    /// The passphrase.
    Passphrase(String),
    /// A one-time code.
    Code(String),
}

impl From<Person> for PersonCredential {
    fn from(person: Person) -> Self {
        match person {
            Person::Passphrase(text) => Self::Passphrase(text),
            Person::Code(text) => Self::Code(text),
        }
    }
}

/// On whose behalf something is done that only an agent does.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Actor {
    /// The agent itself, by its token.
    Token(String),
    /// A person in the agent's place.
    Person {
        /// Id or name.
        agent: String,
        /// Who stands in.
        who: Person,
    },
}

/// A connection to make.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connection {
    /// Unique, kebab-case.
    pub(crate) slug: String,
    /// Vendor half of its tools.
    pub(crate) vendor: String,
    /// What a person calls it.
    pub(crate) display_name: String,
    /// First is primary.
    pub(crate) hosts: Vec<Host>,
    /// How the credential is placed.
    pub(crate) scheme: Scheme,
    /// Private ranges the person allows.
    pub(crate) exceptions: Vec<Exception>,
    /// PEM of its own authority.
    pub(crate) ca_pem: Option<String>,
    /// What differs from the usual policy.
    pub(crate) overrides: Overrides,
    /// Agents it is for, by id or name; empty means all.
    pub(crate) agents: Vec<String>,
}

/// What to change of a connection; what is absent stays.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// Private ranges, whole.
    pub(crate) exceptions: Option<Vec<Exception>>,
    /// What differs from the usual policy, whole.
    pub(crate) overrides: Option<Overrides>,
    /// PEM of its own authority; empty goes back to the public roots.
    pub(crate) ca_pem: Option<String>,
}

/// What a person enters for a proposal.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accept {
    /// Slug; none takes the vendor's, or the next free one.
    pub(crate) slug: Option<String>,
    /// What they call it.
    pub(crate) display_name: Option<String>,
    /// Agents it is for, by id or name; empty means the one that asked.
    pub(crate) agents: Vec<String>,
    /// Every agent may use it.
    pub(crate) all_agents: bool,
    /// Names of the hosts they confirm.
    pub(crate) hosts: Vec<String>,
    /// A credential of the same account: what was allowed stays.
    pub(crate) same_account: bool,
}

/// What is answered.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply {
    /// It was done.
    Ok(Value),
    /// It was not.
    Error(Failure),
    /// Before either, of a call: a person is asked, and it waits.
    Held(Value),
}

/// One line without its end; `None` at the end of the stream.
async fn line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    cap: u64,
) -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let read = reader.take(cap).read_until(b'\n', &mut bytes).await;
    let read = read.map_err(|error| {
        Failure::new("server_gone", format!("the control socket broke: {error}"), "try again")
    })?;
    if read == 0 {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(Failure::new(
            "request_invalid",
            format!("a line on the control socket did not end within {cap} bytes"),
            "send less; a module may have 256 KiB",
        ));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| {
        Failure::new("request_invalid", "a line on the control socket is not UTF-8", "send UTF-8")
    })
}
