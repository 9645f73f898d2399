//! Connections and which agents may use them. A revoke spans owners: it takes
//! the connection's tools out of every working set and appends the withdrawals.

use crate::database::{Commit, Seen, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::memory::Question;
use crate::row::{Read, belongs, to_json, to_word, whole};
use crate::seal::{RowName, Table, seal};
use crate::{Store, decisions, secrets, sets};
use cambium_engine::port::{Answering, ConnectionStore, Returned, Revoked};
use cambium_engine::{MoveCause, ToolName};
use cambium_proxy::{
    AgentId, BoxFuture, Connection, ConnectionId, ConnectionSource, ConnectionStatus, DecisionRow,
    PersonId, SealedSecret, StoreFault,
};
use sqlx::sqlite::SqliteRow;

macro_rules! connection {
    ($rest:literal) => {
        concat!(
            "SELECT connection_id, person_id, slug, vendor, display_name, hosts, scheme,
                exceptions, ca_pem, overrides, generation, status, ",
            seal!(connections),
            " AS seal FROM connections ",
            $rest
        )
    };
}

pub(crate) const BY_ID: &str = connection!("WHERE connection_id = $1");
// An id before a slug that looks like one.
pub(crate) const FIND: &str = connection!(
    "WHERE person_id = $1 AND (connection_id = $2 OR slug = $2)
    ORDER BY CASE WHEN connection_id = $2 THEN 0 ELSE 1 END LIMIT 1"
);
const ALL: &str = connection!("WHERE person_id = $1 ORDER BY slug");
pub(crate) const SCOPE: &str = concat!(
    "SELECT agent_id, ",
    seal!(connection_scopes),
    " AS seal FROM connection_scopes WHERE connection_id = $1 ORDER BY agent_id"
);
// What a person made of it since; without a row it is as it was made.
pub(crate) const SCOPE_CHANGE: &str = concat!(
    "SELECT sequence, agents, ",
    seal!(scope_changes),
    " AS seal FROM scope_changes WHERE connection_id = $1 ORDER BY sequence DESC LIMIT 1"
);
// Promoted tools whose current version runs on the connection.
pub(crate) const LEAVING: &str = "SELECT DISTINCT m.agent_id, m.tool
    FROM versions v
    JOIN pointers p ON p.person_id = v.person_id AND p.tool = v.tool AND p.number = v.number
    JOIN members m ON m.tool = v.tool AND m.person_id = v.person_id AND m.promoted = 1
    WHERE v.connection_id = $1 AND p.sequence = (
        SELECT MAX(q.sequence) FROM pointers q
        WHERE q.person_id = p.person_id AND q.tool = p.tool)
    ORDER BY m.agent_id, m.tool";
// Tools on the connection whose last move was out, by its revoke.
const RETURNING: &str = "SELECT DISTINCT m.agent_id, m.tool
    FROM versions v
    JOIN pointers p ON p.person_id = v.person_id AND p.tool = v.tool AND p.number = v.number
    JOIN members m ON m.tool = v.tool AND m.person_id = v.person_id AND m.promoted = 0
    JOIN history h ON h.agent_id = m.agent_id AND h.tool = m.tool AND h.cause = 'revoke'
    WHERE v.connection_id = $1 AND p.sequence = (
        SELECT MAX(q.sequence) FROM pointers q
        WHERE q.person_id = p.person_id AND q.tool = p.tool)
    AND h.history_id = (
        SELECT MAX(n.history_id) FROM history n
        WHERE n.agent_id = m.agent_id AND n.tool = m.tool)
    ORDER BY m.agent_id, m.tool";

/// Puts back what the connection's revoke took out of working sets.
async fn put_back(
    writing: &mut Writing<'_>,
    connection: &ConnectionId,
    now_ms: i64,
) -> Result<Vec<(AgentId, ToolName)>, StoreFault> {
    let rows = sqlx::query(RETURNING).bind(connection.as_str());
    let rows = rows.fetch_all(writing.on()).await.map_err(fault)?;
    let mut back = Vec::with_capacity(rows.len());
    for row in rows {
        let (agent, tool) = (row.id("agent_id", AgentId::new)?, row.tool("tool")?);
        sets::move_in(writing.on(), &agent, &tool, MoveCause::Reconnect, now_ms).await?;
        back.push((agent, tool));
    }
    Ok(back)
}

impl ConnectionSource for Store {
    fn connection<'a>(
        &'a self,
        id: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<Connection>, StoreFault>> {
        Box::pin(self.remembered(Question::Connection(id.as_str().to_owned()), move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(BY_ID).bind(id.as_str()).fetch_optional(&mut *on).await;
                one(row.map_err(fault)?)
            })
        }))
    }

    fn is_for<'a>(
        &'a self,
        id: &'a ConnectionId,
        agent: &'a AgentId,
    ) -> BoxFuture<'a, Result<bool, StoreFault>> {
        Box::pin(async move {
            let scope = self.scope(id).await?;
            Ok(scope.is_empty() || scope.contains(agent))
        })
    }
}

impl ConnectionStore for Store {
    fn insert_connection<'a>(
        &'a self,
        connection: &'a Connection,
        scope: &'a [AgentId],
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO connections (connection_id, person_id, slug, vendor, display_name,
                    hosts, scheme, exceptions, ca_pem, overrides, generation, status, created_ms)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            )
            .bind(connection.id.as_str())
            .bind(connection.person.as_str())
            .bind(&connection.slug)
            .bind(&connection.vendor)
            .bind(&connection.display_name)
            .bind(to_json(&connection.hosts)?)
            .bind(to_json(&connection.scheme)?)
            .bind(to_json(&connection.exceptions)?)
            .bind(connection.ca_pem.as_deref())
            .bind(to_json(&connection.overrides)?)
            .bind(whole(connection.generation)?)
            .bind(to_word(&connection.status)?)
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::connection(&connection.id));
            for agent in scope {
                // Also by person: no connection reaches another person's agent.
                let done = sqlx::query(
                    "INSERT INTO connection_scopes (connection_id, agent_id, person_id)
                    SELECT $1, agent_id, person_id FROM agents
                    WHERE agent_id = $2 AND person_id = $3",
                )
                .bind(connection.id.as_str())
                .bind(agent.as_str())
                .bind(connection.person.as_str())
                .execute(writing.on())
                .await
                .map_err(fault)?;
                belongs(done.rows_affected(), "agent")?;
                writing.changed(RowName::scope(&connection.id, agent));
            }
            writing.commit().await
        })
    }

    fn find_connection<'a>(
        &'a self,
        person: &'a PersonId,
        id_or_slug: &'a str,
    ) -> Answering<'a, Option<Connection>> {
        Box::pin(self.remembered(
            Question::FindConnection(person.as_str().to_owned(), id_or_slug.to_owned()),
            move || {
                Box::pin(async move {
                    let mut on = self.read().await?;
                    let row = sqlx::query(FIND)
                        .bind(person.as_str())
                        .bind(id_or_slug)
                        .fetch_optional(&mut *on)
                        .await;
                    one(row.map_err(fault)?)
                })
            },
        ))
    }

    fn connections<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Connection>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let rows = sqlx::query(ALL).bind(person.as_str()).fetch_all(&mut *on).await;
                let read: Result<Vec<_>, _> = rows.map_err(fault)?.iter().map(read).collect();
                Ok(read?.into_iter().unzip())
            })
        }))
    }

    fn scope<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Vec<AgentId>> {
        Box::pin(self.remembered(Question::Scope(connection.as_str().to_owned()), move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let changed = sqlx::query(SCOPE_CHANGE).bind(connection.as_str());
                let changed = changed.fetch_optional(&mut *on).await.map_err(fault)?;
                let set = vec![connection.as_str().to_owned()];
                if let Some(row) = changed {
                    let sequence = row.unsigned("sequence")?;
                    let agents: String = row.get_as("agents")?;
                    let agents: Vec<AgentId> = serde_json::from_str(&agents)
                        .map_err(|_| StoreFault::Corrupt("agents of a scope".into()))?;
                    let name = RowName::scope_change(connection, whole(sequence)?);
                    let claims = vec![
                        Claim::Is(name, row.get_as("seal")?),
                        // No gaps, so the newest is how many there are.
                        Claim::Counts(Table::ScopeChanges, set, sequence),
                    ];
                    return Ok((agents, claims));
                }
                let unchanged = Claim::Counts(Table::ScopeChanges, set, 0);
                let rows = sqlx::query(SCOPE).bind(connection.as_str()).fetch_all(&mut *on).await;
                let rows = rows.map_err(fault)?;
                let set = vec![connection.as_str().to_owned()];
                let made = Claim::Counts(Table::ConnectionScopes, set, rows.len() as u64);
                let mut claims = vec![unchanged, made];
                let mut agents = Vec::with_capacity(rows.len());
                for row in &rows {
                    let agent = row.id("agent_id", AgentId::new)?;
                    claims.push(Claim::Is(RowName::scope(connection, &agent), row.get_as("seal")?));
                    agents.push(agent);
                }
                Ok((agents, claims))
            })
        }))
    }

    fn change_scope<'a>(
        &'a self,
        connection: &'a ConnectionId,
        agents: &'a [AgentId],
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            for agent in agents {
                // By person: no connection reaches another person's agent.
                let known = sqlx::query(
                    "SELECT 1 FROM agents a JOIN connections c ON c.person_id = a.person_id
                    WHERE a.agent_id = $1 AND c.connection_id = $2",
                );
                let known = known.bind(agent.as_str()).bind(connection.as_str());
                let known = known.fetch_optional(writing.on()).await.map_err(fault)?;
                belongs(u64::from(known.is_some()), "agent")?;
            }
            let last = sqlx::query(SCOPE_CHANGE).bind(connection.as_str());
            let last = last.fetch_optional(writing.on()).await.map_err(fault)?;
            let sequence = last.map_or(Ok(0), |row| row.unsigned("sequence"))? + 1;
            let done = sqlx::query(
                "INSERT INTO scope_changes (connection_id, sequence, person_id, agents, at_ms)
                SELECT connection_id, $2, person_id, $3, $4 FROM connections
                WHERE connection_id = $1",
            )
            .bind(connection.as_str())
            .bind(whole(sequence)?)
            .bind(to_json(&agents)?)
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "connection")?;
            writing.changed(RowName::scope_change(connection, whole(sequence)?));
            writing.commit().await
        })
    }

    fn mark_connected<'a>(
        &'a self,
        connection: &'a ConnectionId,
        now_ms: i64,
    ) -> Answering<'a, Returned> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "UPDATE connections SET status = 'connected'
                WHERE connection_id = $1 AND status <> 'revoked'",
            )
            .bind(connection.as_str())
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "connection")?;
            writing.changed(RowName::connection(connection));
            let back = put_back(&mut writing, connection, now_ms).await?;
            writing.commit().await?;
            Ok(Returned { back })
        })
    }

    fn change_connection<'a>(
        &'a self,
        connection: &'a Connection,
        secret: Option<&'a SealedSecret>,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let before = connection.generation.saturating_sub(1);
            let done = sqlx::query(
                "UPDATE connections SET exceptions = $3, overrides = $4, generation = $5, ca_pem = $6
                WHERE connection_id = $1 AND generation = $2",
            )
            .bind(connection.id.as_str())
            .bind(whole(before)?)
            .bind(to_json(&connection.exceptions)?)
            .bind(to_json(&connection.overrides)?)
            .bind(whole(connection.generation)?)
            .bind(connection.ca_pem.as_deref())
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Err(StoreFault::Conflict("the connection was changed meanwhile".into()));
            }
            writing.changed(RowName::connection(&connection.id));
            if let Some(secret) = secret {
                secrets::put(&mut writing, secret).await?;
            }
            writing.commit().await
        })
    }

    fn reconnect_connection<'a>(
        &'a self,
        connection: &'a Connection,
        secret: Option<&'a SealedSecret>,
        now_ms: i64,
    ) -> Answering<'a, Returned> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let before = connection.generation.saturating_sub(1);
            let done = sqlx::query(
                "UPDATE connections SET status = $3, generation = $4
                WHERE connection_id = $1 AND generation = $2 AND status = 'revoked'",
            )
            .bind(connection.id.as_str())
            .bind(whole(before)?)
            .bind(to_word(&connection.status)?)
            .bind(whole(connection.generation)?)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Err(StoreFault::Conflict("the connection was changed meanwhile".into()));
            }
            writing.changed(RowName::connection(&connection.id));
            if let Some(secret) = secret {
                secrets::put(&mut writing, secret).await?;
            }
            let back = match connection.status {
                ConnectionStatus::Connected => {
                    put_back(&mut writing, &connection.id, now_ms).await?
                }
                // Nothing of it could run yet.
                ConnectionStatus::Pending | ConnectionStatus::Revoked => Vec::new(),
            };
            writing.commit().await?;
            Ok(Returned { back })
        })
    }

    fn revoke_connection<'a>(
        &'a self,
        connection: &'a ConnectionId,
        withdrawals: &'a [DecisionRow],
        now_ms: i64,
    ) -> Answering<'a, Revoked> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let row = sqlx::query(BY_ID).bind(connection.as_str());
            let row = row.fetch_optional(writing.on()).await.map_err(fault)?;
            belongs(u64::from(row.is_some()), "connection")?;
            let done = sqlx::query(
                "UPDATE connections SET status = 'revoked'
                WHERE connection_id = $1 AND status <> 'revoked'",
            )
            .bind(connection.as_str())
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Ok(Revoked::default());
            }
            writing.changed(RowName::connection(connection));
            let rows = sqlx::query(LEAVING).bind(connection.as_str());
            let rows = rows.fetch_all(writing.on()).await.map_err(fault)?;
            let mut left = Vec::with_capacity(rows.len());
            for row in rows {
                let (agent, tool) = (row.id("agent_id", AgentId::new)?, row.tool("tool")?);
                sets::move_out(writing.on(), &agent, &tool, MoveCause::Revoke, now_ms).await?;
                left.push((agent, tool));
            }
            for withdrawal in withdrawals {
                decisions::append(&mut writing, withdrawal).await?;
            }
            writing.commit().await?;
            Ok(Revoked { changed: true, left })
        })
    }
}

fn one(row: Option<SqliteRow>) -> Seen<Option<Connection>> {
    let Some(row) = row else { return Ok((None, Vec::new())) };
    let (connection, claim) = read(&row)?;
    Ok((Some(connection), vec![claim]))
}

fn read(row: &SqliteRow) -> Result<(Connection, Claim), StoreFault> {
    let connection = Connection {
        id: row.id("connection_id", ConnectionId::new)?,
        person: row.id("person_id", PersonId::new)?,
        slug: row.get_as("slug")?,
        vendor: row.get_as("vendor")?,
        display_name: row.get_as("display_name")?,
        hosts: row.json("hosts")?,
        scheme: row.json("scheme")?,
        exceptions: row.json("exceptions")?,
        ca_pem: row.get_as("ca_pem")?,
        overrides: row.json("overrides")?,
        generation: row.unsigned("generation")?,
        status: row.word("status")?,
    };
    let claim = Claim::Is(RowName::connection(&connection.id), row.get_as("seal")?);
    Ok((connection, claim))
}
