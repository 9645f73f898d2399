//! The audit chain of each node, append-only but for what a segment stands for.
//! Rows are hashed and signed where they are made; the schema refuses a row that
//! does not follow the last one, and lets none go without its segment.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::ledger::{Claim, hex};
use crate::row::{Read, whole};
use crate::seal::{RowName, Table, seal};
use cambium_proxy::{AuditRow, AuditSegment, AuditSink, BoxFuture, StoreFault};
use serde::Deserialize;
use serde_json::json;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

pub(crate) const LAST: &str = "SELECT node, sequence, event, previous, hash, mac FROM audit
    WHERE node = $1 ORDER BY sequence DESC LIMIT 1";
pub(crate) const ROWS: &str = "SELECT node, sequence, event, previous, hash, mac FROM audit
    WHERE node = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";

// One step of the index a node: the table may have millions of rows.
pub(crate) const NEXT_NODE: &str = "SELECT MIN(node) AS node FROM audit WHERE node > $1";
pub(crate) const SEGMENTS: &str = concat!(
    "SELECT node, first, last, previous, hash, from_ms, until_ms, at_ms, mac, ",
    seal!(audit_segments),
    " AS seal FROM audit_segments WHERE node = $1 ORDER BY first"
);

/// What of an event says whose row it is.
#[derive(Deserialize)]
struct Whose {
    agent: String,
}

/// A group of rows is one statement, since each costs a trip to the database's
/// thread.
const APPEND: &str = "INSERT INTO audit (node, sequence, person_id, event, previous, hash, mac)
    SELECT value ->> 0, value ->> 1,
        COALESCE((SELECT person_id FROM agents WHERE agent_id = value ->> 2), ''),
        value ->> 3, unhex(value ->> 4), unhex(value ->> 5), unhex(value ->> 6)
    FROM json_each($1) ORDER BY key";

fn as_json(rows: &[AuditRow]) -> Result<String, StoreFault> {
    let row = |row: &AuditRow| {
        let whose: Option<Whose> = serde_json::from_str(&row.event).ok();
        Ok(json!([
            row.node,
            whole(row.sequence)?,
            whose.map(|whose| whose.agent),
            row.event,
            hex(&row.previous),
            hex(&row.hash),
            hex(&row.mac),
        ]))
    };
    let rows = rows.iter().map(row).collect::<Result<Vec<_>, StoreFault>>()?;
    Ok(serde_json::Value::from(rows).to_string())
}

async fn insert(on: &mut SqliteConnection, rows: String) -> Result<(), StoreFault> {
    sqlx::query(APPEND).bind(rows).execute(on).await.map(drop).map_err(fault)
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
            let text = as_json(rows)?;
            if durable {
                let mut writing = self.write(Commit::Durable).await?;
                insert(writing.on(), text).await?;
                if let Some(last) = rows.last() {
                    writing.audits_to(&last.node, last.sequence, &last.hash);
                }
                return writing.commit().await;
            }
            let mut alone = self.alone().await?;
            insert(alone.on(), text).await?;
            match rows.last() {
                Some(last) => alone.audited(&last.node, last.sequence, &last.hash),
                None => Ok(()),
            }
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

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreFault>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let mut nodes: Vec<String> = Vec::new();
            loop {
                let last = nodes.last().cloned().unwrap_or_default();
                let row = sqlx::query(NEXT_NODE).bind(last).fetch_one(&mut *on).await;
                match row.map_err(fault)?.get_as::<Option<String>>("node")? {
                    Some(node) => nodes.push(node),
                    None => return Ok(nodes),
                }
            }
        })
    }

    fn segments<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Vec<AuditSegment>, StoreFault>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let rows = sqlx::query(SEGMENTS).bind(node).fetch_all(&mut *on).await;
                let rows = rows.map_err(fault)?;
                let (mut segments, mut claims) = (Vec::new(), Vec::new());
                for row in &rows {
                    let segment = read_segment(row)?;
                    let name = RowName::segment(node, whole(segment.first)?);
                    claims.push(Claim::Is(name, row.get_as("seal")?));
                    segments.push(segment);
                }
                let count = segments.len() as u64;
                claims.push(Claim::Counts(Table::AuditSegments, vec![node.to_owned()], count));
                Ok((segments, claims))
            })
        }))
    }

    fn let_go<'a>(&'a self, segment: &'a AuditSegment) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let (first, last) = (whole(segment.first)?, whole(segment.last)?);
            let done = sqlx::query(
                "INSERT INTO audit_segments (node, first, last, previous, hash, from_ms, until_ms,
                    at_ms, mac)
                SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
                WHERE $2 = 1 + COALESCE(
                    (SELECT MAX(last) FROM audit_segments WHERE node = $1), 0)",
            )
            .bind(&segment.node)
            .bind(first)
            .bind(last)
            .bind(&segment.previous)
            .bind(&segment.hash)
            .bind(segment.from_ms)
            .bind(segment.until_ms)
            .bind(segment.at_ms)
            .bind(&segment.mac)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                let text = format!("segment {first} does not follow the last one");
                return Err(StoreFault::Conflict(text));
            }
            writing.changed(RowName::segment(&segment.node, first));
            sqlx::query("DELETE FROM audit WHERE node = $1 AND sequence BETWEEN $2 AND $3")
                .bind(&segment.node)
                .bind(first)
                .bind(last)
                .execute(writing.on())
                .await
                .map_err(fault)?;
            writing.commit().await
        })
    }
}

fn read_segment(row: &SqliteRow) -> Result<AuditSegment, StoreFault> {
    Ok(AuditSegment {
        node: row.get_as("node")?,
        first: row.unsigned("first")?,
        last: row.unsigned("last")?,
        previous: row.get_as("previous")?,
        hash: row.get_as("hash")?,
        from_ms: row.get_as("from_ms")?,
        until_ms: row.get_as("until_ms")?,
        at_ms: row.get_as("at_ms")?,
        mac: row.get_as("mac")?,
    })
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
