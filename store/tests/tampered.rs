//! Somebody who can write the database file and has no key: each way to take
//! something back or put something in, done to the file, and the store that
//! refuses, both when it is opened after it and while it is open.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::port::{
    AgentStore, AskState, AskStore, CodeRow, ConnectionStore, PersonStore, SessionRow, ToolStore,
};
use cambium_proxy::{
    Answer, ApprovalSource, AuditSink, ConnectionSource, MacKey, PermitKey, StoreFault,
};
use cambium_store::Store;
use common::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::path::Path;

const TOKEN: [u8; 32] = [1; 32];
const SESSION: [u8; 32] = [21; 32];
const ENDED: [u8; 32] = [22; 32];
const CODE: [u8; 32] = [31; 32];
const USED: [u8; 32] = [32; 32];
const REVOKED: [u8; 32] = [2; 32];
/// What an attacker would know the other half of.
const MINE: &str = "X'4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d4d'";

fn once() -> PermitKey {
    PermitKey {
        agent: agent_id(1),
        version: hash(1),
        connection: connection_id(1),
        digest: hash(99),
    }
}

/// A person who decided this and that: a *once* that was used, a yes that was
/// withdrawn, a no, a rotated token, an ended session, a used code.
async fn lived_in(directory: &Directory) -> Store {
    let store = filled(directory).await;
    store.set_passphrase(&person(), "$argon2id$theirs", false, 1).await.unwrap();
    store.rotate_token(&agent_id(2), &[42; 32], 2).await.unwrap();
    let mut paused = agent(2);
    paused.paused = true;
    store.update_agent(&paused).await.unwrap();
    let scoped = [agent_id(1)];
    store.insert_connection(&connection(3), &scoped, 5).await.unwrap();
    store.revoke_connection(&connection_id(2), &[], 9).await.unwrap();
    for (hash, ended) in [(SESSION, false), (ENDED, true)] {
        let row = SessionRow { hash, person: person(), opened_ms: 1, expires_ms: 1_000 };
        store.insert_session(&row).await.unwrap();
        if ended {
            store.end_session(&hash, 5).await.unwrap();
        }
    }
    for (hash, used) in [(CODE, false), (USED, true)] {
        store.insert_code(&CodeRow { hash, person: person(), expires_ms: 1_000 }).await.unwrap();
        assert!(!used || store.redeem_code(&hash, 5).await.unwrap());
    }
    for name in ["a", "b", "c"] {
        published(&store, name, 1).await;
    }
    let mut second = publish("a", 2, 1);
    second.pointer.sequence = 2;
    store.publish(&second).await.unwrap();
    for (id, name, to, answer) in [
        ("1", "a", AskState::AllowedOnce, Answer::Once),
        ("2", "b", AskState::AllowedStanding, Answer::Standing),
        ("3", "c", AskState::Denied, Answer::Deny),
    ] {
        let ask = ask(id, name);
        store.insert_ask(&ask).await.unwrap();
        assert!(store.settle(&ask.id, to, Some(&decision(&ask, 1, answer)), 6).await.unwrap());
    }
    assert!(store.consume_once(&once()).await.unwrap().is_some());
    store.append_decision(&decision(&ask("2", "b"), 2, Answer::Withdrawn)).await.unwrap();
    store.insert_ask(&ask("4", "d")).await.unwrap();
    for sequence in 1..=3 {
        store.append(&[audit("n", sequence)], true).await.unwrap();
    }
    store
}

async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    options.connect().await.unwrap()
}

/// Runs the statement as somebody would who is in the way of no trigger: they
/// are taken off and put back word for word.
async fn edit(path: &Path, statement: &str) {
    let mut on = raw(path).await;
    let triggers = sqlx::query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'");
    let triggers = triggers.fetch_all(&mut on).await.unwrap();
    let mut script = String::from("BEGIN IMMEDIATE;\n");
    for row in &triggers {
        script.push_str(&format!("DROP TRIGGER {};\n", row.get::<String, _>("name")));
    }
    script.push_str(&format!("{statement};\n"));
    for row in &triggers {
        script.push_str(&format!("{};\n", row.get::<String, _>("sql")));
    }
    script.push_str("COMMIT;");
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut on).await.unwrap();
    on.close().await.unwrap();
}

/// Every edit that would give somebody something.
fn edits() -> Vec<(&'static str, String)> {
    let own = |text: &str| text.replace("MINE", MINE);
    vec![
        ("a use taken back", "DELETE FROM permit_uses".into()),
        ("a withdrawal taken back", "DELETE FROM decisions WHERE answer = 'withdrawn'".into()),
        ("a no taken back", "DELETE FROM decisions WHERE answer = 'deny'".into()),
        (
            "a no made a yes",
            "UPDATE decisions SET answer = 'standing' WHERE answer = 'deny'".into(),
        ),
        ("a passphrase removed", "UPDATE persons SET passphrase = NULL".into()),
        ("a passphrase of mine", "UPDATE persons SET passphrase = '$argon2id$mine'".into()),
        ("no person at all", "DELETE FROM persons".into()),
        (
            "another person",
            "INSERT INTO persons SELECT 'person-0', passphrase, 0 FROM persons".into(),
        ),
        ("a used code unused", "UPDATE codes SET used_ms = NULL".into()),
        ("a code that never ends", "UPDATE codes SET expires_ms = 9999999999999".into()),
        ("a code of mine", own("INSERT INTO codes VALUES (MINE, 'person-1', 1000, NULL)")),
        ("an ended session reopened", "UPDATE sessions SET ended_ms = NULL".into()),
        ("a session that never ends", "UPDATE sessions SET expires_ms = 9999999999999".into()),
        ("a session of mine", own("INSERT INTO sessions VALUES (MINE, 'person-1', 1, 1000, NULL)")),
        ("a revoked token revived", "UPDATE agent_tokens SET revoked_ms = NULL".into()),
        (
            "a token of mine",
            own("INSERT INTO agent_tokens VALUES (MINE, 'person-1', 'agent-1', NULL)"),
        ),
        (
            "a token moved to another agent",
            "UPDATE agent_tokens SET agent_id = 'agent-2' WHERE agent_id = 'agent-1'".into(),
        ),
        ("a pause lifted", "UPDATE agents SET paused = 0".into()),
        ("a connection revived", "UPDATE connections SET status = 'connected'".into()),
        (
            "another host",
            "UPDATE connections SET hosts = replace(hosts, 'shop.test', 'evil.test')".into(),
        ),
        ("a private range opened", "UPDATE connections SET exceptions = '[]'".into()),
        ("an authority of mine", "UPDATE connections SET ca_pem = 'mine'".into()),
        ("a scope widened", "DELETE FROM connection_scopes".into()),
        ("a scope that changes hands", "UPDATE connection_scopes SET agent_id = 'agent-2'".into()),
        (
            "a scope of mine",
            "INSERT INTO connection_scopes VALUES ('connection-3', 'agent-2', 'person-1')".into(),
        ),
        (
            "an ask about another tool",
            "UPDATE asks SET tool = 'shop__b' WHERE state = 'open'".into(),
        ),
        ("an ask of less weight", "UPDATE asks SET effect = 'destroy' WHERE state = 'open'".into()),
        (
            "a settled ask open again",
            "UPDATE asks SET state = 'open', settled_ms = NULL WHERE state = 'denied'".into(),
        ),
        ("an older version current", "DELETE FROM pointers WHERE sequence = 2".into()),
        (
            "the ledger's end cut with the row",
            "DELETE FROM permit_uses; DELETE FROM ledger WHERE sequence >= (
                SELECT MIN(sequence) FROM ledger WHERE table_name = 'permit_uses')"
                .into(),
        ),
        (
            "a ledger entry taken out",
            "DELETE FROM permit_uses; DELETE FROM ledger WHERE table_name = 'permit_uses'".into(),
        ),
        (
            "a ledger entry edited",
            "UPDATE ledger SET digest = zeroblob(32) WHERE table_name = 'persons'".into(),
        ),
        ("the ledger emptied", "DELETE FROM ledger".into()),
        ("the audit's end cut", "DELETE FROM audit WHERE sequence = 3".into()),
        ("the audit emptied", "DELETE FROM audit".into()),
    ]
}

#[tokio::test]
async fn m05_decision29_an_edit_of_the_file_is_found_when_it_is_opened() {
    for (what, statement) in edits() {
        let directory = Directory::new();
        lived_in(&directory).await.close().await;
        edit(&directory.database(), &statement).await;
        let error = Store::open(directory.database(), key()).await.expect_err(what);
        assert_eq!(error.code(), "database_tampered", "{what}: {error}");
    }
    // And what nobody touched opens.
    let directory = Directory::new();
    lived_in(&directory).await.close().await;
    edit(&directory.database(), "SELECT 1").await;
    Store::open(directory.database(), key()).await.unwrap();
}

#[tokio::test]
async fn m05_an_older_file_in_its_place_is_found() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    store.close().await;
    let older = std::fs::read(directory.database()).unwrap();
    let store = Store::open(directory.database(), key()).await.unwrap();
    store.set_passphrase(&person(), "$argon2id$theirs", false, 1).await.unwrap();
    store.close().await;
    std::fs::write(directory.database(), older).unwrap();
    let error = Store::open(directory.database(), key()).await.unwrap_err();
    assert_eq!(error.code(), "database_tampered", "{error}");
    // Nor is it believed without its head.
    std::fs::remove_file(directory.database().with_extension("head")).unwrap();
    let error = Store::open(directory.database(), key()).await.unwrap_err();
    assert_eq!(error.code(), "database_tampered", "{error}");
}

#[tokio::test]
async fn decision29_another_key_says_so_and_changes_nothing() {
    let directory = Directory::new();
    lived_in(&directory).await.close().await;
    let before = std::fs::read(directory.database()).unwrap();
    let error = Store::open(directory.database(), MacKey::new([6; 32])).await.unwrap_err();
    assert_eq!(error.code(), "vault_key_wrong", "{error}");
    assert_eq!(std::fs::read(directory.database()).unwrap(), before);
    Store::open(directory.database(), key()).await.unwrap();
}

#[tokio::test]
async fn m05_a_trigger_or_view_of_somebody_else_is_found() {
    for statement in [
        "CREATE TRIGGER mine AFTER INSERT ON permit_uses BEGIN DELETE FROM permit_uses; END",
        "DROP TRIGGER permit_uses_no_delete",
        "DROP INDEX decisions_answer",
        "CREATE TABLE mine (x)",
    ] {
        let directory = Directory::new();
        lived_in(&directory).await.close().await;
        let mut on = raw(&directory.database()).await;
        sqlx::query(statement).execute(&mut on).await.unwrap();
        on.close().await.unwrap();
        let error = Store::open(directory.database(), key()).await.expect_err(statement);
        assert_eq!(error.code(), "database_tampered", "{statement}: {error}");
        // While it is open, nothing that decides is written any more.
        let directory = Directory::new();
        let store = lived_in(&directory).await;
        let mut on = raw(&directory.database()).await;
        sqlx::query(statement).execute(&mut on).await.unwrap();
        let refused = store.end_session(&SESSION, 7).await.unwrap_err();
        assert!(matches!(refused, StoreFault::Corrupt(_)), "{statement}: {refused}");
    }
}

/// What the store says to each use after an edit while it is open: an error, or
/// what it would have said without the edit.
#[tokio::test]
async fn m05_decision29_an_edit_while_the_store_is_open_gains_nothing() {
    for (what, statement) in edits() {
        let directory = Directory::new();
        let store = lived_in(&directory).await;
        // Without its triggers in the way, but with the schema as it was counted.
        edit_live(&directory.database(), &statement).await;
        let held = |text: &str| panic!("{what}: {text}");
        if matches!(store.consume_once(&once()).await, Ok(Some(_))) {
            held("a once was used twice");
        }
        for (name, version) in [("a", 1), ("b", 1), ("c", 1), ("z", 1)] {
            let (agent, tool, version) = (agent_id(1), tool(name).to_string(), hash(version));
            match store.standing(&agent, &tool, &version).await {
                Err(_) => {}
                Ok(Some(row)) if row.answer == Answer::Deny => {}
                Ok(row) => {
                    let withdrawn = row.is_none_or(|row| row.answer == Answer::Withdrawn);
                    // The no is about the content, whatever its name.
                    assert!(withdrawn && name != "c" && name != "z", "{what}: {name}");
                }
            }
        }
        match store.person().await {
            Ok(Some(row)) if row.passphrase.as_deref() == Some("$argon2id$theirs") => {}
            Ok(_) => held("another passphrase counts"),
            Err(_) => {}
        }
        let mine = [0x4d; 32];
        for code in [USED, mine] {
            assert!(!store.redeem_code(&code, 7).await.unwrap_or(false), "{what}: a code");
        }
        assert!(!store.redeem_code(&CODE, 2_000).await.unwrap_or(false), "{what}: a late code");
        for session in [ENDED, mine] {
            let open = store.session(&session, 7).await;
            assert!(open.is_err() || open.unwrap().is_none(), "{what}: a session");
        }
        let late = store.session(&SESSION, 2_000).await;
        assert!(late.is_err() || late.unwrap().is_none(), "{what}: a late session");
        for token in [REVOKED, mine] {
            let of = store.agent_of_token(&token).await;
            assert!(of.is_err() || of.unwrap().is_none(), "{what}: a token");
        }
        if let Ok(Some(found)) = store.agent_of_token(&TOKEN).await {
            assert_eq!(found.id, agent_id(1), "{what}");
        }
        if let Ok(Some(found)) = store.agent(&agent_id(2)).await {
            assert!(found.paused, "{what}");
        }
        for n in [1, 2, 3] {
            let mut expected = connection(n);
            if n == 2 {
                expected.status = cambium_proxy::ConnectionStatus::Revoked;
            }
            if let Ok(found) = ConnectionSource::connection(&store, &connection_id(n)).await {
                assert_eq!(found, Some(expected), "{what}");
            }
        }
        if let Ok(scope) = store.scope(&connection_id(3)).await {
            assert_eq!(scope, [agent_id(1)], "{what}");
        }
        if let Ok(found) = store.ask(&ask("4", "d").id).await {
            assert_eq!(found, Some(ask("4", "d")), "{what}");
        }
        let again = store.settle(&ask("3", "c").id, AskState::AllowedOnce, None, 9).await;
        assert!(!again.unwrap_or(false), "{what}: a settled ask was settled again");
        if let Ok(found) = store.pointer(&person(), &tool("a")).await {
            assert_eq!(found.unwrap().sequence, 2, "{what}");
        }
    }
}

/// As [`edit`], by a writer who also knows to leave SQLite's count of schema
/// changes as it was.
async fn edit_live(path: &Path, statement: &str) {
    let mut on = raw(path).await;
    let before: i64 = sqlx::query_scalar("PRAGMA schema_version").fetch_one(&mut on).await.unwrap();
    on.close().await.unwrap();
    edit(path, statement).await;
    let mut on = raw(path).await;
    let back = format!("PRAGMA schema_version = {before}");
    sqlx::query(AssertSqlSafe(back)).execute(&mut on).await.unwrap();
    on.close().await.unwrap();
}
