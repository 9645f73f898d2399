//! Runs and whole results. The rows of a run are on the path of every call, so
//! their commits do not wait for the disk; what a run may have written is in
//! the audit, which does.

use crate::database::Commit;
use crate::error::fault;
use crate::row::{Read, belongs};
use crate::{Store, sets};
use cambium_engine::port::{
    Answering, RunEnd, RunRow, RunStore, STATISTICS_RUNS, StoredResult, ToolRuns,
};
use cambium_proxy::{AgentId, ConnectionId, PersonId, RunId, StoreFault};
use sqlx::sqlite::SqliteRow;

pub(crate) const RUN: &str = "SELECT run_id, person_id, agent_id, tool, number, version,
        connection_id, dry_run, detached, node, call_key, begun_ms, outcome, ended_ms,
        evidence
    FROM runs WHERE run_id = $1";
const OF_CALL: &str = "SELECT run_id, person_id, agent_id, tool, number, version,
        connection_id, dry_run, detached, node, call_key, begun_ms, outcome, ended_ms,
        evidence
    FROM runs WHERE agent_id = $1 AND call_key = $2 ORDER BY begun_ms DESC LIMIT 1";
// Of the newest: runs are kept for good, and an open page asks this again and again.
const STATISTICS: &str = "SELECT tool, COUNT(*) AS calls,
        SUM(CASE WHEN outcome IN
            ('ok', 'dry_run', 'awaiting_approval', 'ask_dismissed', 'tool_denied')
            THEN 0 ELSE 1 END) AS errors,
        CAST(AVG(ended_ms - begun_ms) AS INTEGER) AS mean_ms,
        MAX(ended_ms - begun_ms) AS longest_ms, MAX(begun_ms) AS last_ms
    FROM (SELECT tool, outcome, begun_ms, ended_ms FROM runs
        WHERE person_id = $1 AND outcome IS NOT NULL ORDER BY run_id DESC LIMIT $2)
    GROUP BY tool ORDER BY calls DESC, tool";
pub(crate) const NEWEST: &str = "SELECT run_id, person_id, agent_id, tool, number, version,
        connection_id, dry_run, detached, node, call_key, begun_ms, outcome, ended_ms,
        evidence
    FROM runs WHERE person_id = $1 ORDER BY run_id DESC LIMIT $2";
pub(crate) const LASTING: &str =
    "SELECT COUNT(*) AS lasting FROM runs WHERE agent_id = $1 AND outcome IS NULL";
pub(crate) const RESULT: &str = "SELECT run_id, agent_id, mime_type, text, stored_ms
    FROM results WHERE run_id = $1 AND agent_id = $2";

impl RunStore for Store {
    fn begin_run<'a>(&'a self, run: &'a RunRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut alone = self.alone().await?;
            sqlx::query(
                "INSERT INTO runs (run_id, person_id, agent_id, tool, number, version,
                    connection_id, dry_run, detached, node, begun_ms, outcome, ended_ms,
                    call_key)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            )
            .bind(run.id.as_str())
            .bind(run.person.as_str())
            .bind(run.agent.as_str())
            .bind(run.tool.to_string())
            .bind(i64::from(run.number))
            .bind(run.version.to_string())
            .bind(run.connection.as_str())
            .bind(i64::from(run.dry_run))
            .bind(i64::from(run.detached))
            .bind(&run.node)
            .bind(run.begun_ms)
            .bind(run.outcome.as_deref())
            .bind(run.ended_ms)
            .bind(run.call_key.as_deref())
            .execute(alone.on())
            .await
            .map_err(fault)?;
            alone.done();
            Ok(())
        })
    }

    fn end_run<'a>(&'a self, end: &'a RunEnd) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut alone = self.alone().await?;
            // The use first: a death in between leaves a run that has not ended,
            // and the node's next start ends it.
            if end.used {
                sets::use_tool_of(alone.on(), &end.id, end.ended_ms).await?;
            }
            sqlx::query(
                "UPDATE runs SET outcome = $2, ended_ms = $3, evidence = $4
                WHERE run_id = $1 AND outcome IS NULL",
            )
            .bind(end.id.as_str())
            .bind(&end.outcome)
            .bind(end.ended_ms)
            .bind(end.evidence.as_deref())
            .execute(alone.on())
            .await
            .map_err(fault)?;
            alone.done();
            Ok(())
        })
    }

    fn end_lost<'a>(&'a self, node: &'a str, now_ms: i64) -> Answering<'a, u64> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "UPDATE runs SET outcome = 'lost', ended_ms = $2
                WHERE node = $1 AND outcome IS NULL",
            )
            .bind(node)
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.commit().await?;
            Ok(done.rows_affected())
        })
    }

    fn lasting_runs<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, u32> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(LASTING).bind(agent.as_str()).fetch_one(&mut *on).await;
            row.map_err(fault)?.unsigned("lasting")
        })
    }

    fn newest_runs<'a>(&'a self, person: &'a PersonId, most: u32) -> Answering<'a, Vec<RunRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(NEWEST)
                .bind(person.as_str())
                .bind(i64::from(most))
                .fetch_all(&mut *on)
                .await;
            rows.map_err(fault)?.iter().map(read).collect()
        })
    }

    fn run<'a>(&'a self, id: &'a RunId) -> Answering<'a, Option<RunRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(RUN).bind(id.as_str()).fetch_optional(&mut *on).await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn run_of_call<'a>(
        &'a self,
        agent: &'a AgentId,
        call_key: &'a str,
    ) -> Answering<'a, Option<RunRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(OF_CALL)
                .bind(agent.as_str())
                .bind(call_key)
                .fetch_optional(&mut *on)
                .await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn statistics<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<ToolRuns>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows =
                sqlx::query(STATISTICS).bind(person.as_str()).bind(i64::from(STATISTICS_RUNS));
            let rows = rows.fetch_all(&mut *on).await;
            let of = |row: &SqliteRow| {
                Ok(ToolRuns {
                    tool: row.get_as("tool")?,
                    calls: row.unsigned("calls")?,
                    errors: row.unsigned("errors")?,
                    // a clock set back makes a run end before it began
                    mean_ms: row.get_as::<i64>("mean_ms")?.max(0).unsigned_abs(),
                    longest_ms: row.get_as::<i64>("longest_ms")?.max(0).unsigned_abs(),
                    last_ms: row.get_as("last_ms")?,
                })
            };
            rows.map_err(fault)?.iter().map(of).collect()
        })
    }

    fn put_result<'a>(&'a self, result: &'a StoredResult) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Quick).await?;
            // Only of a run that is this agent's.
            let done = sqlx::query(
                "INSERT INTO results (run_id, person_id, agent_id, mime_type, text, stored_ms)
                SELECT run_id, person_id, agent_id, $3, $4, $5
                FROM runs WHERE run_id = $1 AND agent_id = $2
                ON CONFLICT (run_id) DO UPDATE SET mime_type = excluded.mime_type,
                    text = excluded.text, stored_ms = excluded.stored_ms",
            )
            .bind(result.run.as_str())
            .bind(result.agent.as_str())
            .bind(&result.mime_type)
            .bind(&result.text)
            .bind(result.stored_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "run of this agent")?;
            writing.commit().await
        })
    }

    fn result<'a>(
        &'a self,
        agent: &'a AgentId,
        run: &'a RunId,
    ) -> Answering<'a, Option<StoredResult>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(RESULT)
                .bind(run.as_str())
                .bind(agent.as_str())
                .fetch_optional(&mut *on)
                .await;
            let read = |row: SqliteRow| {
                Ok(StoredResult {
                    run: row.id("run_id", RunId::new)?,
                    agent: row.id("agent_id", AgentId::new)?,
                    mime_type: row.get_as("mime_type")?,
                    text: row.get_as("text")?,
                    stored_ms: row.get_as("stored_ms")?,
                })
            };
            row.map_err(fault)?.map(read).transpose()
        })
    }
}

fn read(row: &SqliteRow) -> Result<RunRow, StoreFault> {
    Ok(RunRow {
        id: row.id("run_id", RunId::new)?,
        person: row.id("person_id", PersonId::new)?,
        agent: row.id("agent_id", AgentId::new)?,
        tool: row.tool("tool")?,
        number: row.unsigned("number")?,
        version: row.digest("version")?,
        connection: row.id("connection_id", ConnectionId::new)?,
        dry_run: row.flag("dry_run")?,
        detached: row.flag("detached")?,
        node: row.get_as("node")?,
        call_key: row.get_as("call_key")?,
        begun_ms: row.get_as("begun_ms")?,
        outcome: row.get_as("outcome")?,
        ended_ms: row.get_as("ended_ms")?,
        evidence: row.get_as("evidence")?,
    })
}
