//! Sealed secrets, one a connection. Nothing here can open one.

use crate::Store;
use crate::database::{Commit, Writing};
use crate::error::fault;
use crate::row::{Read, belongs, whole};
use cambium_proxy::{BoxFuture, ConnectionId, SealedSecret, SecretStore, StoreFault};

pub(crate) const SECRET: &str =
    "SELECT generation, wrapped_key, sealed FROM secrets WHERE connection_id = $1";

const ALL: &str =
    "SELECT connection_id, generation, wrapped_key, sealed FROM secrets ORDER BY connection_id";

impl SecretStore for Store {
    fn secret<'a>(
        &'a self,
        connection: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<SealedSecret>, StoreFault>> {
        Box::pin(async move {
            let began = match self.memory().secret(connection) {
                Ok(secret) => return Ok(Some(secret)),
                Err(began) => began,
            };
            let mut on = self.read().await?;
            let row = sqlx::query(SECRET).bind(connection.as_str()).fetch_optional(&mut *on).await;
            let Some(row) = row.map_err(fault)? else { return Ok(None) };
            let secret = SealedSecret {
                connection: connection.clone(),
                generation: row.unsigned("generation")?,
                wrapped_key: row.get_as("wrapped_key")?,
                sealed: row.get_as("sealed")?,
            };
            self.memory().keep_secret(began, &secret);
            Ok(Some(secret))
        })
    }

    fn put_secret<'a>(&'a self, secret: &'a SealedSecret) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            put(&mut writing, secret).await?;
            writing.commit().await
        })
    }

    fn secrets(&self) -> BoxFuture<'_, Result<Vec<SealedSecret>, StoreFault>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(ALL).fetch_all(&mut *on).await.map_err(fault)?;
            let read = |row: &sqlx::sqlite::SqliteRow| {
                Ok(SealedSecret {
                    connection: row.id("connection_id", ConnectionId::new)?,
                    generation: row.unsigned("generation")?,
                    wrapped_key: row.get_as("wrapped_key")?,
                    sealed: row.get_as("sealed")?,
                })
            };
            rows.iter().map(read).collect()
        })
    }

    fn replace_secret<'a>(
        &'a self,
        old: &'a SealedSecret,
        new: &'a SealedSecret,
    ) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            writing.changes_secrets();
            // Sealed bytes begin with a random nonce: equal bytes are the same row.
            let done = sqlx::query(
                "UPDATE secrets SET wrapped_key = $2, sealed = $3
                WHERE connection_id = $1 AND generation = $4 AND wrapped_key = $5 AND sealed = $6",
            )
            .bind(old.connection.as_str())
            .bind(&new.wrapped_key)
            .bind(&new.sealed)
            .bind(whole(old.generation)?)
            .bind(&old.wrapped_key)
            .bind(&old.sealed)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            let same = new.connection == old.connection && new.generation == old.generation;
            if !same || done.rows_affected() != 1 {
                return Err(StoreFault::Conflict("another secret is stored".into()));
            }
            writing.commit().await
        })
    }
}

/// Stores or replaces one, in a transaction of whoever calls.
pub(crate) async fn put(
    writing: &mut Writing<'_>,
    secret: &SealedSecret,
) -> Result<(), StoreFault> {
    writing.changes_secrets();
    let done = sqlx::query(
        "INSERT INTO secrets (connection_id, person_id, generation, wrapped_key, sealed)
        SELECT connection_id, person_id, $2, $3, $4
        FROM connections WHERE connection_id = $1
        ON CONFLICT (connection_id) DO UPDATE SET generation = excluded.generation,
            wrapped_key = excluded.wrapped_key, sealed = excluded.sealed",
    )
    .bind(secret.connection.as_str())
    .bind(whole(secret.generation)?)
    .bind(&secret.wrapped_key)
    .bind(&secret.sealed)
    .execute(writing.on())
    .await
    .map_err(fault)?;
    belongs(done.rows_affected(), "connection")
}
