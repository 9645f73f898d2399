//! Why a store cannot be opened, with a stable code, the path at fault and the
//! next step; and the one mapping from the database's errors to the fault a
//! port answers. Neither ever carries a value of a row.

use crate::ledger::Broken;
use cambium_proxy::StoreFault;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its directory or file cannot be created, read or written.
    #[error("the database {} cannot be opened for writing: {reason}", path.display())]
    Unwritable {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is no database of ours, or is damaged.
    #[error("the database {} is damaged or not a database: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A database, but of another program.
    #[error("the database {} belongs to another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer release wrote it.
    #[error("the database {} has schema {found}, this release knows {known}", path.display())]
    SchemaNewer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest this release knows.
        known: i64,
    },
    /// A schema step was applied with other text than this release holds.
    #[error("schema step {step} of the database {} is not the one this release knows", path.display())]
    SchemaChanged {
        /// The file.
        path: PathBuf,
        /// The step.
        step: i64,
    },
    /// Somebody else than this server wrote it, or an older file was put back.
    #[error("the database {} is not as this server left it: {reason}", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// The vault's key is not the one it was written with.
    #[error("the vault's key is not the one the database {} was written with", path.display())]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds it, the disk is full, or the like.
    #[error("the database {} did not answer: {reason}", path.display())]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// What was said.
        reason: String,
    },
}

impl StoreError {
    /// Stable snake_case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unwritable { .. } => "data_directory_unwritable",
            Self::Corrupt { .. } => "database_corrupt",
            Self::Foreign { .. } => "database_foreign",
            Self::SchemaNewer { .. } => "schema_newer",
            Self::SchemaChanged { .. } => "schema_changed",
            Self::Tampered { .. } => "database_tampered",
            Self::WrongKey { .. } => "vault_key_wrong",
            Self::Unavailable { .. } => "database_unavailable",
        }
    }

    /// The next step for the operator.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Unwritable { .. } => "choose a data directory this user can write",
            Self::Corrupt { .. } => "restore a backup; keep the damaged file",
            Self::Foreign { .. } => "choose another data directory",
            Self::SchemaNewer { .. } => "run the release that wrote it, or a newer one",
            Self::SchemaChanged { .. } => "run the release that wrote it, or restore a backup",
            Self::Tampered { .. } => {
                "keep the data directory as it is to find out who wrote it, and restore a backup \
                 into a new one with `cambium restore`"
            }
            Self::WrongKey { .. } => {
                "put the vault.key back that belongs to this database, or restore a backup"
            }
            Self::Unavailable { .. } => "end the other process or free the disk, then start again",
        }
    }

    /// What a ledger that cannot be opened means.
    pub(crate) fn broken(path: &Path, broken: Broken) -> Self {
        let path = path.to_owned();
        match broken {
            Broken::WrongKey => Self::WrongKey { path },
            Broken::Tampered(reason) => Self::Tampered { path, reason },
            Broken::Unwritable(reason) => {
                Self::Unwritable { path: path.with_extension("head"), reason }
            }
            Broken::Store(fault) => Self::Unavailable { path, reason: fault.to_string() },
        }
    }

    /// What a failure while opening `path` means.
    pub(crate) fn opening(path: &Path, error: &sqlx::Error) -> Self {
        let path = path.to_owned();
        let reason = reason(error);
        match primary_code(error) {
            Some(SQLITE_CORRUPT | SQLITE_NOTADB) => Self::Corrupt { path, reason },
            Some(SQLITE_CANTOPEN | SQLITE_READONLY | SQLITE_PERM | SQLITE_AUTH) => {
                Self::Unwritable { path, reason }
            }
            _ if matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
                Self::Corrupt { path, reason }
            }
            _ => Self::Unavailable { path, reason },
        }
    }
}

// https://www.sqlite.org/rescode.html, the low byte of an extended code.
const SQLITE_PERM: i32 = 3;
const SQLITE_READONLY: i32 = 8;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_CONSTRAINT: i32 = 19;
const SQLITE_MISMATCH: i32 = 20;
const SQLITE_AUTH: i32 = 23;
const SQLITE_NOTADB: i32 = 26;

/// What a failed statement means to the caller of a port.
pub(crate) fn fault(error: sqlx::Error) -> StoreFault {
    let text = reason(&error);
    match (&error, primary_code(&error)) {
        (_, Some(SQLITE_CONSTRAINT)) => StoreFault::Conflict(text),
        (_, Some(SQLITE_CORRUPT | SQLITE_NOTADB | SQLITE_MISMATCH)) => StoreFault::Corrupt(text),
        (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_), _) => StoreFault::Corrupt(text),
        _ => StoreFault::Unavailable(text),
    }
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
        other => other.to_string(),
    }
}
