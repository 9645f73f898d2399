//! The toolbox: versions and pointers, both append-only. The newest pointer of
//! a tool says which version is current.

use crate::database::{Commit, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::memory::Question;
use crate::row::{Read, corrupt, to_json, to_word, whole};
use crate::seal::RowName;
use crate::seal::Table;
use crate::{Store, sets};
use cambium_engine::port::{Answering, Pointer, PublishRow, ToolStore, VersionRow};
use cambium_engine::{MoveCause, ToolName, Version};
use cambium_proxy::{AgentId, ConnectionId, ContentHash, PersonId, StoreFault};
use serde_json::Value;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

pub(crate) const POINTER: &str =
    "SELECT person_id, tool, sequence, number, hash, at_ms, mac FROM pointers
    WHERE person_id = $1 AND tool = $2 ORDER BY sequence DESC LIMIT 1";
pub(crate) const POINTERS: &str =
    "SELECT p.person_id, p.tool, p.sequence, p.number, p.hash, p.at_ms, p.mac FROM pointers p
    WHERE p.person_id = $1 AND p.sequence = (
        SELECT MAX(q.sequence) FROM pointers q
        WHERE q.person_id = p.person_id AND q.tool = p.tool)
    ORDER BY p.tool";
pub(crate) const VERSION: &str = "SELECT person_id, tool, number, hash, kind, title, description,
        input_schema, output_schema, example_input, source, javascript, hints, sites,
        connection_id, published_by, published_ms, sdks, component, mac
    FROM versions WHERE person_id = $1 AND tool = $2 AND number = $3";
pub(crate) const NEWEST: &str = "SELECT COALESCE(MAX(number), 0) AS number FROM versions
    WHERE person_id = $1 AND tool = $2";
pub(crate) const FILE: &str = "SELECT bytes FROM files WHERE person_id = $1 AND digest = $2";
pub(crate) const HOLDERS: &str = "SELECT agent_id FROM members
    WHERE tool = $2 AND person_id = $1 AND promoted = 1 ORDER BY agent_id";

impl ToolStore for Store {
    fn pointer<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
    ) -> Answering<'a, Option<Pointer>> {
        Box::pin(self.remembered(
            Question::Pointer(person.as_str().to_owned(), tool.to_string()),
            move || {
                Box::pin(async move {
                    let mut on = self.read().await?;
                    let row = sqlx::query(POINTER)
                        .bind(person.as_str())
                        .bind(tool.to_string())
                        .fetch_optional(&mut *on)
                        .await;
                    let pointer = row.map_err(fault)?.as_ref().map(read_pointer).transpose()?;
                    let newest = pointer.as_ref().map_or(0, |pointer| pointer.sequence);
                    Ok((pointer, vec![newest_is(person, tool, newest)]))
                })
            },
        ))
    }

    fn pointers<'a>(&'a self, person: &'a PersonId) -> Answering<'a, Vec<Pointer>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let rows = sqlx::query(POINTERS).bind(person.as_str()).fetch_all(&mut *on).await;
                let pointers: Result<Vec<_>, _> =
                    rows.map_err(fault)?.iter().map(read_pointer).collect();
                let pointers = pointers?;
                let newest = |pointer: &Pointer| newest_is(person, &pointer.tool, pointer.sequence);
                let claims = pointers.iter().map(newest).collect();
                Ok((pointers, claims))
            })
        }))
    }

    fn version<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
        number: u32,
    ) -> Answering<'a, Option<VersionRow>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(VERSION)
                .bind(person.as_str())
                .bind(tool.to_string())
                .bind(i64::from(number))
                .fetch_optional(&mut *on)
                .await;
            row.map_err(fault)?.as_ref().map(read_version).transpose()
        })
    }

    fn newest_number<'a>(&'a self, person: &'a PersonId, tool: &'a ToolName) -> Answering<'a, u32> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(NEWEST)
                .bind(person.as_str())
                .bind(tool.to_string())
                .fetch_one(&mut *on)
                .await;
            row.map_err(fault)?.unsigned("number")
        })
    }

    fn publish<'a>(&'a self, publish: &'a PublishRow) -> Answering<'a, bool> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let promoted = put(&mut writing, publish).await?;
            writing.commit().await?;
            Ok(promoted)
        })
    }

    fn publish_all<'a>(&'a self, publishes: &'a [PublishRow]) -> Answering<'a, Vec<bool>> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let mut promoted = Vec::with_capacity(publishes.len());
            for publish in publishes {
                promoted.push(put(&mut writing, publish).await?);
            }
            writing.commit().await?;
            Ok(promoted)
        })
    }

    fn put_file<'a>(
        &'a self,
        person: &'a PersonId,
        digest: &'a ContentHash,
        bytes: &'a [u8],
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO files (person_id, digest, bytes, kept_ms) SELECT $1, $2, $3, $4
                WHERE NOT EXISTS (SELECT 1 FROM files WHERE person_id = $1 AND digest = $2)",
            )
            .bind(person.as_str())
            .bind(digest.to_string())
            .bind(bytes)
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.commit().await
        })
    }

    fn file<'a>(
        &'a self,
        person: &'a PersonId,
        digest: &'a ContentHash,
    ) -> Answering<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(FILE)
                .bind(person.as_str())
                .bind(digest.to_string())
                .fetch_optional(&mut *on)
                .await;
            row.map_err(fault)?.map(|row| row.get_as("bytes")).transpose()
        })
    }

    fn holders<'a>(
        &'a self,
        person: &'a PersonId,
        tool: &'a ToolName,
    ) -> Answering<'a, Vec<AgentId>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(HOLDERS)
                .bind(person.as_str())
                .bind(tool.to_string())
                .fetch_all(&mut *on)
                .await;
            rows.map_err(fault)?.iter().map(|row| row.id("agent_id", AgentId::new)).collect()
        })
    }
}

/// Appends version and pointer and promotes; whether the promotion was new.
async fn put(writing: &mut Writing<'_>, publish: &PublishRow) -> Result<bool, StoreFault> {
    if let Some(row) = &publish.version {
        insert_version(writing.on(), row).await?;
    }
    insert_pointer(writing, &publish.pointer).await?;
    let Some(agent) = &publish.promote_for else { return Ok(false) };
    let Pointer { tool, at_ms, .. } = &publish.pointer;
    sets::move_in(writing.on(), agent, tool, MoveCause::Publish, *at_ms).await
}

async fn insert_version(on: &mut SqliteConnection, row: &VersionRow) -> Result<(), StoreFault> {
    let version = &row.version;
    let json_if = |value: &Option<Value>| value.as_ref().map(json_kept).transpose();
    sqlx::query(
        "INSERT INTO versions (person_id, tool, number, hash, kind, title, description,
            input_schema, output_schema, example_input, source, javascript, hints, sites,
            connection_id, published_by, published_ms, sdks, component, mac)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
            $19, $20)",
    )
    .bind(version.person.as_str())
    .bind(version.tool.to_string())
    .bind(i64::from(version.number))
    .bind(version.hash.to_string())
    .bind(to_word(&version.kind)?)
    .bind(version.title.as_deref())
    .bind(&version.description)
    .bind(json_kept(&version.input_schema)?)
    .bind(json_if(&version.output_schema)?)
    .bind(json_if(&version.example_input)?)
    .bind(&version.source)
    .bind(&version.javascript)
    .bind(to_json(&version.hints)?)
    .bind(to_json(&version.sites)?)
    .bind(version.connection.as_str())
    .bind(version.published_by.as_ref().map(AgentId::as_str))
    .bind(version.published_ms)
    .bind(to_json(&version.sdks)?)
    .bind(version.component.map(|digest| digest.to_string()))
    .bind(&row.mac)
    .execute(on)
    .await
    .map_err(fault)?;
    Ok(())
}

/// JSON text that reads back as the very same value. A decimal fraction may read
/// back as its neighbour; the version's MAC would then never hold again, so it
/// is refused here, where somebody can still change it.
fn json_kept(value: &Value) -> Result<String, StoreFault> {
    let text = to_json(value)?;
    if serde_json::from_str::<Value>(&text).ok().as_ref() != Some(value) {
        let text = "a schema or example holds a number that cannot be stored exactly";
        return Err(StoreFault::Conflict(text.into()));
    }
    Ok(text)
}

/// A pointer moves by one: the row of the sequence before must be there, so
/// that of two publishers who read the same pointer one loses.
async fn insert_pointer(writing: &mut Writing<'_>, pointer: &Pointer) -> Result<(), StoreFault> {
    let sequence = whole(pointer.sequence)?;
    let done = sqlx::query(
        "INSERT INTO pointers (person_id, tool, sequence, number, hash, at_ms, mac)
        SELECT $1, $2, $3, $4, $5, $6, $7
        WHERE $3 = 1 + COALESCE(
            (SELECT MAX(sequence) FROM pointers WHERE person_id = $1 AND tool = $2), 0)",
    )
    .bind(pointer.person.as_str())
    .bind(pointer.tool.to_string())
    .bind(sequence)
    .bind(i64::from(pointer.number))
    .bind(pointer.hash.to_string())
    .bind(pointer.at_ms)
    .bind(&pointer.mac)
    .execute(writing.on())
    .await
    .map_err(fault)?;
    if done.rows_affected() == 0 {
        let text = format!("pointer {sequence} of {} does not follow the newest", pointer.tool);
        return Err(StoreFault::Conflict(text));
    }
    writing.changed(RowName::pointer(&pointer.person, &pointer.tool, sequence));
    Ok(())
}

/// Sequences of a tool have no gaps, so the newest is how many there are.
fn newest_is(person: &PersonId, tool: &ToolName, sequence: u64) -> Claim {
    let set = vec![person.as_str().to_owned(), tool.to_string()];
    Claim::Counts(Table::Pointers, set, sequence)
}

fn read_pointer(row: &SqliteRow) -> Result<Pointer, StoreFault> {
    Ok(Pointer {
        person: row.id("person_id", PersonId::new)?,
        tool: row.tool("tool")?,
        sequence: row.unsigned("sequence")?,
        number: row.unsigned("number")?,
        hash: row.digest("hash")?,
        at_ms: row.get_as("at_ms")?,
        mac: row.get_as("mac")?,
    })
}

fn read_version(row: &SqliteRow) -> Result<VersionRow, StoreFault> {
    let published_by: Option<String> = row.get_as("published_by")?;
    let component: Option<String> = row.get_as("component")?;
    let component = component.map(ContentHash::try_from).transpose();
    let version = Version {
        person: row.id("person_id", PersonId::new)?,
        tool: row.tool("tool")?,
        number: row.unsigned("number")?,
        hash: row.digest("hash")?,
        kind: row.word("kind")?,
        title: row.get_as("title")?,
        description: row.get_as("description")?,
        input_schema: row.json("input_schema")?,
        output_schema: row.json_if("output_schema")?,
        example_input: row.json_if("example_input")?,
        source: row.get_as("source")?,
        javascript: row.get_as("javascript")?,
        sdks: row.json("sdks")?,
        component: component.map_err(|_| corrupt("component"))?,
        hints: row.json("hints")?,
        sites: row.json("sites")?,
        connection: row.id("connection_id", ConnectionId::new)?,
        published_by: published_by.map(AgentId::new),
        published_ms: row.get_as("published_ms")?,
    };
    Ok(VersionRow { version, mac: row.get_as("mac")? })
}
