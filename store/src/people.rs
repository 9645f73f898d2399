//! Persons, their one-time codes and console sessions.

use crate::Store;
use crate::database::{Commit, Writing};
use crate::error::fault;
use crate::ledger::Claim;
use crate::row::{Read, belongs};
use crate::seal::{RowName, Table, seal};
use cambium_engine::port::{Answering, CodeRow, PersonRow, PersonStore, SecretHash, SessionRow};
use cambium_proxy::{PersonId, StoreFault};

const PERSON: &str = concat!(
    "SELECT person_id, passphrase, created_ms, ",
    seal!(persons),
    " AS seal FROM persons ORDER BY created_ms, person_id LIMIT 1"
);
pub(crate) const CODE: &str = concat!(
    "SELECT ",
    seal!(codes),
    " AS seal FROM codes WHERE code_hash = $1 AND used_ms IS NULL AND expires_ms > $2"
);
pub(crate) const SESSION: &str = concat!(
    "SELECT person_id, opened_ms, expires_ms, ",
    seal!(sessions),
    " AS seal FROM sessions WHERE session_hash = $1 AND ended_ms IS NULL AND expires_ms > $2"
);

/// Ends every open session and unused code; answers how many.
pub(crate) async fn end_all(writing: &mut Writing<'_>, now_ms: i64) -> Result<u64, StoreFault> {
    let sessions = sqlx::query(
        "UPDATE sessions SET ended_ms = $1 WHERE ended_ms IS NULL RETURNING session_hash",
    );
    let sessions = sessions.bind(now_ms).fetch_all(writing.on()).await.map_err(fault)?;
    for session in &sessions {
        writing.changed(RowName::session(session.get_as("session_hash")?));
    }
    let codes =
        sqlx::query("UPDATE codes SET used_ms = $1 WHERE used_ms IS NULL RETURNING code_hash");
    let codes = codes.bind(now_ms).fetch_all(writing.on()).await.map_err(fault)?;
    for code in &codes {
        writing.changed(RowName::code(code.get_as("code_hash")?));
    }
    Ok((sessions.len() + codes.len()) as u64)
}

impl PersonStore for Store {
    fn person(&self) -> Answering<'_, Option<PersonRow>> {
        Box::pin(self.believed(|| {
            Box::pin(async {
                let mut on = self.read().await?;
                let row = sqlx::query(PERSON).fetch_optional(&mut *on).await.map_err(fault)?;
                let Some(row) = row else {
                    return Ok((None, vec![Claim::Total(Table::Persons, 0)]));
                };
                let person = PersonRow {
                    id: row.id("person_id", PersonId::new)?,
                    passphrase: row.get_as("passphrase")?,
                    created_ms: row.get_as("created_ms")?,
                };
                let claim = Claim::Is(RowName::person(&person.id), row.get_as("seal")?);
                Ok((Some(person), vec![claim]))
            })
        }))
    }

    fn insert_person<'a>(&'a self, person: &'a PersonRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "INSERT INTO persons (person_id, passphrase, created_ms)
                SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT 1 FROM persons)",
            )
            .bind(person.id.as_str())
            .bind(person.passphrase.as_deref())
            .bind(person.created_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() == 0 {
                return Err(StoreFault::Conflict("there is a person already".into()));
            }
            writing.changed(RowName::person(&person.id));
            writing.commit().await
        })
    }

    fn set_passphrase<'a>(
        &'a self,
        person: &'a PersonId,
        passphrase: &'a str,
        end_sessions: bool,
        now_ms: i64,
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query("UPDATE persons SET passphrase = $2 WHERE person_id = $1")
                .bind(person.as_str())
                .bind(passphrase)
                .execute(writing.on())
                .await
                .map_err(fault)?;
            belongs(done.rows_affected(), "person")?;
            writing.changed(RowName::person(person));
            if end_sessions {
                let ended = sqlx::query(
                    "UPDATE sessions SET ended_ms = $2 WHERE person_id = $1 AND ended_ms IS NULL
                    RETURNING session_hash",
                )
                .bind(person.as_str())
                .bind(now_ms)
                .fetch_all(writing.on())
                .await
                .map_err(fault)?;
                for session in ended {
                    writing.changed(RowName::session(session.get_as("session_hash")?));
                }
            }
            writing.commit().await
        })
    }

    fn insert_code<'a>(&'a self, code: &'a CodeRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query("INSERT INTO codes (code_hash, person_id, expires_ms) VALUES ($1, $2, $3)")
                .bind(&code.hash[..])
                .bind(code.person.as_str())
                .bind(code.expires_ms)
                .execute(writing.on())
                .await
                .map_err(fault)?;
            writing.changed(RowName::code(&code.hash));
            writing.commit().await
        })
    }

    fn redeem_code<'a>(&'a self, hash: &'a SecretHash, now_ms: i64) -> Answering<'a, bool> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let row = sqlx::query(CODE).bind(&hash[..]).bind(now_ms);
            let Some(row) = row.fetch_optional(writing.on()).await.map_err(fault)? else {
                return Ok(false);
            };
            writing.believe(&[Claim::Is(RowName::code(hash), row.get_as("seal")?)]).await?;
            let done = sqlx::query(
                "UPDATE codes SET used_ms = $2
                WHERE code_hash = $1 AND used_ms IS NULL AND expires_ms > $2",
            )
            .bind(&hash[..])
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::code(hash));
            writing.commit().await?;
            Ok(done.rows_affected() == 1)
        })
    }

    fn insert_session<'a>(&'a self, session: &'a SessionRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            sqlx::query(
                "INSERT INTO sessions (session_hash, person_id, opened_ms, expires_ms)
                VALUES ($1, $2, $3, $4)",
            )
            .bind(&session.hash[..])
            .bind(session.person.as_str())
            .bind(session.opened_ms)
            .bind(session.expires_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            writing.changed(RowName::session(&session.hash));
            writing.commit().await
        })
    }

    fn session<'a>(
        &'a self,
        hash: &'a SecretHash,
        now_ms: i64,
    ) -> Answering<'a, Option<SessionRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(SESSION).bind(&hash[..]).bind(now_ms);
                let row = row.fetch_optional(&mut *on).await.map_err(fault)?;
                let Some(row) = row else { return Ok((None, Vec::new())) };
                let session = SessionRow {
                    hash: *hash,
                    person: row.id("person_id", PersonId::new)?,
                    opened_ms: row.get_as("opened_ms")?,
                    expires_ms: row.get_as("expires_ms")?,
                };
                let claim = Claim::Is(RowName::session(hash), row.get_as("seal")?);
                Ok((Some(session), vec![claim]))
            })
        }))
    }

    fn end_session<'a>(&'a self, hash: &'a SecretHash, now_ms: i64) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "UPDATE sessions SET ended_ms = $2 WHERE session_hash = $1 AND ended_ms IS NULL",
            )
            .bind(&hash[..])
            .bind(now_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            if done.rows_affected() > 0 {
                writing.changed(RowName::session(hash));
            }
            writing.commit().await
        })
    }
}
