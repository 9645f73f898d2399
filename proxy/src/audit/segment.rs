//! Segments: the signed summary that stays when a person's retention setting
//! lets old rows go. It says which rows it stands for and what their first and
//! last hashes were, so that the chain goes on through it.

use super::{AuditRow, AuditSink, chain};
use crate::{StoreFault, Vault};
use serde::{Deserialize, Serialize};

const DOMAIN: &str = "audit segment";
/// Rows read at a time.
const PAGE: u32 = 500;
/// Rows one segment stands for at most: what goes in one transaction.
const ROWS: u64 = 20_000;

/// What stands for rows that were let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSegment {
    /// Which node's chain.
    pub node: String,
    /// Number of its first row.
    pub first: u64,
    /// Number of its last row.
    pub last: u64,
    /// Hash of the row before the first.
    pub previous: Vec<u8>,
    /// Hash of the last row.
    pub hash: Vec<u8>,
    /// When its first row happened, milliseconds UTC.
    pub from_ms: i64,
    /// When its last row happened, milliseconds UTC.
    pub until_ms: i64,
    /// When the rows were let go, milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above.
    pub mac: Vec<u8>,
}

impl AuditSegment {
    fn sign(mut self, vault: &Vault) -> Self {
        self.mac = self.under_mac(|fields| vault.mac(DOMAIN, fields)).to_vec();
        self
    }

    pub(crate) fn holds(&self, vault: &Vault) -> bool {
        self.under_mac(|fields| vault.mac_holds(DOMAIN, fields, &self.mac))
    }

    fn under_mac<T>(&self, act: impl FnOnce(&[&[u8]]) -> T) -> T {
        act(&[
            self.node.as_bytes(),
            &self.first.to_be_bytes(),
            &self.last.to_be_bytes(),
            &self.previous,
            &self.hash,
            &self.from_ms.to_be_bytes(),
            &self.until_ms.to_be_bytes(),
            &self.at_ms.to_be_bytes(),
        ])
    }
}

#[derive(Deserialize)]
struct When {
    at_ms: i64,
}

/// Lets the rows before a time go, oldest first, each checked before; the last
/// row of a chain always stays. Answers how many went. A row that does not hold
/// stops it: what is broken is kept to be looked at.
pub(crate) async fn expire(
    vault: &Vault,
    sink: &dyn AuditSink,
    node: &str,
    before_ms: i64,
    now_ms: i64,
) -> Result<u64, StoreFault> {
    let mut gone = 0;
    while let Some(segment) = next(vault, sink, node, before_ms, now_ms).await? {
        sink.let_go(&segment).await?;
        gone += segment.last - segment.first + 1;
    }
    Ok(gone)
}

async fn next(
    vault: &Vault,
    sink: &dyn AuditSink,
    node: &str,
    before_ms: i64,
    now_ms: i64,
) -> Result<Option<AuditSegment>, StoreFault> {
    let Some(end) = sink.last(node).await? else { return Ok(None) };
    let segments = sink.segments(node).await?;
    let (mut last, mut hash) =
        segments.last().map_or((0, vec![0; 32]), |segment| (segment.last, segment.hash.clone()));
    let mut segment: Option<AuditSegment> = None;
    'rows: loop {
        let page = sink.rows(node, last, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for row in page {
            let AuditRow { sequence, .. } = row;
            if sequence != last + 1 || row.previous != hash {
                let why = format!("row {} does not follow the row before", last + 1);
                return Err(StoreFault::Corrupt(why));
            }
            chain::check(vault, &row).map_err(StoreFault::Corrupt)?;
            let when: When = serde_json::from_str(&row.event)
                .map_err(|_| StoreFault::Corrupt(format!("row {sequence} has no time")))?;
            let full = segment.as_ref().is_some_and(|s| sequence - s.first >= ROWS);
            if when.at_ms >= before_ms || sequence >= end.sequence || full {
                break 'rows;
            }
            let so_far = segment.get_or_insert_with(|| AuditSegment {
                node: node.to_owned(),
                first: sequence,
                last: sequence,
                previous: row.previous.clone(),
                hash: Vec::new(),
                from_ms: when.at_ms,
                until_ms: when.at_ms,
                at_ms: now_ms,
                mac: Vec::new(),
            });
            (so_far.last, so_far.until_ms) = (sequence, when.at_ms);
            so_far.hash.clone_from(&row.hash);
            (last, hash) = (sequence, row.hash);
        }
    }
    Ok(segment.map(|segment| segment.sign(vault)))
}
