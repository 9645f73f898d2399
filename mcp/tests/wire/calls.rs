//! Listing and calling, in both eras over both transports.

use super::support::{Client, Era, Over, READ, WRITE, World, connect, connect_stream, object};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tokio::sync::Semaphore;

const FIXED: [&str; 15] = [
    "find_tool",
    "promote",
    "demote",
    "run_tool",
    "request_connection",
    "request_credential",
    "acquire",
    "acquire_status",
    "wait_for_process",
    "check_tool",
    "publish_tool",
    "read_tool_source",
    "read_file",
    "write_file",
    "execute__acme",
];

const WAYS: [(Over, Era); 4] = [
    (Over::Http, Era::Initialize),
    (Over::Http, Era::Discover),
    (Over::Stream, Era::Initialize),
    (Over::Stream, Era::Discover),
];

/// A house with two tools, the first of them promoted, and a client in it.
async fn with_client(over: Over, era: Era) -> (World, Client) {
    let world = World::new().await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    world.publish("acme", "create-order", WRITE).await;
    world.promote(&agent, "acme", "list-orders").await;
    let client = connect(&world, &agent.token, over, era).await;
    (world, client)
}

async fn end(world: World, client: Client) {
    client.service.cancel().await.unwrap();
    world.close().await;
}

async fn next(of: &Semaphore) {
    of.acquire().await.unwrap().forget();
}

#[tokio::test]
async fn b001_the_list_is_the_fixed_tools_and_exactly_the_working_set() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let mut wanted: Vec<&str> = FIXED.into();
        wanted.push("acme__list-orders");
        assert_eq!(client.names().await, wanted, "{over:?} {era:?}");

        client.call("promote", json!({"vendor": "acme", "name": "create-order"})).await;
        let mut wanted: Vec<&str> = FIXED.into();
        wanted.extend(["acme__create-order", "acme__list-orders"]);
        assert_eq!(client.names().await, wanted, "{over:?} {era:?}");

        let tools = client.service.list_all_tools().await.unwrap();
        let listed = serde_json::to_value(&tools[FIXED.len() + 1]).unwrap();
        assert_eq!(listed["annotations"]["readOnlyHint"], true);
        assert_eq!(listed["annotations"]["destructiveHint"], false);
        assert_eq!(listed["annotations"]["openWorldHint"], true);
        assert_eq!(listed["annotations"]["idempotentHint"], true);
        assert_eq!(listed["inputSchema"]["properties"]["seconds"]["type"], "integer");
        assert!(listed.get("outputSchema").is_none());
        let listed = serde_json::to_value(&tools[FIXED.len()]).unwrap();
        assert_eq!(listed["annotations"]["readOnlyHint"], false);
        assert!(listed["annotations"].get("idempotentHint").is_none());
        end(world, client).await;
    }
}

#[tokio::test]
async fn b002_b007_b009_every_agent_has_the_fixed_tools_in_one_order_and_is_told_of_changes() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let bare = world.agent("bare").await;
        let empty = connect(&world, &bare.token, over, era).await;
        let first = empty.names().await;
        assert_eq!(first, FIXED, "b002: whatever its working set {over:?} {era:?}");
        for _ in 0..3 {
            assert_eq!(empty.names().await, first, "b007");
        }
        let listed = client.names().await;
        assert_eq!(listed[..FIXED.len()], FIXED);
        assert!(listed[FIXED.len()..].is_sorted(), "b007: by wire name");
        let said = client.service.peer_info().unwrap();
        let tools = said.capabilities.tools.clone().unwrap();
        assert_eq!(tools.list_changed, Some(true), "b009 {over:?} {era:?}");
        empty.service.cancel().await.unwrap();
        end(world, client).await;
    }
}

#[tokio::test]
async fn b028_by_name_and_by_run_tool_answer_the_same() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let input = json!({"do": "echo", "seconds": 3});
        let by_name = client.call("acme__list-orders", input.clone()).await;
        assert!(!by_name.is_error, "{}", by_name.json);
        assert_eq!(by_name.json["status"], "ok");
        assert_eq!(by_name.json["result"], input);
        let run = json!({"vendor": "acme", "name": "list-orders", "input": input});
        let by_run_tool = client.call("run_tool", run).await;
        assert_eq!(by_run_tool.json["result"], by_name.json["result"]);
        assert!(by_run_tool.json["run"].is_string());
        assert!(by_run_tool.whole["_meta"]["cambium/times"]["runUs"].is_u64());

        // input omitted is {}
        let bare = client.call("run_tool", json!({"vendor": "acme", "name": "list-orders"})).await;
        assert_eq!(bare.json["result"], json!({}));
        end(world, client).await;
    }
}

#[tokio::test]
async fn b011_an_unknown_argument_is_refused_by_name() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        for tool in FIXED {
            let answer = client.call(tool, json!({"querry": "x"})).await;
            assert!(answer.is_error);
            assert_eq!(answer.json["code"], "argument_invalid");
            assert_eq!(answer.json["retryable"], false);
            let message = answer.json["message"].as_str().unwrap();
            assert!(message.starts_with("argument `querry`: is not an argument of"), "{message}");
        }
        end(world, client).await;
    }
}

#[tokio::test]
async fn b013_a_tool_outside_the_list_runs_by_its_name_and_no_tool_is_not_found() {
    let (world, client) = with_client(Over::Stream, Era::Initialize).await;
    world.publish("acme", "other-orders", READ).await;
    let answer = client.call("acme__other-orders", json!({})).await;
    assert_eq!(answer.json["status"], "ok", "{}", answer.json);
    assert!(!client.names().await.contains(&"acme__other-orders".into()));

    for name in ["acme__nothing", "acquired", "Acme__x", "", "a__b__c"] {
        let answer = client.call(name, json!({})).await;
        assert!(answer.is_error);
        assert_eq!(answer.json["code"], "tool_not_found", "{name}");
        let next = answer.json["next"].as_str().unwrap();
        assert!(next.contains("find_tool") && next.contains("acquire"), "{next}");
    }
    for tool in ["promote", "demote", "run_tool", "read_tool_source"] {
        for name in ["nothing", "Not A Name"] {
            let answer = client.call(tool, json!({"vendor": "acme", "name": name})).await;
            assert_eq!(answer.json["code"], "tool_not_found", "{tool} {name}");
        }
    }
    end(world, client).await;
}

#[tokio::test]
async fn b029_input_that_misses_the_schema_is_refused_with_its_paths() {
    let (world, client) = with_client(Over::Stream, Era::Discover).await;
    let answer = client.call("acme__list-orders", json!({"seconds": "x", "extra": 1})).await;
    assert!(answer.is_error);
    assert_eq!(answer.json["code"], "input_invalid");
    assert_eq!(answer.json["details"].as_array().unwrap().len(), 2, "{}", answer.json);
    end(world, client).await;
}

#[tokio::test]
async fn the_authoring_tools_check_publish_and_show() {
    let (world, client) = with_client(Over::Stream, Era::Initialize).await;
    let checked = client.call("check_tool", json!({"source": WRITE})).await;
    assert_eq!(checked.json["ok"], true, "{}", checked.json);
    assert_eq!(checked.json["readOnlyHint"], false);
    assert!(checked.json.get("javascript").is_none());
    let broken = client.call("check_tool", json!({"source": "export default ("})).await;
    assert!(!broken.is_error, "a check that finds errors has still been made");
    assert_eq!(broken.json["ok"], false);
    assert!(broken.json["diagnostics"][0]["line"].is_u64());

    for tool in ["check_tool", "publish_tool"] {
        let mut arguments = json!({"path": "tool.ts"});
        if tool == "publish_tool" {
            arguments["vendor"] = "acme".into();
            arguments["name"] = "new-tool".into();
        }
        let refused = client.call(tool, arguments).await;
        assert_eq!(refused.json["code"], "argument_invalid");
        assert!(refused.json["message"].as_str().unwrap().contains("no file `tool.ts`"));
    }

    let publish = json!({
        "vendor": "acme", "name": "new-tool", "source": READ, "testInput": {"do": "echo"},
    });
    let published = client.call("publish_tool", publish.clone()).await;
    assert_eq!(published.json["tool"], "acme__new-tool", "{}", published.json);
    assert_eq!(published.json["version"], 1);
    assert_eq!(published.json["promoted"], true);
    assert_eq!(published.json["test"]["status"], "dry_run");
    assert!(client.names().await.contains(&"acme__new-tool".into()));
    let again = client.call("publish_tool", publish).await;
    assert_eq!(again.json["unchanged"], true);

    let broken = json!({"vendor": "acme", "name": "new-tool", "source": "export default ("});
    let refused = client.call("publish_tool", broken).await;
    assert_eq!(refused.json["code"], "check_failed");
    let misnamed = json!({"vendor": "Acme", "name": "new-tool", "source": READ});
    assert_eq!(client.call("publish_tool", misnamed).await.json["code"], "name_invalid");

    let source = client.call("read_tool_source", json!({"vendor": "acme", "name": "new-tool"}));
    assert_eq!(source.await.json["source"], READ);
    let later = json!({"vendor": "acme", "name": "new-tool", "version": 9});
    assert_eq!(client.call("read_tool_source", later).await.json["code"], "version_not_found");

    let found = client.call("find_tool", json!({"query": "create order"})).await;
    assert_eq!(found.json["hits"][0]["wireName"], "acme__create-order", "{}", found.json);
    end(world, client).await;
}

#[tokio::test]
async fn b037_bytes_come_as_a_block_beside_the_envelope() {
    let (world, client) = with_client(Over::Http, Era::Initialize).await;
    let answer = client.call("acme__list-orders", json!({"do": "png"})).await;
    assert_eq!(answer.json["vendor"]["status"], 200);
    assert_eq!(answer.whole["content"][1]["type"], "image");
    assert_eq!(answer.whole["content"][1]["data"], "iVBOR/8=");
    end(world, client).await;
}

#[tokio::test]
async fn a_panic_costs_one_call_and_not_the_session() {
    let (world, client) = with_client(Over::Stream, Era::Initialize).await;
    let answer = client.call("acme__list-orders", json!({"do": "panic"})).await;
    assert!(answer.is_error);
    let answer = client.call("acme__list-orders", json!({})).await;
    assert_eq!(answer.json["status"], "ok");
    end(world, client).await;
}

#[tokio::test]
async fn b039_cancelling_the_request_ends_the_run() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let params = CallToolRequestParams::new("acme__list-orders")
            .with_arguments(object(json!({"do": "never"})));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = client
            .service
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
            .unwrap();
        next(&world.puppet.begun).await;
        handle.cancel(Some("enough".into())).await.unwrap();
        next(&world.puppet.dropped).await;
        end(world, client).await;
    }
}

/// The client's own goodbye cancels nothing: it closes its streams, and over HTTP
/// ends its session or drops the response it was reading.
#[tokio::test]
async fn b064_a_harness_that_is_gone_ends_its_run_at_once() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let params = CallToolRequestParams::new("acme__list-orders")
            .with_arguments(object(json!({"do": "never"})));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = client
            .service
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
            .unwrap();
        next(&world.puppet.begun).await;
        let gone = async {
            let _ = client.service.cancel().await;
            next(&world.puppet.dropped).await;
        };
        // A second: well under the time a person takes to answer.
        let ended = tokio::time::timeout(std::time::Duration::from_secs(1), gone).await;
        assert!(ended.is_ok(), "{over:?} {era:?}: the run went on");
        drop(handle);
        world.close().await;
    }
}

#[tokio::test]
async fn b032_a_detached_run_outlives_the_answer_that_began_it() {
    for (over, era) in WAYS {
        let (world, client) = with_client(over, era).await;
        let run = json!({
            "vendor": "acme", "name": "list-orders", "detached": true,
            "input": {"do": "wait", "seconds": 1},
        });
        let begun = client.call("run_tool", run).await;
        assert_eq!(begun.json["status"], "running", "{}", begun.json);
        let process = begun.json["run"].clone();
        let collected = client.call("wait_for_process", json!({"process": process})).await;
        assert_eq!(collected.json["status"], "ok", "{}", collected.json);
        assert_eq!(collected.json["result"], "waited");
        assert_eq!(world.puppet.dropped.available_permits(), 0);
        end(world, client).await;
    }
}

#[tokio::test]
async fn another_agents_process_is_not_found() {
    let (world, client) = with_client(Over::Stream, Era::Initialize).await;
    let run = json!({
        "vendor": "acme", "name": "list-orders", "detached": true, "input": {"do": "echo"},
    });
    let process = client.call("run_tool", run).await.json["run"].clone();
    let other = world.agent("other").await;
    let stranger = connect_stream(&world, &other.token, Era::Initialize).await;
    let refused = stranger.call("wait_for_process", json!({"process": process})).await;
    assert!(refused.is_error);
    assert_eq!(refused.json["code"], "run_not_found", "{}", refused.json);
    stranger.service.cancel().await.unwrap();
    end(world, client).await;
}
