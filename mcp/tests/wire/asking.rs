//! A write is put to the person through their own harness, in both eras over
//! both transports: only when that was switched on, and only by a yes in the
//! form that a person had time to read.

use super::support::{
    Client, Era, Form, Over, TestAgent, WRITE, World, connect_asked, connect_paged, object,
};
use cambium_engine::{InBand, ToolName};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequestParams, ElicitResult, ElicitationAction,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

const WAYS: [(Over, Era); 4] = [
    (Over::Http, Era::Initialize),
    (Over::Http, Era::Discover),
    (Over::Stream, Era::Initialize),
    (Over::Stream, Era::Discover),
];
/// Far less than a call waits for a person, far more than an answer takes.
const AT_ONCE: Duration = Duration::from_secs(25);
/// Longer than it takes to read a form.
const READ_MS: i64 = 2_000;

async fn house(
    over: Over,
    era: Era,
    setting: InBand,
    wait: Duration,
) -> (World, TestAgent, Client, UnboundedReceiver<Form>) {
    let world = World::waiting(wait).await;
    let agent = world.agent("one").await;
    world.publish("acme", "create-order", WRITE).await;
    world.engine.set_in_band(&world.proof, &agent.id, setting).await.unwrap();
    let (client, forms) = connect_asked(&world, &agent.token, over, era).await;
    (world, agent, client, forms)
}

async fn end(world: World, client: Client) {
    client.service.cancel().await.unwrap();
    world.close().await;
}

fn yes(content: Value) -> ElicitResult {
    let mut result = ElicitResult::new(ElicitationAction::Accept);
    result.content = Some(content);
    result
}

async fn shown(forms: &mut UnboundedReceiver<Form>) -> Form {
    tokio::time::timeout(Duration::from_secs(20), forms.recv()).await.unwrap().unwrap()
}

async fn states(world: &World) -> Vec<String> {
    world.engine.asks().await.unwrap().into_iter().map(|ask| ask.state).collect()
}

/// Calls and answers the one form that is shown.
async fn call_answering(
    client: &Client,
    forms: &mut UnboundedReceiver<Form>,
    answer: impl FnOnce(&ElicitRequestParams) -> ElicitResult,
) -> Value {
    let call = client.call("acme__create-order", json!({"do": "post"}));
    let answered = async {
        let form = shown(forms).await;
        let result = answer(&form.params);
        form.answer.send(result).unwrap();
    };
    tokio::join!(call, answered).0.json
}

#[tokio::test]
async fn b061_a_yes_in_the_form_lets_the_write_go_and_its_channel_is_recorded() {
    for (over, era) in WAYS {
        let (world, _, client, mut forms) =
            house(over, era, InBand::Once, Duration::from_secs(50)).await;
        let answer = call_answering(&client, &mut forms, |params| {
            let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } =
                params
            else {
                panic!("{params:?}")
            };
            assert!(message.starts_with("Allow one write? POST https://acme.example/orders"));
            assert!(message.contains("\u{201c}{}\u{201d}"), "the body, exactly: {message}");
            let schema = serde_json::to_value(requested_schema).unwrap();
            assert_eq!(schema["required"], json!(["approve"]));
            assert_eq!(schema["properties"]["approve"]["type"], "boolean");
            assert!(schema["properties"].get("fromNowOn").is_none(), "only once was switched on");
            world.clock.advance(READ_MS);
            yes(json!({"approve": true}))
        })
        .await;
        // it went out: what came of it is the network's
        assert_eq!(answer["status"], "ok", "{over:?} {era:?} {answer}");
        assert_ne!(answer["result"], "awaiting_approval", "{answer}");
        assert_eq!(states(&world).await, ["allowed_once"], "{over:?} {era:?}");
        end(world, client).await;
    }
}

#[tokio::test]
async fn b063_an_answer_faster_than_a_person_reads_is_a_dismissal() {
    for (over, era) in WAYS {
        for result in [yes(json!({"approve": true})), ElicitResult::new(ElicitationAction::Decline)]
        {
            let (world, _, client, mut forms) =
                house(over, era, InBand::Once, Duration::from_secs(50)).await;
            let call = call_answering(&client, &mut forms, |_| result);
            let answer = tokio::time::timeout(AT_ONCE, call).await.expect("it waits no longer");
            assert_eq!(answer["status"], "awaiting_approval", "{over:?} {era:?} {answer}");
            let said = answer["notes"].to_string();
            assert!(said.contains("faster than a person reads"), "{said}");
            assert_eq!(states(&world).await, ["open"], "nothing was recorded");
            end(world, client).await;
        }
    }
}

#[tokio::test]
async fn b061_accepting_without_a_yes_is_no_approval_and_a_no_stands() {
    for (over, era) in WAYS {
        let (world, _, client, mut forms) =
            house(over, era, InBand::Once, Duration::from_secs(50)).await;
        let call = call_answering(&client, &mut forms, |_| {
            world.clock.advance(READ_MS);
            yes(json!({"approve": false}))
        });
        let answer = tokio::time::timeout(AT_ONCE, call).await.expect("it waits no longer");
        assert_eq!(answer["status"], "awaiting_approval", "{over:?} {era:?}");
        let said = answer["notes"].to_string();
        assert!(said.contains("put away without an answer"), "{said}");
        assert_eq!(states(&world).await, ["open"]);
        let answer = call_answering(&client, &mut forms, |_| {
            world.clock.advance(READ_MS);
            ElicitResult::new(ElicitationAction::Decline)
        })
        .await;
        assert_eq!(states(&world).await, ["denied"], "{answer}");
        let again = client.call("acme__create-order", json!({"do": "post"})).await;
        assert_eq!(again.json["code"], "tool_denied");
        end(world, client).await;
    }
}

#[tokio::test]
async fn b067_no_form_is_shown_until_a_person_switched_it_on() {
    for (over, era) in WAYS {
        let (world, _, client, mut forms) =
            house(over, era, InBand::Off, Duration::from_millis(300)).await;
        let answer = client.call("acme__create-order", json!({"do": "post"})).await;
        assert_eq!(answer.json["status"], "awaiting_approval", "{over:?} {era:?}");
        assert!(forms.try_recv().is_err());
        end(world, client).await;
    }
}

#[tokio::test]
async fn b059_from_now_on_in_the_form_stands_when_that_was_switched_on() {
    let (world, agent, client, mut forms) =
        house(Over::Http, Era::Initialize, InBand::Standing, Duration::from_secs(50)).await;
    call_answering(&client, &mut forms, |_| {
        world.clock.advance(READ_MS);
        yes(json!({"approve": true, "fromNowOn": true}))
    })
    .await;
    assert_eq!(states(&world).await, ["allowed_standing"]);
    client.call("acme__create-order", json!({"do": "post"})).await;
    assert!(forms.try_recv().is_err(), "it stands");
    // every time: what stood is taken back, and each write asks
    let tool = ToolName::new("acme", "create-order").unwrap();
    world.engine.set_every_time(&world.proof, &agent.id, &tool, true).await.unwrap();
    for _ in 0..2 {
        let answer = call_answering(&client, &mut forms, |params| {
            let schema = serde_json::to_value(params).unwrap();
            assert!(schema["requestedSchema"]["properties"].get("fromNowOn").is_none());
            world.clock.advance(READ_MS);
            yes(json!({"approve": true}))
        })
        .await;
        assert_eq!(answer["status"], "ok", "{answer}");
    }
    end(world, client).await;
}

#[tokio::test]
async fn decision26_a_state_is_good_once_for_its_own_call() {
    let (world, _, client, _forms) =
        house(Over::Http, Era::Discover, InBand::Once, Duration::from_secs(50)).await;
    let params = || {
        CallToolRequestParams::new("acme__create-order")
            .with_arguments(object(json!({"do": "post"})))
    };
    let first = client.service.call_tool_once(params()).await.unwrap();
    let CallToolResponse::InputRequired(required) = first else { panic!("{first:?}") };
    let state = required.request_state.unwrap();
    assert_eq!(state.len(), 32);
    let answer = serde_json::to_value(yes(json!({"approve": true}))).unwrap();
    let retry = |params: CallToolRequestParams, state: &str| {
        params
            .with_input_responses([("approval".to_owned(), answer.clone())].into())
            .with_request_state(state)
    };
    world.clock.advance(READ_MS);
    // another call, or a state nobody was given, is no retry of it
    let other = CallToolRequestParams::new("acme__create-order");
    for (params, state) in [(other, state.as_str()), (params(), "0123")] {
        let refused = client.service.call_tool_once(retry(params, state)).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(states(&world).await, ["open"]);
    // nothing said: the question stands as it was
    let bare = client.service.call_tool_once(params().with_request_state(&*state)).await.unwrap();
    assert!(matches!(bare, CallToolResponse::InputRequired(_)), "{bare:?}");
    let done = client.service.call_tool_once(retry(params(), &state)).await.unwrap();
    let CallToolResponse::Complete(done) = done else { panic!("{done:?}") };
    assert_eq!(done.structured_content.unwrap()["status"], "ok");
    assert_eq!(states(&world).await, ["allowed_once"]);
    let again = client.service.call_tool_once(retry(params(), &state)).await;
    assert!(again.is_err(), "single use: {again:?}");
    end(world, client).await;
}

#[tokio::test]
async fn b061_a_client_that_opens_pages_is_given_the_asks_page_and_decides_nothing() {
    for over in [Over::Http, Over::Stream] {
        for era in [Era::Initialize, Era::Discover] {
            let world = World::waiting(Duration::from_secs(1)).await;
            let agent = world.agent("one").await;
            world.publish("acme", "create-order", WRITE).await;
            let (client, mut pages) = connect_paged(&world, &agent.token, over, era).await;
            let call = client.call("acme__create-order", json!({"do": "post"}));
            // the newer era has no such question between two requests: the link
            // is in the answer
            let answered = async {
                if era == Era::Initialize {
                    let page = shown(&mut pages).await;
                    let ElicitRequestParams::UrlElicitationParams { url, elicitation_id, .. } =
                        &page.params
                    else {
                        panic!("{:?}", page.params)
                    };
                    assert!(url.ends_with(&format!("/asks/{elicitation_id}")), "{url}");
                    world.clock.advance(READ_MS);
                    page.answer.send(yes(json!({"approve": true}))).unwrap();
                }
            };
            let answer = tokio::join!(call, answered).0.json;
            assert_eq!(answer["status"], "awaiting_approval", "{over:?} {era:?} {answer}");
            assert!(answer["ask"]["link"].as_str().unwrap().contains("/asks/"), "{answer}");
            assert_eq!(states(&world).await, ["open"], "opening a page is no answer");
            end(world, client).await;
        }
    }
}

#[tokio::test]
async fn b062_a_form_shows_the_call_it_is_for_and_no_request_that_was_given_up() {
    for over in [Over::Http, Over::Stream] {
        let (world, _, client, mut forms) =
            house(over, Era::Initialize, InBand::Once, Duration::from_secs(1)).await;
        let call = |body: &'static str| {
            client.call("acme__create-order", json!({"do": "post", "body": body}))
        };
        let given_up = call(r#"{"n":"DDD"}"#).await.json;
        assert_eq!(given_up["status"], "awaiting_approval", "{given_up}");
        let stale = shown(&mut forms).await;
        let answered = async {
            let form = shown(&mut forms).await;
            let ElicitRequestParams::FormElicitationParams { message, .. } = &form.params else {
                panic!("{:?}", form.params)
            };
            assert!(message.contains("EEE") && !message.contains("DDD"), "{message}");
            world.clock.advance(READ_MS);
            // what was shown before is answered late, and permits nothing
            stale.answer.send(yes(json!({"approve": true}))).unwrap();
            form.answer.send(yes(json!({"approve": true}))).unwrap();
        };
        let sent = tokio::join!(call(r#"{"n":"EEE"}"#), answered).0.json;
        assert_eq!(sent["status"], "ok", "{over:?} {sent}");
        let mut all = states(&world).await;
        all.sort();
        assert_eq!(all, ["allowed_once", "superseded"], "{over:?}");
        let stands = world.engine.standing_answers().await.unwrap();
        assert!(stands.is_empty(), "no permit is left over: {stands:?}");
        end(world, client).await;
    }
}
