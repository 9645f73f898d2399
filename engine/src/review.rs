//! The reviewer's questions: what would become of a request of a version, and
//! what a changed policy would do to requests that were recorded. Nothing is
//! sent or stored; the proxy's own judge answers.

use crate::{Engine, EngineError, ToolName};
use bytes::Bytes;
use cambium_proxy::{
    AuditEvent, AuditKind, Connection, Explanation, Limits, OutboundRequest, Overrides, Review,
    Supposed, Verdict,
};
use serde::{Deserialize, Serialize};

/// A request to explain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Asked {
    /// As the module would write it.
    pub method: String,
    /// Path and query as the module would write it.
    pub path: String,
    /// Label or name; absent is the primary host.
    pub host: Option<String>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// What the run may do.
    pub supposed: Supposed,
}

/// A recorded request that a changed policy would treat otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flip {
    /// Its run.
    pub run: String,
    /// Which request of the run.
    pub request: u32,
    /// Milliseconds UTC.
    pub at_ms: i64,
    /// The tool.
    pub tool: String,
    /// Method, host and path as recorded.
    pub asked: String,
    /// What happened then.
    pub then: Verdict,
    /// The row or code that decided then.
    pub then_rule: String,
    /// What would happen now.
    pub now: Verdict,
    /// The row or code that would decide.
    pub now_rule: String,
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Recorded requests judged anew.
    pub judged: usize,
    /// Those that could not be: their version is gone, or they followed a download.
    pub skipped: usize,
    /// Those that would flip, in the order they were recorded.
    pub flips: Vec<Flip>,
}

impl Engine {
    /// What would become of a request of a version, on its connection as it
    /// stands or with other overrides.
    pub async fn explain(
        &self,
        tool: &ToolName,
        version: Option<u32>,
        asked: &Asked,
        overrides: Option<Overrides>,
    ) -> Result<Explanation, EngineError> {
        let loaded = match version {
            None => self.known(tool).await?.1,
            Some(number) => {
                let found = self.toolbox.version(tool, number).await?;
                found.ok_or_else(|| EngineError::VersionNotFound {
                    tool: tool.to_string(),
                    version: number,
                })?
            }
        };
        let version = &loaded.version;
        let mut connection = self.connection(version.connection.as_str()).await?;
        connection.overrides = overrides.unwrap_or(connection.overrides);
        let request = asked.request();
        let (sites, hints, supposed) = (&version.sites, version.hints, asked.supposed);
        let review = Review { connection: &connection, sites, hints, supposed, request: &request };
        Ok(review.explain(&Limits::default()))
    }

    /// Runs recorded requests of one connection against other overrides.
    pub async fn replay(
        &self,
        connection: &Connection,
        events: &[AuditEvent],
    ) -> Result<Replay, EngineError> {
        let mut replay = Replay::default();
        for event in events.iter().filter(|event| event.connection == connection.id.as_str()) {
            let Some(then) = recorded(event) else { continue };
            let version = self.recorded_version(event).await?;
            let (Some(version), false) = (version, followed(event)) else {
                replay.skipped += 1;
                continue;
            };
            replay.judged += 1;
            let request = again(event, connection);
            let supposed = match event.rule.as_str() {
                _ if event.dry_run => Supposed::DryRun,
                "each_asks" => Supposed::Each,
                _ => Supposed::Usual,
            };
            let (sites, hints) = (&version.version.sites, version.version.hints);
            let review = Review { connection, sites, hints, supposed, request: &request };
            let now = review.explain(&Limits::default());
            if now.verdict != then {
                replay.flips.push(Flip {
                    run: event.run.clone(),
                    request: event.request,
                    at_ms: event.at_ms,
                    tool: event.tool.clone(),
                    asked: format!("{} {}{}", event.method, event.host, event.path),
                    then,
                    then_rule: event.rule.clone(),
                    now: now.verdict,
                    now_rule: now.code.or(now.rule).unwrap_or_default().to_owned(),
                });
            }
        }
        Ok(replay)
    }

    async fn recorded_version(
        &self,
        event: &AuditEvent,
    ) -> Result<Option<std::sync::Arc<crate::toolbox::Loaded>>, EngineError> {
        let Ok(tool) = ToolName::parse(&event.tool) else { return Ok(None) };
        let newest = self.parts.store.newest_number(&self.person, &tool).await?;
        for number in (1..=newest).rev() {
            if let Some(loaded) = self.toolbox.version(&tool, number).await?
                && loaded.version.hash.to_string() == event.version
            {
                return Ok(Some(loaded));
            }
        }
        Ok(None)
    }
}

impl Asked {
    /// As a session would get it.
    pub fn request(&self) -> OutboundRequest {
        let headers =
            self.headers.iter().map(|(name, value)| (name.clone(), value.as_bytes().to_vec()));
        OutboundRequest {
            method: self.method.clone(),
            host: self.host.clone(),
            target: self.path.clone(),
            headers: headers.collect(),
            body: Bytes::copy_from_slice(self.body.as_bytes()),
            sdk: false,
        }
    }
}

/// What was decided of a recorded request by the policy; `None` for rows that
/// say something else, or say it a second time.
fn recorded(event: &AuditEvent) -> Option<Verdict> {
    let read = event.effect.as_deref() == Some("read");
    match event.kind {
        AuditKind::Intent if read => Some(Verdict::Forward),
        // One that was held first has its hold's row.
        AuditKind::Intent => Some(Verdict::Ask),
        AuditKind::Preview => Some(Verdict::Preview),
        // What the policy refuses; the rest failed for reasons of their time.
        AuditKind::Refusal => {
            let policy = matches!(
                event.rule.as_str(),
                "outside_call_sites" | "method_exceeds_hint" | "path_ambiguous" | "path_invalid"
            );
            let waits = matches!(
                event.rule.as_str(),
                "awaiting_approval" | "ask_dismissed" | "tool_denied"
            );
            match (policy, waits) {
                (true, _) => Some(Verdict::Refuse),
                (_, true) => Some(Verdict::Ask),
                _ => None,
            }
        }
        AuditKind::Hold | AuditKind::Outcome | AuditKind::Change | AuditKind::Command => None,
    }
}

fn followed(event: &AuditEvent) -> bool {
    event.notes.iter().any(|note| note.starts_with("download_hop:"))
}

/// The request of a row, as far as the audit keeps one: no query values, no
/// body. What counted as a query then is taken for one again.
fn again(event: &AuditEvent, connection: &Connection) -> OutboundRequest {
    let queried = event.rule == "queries_go";
    let body = if queried { r#"{"query":"{ __typename }"}"# } else { "" };
    let headers = match queried {
        true => vec![("content-type".to_owned(), b"application/json".to_vec())],
        false => Vec::new(),
    };
    let name = event.host.rsplit_once(':').map_or(event.host.as_str(), |(name, _)| name);
    let known = connection.hosts.iter().find(|host| host.name == name);
    OutboundRequest {
        method: event.method.clone(),
        host: known.map(|host| host.label.clone()),
        target: event.path.clone(),
        headers,
        body: Bytes::from_static(body.as_bytes()),
        sdk: false,
    }
}
