//! Two stores on one file, as two processes would have it: what may happen once
//! happens once, and the one that loses is told and changes nothing.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::MoveCause;
use cambium_engine::port::{
    AskState, AskStore, CodeRow, PersonStore, PublishRow, SetStore, ToolStore,
};
use cambium_proxy::{
    Answer, ApprovalSource, AuditSink, PermitKey, SealedSecret, SecretStore, StoreFault,
};
use cambium_store::Store;
use common::*;
use std::future::Future;

/// Runs `act` on both stores at the same time, `times` each.
async fn race<T, F, Fut>(stores: [&Store; 2], times: u32, act: F) -> Vec<T>
where
    T: Send + 'static,
    F: Fn(Store, u32) -> Fut,
    Fut: Future<Output = T> + Send + 'static,
{
    let running: Vec<_> =
        (0..times * 2).map(|n| tokio::spawn(act(stores[n as usize % 2].clone(), n))).collect();
    let mut done = Vec::new();
    for one in running {
        done.push(one.await.unwrap());
    }
    done
}

async fn two(directory: &Directory) -> (Store, Store) {
    let one = filled(directory).await;
    (one, Store::open(directory.database(), key()).await.unwrap())
}

fn count<T>(results: &[T], holds: impl Fn(&T) -> bool) -> usize {
    results.iter().filter(|result| holds(result)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b062_an_ask_is_settled_once() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    for round in 0..8u32 {
        let ask = ask(&format!("ask-{round}"), "a");
        one.insert_ask(&ask).await.unwrap();
        let sequence = u64::from(round) + 1;
        let results = race([&one, &other], 4, |store, n| {
            let ask = ask.clone();
            async move {
                let (to, answer) = if n % 3 == 0 {
                    (AskState::Denied, Answer::Deny)
                } else {
                    (AskState::AllowedStanding, Answer::Standing)
                };
                let row = decision(&ask, sequence, answer);
                (store.settle(&ask.id, to, Some(&row), 1).await.unwrap(), to, row)
            }
        })
        .await;
        assert_eq!(count(&results, |(won, _, _)| *won), 1);
        let (_, to, row) = results.into_iter().find(|(won, _, _)| *won).unwrap();
        assert_eq!(other.ask(&ask.id).await.unwrap().unwrap().state, to);
        assert_eq!(other.decision(&ask.id).await.unwrap(), Some(row));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b062_one_open_ask_per_agent_and_tool() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    let results = race([&one, &other], 8, |store, n| async move {
        store.insert_ask(&ask(&format!("ask-{n}"), "a")).await
    })
    .await;
    assert_eq!(count(&results, Result::is_ok), 1);
    assert_eq!(count(&results, |r| matches!(r, Err(StoreFault::Conflict(_)))), 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b062_a_permit_lets_one_request_through() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    for n in 0..3u32 {
        let ask = ask(&format!("ask-{n}"), "a");
        one.insert_ask(&ask).await.unwrap();
        let row = decision(&ask, u64::from(n) + 1, Answer::Once);
        assert!(one.settle(&ask.id, AskState::AllowedOnce, Some(&row), 1).await.unwrap());
    }
    let results = race([&one, &other], 12, |store, _| async move {
        let key = PermitKey {
            agent: agent_id(1),
            version: hash(1),
            connection: connection_id(1),
            digest: hash(99),
        };
        store.consume_once(&key).await.unwrap().map(|row| row.ask)
    })
    .await;
    let mut used: Vec<_> = results.into_iter().flatten().map(|ask| ask.to_string()).collect();
    used.sort();
    assert_eq!(used, ["ask-0", "ask-1", "ask-2"], "each permit once, none twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b052_of_two_publishers_one_moves_the_pointer() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    published(&one, "a", 1).await;
    let results = race([&one, &other], 4, |store, n| async move {
        let mut row = publish("a", 2, 1);
        row.version.as_mut().unwrap().version.source = format!("// {n}");
        row.promote_for = Some(agent_id(2));
        (n, store.publish(&row).await)
    })
    .await;
    assert_eq!(count(&results, |(_, r)| r.is_ok()), 1);
    assert_eq!(count(&results, |(_, r)| matches!(r, Err(StoreFault::Conflict(_)))), 7);
    let winner = results.iter().find(|(_, r)| r.is_ok()).unwrap().0;
    let row = one.version(&person(), &tool("a"), 2).await.unwrap().unwrap();
    assert_eq!(row.version.source, format!("// {winner}"));

    // The same for a pointer alone, as a rollback moves it.
    let results = race([&one, &other], 4, |store, n| async move {
        let row =
            PublishRow { version: None, pointer: pointer("a", 3, n % 2 + 1), promote_for: None };
        store.publish(&row).await
    })
    .await;
    assert_eq!(count(&results, Result::is_ok), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn moves_write_one_history_row_each_and_replay_to_the_set() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    let results = race([&one, &other], 30, |store, n| async move {
        let tool = tool(&format!("t{}", n % 5));
        if n % 3 == 0 {
            let out = [(tool, MoveCause::Agent)];
            store.demote(&agent_id(1), &out, i64::from(n)).await.unwrap().changed
        } else {
            let cause = MoveCause::Agent;
            store.promote(&agent_id(1), &tool, cause, i64::from(n)).await.unwrap().changed
        }
    })
    .await;
    let history = one.history(&agent_id(1), 1_000).await.unwrap();
    assert_eq!(history.len(), results.iter().sum::<usize>());
    let mut set = std::collections::BTreeSet::new();
    for entry in history.into_iter().rev() {
        let wire = entry.tool.to_string();
        let did = if entry.promoted { set.insert(wire) } else { set.remove(&wire) };
        assert!(did, "a move of nothing");
    }
    let now: Vec<String> =
        other.set(&agent_id(1)).await.unwrap().iter().map(|row| row.tool.to_string()).collect();
    assert_eq!(set.into_iter().collect::<Vec<_>>(), now);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_writers_of_one_audit_chain_cannot_fork_it() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    let results = race([&one, &other], 4, |store, n| async move {
        store.append(&[audit("node", 1), audit("node", 2)], n % 2 == 0).await
    })
    .await;
    assert_eq!(count(&results, Result::is_ok), 1);
    assert_eq!(one.rows("node", 0, 10).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_code_is_redeemed_once() {
    let directory = Directory::new();
    let (one, other) = two(&directory).await;
    one.insert_code(&CodeRow { hash: [4; 32], person: person(), expires_ms: 50 }).await.unwrap();
    let results =
        race(
            [&one, &other],
            6,
            |store, _| async move { store.redeem_code(&[4; 32], 1).await.unwrap() },
        )
        .await;
    assert_eq!(count(&results, |won| *won), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_write_leaves_nothing_and_blocks_nobody() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    // Polled up to twenty times, then dropped where it stands.
    for n in 0..200u32 {
        let tool = tool(&format!("t{n}"));
        let id = agent_id(1);
        let mut write = store.promote(&id, &tool, MoveCause::Agent, 1);
        for _ in 0..n % 20 {
            let mut polled = std::pin::pin!(futures_poll(&mut write));
            if polled.as_mut().await {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let last = tool("last");
    store.promote(&agent_id(1), &last, MoveCause::Agent, 1).await.unwrap();
    let set = store.set(&agent_id(1)).await.unwrap();
    let history = store.history(&agent_id(1), 1_000).await.unwrap();
    assert_eq!(set.len(), history.len(), "no member without its history row");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_secret_that_was_written_is_the_one_that_is_read() {
    let directory = Directory::new();
    let store = filled(&directory).await;
    let sealed = |n: u8| SealedSecret {
        connection: connection_id(1),
        generation: 1,
        wrapped_key: vec![n; 72],
        sealed: vec![n; 64],
    };
    store.put_secret(&sealed(0)).await.unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let mut last = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let read = store.secret(&connection_id(1)).await.unwrap().unwrap().sealed[0];
                    assert!(read >= last, "{read} was read after {last}");
                    last = read;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for n in 1..100 {
        // now and then by somebody who goes away in the middle
        if n % 10 == 0 {
            let next = sealed(n);
            let mut write = store.put_secret(&next);
            for _ in 0..n % 7 {
                if futures_poll(&mut write).await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        store.put_secret(&sealed(n)).await.unwrap();
        assert_eq!(store.secret(&connection_id(1)).await.unwrap(), Some(sealed(n)));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Polls once; answers whether it is done.
async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_ready())
    })
    .await
}
