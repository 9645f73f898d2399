//! A detached run is a task to a client that declared tasks, and only to one:
//! looked at until it is done, asked for a person's answer, or cancelled.

use super::support::{
    Client, Era, Over, READ, TestAgent, WRITE, World, connect_stream, connect_tasked, object,
};
use cambium_engine::{InBand, ToolName};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetTaskParams, InputResponses, Task,
    TaskPayload, UpdateTaskParams,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use std::time::Duration;

const WAYS: [(Over, Era); 4] = [
    (Over::Http, Era::Initialize),
    (Over::Http, Era::Discover),
    (Over::Stream, Era::Initialize),
    (Over::Stream, Era::Discover),
];
/// Longer than it takes to read a form.
const READ_MS: i64 = 2_000;
/// Looks at a task before a test gives up; each waits for the server's answer.
const LOOKS: usize = 10_000;

async fn house(over: Over, era: Era) -> (World, TestAgent, Client) {
    let world = World::waiting(Duration::from_secs(50)).await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    world.publish("acme", "create-order", WRITE).await;
    let client = connect_tasked(&world, &agent.token, over, era).await;
    (world, agent, client)
}

async fn end(world: World, client: Client) {
    client.service.cancel().await.unwrap();
    world.close().await;
}

async fn begin(client: &Client, name: &str, input: Value) -> Task {
    let arguments = json!({"vendor": "acme", "name": name, "detached": true, "input": input});
    let params = CallToolRequestParams::new("run_tool").with_arguments(object(arguments));
    match client.service.call_tool_once(params).await.unwrap() {
        CallToolResponse::Task(created) => created.task,
        other => panic!("{other:?}"),
    }
}

async fn look(client: &Client, task: &Task) -> TaskPayload {
    let params = GetTaskParams::new(task.task_id.clone());
    client.service.get_task(params).await.unwrap().task.payload
}

/// Looks until `seen` is content.
async fn until(client: &Client, task: &Task, seen: impl Fn(&TaskPayload) -> bool) -> TaskPayload {
    for _ in 0..LOOKS {
        let payload = look(client, task).await;
        if seen(&payload) {
            return payload;
        }
    }
    panic!("the task never came to it")
}

fn answers(key: &str, action: &str, content: Value) -> InputResponses {
    serde_json::from_value(json!({key: {"action": action, "content": content}})).unwrap()
}

#[tokio::test]
async fn b032_a_detached_run_is_a_task_whose_result_is_the_answer_of_the_call() {
    for (over, era) in WAYS {
        let (world, _, client) = house(over, era).await;
        let task = begin(&client, "list-orders", json!({"do": "echo"})).await;
        assert!(task.ttl_ms.is_some() && task.poll_interval_ms.is_some());
        let done = until(&client, &task, |payload| *payload != TaskPayload::Working).await;
        let TaskPayload::Completed { result } = done else { panic!("{done:?}") };
        assert_eq!(result["structuredContent"]["status"], "ok", "{over:?} {era:?}");
        assert_eq!(result["structuredContent"]["run"], task.task_id.as_str());
        // and the way of clients without tasks finds the same
        let collected = client.call("wait_for_process", json!({"process": task.task_id})).await;
        assert_eq!(collected.json, result["structuredContent"]);
        end(world, client).await;
    }
}

#[tokio::test]
async fn a_client_that_declared_no_tasks_sees_none_and_may_not_ask_for_one() {
    let (world, agent, client) = house(Over::Stream, Era::Discover).await;
    let plain = connect_stream(&world, &agent.token, Era::Discover).await;
    let arguments = json!({"vendor": "acme", "name": "list-orders", "detached": true});
    assert_eq!(plain.call("run_tool", arguments).await.json["status"], "running");
    let task = begin(&client, "list-orders", json!({"do": "echo"})).await;
    let refused = plain.service.get_task(GetTaskParams::new(task.task_id)).await.unwrap_err();
    let ServiceError::McpError(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code.0, -32_021);
    plain.service.cancel().await.unwrap();
    end(world, client).await;
}

#[tokio::test]
async fn another_agents_task_and_a_made_up_one_look_alike() {
    let (world, _, client) = house(Over::Stream, Era::Discover).await;
    let other = world.agent("other").await;
    let stranger = connect_tasked(&world, &other.token, Over::Stream, Era::Discover).await;
    let task = begin(&client, "list-orders", json!({"do": "never"})).await;
    for id in [task.task_id.as_str(), "made-up", ""] {
        let looked = stranger.service.get_task(GetTaskParams::new(id)).await.unwrap_err();
        let cancelled = stranger.service.cancel_task(CancelTaskParams::new(id)).await.unwrap_err();
        let nothing = InputResponses::default();
        let updated =
            stranger.service.update_task(UpdateTaskParams::new(id, nothing)).await.unwrap_err();
        for refused in [looked, cancelled, updated] {
            let ServiceError::McpError(error) = refused else { panic!("{refused:?}") };
            assert_eq!(
                (error.code.0, error.data.unwrap()["code"].clone()),
                (-32_602, json!("run_not_found"))
            );
        }
    }
    assert_eq!(look(&client, &task).await, TaskPayload::Working, "a stranger ended nothing");
    stranger.service.cancel().await.unwrap();
    end(world, client).await;
}

#[tokio::test]
async fn b033_a_cancelled_task_ends_its_run() {
    for (over, era) in WAYS {
        let (world, _, client) = house(over, era).await;
        let task = begin(&client, "list-orders", json!({"do": "never"})).await;
        world.puppet.begun.acquire().await.unwrap().forget();
        client.service.cancel_task(CancelTaskParams::new(task.task_id.clone())).await.unwrap();
        world.puppet.dropped.acquire().await.unwrap().forget();
        let ended = until(&client, &task, |payload| *payload != TaskPayload::Working).await;
        assert_eq!(ended, TaskPayload::Cancelled, "{over:?} {era:?}");
        end(world, client).await;
    }
}

#[tokio::test]
async fn b061_a_held_write_is_the_tasks_input_and_a_yes_lets_it_go() {
    for (over, era) in WAYS {
        let (world, agent, client) = house(over, era).await;
        world.engine.set_in_band(&world.proof, &agent.id, InBand::Once).await.unwrap();
        let task = begin(&client, "create-order", json!({"do": "post"})).await;
        let asked = |payload: &TaskPayload| matches!(payload, TaskPayload::InputRequired { .. });
        let TaskPayload::InputRequired { input_requests } = until(&client, &task, asked).await
        else {
            unreachable!()
        };
        let TaskPayload::InputRequired { input_requests: again } = look(&client, &task).await
        else {
            panic!("it is still asked")
        };
        assert_eq!(again, input_requests, "who looks twice sees the same form");
        let key = input_requests.keys().next().unwrap().clone();

        // an answer to something else means nothing
        let id = task.task_id.clone();
        let other = answers("made-up", "accept", json!({"approve": true}));
        client.service.update_task(UpdateTaskParams::new(id.clone(), other)).await.unwrap();
        assert!(asked(&look(&client, &task).await));

        world.clock.advance(READ_MS);
        let yes = answers(&key, "accept", json!({"approve": true}));
        client.service.update_task(UpdateTaskParams::new(id, yes)).await.unwrap();
        let done = |payload: &TaskPayload| matches!(payload, TaskPayload::Completed { .. });
        until(&client, &task, done).await;
        let states: Vec<String> =
            world.engine.asks().await.unwrap().into_iter().map(|ask| ask.state).collect();
        assert_eq!(states, ["allowed_once"], "{over:?} {era:?}");
        end(world, client).await;
    }
}

#[tokio::test]
async fn b067_without_a_persons_switch_a_task_only_says_where_to_answer() {
    let (world, agent, client) = house(Over::Stream, Era::Discover).await;
    let task = begin(&client, "create-order", json!({"do": "post"})).await;
    let mut message = None;
    for _ in 0..LOOKS {
        let params = GetTaskParams::new(task.task_id.clone());
        let looked = client.service.get_task(params).await.unwrap().task;
        assert_eq!(looked.payload, TaskPayload::Working);
        message = looked.task.status_message;
        if message.is_some() {
            break;
        }
    }
    let ask = world.engine.asks().await.unwrap().remove(0);
    assert!(message.unwrap().contains(ask.id.as_str()), "it names the page of the ask");
    // so does the way of clients without tasks
    let waited = client
        .call("wait_for_process", json!({"process": task.task_id, "timeoutSeconds": 0}))
        .await;
    assert!(waited.json["message"].as_str().unwrap().contains(ask.id.as_str()), "{}", waited.json);
    let tool = ToolName::new("acme", "create-order").unwrap();
    assert_eq!((ask.agent, ask.tool), (agent.id, tool.to_string()));
    end(world, client).await;
}
