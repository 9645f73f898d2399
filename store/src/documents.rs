//! OpenAPI documents pinned on connections. The pin is sealed; the bytes are a
//! file of `tools.rs`, worth nothing unless their digest is the pin's.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::ledger::Claim;
use crate::row::{Read, belongs, whole};
use crate::seal::{RowName, Table, seal};
use cambium_engine::port::{Answering, DocumentRow, DocumentStore};
use cambium_proxy::ConnectionId;

pub(crate) const DOCUMENT: &str = concat!(
    "SELECT connection_id, sequence, digest, base_path, at_ms, ",
    seal!(documents),
    " AS seal FROM documents WHERE connection_id = $1 ORDER BY sequence DESC LIMIT 1"
);

impl DocumentStore for Store {
    fn document<'a>(&'a self, connection: &'a ConnectionId) -> Answering<'a, Option<DocumentRow>> {
        Box::pin(self.believed(move || {
            Box::pin(async move {
                let mut on = self.read().await?;
                let row = sqlx::query(DOCUMENT).bind(connection.as_str());
                let row = row.fetch_optional(&mut *on).await.map_err(fault)?;
                let set = vec![connection.as_str().to_owned()];
                let Some(row) = row else {
                    return Ok((None, vec![Claim::Counts(Table::Documents, set, 0)]));
                };
                let pin = DocumentRow {
                    connection: row.id("connection_id", ConnectionId::new)?,
                    sequence: row.unsigned("sequence")?,
                    digest: row.digest("digest")?,
                    base_path: row.get_as("base_path")?,
                    at_ms: row.get_as("at_ms")?,
                };
                let name = RowName::document(&pin.connection, whole(pin.sequence)?);
                let claims = vec![
                    Claim::Is(name, row.get_as("seal")?),
                    // No gaps, so the newest is how many there are.
                    Claim::Counts(Table::Documents, set, pin.sequence),
                ];
                Ok((Some(pin), claims))
            })
        }))
    }

    fn pin_document<'a>(&'a self, row: &'a DocumentRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "INSERT INTO documents (connection_id, sequence, person_id, digest, base_path, at_ms)
                SELECT connection_id, $2, person_id, $3, $4, $5 FROM connections
                WHERE connection_id = $1",
            )
            .bind(row.connection.as_str())
            .bind(whole(row.sequence)?)
            .bind(row.digest.to_string())
            .bind(&row.base_path)
            .bind(row.at_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "connection")?;
            writing.changed(RowName::document(&row.connection, whole(row.sequence)?));
            writing.commit().await
        })
    }
}
