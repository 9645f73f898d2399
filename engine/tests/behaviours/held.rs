//! What happens to a held run when a person pauses its agent, and how long a
//! request a person can be asked to take in at a glance.

use crate::house::{House, Step, code, posts, request, writes};
use cambium_engine::{AskView, DecideRequest, EngineError, Status};
use cambium_proxy::Answer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const PARKS: Duration = Duration::from_millis(100);
/// Longest body that is shown at a glance: decision 28.
const GLANCE: usize = 4 * 1024;

/// A body of so many bytes.
fn body(bytes: usize) -> &'static str {
    Box::leak("x".repeat(bytes).into_boxed_str())
}

async fn asked_about(house: &House, bytes: usize) -> AskView {
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(body(bytes)));
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    house.engine.asks().await.unwrap().remove(0)
}

async fn answer(
    house: &House,
    ask: &AskView,
    answer: Answer,
    channel: &str,
) -> Result<AskView, EngineError> {
    let request = DecideRequest { ask: ask.id.clone(), answer, channel: channel.into() };
    house.engine.decide(&house.person().await, request).await
}

#[tokio::test]
async fn j01_a_body_of_4096_bytes_is_answered_anywhere_and_from_now_on() {
    let house = House::waiting(PARKS).await;
    let ask = asked_about(&house, GLANCE).await;
    assert!(ask.can_stand);
    assert_eq!(ask.body_bytes, GLANCE);
    let settled = answer(&house, &ask, Answer::Standing, "cli").await.unwrap();
    assert_eq!(settled.state, "allowed_standing");
}

#[tokio::test]
async fn j01_a_longer_body_is_for_the_console_and_for_once() {
    let house = House::waiting(PARKS).await;
    let ask = asked_about(&house, GLANCE + 1).await;
    assert!(!ask.can_stand);
    assert_eq!(ask.body.as_ref().map(String::len), Some(GLANCE + 1), "the console shows it whole");
    for (given, channel, at) in [
        (Answer::Standing, "console", "answer"),
        (Answer::Standing, "cli", "answer"),
        (Answer::Once, "cli", "channel"),
    ] {
        let refused = answer(&house, &ask, given, channel).await.unwrap_err();
        assert_eq!(refused.code(), "argument_invalid", "{given:?} {channel}");
        assert!(refused.to_string().starts_with(&format!("argument `{at}`")), "{refused}");
    }
    let state = house.engine.ask(&ask.id).await.unwrap().state;
    assert_eq!(state, "open", "a refused answer settles nothing");
    let settled = answer(&house, &ask, Answer::Once, "console").await.unwrap();
    assert_eq!(settled.state, "allowed_once");
}

#[tokio::test]
async fn j01_a_longer_body_may_be_refused_from_anywhere() {
    let house = House::waiting(PARKS).await;
    let ask = asked_about(&house, GLANCE + 1).await;
    assert_eq!(answer(&house, &ask, Answer::Deny, "cli").await.unwrap().state, "denied");
}

#[tokio::test]
async fn j07_pausing_an_agent_ends_what_is_held_for_it_and_sends_nothing() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let (other, other_caller) = house.agent("another").await;
    let mut events = house.engine.events();
    let call = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    let others = house.calling(&other_caller, "create");
    let others_ask = house.opened(&mut events).await;
    assert_eq!(others_ask.agent, other.id);

    let proof = house.person().await;
    let pause = |paused| house.engine.set_agent(&proof, &agent.id, None, None, None, Some(paused));
    pause(true).await.unwrap();
    assert_eq!(code(&call.await.unwrap()), "agent_paused");
    let held = house.engine.ask(&ask.id).await.unwrap();
    assert_eq!((held.state.as_str(), held.waiting_run), ("open", None), "the ask stays");
    house.decide(&ask, Answer::Once).await.unwrap();
    assert_eq!(house.let_go("POST").await, 0, "nothing is sent by a decision alone");
    // As it was authenticated before the pause.
    assert_eq!(code(&house.call(&caller, "create").await), "agent_paused");

    house.decide(&others_ask, Answer::Once).await.unwrap();
    others.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1, "another agent's run went on");

    pause(false).await.unwrap();
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 2, "resumed, it finds the answer");
}

#[tokio::test]
async fn j07_pausing_an_agent_ends_its_runs_before_they_write() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    let mut events = house.engine.events();
    let first = house.calling(&caller, "create");
    let ask = house.opened(&mut events).await;
    house.decide(&ask, Answer::Standing).await.unwrap();
    first.await.unwrap();
    assert_eq!(house.let_go("POST").await, 1);

    // A run that may write, between its start and its write; and a detached one.
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut steps = vec![Step::Wait(here.clone(), word.clone())];
    steps.extend(posts("{}"));
    house.sandbox.plays("shop__create", steps);
    let call = house.calling(&caller, "create");
    here.notified().await;
    let mut detached = request("create");
    detached.detached = true;
    let process = house.call_as(&caller, detached).await.run.unwrap();
    here.notified().await;
    let proof = house.person().await;
    house.engine.set_agent(&proof, &agent.id, None, None, None, Some(true)).await.unwrap();
    word.notify_waiters();
    assert_eq!(code(&call.await.unwrap()), "agent_paused");
    let ended = house.engine.wait_for_process(&caller, &process, Duration::from_secs(20)).await;
    assert_eq!(code(&ended.unwrap()), "agent_paused");
    assert_eq!(house.let_go("POST").await, 1);
}
