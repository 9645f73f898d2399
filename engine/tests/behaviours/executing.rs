//! `execute__<connection>`, calls that come twice, and tools that ask every time.

use crate::house::{House, code, module, posts, reads, shop, tool, writes};
use cambium_engine::{
    AcquireHints, CallRequest, Envelope, ExecuteRequest, InBand, Live, NewConnection,
    PublishRequest, Publisher, Status,
};
use cambium_proxy::{Answer, Secret};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn one(method: &str) -> ExecuteRequest {
    ExecuteRequest {
        connection: "shop".into(),
        method: method.into(),
        path: "/orders".into(),
        host: None,
        query: vec![("q".into(), "a b&c".into())],
        headers: Vec::new(),
        body: None,
        dry_run: false,
    }
}

fn live() -> Live {
    Live::new(CancellationToken::new())
}

#[tokio::test]
async fn b068_execute_sends_reads_and_asks_about_each_write() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.engine.execute(&caller, one("get"), live()).await;
    assert_eq!(house.let_go("GET").await, 1, "a read goes, its case put right");
    assert!(house.engine.asks().await.unwrap().is_empty());

    let mut events = house.engine.events();
    for round in 1..=2 {
        let (engine, asker) = (house.engine.clone(), caller.clone());
        let call = tokio::spawn(async move {
            let request = ExecuteRequest { body: Some(json!({"n": 1})), ..one("POST") };
            engine.execute(&asker, request, live()).await
        });
        let ask = house.opened(&mut events).await;
        assert_eq!(
            (ask.tool.as_str(), ask.target.as_str()),
            ("execute__shop", "/orders?q=a%20b%26c")
        );
        assert_eq!(ask.body.as_deref(), Some(r#"{"n":1}"#));
        assert!(!ask.can_stand, "no standing approval");
        let standing = house.decide(&ask, Answer::Standing).await.unwrap_err();
        assert_eq!(standing.code(), "argument_invalid");
        house.decide(&ask, Answer::Once).await.unwrap();
        call.await.unwrap();
        assert_eq!(house.let_go("POST").await, round);
    }
    let dry = ExecuteRequest { dry_run: true, ..one("DELETE") };
    let envelope = house.engine.execute(&caller, dry, live()).await;
    assert_eq!((envelope.status, envelope.preview.unwrap().len()), (Status::DryRun, 1));
    assert_eq!(house.let_go("DELETE").await, 0);
    assert!(house.engine.working_set(&agent.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn b068_execute_is_refused_where_the_connection_is_not_the_agents() {
    let house = House::new().await;
    house.shop().await;
    let (theirs, _) = house.agent("other").await;
    let (_, caller) = house.agent("claude").await;
    let narrow = NewConnection { slug: "narrow".into(), agents: vec![theirs.id], ..shop() };
    let secret = Some(Secret::new(b"s".to_vec()));
    house.engine.create_connection(&house.person().await, narrow, secret).await.unwrap();
    let listed = house.engine.executes(&caller).await.unwrap();
    let slugs: Vec<_> = listed.iter().map(|connection| connection.slug.as_str()).collect();
    assert_eq!(slugs, ["shop"]);
    let request = ExecuteRequest { connection: "narrow".into(), ..one("GET") };
    let envelope = house.engine.execute(&caller, request, live()).await;
    assert_eq!(code(&envelope), "connection_not_found");
    let mut request = one("GET");
    request.path = "//evil.example/x".into();
    let refused = house.engine.execute(&caller, request, live()).await;
    assert!(code(&refused).starts_with("path_"), "{refused:?}");
    assert_eq!(house.let_go("GET").await, 0);
}

#[tokio::test]
async fn m07_a_connection_outside_the_scope_reads_as_one_that_is_not() {
    let house = House::new().await;
    house.shop().await;
    let (theirs, _) = house.agent("other").await;
    let (_, caller) = house.agent("claude").await;
    let person = house.person().await;
    let narrow =
        |slug: &str| NewConnection { slug: slug.into(), agents: vec![theirs.id.clone()], ..shop() };
    let secret = || Some(Secret::new(b"s".to_vec()));
    let live_one = house.engine.create_connection(&person, narrow("narrow"), secret()).await;
    let gone = house.engine.create_connection(&person, narrow("gone"), secret()).await.unwrap();
    house.engine.revoke_connection(&person, &gone.id).await.unwrap();
    let mut told = Vec::new();
    let by_id = live_one.unwrap().id.to_string();
    for named in ["narrow", "gone", "nobody", &by_id] {
        let request = ExecuteRequest { connection: named.to_owned(), ..one("GET") };
        let executed = house.engine.execute(&caller, request, live()).await;
        let publish = PublishRequest {
            tool: tool("list"),
            connection: Some(named.to_owned()),
            source: reads(),
        };
        let publisher = Publisher::Agent(caller.clone());
        let published = house.engine.publish(&publisher, publish).await.unwrap_err();
        let published = Envelope::from(&published);
        let wanted = house.engine.propose_credential(&caller, named, "").await.unwrap_err();
        let wanted = Envelope::from(&wanted);
        let hints = AcquireHints::default();
        let acquired = house.engine.acquire(&caller, named, "List orders", hints).await;
        let acquired = Envelope::from(&acquired.unwrap_err());
        let checked = house.engine.check_tool(&caller, &reads(), Some(named)).await.unwrap_err();
        let checked = Envelope::from(&checked);
        let told_of = [executed, published, wanted, acquired, checked]
            .map(|envelope| serde_json::to_string(&envelope).unwrap().replace(named, "NAMED"));
        told.push(told_of);
    }
    assert!(told.iter().all(|answers| *answers == told[0]), "{told:#?}");
    assert!(told[0].iter().all(|answer| answer.contains("connection_not_found")), "{told:#?}");
    assert_eq!(house.let_go("GET").await, 0);
}

#[tokio::test]
async fn c12_headers_that_were_not_sent_are_named() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let mut request = one("GET");
    let headers = ["X-Made-Up", "User-Agent", "Accept", "Authorization"];
    request.headers = headers.map(|name| (name.to_owned(), "text/plain".to_owned())).to_vec();
    let envelope = house.engine.execute(&caller, request, live()).await;
    let notes = envelope.notes.join("\n");
    assert!(notes.contains("a tool may set: authorization, x-made-up;"), "{notes}");
}

#[tokio::test]
async fn b066_every_time_asks_for_each_write_and_takes_what_stood_back() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Standing).await.unwrap();
    call.await.unwrap();
    let person = house.person().await;
    house.engine.set_every_time(&person, &agent.id, &tool("create"), true).await.unwrap();
    for round in 2..=3 {
        let call = house.calling(&caller, "create");
        let ask = house.opened(&mut events).await;
        assert!(!ask.can_stand);
        assert_eq!(
            house.decide(&ask, Answer::Standing).await.unwrap_err().code(),
            "argument_invalid"
        );
        house.decide(&ask, Answer::Once).await.unwrap();
        call.await.unwrap();
        assert_eq!(house.let_go("POST").await, round);
    }
    let house = house.restarted().await;
    assert!(house.engine.every_time(&agent.id, &tool("create")).await.unwrap());
    house.engine.set_every_time(&person, &agent.id, &tool("create"), false).await.unwrap();
    assert!(!house.engine.every_time(&agent.id, &tool("create")).await.unwrap());
}

#[tokio::test]
async fn decision29_a_switch_under_another_key_counts_as_off() {
    let house = House::new().await;
    let (agent, _) = house.furnished().await;
    let console = house.console().await;
    let stale = house.engine.set_in_band(&console, &agent.id, InBand::Once).await.unwrap_err();
    assert_eq!(stale.code(), "person_required", "it takes a fresh proof");
    house.engine.set_in_band(&house.person().await, &agent.id, InBand::Once).await.unwrap();
    assert_eq!(house.engine.in_band(&agent.id).await.unwrap(), InBand::Once);
    let elsewhere = house.under_another_key().await;
    assert_eq!(elsewhere.engine.in_band(&agent.id).await.unwrap(), InBand::Off);
}

fn named(id: &str) -> Live {
    Live { call_id: Some(id.into()), ..live() }
}

fn create() -> CallRequest {
    crate::house::request("create")
}

#[tokio::test]
async fn b039_a_call_that_comes_again_under_its_own_name_writes_once() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Standing).await.unwrap();
    call.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1);

    let engine = &house.engine;
    let first = engine.call(&caller, create(), named("c1")).await;
    let again = engine.call(&caller, create(), named("c1")).await;
    assert_eq!(house.let_go("POST").await, 2, "the second was not sent");
    assert_eq!((again.run, again.result), (first.run.clone(), first.result));
    assert!(again.notes.iter().any(|note| note.contains("made before")));
    let (one, two) = tokio::join!(
        engine.call(&caller, create(), named("c2")),
        engine.call(&caller, create(), named("c2")),
    );
    assert_eq!(one.run, two.run, "at the same time, too");
    assert_eq!(house.let_go("POST").await, 3);
    // another input under the same name is another call
    let other = CallRequest { input: json!({"n": 1}), ..create() };
    engine.call(&caller, other, named("c1")).await;
    assert_eq!(house.let_go("POST").await, 4);
    // what this process forgot, the store still knows
    let later = house.restarted().await;
    let envelope = later.engine.call(&caller, create(), named("c1")).await;
    assert_eq!(envelope.run, first.run);
    assert_eq!(later.let_go("POST").await, 4);
}

#[tokio::test]
async fn b039_a_single_request_that_comes_again_under_its_own_name_writes_once() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let mut events = house.engine.events();
    let send = |id: &'static str, body| {
        let (engine, caller) = (house.engine.clone(), caller.clone());
        let request = ExecuteRequest { body: Some(body), ..one("POST") };
        tokio::spawn(async move { engine.execute(&caller, request, named(id)).await })
    };
    let first = send("c1", json!({"n": 1}));
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Once).await.unwrap();
    // the vendor's port is closed, so nobody knows whether it wrote
    first.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1);
    let again = send("c1", json!({"n": 1})).await.unwrap();
    assert_eq!(code(&again), "outcome_unknown");
    assert_eq!(house.let_go("POST").await, 1, "the second was not sent");
    // another body under the same name is another request, and asks for itself
    let other = send("c1", json!({"n": 2}));
    let ask = house.opened(&mut events).await;
    assert_eq!(ask.body.as_deref(), Some(r#"{"n":2}"#));
    house.decide(&ask, Answer::Deny).await.unwrap();
    assert_eq!(code(&other.await.unwrap()), "tool_denied");
}

#[tokio::test]
async fn b039_a_call_that_only_waited_may_come_again() {
    let house = House::waiting(Duration::from_millis(30)).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let parked = house.engine.call(&caller, create(), named("c")).await;
    assert_eq!(parked.status, Status::AwaitingApproval);
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Once).await.unwrap();
    house.engine.call(&caller, create(), named("c")).await;
    assert_eq!(house.let_go("POST").await, 1);
    house.engine.call(&caller, create(), named("c")).await;
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn b052_a_person_moves_the_pointer_back_and_it_asks_again() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Standing).await.unwrap();
    call.await.unwrap();
    let changed = module("Creates it otherwise.", r#""/orders", { method: "POST" }"#);
    house.publish(&caller, "create", &changed).await;
    // b058: the ask of a changed tool says why, with the difference
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    assert!(ask.reason.contains("published anew"));
    let diff = ask.diff.clone().unwrap();
    assert!(diff.contains("+export const description = \"Creates it otherwise.\";"), "{diff}");
    house.decide(&ask, Answer::Once).await.unwrap();
    call.await.unwrap();

    let person = house.person().await;
    let mut changes = house.engine.events();
    let back = house.engine.rollback(&person, &tool("create"), 1).await.unwrap();
    assert_eq!((back.version, back.unchanged), (1, false));
    let told = crate::house::sent(&mut changes);
    assert!(told.contains(&cambium_engine::Event::list_changed([agent.id.clone()])), "{told:?}");
    assert_eq!(house.engine.read_tool_source(&tool("create"), None).await.unwrap().version, 1);
    assert!(house.engine.rollback(&person, &tool("create"), 1).await.unwrap().unchanged);
    let missing = house.engine.rollback(&person, &tool("create"), 9).await.unwrap_err();
    assert_eq!(missing.code(), "version_not_found");
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    assert_eq!(ask.version, 1, "what was allowed for version 1 asks again");
    house.decide(&ask, Answer::Deny).await.unwrap();
    assert_eq!(code(&call.await.unwrap()), "tool_denied");
    let found = house.engine.find_tool(&caller, "creates order").await.unwrap();
    assert_eq!(found.hits[0].description, "Creates an order.", "the index follows");
}

#[tokio::test]
async fn b085_a_version_that_fails_its_dry_run_never_becomes_current() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let request = |source: &str| PublishRequest {
        tool: tool("list"),
        connection: None,
        source: source.into(),
    };
    let changed = module("Lists invoices.", r#""/invoices""#);
    house.sandbox.plays("shop__list", [crate::house::Step::Throw("no luck")]);
    let failed = house
        .engine
        .publish_tried(&caller, request(&changed), json!({}), live())
        .await
        .unwrap_err();
    assert_eq!(failed.code(), "dry_run_failed");
    assert_eq!(house.engine.read_tool_source(&tool("list"), None).await.unwrap().version, 1);
    let invalid =
        house.engine.publish_tried(&caller, request(&changed), json!({"n": 9}), live()).await;
    assert_eq!(invalid.unwrap_err().code(), "dry_run_failed");
    house.sandbox.plays("shop__list", [crate::house::Step::Return(json!([]))]);
    let (published, tried) =
        house.engine.publish_tried(&caller, request(&changed), json!({}), live()).await.unwrap();
    assert_eq!((published.version, tried.status), (2, Status::DryRun));
}

#[tokio::test]
async fn b076_a_plan_says_what_a_sweep_then_does_and_changes_nothing() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    for name in ["a", "b", "c"] {
        house.publish(&caller, name, &reads()).await;
        house.clock.advance(1_000);
    }
    house.call(&caller, "b").await;
    let person = house.person().await;
    house.engine.set_agent(&person, &agent.id, None, Some(2), Some(1), None).await.unwrap();
    let plan = house.engine.sweep_plan().await.unwrap().remove(0);
    assert_eq!((plan.size, plan.cap, plan.in_flight), (3, 2, false));
    let now: Vec<_> = plan.leaving.iter().filter(|l| l.now).map(|l| l.tool.to_string()).collect();
    assert_eq!(now, ["shop__a"], "over the cap: the oldest promotion not yet called");
    assert_eq!(house.listed(&caller).await.len(), 3, "only shown");
    assert_eq!(house.engine.sweep().await.unwrap(), 1);
    assert_eq!(house.listed(&caller).await, ["shop__b", "shop__c"]);
    let statistics = house.engine.statistics().await.unwrap();
    assert_eq!(
        (statistics[0].tool.as_str(), statistics[0].calls, statistics[0].errors),
        ("shop__b", 1, 0)
    );
}
