//! What can be wrong with a data directory or a database file, each a clear
//! error with its code, and what a new file looks like to others.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::port::{AgentStore, PersonStore};
use cambium_proxy::{AuditSink, StoreFault};
use cambium_store::{Store, StoreError};
use common::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

async fn refused(path: &Path, code: &str) -> StoreError {
    let error = Store::open(path, key()).await.expect_err("opened");
    assert_eq!(error.code(), code, "{error}");
    assert!(!error.next().is_empty());
    assert!(error.to_string().contains("cambium") || error.to_string().contains("proc"), "{error}");
    error
}

#[tokio::test]
async fn a_new_store_makes_its_directory_and_keeps_others_out() {
    let directory = Directory::new();
    let path = directory.path().join("deep/er/cambium.db");
    let store = Store::open(&path, key()).await.unwrap();
    fill(&store).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in ["cambium.db", "cambium.db-wal", "cambium.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    store.close().await;
    assert!(!path.with_file_name("cambium.db-wal").exists(), "closed cleanly");
    let store = Store::open(&path, key()).await.unwrap();
    assert_eq!(store.agents(&person()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_or_written() {
    let directory = Directory::new();
    let file = directory.path().join("cambium-file");
    std::fs::write(&file, "x").unwrap();
    refused(&file.join("below/cambium.db"), "data_directory_unwritable").await;
    refused(Path::new("/proc/cambium/cambium.db"), "data_directory_unwritable").await;
    refused(Path::new("/proc/cambium.db"), "data_directory_unwritable").await;
    // The database's own name is a directory.
    let taken = directory.path().join("cambium.db");
    std::fs::create_dir(&taken).unwrap();
    refused(&taken, "data_directory_unwritable").await;
}

#[tokio::test]
async fn a_file_that_is_no_database() {
    let directory = Directory::new();
    let path = directory.database();
    for bytes in ["not a database, but long enough to be read as one".repeat(40), "short".into()] {
        std::fs::write(&path, &bytes).unwrap();
        refused(&path, "database_corrupt").await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes, "left as it was");
    }
}

#[tokio::test]
async fn a_damaged_database() {
    let directory = Directory::new();
    let path = directory.database();
    let store = filled(&directory).await;
    for name in ["a", "b", "c"] {
        published(&store, name, 1).await;
    }
    store.close().await;
    let whole = std::fs::read(&path).unwrap();
    // Cut short, and with pages overwritten.
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&path, "database_corrupt").await;
    let mut torn = whole.clone();
    for byte in &mut torn[8_192..40_960] {
        *byte = 0xa5;
    }
    std::fs::write(&path, &torn).unwrap();
    refused(&path, "database_corrupt").await;
    std::fs::write(&path, &whole).unwrap();
    Store::open(&path, key()).await.unwrap();
}

#[tokio::test]
async fn a_newer_schema_and_a_changed_step() {
    let directory = Directory::new();
    let path = directory.database();
    filled(&directory).await.close().await;
    let mut on = raw(&path).await;
    sqlx::query("INSERT INTO schema_steps VALUES (99, 'x')").execute(&mut on).await.unwrap();
    let error = refused(&path, "schema_newer").await;
    assert!(matches!(error, StoreError::SchemaNewer { found: 99, .. }), "{error}");
    sqlx::query("DELETE FROM schema_steps WHERE step = 99").execute(&mut on).await.unwrap();
    Store::open(&path, key()).await.unwrap().close().await;
    sqlx::query("UPDATE schema_steps SET text = text || ' '").execute(&mut on).await.unwrap();
    refused(&path, "schema_changed").await;
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let directory = Directory::new();
    let path = directory.database();
    let mut on = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    sqlx::query("CREATE TABLE agents (x)").execute(&mut on).await.unwrap();
    on.close().await.unwrap();
    let error = Store::open(&path, key()).await.expect_err("opened");
    assert_eq!(error.code(), "database_foreign", "{error}");
    let mut on = raw(&path).await;
    let tables: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema").fetch_one(&mut on).await.unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn two_open_one_new_file_at_once() {
    let directory = Directory::new();
    let path = directory.database();
    let both: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { Store::open(path, key()).await })
        })
        .collect();
    for one in both {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn m02_a_lock_held_by_another_process_is_a_fault_in_time_and_reads_go_on() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let mut other = raw(&directory.database()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let fault = store.update_agent(&agent(1)).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "{fault:?}");
    let fault = store.append(&[audit("n", 1)], true).await;
    assert!(matches!(fault, Err(StoreFault::Unavailable(_))), "a row for the audit: {fault:?}");
    assert!(store.person().await.unwrap().is_some());
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    store.update_agent(&agent(1)).await.unwrap();
}

#[tokio::test]
async fn a_row_that_does_not_parse_is_corrupt_and_says_no_value() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let mut other = raw(&directory.database()).await;
    for (break_it, mend) in [
        ("UPDATE agents SET paused = 77", "UPDATE agents SET paused = 0"),
        ("UPDATE agents SET cap = -1", "UPDATE agents SET cap = 20"),
        ("UPDATE agents SET cap = 99999999999", "UPDATE agents SET cap = 20"),
    ] {
        sqlx::query(break_it).execute(&mut other).await.unwrap();
        let fault = store.agents(&person()).await;
        let Err(StoreFault::Corrupt(said)) = fault else { panic!("{fault:?}") };
        assert!(!said.contains("77") && !said.contains("9999"), "{said}");
        sqlx::query(mend).execute(&mut other).await.unwrap();
    }
    let hosts = "UPDATE connections SET hosts = '[{\"secret\":1}]'";
    sqlx::query(hosts).execute(&mut other).await.unwrap();
    let fault = cambium_proxy::ConnectionSource::connection(&store, &connection_id(1)).await;
    let Err(StoreFault::Corrupt(said)) = fault else { panic!("{fault:?}") };
    assert!(!said.contains("secret"), "{said}");
}
