//! The chain of a node's rows: each hash covers the row before, each MAC the
//! hash, so an edit, a gap or a changed order shows, and nobody without the
//! vault's key can write a chain that holds.

use super::{AuditRow, AuditSink};
use crate::Vault;
use sha2::{Digest, Sha256};

/// Rows read at a time while verifying.
const PAGE: u32 = 500;

/// Makes the next row.
pub(crate) fn link(
    vault: &Vault,
    node: &str,
    sequence: u64,
    previous: Vec<u8>,
    event: String,
) -> AuditRow {
    let hash = hash(node, sequence, &previous, &event);
    let mac = vault.mac("audit", &[&hash]).to_vec();
    AuditRow { node: node.to_owned(), sequence, event, previous, hash: hash.to_vec(), mac }
}

fn hash(node: &str, sequence: u64, previous: &[u8], event: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    for field in [node.as_bytes(), &sequence.to_be_bytes(), previous, event.as_bytes()] {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

/// Whether a row holds in itself.
pub(crate) fn check(vault: &Vault, row: &AuditRow) -> Result<(), String> {
    let expected = hash(&row.node, row.sequence, &row.previous, &row.event);
    if row.hash != expected {
        return Err(format!("row {} was edited: its hash does not hold", row.sequence));
    }
    if !vault.mac_holds("audit", &[&row.hash], &row.mac) {
        return Err(format!("row {} was not written here: its MAC does not hold", row.sequence));
    }
    Ok(())
}

/// Walks a node's whole chain; answers the number of rows or the first that
/// does not hold. A chain cut at its end shows only against an exported head.
pub(crate) async fn verify(
    vault: &Vault,
    node: &str,
    sink: &dyn AuditSink,
) -> Result<u64, (u64, String)> {
    let mut sequence = 0;
    let mut previous = vec![0; 32];
    loop {
        let page = sink.rows(node, sequence, PAGE).await;
        let page = page.map_err(|fault| (sequence + 1, fault.to_string()))?;
        if page.is_empty() {
            return Ok(sequence);
        }
        for row in page {
            let expected = sequence + 1;
            if row.sequence != expected || row.node != node {
                let found = row.sequence;
                return Err((
                    expected,
                    format!("row {expected} is missing; row {found} stands there"),
                ));
            }
            if row.previous != previous {
                return Err((expected, format!("row {expected} does not follow the row before")));
            }
            check(vault, &row).map_err(|why| (expected, why))?;
            sequence = expected;
            previous = row.hash;
        }
    }
}
