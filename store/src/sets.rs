//! Working sets and their history. A member row stays when its tool is demoted:
//! it also keeps the agent's last use. Every move, whoever asks for it, goes
//! through [`move_in`] or [`move_out`], so none is without its history row.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::row::{Read, belongs, to_word};
use cambium_engine::port::{Answering, Moved, SetRow, SetStore};
use cambium_engine::{HistoryEntry, MoveCause, ToolName};
use cambium_proxy::{AgentId, RunId, StoreFault};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

pub(crate) const SET: &str = "SELECT tool, cause, promoted_ms, last_used_ms FROM members
    WHERE agent_id = $1 AND promoted = 1 ORDER BY tool";
pub(crate) const SIZE: &str =
    "SELECT COUNT(*) AS size FROM members WHERE agent_id = $1 AND promoted = 1";
pub(crate) const HISTORY: &str = "SELECT tool, promoted, cause, at_ms FROM history
    WHERE agent_id = $1 ORDER BY history_id DESC LIMIT $2";

impl SetStore for Store {
    fn set<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, Vec<SetRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(SET).bind(agent.as_str()).fetch_all(&mut *on).await;
            let read = |row: &SqliteRow| {
                Ok(SetRow {
                    tool: row.tool("tool")?,
                    cause: row.word("cause")?,
                    promoted_ms: row.get_as("promoted_ms")?,
                    last_used_ms: row.get_as("last_used_ms")?,
                })
            };
            rows.map_err(fault)?.iter().map(read).collect()
        })
    }

    fn promote<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
        cause: MoveCause,
        now_ms: i64,
    ) -> Answering<'a, Moved> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let moved = move_in(writing.on(), agent, tool, cause, now_ms).await?;
            let size = size(writing.on(), agent).await?;
            writing.commit().await?;
            Ok(Moved { changed: usize::from(moved), size })
        })
    }

    fn demote<'a>(
        &'a self,
        agent: &'a AgentId,
        tools: &'a [(ToolName, MoveCause)],
        now_ms: i64,
    ) -> Answering<'a, Moved> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let mut changed = 0;
            for (tool, cause) in tools {
                let moved = move_out(writing.on(), agent, tool, *cause, now_ms).await?;
                changed += usize::from(moved);
            }
            let size = size(writing.on(), agent).await?;
            writing.commit().await?;
            Ok(Moved { changed, size })
        })
    }

    fn history<'a>(&'a self, agent: &'a AgentId, limit: u32) -> Answering<'a, Vec<HistoryEntry>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(HISTORY)
                .bind(agent.as_str())
                .bind(i64::from(limit))
                .fetch_all(&mut *on)
                .await;
            let read = |row: &SqliteRow| {
                Ok(HistoryEntry {
                    tool: row.tool("tool")?,
                    promoted: row.flag("promoted")?,
                    cause: row.word("cause")?,
                    at_ms: row.get_as("at_ms")?,
                })
            };
            rows.map_err(fault)?.iter().map(read).collect()
        })
    }
}

/// Adds a tool unless it is there; answers whether it was added.
pub(crate) async fn move_in(
    on: &mut SqliteConnection,
    agent: &AgentId,
    tool: &ToolName,
    cause: MoveCause,
    now_ms: i64,
) -> Result<bool, StoreFault> {
    let wire = tool.to_string();
    let done = sqlx::query(
        "INSERT INTO members (agent_id, tool, person_id, promoted, cause, promoted_ms)
        SELECT agent_id, $2, person_id, 1, $3, $4 FROM agents WHERE agent_id = $1
        ON CONFLICT (agent_id, tool) DO UPDATE SET promoted = 1, cause = excluded.cause,
            promoted_ms = excluded.promoted_ms
        WHERE members.promoted = 0",
    )
    .bind(agent.as_str())
    .bind(&wire)
    .bind(to_word(&cause)?)
    .bind(now_ms)
    .execute(&mut *on)
    .await
    .map_err(fault)?;
    if done.rows_affected() == 0 {
        // Nothing was written: it was there, or there is no such agent.
        let row = sqlx::query("SELECT 1 FROM agents WHERE agent_id = $1").bind(agent.as_str());
        let known = row.fetch_optional(on).await.map_err(fault)?;
        belongs(u64::from(known.is_some()), "agent")?;
        return Ok(false);
    }
    record(on, agent, &wire, true, cause, now_ms).await?;
    Ok(true)
}

/// Removes a tool if it is there; answers whether it was.
pub(crate) async fn move_out(
    on: &mut SqliteConnection,
    agent: &AgentId,
    tool: &ToolName,
    cause: MoveCause,
    now_ms: i64,
) -> Result<bool, StoreFault> {
    let wire = tool.to_string();
    let done = sqlx::query(
        "UPDATE members SET promoted = 0 WHERE agent_id = $1 AND tool = $2 AND promoted = 1",
    )
    .bind(agent.as_str())
    .bind(&wire)
    .execute(&mut *on)
    .await
    .map_err(fault)?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    record(on, agent, &wire, false, cause, now_ms).await?;
    Ok(true)
}

/// Sets the last use of a tool by the agent of a run that has not ended, never
/// back.
pub(crate) async fn use_tool_of(
    on: &mut SqliteConnection,
    run: &RunId,
    at_ms: i64,
) -> Result<(), StoreFault> {
    sqlx::query(
        "INSERT INTO members (agent_id, tool, person_id, promoted, last_used_ms)
        SELECT agent_id, tool, person_id, 0, $2 FROM runs
        WHERE run_id = $1 AND outcome IS NULL
        ON CONFLICT (agent_id, tool) DO UPDATE SET last_used_ms = excluded.last_used_ms
        WHERE members.last_used_ms IS NULL OR members.last_used_ms < excluded.last_used_ms",
    )
    .bind(run.as_str())
    .bind(at_ms)
    .execute(on)
    .await
    .map_err(fault)?;
    Ok(())
}

async fn size(on: &mut SqliteConnection, agent: &AgentId) -> Result<usize, StoreFault> {
    let row = sqlx::query(SIZE).bind(agent.as_str()).fetch_one(on).await.map_err(fault)?;
    row.unsigned("size")
}

async fn record(
    on: &mut SqliteConnection,
    agent: &AgentId,
    wire: &str,
    promoted: bool,
    cause: MoveCause,
    now_ms: i64,
) -> Result<(), StoreFault> {
    sqlx::query(
        "INSERT INTO history (person_id, agent_id, tool, promoted, cause, at_ms)
        SELECT person_id, agent_id, $2, $3, $4, $5 FROM agents WHERE agent_id = $1",
    )
    .bind(agent.as_str())
    .bind(wire)
    .bind(i64::from(promoted))
    .bind(to_word(&cause)?)
    .bind(now_ms)
    .execute(on)
    .await
    .map_err(fault)?;
    Ok(())
}
