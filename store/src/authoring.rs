//! Jobs of acquire and their progress. A job is sealed, since a start takes up
//! those that have not ended; the lines are only shown.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::ledger::Claim;
use crate::row::{Read, belongs, to_word, whole};
use crate::seal::{RowName, seal};
use cambium_engine::port::{Answering, AuthorJobRow, AuthorStore};
use cambium_proxy::{AgentId, ConnectionId, StoreFault};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

macro_rules! job {
    ($rest:literal) => {
        concat!(
            "SELECT job_id, agent_id, connection_id, goal, hints, status, attempts, tokens, result,
                created_ms, ",
            seal!(author_jobs),
            " AS seal FROM author_jobs ",
            $rest
        )
    };
}

pub(crate) const JOB: &str = job!("WHERE job_id = $1");
const OPEN: &str = job!("WHERE status IN ('queued', 'running') ORDER BY job_id");
pub(crate) const LINES: &str =
    "SELECT text FROM author_lines WHERE job_id = $1 AND sequence > $2 ORDER BY sequence";

impl AuthorStore for Store {
    fn insert_author_job<'a>(&'a self, job: &'a AuthorJobRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "INSERT INTO author_jobs (job_id, person_id, agent_id, connection_id, goal, hints,
                    status, attempts, tokens, result, created_ms)
                SELECT $1, person_id, agent_id, $3, $4, $5, $6, $7, $8, $9, $10 FROM agents
                WHERE agent_id = $2",
            )
            .bind(&job.id)
            .bind(job.agent.as_str())
            .bind(job.connection.as_str())
            .bind(&job.goal)
            .bind(job.hints.as_deref())
            .bind(to_word(&job.status)?)
            .bind(i64::from(job.attempts))
            .bind(whole(job.tokens)?)
            .bind(job.result.as_deref())
            .bind(job.created_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "agent")?;
            writing.changed(RowName::author_job(&job.id));
            writing.commit().await
        })
    }

    fn author_job<'a>(&'a self, id: &'a str) -> Answering<'a, Option<AuthorJobRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(JOB).bind(id).fetch_optional(&mut *on).await;
                let Some(row) = row.map_err(fault)? else { return Ok((None, Vec::new())) };
                let (job, claim) = read(&row)?;
                Ok((Some(job), vec![claim]))
            })
        }))
    }

    fn open_author_jobs(&self) -> Answering<'_, Vec<AuthorJobRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let rows = sqlx::query(OPEN).fetch_all(&mut *on).await.map_err(fault)?;
                let read: Result<Vec<_>, StoreFault> = rows.iter().map(read).collect();
                Ok(read?.into_iter().unzip())
            })
        }))
    }

    fn update_author_job<'a>(&'a self, job: &'a AuthorJobRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "UPDATE author_jobs SET status = $2, attempts = $3, tokens = $4, result = $5
                WHERE job_id = $1 AND status IN ('queued', 'running')",
            )
            .bind(&job.id)
            .bind(to_word(&job.status)?)
            .bind(i64::from(job.attempts))
            .bind(whole(job.tokens)?)
            .bind(job.result.as_deref())
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "job under way")?;
            writing.changed(RowName::author_job(&job.id));
            writing.commit().await
        })
    }

    fn add_author_line<'a>(
        &'a self,
        job: &'a AuthorJobRow,
        text: &'a str,
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut alone = self.alone().await?;
            let done = sqlx::query(
                "INSERT INTO author_lines (job_id, sequence, person_id, text, at_ms)
                SELECT job_id, 1 + COALESCE(
                    (SELECT MAX(sequence) FROM author_lines WHERE job_id = $1), 0),
                    person_id, $2, $3
                FROM author_jobs WHERE job_id = $1",
            )
            .bind(&job.id)
            .bind(text)
            .bind(now_ms)
            .execute(alone.on())
            .await
            .map_err(fault)?;
            alone.done();
            belongs(done.rows_affected(), "job")
        })
    }

    fn author_lines<'a>(&'a self, id: &'a str, after: u64) -> Answering<'a, Vec<String>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(LINES).bind(id).bind(whole(after)?).fetch_all(&mut *on).await;
            rows.map_err(fault)?.iter().map(|row| row.try_get("text").map_err(fault)).collect()
        })
    }
}

fn read(row: &SqliteRow) -> Result<(AuthorJobRow, Claim), StoreFault> {
    let job = AuthorJobRow {
        id: row.get_as("job_id")?,
        agent: row.id("agent_id", AgentId::new)?,
        connection: row.id("connection_id", ConnectionId::new)?,
        goal: row.get_as("goal")?,
        hints: row.get_as("hints")?,
        status: row.word("status")?,
        attempts: row.unsigned("attempts")?,
        tokens: row.unsigned("tokens")?,
        result: row.get_as("result")?,
        created_ms: row.get_as("created_ms")?,
    };
    let claim = Claim::Is(RowName::author_job(&job.id), row.get_as("seal")?);
    Ok((job, claim))
}
