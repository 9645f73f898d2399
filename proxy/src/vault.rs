//! Seals and opens secrets, and derives the MAC keys of everything else. The
//! keys come from a 0600 file. What is sealed is bound to its connection as it
//! stood; which secret belongs where is `credential.rs`'s. Rotating replaces the
//! sealing key; the root of the MACs is a database's for life.

mod backup;
mod key;
mod seal;

pub use backup::{BACKUP_HEADER, BACKUP_OVERHEAD, BackupKeys, BackupPieces};

use hmac::{Hmac, Mac};
use key::{Keys, SealingKey};
use sha2::Sha256;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use zeroize::Zeroizing;

/// Where the master key comes from.
#[derive(Debug)]
pub enum KeySource {
    /// A file of mode 0600; made on first use.
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
pub struct Vault {
    path: PathBuf,
    keys: RwLock<Keys>,
}

impl Vault {
    /// Opens it.
    pub fn open(source: &KeySource) -> Result<Self, VaultError> {
        match source {
            KeySource::File(path) => key::read_or_make(path)
                .map(|keys| Self { path: path.clone(), keys: RwLock::new(keys) })
                .map_err(|reason| VaultError::Key { path: path.clone(), reason }),
        }
    }

    /// MAC over length-prefixed fields under a key derived for `domain`
    /// (`decision`, `version`, `pointer`, `audit`, …).
    pub fn mac(&self, domain: &str, fields: &[&[u8]]) -> [u8; 32] {
        self.keyed(domain, fields).finalize().into_bytes().into()
    }

    /// Compares in constant time.
    pub fn mac_holds(&self, domain: &str, fields: &[&[u8]], mac: &[u8]) -> bool {
        self.keyed(domain, fields).verify_slice(mac).is_ok()
    }

    /// Whether a rotation was cut off and is to be taken up.
    pub fn is_rotating(&self) -> bool {
        self.keys().sealing.len() > 1
    }

    /// A new sealing key, on the disk before anything is sealed under it. One
    /// that a cut-off rotation left is used.
    pub(crate) fn begin_rotation(&self) -> Result<(), VaultError> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.sealing.len() > 1 {
            return Ok(());
        }
        let number = keys.sealing.last().map_or(0, |key| key.number) + 1;
        let bytes = key::random().map_err(|reason| self.unkept(reason))?;
        keys.sealing.push(SealingKey { number, bytes });
        let kept = key::replace(&self.path, &keys.encode());
        kept.map_err(|reason| {
            keys.sealing.pop();
            self.unkept(reason)
        })
    }

    /// The old sealing key leaves, first from the disk.
    pub(crate) fn end_rotation(&self) -> Result<(), VaultError> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let Some(newest) = keys.sealing.pop() else { return Ok(()) };
        let old = std::mem::replace(&mut keys.sealing, vec![newest]);
        key::replace(&self.path, &keys.encode()).map_err(|reason| {
            keys.sealing.splice(0..0, old);
            self.unkept(reason)
        })
    }

    fn unkept(&self, reason: String) -> VaultError {
        VaultError::Key { path: self.path.clone(), reason }
    }

    fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of one domain, to be given to whom the vault itself is not.
    pub fn mac_key(&self, domain: &str) -> MacKey {
        MacKey { key: self.derive("mac", domain) }
    }

    fn keyed(&self, domain: &str, fields: &[&[u8]]) -> Hmac<Sha256> {
        keyed(&self.derive("mac", domain), fields)
    }

    /// A key of its own for each purpose and domain, so that a MAC of one
    /// never passes for another's. The root is uniform, so HMAC alone (HKDF's
    /// expand step, one block) is enough.
    fn derive(&self, purpose: &str, domain: &str) -> Zeroizing<[u8; 32]> {
        derived(&self.keys().root, purpose, domain)
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

fn derived(from: &[u8; 32], purpose: &str, domain: &str) -> Zeroizing<[u8; 32]> {
    let mut mac = hmac(from);
    for part in ["cambium vault 1", purpose, domain] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// Makes and checks MACs of one domain, and nothing else.
#[derive(Clone)]
pub struct MacKey {
    key: Zeroizing<[u8; 32]>,
}

impl MacKey {
    /// A key of known bytes: for a database nobody else can reach, and for tests.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: Zeroizing::new(key) }
    }

    /// MAC over length-prefixed fields.
    pub fn mac(&self, fields: &[&[u8]]) -> [u8; 32] {
        keyed(&self.key, fields).finalize().into_bytes().into()
    }

    /// Compares in constant time.
    pub fn holds(&self, fields: &[&[u8]], mac: &[u8]) -> bool {
        keyed(&self.key, fields).verify_slice(mac).is_ok()
    }
}

impl std::fmt::Debug for MacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MacKey")
    }
}

fn keyed(key: &[u8; 32], fields: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = hmac(key);
    for field in fields {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field);
    }
    mac
}

#[allow(clippy::expect_used)]
fn hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests;
