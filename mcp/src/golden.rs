//! What strangers read, kept as files: the fixed tools as `tools/list` shows
//! them, and the answer to every error there is. `UPDATE_GOLDENS=1` writes the
//! files anew; a reviewer reads the difference.

use crate::reply::Reply;
use cambium_engine::{Diagnostic, EngineError, LowLevel, Severity};
use cambium_proxy::{Refusal, StoreFault};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

fn check(file: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{file} differs; run with UPDATE_GOLDENS=1 and read the difference:\n{text}"
    );
}

#[test]
fn the_fixed_tools_are_as_published() {
    check(
        "tools_list.json",
        &serde_json::to_value(crate::list::tools(LowLevel::default(), &[], Vec::new())).unwrap(),
    );
}

#[test]
fn b040_every_error_has_a_code_a_sentence_and_the_next_step() {
    let mut codes = BTreeSet::new();
    let shapes: Vec<Value> = all()
        .into_iter()
        .map(|error| {
            codes.insert(error.code().to_owned());
            serde_json::to_value(CallToolResult::from(Reply::from(error))).unwrap()
        })
        .collect();
    for code in Refusal::CODES {
        assert!(codes.contains(*code), "no golden for {code}");
    }
    for shape in &shapes {
        assert_eq!(shape["isError"], true);
        let envelope = &shape["structuredContent"];
        assert_eq!(envelope["status"], "error");
        for field in ["code", "message", "next"] {
            let text = envelope[field].as_str().unwrap();
            assert!(!text.is_empty(), "{envelope}");
        }
        assert!(envelope["retryable"].is_boolean());
        assert_eq!(shape["content"][0]["text"], envelope.to_string());
    }
    let envelopes: Vec<&Value> = shapes.iter().map(|shape| &shape["structuredContent"]).collect();
    check("errors.json", &json!({ "wire": shapes[0], "envelopes": envelopes }));
}

fn all() -> Vec<EngineError> {
    let engine = vec![
        EngineError::ToolNotFound("acme__nothing".into()),
        EngineError::VersionNotFound { tool: "acme__list-orders".into(), version: 9 },
        EngineError::ConnectionNotFound("acme".into()),
        EngineError::AgentNotFound("one".into()),
        EngineError::AskNotFound("a1".into()),
        EngineError::ProposalNotFound("p1".into()),
        EngineError::ProposalRefused("`acme` at api.acme.com".into()),
        EngineError::ProposalsFull(8),
        EngineError::RunNotFound("r1".into()),
        EngineError::AgentPaused("one".into()),
        EngineError::AskSettled { ask: "a1".into(), state: "denied".into() },
        EngineError::NameInvalid { name: "Acme".into(), rule: "a rule" },
        EngineError::InputInvalid(vec!["/limit: 200 is greater than the maximum of 100".into()]),
        crate::arguments::invalid("querry", "is not an argument of find_tool; it takes query"),
        EngineError::CheckFailed(vec![Diagnostic {
            severity: Severity::Error,
            code: "no_vendor_call".into(),
            message: "a sentence".into(),
            line: 3,
            column: 7,
            text: "the line".into(),
        }]),
        EngineError::DryRunFailed(Box::new(json!({"status": "error"}))),
        EngineError::ComponentRefused("it exports no `run`".into()),
        EngineError::ComponentsUnavailable("this server runs no components".into()),
        EngineError::DocumentRefused("it is no object".into()),
        EngineError::JobNotFound("j1".into()),
        EngineError::AcquireUnconfigured("acme".into()),
        EngineError::Unauthenticated,
        EngineError::PersonRequired,
        EngineError::Taken("acme".into()),
        EngineError::OutOfRange { name: "cap", value: "501".into(), rule: "1 to 500" },
        EngineError::Busy,
        EngineError::SdkNotListed {
            tool: "acme__list-orders".into(),
            sdk: "acme-sdk@1.2.3".into(),
        },
        EngineError::Store(StoreFault::Unavailable("the disk is full".into())),
        EngineError::SandboxUnavailable("no worker could be made".into()),
    ];
    let ended = [
        "tool_error",
        "timeout",
        "cpu_limit",
        "memory_limit",
        "output_limit",
        "cancelled",
        "page_unreadable",
    ]
    .map(|code| EngineError::RunFailed { code, message: "a sentence".into() });
    let all: Vec<_> = engine
        .into_iter()
        .chain(ended)
        .chain(refusals().into_iter().map(EngineError::Refused))
        .collect();
    all.iter().for_each(listed_above);
    all
}

/// A new variant does not compile until somebody has looked here and added it
/// to the list.
fn listed_above(error: &EngineError) {
    match error {
        EngineError::ToolNotFound(_)
        | EngineError::VersionNotFound { .. }
        | EngineError::ConnectionNotFound(_)
        | EngineError::AgentNotFound(_)
        | EngineError::AskNotFound(_)
        | EngineError::ProposalNotFound(_)
        | EngineError::ProposalRefused(_)
        | EngineError::ProposalsFull(_)
        | EngineError::RunNotFound(_)
        | EngineError::AgentPaused(_)
        | EngineError::AskSettled { .. }
        | EngineError::NameInvalid { .. }
        | EngineError::InputInvalid(_)
        | EngineError::ArgumentInvalid { .. }
        | EngineError::CheckFailed(_)
        | EngineError::DryRunFailed(_)
        | EngineError::ComponentRefused(_)
        | EngineError::ComponentsUnavailable(_)
        | EngineError::DocumentRefused(_)
        | EngineError::JobNotFound(_)
        | EngineError::AcquireUnconfigured(_)
        | EngineError::Unauthenticated
        | EngineError::PersonRequired
        | EngineError::Taken(_)
        | EngineError::OutOfRange { .. }
        | EngineError::Refused(_)
        | EngineError::RunFailed { .. }
        | EngineError::Busy
        | EngineError::SdkNotListed { .. }
        | EngineError::Store(_)
        | EngineError::SandboxUnavailable(_) => {}
    }
}

fn refusals() -> Vec<Refusal> {
    let make: [fn(String) -> Refusal; Refusal::CODES.len()] = [
        Refusal::OutsideCallSites,
        Refusal::VaultLocked,
        Refusal::PathInvalid,
        Refusal::PathAmbiguous,
        Refusal::UrlInvalid,
        Refusal::PathNotRelative,
        Refusal::PathTooLong,
        Refusal::HostNotInConnection,
        Refusal::MethodInvalid,
        Refusal::MethodExceedsHint,
        Refusal::BodyOnRead,
        Refusal::BodyTooLarge,
        Refusal::BodyTooLargeForApproval,
        Refusal::BodyUnreadableForApproval,
        Refusal::HeaderRefused,
        Refusal::AddressDenied,
        Refusal::SelfAddress,
        Refusal::TlsFailed,
        Refusal::UpstreamTimeout,
        Refusal::UpstreamTruncated,
        Refusal::UpstreamProtocol,
        Refusal::ResponseTooLarge,
        Refusal::OutcomeUnknown,
        Refusal::CredentialUnavailable,
        Refusal::CredentialPath,
        Refusal::ClockSkew,
        Refusal::ConnectionRevoked,
        Refusal::ConnectionNotInScope,
        Refusal::RunClosed,
        Refusal::RunRequestCap,
        Refusal::RateLimited,
        Refusal::ToolDenied,
        Refusal::AwaitingApproval,
        Refusal::AskDismissed,
        Refusal::ApprovalExpired,
        Refusal::ProxyFailed,
        Refusal::AuditUnavailable,
    ];
    make.map(|make| make("a sentence".into())).into()
}
