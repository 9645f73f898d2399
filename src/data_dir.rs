//! The data directory: mode 0700, owned by one process at a time through its
//! lock file. This file makes it, locks it and names what is inside; what the
//! files hold is the business of store, vault and control.

use crate::failure::Failure;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The kernel's limit for a Unix socket's path, less the closing zero.
const SOCKET_PATH_MAX: usize = 107;

/// Name of the SQLite database in it.
pub(crate) const DATABASE: &str = "cambium.db";
/// Name of the vault's key file in it.
pub(crate) const VAULT_KEY: &str = "vault.key";

/// A locked data directory. Dropping it gives the lock back.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if it is missing and takes its lock.
    pub(crate) fn lock(path: &Path) -> Result<Self, Failure> {
        if socket(path).as_os_str().len() > SOCKET_PATH_MAX {
            return Err(Failure::new(
                "data_dir_path_too_long",
                format!("{} is too long for a Unix socket inside it", path.display()),
                format!("choose a data directory whose control.sock fits {SOCKET_PATH_MAX} bytes"),
            ));
        }
        Self::make(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(|error| unwritable(path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(locked(path)),
            Err(TryLockError::Error(error)) => Err(unwritable(path, &error)),
        }
    }

    /// Makes the directory if it is missing; refuses one that others can enter.
    pub(crate) fn make(path: &Path) -> Result<(), Failure> {
        make(path)
    }

    /// Whether no server has kept anything in it yet.
    pub(crate) fn is_new(path: &Path) -> bool {
        !path.join(DATABASE).exists()
    }

    /// The SQLite database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// The vault's keys, mode 0600.
    pub(crate) fn vault_key(&self) -> PathBuf {
        self.path.join(VAULT_KEY)
    }

    /// Where the copy of the database for a backup is while it is sealed.
    pub(crate) fn copy(path: &Path) -> PathBuf {
        path.join("backup.copy")
    }

    /// The control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.path)
    }

    /// The socket of the door for sandboxes outside.
    pub(crate) fn door(&self) -> PathBuf {
        self.path.join("sandbox.sock")
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says to the next start that the vault is locked.
    pub(crate) fn write_lock(path: &Path) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        let opened =
            options.create(true).write(true).truncate(true).mode(0o600).open(lock_file(path));
        opened.and_then(|file| file.sync_all()).map_err(|error| unwritable(path, &error))
    }

    /// Takes that back.
    pub(crate) fn remove_lock(path: &Path) -> Result<(), Failure> {
        match std::fs::remove_file(lock_file(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritable(path, &error)),
            _ => Ok(()),
        }
    }

    /// Whether a person locked the vault.
    pub(crate) fn is_vault_locked(&self) -> bool {
        // What is there and cannot be looked at counts as well.
        lock_file(&self.path).symlink_metadata().is_ok()
    }

    /// Removes a first code that is of no more use.
    pub(crate) fn remove_code(path: &Path) {
        let _ = std::fs::remove_file(code_file(path));
    }

    /// Leaves the first one-time code where only this user can read it, whole at
    /// any moment.
    pub(crate) fn write_code(path: &Path, code: &str) -> Result<(), Failure> {
        let (file, line) = (code_file(path), format!("{code}\n"));
        if std::fs::read_to_string(&file).is_ok_and(|there| there == line) {
            return Ok(());
        }
        let new = file.with_extension("new");
        // Left from a crash.
        let _ = std::fs::remove_file(&new);
        let made = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new);
        made.and_then(|mut made| made.write_all(line.as_bytes()))
            .and_then(|()| std::fs::rename(&new, &file))
            .map_err(|error| unwritable(path, &error))
    }
}

/// The control socket of a data directory.
pub(crate) fn socket(path: &Path) -> PathBuf {
    path.join("control.sock")
}

/// Where the server leaves the first one-time code.
pub(crate) fn code_file(path: &Path) -> PathBuf {
    path.join("first-code")
}

/// There while the vault is locked.
fn lock_file(path: &Path) -> PathBuf {
    path.join("vault-locked")
}

/// There when bridges may start the server; its line names the configuration.
pub(crate) fn start_file(path: &Path) -> PathBuf {
    path.join("bridge-start")
}

/// Held by the bridge that is starting the server.
pub(crate) fn start_lock(path: &Path) -> PathBuf {
    path.join("bridge-start.lock")
}

/// What a server that a bridge started logs.
pub(crate) fn start_log(path: &Path) -> PathBuf {
    path.join("server.log")
}

fn make(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(Failure::new(
            "data_dir_unwritable",
            format!("{} is not a directory", path.display()),
            "pass a --data-dir that is a directory or does not exist yet",
        )),
        Ok(found) => private(path, &found),
        Err(error) if error.kind() == ErrorKind::NotFound => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| unwritable(path, &error)),
        Err(error) => Err(unwritable(path, &error)),
    }
}

/// Refuses a directory others can enter or own: the vault's key is inside.
fn private(path: &Path, found: &std::fs::Metadata) -> Result<(), Failure> {
    let (mode, uid) = (found.permissions().mode() & 0o777, rustix::process::getuid().as_raw());
    if mode & 0o077 == 0 && found.uid() == uid {
        return Ok(());
    }
    let path = path.display();
    Err(if found.uid() == uid {
        Failure::new(
            "data_dir_open_to_others",
            format!("{path} has mode {mode:03o}; others on this machine can enter it"),
            format!("chmod 700 {path}"),
        )
    } else {
        Failure::new(
            "data_dir_open_to_others",
            format!("{path} belongs to user {}, not to {uid}", found.uid()),
            "run the server as the user who owns the directory, or pass another --data-dir",
        )
    })
}

/// A directory that a running cambium holds.
pub(crate) fn locked(path: &Path) -> Failure {
    Failure::new(
        "data_dir_locked",
        format!("another cambium already owns {}", path.display()),
        "use the running server (`cambium status`), stop it, or pass another --data-dir",
    )
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "data_dir_unwritable",
        format!("the data directory {} cannot be written: {error}", path.display()),
        "make it writable for this user, or pass another --data-dir",
    )
}
