//! Behaviours G: what is held, who answers, and what an answer lets go. The
//! proof of each is the proxy's audit: how many writes it let go.

use crate::house::{House, Step, code, destroys, module, posts, reads, request, tool, writes};
use cambium_engine::{ConnectionChange, Event, PublishRequest, Publisher, Status};
use cambium_proxy::{Answer, Overrides};
use std::time::Duration;

const PARKS: Duration = Duration::from_millis(100);

#[tokio::test]
async fn b057_a_read_only_tool_never_asks() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.sandbox.plays("shop__list", [Step::Send("GET", "/orders", "")]);
    house.call(&caller, "list").await;
    assert_eq!(house.let_go("GET").await, 1);
    assert!(house.engine.asks().await.unwrap().is_empty());
}

#[tokio::test]
async fn b060_the_ask_shows_the_exact_request_and_the_allowed_bytes_go() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(r#"{"n":1}"#));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    assert_eq!((ask.method.as_str(), ask.target.as_str()), ("POST", "/orders"));
    assert_eq!(ask.body.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(ask.agent, agent.id);
    assert_eq!(ask.reason, "the agent's first write with this tool");
    assert!(ask.can_stand);
    assert!(ask.waiting_run.is_some());
    assert_eq!(house.let_go("POST").await, 0, "nothing goes before the answer");
    let settled = house.decide(&ask, Answer::Once).await.unwrap();
    assert_eq!(settled.state, "allowed_once");
    call.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn b061_past_the_wait_the_call_answers_and_the_ask_stays() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let envelope = house.call(&caller, "create").await;
    assert_eq!(envelope.status, Status::AwaitingApproval);
    assert!(!envelope.is_error());
    let asked = envelope.ask.unwrap();
    assert_eq!(asked.link, format!("http://127.0.0.1:7171/asks/{}", asked.id));
    assert_eq!(asked.expires_ms, crate::house::START_MS + crate::house::DAY_MS);
    let again = house.call(&caller, "create").await;
    assert_eq!(again.ask.unwrap().id, asked.id, "the same ask, joined");

    let ask = house.engine.asks().await.unwrap().remove(0);
    assert!(ask.waiting_run.is_none(), "the runs are gone");
    house.decide(&ask, Answer::Once).await.unwrap();
    assert_eq!(house.let_go("POST").await, 0, "nothing is sent by a decision alone");
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1, "the same call later finds the answer");
    let third = house.call(&caller, "create").await;
    assert_eq!(third.status, Status::AwaitingApproval, "once is once");
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn decision22_once_does_not_cover_other_bytes() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(r#"{"n":1}"#));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Once).await.unwrap();
    house.sandbox.plays("shop__create", posts(r#"{"n":2}"#));
    let other = house.call(&caller, "create").await;
    assert_eq!(other.status, Status::AwaitingApproval);
    assert_ne!(other.ask.unwrap().id, ask.id.to_string());
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b059_from_now_on_covers_later_calls() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    house.sandbox.plays("shop__create", posts(r#"{"n":9}"#));
    house.call(&caller, "create").await;
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 2);
}

#[tokio::test]
async fn b064_a_deny_sends_nothing_and_stands() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide_as(&house.console().await, &ask, Answer::Deny).await.unwrap();
    assert_eq!(code(&call.await.unwrap()), "tool_denied");
    assert_eq!(code(&house.call(&caller, "create").await), "tool_denied");
    assert_eq!(code(&house.dry_run(&caller, "create").await), "tool_denied");
    // the same content under another name
    house.publish(&caller, "create-again", &writes()).await;
    assert_eq!(code(&house.call(&caller, "create-again").await), "tool_denied");
    assert_eq!(house.let_go("POST").await, 0);

    let agent = caller.agent().id.clone();
    house.engine.withdraw(&house.console().await, &agent, &tool("create")).await.unwrap();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Once).await.unwrap();
    call.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1, "a withdrawn deny asks again");
}

#[tokio::test]
async fn b062_concurrent_first_calls_share_one_ask() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let calls: Vec<_> = (0..3).map(|_| house.calling(&caller, "create")).collect();
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Standing).await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(house.let_go("POST").await, 3, "from now on frees them all");
    assert_eq!(house.engine.asks().await.unwrap().len(), 1, "one was asked");
}

#[tokio::test]
async fn b062_once_frees_one_and_the_other_is_held_anew() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let calls = [house.calling(&caller, "create"), house.calling(&caller, "create")];
    let first = house.opened(&mut events).await;
    house.decide(&first, Answer::Once).await.unwrap();
    let second = house.opened(&mut events).await;
    assert_ne!(first.id, second.id);
    assert_eq!(house.let_go("POST").await, 1);
    house.decide(&second, Answer::Deny).await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn b062_j09_the_first_decision_wins_and_later_ones_are_told() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    let proofs = [house.person().await, house.person().await];
    let (one, two) = tokio::join!(
        house.decide_as(&proofs[0], &ask, Answer::Once),
        house.decide_as(&proofs[1], &ask, Answer::Deny),
    );
    let failed: Vec<&str> =
        [&one, &two].iter().filter_map(|answer| answer.as_ref().err()).map(|e| e.code()).collect();
    assert_eq!(failed, ["ask_settled"]);
}

#[tokio::test]
async fn b067_standing_and_destructive_answers_need_a_fresh_proof() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.publish(&caller, "delete", &destroys()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.sandbox.plays("shop__delete", [Step::Send("DELETE", "/orders", "")]);
    house.call(&caller, "create").await;
    house.call(&caller, "delete").await;
    let console = house.console().await;
    let asks = house.engine.asks().await.unwrap();
    let of = |name: &str| asks.iter().find(|ask| ask.tool == name).unwrap();
    let (create, delete) = (of("shop__create"), of("shop__delete"));
    for (ask, answer) in [(create, Answer::Standing), (delete, Answer::Once)] {
        let refused = house.decide_as(&console, ask, answer).await.unwrap_err();
        assert_eq!(refused.code(), "person_required");
    }
    house.decide_as(&console, create, Answer::Once).await.unwrap();
    house.decide(delete, Answer::Once).await.unwrap();
    house.call(&caller, "delete").await;
    assert_eq!(house.let_go("DELETE").await, 1);
}

#[tokio::test]
async fn decision23_a_version_with_an_any_site_gets_only_once() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    let any = module("Sends anything.", r#""/orders", { method: String(input.n) }"#);
    house.publish(&caller, "any", &any).await;
    house.sandbox.plays("shop__any", posts("{}"));
    house.call(&caller, "any").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    assert!(!ask.can_stand);
    let refused = house.decide(&ask, Answer::Standing).await.unwrap_err();
    assert_eq!(refused.code(), "argument_invalid");
    house.decide(&ask, Answer::Once).await.unwrap();
}

#[tokio::test]
async fn decision23_a_person_may_let_from_now_on_cover_any_site_of_a_connection() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    let connection = house.engine.connections().await.unwrap().remove(0);
    let overrides = Overrides { standing_any: true, ..connection.overrides.clone() };
    let change = ConnectionChange { overrides: Some(overrides), ..ConnectionChange::default() };
    let proof = house.person().await;
    house.engine.change_connection(&proof, &connection.id, change).await.unwrap();
    let any = module("Sends anything.", r#""/orders", { method: String(input.n) }"#);
    house.publish(&caller, "any", &any).await;
    house.sandbox.plays("shop__any", posts("{}"));
    house.call(&caller, "any").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    assert!(ask.can_stand);
    house.decide(&ask, Answer::Standing).await.unwrap();
    let called = house.call(&caller, "any").await;
    assert_eq!(house.let_go("POST").await, 1, "{called:?}");
}

#[tokio::test]
async fn b058_j11_a_republished_tool_asks_again_and_says_why() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    let second = module("Creates one.", r#""/orders", { method: "POST", body: { m: 1 } }"#);
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    house.publish(&caller, "create", &second).await;
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    let ask = house.engine.asks().await.unwrap().remove(0);
    assert_eq!(ask.reason, "the tool was published anew since the last answer");
    assert_eq!(ask.version, 2);

    // going back to what was approved asks as well
    let back = house.publish(&caller, "create", &writes()).await;
    assert_eq!(back.version, 3);
    let state = house.engine.ask(&ask.id).await.unwrap().state;
    assert_eq!(state, "superseded", "a publish supersedes an ask nobody waits for");
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b065_j18_asks_and_approvals_survive_a_restart() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;

    let house = house.restarted().await;
    house.sandbox.plays("shop__create", posts("{}"));
    let ask = house.engine.asks().await.unwrap().remove(0);
    assert_eq!(ask.state, "open", "never auto-granted");
    house.decide(&ask, Answer::Standing).await.unwrap();
    let house = house.restarted().await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn decision29_a_decision_under_another_key_lets_nothing_go() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    let house = house.under_another_key().await;
    house.sandbox.plays("shop__create", posts("{}"));
    // the version's MAC does not hold either: it does not run at all
    assert_eq!(code(&house.call(&caller, "create").await), "store_unavailable");
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn decision24_an_ask_expires_after_a_day() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.clock.advance(crate::house::DAY_MS);
    let mut events = house.engine.events();
    house.engine.sweep().await.unwrap();
    assert!(crate::house::sent(&mut events).contains(&Event::AskSettled(ask.id.clone())));
    let late = house.decide(&ask, Answer::Once).await.unwrap_err();
    assert_eq!(late.code(), "ask_settled");
    assert!(late.to_string().contains("expired"));
    let again = house.call(&caller, "create").await;
    assert_ne!(again.ask.unwrap().id, ask.id.to_string(), "asked anew");
}

#[tokio::test]
async fn decision11_open_asks_of_an_agent_are_bounded() {
    let house = House::waiting(Duration::from_millis(10)).await;
    let (_, caller) = house.furnished().await;
    for number in 0..9 {
        let name = format!("create-{number}");
        house.sandbox.plays(&format!("shop__{name}"), posts("{}"));
        let source = module(&format!("Creates {number}."), r#""/orders", { method: "POST" }"#);
        house.publish(&caller, &name, &source).await;
        let envelope = house.call(&caller, &name).await;
        match number {
            0..8 => assert_eq!(envelope.status, Status::AwaitingApproval),
            // The module is told; this one passes the code on as its result.
            _ => assert_eq!(envelope.result, Some(serde_json::json!(["rate_limited"]))),
        }
    }
    assert_eq!(house.engine.asks().await.unwrap().len(), 8);
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b024_a_demotion_keeps_the_approval() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    house.engine.demote(&caller, &tool("create")).await.unwrap();
    house.engine.promote(&caller, &tool("create")).await.unwrap();
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1, "b036: re-promoted, it runs without asking");
}

#[tokio::test]
async fn b039_a_caller_who_goes_away_leaves_the_ask_and_sends_nothing() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    call.abort();
    let _ = call.await;
    // the run ends: nobody waits any more
    while house.engine.ask(&ask.id).await.unwrap().waiting_run.is_some() {
        tokio::task::yield_now().await;
    }
    house.decide(&ask, Answer::Once).await.unwrap();
    assert_eq!(house.let_go("POST").await, 0, "nothing is sent by a decision alone");
}

#[tokio::test]
async fn decision15_a_person_may_publish_and_the_tool_still_asks_for_the_agent() {
    let house = House::waiting(PARKS).await;
    let (agent, caller) = house.furnished().await;
    let publish = PublishRequest { tool: tool("create"), connection: None, source: writes() };
    let publisher = Publisher::Person { promote_for: None };
    assert!(!house.engine.publish(&publisher, publish).await.unwrap().promoted);
    house.sandbox.plays("shop__create", posts("{}"));
    let stand_in = house.engine.stand_in(&house.person().await, &agent.id).await.unwrap();
    let envelope = house.call_as(&stand_in, request("create")).await;
    assert_eq!(envelope.status, Status::AwaitingApproval);
    assert!(house.listed(&caller).await.is_empty());
}

#[tokio::test]
async fn b062_fifty_concurrent_first_calls_open_one_ask() {
    let house = House::waiting(Duration::from_secs(2)).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let calls: Vec<_> = (0..50).map(|_| house.calling(&caller, "create")).collect();
    let mut ended = std::collections::BTreeMap::<String, usize>::new();
    for call in calls {
        let envelope = call.await.unwrap();
        let how = match envelope.status {
            Status::AwaitingApproval => "awaiting".to_owned(),
            _ => code(&envelope).to_owned(),
        };
        *ended.entry(how).or_default() += 1;
    }
    assert_eq!(house.engine.asks().await.unwrap().len(), 1, "{ended:?}");
    assert_eq!(house.let_go("POST").await, 0);
    // more than an agent may have under way are told to come again
    assert_eq!(ended.values().sum::<usize>(), 50);
    assert!(ended.keys().all(|how| how == "awaiting" || how == "busy"), "{ended:?}");
}
