//! The one place where what a sandbox and a session report becomes the answer
//! of a call. Pure. What an agent may read is bounded here: a long result is
//! cut and kept whole, a binary one goes beside the text, and whatever a module
//! or a vendor wrote stays inside the fields that say so.

use crate::envelope::{AskRef, CallTimes, VendorStatus};
use crate::{Content, EngineError, Envelope, Outcome, RunReport, Status, ToolResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cambium_proxy::{Connection, Exchange, Parked, Refusal, RunId, SessionReport};
use serde_json::{Value, json};

/// Longest result an answer carries, characters.
pub(crate) const RESULT_CHARS: usize = 64_000;
/// Largest binary result that goes beside the text, bytes.
const BINARY_BYTES: usize = 4 * 1024 * 1024;
/// Console lines shown with an error or a dry run.
const LOG_LINES: usize = 100;

/// What the proxy answers a module whose request a dry run stopped.
const STOPPED_STATUS: u16 = 202;

/// A run that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) report: RunReport,
    pub(crate) session: SessionReport,
    pub(crate) dry_run: bool,
    pub(crate) connection: &'a Connection,
    pub(crate) wall_seconds: u64,
    /// The agent's name, if a person paused it while the run was under way.
    pub(crate) paused: Option<String>,
    pub(crate) console_url: &'a str,
    /// Said before anything ran.
    pub(crate) notes: Vec<String>,
    /// What it took until the sandbox began.
    pub(crate) admit_us: u64,
}

/// A result to keep whole: its mime type and text.
pub(crate) type Whole = (&'static str, String);

/// The answer, and the whole result when the answer was cut.
pub(crate) fn reply(ended: Ended<'_>) -> (Envelope, Option<Whole>) {
    let mut whole = None;
    let mut envelope = match settled(&ended) {
        Settled::Parked => parked(&ended),
        Settled::Failed(error) => failed(&ended, &error),
        Settled::Returned(result) => {
            let status = if ended.dry_run { Status::DryRun } else { Status::Ok };
            let mut envelope = Envelope::of(status);
            whole = returned(&mut envelope, &ended, result);
            if ended.dry_run && last_refusal(&ended).is_some() {
                envelope.details = details(&ended);
            }
            envelope
        }
        Settled::ThrewInDryRun(message) => {
            let mut envelope = Envelope::of(Status::DryRun);
            envelope.notes.push(format!("the module threw: {message}"));
            envelope.details = details(&ended);
            envelope
        }
    };
    let mut notes = ended.notes.clone();
    notes.append(&mut envelope.notes);
    notes.extend(said_of_requests(&ended, &envelope));
    envelope.notes = notes;
    if ended.dry_run {
        let previews = ended.session.exchanges.iter().filter_map(|e| e.preview.clone());
        envelope.preview = Some(previews.collect());
        let answered = ended.session.exchanges.iter().filter(|e| e.preview.is_none());
        envelope.answered = answered.filter_map(|e| e.status).collect();
    }
    if envelope.next.is_none() && vendor_refused(&ended, &envelope) {
        envelope.next = Some(format!(
            "the vendor refused the credential: call request_credential with connectionId `{}`",
            ended.connection.id
        ));
    }
    envelope.run = Some(ended.run.to_string());
    envelope.times = Some(times(&ended));
    (envelope, whole)
}

/// What a run recorded: `ok` or the code of its error.
pub(crate) fn outcome(envelope: &Envelope) -> &'static str {
    match envelope.status {
        Status::Ok => "ok",
        Status::DryRun => "dry_run",
        Status::Running => "running",
        Status::AwaitingApproval => "awaiting_approval",
        Status::AwaitingConnection => "awaiting_connection",
        Status::AwaitingCredential => "awaiting_credential",
        Status::Error => envelope.code.unwrap_or("error"),
    }
}

enum Settled<'a> {
    Parked,
    Returned(&'a ToolResult),
    ThrewInDryRun(&'a str),
    Failed(EngineError),
}

fn settled<'a>(ended: &'a Ended<'_>) -> Settled<'a> {
    if ended.session.parked.is_some() {
        return Settled::Parked;
    }
    if let Some(refusal) = &ended.session.fatal {
        return Settled::Failed(EngineError::Refused(refusal.clone()));
    }
    let failed = |code, message: String| Settled::Failed(EngineError::RunFailed { code, message });
    let cut_off = |code, message: String| match unknown_write(ended) {
        Some(write) => Settled::Failed(EngineError::Refused(Refusal::OutcomeUnknown(format!(
            "{message} after {write} was sent; whether it was done is not known"
        )))),
        None => failed(code, message),
    };
    match &ended.report.outcome {
        Outcome::Ok(result) => Settled::Returned(result),
        Outcome::ToolError { message, .. } if ended.dry_run => Settled::ThrewInDryRun(message),
        Outcome::ToolError { message, .. } => match last_refusal(ended) {
            Some(refusal) => Settled::Failed(EngineError::Refused(refusal.clone())),
            None => failed("tool_error", format!("the module threw: {message}")),
        },
        Outcome::Timeout => {
            cut_off("timeout", format!("the run was ended after {} s", ended.wall_seconds))
        }
        Outcome::CpuLimit => {
            cut_off("cpu_limit", "the run was ended at its limit of CPU time".into())
        }
        Outcome::MemoryLimit => {
            cut_off("memory_limit", "the run was ended at its memory limit".into())
        }
        Outcome::OutputLimit => {
            cut_off("output_limit", "the run was ended: its result is too large".into())
        }
        Outcome::Crashed { signal } => {
            cut_off("crashed", format!("the run's process died by signal {signal}"))
        }
        Outcome::NeverSettled => {
            cut_off("never_settled", "the module waits for something that never comes".into())
        }
        Outcome::PolicyDenied => cut_off("policy_denied", "the proxy ended the run".into()),
        Outcome::Cancelled if let Some(agent) = &ended.paused => match unknown_write(ended) {
            Some(_) => cut_off("cancelled", format!("the agent `{agent}` was paused")),
            None => Settled::Failed(EngineError::AgentPaused(agent.clone())),
        },
        Outcome::Cancelled => {
            cut_off("cancelled", "the run was ended: the caller gave up or the server stops".into())
        }
        Outcome::Unavailable(reason) => {
            Settled::Failed(EngineError::SandboxUnavailable(reason.clone()))
        }
    }
}

fn parked(ended: &Ended<'_>) -> Envelope {
    let mut envelope = Envelope::of(Status::AwaitingApproval);
    let Some(Parked { ask, expires_ms, shown }) = &ended.session.parked else { return envelope };
    let link = format!("{}/asks/{ask}", ended.console_url.trim_end_matches('/'));
    envelope.retryable = Some(true);
    let asked = AskRef { id: ask.to_string(), link, expires_ms: *expires_ms };
    if *shown {
        let link = &asked.link;
        envelope.message =
            Some(format!("A person must allow this write first. Tell them to answer at {link} ."));
        envelope.next = Some("tell the person, then call again with the same input".into());
        envelope.ask = Some(asked);
    } else {
        envelope.message = Some(behind(&asked.link));
        envelope.next = Some(
            "tell the person, and call again with the same input once the other is answered".into(),
        );
        envelope.behind = Some(asked);
    }
    envelope
}

/// What is said of a write that another one's question comes before.
pub(crate) fn behind(link: &str) -> String {
    format!(
        "Nothing was sent. A person is asked about another request of this tool first, at {link} ; \
         about this one they are asked after it."
    )
}

fn failed(ended: &Ended<'_>, error: &EngineError) -> Envelope {
    let mut envelope = Envelope::from(error);
    envelope.details = details(ended);
    envelope
}

/// The stack, what the module logged, and the requests that were refused.
fn details(ended: &Ended<'_>) -> Option<Value> {
    let mut details = serde_json::Map::new();
    if let Outcome::ToolError { message, stack } = &ended.report.outcome {
        details.insert("thrown".into(), json!(message));
        if !stack.is_empty() {
            details.insert("stack".into(), json!(stack));
        }
    }
    let logs = &ended.report.logs;
    if !logs.is_empty() {
        let shown: Vec<&String> = logs.iter().take(LOG_LINES).collect();
        details.insert("logs".into(), json!(shown));
    }
    // Its author could not have waited for what was ended from outside.
    let ended_by_us = matches!(ended.report.outcome, Outcome::Cancelled);
    let next = |refusal: &Refusal| match refusal {
        Refusal::RunClosed(_) if ended_by_us => "call again if it is still wanted",
        _ => refusal.next(),
    };
    let refused: Vec<Value> = ended
        .session
        .exchanges
        .iter()
        .filter_map(|exchange| Some((exchange, exchange.refusal.as_ref()?)))
        .map(|(exchange, refusal)| {
            json!({
                "method": exchange.method,
                "path": exchange.path,
                "code": refusal.code(),
                "message": refusal.to_string(),
                "next": next(refusal),
            })
        })
        .collect();
    if !refused.is_empty() {
        details.insert("refused".into(), Value::Array(refused));
    }
    (!details.is_empty()).then_some(Value::Object(details))
}

/// Fills in what the module returned; answers what is to be kept whole.
fn returned(envelope: &mut Envelope, ended: &Ended<'_>, result: &ToolResult) -> Option<Whole> {
    match result {
        ToolResult::Value(text) => match serde_json::from_str(text) {
            Ok(value) => cut(envelope, ended.run, value),
            Err(_) => {
                envelope
                    .notes
                    .push("the result could not be read as JSON; here is its text".into());
                cut(envelope, ended.run, Value::String(text.clone()))
            }
        },
        ToolResult::Response { status, content_type, body } => {
            // The module passed on what we answered to a stopped request.
            let ours = ended.dry_run
                && *status == STOPPED_STATUS
                && ended.session.exchanges.last().is_some_and(|last| last.preview.is_some());
            if !ours {
                envelope.vendor = Some(VendorStatus { status: *status });
            }
            if *status >= 400 {
                envelope.notes.push(format!(
                    "the vendor answered {status}: it may not have done what was asked"
                ));
            }
            body_result(envelope, ended.run, content_type, body)
        }
    }
}

fn body_result(
    envelope: &mut Envelope,
    run: &RunId,
    content_type: &str,
    body: &Bytes,
) -> Option<Whole> {
    if body.is_empty() {
        return None;
    }
    let mime = content_type.split(';').next().unwrap_or_default().trim();
    if (mime == "application/json" || mime.ends_with("+json"))
        && let Ok(value) = serde_json::from_slice(body)
    {
        return cut(envelope, run, value);
    }
    let media =
        mime.starts_with("image/") || mime.starts_with("audio/") || mime.starts_with("video/");
    match std::str::from_utf8(body) {
        Ok(text) if !media || mime == "image/svg+xml" => {
            cut(envelope, run, Value::String(text.to_owned()))
        }
        _ => {
            let mime = if mime_type(mime) { mime } else { "application/octet-stream" };
            let size = body.len();
            if size <= BINARY_BYTES {
                envelope
                    .notes
                    .push(format!("the result is {size} bytes of {mime}, sent beside this text"));
                envelope.content =
                    Some(Content { mime_type: mime.to_owned(), base64: STANDARD.encode(body) });
                return None;
            }
            envelope.notes.push(format!(
                "the result is {size} bytes of {mime}, more than the {BINARY_BYTES} an answer carries; \
                 it is kept as base64: read_file result://{run}"
            ));
            Some(("application/base64", STANDARD.encode(body)))
        }
    }
}

/// Puts a result into the answer, cut when it is too long.
fn cut(envelope: &mut Envelope, run: &RunId, value: Value) -> Option<Whole> {
    let (mime, text) = match &value {
        Value::String(text) if text.len() > RESULT_CHARS => ("text/plain", text.clone()),
        Value::Null => {
            envelope.result = Some(Value::Null);
            return None;
        }
        Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            envelope.result = Some(value);
            return None;
        }
        Value::Array(_) | Value::Object(_) => ("application/json", value.to_string()),
    };
    let Some((end, _)) = text.char_indices().nth(RESULT_CHARS) else {
        envelope.result = Some(value);
        return None;
    };
    let size = text.chars().count();
    envelope.result = Some(Value::String(text[..end].to_owned()));
    envelope.notes.push(format!(
        "the result is {size} characters of {mime}; here are the first {RESULT_CHARS}, the rest is \
         kept: read_file result://{run}"
    ));
    Some((mime, text))
}

/// What a person or an agent must know of the requests themselves.
fn said_of_requests(ended: &Ended<'_>, envelope: &Envelope) -> Vec<String> {
    let mut notes = Vec::new();
    let exchanges = &ended.session.exchanges;
    if ended.dry_run {
        for exchange in exchanges {
            let Exchange { method, path, .. } = exchange;
            match (&exchange.refusal, exchange.status) {
                (Some(refusal), _) => {
                    notes.push(format!(
                        "{method} {path} was refused: {}: {refusal}",
                        refusal.code()
                    ));
                }
                (None, Some(status)) if exchange.preview.is_none() => {
                    notes.push(format!("{method} {path} was answered {status}"));
                }
                (None, _) => {}
            }
        }
        if exchanges.iter().any(|exchange| exchange.preview.is_some()) {
            notes.push(
                "a stopped request was answered 202 by us; what the module did after it is not verified"
                    .into(),
            );
        }
    } else if matches!(envelope.status, Status::Error | Status::AwaitingApproval) {
        for exchange in exchanges.iter().filter(|exchange| is_write(exchange)) {
            if let (None, Some(status)) = (&exchange.refusal, exchange.status) {
                let Exchange { method, path, .. } = exchange;
                notes.push(format!("{method} {path} was sent before that and answered {status}"));
            }
        }
    }
    let mut dropped: Vec<&str> =
        exchanges.iter().flat_map(|exchange| &exchange.dropped).map(String::as_str).collect();
    dropped.sort_unstable();
    dropped.dedup();
    if !dropped.is_empty() {
        notes.push(format!(
            "not sent, since they are not among the headers a tool may set: {}; a person can allow \
             one for the connection",
            dropped.join(", ")
        ));
    }
    if ended.report.logs_dropped > 0 {
        notes.push(format!("{} bytes of console output were dropped", ended.report.logs_dropped));
    }
    notes
}

fn vendor_refused(ended: &Ended<'_>, envelope: &Envelope) -> bool {
    let refused = |status: u16| matches!(status, 401 | 403);
    match &envelope.vendor {
        Some(vendor) => refused(vendor.status),
        None => ended.session.exchanges.iter().any(|e| e.status.is_some_and(refused)),
    }
}

/// The refusal a module most likely threw: that of its last request.
fn last_refusal<'a>(ended: &'a Ended<'_>) -> Option<&'a Refusal> {
    ended.session.exchanges.last()?.refusal.as_ref()
}

/// A write whose outcome nobody knows.
fn unknown_write(ended: &Ended<'_>) -> Option<String> {
    let unknown = |exchange: &&Exchange| match &exchange.refusal {
        Some(Refusal::OutcomeUnknown(_)) => true,
        Some(_) => false,
        None => is_write(exchange) && exchange.status.is_none() && exchange.preview.is_none(),
    };
    let exchange = ended.session.exchanges.iter().find(unknown)?;
    Some(format!("{} {}", exchange.method, exchange.path))
}

fn is_write(exchange: &Exchange) -> bool {
    !matches!(exchange.method.as_str(), "GET" | "HEAD")
}

fn times(ended: &Ended<'_>) -> CallTimes {
    let sum = |part: fn(&Exchange) -> u64| ended.session.exchanges.iter().map(part).sum();
    CallTimes {
        admit_us: ended.admit_us,
        record_us: 0,
        take_us: ended.report.times.take_us,
        run_us: ended.report.times.run_us,
        proxy_us: sum(|exchange| exchange.proxy_us),
        vendor_us: sum(|exchange| exchange.vendor_us),
        held_us: sum(|exchange| exchange.held_us),
    }
}

/// A vendor's content type goes on to a client only in its plain form.
fn mime_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'))
    };
    text.split_once('/').is_some_and(|(kind, sub)| token(kind) && token(sub))
}
