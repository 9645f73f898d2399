//! Seals and opens secrets, and derives the MAC keys of everything else. The
//! master key comes from a 0600 file, the environment or a passphrase.

use std::path::PathBuf;

/// Where the master key comes from.
#[derive(Debug)]
pub enum KeySource {
    /// 32 bytes in a file of mode 0600; made on first use.
    File(PathBuf),
}

/// Why a vault could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file cannot be read, written, or others can read it.
    #[error("the vault key {path}: {reason}")]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The open vault.
pub struct Vault {}

#[allow(clippy::todo, unused_variables)]
impl Vault {
    /// Opens it.
    pub fn open(source: &KeySource) -> Result<Self, VaultError> {
        todo!()
    }

    /// MAC over length-prefixed fields under a key derived for `domain`
    /// (`decision`, `version`, `pointer`, `audit`, …).
    pub fn mac(&self, domain: &str, fields: &[&[u8]]) -> [u8; 32] {
        todo!()
    }

    /// Compares in constant time.
    pub fn mac_holds(&self, domain: &str, fields: &[&[u8]], mac: &[u8]) -> bool {
        todo!()
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}
