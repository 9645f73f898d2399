//! Decisions of a person, append-only, and the uses of one-request permits. A
//! permit is used by a row whose key can exist once: that insert is the
//! compare-and-swap.

use crate::Store;
use crate::database::{Commit, Seen, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::memory::Question;
use crate::row::{Read, to_word, whole};
use crate::seal::{RowName, seal};
use cambium_proxy::{
    AgentId, ApprovalSource, AskId, BoxFuture, ConnectionId, ContentHash, DecisionRow, PermitKey,
    PersonId, StoreFault,
};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

macro_rules! decision {
    ($rest:literal) => {
        concat!(
            "SELECT d.ask_id, d.sequence, d.person_id, d.agent_id, d.tool, d.version,
                d.connection_id, d.generation, d.digest, d.answer, d.channel, d.at_ms, d.mac, ",
            seal!(decisions),
            " AS seal FROM decisions d ",
            $rest
        )
    };
}

pub(crate) const STANDING: &str = decision!(
    "WHERE d.agent_id = $1 AND d.tool = $2 AND d.answer <> 'once'
    ORDER BY d.sequence DESC LIMIT 1"
);
// A deny of the same content under another name that is still that name's word.
pub(crate) const DENIED_ELSEWHERE: &str = decision!(
    "WHERE d.agent_id = $1 AND d.version = $3 AND d.answer = 'deny' AND d.tool <> $2
        AND NOT EXISTS (SELECT 1 FROM decisions n
            WHERE n.agent_id = d.agent_id AND n.tool = d.tool AND n.sequence > d.sequence
                AND n.answer <> 'once')
    ORDER BY d.at_ms DESC LIMIT 1"
);
pub(crate) const ANSWER: &str =
    decision!("WHERE d.ask_id = $1 AND d.answer <> 'withdrawn' LIMIT 1");
// A later deny or withdrawal takes the permit back.
pub(crate) const UNUSED: &str = decision!(
    "WHERE d.agent_id = $1 AND d.digest = $2 AND d.version = $3 AND d.connection_id = $4
        AND d.answer = 'once'
        AND NOT EXISTS (SELECT 1 FROM permit_uses u WHERE u.ask_id = d.ask_id)
        AND NOT EXISTS (SELECT 1 FROM decisions n
            WHERE n.agent_id = d.agent_id AND n.tool = d.tool AND n.sequence > d.sequence
                AND n.answer IN ('deny', 'withdrawn'))
    ORDER BY d.at_ms, d.ask_id LIMIT 1"
);
// What `UNUSED` would hand out, by agent and tool and by connection.
pub(crate) const UNUSED_OF: &str = decision!(
    "WHERE d.agent_id = $1 AND d.tool = $2 AND d.answer = 'once'
        AND NOT EXISTS (SELECT 1 FROM permit_uses u WHERE u.ask_id = d.ask_id)
        AND NOT EXISTS (SELECT 1 FROM decisions n
            WHERE n.agent_id = d.agent_id AND n.tool = d.tool AND n.sequence > d.sequence
                AND n.answer IN ('deny', 'withdrawn'))
    ORDER BY d.sequence"
);
pub(crate) const UNUSED_ON: &str = decision!(
    "WHERE d.connection_id = $1 AND d.answer = 'once'
        AND NOT EXISTS (SELECT 1 FROM permit_uses u WHERE u.ask_id = d.ask_id)
        AND NOT EXISTS (SELECT 1 FROM decisions n
            WHERE n.agent_id = d.agent_id AND n.tool = d.tool AND n.sequence > d.sequence
                AND n.answer IN ('deny', 'withdrawn'))
    ORDER BY d.agent_id, d.tool, d.sequence"
);
pub(crate) const USED: &str = "SELECT ask_id FROM permit_uses WHERE ask_id = $1";
pub(crate) const NEWEST: &str =
    decision!("WHERE d.agent_id = $1 AND d.tool = $2 ORDER BY d.sequence DESC LIMIT 1");
pub(crate) const EVERY_NEWEST: &str = decision!(
    "WHERE d.sequence = (SELECT MAX(n.sequence) FROM decisions n
        WHERE n.agent_id = d.agent_id AND n.tool = d.tool)
    ORDER BY d.agent_id, d.tool"
);
// What stands for each agent and tool, if it stands on this connection.
pub(crate) const STANDING_ON: &str = decision!(
    "WHERE d.connection_id = $1 AND d.answer <> 'once' AND d.sequence = (
        SELECT MAX(n.sequence) FROM decisions n
        WHERE n.agent_id = d.agent_id AND n.tool = d.tool AND n.answer <> 'once')
    ORDER BY d.agent_id, d.tool"
);

impl ApprovalSource for Store {
    fn standing<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a str,
        version: &'a ContentHash,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(self.remembered(
            Question::Standing(agent.as_str().to_owned(), tool.to_owned(), version.to_string()),
            move || {
                Box::pin(async move {
                    let mut on = self.read().await?;
                    let denied = sqlx::query(DENIED_ELSEWHERE)
                        .bind(agent.as_str())
                        .bind(tool)
                        .bind(version.to_string())
                        .fetch_optional(&mut *on)
                        .await
                        .map_err(fault)?;
                    let row = match denied {
                        Some(row) => Some(row),
                        None => sqlx::query(STANDING)
                            .bind(agent.as_str())
                            .bind(tool)
                            .fetch_optional(&mut *on)
                            .await
                            .map_err(fault)?,
                    };
                    claimed(row.as_ref(), |found| stands(agent, tool, Some(version), found))
                })
            },
        ))
    }

    fn decision<'a>(
        &'a self,
        ask: &'a AskId,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(ANSWER).bind(ask.as_str()).fetch_optional(&mut *on).await;
            row.map_err(fault)?.as_ref().map(read).transpose()
        })
    }

    fn consume_once<'a>(
        &'a self,
        key: &'a PermitKey,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(async move {
            // Looked for without the pen first: the usual answer is none.
            let mut on = self.read().await?;
            let found = unused(&mut on, key).await?;
            drop(on);
            if found.is_none() {
                return Ok(None);
            }
            let mut writing = self.write(Commit::Durable).await?;
            while let Some(row) = unused(writing.on(), key).await? {
                let not_taken_back = |found: Option<&DecisionRow>| {
                    let agent = key.agent.as_str().to_owned();
                    let (tool, at) =
                        found.map_or(Default::default(), |f| (f.tool.clone(), f.sequence));
                    Claim::NotTakenBack(agent, tool, at)
                };
                let (Some(decision), mut claims) = claimed(Some(&row), not_taken_back)? else {
                    return Ok(None);
                };
                claims.push(Claim::IsNot(RowName::permit_use(&decision.ask)));
                writing.believe(&claims).await?;
                let used = sqlx::query(
                    "INSERT INTO permit_uses (ask_id, person_id) VALUES ($1, $2)
                    ON CONFLICT (ask_id) DO NOTHING",
                )
                .bind(decision.ask.as_str())
                .bind(decision.person.as_str())
                .execute(writing.on())
                .await
                .map_err(fault)?;
                // Zero: another took it between the two statements, which only a
                // database with finer locks allows. Look for the next one.
                if used.rows_affected() == 1 {
                    writing.changed(RowName::permit_use(&decision.ask));
                    writing.commit().await?;
                    return Ok(Some(decision));
                }
            }
            Ok(None)
        })
    }
}

async fn unused(
    on: &mut SqliteConnection,
    key: &PermitKey,
) -> Result<Option<SqliteRow>, StoreFault> {
    let row = sqlx::query(UNUSED)
        .bind(key.agent.as_str())
        .bind(key.digest.to_string())
        .bind(key.version.to_string())
        .bind(key.connection.as_str())
        .fetch_optional(on)
        .await;
    row.map_err(fault)
}

/// A decision as the ledger must have it, and what it stands on besides.
pub(crate) fn claimed(
    row: Option<&SqliteRow>,
    besides: impl FnOnce(Option<&DecisionRow>) -> Claim,
) -> Seen<Option<DecisionRow>> {
    let Some(row) = row else { return Ok((None, vec![besides(None)])) };
    let decision = read(row)?;
    let is = Claim::Is(RowName::decision(&decision)?, row.get_as("seal")?);
    let claims = vec![is, besides(Some(&decision))];
    Ok((Some(decision), claims))
}

/// That it is the one that stands, of a tool or also of a content.
pub(crate) fn stands(
    agent: &AgentId,
    tool: &str,
    version: Option<&ContentHash>,
    row: Option<&DecisionRow>,
) -> Claim {
    Claim::Stands {
        agent: agent.as_str().to_owned(),
        tool: tool.to_owned(),
        version: version.map(ToString::to_string),
        row: row.map(|row| (row.tool.clone(), row.sequence)),
    }
}

/// Appends one; its sequence must follow the newest of this agent and tool.
pub(crate) async fn append(
    writing: &mut Writing<'_>,
    decision: &DecisionRow,
) -> Result<(), StoreFault> {
    let sequence = whole(decision.sequence)?;
    let done = sqlx::query(
        "INSERT INTO decisions (ask_id, sequence, person_id, agent_id, tool, version,
            connection_id, generation, digest, answer, channel, at_ms, mac)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
        WHERE $2 > COALESCE(
            (SELECT MAX(sequence) FROM decisions WHERE agent_id = $4 AND tool = $5), 0)",
    )
    .bind(decision.ask.as_str())
    .bind(sequence)
    .bind(decision.person.as_str())
    .bind(decision.agent.as_str())
    .bind(&decision.tool)
    .bind(decision.version.to_string())
    .bind(decision.connection.as_str())
    .bind(whole(decision.generation)?)
    .bind(decision.digest.to_string())
    .bind(to_word(&decision.answer)?)
    .bind(&decision.channel)
    .bind(decision.at_ms)
    .bind(&decision.mac)
    .execute(writing.on())
    .await
    .map_err(fault)?;
    if done.rows_affected() == 0 {
        let text = format!("decision {sequence} of {} does not follow the newest", decision.tool);
        return Err(StoreFault::Conflict(text));
    }
    writing.changed(RowName::decision(decision)?);
    Ok(())
}

/// A row of any of the statements above.
pub(crate) fn read(row: &SqliteRow) -> Result<DecisionRow, StoreFault> {
    Ok(DecisionRow {
        ask: row.id("ask_id", AskId::new)?,
        sequence: row.unsigned("sequence")?,
        person: row.id("person_id", PersonId::new)?,
        agent: row.id("agent_id", AgentId::new)?,
        tool: row.get_as("tool")?,
        version: row.digest("version")?,
        connection: row.id("connection_id", ConnectionId::new)?,
        generation: row.unsigned("generation")?,
        digest: row.digest("digest")?,
        answer: row.word("answer")?,
        channel: row.get_as("channel")?,
        at_ms: row.get_as("at_ms")?,
        mac: row.get_as("mac")?,
    })
}
