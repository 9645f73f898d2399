//! MCP over bytes: what a client may get wrong without losing its server.

use super::support::{Era, READ, World, connect_stream};
use cambium_mcp::McpError;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    served: JoinHandle<Result<(), McpError>>,
}

impl Wire {
    fn open(world: &World, token: &str) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(far);
        let served = tokio::spawn(cambium_mcp::serve_stream(
            world.engine.clone(),
            token.to_owned(),
            read,
            write,
            world.cancel.clone(),
        ));
        let (read, near_write) = tokio::io::split(near);
        Self { lines: BufReader::new(read).lines(), write: near_write, served }
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.say(&message.to_string()).await;
        self.hear().await
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn initialize(&mut self) {
        let answer = self
            .ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "wire", "version": "1"},
            }}))
            .await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], "2025-11-25", "{answer}");
        assert_eq!(result["serverInfo"]["name"], "cambium");
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result["instructions"].as_str().unwrap().contains("find_tool"));
    }

    async fn end(mut self) {
        self.write.shutdown().await.unwrap();
        drop((self.write, self.lines));
        self.served.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_notification_before_initialize_does_not_end_the_stream() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let mut wire = Wire::open(&world, &agent.token);
    wire.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
    wire.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}})
        .to_string(),
    )
    .await;
    // an answer nobody asked for, then a request that comes too early
    wire.say(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}).to_string()).await;
    let early = wire.ask(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})).await;
    assert!(early["error"].is_object(), "{early}");
    wire.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
    wire.initialize().await;
    let listed = wire.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    wire.end().await;
    world.close().await;
}

#[tokio::test]
async fn a_line_that_is_no_message_does_not_end_the_stream() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let mut wire = Wire::open(&world, &agent.token);
    wire.initialize().await;
    wire.say("not json").await;
    wire.say("").await;
    wire.say(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":7}"#).await;
    wire.say(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list"}).to_string()).await;
    loop {
        let heard = wire.hear().await;
        if heard["id"] == 4 {
            assert!(heard["result"]["tools"].is_array(), "{heard}");
            break;
        }
        assert!(heard["error"].is_object(), "{heard}");
    }
    wire.end().await;
    world.close().await;
}

#[tokio::test]
async fn a_stream_with_a_wrong_token_is_not_served() {
    let world = World::new().await;
    let wire = Wire::open(&world, "nonsense");
    let refused = wire.served.await.unwrap().unwrap_err();
    assert_eq!(refused.code(), "unauthenticated");
    world.close().await;
}

#[tokio::test]
async fn a_rotated_token_is_refused_inside_an_open_stream() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let client = connect_stream(&world, &agent.token, Era::Initialize).await;
    world.engine.rotate_token(&world.proof, &agent.id).await.unwrap();
    let refused = client.call("find_tool", json!({"query": "x"})).await;
    assert!(refused.is_error);
    assert_eq!(refused.json["code"], "unauthenticated");
    assert!(client.service.list_all_tools().await.is_err());
    client.service.cancel().await.unwrap();
    world.close().await;
}

#[tokio::test]
async fn closing_the_stream_ends_its_runs_and_nothing_is_left() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    let mut wire = Wire::open(&world, &agent.token);
    wire.initialize().await;
    wire.say(
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "acme__list-orders", "arguments": {"do": "never"}}})
        .to_string(),
    )
    .await;
    world.puppet.begun.acquire().await.unwrap().forget();
    wire.end().await;
    assert_eq!(world.puppet.dropped.available_permits(), 1);
    world.close().await;
}

#[tokio::test]
async fn cancelling_ends_a_stream_that_is_open() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let mut wire = Wire::open(&world, &agent.token);
    wire.initialize().await;
    world.cancel.cancel();
    wire.served.await.unwrap().unwrap();
    world.close().await;
}
