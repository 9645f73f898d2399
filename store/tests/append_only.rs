//! What may never change cannot be changed, not even by a statement of ours:
//! asked of the database itself.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::MoveCause;
use cambium_engine::port::{AskState, AskStore, RunStore, SetStore, ToolStore};
use cambium_proxy::{Answer, ApprovalSource, AuditSink, PermitKey};
use common::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Row};

/// A file in which every table that must not change has a row.
async fn full(directory: &Directory) -> SqliteConnection {
    let store = filled(directory).await;
    published(&store, "a", 1).await;
    store.promote(&agent_id(2), &tool("a"), MoveCause::Agent, 1).await.unwrap();
    let ask_row = ask("1", "a");
    store.insert_ask(&ask_row).await.unwrap();
    let once = decision(&ask_row, 1, Answer::Once);
    assert!(store.settle(&ask_row.id, AskState::AllowedOnce, Some(&once), 1).await.unwrap());
    let key = PermitKey {
        agent: agent_id(1),
        version: hash(1),
        connection: connection_id(1),
        digest: hash(99),
    };
    assert!(store.consume_once(&key).await.unwrap().is_some());
    store.insert_ask(&ask("2", "b")).await.unwrap();
    store.begin_run(&run("r", "a")).await.unwrap();
    store.append(&[audit("n", 1)], true).await.unwrap();
    store.put_file(&person(), &hash(1), b"a file", 5).await.unwrap();
    store.close().await;
    let options = SqliteConnectOptions::new().filename(directory.database());
    // Without foreign keys, so that only the triggers can refuse.
    options.foreign_keys(false).connect().await.unwrap()
}

async fn refused(on: &mut SqliteConnection, statement: String) {
    let said = sqlx::query(AssertSqlSafe(statement.clone())).execute(on).await;
    let error = said.map(|done| done.rows_affected()).expect_err(&statement);
    let code = error.as_database_error().and_then(|e| e.code()).unwrap_or_default().into_owned();
    assert_eq!(code, "1811", "{statement}: {error}");
}

#[tokio::test]
async fn b051_append_only_tables_refuse_update_and_delete() {
    let directory = Directory::new();
    let mut on = full(&directory).await;
    for (table, column) in [
        ("versions", "source"),
        ("versions", "mac"),
        ("files", "bytes"),
        ("pointers", "number"),
        ("history", "cause"),
        ("decisions", "answer"),
        ("decisions", "sequence"),
        ("permit_uses", "person_id"),
        ("audit", "event"),
        ("audit", "sequence"),
    ] {
        refused(&mut on, format!("UPDATE {table} SET {column} = {column}")).await;
        refused(&mut on, format!("DELETE FROM {table}")).await;
        // A replace is a delete that no delete trigger sees unless it is asked to.
        let copy = format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table}");
        let said = sqlx::query(AssertSqlSafe(copy)).execute(&mut on).await;
        assert!(said.is_err(), "{table} was replaced");
    }
    assert!(
        sqlx::query("INSERT OR REPLACE INTO asks SELECT * FROM asks")
            .execute(&mut on)
            .await
            .is_err()
    );
    for table in ["asks", "runs", "members", "agents", "connections"] {
        refused(&mut on, format!("DELETE FROM {table}")).await;
    }
}

#[tokio::test]
async fn an_ask_changes_only_by_being_settled() {
    let directory = Directory::new();
    let mut on = full(&directory).await;
    let columns: Vec<String> = sqlx::query("SELECT name, type FROM pragma_table_info('asks')")
        .fetch_all(&mut on)
        .await
        .unwrap()
        .iter()
        .map(|row| {
            let (name, kind): (String, String) = (row.get("name"), row.get("type"));
            let other = if kind == "INTEGER" { "12345" } else { "CAST('other' AS BLOB)" };
            let other = if kind == "TEXT" { "'other'" } else { other };
            format!("{name} = {other}")
        })
        .collect();
    for change in columns.iter().filter(|c| !c.starts_with("state") && !c.starts_with("settled")) {
        // With a settlement, so that only the change itself can be the reason.
        let settle = "state = 'denied', settled_ms = 5";
        refused(&mut on, format!("UPDATE asks SET {settle}, {change} WHERE ask_id = '2'")).await;
    }
    for change in ["settled_ms = 5", "state = 'denied'", "state = 'open', settled_ms = 5"] {
        refused(&mut on, format!("UPDATE asks SET {change} WHERE ask_id = '2'")).await;
    }
    refused(&mut on, "UPDATE asks SET state = 'denied' WHERE ask_id = '1'".into()).await;
    refused(&mut on, "UPDATE asks SET state = 'open', settled_ms = NULL WHERE ask_id = '1'".into())
        .await;
}

#[tokio::test]
async fn decision38_every_table_says_whose_row_it_is_and_strictly_what() {
    let directory = Directory::new();
    let mut on = full(&directory).await;
    let tables: Vec<(String, String)> = sqlx::query(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
    )
    .fetch_all(&mut on)
    .await
    .unwrap()
    .iter()
    .map(|row| (row.get("name"), row.get("sql")))
    .collect();
    assert!(tables.len() > 15);
    for (name, sql) in tables {
        assert!(sql.contains("STRICT"), "{name} takes anything");
        assert!(
            ["schema_steps", "ledger", "audit_segments"].contains(&&*name)
                || sql.contains("person_id"),
            "{name} has no person_id"
        );
    }
}
