//! Different writes of one tool by one agent: each is shown as what it is, and
//! in turn. One open ask for each agent and tool never means that a person is
//! sent to a question about another request. And what ends a question without a
//! decision, or a *once* that nothing was sent with.

use crate::house::{House, code, module, posts, request, tool, writes};
use cambium_engine::{AskView, Caller, Envelope, Status};
use cambium_proxy::{Answer, AskId, AuditKind};
use std::sync::Arc;
use std::time::Duration;

const PARKS: Duration = Duration::from_millis(100);
const ONE: &str = r#"{"n":1}"#;
const TWO: &str = r#"{"n":2}"#;

/// Rows of the audit that say what became of a question.
async fn became(house: &House) -> Vec<(String, Option<String>)> {
    let events = house.audited().await.into_iter();
    events
        .filter(|event| event.kind == AuditKind::Change && event.approval.is_some())
        .map(|event| (event.rule, event.approval))
        .collect()
}

/// A *once* that nothing was sent with.
async fn unused_once(house: &House, caller: &Caller) -> AskView {
    house.publish(caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let asked = house.call(caller, "create").await;
    let ask = ask_of(house, &asked).await;
    house.decide(&ask, Answer::Once).await.unwrap()
}

async fn ask_of(house: &House, envelope: &Envelope) -> AskView {
    let id = envelope.ask.as_ref().expect("a question of its own").id.clone();
    house.engine.ask(&AskId::new(id)).await.unwrap()
}

#[tokio::test]
async fn b062_a_given_up_question_does_not_stand_in_for_another_request() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let first = house.call(&caller, "create").await;
    let again = house.call(&caller, "create").await;
    assert_eq!(again.ask, first.ask, "the same bytes are never asked about twice");
    assert!(became(&house).await.is_empty());

    house.sandbox.plays("shop__create", posts(TWO));
    let second = house.call(&caller, "create").await;
    assert_eq!(second.status, Status::AwaitingApproval);
    let shown = ask_of(&house, &second).await;
    assert_eq!(shown.body.as_deref(), Some(TWO), "its own bytes");
    let stale = ask_of(&house, &first).await;
    assert_eq!(stale.state, "superseded");
    assert_eq!(became(&house).await, [("ask_superseded".into(), Some(stale.id.to_string()))]);
    let late = house.decide(&stale, Answer::Once).await.unwrap_err();
    assert_eq!(late.code(), "ask_settled", "nothing is permitted by it");

    house.decide(&shown, Answer::Once).await.unwrap();
    house.sandbox.plays("shop__create", posts(ONE));
    let other = house.call(&caller, "create").await;
    assert_eq!(other.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0, "no permit is left for the stale one");
    house.sandbox.plays("shop__create", posts(TWO));
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1, "the kept answer is found by its own bytes");
}

#[tokio::test]
async fn b062_a_request_behind_one_that_waits_is_told_so_and_asked_after_it() {
    let house = House::waiting(Duration::from_secs(2)).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let mut events = house.engine.events();
    let mut detached = request("create");
    detached.detached = true;
    let waits = house.call_as(&caller, detached).await.run.unwrap();
    let ask = house.opened(&mut events).await;

    house.sandbox.plays("shop__create", posts(TWO));
    let behind = house.call(&caller, "create").await;
    assert_eq!(behind.status, Status::AwaitingApproval);
    assert_eq!(behind.ask, None, "no question is passed off as its own");
    let first = behind.behind.unwrap();
    assert_eq!(first.id, ask.id.to_string());
    let said = behind.message.unwrap();
    assert!(said.contains("another request of this tool first"), "{said}");
    assert!(said.contains(&first.link), "{said}");
    assert_eq!(house.engine.ask(&ask.id).await.unwrap().state, "open", "it is still waited for");

    let call = house.calling(&caller, "create");
    while house.engine.ask(&ask.id).await.unwrap().waiting_run.is_none() {
        tokio::task::yield_now().await;
    }
    house.decide(&ask, Answer::Once).await.unwrap();
    let next = house.opened(&mut events).await;
    assert_eq!(next.body.as_deref(), Some(TWO));
    let ended = house.engine.wait_for_process(&caller, &waits, Duration::from_secs(20)).await;
    assert_eq!(ended.unwrap().status, Status::Ok);
    assert_eq!(house.let_go("POST").await, 1, "once was for the request it showed");
    house.decide(&next, Answer::Deny).await.unwrap();
    assert_eq!(code(&call.await.unwrap()), "tool_denied");
}

#[tokio::test]
async fn b062_when_the_first_caller_goes_away_the_one_behind_is_asked() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let mut events = house.engine.events();
    let gone = house.calling(&caller, "create");
    let stale = house.opened(&mut events).await;
    house.sandbox.plays("shop__create", posts(TWO));
    let mut detached = request("create");
    detached.detached = true;
    let run = house.call_as(&caller, detached).await.run.unwrap();
    let behind = async || {
        let looked = house.engine.process(&caller, &run).await.unwrap();
        (looked.ask, looked.envelope.message.unwrap_or_default())
    };
    while !behind().await.1.contains("another request") {
        tokio::task::yield_now().await;
    }
    assert_eq!(behind().await.0, None);
    gone.abort();
    let next = house.opened(&mut events).await;
    assert_eq!(next.body.as_deref(), Some(TWO));
    assert_eq!(house.engine.ask(&stale.id).await.unwrap().state, "superseded");
    assert_eq!(behind().await.0, Some(next.id.clone()));
    house.decide(&next, Answer::Once).await.unwrap();
    let ended = house.engine.wait_for_process(&caller, &run, Duration::from_secs(20)).await;
    assert_eq!(ended.unwrap().status, Status::Ok);
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn b062_calls_with_other_bytes_at_once_lose_and_double_nothing() {
    let house = House::waiting(Duration::from_secs(20)).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    let mut events = house.engine.events();
    let mut calls = Vec::new();
    for body in [r#"{"n":0}"#, ONE, TWO, r#"{"n":3}"#] {
        house.sandbox.plays("shop__create", posts(body));
        let before = house.sandbox.ran.lock().unwrap().len();
        calls.push(house.calling(&caller, "create"));
        while house.sandbox.ran.lock().unwrap().len() == before {
            tokio::task::yield_now().await;
        }
    }
    let mut shown = std::collections::BTreeSet::new();
    for round in 1..=calls.len() {
        let ask = house.opened(&mut events).await;
        shown.insert(ask.body.clone().unwrap());
        house.decide(&ask, Answer::Once).await.unwrap();
        while house.let_go("POST").await < round {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(shown.len(), 4, "each was shown once: {shown:?}");
    for call in calls {
        assert_eq!(call.await.unwrap().status, Status::Ok);
    }
    assert_eq!(house.let_go("POST").await, 4);
    assert!(became(&house).await.is_empty(), "none took the place of one that was waited for");
}

#[tokio::test]
async fn b059_a_question_put_aside_permits_and_refuses_nothing() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    let console = house.console().await;
    let aside = house.engine.dismiss(&console, &ask.id).await.unwrap();
    assert_eq!(aside.state, "dismissed");
    let ended = call.await.unwrap();
    assert_eq!((code(&ended), ended.retryable), ("ask_dismissed", Some(false)));
    assert_eq!(became(&house).await, [("ask_dismissed".into(), Some(ask.id.to_string()))]);
    assert!(house.engine.standing_answers().await.unwrap().is_empty());
    let twice = house.engine.dismiss(&console, &ask.id).await.unwrap_err();
    assert_eq!(twice.code(), "ask_settled");
    assert_eq!(house.decide(&ask, Answer::Once).await.unwrap_err().code(), "ask_settled");

    let call = house.calling(&caller, "create");
    let again = house.opened(&mut events).await;
    assert_ne!(again.id, ask.id, "the same request asks again");
    house.decide(&again, Answer::Once).await.unwrap();
    call.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1, "the tool was never refused");
}

#[tokio::test]
async fn b059_putting_one_aside_asks_about_the_one_behind_it() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let mut events = house.engine.events();
    let first = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.sandbox.plays("shop__create", posts(TWO));
    let mut detached = request("create");
    detached.detached = true;
    let run = house.call_as(&caller, detached).await.run.unwrap();
    let looked = async || house.engine.process(&caller, &run).await.unwrap().envelope.message;
    while looked().await.is_none() {
        tokio::task::yield_now().await;
    }
    house.engine.dismiss(&house.console().await, &ask.id).await.unwrap();
    assert_eq!(code(&first.await.unwrap()), "ask_dismissed");
    let next = house.opened(&mut events).await;
    assert_eq!(next.body.as_deref(), Some(TWO));
    house.decide(&next, Answer::Once).await.unwrap();
    let ended = house.engine.wait_for_process(&caller, &run, Duration::from_secs(20)).await;
    assert_eq!(ended.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn b065_a_once_nothing_was_sent_with_is_seen_and_can_be_taken_back() {
    let house = House::waiting(PARKS).await;
    let (agent, caller) = house.furnished().await;
    let given = unused_once(&house, &caller).await;
    assert_eq!(given.once, Some("unused"));
    assert_eq!(given.excerpt, ONE);
    let stands = house.engine.standing_answers().await.unwrap();
    let [once] = stands.as_slice() else { panic!("{stands:?}") };
    assert_eq!((once.answer, &once.ask), (Answer::Once, &given.id));
    assert_eq!(once.request.as_deref(), Some(&*format!("POST {}/orders", given.authority)));
    assert_eq!(once.excerpt.as_deref(), Some(ONE));

    house.engine.withdraw(&house.console().await, &agent.id, &tool("create")).await.unwrap();
    assert!(house.engine.standing_answers().await.unwrap().is_empty());
    assert_eq!(house.engine.ask(&given.id).await.unwrap().once, Some("ended"));
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0);

    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Once).await.unwrap();
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1);
    assert_eq!(house.engine.ask(&ask.id).await.unwrap().once, Some("used"));
    assert!(house.engine.standing_answers().await.unwrap().is_empty(), "used, it stands no more");
}

#[tokio::test]
async fn b066_every_time_ends_a_once_nothing_was_sent_with() {
    let house = House::waiting(PARKS).await;
    let (agent, caller) = house.furnished().await;
    unused_once(&house, &caller).await;
    let person = house.person().await;
    house.engine.set_every_time(&person, &agent.id, &tool("create"), true).await.unwrap();
    let asked = house.call(&caller, "create").await;
    assert_eq!(asked.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0);
    // one given after the switch is for its request, as before
    let ask = ask_of(&house, &asked).await;
    house.decide(&ask, Answer::Once).await.unwrap();
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1);
}

#[tokio::test]
async fn b058_a_once_ends_with_its_version() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    let given = unused_once(&house, &caller).await;
    let second = module("Creates one.", r#""/orders", { method: "POST", body: { m: 1 } }"#);
    house.publish(&caller, "create", &second).await;
    assert!(house.engine.standing_answers().await.unwrap().is_empty());
    assert_eq!(house.engine.ask(&given.id).await.unwrap().once, Some("ended"));
    // back on the version it was given for, the same bytes ask again
    let back = async |number| {
        let person = house.person().await;
        house.engine.rollback(&person, &tool("create"), number).await.unwrap();
    };
    back(1).await;
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0);

    // and so does one that a rollback leaves behind
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Once).await.unwrap();
    back(2).await;
    back(1).await;
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b059_a_publish_does_not_lift_a_no() {
    let house = House::waiting(PARKS).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let asked = house.call(&caller, "create").await;
    house.decide(&ask_of(&house, &asked).await, Answer::Deny).await.unwrap();
    let second = module("Creates one.", r#""/orders", { method: "POST", body: { m: 1 } }"#);
    house.publish(&caller, "create", &second).await;
    assert_eq!(code(&house.call(&caller, "create").await), "tool_denied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b062_calls_that_give_up_and_come_again_send_what_was_allowed_and_nothing_else() {
    let house = Arc::new(House::waiting(Duration::from_millis(30)).await);
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(ONE));
    let mut tasks = tokio::task::JoinSet::new();
    for body in [ONE, TWO, r#"{"n":3}"#] {
        let (house, caller) = (house.clone(), caller.clone());
        tasks.spawn(async move {
            for _ in 0..12 {
                house.sandbox.plays("shop__create", posts(body));
                let (one, two) =
                    tokio::join!(house.call(&caller, "create"), house.call(&caller, "create"));
                for envelope in [one, two] {
                    let own = envelope.ask.is_some() != envelope.behind.is_some();
                    let waits = envelope.status == Status::AwaitingApproval;
                    assert!(!waits || own, "one question, its own or the one before: {envelope:?}");
                }
            }
        });
    }
    // A person who allows whatever is open, often too late.
    let (person, clicks) = (house.person().await, house.clone());
    let clicking = tokio::spawn(async move {
        loop {
            for ask in clicks.engine.asks().await.unwrap() {
                if ask.state == "open" {
                    // superseded while it was read: told so, and nothing else
                    if let Err(error) = clicks.decide_as(&person, &ask, Answer::Once).await {
                        assert_eq!(error.code(), "ask_settled");
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    });
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    clicking.abort();
    assert!(clicking.await.is_err_and(|error| error.is_cancelled()), "no click failed");
    let asks = house.engine.asks().await.unwrap();
    let mut used: Vec<String> =
        asks.iter().filter(|ask| ask.once == Some("used")).map(|ask| ask.digest.clone()).collect();
    let intents = house.audited_to_the_end().await.into_iter();
    let intents = intents.filter(|event| event.kind == AuditKind::Intent);
    let mut sent: Vec<String> = intents.filter_map(|event| event.digest).collect();
    used.sort();
    sent.sort();
    assert!(!sent.is_empty());
    assert_eq!(sent, used, "each permit let exactly its own bytes go, once");
}
