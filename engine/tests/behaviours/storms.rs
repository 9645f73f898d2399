//! Promotions, demotions, publishes, calls, limits and sweeps of several agents,
//! all at once and with a clock that jumps both ways: whatever order they fell
//! in, each list is its set and its history replays to it.

use crate::house::{DAY_MS, House, module, posts, reads, tool, writes};
use cambium_engine::{Caller, HistoryEntry, Status};
use cambium_proxy::Answer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const TOOLS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const AGENTS: usize = 3;
/// Moves of each task; an agent's history (500 rows are read) holds them all.
const MOVES: usize = 40;

/// The set a history ends at. Each row must have changed it.
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

async fn publish(house: &House, caller: &Caller, at: usize, text: usize) {
    let source = module(&format!("Tool {at}, text {text}."), r#""/x""#);
    house.publish(caller, TOOLS[at], &source).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b092_a_storm_of_moves_leaves_each_list_its_set() {
    let house = Arc::new(House::new().await);
    house.shop().await;
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        agents.push(house.agent(&format!("agent-{number}")).await);
    }
    for at in 0..TOOLS.len() {
        publish(&house, &agents[0].1, at, 0).await;
    }
    // A code runs out, so people prove themselves before the clock jumps.
    let mut people = Vec::new();
    for _ in &agents {
        people.push(house.person().await);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for (number, (agent, caller)) in agents.iter().enumerate() {
        let of = |_does: &str| (house.clone(), agent.clone(), caller.clone());
        let (here, _, me) = of("promotes");
        tasks.spawn(async move {
            for step in 0..MOVES {
                here.engine
                    .promote(&me, &tool(TOOLS[(step + number) % TOOLS.len()]))
                    .await
                    .unwrap();
            }
        });
        let (here, _, me) = of("demotes");
        tasks.spawn(async move {
            for step in 0..MOVES {
                here.engine
                    .demote(&me, &tool(TOOLS[(step * 5 + number) % TOOLS.len()]))
                    .await
                    .unwrap();
            }
        });
        let (here, _, me) = of("publishes");
        tasks.spawn(async move {
            for step in 0..MOVES {
                publish(&here, &me, step % TOOLS.len(), step % 3).await;
            }
        });
        let (here, _, me) = of("calls and reads its list");
        tasks.spawn(async move {
            for step in 0..MOVES {
                let envelope = here.call(&me, TOOLS[step % TOOLS.len()]).await;
                assert_eq!(envelope.status, Status::Ok, "{envelope:?}");
                let listed = here.listed(&me).await;
                let distinct: BTreeSet<&String> = listed.iter().collect();
                assert_eq!(distinct.len(), listed.len(), "a tool listed twice: {listed:?}");
            }
        });
        let (here, whose, _) = of("is given other limits");
        let person = people.remove(0);
        tasks.spawn(async move {
            for step in 0..MOVES {
                let cap = Some(1 + (step % 4) as u32);
                let set = here.engine.set_agent(&person, &whose.id, None, cap, Some(3), None);
                set.await.unwrap();
            }
        });
    }
    let here = house.clone();
    tasks.spawn(async move {
        for step in 0..MOVES {
            // forwards past the idle window and back again
            here.clock.advance(if step % 2 == 0 { 5 * DAY_MS } else { -4 * DAY_MS });
            here.engine.sweep().await.unwrap();
        }
    });
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for (agent, caller) in &agents {
        let listed: BTreeSet<String> = house.listed(caller).await.into_iter().collect();
        let set = house.engine.working_set(&agent.id).await.unwrap();
        let set: BTreeSet<String> = set.iter().map(|entry| entry.tool.to_string()).collect();
        assert_eq!(listed, set);
        assert_eq!(replayed(&house.engine.history(&agent.id).await.unwrap()), set);
    }
    house.audited_to_the_end().await;
}

#[tokio::test]
async fn b071_a_clock_set_back_ages_nothing_and_one_set_forward_once() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.call(&caller, "list").await;
    for (jump, wanted) in [
        (-400 * DAY_MS, true),
        (400 * DAY_MS, true),
        (20 * DAY_MS, true),
        (-20 * DAY_MS, true),
        (22 * DAY_MS, false),
        (-22 * DAY_MS, false),
    ] {
        house.clock.advance(jump);
        house.engine.sweep().await.unwrap();
        let listed = house.listed(&caller).await.len();
        assert_eq!(listed == 1, wanted, "after a jump of {} days", jump / DAY_MS);
        let history = house.engine.history(&agent.id).await.unwrap();
        assert_eq!(replayed(&history).len(), listed, "rows stay in the order they were written");
    }
    // its next use, in what is now the past, puts it back and keeps it
    house.engine.promote(&caller, &tool("list")).await.unwrap();
    assert_eq!(house.engine.sweep().await.unwrap(), 0);
    house.audited_to_the_end().await;
}

#[tokio::test]
async fn decision24_an_ask_that_ran_out_stays_so_when_the_clock_is_set_back() {
    let house = House::waiting(Duration::ZERO).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    let ask = house.engine.asks().await.unwrap().remove(0);
    // to the past and the present again: nothing ran out
    for jump in [-30 * DAY_MS, 30 * DAY_MS] {
        house.clock.advance(jump);
        house.engine.sweep().await.unwrap();
        assert_eq!(house.engine.ask(&ask.id).await.unwrap().state, "open");
    }
    house.clock.advance(2 * DAY_MS);
    house.engine.sweep().await.unwrap();
    house.clock.advance(-2 * DAY_MS);
    assert_eq!(house.engine.ask(&ask.id).await.unwrap().state, "expired");
    let late = house.decide(&ask, Answer::Standing).await.unwrap_err();
    assert_eq!(late.code(), "ask_settled");
    assert_eq!(house.let_go("POST").await, 0);
}
