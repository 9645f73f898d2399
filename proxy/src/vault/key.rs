//! The master key's file: made once, read by its owner only. Anything odd
//! about it is refused rather than repaired, since repairing would hide that
//! somebody else could have read it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The key in the file, made if the file is not there.
pub(super) fn read_or_make(path: &Path) -> Result<Zeroizing<[u8; 32]>, String> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(file) => make(file, path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(format!("cannot be made: {error}")),
    }
}

fn make(mut file: File, path: &Path) -> Result<Zeroizing<[u8; 32]>, String> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *key).map_err(|error| format!("no randomness: {error}"))?;
    let written = file.write_all(&*key).and_then(|()| file.sync_all()).and_then(|()| {
        // A key lost in a crash loses every secret sealed under it.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    });
    written.map_err(|error| format!("cannot be written: {error}"))?;
    Ok(key)
}

fn read(path: &Path) -> Result<Zeroizing<[u8; 32]>, String> {
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
    if opened.len() != 32 {
        return Err(format!("is {} bytes long, not 32", opened.len()));
    }
    let mut key = Zeroizing::new([0; 32]);
    file.read_exact(&mut *key).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(key)
}
