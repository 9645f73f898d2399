//! The audit's questions, answered from a running server or from a directory
//! that none runs on: the same answers either way.

use crate::failure::Failure;
use cambium_engine::EngineError;
use cambium_proxy::{Anchor, AuditBreak, AuditRow, AuditSegment, AuditSink, Proxy, StoreFault};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Rows of one answer at most.
const ROWS: u32 = 1_000;

/// What can be asked of the audit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum AuditAsk {
    /// The newest rows, or those after a number.
    List {
        /// After this one.
        after: Option<u64>,
        /// How many.
        limit: u32,
    },
    /// Walks every chain and holds it against anchors.
    Verify {
        /// What a person kept.
        anchors: Vec<Anchor>,
    },
    /// States how far this node's chain has come.
    Anchor {},
    /// The names of all chains.
    Nodes {},
    /// A node's rows after a number, and the segments of those that are gone, as
    /// lines.
    Export {
        /// Whose.
        node: String,
        /// After this one.
        after: u64,
    },
}

/// What the answers come from.
pub(crate) struct Audit {
    /// Verifies and signs.
    pub(crate) proxy: Arc<Proxy>,
    /// Holds the rows.
    pub(crate) sink: Arc<dyn AuditSink>,
    /// Name of this node's chain.
    pub(crate) node: String,
}

impl Audit {
    /// Answers one.
    pub(crate) async fn answer(&self, ask: AuditAsk) -> Result<Value, Failure> {
        match ask {
            AuditAsk::List { after, limit } => self.list(after, limit).await,
            AuditAsk::Verify { anchors } => self.verify(&anchors).await,
            AuditAsk::Anchor {} => Ok(json!(self.proxy.anchor().await.map_err(unread)?)),
            AuditAsk::Nodes {} => Ok(json!(self.sink.nodes().await.map_err(unread)?)),
            AuditAsk::Export { node, after } => self.export(&node, after).await,
        }
    }

    async fn list(&self, after: Option<u64>, limit: u32) -> Result<Value, Failure> {
        let after = match after {
            Some(after) => after,
            None => {
                let last = self.sink.last(&self.node).await.map_err(unread)?;
                last.map_or(0, |row| row.sequence.saturating_sub(u64::from(limit)))
            }
        };
        let rows = self.sink.rows(&self.node, after, limit).await.map_err(unread)?;
        Ok(rows.iter().map(listed).collect())
    }

    /// Walks the chains; a break is a failure that names the row.
    async fn verify(&self, anchors: &[Anchor]) -> Result<Value, Failure> {
        let chains = self.proxy.verify_audit(anchors).await.map_err(|broken| {
            let AuditBreak { node, row, reason } = broken;
            Failure::new(
                "audit_broken",
                format!("audit row {row} of node {node} does not hold: {reason}"),
                "keep the data directory as it is, and compare it with a backup",
            )
        })?;
        let rows: u64 = chains.iter().map(|chain| chain.rows).sum();
        Ok(json!({ "rows": rows, "holds": true, "chains": chains }))
    }

    async fn export(&self, node: &str, after: u64) -> Result<Value, Failure> {
        let mut lines = Vec::new();
        let (mut last, mut done) = (after, false);
        let rows = self.sink.rows(node, after, ROWS).await.map_err(unread)?;
        // Rows that were let go, before or while this is exported.
        if rows.first().is_none_or(|row| row.sequence > after + 1) {
            let segments = self.sink.segments(node).await.map_err(unread)?;
            let missing = segments.iter().filter(|segment| segment.last > after);
            lines.extend(missing.map(segment_line));
        }
        match rows.last() {
            Some(row) => last = row.sequence,
            None => done = true,
        }
        lines.extend(rows.iter().map(row_line));
        Ok(json!({ "lines": lines, "last": last, "done": done }))
    }
}

fn unread(fault: StoreFault) -> Failure {
    Failure::from(EngineError::Store(fault))
}

fn listed(row: &AuditRow) -> Value {
    // The event goes out parsed; the hash is over the stored text.
    let event = serde_json::from_str(&row.event).unwrap_or_else(|_| json!(row.event));
    json!({
        "node": row.node,
        "sequence": row.sequence,
        "event": event,
        "previous": hex(&row.previous),
        "hash": hex(&row.hash),
    })
}

/// A row as a line: the event byte for byte as it was hashed.
fn row_line(row: &AuditRow) -> String {
    let event = match serde_json::from_str::<serde::de::IgnoredAny>(&row.event) {
        Ok(_) if !row.event.contains('\n') => row.event.clone(),
        // No event of ours; shown as the text it is.
        _ => json!(row.event).to_string(),
    };
    format!(
        r#"{{"node":{},"sequence":{},"event":{event},"previous":"{}","hash":"{}","mac":"{}"}}"#,
        json!(row.node),
        row.sequence,
        hex(&row.previous),
        hex(&row.hash),
        hex(&row.mac),
    )
}

fn segment_line(segment: &AuditSegment) -> String {
    json!({
        "node": segment.node,
        "segment": { "first": segment.first, "last": segment.last },
        "fromMs": segment.from_ms,
        "untilMs": segment.until_ms,
        "letGoMs": segment.at_ms,
        "previous": hex(&segment.previous),
        "hash": hex(&segment.hash),
        "mac": hex(&segment.mac),
    })
    .to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
