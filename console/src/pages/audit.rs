//! The audit, newest first, with filters: what was decided about each request
//! and what came of it. Values of queries, headers and bodies are in no row.

use super::{Frame, render};
use crate::Console;
use crate::error::Problem;
use crate::session::Visitor;
use crate::{civil, visible};
use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use cambium_engine::{Agent, Connection, EngineError};
use cambium_proxy::{AuditEvent, AuditKind};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;

/// Rows read at once from the chain's end; a filter looks through these.
const READ: u32 = 1_000;
/// Rows shown.
const SHOWN: usize = 100;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Filter {
    connection: String,
    agent: String,
    tool: String,
    run: String,
    kind: String,
    before: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    filter: Filter,
    kinds: Vec<(&'static str, bool)>,
    rows: Vec<Row>,
    /// The link to older rows, if there are any.
    older: Option<u64>,
}

struct Row {
    sequence: u64,
    at: String,
    kind: &'static str,
    what: String,
    agent: String,
    tool: String,
    connection: String,
    rule: String,
    came: String,
}

const KINDS: [AuditKind; 7] = [
    AuditKind::Intent,
    AuditKind::Outcome,
    AuditKind::Refusal,
    AuditKind::Preview,
    AuditKind::Hold,
    AuditKind::Change,
    AuditKind::Command,
];

pub(crate) async fn list(
    State(console): State<Console>,
    headers: HeaderMap,
    uri: Uri,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&console, &headers, uri.path()).await?;
    let frame = Frame::of(&console, &visitor).await?;
    let (agents, connections) =
        (console.engine.agents().await?, console.engine.connections().await?);
    let (sink, node) = (&console.audit.sink, &console.audit.node);
    let unread = |fault| Problem::from(EngineError::Store(fault));
    let end = match filter.before.parse::<u64>() {
        Ok(before) => before.saturating_sub(1),
        Err(_) => sink.last(node).await.map_err(unread)?.map_or(0, |row| row.sequence),
    };
    let first = end.saturating_sub(u64::from(READ));
    let read = sink.rows(node, first, READ).await.map_err(unread)?;
    let mut rows = Vec::new();
    let mut older = (first > 0).then_some(first + 1);
    for row in read.iter().rev().filter(|row| row.sequence <= end) {
        let Ok(event) = serde_json::from_str::<AuditEvent>(&row.event) else { continue };
        if !wanted(&filter, &event, &agents, &connections) {
            continue;
        }
        if rows.len() == SHOWN {
            older = Some(row.sequence + 1);
            break;
        }
        rows.push(shown(row.sequence, &event, &agents, &connections));
    }
    let kinds = KINDS.into_iter().map(word).map(|name| (name, filter.kind == name)).collect();
    let filter = Filter {
        connection: visible::line(&filter.connection),
        agent: visible::line(&filter.agent),
        tool: visible::line(&filter.tool),
        run: visible::line(&filter.run),
        ..filter
    };
    Ok(render(StatusCode::OK, &AuditPage { frame, filter, kinds, rows, older }))
}

fn wanted(
    filter: &Filter,
    event: &AuditEvent,
    agents: &[Agent],
    connections: &[Connection],
) -> bool {
    let empty_or = |text: &str, is: bool| text.is_empty() || is;
    empty_or(&filter.kind, word(event.kind) == filter.kind)
        && empty_or(&filter.tool, event.tool.contains(filter.tool.trim()))
        && empty_or(&filter.run, event.run == filter.run.trim())
        && empty_or(&filter.agent, agent_name(&event.agent, agents) == filter.agent.trim())
        && empty_or(
            &filter.connection,
            slug(&event.connection, connections) == filter.connection.trim(),
        )
}

fn agent_name<'a>(id: &'a str, agents: &'a [Agent]) -> &'a str {
    agents.iter().find(|agent| agent.id.as_str() == id).map_or(id, |agent| &agent.name)
}

fn slug<'a>(id: &'a str, connections: &'a [Connection]) -> &'a str {
    connections.iter().find(|one| one.id.as_str() == id).map_or(id, |one| &one.slug)
}

fn shown(sequence: u64, event: &AuditEvent, agents: &[Agent], connections: &[Connection]) -> Row {
    let mut came = Vec::new();
    came.extend(event.status.map(|status| format!("status {status}")));
    came.extend(event.bytes.map(|bytes| format!("{bytes} bytes")));
    came.extend(event.vendor_us.map(|us| format!("{} ms at the vendor", us / 1_000)));
    came.extend(event.redactions.filter(|n| *n > 0).map(|n| format!("{n} redacted")));
    came.extend(event.notes.iter().cloned());
    let what = match event.kind {
        AuditKind::Change => event.host.clone(),
        AuditKind::Command => event.tool.clone(),
        AuditKind::Intent
        | AuditKind::Outcome
        | AuditKind::Refusal
        | AuditKind::Preview
        | AuditKind::Hold => format!("{} {}{}", event.method, event.host, event.path),
    };
    Row {
        sequence,
        at: civil::time(event.at_ms),
        kind: word(event.kind),
        what: visible::line(&what),
        agent: visible::line(agent_name(&event.agent, agents)),
        tool: visible::line(&event.tool),
        connection: visible::line(slug(&event.connection, connections)),
        rule: visible::line(&event.rule),
        came: visible::line(&came.join(", ")),
    }
}

fn word(kind: AuditKind) -> &'static str {
    match kind {
        AuditKind::Intent => "intent",
        AuditKind::Outcome => "outcome",
        AuditKind::Refusal => "refusal",
        AuditKind::Preview => "preview",
        AuditKind::Hold => "hold",
        AuditKind::Change => "change",
        AuditKind::Command => "command",
    }
}
