//! Every method of every port, on a real file, closed and opened again in
//! between where what matters is that it stays.
#![allow(clippy::unwrap_used)]

mod answers;
#[path = "../common/mod.rs"]
mod common;

use cambium_engine::MoveCause;
use cambium_engine::port::{
    AgentStore, CodeRow, ConnectionStore, DocumentRow, DocumentStore, Moved, PersonRow,
    PersonStore, PublishRow, RunEnd, RunStore, SessionRow, SetStore, StoredResult, ToolStore,
};
use cambium_proxy::{
    AuditSink, ConnectionSource, ContentHash, RunId, SealedSecret, SecretStore, StoreFault,
};
use cambium_store::Store;
use common::*;

fn conflict<T: std::fmt::Debug>(result: Result<T, StoreFault>) {
    assert!(matches!(result, Err(StoreFault::Conflict(_))), "{result:?}");
}

async fn again(store: Store, directory: &Directory) -> Store {
    store.close().await;
    Store::open(directory.database(), key()).await.unwrap()
}

#[tokio::test]
async fn people() {
    let directory = Directory::new();
    let store = Store::open(directory.database(), key()).await.unwrap();
    assert!(store.person().await.unwrap().is_none());
    conflict(store.set_passphrase(&person(), "x", false, 1).await);
    let row = PersonRow { id: person(), passphrase: None, created_ms: 1 };
    store.insert_person(&row).await.unwrap();
    conflict(store.insert_person(&row).await);
    let other = PersonRow { id: cambium_proxy::PersonId::new("other"), ..row };
    conflict(store.insert_person(&other).await);

    let session =
        |n: u8| SessionRow { hash: [n; 32], person: person(), opened_ms: 1, expires_ms: 50 };
    for n in [1, 2] {
        store.insert_session(&session(n)).await.unwrap();
    }
    conflict(store.insert_session(&session(1)).await);
    assert!(store.session(&[1; 32], 49).await.unwrap() == Some(session(1)));
    assert!(store.session(&[1; 32], 50).await.unwrap().is_none(), "expired");
    store.end_session(&[1; 32], 20).await.unwrap();
    store.end_session(&[1; 32], 21).await.unwrap();
    store.end_session(&[9; 32], 21).await.unwrap();
    assert!(store.session(&[1; 32], 20).await.unwrap().is_none());

    let store = again(store, &directory).await;
    assert!(store.session(&[2; 32], 20).await.unwrap().is_some());
    store.set_passphrase(&person(), "$argon2id$one", false, 22).await.unwrap();
    assert!(store.session(&[2; 32], 23).await.unwrap().is_some());
    store.set_passphrase(&person(), "$argon2id$two", true, 24).await.unwrap();
    assert!(store.session(&[2; 32], 25).await.unwrap().is_none());
    assert_eq!(store.person().await.unwrap().unwrap().passphrase.as_deref(), Some("$argon2id$two"));

    let code = CodeRow { hash: [4; 32], person: person(), expires_ms: 50 };
    store.insert_code(&code).await.unwrap();
    assert!(!store.redeem_code(&[5; 32], 20).await.unwrap());
    assert!(!store.redeem_code(&[4; 32], 50).await.unwrap(), "expired");
    assert!(store.redeem_code(&[4; 32], 49).await.unwrap());
    assert!(!store.redeem_code(&[4; 32], 49).await.unwrap(), "used");
    conflict(store.insert_code(&code).await);
}

#[tokio::test]
async fn agents_and_tokens() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    assert_eq!(store.agents(&person()).await.unwrap(), [agent(1), agent(2)]);
    assert_eq!(store.agent(&agent_id(9)).await.unwrap(), None);
    let mut third = agent(3);
    third.name = "agent 1".into();
    conflict(store.insert_agent(&third, &[3; 32]).await);
    assert_eq!(store.agent(&agent_id(3)).await.unwrap(), None);
    third.name = "three".into();
    conflict(store.insert_agent(&third, &[1; 32]).await);
    assert_eq!(store.agent(&agent_id(3)).await.unwrap(), None, "no agent without its token");

    let mut changed = agent(2);
    (changed.name, changed.cap, changed.idle_days, changed.paused) = ("two".into(), 500, 1, true);
    store.update_agent(&changed).await.unwrap();
    assert_eq!(store.agent(&agent_id(2)).await.unwrap(), Some(changed.clone()));
    changed.name = "agent 1".into();
    conflict(store.update_agent(&changed).await);
    conflict(store.update_agent(&agent(9)).await);

    let store = again(store, &directory).await;
    assert_eq!(store.agent_of_token(&[1; 32]).await.unwrap(), Some(agent(1)));
    assert_eq!(store.agent_of_token(&[7; 32]).await.unwrap(), None);
    store.rotate_token(&agent_id(1), &[7; 32], 10).await.unwrap();
    assert_eq!(store.agent_of_token(&[1; 32]).await.unwrap(), None);
    assert_eq!(store.agent_of_token(&[7; 32]).await.unwrap(), Some(agent(1)));
    conflict(store.rotate_token(&agent_id(1), &[1; 32], 11).await);
    assert_eq!(store.agent_of_token(&[7; 32]).await.unwrap(), Some(agent(1)), "nothing changed");
    conflict(store.rotate_token(&agent_id(9), &[8; 32], 11).await);
}

#[tokio::test]
async fn connections_and_secrets() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    conflict(store.insert_connection(&connection(1), &[], 1).await);
    let mut same_slug = connection(3);
    same_slug.slug = "shop-1".into();
    conflict(store.insert_connection(&same_slug, &[], 1).await);
    conflict(store.insert_connection(&connection(4), &[agent_id(1), agent_id(9)], 1).await);
    assert_eq!(store.connection(&connection_id(4)).await.unwrap(), None, "all or nothing");
    store.insert_connection(&connection(3), &[agent_id(2)], 1).await.unwrap();

    let store = again(store, &directory).await;
    assert_eq!(store.connection(&connection_id(1)).await.unwrap(), Some(connection(1)));
    for by in ["connection-2", "shop-2"] {
        assert_eq!(store.find_connection(&person(), by).await.unwrap(), Some(connection(2)));
    }
    assert_eq!(store.find_connection(&person(), "nope").await.unwrap(), None);
    let stranger = cambium_proxy::PersonId::new("stranger");
    assert_eq!(store.find_connection(&stranger, "shop-1").await.unwrap(), None);
    assert_eq!(store.connections(&person()).await.unwrap().len(), 3);
    assert_eq!(store.scope(&connection_id(1)).await.unwrap(), []);
    assert_eq!(store.scope(&connection_id(3)).await.unwrap(), [agent_id(2)]);
    conflict(store.mark_connected(&connection_id(9), 1).await);

    let sealed = |n: u8| SealedSecret {
        connection: connection_id(1),
        generation: u64::from(n),
        wrapped_key: vec![n; 72],
        sealed: vec![n; 64],
    };
    assert_eq!(store.secret(&connection_id(1)).await.unwrap(), None);
    for n in [1, 2] {
        store.put_secret(&sealed(n)).await.unwrap();
        assert_eq!(store.secret(&connection_id(1)).await.unwrap(), Some(sealed(n)));
    }
    conflict(store.put_secret(&SealedSecret { connection: connection_id(9), ..sealed(1) }).await);

    // d07: a swap holds for exactly what is stored, and only within a generation.
    let other = SealedSecret { sealed: vec![7; 64], ..sealed(2) };
    conflict(store.replace_secret(&sealed(1), &other).await);
    conflict(store.replace_secret(&other, &sealed(2)).await);
    conflict(
        store.replace_secret(&sealed(2), &SealedSecret { generation: 3, ..other.clone() }).await,
    );
    assert_eq!(store.secret(&connection_id(1)).await.unwrap(), Some(sealed(2)));
    store.replace_secret(&sealed(2), &other).await.unwrap();
    conflict(store.replace_secret(&sealed(2), &other).await);
    assert_eq!(store.secret(&connection_id(1)).await.unwrap(), Some(other));

    // A change and the secret sealed for it come together, or not at all.
    let mut changed = connection(1);
    changed.generation = 2;
    changed.exceptions.clear();
    changed.overrides.headers = vec!["sudo".into()];
    let elsewhere = SealedSecret { connection: connection_id(9), ..sealed(7) };
    conflict(store.change_connection(&changed, Some(&elsewhere)).await);
    assert_eq!(store.connection(&connection_id(1)).await.unwrap(), Some(connection(1)));
    store.change_connection(&changed, Some(&sealed(7))).await.unwrap();
    assert_eq!(store.connection(&connection_id(1)).await.unwrap(), Some(changed.clone()));
    assert_eq!(store.secret(&connection_id(1)).await.unwrap(), Some(sealed(7)));
    conflict(store.change_connection(&changed, None).await);
}

#[tokio::test]
async fn documents() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let pin = |sequence, byte: u8| DocumentRow {
        connection: connection_id(1),
        sequence,
        digest: ContentHash([byte; 32]),
        base_path: "/v1".into(),
        at_ms: 5,
    };
    assert_eq!(store.document(&connection_id(1)).await.unwrap(), None);
    conflict(store.pin_document(&pin(1, 1)).await);
    for byte in 1..4 {
        store.put_file(&person(), &ContentHash([byte; 32]), &[byte], 4).await.unwrap();
    }
    store.pin_document(&pin(1, 1)).await.unwrap();
    store.pin_document(&pin(2, 2)).await.unwrap();
    conflict(store.pin_document(&pin(2, 3)).await);
    conflict(store.pin_document(&DocumentRow { connection: connection_id(9), ..pin(1, 1) }).await);

    let store = again(store, &directory).await;
    assert_eq!(store.document(&connection_id(1)).await.unwrap(), Some(pin(2, 2)));
    assert_eq!(store.document(&connection_id(2)).await.unwrap(), None);
}

#[tokio::test]
async fn many_publishes_are_stored_all_or_none() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let both = [publish("a", 1, 1), publish("b", 1, 1)];
    assert_eq!(store.publish_all(&both).await.unwrap(), [true, true]);
    conflict(store.publish_all(&[publish("c", 1, 1), publish("b", 1, 1)]).await);
    let store = again(store, &directory).await;
    assert_eq!(store.pointers(&person()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_toolbox() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    assert_eq!(store.newest_number(&person(), &tool("a")).await.unwrap(), 0);
    assert_eq!(store.pointer(&person(), &tool("a")).await.unwrap(), None);
    assert!(store.publish(&publish("a", 1, 1)).await.unwrap());
    // A republish of a promoted tool is no second promotion.
    assert!(!store.publish(&publish("a", 2, 1)).await.unwrap());
    assert_eq!(store.history(&agent_id(1), 10).await.unwrap().len(), 1);
    // Back to the first version: only the pointer moves.
    let back = PublishRow { version: None, pointer: pointer("a", 3, 1), promote_for: None };
    assert!(!store.publish(&back).await.unwrap());
    assert!(store.publish(&publish("b", 1, 2)).await.unwrap());

    let store = again(store, &directory).await;
    assert_eq!(store.newest_number(&person(), &tool("a")).await.unwrap(), 2);
    assert_eq!(store.pointer(&person(), &tool("a")).await.unwrap(), Some(pointer("a", 3, 1)));
    assert_eq!(store.pointers(&person()).await.unwrap(), [pointer("a", 3, 1), pointer("b", 1, 1)]);
    for number in [1, 2] {
        let row = store.version(&person(), &tool("a"), number).await.unwrap().unwrap();
        assert_eq!(row, version("a", number, 1));
    }
    assert_eq!(store.version(&person(), &tool("a"), 3).await.unwrap(), None);

    // Refused whole: a taken number, a pointer that does not follow, a pointer
    // to no version, a connection or agent there is none of.
    let before = store.history(&agent_id(2), 10).await.unwrap().len();
    for broken in [
        PublishRow {
            pointer: pointer("a", 4, 2),
            promote_for: Some(agent_id(2)),
            ..publish("a", 2, 1)
        },
        PublishRow {
            pointer: pointer("a", 3, 3),
            promote_for: Some(agent_id(2)),
            ..publish("a", 3, 1)
        },
        PublishRow {
            pointer: pointer("a", 5, 3),
            promote_for: Some(agent_id(2)),
            ..publish("a", 3, 1)
        },
        PublishRow { version: None, pointer: pointer("a", 4, 9), promote_for: Some(agent_id(2)) },
        PublishRow { promote_for: None, ..publish("c", 1, 9) },
        PublishRow { promote_for: Some(agent_id(9)), ..publish("c", 1, 1) },
    ] {
        conflict(store.publish(&broken).await);
    }
    assert_eq!(store.newest_number(&person(), &tool("a")).await.unwrap(), 2);
    assert_eq!(store.newest_number(&person(), &tool("c")).await.unwrap(), 0);
    assert_eq!(store.pointer(&person(), &tool("a")).await.unwrap(), Some(pointer("a", 3, 1)));
    assert_eq!(store.history(&agent_id(2), 10).await.unwrap().len(), before);

    assert_eq!(store.holders(&person(), &tool("a")).await.unwrap(), [agent_id(1)]);
    store.promote(&agent_id(2), &tool("a"), MoveCause::Agent, 1).await.unwrap();
    assert_eq!(store.holders(&person(), &tool("a")).await.unwrap(), [agent_id(1), agent_id(2)]);
}

#[tokio::test]
async fn files_are_kept_once_by_what_is_in_them() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    store.put_file(&person(), &hash(1), b"first", 5).await.unwrap();
    store.put_file(&person(), &hash(1), b"second", 6).await.unwrap();
    let mut row = version("bundled", 1, 1);
    row.version.sdks = vec![cambium_proxy::Sdk {
        name: "@octokit/core".into(),
        version: "7.0.8".into(),
        integrity: "sha512-q83v".into(),
        digest: hash(1),
    }];
    row.version.component = Some(hash(2));
    let publish = PublishRow {
        version: Some(row.clone()),
        pointer: pointer("bundled", 1, 1),
        promote_for: None,
    };
    store.publish(&publish).await.unwrap();
    let store = again(store, &directory).await;
    assert_eq!(store.file(&person(), &hash(1)).await.unwrap().unwrap(), b"first");
    assert_eq!(store.file(&person(), &hash(2)).await.unwrap(), None);
    let stranger = cambium_proxy::PersonId::new("stranger");
    assert_eq!(store.file(&stranger, &hash(1)).await.unwrap(), None);
    assert_eq!(store.version(&person(), &tool("bundled"), 1).await.unwrap(), Some(row));
}

#[tokio::test]
async fn working_sets_and_history() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let id = agent_id(1);
    let moved = |changed, size| Moved { changed, size };
    for (name, size) in [("b", 1), ("a", 2)] {
        let did = store.promote(&id, &tool(name), MoveCause::Agent, 10).await.unwrap();
        assert_eq!(did, moved(1, size));
    }
    // Both are idempotent: no history, the clock not reset.
    let did = store.promote(&id, &tool("a"), MoveCause::Publish, 99).await.unwrap();
    assert_eq!(did, moved(0, 2));
    let did = store.demote(&id, &[(tool("zzz"), MoveCause::Agent)], 11).await.unwrap();
    assert_eq!(did, moved(0, 2));
    conflict(store.promote(&agent_id(9), &tool("a"), MoveCause::Agent, 1).await);
    // Wire order, which is not the order of the halves.
    let hyphen = cambium_engine::ToolName::new("shop-two", "a").unwrap();
    store.promote(&id, &hyphen, MoveCause::Person, 12).await.unwrap();

    let store = again(store, &directory).await;
    let set = store.set(&id).await.unwrap();
    let names: Vec<String> = set.iter().map(|row| row.tool.to_string()).collect();
    assert_eq!(names, ["shop-two__a", "shop__a", "shop__b"]);
    assert_eq!(
        (set[1].cause, set[1].promoted_ms, set[1].last_used_ms),
        (MoveCause::Agent, 10, None)
    );
    assert_eq!(store.set(&agent_id(2)).await.unwrap(), []);

    let out =
        [(tool("a"), MoveCause::Idle), (tool("b"), MoveCause::Cap), (tool("b"), MoveCause::Cap)];
    assert_eq!(store.demote(&id, &out, 20).await.unwrap(), moved(2, 1));
    store.promote(&id, &tool("a"), MoveCause::Agent, 30).await.unwrap();
    let history = store.history(&id, 10).await.unwrap();
    let said: Vec<_> =
        history.iter().map(|h| (h.tool.name(), h.promoted, h.cause, h.at_ms)).collect();
    assert_eq!(
        said,
        [
            ("a", true, MoveCause::Agent, 30),
            ("b", false, MoveCause::Cap, 20),
            ("a", false, MoveCause::Idle, 20),
            ("a", true, MoveCause::Person, 12),
            ("a", true, MoveCause::Agent, 10),
            ("b", true, MoveCause::Agent, 10),
        ]
    );
    assert_eq!(store.history(&id, 2).await.unwrap(), history[..2]);
    assert_eq!(store.history(&agent_id(2), 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_use_outlives_a_demotion_and_never_goes_back() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let id = agent_id(1);
    let end = |run: &str, used, ended_ms| RunEnd {
        id: RunId::new(run),
        outcome: "ok".into(),
        used,
        ended_ms,
        evidence: Some(format!("of {run}")),
    };
    for name in ["r1", "r2", "r3", "r4"] {
        store.begin_run(&run(name, "a")).await.unwrap();
    }
    conflict(store.begin_run(&run("r1", "a")).await);
    assert_eq!(store.lasting_runs(&id).await.unwrap(), 4);
    // A use of a tool that is not promoted promotes nothing.
    store.end_run(&end("r1", true, 50)).await.unwrap();
    assert_eq!(store.set(&id).await.unwrap(), []);
    store.promote(&id, &tool("a"), MoveCause::Agent, 60).await.unwrap();
    let last = || async { store.set(&id).await.unwrap()[0].last_used_ms };
    assert_eq!(last().await, Some(50));
    store.end_run(&end("r2", true, 40)).await.unwrap();
    assert_eq!(last().await, Some(50), "never back");
    store.end_run(&end("r3", false, 70)).await.unwrap();
    assert_eq!(last().await, Some(50), "refused before it ran");
    store.end_run(&end("r1", true, 80)).await.unwrap();
    assert_eq!(last().await, Some(50), "ended before");
    store.end_run(&end("none", true, 80)).await.unwrap();
    store.demote(&id, &[(tool("a"), MoveCause::Agent)], 81).await.unwrap();
    store.promote(&id, &tool("a"), MoveCause::Agent, 90).await.unwrap();
    assert_eq!(last().await, Some(50), "kept through the demotion");

    let again = Store::open(directory.database(), key()).await.unwrap();
    assert_eq!(again.lasting_runs(&id).await.unwrap(), 1);
    assert_eq!(again.end_lost("node-2", 100).await.unwrap(), 0);
    assert_eq!(again.end_lost("node-1", 100).await.unwrap(), 1);
    assert_eq!(again.lasting_runs(&id).await.unwrap(), 0);
    let mut lost = run("r4", "a");
    (lost.outcome, lost.ended_ms) = (Some("lost".into()), Some(100));
    assert_eq!(again.run(&RunId::new("r4")).await.unwrap(), Some(lost));
    assert_eq!(again.run(&RunId::new("none")).await.unwrap(), None);
    // A person reads what was seen of each end, newest first.
    let newest = again.newest_runs(&person(), 3).await.unwrap();
    let seen: Vec<_> =
        newest.iter().map(|row| (row.id.as_str(), row.evidence.as_deref())).collect();
    assert_eq!(seen, [("r4", None), ("r3", Some("of r3")), ("r2", Some("of r2"))]);

    let result = StoredResult {
        run: RunId::new("r1"),
        agent: agent_id(1),
        mime_type: "application/json".into(),
        text: "x".repeat(2_000_000),
        stored_ms: 1,
    };
    again.put_result(&result).await.unwrap();
    assert_eq!(again.result(&agent_id(1), &RunId::new("r1")).await.unwrap(), Some(result.clone()));
    assert_eq!(again.result(&agent_id(2), &RunId::new("r1")).await.unwrap(), None, "not its run");
    conflict(again.put_result(&StoredResult { agent: agent_id(2), ..result }).await);
}

#[tokio::test]
async fn b097_the_audit_is_a_chain_a_row_must_join() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    assert_eq!(store.last("n").await.unwrap(), None);
    store.append(&[], true).await.unwrap();
    store.append(&[audit("n", 1), audit("n", 2)], true).await.unwrap();
    store.append(&[audit("n", 3)], false).await.unwrap();
    store.append(&[audit("other", 1)], false).await.unwrap();
    // A repeat, a gap, a wrong link; and a batch is whole or nothing.
    conflict(store.append(&[audit("n", 3)], true).await);
    conflict(store.append(&[audit("n", 5)], false).await);
    let mut unlinked = audit("n", 4);
    unlinked.previous = vec![0; 32];
    conflict(store.append(&[unlinked], true).await);
    conflict(store.append(&[audit("n", 4), audit("n", 6)], true).await);

    let store = again(store, &directory).await;
    assert_eq!(store.last("n").await.unwrap(), Some(audit("n", 3)));
    assert_eq!(
        store.rows("n", 0, 10).await.unwrap(),
        [audit("n", 1), audit("n", 2), audit("n", 3)]
    );
    assert_eq!(store.rows("n", 1, 1).await.unwrap(), [audit("n", 2)]);
    assert_eq!(store.rows("n", 3, 10).await.unwrap(), []);
    assert_eq!(store.rows("n", u64::MAX >> 1, 10).await.unwrap(), []);
    store.append(&[audit("n", 4)], true).await.unwrap();
}

#[tokio::test]
async fn a_store_in_memory_answers_the_same_and_a_closed_one_refuses() {
    let store = Store::in_memory().await.unwrap();
    fill(&store).await;
    published(&store, "a", 1).await;
    let many: Vec<_> = (0..40)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                store.promote(&agent_id(2), &tool(&format!("t{n}")), MoveCause::Agent, n).await
            })
        })
        .collect();
    for one in many {
        assert_eq!(one.await.unwrap().unwrap().changed, 1);
    }
    assert_eq!(store.set(&agent_id(2)).await.unwrap().len(), 40);
    store.close().await;
    assert!(matches!(store.person().await, Err(StoreFault::Unavailable(_))));
    assert!(matches!(store.end_session(&[0; 32], 1).await, Err(StoreFault::Unavailable(_))));
}
