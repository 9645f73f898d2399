//! The chain of a node's rows: each hash covers the row before, each MAC the
//! hash, so an edit, a gap or a changed order shows, and nobody without the
//! vault's key can write a chain that holds.

use super::AuditRow;
use crate::Vault;
use sha2::{Digest, Sha256};

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
