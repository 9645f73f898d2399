//! The answer of a call: one shape for first-class calls, run_tool and
//! execute. Serialised once; the same bytes are the text and the structured
//! content.

use crate::EngineError;
use cambium_proxy::Preview;
use serde::Serialize;
use serde_json::Value;

/// How a call ended, as the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran.
    Ok,
    /// It runs on, detached.
    Running,
    /// A person was asked and has not answered.
    AwaitingApproval,
    /// A connection must be made first.
    AwaitingConnection,
    /// A credential must be entered first.
    AwaitingCredential,
    /// It ran under dry run.
    DryRun,
    /// It did not run, or ended without a result.
    Error,
}

/// The vendor's part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VendorStatus {
    /// HTTP status.
    pub status: u16,
}

/// A question a person has not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskRef {
    /// Ask id.
    pub id: String,
    /// Where a person can answer.
    pub link: String,
    /// Milliseconds UTC.
    pub expires_ms: i64,
}

/// A result that is not text: an MCP image, audio or resource block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Mime type.
    pub mime_type: String,
    /// Base64 of the bytes.
    pub base64: String,
}

/// Where the time of a call went, microseconds. Beside the answer, never in it:
/// the same call gives the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallTimes {
    /// From the tool found to its sandbox: a place, the input's check, the run's
    /// row, admission and session.
    pub admit_us: u64,
    /// Until a worker was ready.
    pub take_us: u64,
    /// From the job's first byte to the result's last.
    pub run_us: u64,
    /// In the proxy, all requests together.
    pub proxy_us: u64,
    /// With the vendor, all requests together.
    pub vendor_us: u64,
    /// Held for a person.
    pub held_us: u64,
    /// From the sandbox's end until the run was recorded.
    pub record_us: u64,
}

/// The answer of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// How it ended.
    pub status: Status,
    /// What the module returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// When the module passed a `Response` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<VendorStatus>,
    /// Stopped requests of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Vec<Preview>>,
    /// The open ask of `awaiting_approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskRef>,
    /// The open ask about another request of the tool that comes first, when
    /// `awaiting_approval` has none of its own yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<AskRef>,
    /// Things worth knowing, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// One sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Errors only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Errors only: diagnostics, failing paths, console lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Binary result, sent as a content block beside the text.
    #[serde(skip)]
    pub content: Option<Content>,
    /// What the vendor answered a dry run's reads; for whoever tries a module.
    #[serde(skip)]
    pub answered: Vec<u16>,
    /// Sent as `_meta["cambium/times"]`; absent when nothing ran.
    #[serde(skip)]
    pub times: Option<CallTimes>,
}

impl Envelope {
    /// An empty answer of one status.
    pub fn of(status: Status) -> Self {
        Self {
            status,
            result: None,
            vendor: None,
            preview: None,
            ask: None,
            behind: None,
            notes: Vec::new(),
            code: None,
            message: None,
            next: None,
            retryable: None,
            details: None,
            run: None,
            content: None,
            answered: Vec::new(),
            times: None,
        }
    }

    /// True when MCP must mark the answer as an error.
    pub fn is_error(&self) -> bool {
        self.status == Status::Error
    }
}

impl From<&EngineError> for Envelope {
    fn from(error: &EngineError) -> Self {
        let details = match error {
            EngineError::InputInvalid(paths) => serde_json::to_value(paths).ok(),
            EngineError::DryRunFailed(tried) => Some((**tried).clone()),
            EngineError::CheckFailed(diagnostics) => serde_json::to_value(diagnostics).ok(),
            _ => None,
        };
        Self {
            code: Some(error.code()),
            message: Some(error.to_string()),
            next: Some(error.next()),
            retryable: Some(error.retryable()),
            details,
            ..Self::of(Status::Error)
        }
    }
}
