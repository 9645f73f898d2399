//! The key file: made once, read by its owner only, replaced whole when the
//! sealing key is rotated. It holds the root, from which every MAC key comes and
//! which never changes in a database's life, and one sealing key, or two while a
//! rotation is under way. Anything odd about the file is refused rather than
//! repaired, since repairing would hide that somebody else could have read it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 16] = b"cambium vault 1\n";
const KEY: usize = 32;
/// Number and bytes of a sealing key.
const NUMBERED: usize = 4 + KEY;

/// A sealing key and its number, which rises.
pub(super) struct SealingKey {
    pub(super) number: u32,
    pub(super) bytes: Zeroizing<[u8; KEY]>,
}

/// What the file holds.
pub(super) struct Keys {
    pub(super) root: Zeroizing<[u8; KEY]>,
    /// One; two while a rotation is under way. The last is the one in use.
    pub(super) sealing: Vec<SealingKey>,
}

impl Keys {
    fn random() -> Result<Self, String> {
        Ok(Self { root: random()?, sealing: vec![SealingKey { number: 1, bytes: random()? }] })
    }

    /// As the file has them.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAGIC.len() + KEY + 2 * NUMBERED));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&*self.root);
        for key in &self.sealing {
            bytes.extend_from_slice(&key.number.to_be_bytes());
            bytes.extend_from_slice(&*key.bytes);
        }
        bytes
    }

    /// Reads what [`Self::encode`] made.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (root, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(KEY)?;
        let mut keys = Self { root: copied(root)?, sealing: Vec::new() };
        for numbered in rest.chunks(NUMBERED) {
            let (number, bytes) = numbered.split_at_checked(4)?;
            let number = u32::from_be_bytes(number.try_into().ok()?);
            keys.sealing.push(SealingKey { number, bytes: copied(bytes)? });
        }
        let rising = keys.sealing.windows(2).all(|pair| pair[0].number < pair[1].number);
        (rising && (1..=2).contains(&keys.sealing.len())).then_some(keys)
    }
}

fn copied(bytes: &[u8]) -> Option<Zeroizing<[u8; KEY]>> {
    let mut key = Zeroizing::new([0; KEY]);
    (bytes.len() == KEY).then(|| key.copy_from_slice(bytes))?;
    Some(key)
}

/// A fresh key.
pub(super) fn random() -> Result<Zeroizing<[u8; KEY]>, String> {
    let mut key = Zeroizing::new([0; KEY]);
    getrandom::fill(&mut *key).map_err(|error| format!("no randomness: {error}"))?;
    Ok(key)
}

/// The keys in the file, made if the file is not there.
pub(super) fn read_or_make(path: &Path) -> Result<Keys, String> {
    // Left from a crash while the file was made or replaced.
    let _ = std::fs::remove_file(beside(path));
    match path.symlink_metadata() {
        Ok(_) => read(path),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let keys = Keys::random()?;
            make(path, &keys.encode())?;
            Ok(keys)
        }
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// A new file of mode 0600, on the disk before this returns; refuses one that
/// is there. It gets its name when it is whole.
pub(super) fn make(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let fresh = write_beside(path, bytes)?;
    let named = std::fs::hard_link(&fresh, path);
    let _ = std::fs::remove_file(&fresh);
    named.and_then(|()| sync_directory(path)).map_err(|error| format!("cannot be made: {error}"))
}

/// Puts other keys in the file's place: a crash leaves the old or the new.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let fresh = write_beside(path, bytes)?;
    std::fs::rename(&fresh, path)
        .and_then(|()| sync_directory(path))
        .map_err(|error| format!("cannot be replaced: {error}"))
}

fn write_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
    let fresh = beside(path);
    let _ = std::fs::remove_file(&fresh);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|error| format!("cannot be written: {error}"))?;
    Ok(fresh)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn read(path: &Path) -> Result<Keys, String> {
    let found = path.symlink_metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if !found.is_file() {
        return Err("is not a regular file".into());
    }
    let mut file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let opened = file.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if (opened.dev(), opened.ino()) != (found.dev(), found.ino()) {
        return Err("changed while it was opened".into());
    }
    if opened.mode() & 0o7777 != 0o600 {
        let mode = opened.mode() & 0o7777;
        return Err(format!(
            "has mode {mode:04o}; others may have read it. Set 0600 if they did not"
        ));
    }
    if opened.nlink() != 1 {
        return Err("has more than one name (hard link)".into());
    }
    if opened.len() > 4096 {
        return Err(format!("is {} bytes long, no vault key", opened.len()));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    file.read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    Keys::decode(&bytes).ok_or_else(|| format!("is {} bytes long, no vault key", bytes.len()))
}
