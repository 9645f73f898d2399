//! Backups: one file with a consistent copy of the database, sealed piece by
//! piece, and the vault's keys under the person's passphrase. A restore makes a
//! data directory of it beside the place it belongs to and moves it there when
//! it is whole; whatever goes wrong before that touches nothing.

use crate::assemble;
use crate::data_dir::DATABASE;
use crate::failure::Failure;
use cambium_engine::Ended;
use cambium_proxy::{BACKUP_HEADER, BACKUP_OVERHEAD, BackupPieces, Vault};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the database in one piece.
const PIECE: usize = 1024 * 1024;

/// Seals the copy of the database into a new file of mode 0600; answers its
/// length. The file is whole on the disk, or gone.
pub(crate) fn write(
    vault: &Vault,
    passphrase: &str,
    copy: &Path,
    to: &Path,
) -> Result<u64, Failure> {
    let mut options = OpenOptions::new();
    let out = options.write(true).create_new(true).mode(0o600).open(to);
    let mut out = out.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(
            "backup_exists",
            format!("{} is there already", to.display()),
            "name a file that does not exist; a backup is never written over another",
        ),
        _ => unwritten(to, &error),
    })?;
    let written = sealed_into(vault, passphrase, copy, &mut out, to);
    if written.is_err() {
        let _ = std::fs::remove_file(to);
    }
    written
}

fn sealed_into(
    vault: &Vault,
    passphrase: &str,
    copy: &Path,
    out: &mut File,
    to: &Path,
) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| unwritten(to, &error);
    let unsealed =
        || Failure::new("backup_unwritten", "there was no memory to seal it", "try again");
    let mut source = File::open(copy).map_err(failed)?;
    let (header, mut pieces) = vault.begin_backup(passphrase).ok_or_else(unsealed)?;
    out.write_all(&header).map_err(failed)?;
    let mut length = header.len() as u64;
    let mut piece = filled(&mut source, PIECE).map_err(failed)?;
    loop {
        let next = filled(&mut source, PIECE).map_err(failed)?;
        let last = next.is_empty();
        let sealed = pieces.seal(&piece, last).ok_or_else(unsealed)?;
        out.write_all(&sealed).map_err(failed)?;
        length += sealed.len() as u64;
        if last {
            break;
        }
        piece = next;
    }
    out.sync_all().map_err(failed)?;
    Ok(length)
}

/// Makes the data directory a backup holds.
pub(crate) async fn restore(
    from: &Path,
    passphrase: &str,
    data_dir: &Path,
) -> Result<Ended, Failure> {
    empty(data_dir)?;
    let mut source = File::open(from).map_err(|error| unread(from, &error))?;
    let header = filled(&mut source, BACKUP_HEADER).map_err(|error| unread(from, &error))?;
    if !Vault::is_backup(&header) {
        return Err(Failure::new(
            "backup_invalid",
            format!("{} is not a backup", from.display()),
            "name a file that `cambium backup` made",
        ));
    }
    let (keys, pieces) = Vault::open_backup(passphrase, &header).ok_or_else(|| {
        Failure::new(
            "backup_key_wrong",
            format!("{} does not open: another passphrase, or a damaged file", from.display()),
            "give the passphrase that was in force when the backup was made; nothing was changed",
        )
    })?;
    let fresh = Fresh::beside(data_dir)?;
    opened_into(&mut source, pieces, &fresh.0.join(DATABASE), from)?;
    let key = fresh.0.join(crate::data_dir::VAULT_KEY);
    keys.write(&key).map_err(|error| {
        Failure::new("data_dir_unwritable", error.to_string(), "free the disk and try again")
    })?;
    let ended = assemble::begin_epoch(&fresh.0).await?;
    fresh.into_place(data_dir)?;
    Ok(ended)
}

fn opened_into(
    source: &mut File,
    mut pieces: BackupPieces,
    to: &Path,
    from: &Path,
) -> Result<(), Failure> {
    let damaged = || {
        Failure::new(
            "backup_damaged",
            format!("{} was changed or cut off", from.display()),
            "use another backup; nothing was changed",
        )
    };
    let mut options = OpenOptions::new();
    let out = options.write(true).create_new(true).mode(0o600).open(to);
    let mut out = out.map_err(|error| unwritten(to, &error))?;
    let whole = PIECE + BACKUP_OVERHEAD;
    let mut piece = filled(source, whole).map_err(|error| unread(from, &error))?;
    loop {
        let next = filled(source, whole).map_err(|error| unread(from, &error))?;
        let last = next.is_empty();
        let plain = pieces.open(&piece, last).ok_or_else(damaged)?;
        out.write_all(&plain).map_err(|error| unwritten(to, &error))?;
        if last {
            break;
        }
        piece = next;
    }
    out.sync_all().map_err(|error| unwritten(to, &error))
}

/// A directory beside another, gone again unless it took its place.
struct Fresh(PathBuf);

impl Fresh {
    fn beside(data_dir: &Path) -> Result<Self, Failure> {
        let mut name = data_dir.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".restoring-{}", std::process::id()));
        let path = data_dir.with_file_name(name);
        if let Some(parent) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| unwritten(parent, &error))?;
        }
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| unwritten(&path, &error))?;
        Ok(Self(path))
    }

    fn into_place(self, data_dir: &Path) -> Result<(), Failure> {
        let moved = std::fs::rename(&self.0, data_dir).and_then(|()| {
            let parent = data_dir.parent().unwrap_or(Path::new("/"));
            File::open(parent)?.sync_all()
        });
        moved.map_err(|error| unwritten(data_dir, &error))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Refuses a directory with anything in it.
fn empty(data_dir: &Path) -> Result<(), Failure> {
    let mut found = match std::fs::read_dir(data_dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| unwritten(data_dir, &error))?,
    };
    if found.next().is_none() {
        return Ok(());
    }
    Err(Failure::new(
        "data_dir_not_empty",
        format!("{} is not empty; nothing was changed", data_dir.display()),
        "restore into a directory that is empty or not there: pass another --data-dir",
    ))
}

/// So many bytes, or what there is.
fn filled(source: &mut File, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    source.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let reason = format!("{} cannot be read: {error}", path.display());
    Failure::new("backup_unreadable", reason, "name a file this user can read")
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    let reason = format!("{} cannot be written: {error}", path.display());
    Failure::new("backup_unwritten", reason, "choose another place, or free the disk")
}
