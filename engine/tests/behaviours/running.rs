//! Behaviours D: what is refused before a run, what a run answers, and what is
//! recorded of it.

use crate::house::{House, START_MS, Step, code, module, posts, reads, request, tool, writes};
use cambium_engine::{CallRequest, Live, Outcome, Status, ToolResult};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn b029_invalid_input_is_refused_before_anything_runs() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let input = json!({ "n": 4, "x": 1 });
    let envelope = house.call_as(&caller, CallRequest { input, ..request("list") }).await;
    assert_eq!(code(&envelope), "input_invalid");
    assert_eq!(envelope.details.unwrap().as_array().unwrap().len(), 2);
    assert!(house.sandbox.ran.lock().unwrap().is_empty());
    let set = house.engine.working_set(&agent.id).await.unwrap();
    assert_eq!(set[0].last_used_ms, None, "b038: not a use");
}

#[tokio::test]
async fn b030_a_dry_run_previews_writes_and_asks_nobody() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts(r#"{"n":1}"#));
    let envelope = house.dry_run(&caller, "create").await;
    assert_eq!(envelope.status, Status::DryRun);
    let preview = envelope.preview.unwrap();
    assert_eq!(preview.len(), 1);
    assert_eq!(preview[0].request.method, "POST");
    assert_eq!(preview[0].request.body.as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(envelope.result, Some(json!([202])), "b031: a stopped request answers 202");
    assert!(envelope.notes.iter().any(|note| note.contains("not verified")));
    assert!(house.engine.asks().await.unwrap().is_empty());
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b031_a_dry_run_reports_what_was_thrown_and_refused() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let steps = [Step::Send("GET", "//evil.example", ""), Step::Throw("no luck")];
    house.sandbox.plays("shop__list", steps);
    let envelope = house.dry_run(&caller, "list").await;
    assert_eq!(envelope.status, Status::DryRun);
    assert!(envelope.notes.iter().any(|note| note == "the module threw: no luck"));
    assert!(envelope.notes.iter().any(|note| note.contains("was refused: path_")), "{envelope:?}");
}

#[tokio::test]
async fn b031_what_we_answer_to_a_stopped_request_is_no_answer_of_the_vendor() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    let passed_on =
        ToolResult::Response { status: 202, content_type: String::new(), body: Vec::new().into() };
    let steps = [posts("{}"), vec![Step::End(Outcome::Ok(passed_on))]].concat();
    house.sandbox.plays("shop__create", steps);
    let envelope = house.dry_run(&caller, "create").await;
    assert_eq!((envelope.status, envelope.vendor), (Status::DryRun, None));

    house.publish(&caller, "list", &reads()).await;
    let steps = [Step::Send("GET", "//evil.example", ""), Step::Return(json!(null))];
    house.sandbox.plays("shop__list", steps);
    let envelope = house.dry_run(&caller, "list").await;
    assert_eq!(envelope.status, Status::DryRun);
    let refused = &envelope.details.unwrap()["refused"][0];
    assert!(refused["code"].as_str().unwrap().starts_with("path_"), "{refused}");
}

#[tokio::test]
async fn b033_a_timeout_out_of_range_is_clamped_and_said() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    for (asked, used) in [(0, 1), (4_000, 300)] {
        let call = CallRequest { timeout_seconds: Some(asked), ..request("list") };
        let envelope = house.call_as(&caller, call).await;
        let said = format!("timeoutSeconds {asked} is outside 1 to 300; {used} was used");
        assert_eq!(envelope.notes, [said]);
    }
}

#[tokio::test]
async fn b033_how_a_run_ended_is_its_code() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let cases = [
        (Outcome::Timeout, "timeout", true),
        (Outcome::CpuLimit, "cpu_limit", false),
        (Outcome::MemoryLimit, "memory_limit", false),
        (Outcome::OutputLimit, "output_limit", false),
        (Outcome::Crashed { signal: 31 }, "crashed", false),
        (Outcome::NeverSettled, "never_settled", false),
        (Outcome::Unavailable("no fork".into()), "sandbox_unavailable", true),
    ];
    for (outcome, expected, retryable) in cases {
        house.sandbox.plays("shop__list", [Step::End(outcome)]);
        let envelope = house.call(&caller, "list").await;
        assert_eq!((code(&envelope), envelope.retryable), (expected, Some(retryable)));
        assert!(envelope.run.is_some() && envelope.next.is_some(), "b040");
    }
    house.sandbox.plays("shop__list", [Step::Panic]);
    assert_eq!(code(&house.call(&caller, "list").await), "crashed");
    house.sandbox.plays("shop__list", [Step::Throw("Error: no")]);
    let thrown = house.call(&caller, "list").await;
    assert_eq!(code(&thrown), "tool_error");
    assert_eq!(thrown.details.unwrap()["stack"], "at module:1:1");
}

#[tokio::test]
async fn b045_a_run_beyond_its_hints_is_ended() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.sandbox.plays("shop__list", posts("{}"));
    assert_eq!(code(&house.call(&caller, "list").await), "method_exceeds_hint");
    assert_eq!(house.let_go("POST").await, 0);
}

#[tokio::test]
async fn b038_a_run_that_executed_is_a_use_and_dry_runs_are_too() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let used = || async { house.engine.working_set(&agent.id).await.unwrap()[0].last_used_ms };
    house.sandbox.plays("shop__list", [Step::End(Outcome::Unavailable("no".into()))]);
    house.call(&caller, "list").await;
    assert_eq!(used().await, None, "nothing executed");
    house.sandbox.plays("shop__list", [Step::Throw("no")]);
    house.call(&caller, "list").await;
    assert_eq!(used().await, Some(START_MS));
    house.clock.advance(5);
    house.dry_run(&caller, "list").await;
    assert_eq!(used().await, Some(START_MS + 5));
}

#[tokio::test]
async fn b034_a_run_keeps_the_version_it_started_on() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let steps = [
        Step::Wait(here.clone(), word.clone()),
        Step::Send("GET", "/orders", ""),
        Step::Return(json!("done")),
    ];
    house.sandbox.plays("shop__list", steps);
    let call = house.calling(&caller, "list");
    here.notified().await;
    house.publish(&caller, "list", &module("Lists invoices.", r#""/invoices""#)).await;
    word.notify_one();
    assert_eq!(call.await.unwrap().result, Some(json!("done")));
    assert_eq!(house.let_go("GET").await, 1, "its own call sites, not the new version's");
}

#[tokio::test]
async fn b037_a_long_result_is_cut_said_and_kept() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let long = "é".repeat(70_000);
    house.sandbox.plays("shop__list", [Step::Return(json!(long))]);
    let envelope = house.call(&caller, "list").await;
    let run = cambium_proxy::RunId::new(envelope.run.unwrap());
    assert_eq!(envelope.result.unwrap().as_str().unwrap().chars().count(), 64_000);
    assert!(envelope.notes[0].contains("70000 characters"), "{:?}", envelope.notes);
    use cambium_engine::port::RunStore;
    let kept = house.store.result(&caller.agent().id, &run).await.unwrap().unwrap();
    assert_eq!(kept.text, long);
    let other = house.agent("codex").await.0.id;
    assert!(house.store.result(&other, &run).await.unwrap().is_none(), "its own agent's only");
}

#[tokio::test]
async fn b036_a_vendor_refusal_points_at_request_credential() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let response = ToolResult::Response {
        status: 401,
        content_type: "application/json; charset=utf-8".into(),
        body: br#"{"error":"token"}"#.to_vec().into(),
    };
    house.sandbox.plays("shop__list", [Step::End(Outcome::Ok(response))]);
    let envelope = house.call(&caller, "list").await;
    assert_eq!(envelope.status, Status::Ok);
    assert_eq!(envelope.vendor.unwrap().status, 401);
    assert_eq!(envelope.result, Some(json!({ "error": "token" })));
    let connection = house.engine.connection("shop").await.unwrap();
    let next = envelope.next.unwrap();
    assert!(next.contains("request_credential") && next.contains(connection.id.as_str()));
}

#[tokio::test]
async fn b037_other_bytes_go_beside_the_text() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let response = ToolResult::Response {
        status: 200,
        content_type: "image/png".into(),
        body: vec![0x89, b'P', b'N', b'G', 0xff].into(),
    };
    house.sandbox.plays("shop__list", [Step::End(Outcome::Ok(response))]);
    let envelope = house.call(&caller, "list").await;
    let content = envelope.content.unwrap();
    assert_eq!((content.mime_type.as_str(), content.base64.as_str()), ("image/png", "iVBOR/8="));
    assert_eq!(envelope.result, None);
}

#[tokio::test]
async fn b039_cancelling_ends_the_run() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    house.sandbox.plays("shop__list", [Step::Wait(here.clone(), word)]);
    let cancel = CancellationToken::new();
    let call = {
        let (engine, caller, live) =
            (house.engine.clone(), caller.clone(), Live::new(cancel.clone()));
        tokio::spawn(async move { engine.call(&caller, request("list"), live).await })
    };
    here.notified().await;
    cancel.cancel();
    assert_eq!(code(&call.await.unwrap()), "cancelled");
}

#[tokio::test]
async fn b032_a_detached_run_is_collected_later_by_its_agent_only() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let (_, other) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    house
        .sandbox
        .plays("shop__list", [Step::Wait(here.clone(), word.clone()), Step::Return(json!("late"))]);
    let call = CallRequest { detached: true, ..request("list") };
    let envelope = house.call_as(&caller, call).await;
    assert_eq!(envelope.status, Status::Running);
    let run = envelope.run.unwrap();
    here.notified().await;
    let wait = |caller, seconds| house.engine.wait_for_process(caller, &run, seconds);
    let early = wait(&caller, Duration::from_millis(1)).await.unwrap();
    assert_eq!(early.status, Status::Running);
    assert_eq!(wait(&other, Duration::ZERO).await.unwrap_err().code(), "run_not_found");
    word.notify_one();
    let done = wait(&caller, Duration::from_secs(20)).await.unwrap();
    assert_eq!((done.status, done.result), (Status::Ok, Some(json!("late"))));
    let again = wait(&caller, Duration::ZERO).await.unwrap();
    assert_eq!(again.status, Status::Ok);

    let call = CallRequest { detached: true, dry_run: true, ..request("list") };
    word.notify_one();
    let waited = house.call_as(&caller, call).await;
    assert_eq!(waited.status, Status::DryRun, "a dry run is waited");
}

#[tokio::test]
async fn b027_an_agent_may_demote_what_runs_and_the_run_finishes() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let steps = [Step::Wait(here.clone(), word.clone()), Step::Return(json!("done"))];
    house.sandbox.plays("shop__list", steps);
    let call = house.calling(&caller, "list");
    here.notified().await;
    assert_eq!(house.engine.demote(&caller, &tool("list")).await.unwrap(), 0);
    assert!(house.listed(&caller).await.is_empty());
    word.notify_one();
    let envelope = call.await.unwrap();
    assert_eq!((envelope.status, envelope.result), (Status::Ok, Some(json!("done"))));
}

#[tokio::test]
async fn b035_runs_of_a_dead_node_end_as_lost() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    house.sandbox.plays("shop__list", [Step::Wait(here.clone(), word)]);
    let call = CallRequest { detached: true, ..request("list") };
    let run = house.call_as(&caller, call).await.run.unwrap();
    here.notified().await;
    use cambium_engine::port::RunStore;
    assert_eq!(house.store.lasting_runs(&agent.id).await.unwrap(), 1);
    let again = house.restarted().await;
    assert_eq!(again.store.lasting_runs(&agent.id).await.unwrap(), 0);
    let lost = again.engine.wait_for_process(&caller, &run, Duration::ZERO).await.unwrap_err();
    assert_eq!(lost.code(), "run_lost");
}

#[tokio::test]
async fn decision11_runs_of_one_agent_are_bounded_and_drain_ends_them() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let (_, other) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    house.sandbox.plays("shop__list", [Step::Wait(here.clone(), word)]);
    let calls: Vec<_> = (0..8).map(|_| house.calling(&caller, "list")).collect();
    while house.sandbox.ran.lock().unwrap().len() < 8 {
        tokio::task::yield_now().await;
    }
    let busy = house.call(&caller, "list").await;
    assert_eq!((code(&busy), busy.retryable), ("busy", Some(true)));
    house.engine.drain(Duration::ZERO).await;
    for call in calls {
        assert_eq!(code(&call.await.unwrap()), "cancelled");
    }
    assert_eq!(code(&house.call(&other, "list").await), "busy", "draining admits nothing");
    use cambium_engine::port::RunStore;
    assert_eq!(house.store.lasting_runs(&caller.agent().id).await.unwrap(), 0);
}

#[tokio::test]
async fn the_sandbox_gets_what_the_check_emitted() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    house.call(&caller, "list").await;
    let ran = house.sandbox.ran.lock().unwrap().clone();
    assert_eq!(ran[0].0, tool("list").to_string());
    assert!(!ran[0].1.contains("ctx: Context"), "types are stripped");
}
