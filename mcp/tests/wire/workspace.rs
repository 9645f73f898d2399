//! An agent's workspace: files written, read, checked and published by their
//! path, by the agent whose they are, and write_file where the person lets it.

use super::support::{Client, Era, Over, READ, World, connect};
use cambium_engine::LowLevel;
use serde_json::{Value, json};

async fn said(client: &Client, name: &str, arguments: Value) -> Value {
    client.call(name, arguments).await.json
}

#[tokio::test]
async fn a_module_is_written_checked_and_published_by_its_path() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let client = connect(&world, &agent.token, Over::Http, Era::Initialize).await;
    let path = "tools/list-orders.ts";
    let written = said(&client, "write_file", json!({ "path": path, "content": READ })).await;
    assert_eq!(written, json!({ "path": path, "bytes": READ.len(), "files": [path] }));
    let read = said(&client, "read_file", json!({ "path": path, "offset": 1, "limit": 5 })).await;
    assert_eq!((&read["text"], &read["nextOffset"]), (&json!(READ[1..6]), &json!(6)));
    let checked = said(&client, "check_tool", json!({ "path": path })).await;
    assert_eq!(checked["ok"], true, "{checked}");
    let tool = json!({ "vendor": "acme", "name": "list-orders", "path": path });
    let published = said(&client, "publish_tool", tool).await;
    assert_eq!(published["tool"], "acme__list-orders", "{published}");
    let source =
        said(&client, "read_tool_source", json!({ "vendor": "acme", "name": "list-orders" }));
    assert_eq!(source.await["source"], READ);

    // Written over, it is another text, and the tool is what it was.
    said(&client, "write_file", json!({ "path": path, "content": "no module" })).await;
    let checked = said(&client, "check_tool", json!({ "path": path })).await;
    assert_eq!(checked["ok"], false);

    let both = said(&client, "check_tool", json!({ "path": path, "source": READ })).await;
    assert!(both["message"].as_str().unwrap().contains("give one of them"), "{both}");
    let neither = said(&client, "check_tool", json!({})).await;
    assert!(neither["message"].as_str().unwrap().contains("`source`"), "{neither}");
    for bad in ["../other", "/etc/passwd", "", ".hidden"] {
        let refused = said(&client, "write_file", json!({ "path": bad, "content": "x" })).await;
        assert_eq!(refused["code"], "argument_invalid", "{bad}");
    }

    // Another agent's workspace is another.
    let other = world.agent("two").await;
    let other = connect(&world, &other.token, Over::Stream, Era::Initialize).await;
    let missing = said(&other, "read_file", json!({ "path": path })).await;
    assert!(missing["message"].as_str().unwrap().contains("it is empty"), "{missing}");
    client.service.cancel().await.unwrap();
    other.service.cancel().await.unwrap();
    world.close().await;
}

#[tokio::test]
async fn a_workspace_takes_so_much_and_write_file_goes_where_a_person_says_so() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let client = connect(&world, &agent.token, Over::Stream, Era::Discover).await;
    let write = |path: String, bytes: usize| {
        said(&client, "write_file", json!({ "path": path, "content": "x".repeat(bytes) }))
    };
    let large = write("large".into(), 256 * 1024 + 1).await;
    assert!(large["message"].as_str().unwrap().contains("at most 262144 bytes"), "{large}");
    for number in 0..32 {
        assert_eq!(write(format!("f{number}"), 256 * 1024).await["bytes"], 256 * 1024);
    }
    let full = write("more".into(), 1).await;
    assert!(full["message"].as_str().unwrap().contains("the workspace is full"), "{full}");
    // What is written over makes room first.
    assert_eq!(write("f0".into(), 10).await["bytes"], 10);
    assert_eq!(write("more".into(), 1).await["bytes"], 1);

    assert!(client.names().await.contains(&"write_file".to_owned()));
    world.engine.set_low_level(&world.proof, &agent.id, LowLevel::None).await.unwrap();
    assert!(!client.names().await.contains(&"write_file".to_owned()));
    assert_eq!(write("f0".into(), 1).await["code"], "tool_not_found");
    // Reading, checking and publishing stay.
    let read = said(&client, "read_file", json!({ "path": "f0" })).await;
    assert_eq!(read["characters"], 10);
    client.service.cancel().await.unwrap();
    world.close().await;
}
