//! What a run gives out, searched once more for what its requests were sent
//! with, before anything of it is cut, stored or answered. The proxy has
//! searched what came from the vendor; a module may have decoded that further
//! than anybody foresaw. How it is searched is the proxy's.

use crate::{Envelope, Outcome, RunReport, ToolResult};
use cambium_proxy::{SessionReport, Veil};
use serde_json::Value;

/// Searched where it is up to this size, bytes; beyond it, on a thread that may
/// block.
const AT_ONCE: usize = 256 * 1024;

/// What a sandbox and a session report.
pub(crate) async fn reports(
    veil: &Veil,
    report: RunReport,
    session: SessionReport,
) -> (RunReport, SessionReport) {
    let size = match &report.outcome {
        Outcome::Ok(ToolResult::Value(text)) => text.len(),
        Outcome::Ok(ToolResult::Response { body, .. }) => body.len(),
        _ => 0,
    };
    if size <= AT_ONCE {
        return (run(veil, report), requests(veil, session));
    }
    let (kept, owned) = (report.evidence.clone(), veil.clone());
    let task =
        tokio::task::spawn_blocking(move || (run(&owned, report), requests(&owned, session)));
    task.await.unwrap_or_else(|_| {
        tracing::error!("a result could not be searched for secrets");
        let why = "the result could not be searched for secrets".to_owned();
        let outcome = Outcome::Unavailable(why);
        let report = RunReport {
            outcome,
            logs: Vec::new(),
            logs_dropped: 0,
            times: crate::StageTimes::default(),
            evidence: kept,
        };
        (report, SessionReport::default())
    })
}

fn run(veil: &Veil, mut report: RunReport) -> RunReport {
    report.outcome = match report.outcome {
        Outcome::Ok(ToolResult::Value(text)) => Outcome::Ok(ToolResult::Value(veil.text(text))),
        Outcome::Ok(ToolResult::Response { status, content_type, body }) => {
            let (content_type, body) = (veil.text(content_type), veil.bytes(body));
            Outcome::Ok(ToolResult::Response { status, content_type, body })
        }
        Outcome::ToolError { message, stack } => {
            Outcome::ToolError { message: veil.text(message), stack: veil.text(stack) }
        }
        Outcome::Unavailable(reason) => Outcome::Unavailable(veil.text(reason)),
        other @ (Outcome::Timeout
        | Outcome::CpuLimit
        | Outcome::MemoryLimit
        | Outcome::OutputLimit
        | Outcome::Crashed { .. }
        | Outcome::NeverSettled
        | Outcome::PolicyDenied
        | Outcome::Cancelled) => other,
    };
    report.logs = report.logs.into_iter().map(|line| veil.text(line)).collect();
    report
}

/// The proxy has searched these; a module may since have put together what a
/// stopped request shows.
fn requests(veil: &Veil, mut session: SessionReport) -> SessionReport {
    for exchange in &mut session.exchanges {
        exchange.path = veil.text(std::mem::take(&mut exchange.path));
        if let Some(preview) = &mut exchange.preview {
            let shown = &mut preview.request;
            shown.path = veil.text(std::mem::take(&mut shown.path));
            shown.query = shown.query.take().map(|query| veil.text(query));
            shown.body = shown.body.take().map(|body| veil.text(body));
            for name in &mut shown.header_names {
                *name = veil.text(std::mem::take(name));
            }
        }
    }
    session
}

/// The answer itself: what is put together after a report was searched.
pub(crate) fn answer(veil: &Veil, envelope: &mut Envelope) {
    for text in [&mut envelope.message, &mut envelope.next].into_iter().flatten() {
        *text = veil.text(std::mem::take(text));
    }
    for note in &mut envelope.notes {
        *note = veil.text(std::mem::take(note));
    }
    if let Some(details) = &mut envelope.details {
        texts(veil, details, &|_| true);
    }
    // A result was searched as the JSON it is; what was escaped in its strings
    // is now one escape less.
    if let Some(result) = &mut envelope.result {
        texts(veil, result, &|text| text.contains(['\\', '%', '&']));
    }
}

fn texts(veil: &Veil, value: &mut Value, wanted: &dyn Fn(&str) -> bool) {
    match value {
        Value::String(text) if wanted(text) => *text = veil.text(std::mem::take(text)),
        Value::String(_) => {}
        Value::Array(values) => values.iter_mut().for_each(|value| texts(veil, value, wanted)),
        Value::Object(fields) => {
            let searched = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                texts(veil, &mut value, wanted);
                (if wanted(&key) { veil.text(key) } else { key }, value)
            });
            *fields = searched.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
