//! Asks: opened once per agent and tool, settled once, shown unchanged. The
//! decision of a settled ask is appended by `decisions.rs` in the same
//! transaction.

use crate::database::{Commit, Seen};
use crate::error::fault;
use crate::ledger::Claim;
use crate::row::{Read, corrupt, to_json, to_word, whole};
use crate::seal::{RowName, Table, seal};
use crate::{Store, decisions, people, proposals};
use cambium_engine::port::{Answering, AskReason, AskRow, AskState, AskStore};
use cambium_engine::{Ended, ToolName};
use cambium_proxy::{AgentId, AskId, ConnectionId, DecisionRow, PersonId, RunId, StoreFault};
use sqlx::sqlite::SqliteRow;

macro_rules! ask {
    ($rest:literal) => {
        concat!(
            "SELECT ask_id, person_id, agent_id, tool, version, number, connection_id, generation,
                reason, run_id, effect, method, authority, target, headers, body, digest, state,
                opened_ms, expires_ms, settled_ms, ",
            seal!(asks),
            " AS seal FROM asks ",
            $rest
        )
    };
}

const BY_ID: &str = ask!("WHERE ask_id = $1");
pub(crate) const OPEN_OF: &str = ask!("WHERE agent_id = $1 AND tool = $2 AND state = 'open'");
pub(crate) const OPEN: &str =
    ask!("WHERE person_id = $1 AND state = 'open' ORDER BY opened_ms DESC, ask_id LIMIT $2");
pub(crate) const SETTLED: &str =
    ask!("WHERE person_id = $1 AND state <> 'open' ORDER BY settled_ms DESC, ask_id LIMIT $2");
pub(crate) const COUNT: &str = "SELECT COUNT(*) AS open FROM asks
    WHERE agent_id = $1 AND state = 'open' AND expires_ms > $2";
pub(crate) const EXPIRED: &str =
    "SELECT ask_id FROM asks WHERE state = 'open' AND expires_ms <= $1 ORDER BY expires_ms, ask_id";

impl AskStore for Store {
    fn insert_ask<'a>(&'a self, ask: &'a AskRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO asks (ask_id, person_id, agent_id, tool, version, number,
                    connection_id, generation, reason, run_id, effect, method, authority, target,
                    headers, body, digest, state, opened_ms, expires_ms, settled_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                    $17, $18, $19, $20, $21)",
            )
            .bind(ask.id.as_str())
            .bind(ask.person.as_str())
            .bind(ask.agent.as_str())
            .bind(ask.tool.to_string())
            .bind(ask.version.to_string())
            .bind(i64::from(ask.number))
            .bind(ask.connection.as_str())
            .bind(whole(ask.generation)?)
            .bind(ask.reason.as_str())
            .bind(ask.run.as_str())
            .bind(to_word(&ask.effect)?)
            .bind(&ask.method)
            .bind(&ask.authority)
            .bind(&ask.target)
            .bind(to_json(&ask.headers)?)
            .bind(&ask.body)
            .bind(ask.digest.to_string())
            .bind(ask.state.as_str())
            .bind(ask.opened_ms)
            .bind(ask.expires_ms)
            .bind(ask.settled_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::ask(&ask.id));
            writing.commit().await
        })
    }

    fn ask<'a>(&'a self, id: &'a AskId) -> Answering<'a, Option<AskRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(BY_ID).bind(id.as_str()).fetch_optional(&mut *on).await;
                one(row.map_err(fault)?)
            })
        }))
    }

    fn open_ask<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<AskRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(OPEN_OF)
                    .bind(agent.as_str())
                    .bind(tool.to_string())
                    .fetch_optional(&mut *on)
                    .await;
                one(row.map_err(fault)?)
            })
        }))
    }

    fn count_open<'a>(&'a self, agent: &'a AgentId, now_ms: i64) -> Answering<'a, u32> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row =
                sqlx::query(COUNT).bind(agent.as_str()).bind(now_ms).fetch_one(&mut *on).await;
            row.map_err(fault)?.unsigned("open")
        })
    }

    fn asks<'a>(&'a self, person: &'a PersonId, limit: u32) -> Answering<'a, Vec<AskRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let (mut asks, mut claims) = (Vec::new(), Vec::new());
                for statement in [OPEN, SETTLED] {
                    let room = i64::from(limit) - i64::try_from(asks.len()).unwrap_or(i64::MAX);
                    let rows = sqlx::query(statement)
                        .bind(person.as_str())
                        .bind(room.max(0))
                        .fetch_all(&mut *on)
                        .await;
                    for row in rows.map_err(fault)? {
                        let (ask, claim) = read(&row)?;
                        asks.push(ask);
                        claims.push(claim);
                    }
                }
                Ok((asks, claims))
            })
        }))
    }

    fn settle<'a>(
        &'a self,
        id: &'a AskId,
        to: AskState,
        decision: Option<&'a DecisionRow>,
        now_ms: i64,
    ) -> Answering<'a, bool> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let row = sqlx::query(Table::Asks.one()).bind(id.as_str());
            let Some(row) = row.fetch_optional(writing.on()).await.map_err(fault)? else {
                return Ok(false);
            };
            writing.believe(&[Claim::Is(RowName::ask(id), row.get_as("seal")?)]).await?;
            let done = sqlx::query(
                "UPDATE asks SET state = $2, settled_ms = $3
                WHERE ask_id = $1 AND state = 'open'",
            )
            .bind(id.as_str())
            .bind(to.as_str())
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            writing.changed(RowName::ask(id));
            if let Some(decision) = decision {
                decisions::append(&mut writing, decision).await?;
            }
            writing.commit().await?;
            Ok(true)
        })
    }

    fn expire_asks(&self, now_ms: i64) -> Answering<'_, Vec<AskId>> {
        Box::pin(async move {
            // Looked for without the pen first: the usual answer is none.
            let mut on = self.read().await?;
            let found = sqlx::query(EXPIRED).bind(now_ms).fetch_all(&mut *on).await;
            drop(on);
            if found.map_err(fault)?.is_empty() {
                return Ok(Vec::new());
            }
            let mut writing = self.write(Commit::Durable).await?;
            let rows = sqlx::query(EXPIRED).bind(now_ms).fetch_all(writing.on()).await;
            let mut expired = Vec::new();
            for row in rows.map_err(fault)? {
                let ask = row.id("ask_id", AskId::new)?;
                writing.changed(RowName::ask(&ask));
                expired.push(ask);
            }
            sqlx::query(
                "UPDATE asks SET state = 'expired', settled_ms = $1
                WHERE state = 'open' AND expires_ms <= $1",
            )
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.commit().await?;
            Ok(expired)
        })
    }

    fn newest_decision<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<DecisionRow>> {
        self.decision_of(decisions::NEWEST, agent, tool, |agent, tool, row| {
            let newest = row.map_or(0, |row| row.sequence);
            Claim::Newest(agent.as_str().to_owned(), tool.to_string(), newest)
        })
    }

    fn standing_decision<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<DecisionRow>> {
        self.decision_of(decisions::STANDING, agent, tool, |agent, tool, row| {
            decisions::stands(agent, &tool.to_string(), None, row)
        })
    }

    fn decisions_on<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<DecisionRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows =
                sqlx::query(decisions::STANDING_ON).bind(connection.as_str()).fetch_all(&mut *on);
            rows.await.map_err(fault)?.iter().map(decisions::read).collect()
        })
    }

    fn unused_of<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a ToolName,
    ) -> Answering<'a, Vec<DecisionRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(decisions::UNUSED_OF)
                .bind(agent.as_str())
                .bind(tool.to_string())
                .fetch_all(&mut *on);
            rows.await.map_err(fault)?.iter().map(decisions::read).collect()
        })
    }

    fn unused_on<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<DecisionRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows =
                sqlx::query(decisions::UNUSED_ON).bind(connection.as_str()).fetch_all(&mut *on);
            rows.await.map_err(fault)?.iter().map(decisions::read).collect()
        })
    }

    fn is_used<'a>(&'a self, ask: &'a AskId) -> Answering<'a, bool> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(decisions::USED).bind(ask.as_str()).fetch_optional(&mut *on);
            Ok(row.await.map_err(fault)?.is_some())
        })
    }

    fn append_decision<'a>(&'a self, decision: &'a DecisionRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            decisions::append(&mut writing, decision).await?;
            writing.commit().await
        })
    }

    fn newest_decisions(&self) -> Answering<'_, Vec<DecisionRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(decisions::EVERY_NEWEST).fetch_all(&mut *on).await;
            rows.map_err(fault)?.iter().map(decisions::read).collect()
        })
    }

    fn begin_epoch<'a>(
        &'a self,
        withdrawals: &'a [DecisionRow],
        now_ms: i64,
    ) -> Answering<'a, Ended> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let sessions = people::end_all(&mut writing, now_ms).await?;
            let open = sqlx::query(
                "UPDATE asks SET state = 'expired', settled_ms = $1 WHERE state = 'open'
                RETURNING ask_id",
            )
            .bind(now_ms)
            .fetch_all(writing.on())
            .await
            .map_err(fault)?;
            for ask in &open {
                writing.changed(RowName::ask(&ask.id("ask_id", AskId::new)?));
            }
            proposals::end_all(&mut writing, now_ms).await?;
            for withdrawal in withdrawals {
                decisions::append(&mut writing, withdrawal).await?;
            }
            writing.commit().await?;
            let (asks, approvals) = (open.len() as u64, withdrawals.len() as u64);
            Ok(Ended { sessions, asks, approvals })
        })
    }
}

impl Store {
    fn decision_of<'a>(
        &'a self,
        statement: &'static str,
        agent: &'a AgentId,
        tool: &'a ToolName,
        besides: fn(&AgentId, &ToolName, Option<&DecisionRow>) -> Claim,
    ) -> Answering<'a, Option<DecisionRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(statement)
                    .bind(agent.as_str())
                    .bind(tool.to_string())
                    .fetch_optional(&mut *on)
                    .await;
                let row = row.map_err(fault)?;
                decisions::claimed(row.as_ref(), |found| besides(agent, tool, found))
            })
        }))
    }
}

fn one(row: Option<SqliteRow>) -> Seen<Option<AskRow>> {
    let Some(row) = row else { return Ok((None, Vec::new())) };
    let (ask, claim) = read(&row)?;
    Ok((Some(ask), vec![claim]))
}

fn read(row: &SqliteRow) -> Result<(AskRow, Claim), StoreFault> {
    let state = AskState::parse(row.get_as("state")?).ok_or_else(|| corrupt("state"))?;
    let reason = AskReason::parse(row.get_as("reason")?).ok_or_else(|| corrupt("reason"))?;
    let ask = AskRow {
        id: row.id("ask_id", AskId::new)?,
        person: row.id("person_id", PersonId::new)?,
        agent: row.id("agent_id", AgentId::new)?,
        tool: row.tool("tool")?,
        version: row.digest("version")?,
        number: row.unsigned("number")?,
        connection: row.id("connection_id", ConnectionId::new)?,
        generation: row.unsigned("generation")?,
        reason,
        run: row.id("run_id", RunId::new)?,
        effect: row.word("effect")?,
        method: row.get_as("method")?,
        authority: row.get_as("authority")?,
        target: row.get_as("target")?,
        headers: row.json("headers")?,
        body: row.get_as("body")?,
        digest: row.digest("digest")?,
        state,
        opened_ms: row.get_as("opened_ms")?,
        expires_ms: row.get_as("expires_ms")?,
        settled_ms: row.get_as("settled_ms")?,
    };
    let claim = Claim::Is(RowName::ask(&ask.id), row.get_as("seal")?);
    Ok((ask, claim))
}
