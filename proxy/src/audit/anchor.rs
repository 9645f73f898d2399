//! Anchors: signed statements of how many rows a node's chain had and what the
//! last one was. Kept somewhere the database's writer cannot reach, they show a
//! chain that was cut at its end, or put back to an older state.

use super::hex;
use crate::Vault;
use serde::{Deserialize, Serialize};

const DOMAIN: &str = "audit anchor";

/// One statement; a file of them has one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// Which node's chain.
    pub node: String,
    /// Number of the last row.
    pub rows: u64,
    /// Its hash, hexadecimal; zeros when there is none.
    pub hash: String,
    /// When it was made, milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above, hexadecimal.
    pub mac: String,
}

impl Anchor {
    pub(crate) fn sign(vault: &Vault, node: &str, rows: u64, hash: &[u8], at_ms: i64) -> Self {
        let node = node.to_owned();
        let mut anchor = Self { node, rows, hash: hex(hash), at_ms, mac: String::new() };
        anchor.mac = hex(&anchor.under_mac(|fields| vault.mac(DOMAIN, fields)));
        anchor
    }

    pub(crate) fn holds(&self, vault: &Vault) -> bool {
        // Compared as text: a MAC is public once it is anchored.
        hex(&self.under_mac(|fields| vault.mac(DOMAIN, fields))) == self.mac
    }

    fn under_mac<T>(&self, act: impl FnOnce(&[&[u8]]) -> T) -> T {
        act(&[
            self.node.as_bytes(),
            &self.rows.to_be_bytes(),
            self.hash.as_bytes(),
            &self.at_ms.to_be_bytes(),
        ])
    }
}
