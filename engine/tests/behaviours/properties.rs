//! Invariants K as properties: whatever happens in whatever order, the list is
//! the set, history replays to it, and no answer releases more than it said.

use crate::house::{DAY_MS, House, Step, module, posts, reads, tool, writes};
use cambium_engine::{Event, HistoryEntry};
use cambium_proxy::{Answer, AuditKind};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

const TOOLS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Move {
    Publish(usize, u8),
    Promote(usize),
    Demote(usize),
    Call(usize),
    Age(i64),
    Sweep,
    Restart,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let tool = 0..TOOLS.len();
    let one = prop_oneof![
        (tool.clone(), 0..3_u8).prop_map(|(tool, text)| Move::Publish(tool, text)),
        tool.clone().prop_map(Move::Promote),
        tool.clone().prop_map(Move::Demote),
        tool.prop_map(Move::Call),
        (1..30_i64).prop_map(Move::Age),
        Just(Move::Sweep),
        Just(Move::Restart),
    ];
    prop::collection::vec(one, 1..24)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn replayed(history: &[HistoryEntry]) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for row in history.iter().rev() {
        let changed = match row.promoted {
            true => set.insert(row.tool.to_string()),
            false => set.remove(&row.tool.to_string()),
        };
        assert!(changed, "a history row that moved nothing: {row:?}");
    }
    set
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn b092_the_list_is_the_set_and_history_replays_to_it(moves in moves()) {
        runtime().block_on(async {
            let mut house = House::new().await;
            let (agent, caller) = house.furnished().await;
            house.engine.set_agent(&house.person().await, &agent.id, None, Some(2), Some(5), None).await.unwrap();
            for step in moves {
                let before = house.listed(&caller).await;
                let mut events = house.engine.events();
                let restarts = matches!(step, Move::Restart);
                match step {
                    Move::Publish(at, text) => {
                        let source = module(&format!("Text {text}."), "\"/x\"");
                        house.publish(&caller, TOOLS[at], &source).await;
                    }
                    Move::Promote(at) => {
                        let _ = house.engine.promote(&caller, &tool(TOOLS[at])).await;
                    }
                    Move::Demote(at) => {
                        let _ = house.engine.demote(&caller, &tool(TOOLS[at])).await;
                    }
                    Move::Call(at) => {
                        house.call(&caller, TOOLS[at]).await;
                    }
                    Move::Age(days) => house.clock.advance(days * DAY_MS),
                    Move::Sweep => {
                        house.engine.sweep().await.unwrap();
                    }
                    Move::Restart => house = house.restarted().await,
                }
                let listed = house.listed(&caller).await;
                let set = house.engine.working_set(&agent.id).await.unwrap();
                let set: Vec<String> = set.iter().map(|entry| entry.tool.to_string()).collect();
                assert_eq!(listed, set);
                let history = house.engine.history(&agent.id).await.unwrap();
                assert_eq!(replayed(&history), set.into_iter().collect());
                let told = std::iter::from_fn(|| events.try_recv().ok())
                    .filter(|event| matches!(event, Event::ListChanged(_)))
                    .count();
                assert!(told <= 1, "one notice a change");
                // at a start nobody listens yet
                if listed != before && !restarts {
                    assert_eq!(told, 1, "a change that was not told");
                }
            }
        });
    }

    #[test]
    fn b062_answers_release_exactly_what_they_said(
        bodies in prop::collection::vec(0..2_usize, 1..4),
        answers in prop::collection::vec(0..2_u8, 1..6),
    ) {
        const BODIES: [&str; 2] = ["{\"n\":1}", "{\"n\":2}"];
        runtime().block_on(async {
            let house = House::waiting(Duration::from_millis(400)).await;
            let (_, caller) = house.furnished().await;
            house.publish(&caller, "create", &writes()).await;
            let mut events = house.engine.events();
            let mut calls = Vec::new();
            for body in bodies {
                house.sandbox.plays("shop__create", posts(BODIES[body]));
                let ran = house.sandbox.ran.lock().unwrap().len();
                calls.push(house.calling(&caller, "create"));
                while house.sandbox.ran.lock().unwrap().len() == ran {
                    tokio::task::yield_now().await;
                }
            }
            let running = calls.len();
            let mut allowed = 0;
            for answer in answers {
                let asked = tokio::time::timeout(Duration::from_millis(600), async {
                    loop {
                        if let Event::AskOpened(ask) = events.recv().await.unwrap() {
                            return ask;
                        }
                    }
                });
                let Ok(ask) = asked.await else { break };
                let ask = house.engine.ask(&ask).await.unwrap();
                let answer = [Answer::Once, Answer::Deny][usize::from(answer)];
                // twice at once: one of them is told
                let proofs = [house.person().await, house.person().await];
                let (one, two) = tokio::join!(
                    house.decide_as(&proofs[0], &ask, answer),
                    house.decide_as(&proofs[1], &ask, answer),
                );
                assert!(one.is_ok() != two.is_ok());
                match answer {
                    Answer::Once => allowed += 1,
                    _ => break,
                }
            }
            for call in calls {
                call.await.unwrap();
            }
            let gone = house.let_go("POST").await;
            assert!(gone <= allowed, "{gone} went, {allowed} were allowed");
            assert!(gone <= running);
        });
    }
}

fn requests() -> impl Strategy<Value = Vec<Step>> {
    let method = prop::sample::select(vec![
        "GET", "HEAD", "get", "POST", "PUT", "PATCH", "DELETE", "delete", "OPTIONS", "TRACE",
        "CONNECT", "GE T", "PROPFIND", "",
    ]);
    let target = prop::sample::select(vec!["/x", "/orders", "/x?y=1", "//evil.example", "/../x"]);
    let one = (method, target).prop_map(|(method, target)| Step::Send(method, target, "{}"));
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever a module tries: a dry run, and a real run of a version the check
    /// calls read-only, let nothing go but GET and HEAD.
    #[test]
    fn b095_a_dry_run_and_a_read_only_version_send_reads_only(tried in requests(), dry in any::<bool>()) {
        runtime().block_on(async {
            let house = House::waiting(Duration::from_millis(1)).await;
            let (_, caller) = house.furnished().await;
            let source = if dry { writes() } else { reads() };
            house.publish(&caller, "a", &source).await;
            house.sandbox.plays("shop__a", tried);
            match dry {
                true => house.dry_run(&caller, "a").await,
                false => house.call(&caller, "a").await,
            };
            for event in house.audited_to_the_end().await {
                let let_go = matches!(event.kind, AuditKind::Intent | AuditKind::Outcome);
                assert!(!let_go || ["GET", "HEAD"].contains(&event.method.as_str()), "{event:?}");
            }
        });
    }

    /// Each request has its row: what went out an intent and then an outcome,
    /// what did not its refusal, preview or hold.
    #[test]
    fn b093_every_request_has_a_row_and_nothing_goes_before_it(tried in requests(), dry in any::<bool>()) {
        runtime().block_on(async {
            let house = House::waiting(Duration::from_millis(1)).await;
            let (_, caller) = house.furnished().await;
            house.publish(&caller, "a", &reads()).await;
            let count = tried.len();
            house.sandbox.plays("shop__a", tried);
            let envelope = match dry {
                true => house.dry_run(&caller, "a").await,
                false => house.call(&caller, "a").await,
            };
            let rows = house.audited_to_the_end().await;
            let mut told = std::collections::BTreeMap::<u32, Vec<AuditKind>>::new();
            for row in rows.iter().filter(|row| Some(&row.run) == envelope.run.as_ref()) {
                told.entry(row.request).or_default().push(row.kind);
            }
            // A refusal that ends the run leaves what the script had left unsaid.
            assert!(!told.is_empty() && told.len() <= count, "{told:?}");
            for kinds in told.values() {
                match kinds[..] {
                    [AuditKind::Intent, AuditKind::Outcome]
                    | [AuditKind::Refusal | AuditKind::Preview | AuditKind::Hold] => {}
                    _ => panic!("{kinds:?}"),
                }
            }
        });
    }
}
