//! Behaviours A, B and C: what a list holds, how tools get in and out, who is
//! told, and what find_tool says.

use crate::house::{House, START_MS, code, module, reads, sent, tool, writes};
use cambium_engine::{Event, MoveCause, Status};

#[tokio::test]
async fn b001_the_list_is_exactly_the_promoted_tools_in_wire_order() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "zeta", &reads()).await;
    house.publish(&caller, "alpha", &module("A.", r#""/a""#)).await;
    house.publish(&caller, "mid", &module("M.", r#""/m""#)).await;
    house.engine.demote(&caller, &tool("mid")).await.unwrap();
    assert_eq!(house.listed(&caller).await, ["shop__alpha", "shop__zeta"]);
    assert_eq!(house.listed(&caller).await, ["shop__alpha", "shop__zeta"], "b007: stable");
}

#[tokio::test]
async fn b005_a_listed_tool_carries_schema_and_hints() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.publish(&caller, "create", &writes()).await;
    let listed = house.engine.tool_list(&caller).await.unwrap();
    let (create, list) = (&listed[0], &listed[1]);
    assert!(list.hints.read_only && list.idempotent);
    assert!(!create.hints.read_only && !create.idempotent);
    assert_eq!(list.input_schema["type"], "object");
    assert_eq!(list.input_schema["properties"]["n"]["maximum"], 3);
}

#[tokio::test]
async fn b008_each_change_tells_the_agents_it_concerns_once() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    let (other, other_caller) = house.agent("codex").await;
    let mut events = house.engine.events();
    let told = |ids: &[&cambium_proxy::AgentId]| {
        vec![Event::list_changed(ids.iter().map(|id| (*id).clone()))]
    };
    house.publish(&caller, "list", &reads()).await;
    assert_eq!(sent(&mut events), told(&[&agent.id]), "a publish promotes for its agent");
    house.engine.promote(&caller, &tool("list")).await.unwrap();
    assert_eq!(sent(&mut events), [], "a no-op tells nobody");
    house.engine.promote(&other_caller, &tool("list")).await.unwrap();
    assert_eq!(sent(&mut events), told(&[&other.id]));
    house.publish(&caller, "list", &reads()).await;
    assert_eq!(sent(&mut events), [], "identical content");
    house.publish(&caller, "list", &module("Lists them.", r#""/orders""#)).await;
    let changed = sent(&mut events).remove(0);
    let both = Event::list_changed([agent.id.clone(), other.id.clone()]);
    assert_eq!(changed, both, "everyone whose list content it changes");
    house.engine.demote(&other_caller, &tool("list")).await.unwrap();
    assert_eq!(sent(&mut events), told(&[&other.id]));
    house.engine.demote(&other_caller, &tool("list")).await.unwrap();
    assert_eq!(sent(&mut events), []);
}

#[tokio::test]
async fn b013_a_call_of_an_unpromoted_tool_runs() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.engine.demote(&caller, &tool("list")).await.unwrap();
    assert_eq!(house.call(&caller, "list").await.status, Status::Ok);
    assert!(house.listed(&caller).await.is_empty(), "b028: running does not promote");
    let unknown = house.call(&caller, "nothing").await;
    assert_eq!(code(&unknown), "tool_not_found");
    let next = unknown.next.unwrap();
    assert!(next.contains("find_tool") && next.contains("acquire"), "{next}");
}

#[tokio::test]
async fn b022_promote_and_demote_are_idempotent() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.publish(&caller, "create", &writes()).await;
    for _ in 0..2 {
        assert_eq!(house.engine.demote(&caller, &tool("list")).await.unwrap(), 1);
    }
    for _ in 0..2 {
        let (size, listed) = house.engine.promote(&caller, &tool("list")).await.unwrap();
        assert_eq!((size, listed.tool), (2, tool("list")));
    }
    let history = house.engine.history(&agent.id).await.unwrap();
    let moves: Vec<_> = history.iter().map(|row| (row.promoted, row.cause)).collect();
    assert_eq!(
        moves,
        [
            (true, MoveCause::Agent),
            (false, MoveCause::Agent),
            (true, MoveCause::Publish),
            (true, MoveCause::Publish)
        ]
    );
}

#[tokio::test]
async fn b023_a_name_in_no_toolbox_is_not_found_everywhere() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let nothing = tool("nothing");
    let engine = &house.engine;
    let codes = [
        engine.promote(&caller, &nothing).await.unwrap_err().code(),
        engine.demote(&caller, &nothing).await.unwrap_err().code(),
        engine.read_tool_source(&nothing, None).await.unwrap_err().code(),
    ];
    assert_eq!(codes, ["tool_not_found"; 3]);
}

#[tokio::test]
async fn b026_two_agents_share_the_toolbox_and_not_the_set() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let (_, other) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    assert_eq!(house.listed(&caller).await, ["shop__list"]);
    assert!(house.listed(&other).await.is_empty());
    assert_eq!(house.call(&other, "list").await.status, Status::Ok);
}

#[tokio::test]
async fn b015_find_tool_says_what_is_promoted_and_how_to_call_it() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list-orders", &reads()).await;
    house.engine.demote(&caller, &tool("list-orders")).await.unwrap();
    let reply = house.engine.find_tool(&caller, "orders").await.unwrap();
    let hit = &reply.hits[0];
    assert_eq!((hit.vendor.as_str(), hit.name.as_str()), ("shop", "list-orders"));
    assert_eq!(hit.wire_name, "shop__list-orders");
    assert!(!hit.promoted && hit.read_only_hint);
    assert_eq!(hit.input_schema["type"], "object");
    house.publish(&caller, "list-orders", &module("Lists invoices.", r#""/orders""#)).await;
    assert_eq!(house.engine.find_tool(&caller, "orders").await.unwrap().total, 1, "b017");
    let house = house.restarted().await;
    let hits = house.engine.find_tool(&caller, "invoices").await.unwrap().hits;
    assert!(hits[0].promoted, "the index is read back at start");
}

#[tokio::test]
async fn b016_nothing_found_points_at_acquire_and_lists_connections() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let reply = house.engine.find_tool(&caller, "weather").await.unwrap();
    assert!(reply.hits.is_empty());
    assert!(reply.next.unwrap().contains("acquire"));
    assert_eq!(reply.connections, ["shop"]);
}

#[tokio::test]
async fn decision38_a_paused_agent_is_refused_and_a_person_resumes_it() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let (token, paused) = {
        let proof = house.person().await;
        let token = house.engine.rotate_token(&proof, &agent.id).await.unwrap();
        house
            .engine
            .set_agent(&house.person().await, &agent.id, None, None, None, Some(true))
            .await
            .unwrap();
        (token.clone(), house.engine.authenticate(&token).await.unwrap())
    };
    assert_eq!(code(&house.call(&paused, "list").await), "agent_paused");
    let refused = house.engine.demote(&paused, &tool("list")).await.unwrap_err();
    assert_eq!(refused.code(), "agent_paused");
    house
        .engine
        .set_agent(&house.person().await, &agent.id, None, None, None, Some(false))
        .await
        .unwrap();
    let resumed = house.engine.authenticate(&token).await.unwrap();
    assert_eq!(house.call(&resumed, "list").await.status, Status::Ok);
}

#[tokio::test]
async fn b020_find_tool_never_asks_and_is_no_use() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    let mut events = house.engine.events();
    for query in ["create", "shop", "orders", "weather", ""] {
        house.engine.find_tool(&caller, query).await.unwrap();
    }
    assert_eq!(sent(&mut events), []);
    assert!(house.engine.asks().await.unwrap().is_empty());
    assert!(house.sandbox.ran.lock().unwrap().is_empty());
    assert_eq!(house.engine.working_set(&agent.id).await.unwrap()[0].last_used_ms, None);
}

#[tokio::test]
async fn b021_a_move_answers_the_sets_new_size_and_a_promotion_the_schema() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let (_, other) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    house.publish(&caller, "create", &writes()).await;
    let mut events = house.engine.events();
    let (size, listed) = house.engine.promote(&other, &tool("create")).await.unwrap();
    assert_eq!(size, 1);
    assert_eq!(listed.input_schema["properties"]["n"]["type"], "integer");
    assert!(!listed.hints.read_only);
    assert_eq!(house.engine.promote(&other, &tool("list")).await.unwrap().0, 2);
    assert_eq!(house.engine.demote(&other, &tool("create")).await.unwrap(), 1);
    let asked = sent(&mut events).iter().any(|event| matches!(event, Event::AskOpened(_)));
    assert!(!asked, "b022: moving a write tool asks nobody");
}

#[tokio::test]
async fn b025_a_promotion_goes_above_the_cap_starts_the_clock_and_is_no_use() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    let person = house.person().await;
    house.engine.set_agent(&person, &agent.id, None, Some(1), None, None).await.unwrap();
    for name in ["a", "b", "c"] {
        house.publish(&caller, name, &reads()).await;
    }
    house.engine.demote(&caller, &tool("b")).await.unwrap();
    house.clock.advance(5);
    assert_eq!(house.engine.promote(&caller, &tool("b")).await.unwrap().0, 3, "the cap is 1");
    let set = house.engine.working_set(&agent.id).await.unwrap();
    let promoted = set.iter().find(|entry| entry.tool == tool("b")).unwrap();
    assert_eq!((promoted.promoted_ms, promoted.last_used_ms), (START_MS + 5, None));
}
