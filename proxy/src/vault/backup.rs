//! The sealing of a backup: the vault's keys wrapped by a passphrase, and a
//! stream of pieces under a key of the backup's own. The wrapped part says at
//! once whether the passphrase is right; a piece changed, moved, left out or
//! cut off at the end does not open.

use super::key::{self, Keys};
use super::{Vault, VaultError};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 17] = b"cambium backup 1\n";
const SALT: usize = 16;
const NONCE: usize = 24;
const TAG: usize = 16;
/// The wrapped part before it is wrapped: the pieces' key, the length of the
/// vault's keys, and those, padded to one length.
const WRAPPED: usize = 256;
/// Bytes of a backup before its pieces.
pub const BACKUP_HEADER: usize = MAGIC.len() + SALT + NONCE + WRAPPED + TAG;
/// Bytes a piece is longer than what is in it.
pub const BACKUP_OVERHEAD: usize = TAG;

/// As a person's passphrase is hashed, and a little more: this is off the path
/// of any request. 64 MiB, three passes, one lane.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;

/// Seals or opens the pieces of one backup, in order.
pub struct BackupPieces {
    cipher: XChaCha20Poly1305,
    next: u64,
}

/// The vault's keys out of a backup, on their way into a file.
pub struct BackupKeys {
    keys: Keys,
}

impl Vault {
    /// Begins a backup under a passphrase: its header, and what seals the
    /// pieces. `None` when memory or randomness fails.
    pub fn begin_backup(&self, passphrase: &str) -> Option<(Vec<u8>, BackupPieces)> {
        let (mut salt, mut nonce) = ([0; SALT], [0; NONCE]);
        getrandom::fill(&mut salt).ok()?;
        getrandom::fill(&mut nonce).ok()?;
        let pieces = key::random().ok()?;
        let keys = self.keys().encode();
        let mut plain = Zeroizing::new(Vec::with_capacity(WRAPPED));
        plain.extend_from_slice(&*pieces);
        plain.extend_from_slice(&u16::try_from(keys.len()).ok()?.to_be_bytes());
        plain.extend_from_slice(&keys);
        if plain.len() > WRAPPED {
            return None;
        }
        plain.resize(WRAPPED, 0);
        let mut header = MAGIC.to_vec();
        header.extend(salt);
        header.extend(nonce);
        let payload = Payload { msg: &plain, aad: &header };
        let wrapping = derive(passphrase, &salt)?;
        let wrapped = cipher(&wrapping).encrypt(XNonce::from_slice(&nonce), payload).ok()?;
        header.extend(wrapped);
        Some((header, BackupPieces { cipher: cipher(&pieces), next: 0 }))
    }

    /// Opens a backup's header. `None` when it is none, or the passphrase is
    /// another.
    pub fn open_backup(passphrase: &str, header: &[u8]) -> Option<(BackupKeys, BackupPieces)> {
        if header.len() != BACKUP_HEADER || !header.starts_with(MAGIC) {
            return None;
        }
        let (bound_to, wrapped) = header.split_at_checked(MAGIC.len() + SALT + NONCE)?;
        let (salt, nonce) = bound_to.get(MAGIC.len()..)?.split_at_checked(SALT)?;
        let payload = Payload { msg: wrapped, aad: bound_to };
        let wrapping = derive(passphrase, salt)?;
        let plain = cipher(&wrapping)
            .decrypt(XNonce::from_slice(nonce), payload)
            .ok()
            .map(Zeroizing::new)?;
        let (pieces, rest) = plain.split_at_checked(32)?;
        let (length, rest) = rest.split_at_checked(2)?;
        let length = usize::from(u16::from_be_bytes(length.try_into().ok()?));
        let keys = Keys::decode(rest.get(..length)?)?;
        let cipher = XChaCha20Poly1305::new_from_slice(pieces).ok()?;
        Some((BackupKeys { keys }, BackupPieces { cipher, next: 0 }))
    }

    /// Whether bytes begin as a backup does.
    pub fn is_backup(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }
}

impl BackupKeys {
    /// Makes the vault's key file; refuses one that is there.
    pub fn write(&self, path: &Path) -> Result<(), VaultError> {
        key::make(path, &self.keys.encode())
            .map_err(|reason| VaultError::Key { path: path.to_owned(), reason })
    }
}

impl BackupPieces {
    /// The next piece, sealed.
    pub fn seal(&mut self, plain: &[u8], last: bool) -> Option<Vec<u8>> {
        let payload = Payload { msg: plain, aad: &[u8::from(last)] };
        let nonce = self.nonce();
        self.cipher.encrypt(XNonce::from_slice(&nonce), payload).ok()
    }

    /// The next piece, opened. `None` when it is not that.
    pub fn open(&mut self, sealed: &[u8], last: bool) -> Option<Zeroizing<Vec<u8>>> {
        let payload = Payload { msg: sealed, aad: &[u8::from(last)] };
        let nonce = self.nonce();
        self.cipher.decrypt(XNonce::from_slice(&nonce), payload).ok().map(Zeroizing::new)
    }

    /// The key is this backup's alone, so counting is enough.
    fn nonce(&mut self) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..8].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        nonce
    }
}

impl std::fmt::Debug for BackupPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackupPieces").field("next", &self.next).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for BackupKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackupKeys")
    }
}

fn cipher(key: &[u8; 32]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.into())
}

fn derive(passphrase: &str, salt: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, Some(32)).ok()?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut *key)
        .ok()?;
    Some(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::KeySource;

    #[test]
    fn a_backup_opens_under_its_passphrase_whole_and_in_order() {
        let directory = std::env::temp_dir().join(format!("cambium-backup-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let vault = Vault::open(&KeySource::File(directory.join("key"))).unwrap();
        let (header, mut sealing) = vault.begin_backup("correct horse").unwrap();
        assert_eq!(header.len(), BACKUP_HEADER);
        let pieces = [sealing.seal(b"one", false).unwrap(), sealing.seal(b"two", true).unwrap()];
        assert_eq!(pieces[0].len(), 3 + BACKUP_OVERHEAD);
        assert!(Vault::open_backup("correct horsE", &header).is_none());
        assert!(Vault::open_backup("correct horse", &header[1..]).is_none());
        for at in [0, MAGIC.len(), MAGIC.len() + SALT, header.len() - 1] {
            let mut changed = header.clone();
            changed[at] ^= 1;
            assert!(Vault::open_backup("correct horse", &changed).is_none(), "byte {at}");
        }
        let (keys, mut opening) = Vault::open_backup("correct horse", &header).unwrap();
        assert_eq!(&opening.open(&pieces[0], false).unwrap()[..], b"one");
        assert_eq!(&opening.open(&pieces[1], true).unwrap()[..], b"two");
        let open = |sealed: &[u8], skip: u64, last| {
            let (_, mut opening) = Vault::open_backup("correct horse", &header).unwrap();
            opening.next = skip;
            opening.open(sealed, last).is_some()
        };
        assert!(open(&pieces[1], 1, true));
        assert!(!open(&pieces[1], 0, true), "moved");
        assert!(!open(&pieces[0], 0, true), "cut off");
        keys.write(&directory.join("again")).unwrap();
        assert!(keys.write(&directory.join("again")).is_err());
        let again = Vault::open(&KeySource::File(directory.join("again"))).unwrap();
        assert_eq!(vault.mac("x", &[b"a"]), again.mac("x", &[b"a"]));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
