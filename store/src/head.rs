//! The head: how far ledger and audit have come, in a small file beside the
//! database, under a MAC. It finds what the database alone cannot show: that
//! rows are missing at the end, or that an older file was put in its place. It
//! is written after the commits that the disk has, never before, so that a
//! crash leaves it behind and never ahead.

use cambium_proxy::MacKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Two slots are written in turn, so that one is always whole.
const SLOT: usize = 4096;

/// How far each chain has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Rises with each writing.
    pub(crate) written: u64,
    /// Last ledger row: number and MAC, hexadecimal.
    pub(crate) ledger: (u64, String),
    /// Last audit row of each node that the disk has: number and hash.
    pub(crate) audit: BTreeMap<String, (u64, String)>,
}

/// The file.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
    key: MacKey,
}

/// Where the head of a database is.
pub(crate) fn path_of(database: &Path) -> PathBuf {
    database.with_extension("head")
}

impl HeadFile {
    /// Opens the file; `None` when there is none.
    pub(crate) fn open(path: &Path, key: &MacKey) -> std::io::Result<Option<Self>> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => Ok(Some(Self { file, key: key.clone() })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes it, whole on the disk before anything is said in it.
    pub(crate) fn make(path: &Path, key: &MacKey) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all_at(&[0; 2 * SLOT], 0)?;
        file.sync_all()?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Self { file, key: key.clone() })
    }

    /// The newest head that holds.
    pub(crate) fn read(&self) -> std::io::Result<Option<Head>> {
        let mut best: Option<Head> = None;
        for slot in 0..2 {
            let mut bytes = vec![0; SLOT];
            match self.file.read_exact_at(&mut bytes, slot * SLOT as u64) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
                read => read?,
            }
            let Some(head) = self.parse(&bytes) else { continue };
            if best.as_ref().is_none_or(|best| best.written < head.written) {
                best = Some(head);
            }
        }
        Ok(best)
    }

    /// Writes it into the slot whose turn it is.
    pub(crate) fn write(&self, head: &Head) -> std::io::Result<()> {
        let text = serde_json::to_vec(head)?;
        let mac = self.key.mac(&[b"head", &text]);
        let mut bytes = Vec::with_capacity(SLOT);
        bytes.extend(mac);
        bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(text);
        if bytes.len() > SLOT {
            return Err(std::io::Error::other("the head does not fit its slot"));
        }
        bytes.resize(SLOT, 0);
        self.file.write_all_at(&bytes, (head.written % 2) * SLOT as u64)
    }

    fn parse(&self, bytes: &[u8]) -> Option<Head> {
        let (mac, rest) = bytes.split_at_checked(32)?;
        let (length, rest) = rest.split_at_checked(2)?;
        let length = usize::from(u16::from_be_bytes(length.try_into().ok()?));
        let text = rest.get(..length)?;
        if !self.key.holds(&[b"head", text], mac) {
            return None;
        }
        serde_json::from_slice(text).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_other_and_a_foreign_one_counts_for_nothing() {
        let path = std::env::temp_dir().join(format!("cambium-head-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let key = MacKey::new([1; 32]);
        let file = HeadFile::make(&path, &key).unwrap();
        assert_eq!(file.read().unwrap(), None);
        let head = |written| Head { written, ledger: (written, "aa".into()), ..Head::default() };
        for written in 1..=5 {
            file.write(&head(written)).unwrap();
            assert_eq!(file.read().unwrap(), Some(head(written)));
        }
        // The newest is in the second slot; torn, the one before counts.
        file.file.write_all_at(&[0xff; 40], SLOT as u64).unwrap();
        assert_eq!(file.read().unwrap(), Some(head(4)));
        let other = HeadFile::open(&path, &MacKey::new([2; 32])).unwrap().unwrap();
        assert_eq!(other.read().unwrap(), None);
        std::fs::remove_file(&path).unwrap();
    }
}
