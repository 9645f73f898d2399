//! The steps of the schema, in order, and how they are applied: each once, in
//! one transaction, with its whole text kept beside its number, so that a step
//! that was changed later is noticed. Never edit a released step; add one.

use crate::StoreError;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Row, SqliteConnection};
use std::path::Path;

/// Number and text, rising by one.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("schema/0001_first.sql")),
    (2, include_str!("schema/0002_files.sql")),
    (3, include_str!("schema/0003_proposals.sql")),
    (4, include_str!("schema/0004_documents.sql")),
    (5, include_str!("schema/0005_authoring.sql")),
    (6, include_str!("schema/0006_workspace.sql")),
    (7, include_str!("schema/0007_scope_changes.sql")),
];

/// The newest step this release knows.
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

const BOOK: &str = "CREATE TABLE IF NOT EXISTS schema_steps (
    step INTEGER NOT NULL PRIMARY KEY,
    text TEXT    NOT NULL
) STRICT";

/// Brings the database to [`KNOWN`], or says why not and changes nothing.
pub(crate) async fn apply(writer: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::opening(path, &error);
    // The lock is taken before looking: two processes cannot apply one step.
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await.map_err(failed)?;
    let done = steps(writer, path).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    sqlx::query(end).execute(writer).await.map_err(failed)?;
    done
}

/// Refuses a schema with anything more or less in it than the steps make: a
/// trigger of somebody else's would act in our own transactions.
pub(crate) async fn compare(writer: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::opening(path, &error);
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut fresh = options.connect().await.map_err(failed)?;
    steps(&mut fresh, path).await?;
    let (made, found) = (objects(&mut fresh).await, objects(writer).await);
    let (made, found) = (made.map_err(failed)?, found.map_err(failed)?);
    let other = found.iter().find(|object| !made.contains(object));
    let missing = made.iter().find(|object| !found.contains(object));
    let Some((name, _)) = other.or(missing) else { return Ok(()) };
    Err(StoreError::Tampered {
        path: path.to_owned(),
        reason: format!("`{name}` in its schema is not what this release makes"),
    })
}

async fn objects(on: &mut SqliteConnection) -> Result<Vec<(String, String)>, sqlx::Error> {
    // Without SQLite's own, whose text is empty.
    sqlx::query_as("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name, sql")
        .fetch_all(on)
        .await
}

async fn steps(writer: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::opening(path, &error);
    let (ours, tables): (i64, i64) = sqlx::query_as(
        "SELECT COALESCE(SUM(name = 'schema_steps'), 0), COUNT(*) FROM sqlite_schema",
    )
    .fetch_one(&mut *writer)
    .await
    .map_err(failed)?;
    if tables > 0 && ours == 0 {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    sqlx::query(BOOK).execute(&mut *writer).await.map_err(failed)?;
    let applied = sqlx::query("SELECT step, text FROM schema_steps ORDER BY step")
        .fetch_all(&mut *writer)
        .await
        .map_err(failed)?;
    let found = applied.len() as i64;
    for row in applied {
        let step: i64 = row.try_get("step").map_err(failed)?;
        let text: String = row.try_get("text").map_err(failed)?;
        let Some((_, known)) = STEPS.iter().find(|(number, _)| *number == step) else {
            return Err(StoreError::SchemaNewer {
                path: path.to_owned(),
                found: step,
                known: KNOWN,
            });
        };
        if *known != text {
            return Err(StoreError::SchemaChanged { path: path.to_owned(), step });
        }
    }
    for (step, text) in STEPS.iter().filter(|(step, _)| *step > found) {
        sqlx::raw_sql(*text).execute(&mut *writer).await.map_err(failed)?;
        sqlx::query("INSERT INTO schema_steps (step, text) VALUES ($1, $2)")
            .bind(step)
            .bind(text)
            .execute(&mut *writer)
            .await
            .map_err(failed)?;
    }
    Ok(())
}
