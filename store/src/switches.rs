//! What a person switched on for an agent.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::ledger::Claim;
use crate::memory::Question;
use crate::row::{Read, belongs, whole};
use crate::seal::{RowName, Table};
use cambium_engine::port::{Answering, SwitchRow, SwitchStore};
use cambium_proxy::{AgentId, StoreFault};
use sqlx::sqlite::SqliteRow;

const SWITCH: &str = "SELECT agent_id, name, sequence, value, at_ms, mac FROM switches
    WHERE agent_id = $1 AND name = $2 ORDER BY sequence DESC LIMIT 1";

impl SwitchStore for Store {
    fn switch<'a>(&'a self, agent: &'a AgentId, name: &'a str) -> Answering<'a, Option<SwitchRow>> {
        Box::pin(self.remembered(
            Question::Switch(agent.as_str().to_owned(), name.to_owned()),
            move || {
                Box::pin(async move {
                    let mut on = self.read().await?;
                    let row = sqlx::query(SWITCH)
                        .bind(agent.as_str())
                        .bind(name)
                        .fetch_optional(&mut *on)
                        .await;
                    let row = row.map_err(fault)?.as_ref().map(read).transpose()?;
                    let newest = row.as_ref().map_or(0, |row| row.sequence);
                    // No gaps, so the newest is how many there are.
                    let set = vec![agent.as_str().to_owned(), name.to_owned()];
                    Ok((row, vec![Claim::Counts(Table::Switches, set, newest)]))
                })
            },
        ))
    }

    fn set_switch<'a>(&'a self, row: &'a SwitchRow) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            let done = sqlx::query(
                "INSERT INTO switches (agent_id, name, sequence, person_id, value, at_ms, mac)
                SELECT agent_id, $2, $3, person_id, $4, $5, $6 FROM agents WHERE agent_id = $1",
            )
            .bind(row.agent.as_str())
            .bind(&row.name)
            .bind(whole(row.sequence)?)
            .bind(&row.value)
            .bind(row.at_ms)
            .bind(&row.mac)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "agent")?;
            writing.changed(RowName::switch(&row.agent, &row.name, whole(row.sequence)?));
            writing.commit().await
        })
    }
}

fn read(row: &SqliteRow) -> Result<SwitchRow, StoreFault> {
    Ok(SwitchRow {
        agent: row.id("agent_id", AgentId::new)?,
        name: row.get_as("name")?,
        sequence: row.unsigned("sequence")?,
        value: row.get_as("value")?,
        at_ms: row.get_as("at_ms")?,
        mac: row.get_as("mac")?,
    })
}
