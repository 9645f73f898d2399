//! Every way the engine says no: a stable code, one sentence, the next step,
//! and whether trying again can help. What an operator's log keeps beside it is
//! in the `tracing` events where the error is made.

use cambium_proxy::{Refusal, StoreFault};

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// No such tool in the person's toolbox.
    #[error("no tool `{0}` is in the toolbox")]
    ToolNotFound(String),
    /// No such version of it.
    #[error("`{tool}` has no version {version}")]
    VersionNotFound {
        /// Wire name.
        tool: String,
        /// The number asked for.
        version: u32,
    },
    /// No such connection, by id or slug.
    #[error("no connection `{0}`")]
    ConnectionNotFound(String),
    /// No such agent.
    #[error("no agent `{0}`")]
    AgentNotFound(String),
    /// No such ask.
    #[error("no ask `{0}`")]
    AskNotFound(String),
    /// No such proposal, or a link that is not one of ours.
    #[error("no proposal `{0}`")]
    ProposalNotFound(String),
    /// A person refused what is proposed.
    #[error("the person refused: {0}")]
    ProposalRefused(String),
    /// Too many proposals wait for the person.
    #[error("{0} proposals of this agent wait for the person already")]
    ProposalsFull(usize),
    /// No such detached run of this agent.
    #[error("no run `{0}` of this agent can be collected")]
    RunNotFound(String),
    /// A person paused the agent.
    #[error("the agent `{0}` is paused")]
    AgentPaused(String),
    /// An ask that was already decided or expired.
    #[error("ask `{ask}` was already settled: {state}")]
    AskSettled {
        /// The ask.
        ask: String,
        /// How it was settled.
        state: String,
    },
    /// A half of a name broke a rule.
    #[error("`{name}` is not a tool name: {rule}")]
    NameInvalid {
        /// The name at fault.
        name: String,
        /// The rule it broke.
        rule: &'static str,
    },
    /// Input missed the schema; every failing path with its rule.
    #[error("the input does not fit the schema: {}", .0.join("; "))]
    InputInvalid(Vec<String>),
    /// An argument is unknown, missing or of the wrong type.
    #[error("argument `{name}`: {reason}")]
    ArgumentInvalid {
        /// The argument at fault.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is no WebAssembly component that a tool can be.
    #[error("the component was refused: {0}")]
    ComponentRefused(String),
    /// This server has nothing that runs components.
    #[error("{0}")]
    ComponentsUnavailable(String),
    /// The check found errors; publishing did nothing.
    #[error("the module does not pass the check: {}", first_of(.0))]
    CheckFailed(Vec<crate::Diagnostic>),
    /// The dry run before a publish failed; holds its answer.
    #[error("the module passes the check, but its dry run failed; nothing was published")]
    DryRunFailed(Box<serde_json::Value>),
    /// An OpenAPI document, or an operation of one, cannot be used.
    #[error("the document cannot be used: {0}")]
    DocumentRefused(String),
    /// No such job of acquire of this agent.
    #[error("no job `{0}` of this agent")]
    JobNotFound(String),
    /// Nobody can write a tool for this connection.
    #[error("nobody is there to write a tool for `{0}`")]
    AcquireUnconfigured(String),
    /// The token is unknown, revoked or missing.
    #[error("the agent token is not valid")]
    Unauthenticated,
    /// A person's credential is wrong or missing.
    #[error("the person's credential is not valid")]
    PersonRequired,
    /// A slug or name is taken.
    #[error("`{0}` is taken")]
    Taken(String),
    /// A value outside its range.
    #[error("{name} must be {rule}, not {value}")]
    OutOfRange {
        /// What it is.
        name: &'static str,
        /// The value at fault.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// The proxy refused.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The run ended without a result; `code` is the outcome's name.
    #[error("{message}")]
    RunFailed {
        /// `tool_error`, `timeout`, `cpu_limit`, ….
        code: &'static str,
        /// One sentence.
        message: String,
    },
    /// Too many runs at once.
    #[error("too many runs at once")]
    Busy,
    /// The connection no longer lists a package as the version was built with it.
    #[error("`{tool}` imports {sdk}, which its connection no longer lists")]
    SdkNotListed {
        /// Wire name.
        tool: String,
        /// `name@version`.
        sdk: String,
    },
    /// The store could not answer.
    #[error("{0}")]
    Store(#[from] StoreFault),
    /// The checker or the sandbox could not be started.
    #[error("{0}")]
    SandboxUnavailable(String),
}

/// The first error, and how many there are; all of them are in the details.
fn first_of(found: &[crate::Diagnostic]) -> String {
    let mut errors = found.iter().filter(|found| found.severity == crate::Severity::Error);
    let first = errors.next().map(crate::Diagnostic::summary).unwrap_or_default();
    match errors.count() {
        0 => first,
        more => format!("{} errors, the first: {first}", more + 1),
    }
}

impl EngineError {
    /// Stable snake_case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ToolNotFound(_) => "tool_not_found",
            Self::VersionNotFound { .. } => "version_not_found",
            Self::ConnectionNotFound(_) => "connection_not_found",
            Self::AgentNotFound(_) => "agent_not_found",
            Self::AskNotFound(_) => "ask_not_found",
            Self::ProposalNotFound(_) => "proposal_not_found",
            Self::ProposalRefused(_) => "proposal_refused",
            Self::ProposalsFull(_) => "proposals_full",
            Self::RunNotFound(_) => "run_not_found",
            Self::AgentPaused(_) => "agent_paused",
            Self::AskSettled { .. } => "ask_settled",
            Self::NameInvalid { .. } => "name_invalid",
            Self::InputInvalid(_) => "input_invalid",
            Self::ArgumentInvalid { .. } => "argument_invalid",
            Self::ComponentRefused(_) => "component_refused",
            Self::ComponentsUnavailable(_) => "components_unavailable",
            Self::CheckFailed(_) => "check_failed",
            Self::DocumentRefused(_) => "document_refused",
            Self::JobNotFound(_) => "job_not_found",
            Self::AcquireUnconfigured(_) => "acquire_unconfigured",
            Self::DryRunFailed(_) => "dry_run_failed",
            Self::Unauthenticated => "unauthenticated",
            Self::PersonRequired => "person_required",
            Self::Taken(_) => "taken",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Refused(refusal) => refusal.code(),
            Self::RunFailed { code, .. } => code,
            Self::Busy => "busy",
            Self::SdkNotListed { .. } => "sdk_not_listed",
            Self::Store(_) => "store_unavailable",
            Self::SandboxUnavailable(_) => "sandbox_unavailable",
        }
    }

    /// The next step, for an agent or a person.
    pub fn next(&self) -> String {
        match self {
            Self::ToolNotFound(_) => {
                "call find_tool to search the toolbox, or acquire to have it authored".into()
            }
            Self::VersionNotFound { .. } => "call read_tool_source without a version".into(),
            Self::ConnectionNotFound(_) => {
                "use the id or slug of a connection, or call request_connection".into()
            }
            Self::AgentNotFound(_) => "list the agents with `cambium agents list`".into(),
            Self::AskNotFound(_) => "list the open asks with `cambium approvals list`".into(),
            Self::ProposalNotFound(_) => {
                "open the console: what waits is listed there; a link is good for an hour".into()
            }
            Self::ProposalRefused(_) => {
                "do not propose it again; ask the person what they would rather".into()
            }
            Self::ProposalsFull(_) => "wait until the person has answered some".into(),
            Self::RunNotFound(_) => "use the `run` a detached call answered".into(),
            Self::AgentPaused(_) => "ask the person to resume it in the console".into(),
            Self::AskSettled { .. } => "nothing to do; the first decision stands".into(),
            Self::NameInvalid { .. } => {
                "use kebab-case: lower-case letters, digits and single hyphens".into()
            }
            Self::InputInvalid(_) => "correct the named values and call again".into(),
            Self::ArgumentInvalid { .. } => "correct the argument and call again".into(),
            Self::ComponentRefused(_) => {
                "make a component that exports `run: func(input: string) -> result<string, \
                 string>` and imports WASI 0.2 only; docs/components.md shows how"
                    .into()
            }
            Self::ComponentsUnavailable(_) => {
                "build the binary with `./dev components`, put it beside `cambium` or name it as \
                 `components` in the configuration, and start the server again"
                    .into()
            }
            Self::CheckFailed(_) => "correct the module and check it again".into(),
            Self::JobNotFound(_) => "use the `jobId` an acquire of yours answered".into(),
            Self::AcquireUnconfigured(_) => {
                "write the module yourself: check_tool, then publish_tool; or ask the person to \
                 import the vendor's OpenAPI document (`cambium import openapi`), or to configure \
                 a model (`[author]`)"
                    .into()
            }
            Self::DocumentRefused(_) => {
                "correct the document, or choose other operations, and import it again".into()
            }
            Self::DryRunFailed(_) => {
                "read details: correct the module or testInput, and publish again".into()
            }
            Self::Unauthenticated => "pass the token `cambium agents create` showed".into(),
            Self::PersonRequired => {
                "give the passphrase, or a code from `cambium code`; before the first passphrase, run \
                 `cambium setup`, or `cambium code` for another first code"
                    .into()
            }
            Self::Taken(_) => "choose another name".into(),
            Self::OutOfRange { .. } => "choose a value in the range".into(),
            Self::Refused(refusal) => refusal.next().into(),
            Self::RunFailed { code, .. } => match *code {
                "timeout" => "raise timeoutSeconds, or ask the vendor for less".into(),
                "output_limit" => "return or print less, or write it to a file".into(),
                "page_unreadable" => "look for the same as a page of text".into(),
                "cancelled" => "call again if it is still wanted".into(),
                "tool_error" => "read the message; read_tool_source shows the code".into(),
                _ => "read the tool's source and publish a corrected version".into(),
            },
            Self::Busy => "wait for a run to end, then call again".into(),
            Self::SdkNotListed { .. } => "publish the tool again with what the connection lists \
                now, or ask the person to list that version again"
                .into(),
            Self::Store(_) | Self::SandboxUnavailable(_) => {
                "call again later; if it stays, run `cambium doctor`".into()
            }
        }
    }

    /// Whether the same call can succeed later without a change.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.retryable(),
            Self::Busy | Self::Store(_) | Self::SandboxUnavailable(_) => true,
            Self::RunFailed { code, .. } => *code == "timeout",
            Self::ToolNotFound(_)
            | Self::VersionNotFound { .. }
            | Self::ConnectionNotFound(_)
            | Self::AgentNotFound(_)
            | Self::AskNotFound(_)
            | Self::ProposalNotFound(_)
            | Self::ProposalRefused(_)
            | Self::ProposalsFull(_)
            | Self::RunNotFound(_)
            | Self::AgentPaused(_)
            | Self::AskSettled { .. }
            | Self::NameInvalid { .. }
            | Self::InputInvalid(_)
            | Self::ArgumentInvalid { .. }
            | Self::ComponentRefused(_)
            | Self::ComponentsUnavailable(_)
            | Self::CheckFailed(_)
            | Self::DryRunFailed(_)
            | Self::SdkNotListed { .. }
            | Self::DocumentRefused(_)
            | Self::JobNotFound(_)
            | Self::AcquireUnconfigured(_)
            | Self::Unauthenticated
            | Self::PersonRequired
            | Self::Taken(_)
            | Self::OutOfRange { .. } => false,
        }
    }
}
