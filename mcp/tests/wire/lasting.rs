//! What lasts: heartbeats of a long call, a silent call the library's reaper
//! would end, and sessions nobody uses any more. Time stands still here and
//! moves only when a test says so.

use super::support::{Era, Heard, READ, Raw, World, connect_stream, messages, object};
use http::{Method, StatusCode};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;

/// Stops tokio's clock. While a blocking task is open it does not run ahead by
/// itself when everything waits, so that real files and sockets keep their pace.
struct StoppedClock {
    _open: mpsc::Sender<()>,
}

impl StoppedClock {
    fn new() -> Self {
        let (open, closed) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || {
            let _ = closed.recv();
        });
        tokio::time::pause();
        Self { _open: open }
    }

    /// Moves time in steps no timer here is shorter than, and lets what woke
    /// up come to rest.
    async fn pass(&self, seconds: u64) {
        for _ in 0..seconds.div_ceil(5) {
            tokio::time::advance(Duration::from_secs(5)).await;
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn a_long_call_says_every_ten_seconds_that_it_runs() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    let mut client = connect_stream(&world, &agent.token, Era::Initialize).await;
    let clock = StoppedClock::new();
    // the client library gives every request a progress token
    let params = CallToolRequestParams::new("acme__list-orders")
        .with_arguments(object(json!({"do": "wait", "seconds": 55})));
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = client
        .service
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    world.puppet.begun.acquire().await.unwrap().forget();
    // past the tick: timers are rounded up to whole milliseconds
    clock.pass(5).await;
    for beat in 1..=4_u32 {
        clock.pass(10).await;
        let heard = client.heard.recv().await.unwrap();
        let Heard::Progress(progress) = heard else { panic!("{heard:?}") };
        assert!((progress - f64::from(beat * 10)).abs() < 0.1, "{progress}");
    }
    clock.pass(15).await;
    handle.await_response().await.unwrap();
    client.service.cancel().await.unwrap();
    tokio::time::resume();
    world.close().await;
}

#[tokio::test]
async fn a_silent_call_of_more_than_five_minutes_is_not_reaped() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    let router = world.router();
    let session = Raw::session(&agent.token, &router).await;
    let clock = StoppedClock::new();
    let arguments = json!({
        "vendor": "acme", "name": "list-orders", "timeoutSeconds": 300,
        "input": {"do": "wait", "seconds": 340},
    });
    let call = Raw::call(&agent.token, 1, "run_tool", &arguments);
    let response = call.with("mcp-session-id", &session).send(&router).await;
    assert_eq!(response.status(), StatusCode::OK);
    world.puppet.begun.acquire().await.unwrap().forget();
    // Read only afterwards: the pings of the open stream go by another clock.
    clock.pass(345).await;
    let answer = messages(response).await;
    let result = &answer.last().unwrap()["result"]["structuredContent"];
    assert_eq!(result["result"], "waited", "{answer:?}");
    tokio::time::resume();
    world.close().await;
}

#[tokio::test]
async fn a_session_is_closed_when_it_was_idle_for_half_an_hour_and_not_while_it_listens() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let router = world.router();
    let idle = Raw::session(&agent.token, &router).await;
    let listening = Raw::session(&agent.token, &router).await;
    let stream =
        Raw::of(Method::GET, &agent.token).with("mcp-session-id", &listening).send(&router).await;
    assert_eq!(stream.status(), StatusCode::OK);

    let clock = StoppedClock::new();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let ask = |session: &str| Raw::post(&agent.token, &list).with("mcp-session-id", session);
    clock.pass(29 * 60).await;
    let kept = ask(&idle).send(&router).await;
    assert_eq!(kept.status(), StatusCode::OK);
    messages(kept).await;
    clock.pass(29 * 60).await;
    let kept = ask(&idle).send(&router).await;
    assert_eq!(kept.status(), StatusCode::OK, "a request did not count");
    messages(kept).await;
    clock.pass(33 * 60).await;
    assert_eq!(ask(&idle).status(&router).await, StatusCode::NOT_FOUND);
    assert_eq!(ask(&listening).status(&router).await, StatusCode::OK);
    drop(stream);
    tokio::time::resume();
    world.close().await;
}
