//! What ends when a backup is restored. Between the backup and now a person may
//! have taken back anything it says, so sessions, codes, asks and permits end,
//! and every standing yes is withdrawn: the next write asks again. A standing no
//! stays. Tokens and the passphrase are those of the backup.

use crate::port::Store;
use cambium_proxy::{Answer, Clock, DecisionRow, StoreFault, Vault};

/// What a restored database no longer carries on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// Console sessions and unused codes.
    pub sessions: u64,
    /// Open asks.
    pub asks: u64,
    /// Standing answers and unused permits, by agent and tool.
    pub approvals: u64,
}

/// Ends it all in one step.
pub async fn begin_epoch(
    store: &dyn Store,
    vault: &Vault,
    clock: &dyn Clock,
) -> Result<Ended, StoreFault> {
    let at_ms = clock.now_ms();
    let mut withdrawals = Vec::new();
    for newest in store.newest_decisions().await? {
        match newest.answer {
            Answer::Deny | Answer::Withdrawn => continue,
            Answer::Standing | Answer::Once => {}
        }
        let row = DecisionRow {
            sequence: newest.sequence + 1,
            answer: Answer::Withdrawn,
            channel: "restore".into(),
            at_ms,
            mac: Vec::new(),
            ..newest
        };
        withdrawals.push(row.sign(vault));
    }
    store.begin_epoch(&withdrawals, at_ms).await
}
