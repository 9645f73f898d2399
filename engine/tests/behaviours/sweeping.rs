//! Behaviours H: the rule as it is carried out. What it decides is tested as a
//! table elsewhere.

use crate::house::{DAY_MS, House, Step, module, reads, sent, tool};
use cambium_engine::{Event, MoveCause};
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn b071_an_unused_tool_leaves_and_its_agent_is_told_once() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "one", &reads()).await;
    house.publish(&caller, "two", &module("Two.", r#""/two""#)).await;
    house.clock.advance(21 * DAY_MS);
    assert_eq!(house.engine.sweep().await.unwrap(), 0, "exactly at the window stays");
    house.call(&caller, "two").await;
    house.clock.advance(1);
    let mut events = house.engine.events();
    assert_eq!(house.engine.sweep().await.unwrap(), 1);
    assert_eq!(sent(&mut events), [Event::list_changed([agent.id.clone()])]);
    assert_eq!(house.listed(&caller).await, ["shop__two"]);
    let history = house.engine.history(&agent.id).await.unwrap();
    assert_eq!((history[0].promoted, history[0].cause), (false, MoveCause::Idle));
    assert_eq!(house.engine.sweep().await.unwrap(), 0, "b076: idempotent");
    house.engine.promote(&caller, &tool("one")).await.unwrap();
    assert_eq!(house.engine.sweep().await.unwrap(), 0, "b025: promotion starts the clock");
}

#[tokio::test]
async fn b072_what_is_over_the_cap_and_unused_leaves() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house
        .engine
        .set_agent(&house.person().await, &agent.id, None, Some(2), None, None)
        .await
        .unwrap();
    for number in 0..4 {
        let source = module(&format!("Reads {number}."), &format!("\"/n{number}\""));
        house.publish(&caller, &format!("n{number}"), &source).await;
        house.clock.advance(1_000);
    }
    house.call(&caller, "n0").await;
    let mut events = house.engine.events();
    assert_eq!(house.engine.sweep().await.unwrap(), 2);
    assert_eq!(house.listed(&caller).await, ["shop__n0", "shop__n3"], "used, and newest");
    assert_eq!(sent(&mut events).len(), 1, "b008: one notice for two");
}

#[tokio::test]
async fn b074_an_agent_with_a_run_in_flight_is_skipped_whole() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "one", &reads()).await;
    house.publish(&caller, "two", &module("Two.", r#""/two""#)).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    house.sandbox.plays("shop__one", [Step::Wait(here.clone(), word.clone())]);
    let call = house.calling(&caller, "one");
    here.notified().await;
    house.clock.advance(22 * DAY_MS);
    assert_eq!(house.engine.sweep().await.unwrap(), 0);
    // b027: an agent's own demotion of what runs is no business of the rule
    house.engine.demote(&caller, &tool("one")).await.unwrap();
    word.notify_one();
    call.await.unwrap();
    assert_eq!(house.engine.sweep().await.unwrap(), 1, "decided afresh at the next sweep");
}

#[tokio::test]
async fn b069_cap_and_window_have_ranges() {
    let house = House::new().await;
    let (agent, _) = house.furnished().await;
    for (cap, idle) in [(Some(0), None), (Some(501), None), (None, Some(0)), (None, Some(3651))] {
        let refused = house
            .engine
            .set_agent(&house.person().await, &agent.id, None, cap, idle, None)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), "out_of_range");
    }
    let set = house
        .engine
        .set_agent(&house.person().await, &agent.id, None, Some(500), Some(3650), None)
        .await
        .unwrap();
    assert_eq!((set.cap, set.idle_days), (500, 3650));
}
