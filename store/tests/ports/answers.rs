//! Asks, their answers, and what a revoke takes of both.

use super::{again, common::*, conflict};
use cambium_engine::MoveCause;
use cambium_engine::port::{AskState, AskStore, ConnectionStore, Revoked, SetStore, ToolStore};
use cambium_proxy::{Answer, ApprovalSource, ConnectionSource, ConnectionStatus, PermitKey};

#[tokio::test]
async fn asks_are_opened_and_settled_once() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let first = ask("ask-1", "a");
    store.insert_ask(&first).await.unwrap();
    conflict(store.insert_ask(&ask("ask-2", "a")).await);
    let mut other = ask("ask-3", "b");
    other.expires_ms = 500;
    store.insert_ask(&other).await.unwrap();

    let store = again(store, &directory).await;
    assert_eq!(store.ask(&first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.open_ask(&agent_id(1), &tool("a")).await.unwrap(), Some(first.clone()));
    assert_eq!(store.open_ask(&agent_id(2), &tool("a")).await.unwrap(), None);
    assert_eq!(store.count_open(&agent_id(1), 499).await.unwrap(), 2);
    assert_eq!(store.count_open(&agent_id(1), 500).await.unwrap(), 1);
    assert_eq!(store.expire_asks(499).await.unwrap(), []);
    assert_eq!(store.expire_asks(500).await.unwrap(), [other.id.clone()]);
    assert_eq!(store.expire_asks(500).await.unwrap(), []);

    // A decision whose sequence is taken leaves the ask open.
    let yes = decision(&first, 1, Answer::Standing);
    assert!(store.settle(&first.id, AskState::AllowedStanding, Some(&yes), 600).await.unwrap());
    assert!(
        !store
            .settle(&first.id, AskState::Denied, Some(&decision(&first, 2, Answer::Deny)), 601)
            .await
            .unwrap()
    );
    assert_eq!(store.newest_decision(&agent_id(1), &tool("a")).await.unwrap(), Some(yes.clone()));
    let second = ask("ask-4", "a");
    store.insert_ask(&second).await.unwrap();
    conflict(
        store
            .settle(&second.id, AskState::Denied, Some(&decision(&second, 1, Answer::Deny)), 602)
            .await,
    );
    assert_eq!(store.ask(&second.id).await.unwrap().unwrap().state, AskState::Open);
    assert!(store.settle(&second.id, AskState::Superseded, None, 603).await.unwrap());
    assert!(
        !store.settle(&cambium_proxy::AskId::new("none"), AskState::Denied, None, 1).await.unwrap()
    );

    let third = ask("ask-5", "a");
    store.insert_ask(&third).await.unwrap();
    let states: Vec<_> = store
        .asks(&person(), 10)
        .await
        .unwrap()
        .into_iter()
        .map(|ask| (ask.id.to_string(), ask.state, ask.settled_ms))
        .collect();
    assert_eq!(
        states,
        [
            ("ask-5".to_owned(), AskState::Open, None),
            ("ask-4".to_owned(), AskState::Superseded, Some(603)),
            ("ask-1".to_owned(), AskState::AllowedStanding, Some(600)),
            ("ask-3".to_owned(), AskState::Expired, Some(500)),
        ]
    );
    assert_eq!(store.asks(&person(), 2).await.unwrap().len(), 2);
    assert_eq!(store.asks(&person(), 0).await.unwrap(), []);
    assert_eq!(store.decision(&first.id).await.unwrap(), Some(yes));
    assert_eq!(store.decision(&third.id).await.unwrap(), None);
}

#[tokio::test]
async fn what_stands_and_what_a_permit_is_worth() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let standing = |name: &'static str, version: u32| {
        let store = store.clone();
        async move {
            let tool = tool(name).to_string();
            store.standing(&agent_id(1), &tool, &hash(version)).await.unwrap()
        }
    };
    let settle = |id: &'static str, name: &'static str, sequence, answer| {
        let store = store.clone();
        async move {
            let ask = ask(id, name);
            store.insert_ask(&ask).await.unwrap();
            let row = decision(&ask, sequence, answer);
            assert!(store.settle(&ask.id, AskState::Denied, Some(&row), 1).await.unwrap());
            row
        }
    };
    assert_eq!(standing("a", 1).await, None);
    let once = settle("1", "a", 1, Answer::Once).await;
    assert_eq!(standing("a", 1).await, None, "once does not stand");
    assert_eq!(store.standing_decision(&agent_id(1), &tool("a")).await.unwrap(), None);
    let key = PermitKey {
        agent: agent_id(1),
        version: hash(1),
        connection: connection_id(1),
        digest: hash(99),
    };
    for other in [
        PermitKey { agent: agent_id(2), ..key.clone() },
        PermitKey { version: hash(2), ..key.clone() },
        PermitKey { connection: connection_id(2), ..key.clone() },
        PermitKey { digest: hash(98), ..key.clone() },
    ] {
        assert_eq!(store.consume_once(&other).await.unwrap(), None, "{other:?}");
    }
    assert_eq!(store.consume_once(&key).await.unwrap(), Some(once));
    assert_eq!(store.consume_once(&key).await.unwrap(), None, "consumed");

    // Two permits for the same bytes are two requests, the older first.
    let older = settle("2", "a", 2, Answer::Once).await;
    let newer = settle("3", "a", 3, Answer::Once).await;
    assert_eq!(store.consume_once(&key).await.unwrap(), Some(older));
    assert_eq!(store.consume_once(&key).await.unwrap(), Some(newer));
    assert_eq!(store.consume_once(&key).await.unwrap(), None);

    // A later deny or withdrawal takes an unused permit back.
    settle("4", "a", 4, Answer::Once).await;
    let no = settle("5", "a", 5, Answer::Deny).await;
    assert_eq!(store.consume_once(&key).await.unwrap(), None);
    assert_eq!(standing("a", 7).await, Some(no.clone()), "a deny is about the tool");
    // The same content under another name; not other content.
    assert_eq!(standing("copy", 1).await, Some(no.clone()));
    assert_eq!(standing("copy", 2).await, None);
    assert_eq!(store.standing(&agent_id(2), "shop__copy", &hash(1)).await.unwrap(), None);

    let mut taken_back = decision(&ask("5", "a"), 6, Answer::Withdrawn);
    store.append_decision(&taken_back).await.unwrap();
    conflict(store.append_decision(&taken_back).await);
    assert_eq!(standing("a", 1).await, Some(taken_back.clone()));
    assert_eq!(standing("copy", 1).await, None, "the deny no longer stands");
    assert_eq!(store.decision(&no.ask).await.unwrap(), Some(no), "the answer stays the answer");

    let yes = settle("6", "a", 7, Answer::Standing).await;
    settle("7", "a", 8, Answer::Once).await;
    assert_eq!(standing("a", 1).await, Some(yes.clone()));
    let both = (
        store.standing_decision(&agent_id(1), &tool("a")).await.unwrap(),
        store.newest_decision(&agent_id(1), &tool("a")).await.unwrap().map(|row| row.sequence),
    );
    assert_eq!(both, (Some(yes.clone()), Some(8)));
    assert_eq!(store.decisions_on(&connection_id(1)).await.unwrap(), [yes]);
    assert_eq!(store.decisions_on(&connection_id(2)).await.unwrap(), []);
    taken_back.sequence = 3;
    conflict(store.append_decision(&taken_back).await);
}

#[tokio::test]
async fn a_revoke_takes_its_tools_and_answers_and_nothing_else() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    published(&store, "a", 1).await;
    published(&store, "moved", 1).await;
    published(&store, "b", 2).await;
    // The current version of `moved` runs on connection 2.
    store.publish(&publish("moved", 2, 2)).await.unwrap();
    for name in ["a", "b"] {
        store.promote(&agent_id(2), &tool(name), MoveCause::Agent, 1).await.unwrap();
    }
    published(&store, "demoted", 1).await;
    store.demote(&agent_id(1), &[(tool("demoted"), MoveCause::Agent)], 2).await.unwrap();
    let ask = ask("1", "a");
    store.insert_ask(&ask).await.unwrap();
    let yes = decision(&ask, 1, Answer::Standing);
    assert!(store.settle(&ask.id, AskState::AllowedStanding, Some(&yes), 1).await.unwrap());

    // A withdrawal whose sequence is taken: nothing of it happened.
    let stale = decision(&ask, 1, Answer::Withdrawn);
    conflict(store.revoke_connection(&connection_id(1), &[stale], 9).await);
    assert_eq!(store.connection(&connection_id(1)).await.unwrap(), Some(connection(1)));
    assert_eq!(store.set(&agent_id(2)).await.unwrap().len(), 2);
    conflict(store.revoke_connection(&connection_id(9), &[], 9).await);

    let withdrawal = decision(&ask, 2, Answer::Withdrawn);
    let rows = [withdrawal.clone()];
    let revoked = store.revoke_connection(&connection_id(1), &rows, 9).await.unwrap();
    let left = vec![(agent_id(1), tool("a")), (agent_id(2), tool("a"))];
    assert_eq!(revoked, Revoked { changed: true, left });
    let revoked = store.revoke_connection(&connection_id(1), &rows, 10).await.unwrap();
    assert_eq!(revoked, Revoked::default());

    let store = again(store, &directory).await;
    let status = store.connection(&connection_id(1)).await.unwrap().unwrap().status;
    assert_eq!(status, ConnectionStatus::Revoked);
    let names = |set: Vec<cambium_engine::port::SetRow>| -> Vec<String> {
        set.into_iter().map(|row| row.tool.name().to_owned()).collect()
    };
    assert_eq!(names(store.set(&agent_id(1)).await.unwrap()), ["b", "moved"]);
    assert_eq!(names(store.set(&agent_id(2)).await.unwrap()), ["b"]);
    let newest = &store.history(&agent_id(2), 1).await.unwrap()[0];
    assert_eq!((newest.promoted, newest.cause, newest.at_ms), (false, MoveCause::Revoke, 9));
    assert_eq!(store.newest_decision(&agent_id(1), &tool("a")).await.unwrap(), Some(withdrawal));
    assert!(store.version(&person(), &tool("a"), 1).await.unwrap().is_some());
    // Nothing takes a revoke back.
    conflict(store.mark_connected(&connection_id(1), 1).await);
    let status = store.connection(&connection_id(1)).await.unwrap().unwrap().status;
    assert_eq!(status, ConnectionStatus::Revoked);
}
