//! Agents and the hashes of their tokens.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::row::{Read, belongs};
use cambium_engine::Agent;
use cambium_engine::port::{AgentStore, Answering, SecretHash};
use cambium_proxy::{AgentId, PersonId, StoreFault};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

const AGENT: &str = "SELECT agent_id, person_id, name, cap, idle_days, paused, created_ms
    FROM agents WHERE agent_id = $1";
const AGENTS: &str = "SELECT agent_id, person_id, name, cap, idle_days, paused, created_ms
    FROM agents WHERE person_id = $1 ORDER BY created_ms, agent_id";
pub(crate) const OF_TOKEN: &str =
    "SELECT a.agent_id, a.person_id, a.name, a.cap, a.idle_days, a.paused, a.created_ms
    FROM agent_tokens t JOIN agents a ON a.agent_id = t.agent_id
    WHERE t.token_hash = $1 AND t.revoked_ms IS NULL";

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
            insert_token(writing.on(), &agent.id, token).await?;
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
            writing.commit().await
        })
    }

    fn agent<'a>(&'a self, id: &'a AgentId) -> Answering<'a, Option<Agent>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(AGENT).bind(id.as_str()).fetch_optional(&mut *on).await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn agents<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Agent>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(AGENTS).bind(person.as_str()).fetch_all(&mut *on).await;
            rows.map_err(fault)?.iter().map(read).collect()
        })
    }

    fn agent_of_token<'a>(&'a self, token: &'a SecretHash) -> Answering<'a, Option<Agent>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(OF_TOKEN).bind(&token[..]).fetch_optional(&mut *on).await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn rotate_token<'a>(
        &'a self,
        agent: &'a AgentId,
        token: &'a SecretHash,
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "UPDATE agent_tokens SET revoked_ms = $2
                WHERE agent_id = $1 AND revoked_ms IS NULL",
            )
            .bind(agent.as_str())
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            insert_token(writing.on(), agent, token).await?;
            writing.commit().await
        })
    }
}

async fn insert_token(
    on: &mut SqliteConnection,
    agent: &AgentId,
    token: &SecretHash,
) -> Result<(), StoreFault> {
    let done = sqlx::query(
        "INSERT INTO agent_tokens (token_hash, person_id, agent_id)
        SELECT $1, person_id, agent_id FROM agents WHERE agent_id = $2",
    )
    .bind(&token[..])
    .bind(agent.as_str())
    .execute(on)
    .await
    .map_err(fault)?;
    belongs(done.rows_affected(), "agent")
}

fn read(row: &SqliteRow) -> Result<Agent, StoreFault> {
    Ok(Agent {
        id: row.id("agent_id", AgentId::new)?,
        person: row.id("person_id", PersonId::new)?,
        name: row.get_as("name")?,
        cap: row.unsigned("cap")?,
        idle_days: row.unsigned("idle_days")?,
        paused: row.flag("paused")?,
        created_ms: row.get_as("created_ms")?,
    })
}
