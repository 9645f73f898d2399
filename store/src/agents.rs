//! Agents and the hashes of their tokens.

use crate::Store;
use crate::database::{Commit, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::memory::Question;
use crate::row::{Read, belongs};
use crate::seal::{RowName, seal};
use cambium_engine::Agent;
use cambium_engine::port::{AgentStore, Answering, SecretHash};
use cambium_proxy::{AgentId, PersonId, StoreFault};
use sqlx::sqlite::SqliteRow;

macro_rules! agent {
    ($rest:literal) => {
        concat!(
            "SELECT agent_id, person_id, name, cap, idle_days, paused, created_ms, ",
            seal!(agents),
            " AS seal FROM agents ",
            $rest
        )
    };
}

pub(crate) const AGENT: &str = agent!("WHERE agent_id = $1");
const AGENTS: &str = agent!("WHERE person_id = $1 ORDER BY created_ms, agent_id");
pub(crate) const OF_TOKEN: &str = concat!(
    "SELECT agent_id, ",
    seal!(agent_tokens),
    " AS seal FROM agent_tokens WHERE token_hash = $1 AND revoked_ms IS NULL"
);

impl AgentStore for Store {
    fn insert_agent<'a>(&'a self, agent: &'a Agent, token: &'a SecretHash) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO agents
                    (agent_id, person_id, name, cap, idle_days, paused, created_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(agent.id.as_str())
            .bind(agent.person.as_str())
            .bind(&agent.name)
            .bind(i64::from(agent.cap))
            .bind(i64::from(agent.idle_days))
            .bind(i64::from(agent.paused))
            .bind(agent.created_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::agent(&agent.id));
            insert_token(&mut writing, &agent.id, token).await?;
            writing.commit().await
        })
    }

    fn update_agent<'a>(&'a self, agent: &'a Agent) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "UPDATE agents SET name = $2, cap = $3, idle_days = $4, paused = $5
                WHERE agent_id = $1",
            )
            .bind(agent.id.as_str())
            .bind(&agent.name)
            .bind(i64::from(agent.cap))
            .bind(i64::from(agent.idle_days))
            .bind(i64::from(agent.paused))
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "agent")?;
            writing.changed(RowName::agent(&agent.id));
            writing.commit().await
        })
    }

    fn agent<'a>(&'a self, id: &'a AgentId) -> Answering<'a, Option<Agent>> {
        Box::pin(self.remembered(Question::Agent(id.as_str().to_owned()), move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(AGENT).bind(id.as_str()).fetch_optional(&mut *on).await;
                let Some(row) = row.map_err(fault)? else { return Ok((None, Vec::new())) };
                let (agent, claim) = read(&row)?;
                Ok((Some(agent), vec![claim]))
            })
        }))
    }

    fn agents<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Agent>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let rows = sqlx::query(AGENTS).bind(person.as_str()).fetch_all(&mut *on).await;
                let read: Result<Vec<_>, _> = rows.map_err(fault)?.iter().map(read).collect();
                Ok(read?.into_iter().unzip())
            })
        }))
    }

    fn agent_of_token<'a>(&'a self, token: &'a SecretHash) -> Answering<'a, Option<Agent>> {
        Box::pin(self.remembered(Question::OfToken(*token), move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(OF_TOKEN).bind(&token[..]).fetch_optional(&mut *on).await;
                let Some(row) = row.map_err(fault)? else { return Ok((None, Vec::new())) };
                let held = Claim::Is(RowName::token(token), row.get_as("seal")?);
                let id: String = row.get_as("agent_id")?;
                let row = sqlx::query(AGENT).bind(id).fetch_optional(&mut *on).await;
                let Some(row) = row.map_err(fault)? else { return Ok((None, vec![held])) };
                let (agent, claim) = read(&row)?;
                Ok((Some(agent), vec![held, claim]))
            })
        }))
    }

    fn rotate_token<'a>(
        &'a self,
        agent: &'a AgentId,
        token: &'a SecretHash,
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let revoked = sqlx::query(
                "UPDATE agent_tokens SET revoked_ms = $2
                WHERE agent_id = $1 AND revoked_ms IS NULL RETURNING token_hash",
            )
            .bind(agent.as_str())
            .bind(now_ms)
            .fetch_all(writing.on())
            .await
            .map_err(fault)?;
            for old in revoked {
                writing.changed(RowName::token(old.get_as("token_hash")?));
            }
            insert_token(&mut writing, agent, token).await?;
            writing.commit().await
        })
    }
}

async fn insert_token(
    writing: &mut Writing<'_>,
    agent: &AgentId,
    token: &SecretHash,
) -> Result<(), StoreFault> {
    let done = sqlx::query(
        "INSERT INTO agent_tokens (token_hash, person_id, agent_id)
        SELECT $1, person_id, agent_id FROM agents WHERE agent_id = $2",
    )
    .bind(&token[..])
    .bind(agent.as_str())
    .execute(writing.on())
    .await
    .map_err(fault)?;
    writing.changed(RowName::token(token));
    belongs(done.rows_affected(), "agent")
}

fn read(row: &SqliteRow) -> Result<(Agent, Claim), StoreFault> {
    let agent = Agent {
        id: row.id("agent_id", AgentId::new)?,
        person: row.id("person_id", PersonId::new)?,
        name: row.get_as("name")?,
        cap: row.unsigned("cap")?,
        idle_days: row.unsigned("idle_days")?,
        paused: row.flag("paused")?,
        created_ms: row.get_as("created_ms")?,
    };
    let claim = Claim::Is(RowName::agent(&agent.id), row.get_as("seal")?);
    Ok((agent, claim))
}
