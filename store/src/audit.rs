//! The audit chain of each node, append-only. Rows are hashed and signed where
//! they are made; the schema refuses a row that does not follow the last one.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::row::{Read, whole};
use cambium_proxy::{AuditRow, AuditSink, BoxFuture, StoreFault};
use serde::Deserialize;
use sqlx::sqlite::SqliteRow;

pub(crate) const LAST: &str = "SELECT node, sequence, event, previous, hash, mac FROM audit
    WHERE node = $1 ORDER BY sequence DESC LIMIT 1";
pub(crate) const ROWS: &str = "SELECT node, sequence, event, previous, hash, mac FROM audit
    WHERE node = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";

/// What of an event says whose row it is.
#[derive(Deserialize)]
struct Whose {
    agent: String,
}

impl AuditSink for Store {
    fn append<'a>(
        &'a self,
        rows: &'a [AuditRow],
        durable: bool,
    ) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let commit = if durable { Commit::Durable } else { Commit::Quick };
            let mut writing = self.write(commit).await?;
            for row in rows {
                let whose: Option<Whose> = serde_json::from_str(&row.event).ok();
                sqlx::query(
                    "INSERT INTO audit (node, sequence, person_id, event, previous, hash, mac)
                    VALUES ($1, $2,
                        COALESCE((SELECT person_id FROM agents WHERE agent_id = $3), ''),
                        $4, $5, $6, $7)",
                )
                .bind(&row.node)
                .bind(whole(row.sequence)?)
                .bind(whose.map(|whose| whose.agent))
                .bind(&row.event)
                .bind(&row.previous)
                .bind(&row.hash)
                .bind(&row.mac)
                .execute(writing.on())
                .await
                .map_err(fault)?;
            }
            if let Some(last) = rows.last() {
                writing.audits_to(&last.node, last.sequence, &last.hash);
            }
            writing.commit().await
        })
    }

    fn last<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Option<AuditRow>, StoreFault>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(LAST).bind(node).fetch_optional(&mut *on).await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn rows<'a>(
        &'a self,
        node: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<AuditRow>, StoreFault>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(ROWS)
                .bind(node)
                .bind(whole(after)?)
                .bind(i64::from(limit))
                .fetch_all(&mut *on)
                .await
                .map_err(fault)?;
            rows.iter().map(read).collect()
        })
    }
}

fn read(row: &SqliteRow) -> Result<AuditRow, StoreFault> {
    Ok(AuditRow {
        node: row.get_as("node")?,
        sequence: row.unsigned("sequence")?,
        event: row.get_as("event")?,
        previous: row.get_as("previous")?,
        hash: row.get_as("hash")?,
        mac: row.get_as("mac")?,
    })
}
