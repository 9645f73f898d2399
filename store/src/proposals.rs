//! Proposals of agents: opened once per agent and content, settled once, shown
//! unchanged.

use crate::Store;
use crate::database::{Commit, Seen, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::row::{Read, to_json, to_word};
use crate::seal::{RowName, Table, seal};
use cambium_engine::port::{Answering, ProposalRow, ProposalState, ProposalStore};
use cambium_proxy::{AgentId, ConnectionId, ContentHash, PersonId, StoreFault};
use sqlx::sqlite::SqliteRow;

macro_rules! proposal {
    ($rest:literal) => {
        concat!(
            "SELECT proposal_id, person_id, agent_id, digest, content, connection_id, state,
                opened_ms, expires_ms, settled_ms, ",
            seal!(proposals),
            " AS seal FROM proposals ",
            $rest
        )
    };
}

const BY_ID: &str = proposal!("WHERE proposal_id = $1");
pub(crate) const SAME: &str = proposal!(
    "WHERE agent_id = $1 AND digest = $2 ORDER BY opened_ms DESC, proposal_id DESC LIMIT 1"
);
pub(crate) const OPEN: &str = proposal!(
    "WHERE person_id = $1 AND state = 'open' ORDER BY opened_ms DESC, proposal_id LIMIT $2"
);
pub(crate) const SETTLED: &str = proposal!(
    "WHERE person_id = $1 AND state <> 'open' ORDER BY settled_ms DESC, proposal_id LIMIT $2"
);

/// Ends every open one.
pub(crate) async fn end_all(writing: &mut Writing<'_>, now_ms: i64) -> Result<(), StoreFault> {
    let open = sqlx::query(
        "UPDATE proposals SET state = 'expired', settled_ms = $1 WHERE state = 'open'
        RETURNING proposal_id",
    );
    for row in open.bind(now_ms).fetch_all(writing.on()).await.map_err(fault)? {
        writing.changed(RowName::proposal(row.get_as("proposal_id")?));
    }
    Ok(())
}

impl ProposalStore for Store {
    fn insert_proposal<'a>(&'a self, row: &'a ProposalRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO proposals (proposal_id, person_id, agent_id, digest, content,
                    connection_id, state, opened_ms, expires_ms, settled_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            )
            .bind(&row.id)
            .bind(row.person.as_str())
            .bind(row.agent.as_str())
            .bind(row.digest.to_string())
            .bind(to_json(&row.proposal)?)
            .bind(row.connection.as_ref().map(ConnectionId::as_str))
            .bind(to_word(&row.state)?)
            .bind(row.opened_ms)
            .bind(row.expires_ms)
            .bind(row.settled_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::proposal(&row.id));
            writing.commit().await
        })
    }

    fn proposal<'a>(&'a self, id: &'a str) -> Answering<'a, Option<ProposalRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(BY_ID).bind(id).fetch_optional(&mut *on).await;
                one(row.map_err(fault)?)
            })
        }))
    }

    fn newest_proposal<'a>(
        &'a self,
        agent: &'a AgentId,
        digest: &'a ContentHash,
    ) -> Answering<'a, Option<ProposalRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(SAME)
                    .bind(agent.as_str())
                    .bind(digest.to_string())
                    .fetch_optional(&mut *on)
                    .await;
                one(row.map_err(fault)?)
            })
        }))
    }

    fn proposals<'a>(
        &'a self,
        person: &'a PersonId,
        limit: u32,
    ) -> Answering<'a, Vec<ProposalRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let (mut found, mut claims) = (Vec::new(), Vec::new());
                for statement in [OPEN, SETTLED] {
                    let room = i64::from(limit) - i64::try_from(found.len()).unwrap_or(i64::MAX);
                    let rows = sqlx::query(statement)
                        .bind(person.as_str())
                        .bind(room.max(0))
                        .fetch_all(&mut *on)
                        .await;
                    for row in rows.map_err(fault)? {
                        let (proposal, claim) = read(&row)?;
                        found.push(proposal);
                        claims.push(claim);
                    }
                }
                Ok((found, claims))
            })
        }))
    }

    fn settle_proposal<'a>(
        &'a self,
        id: &'a str,
        to: ProposalState,
        connection: Option<&'a ConnectionId>,
        now_ms: i64,
    ) -> Answering<'a, bool> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let row = sqlx::query(Table::Proposals.one()).bind(id);
            let Some(row) = row.fetch_optional(writing.on()).await.map_err(fault)? else {
                return Ok(false);
            };
            writing.believe(&[Claim::Is(RowName::proposal(id), row.get_as("seal")?)]).await?;
            let done = sqlx::query(
                "UPDATE proposals SET state = $2, settled_ms = $3,
                    connection_id = COALESCE($4, connection_id)
                WHERE proposal_id = $1 AND state = 'open'",
            )
            .bind(id)
            .bind(to_word(&to)?)
            .bind(now_ms)
            .bind(connection.map(ConnectionId::as_str))
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            writing.changed(RowName::proposal(id));
            writing.commit().await?;
            Ok(true)
        })
    }
}

fn one(row: Option<SqliteRow>) -> Seen<Option<ProposalRow>> {
    let Some(row) = row else { return Ok((None, Vec::new())) };
    let (proposal, claim) = read(&row)?;
    Ok((Some(proposal), vec![claim]))
}

fn read(row: &SqliteRow) -> Result<(ProposalRow, Claim), StoreFault> {
    let proposal = ProposalRow {
        id: row.get_as("proposal_id")?,
        person: row.id("person_id", PersonId::new)?,
        agent: row.id("agent_id", AgentId::new)?,
        digest: row.digest("digest")?,
        proposal: row.json("content")?,
        connection: row.get_as::<Option<String>>("connection_id")?.map(ConnectionId::new),
        state: row.word("state")?,
        opened_ms: row.get_as("opened_ms")?,
        expires_ms: row.get_as("expires_ms")?,
        settled_ms: row.get_as("settled_ms")?,
    };
    let claim = Claim::Is(RowName::proposal(&proposal.id), row.get_as("seal")?);
    Ok((proposal, claim))
}
