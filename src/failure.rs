//! How a command ends when it does not succeed: a stable code, one sentence,
//! the next step. The codes of engine and proxy pass through as they are; this
//! file holds the root's own, and the one mapping from code to exit code.

use cambium_engine::EngineError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::process::ExitCode;

/// The exit codes, as `cambium --help` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Refused or failed: the code on stderr says why.
    Failed = 1,
    /// The command line is wrong; clap's own number.
    Usage = 2,
    /// The configuration is wrong.
    Config = 3,
    /// No server runs on the data directory, or it went away.
    NoServer = 4,
    /// A token or a person's credential is missing or wrong.
    Credential = 5,
    /// A person was asked and has not answered.
    Waiting = 6,
    /// The server cannot start: directory, lock, port, vault, sandbox.
    CannotStart = 7,
    /// What was verified is not as it should be.
    Differs = 8,
}

/// The table of exit codes for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused or failed; stderr says error[code], the reason and the next step
  2  the command line is wrong
  3  the configuration is wrong
  4  no server runs on this data directory
  5  a token or a person's credential is missing or wrong
  6  a person was asked and has not answered
  7  the server cannot start (data directory, lock, port, vault, sandbox)
  8  verified, and not as it should be (audit verify, restore, policy test, doctor, demo)";

/// Why a command did not succeed, as it crosses the control socket too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// Stable snake_case code.
    pub(crate) code: String,
    /// One sentence that names the value at fault.
    pub(crate) message: String,
    /// The next step.
    pub(crate) next: String,
    /// Whether the same command can succeed later without a change.
    pub(crate) retryable: bool,
    /// Diagnostics or failing paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Box<Value>>,
}

impl Failure {
    /// A failure that trying again does not mend.
    pub(crate) fn new(code: &str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            next: next.into(),
            retryable: false,
            details: None,
        }
    }

    /// The exit code that goes with the code.
    pub(crate) fn exit(&self) -> Exit {
        match self.code.as_str() {
            "usage" => Exit::Usage,
            "config_invalid" | "config_unknown_key" | "config_unreadable" => Exit::Config,
            "no_server" | "server_gone" => Exit::NoServer,
            "unauthenticated"
            | "person_required"
            | "token_missing"
            | "credential_missing"
            | "token_file_open_to_others"
            | "too_many_attempts"
            | "backup_key_wrong" => Exit::Credential,
            "awaiting_approval" => Exit::Waiting,
            "data_dir_unwritable"
            | "data_dir_open_to_others"
            | "data_dir_locked"
            | "data_dir_path_too_long"
            | "listen_in_use"
            | "listen_refused"
            | "vault_key"
            | "vault_key_wrong"
            | "database_tampered"
            | "store_unavailable"
            | "sandbox_weak"
            | "sandbox_unavailable" => Exit::CannotStart,
            "audit_broken" | "backup_damaged" | "demo_differs" | "layer_missing"
            | "policy_differs" => Exit::Differs,
            _ => Exit::Failed,
        }
    }
}

/// The next step in a person's words, where the engine speaks of what only an
/// agent has.
pub(crate) fn for_person(code: &str, next: String) -> String {
    let own = match code {
        "tool_not_found" => {
            "list the tools with `cambium tools list`, or search: `cambium tools find`"
        }
        "version_not_found" => "`cambium tools versions VENDOR NAME` lists them",
        "connection_not_found" => {
            "list the connections with `cambium connections list`; `cambium connections add` makes one"
        }
        "connection_not_in_scope" => {
            "let the agent use it with `cambium connections agents SLUG --agent NAME`, or name another"
        }
        "host_not_in_connection" => {
            "use a host of the connection, or add a connection for this host"
        }
        "connection_revoked" => {
            "take the revoke back with `cambium connections reconnect SLUG`, or choose another name"
        }
        "credential_missing" | "credential_unavailable" => {
            "enter it with the secret on stdin: `cambium connections set SLUG --secret-stdin`"
        }
        "vault_locked" => "unlock it with `cambium vault unlock`",
        "address_denied" => {
            "if it is meant, allow that one range and port: `cambium connections set SLUG \
             --allow-private CIDR:PORT`"
        }
        "tls_failed" => {
            "vendors are reached by HTTPS only; `cambium connections set SLUG --ca FILE` trusts an \
             authority of the vendor's own, or a certificate that signs itself and says CA:FALSE \
             (`openssl req -x509 … -addext basicConstraints=critical,CA:FALSE`)"
        }
        "clock_skew" => "set this machine's clock, then call again",
        "upstream_protocol" => "call again later; if it stays, the host may be no HTTPS API",
        "tool_denied" => {
            "you refused it; `cambium approvals withdraw AGENT VENDOR NAME` takes that back, and the \
             next call asks you again"
        }
        "ask_dismissed" => "call again to be asked anew; the tool is not refused",
        "awaiting_approval" => {
            "answer it (`cambium approvals list --open` has it), then call again with the same input"
        }
        "unauthenticated" => {
            "pass the token that `cambium agents create` showed; `cambium agents rotate NAME` makes \
             another for one that is lost"
        }
        "ask_settled" => {
            "the first decision stands; `cambium approvals withdraw AGENT VENDOR NAME` takes an \
             answer back that stands, and the next call asks again"
        }
        "agent_paused" => "let it go on with `cambium agents set NAME --resume`",
        "proxy_failed" => "the server's log says where it failed",
        "sdk_not_listed" => {
            "publish the tool again with what the connection lists now, or list that version again: \
             `cambium connections sdk add`"
        }
        "acquire_unconfigured" => {
            "import the vendor's document with `cambium import openapi`, or configure a model \
             (`[author]`)"
        }
        "job_not_found" => "use the id that the agent was answered",
        "dry_run_failed" => "read details: correct the module or its input, and publish again",
        "proposal_refused" => "you refused it; `cambium connections add` makes one nevertheless",
        "proposals_full" => "answer some: `cambium connections proposals list`",
        "tool_error" => "read the message; `cambium tools source VENDOR NAME` shows the code",
        "timeout" => "raise --timeout, or ask the vendor for less",
        "proposal_not_found" => "list them with `cambium connections proposals list`",
        "run_not_found" => "use the `run` a call answered",
        _ => return next,
    };
    own.to_owned()
}

/// Why a person is not taken for one, by what they gave: the engine says the same
/// of a passphrase and of a code. `first`: no passphrase is set yet.
pub(crate) fn unproved(error: EngineError, passphrase: bool, first: bool) -> Failure {
    let failure = Failure::from(error.clone());
    if error != EngineError::PersonRequired {
        return failure;
    }
    let (message, next) = match (first, passphrase) {
        (true, true) => ("no passphrase is set yet", "set the first one with `cambium setup`"),
        (true, false) => (
            "the code is wrong, used or expired",
            "`cambium code` shows the first code in force; `cambium setup` needs none",
        ),
        (false, true) => ("the passphrase is wrong", "give the one in force"),
        (false, false) => (
            "the code is wrong, used or expired",
            "give the passphrase, or make another code with `cambium code`",
        ),
    };
    Failure { message: message.to_owned(), next: next.to_owned(), ..failure }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let envelope = cambium_engine::Envelope::from(&error);
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            next: for_person(error.code(), error.next()),
            retryable: error.retryable(),
            details: envelope.details.map(Box::new),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every error there is, as an agent is told it.
    const TOLD: &str = include_str!("../mcp/tests/golden/errors.json");
    /// What only an agent has, and whom only an agent can ask.
    const AGENTS: [&str; 12] = [
        "the person",
        "find_tool",
        "acquire ",
        "request_",
        "request a connection",
        "read_tool_source",
        "check_tool",
        "publish_tool",
        "testInput",
        "timeoutSeconds",
        "jobId",
        "in the console",
    ];

    #[test]
    fn no_error_sends_a_person_to_an_agents_tools_or_to_themselves() {
        let told: Value = serde_json::from_str(TOLD).unwrap();
        let envelopes = told["envelopes"].as_array().unwrap();
        assert!(envelopes.len() > 60, "the goldens were not read");
        for envelope in envelopes {
            let (code, next) = (&envelope["code"], envelope["next"].as_str().unwrap());
            let next = for_person(code.as_str().unwrap(), next.to_owned());
            let agents = AGENTS.iter().find(|word| next.contains(**word));
            assert_eq!(agents, None, "{code}: {next}");
        }
        assert!(for_person("tool_denied", String::new()).contains("cambium approvals withdraw"));
    }
}
