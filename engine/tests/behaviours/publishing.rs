//! Behaviours F: versions, pointers, and what a publish refuses.

use crate::house::{House, module, reads, shop, tool, writes};
use cambium_engine::{NewConnection, PublishRequest, Publisher};
use cambium_proxy::Secret;

#[tokio::test]
async fn b052_a_republish_is_the_next_version_and_old_ones_stay() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let first = house.publish(&caller, "list", &reads()).await;
    let changed = module("Lists invoices.", r#""/invoices""#);
    let second = house.publish(&caller, "list", &changed).await;
    assert_eq!((first.version, second.version), (1, 2));
    assert_ne!(first.hash, second.hash);
    let old = house.engine.read_tool_source(&tool("list"), Some(1)).await.unwrap();
    assert_eq!((old.version, old.current), (1, 2));
    assert_eq!(old.source, reads());
    let missing = house.engine.read_tool_source(&tool("list"), Some(3)).await.unwrap_err();
    assert_eq!(missing.code(), "version_not_found");
}

#[tokio::test]
async fn b053_a_publish_promotes_for_its_agent_only_and_once() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let (_, other) = house.agent("codex").await;
    assert!(house.publish(&caller, "list", &reads()).await.promoted);
    let changed = module("Lists invoices.", r#""/invoices""#);
    assert!(!house.publish(&caller, "list", &changed).await.promoted);
    house.engine.demote(&caller, &tool("list")).await.unwrap();
    assert!(house.publish(&caller, "list", &reads()).await.promoted);
    assert!(house.listed(&other).await.is_empty());
}

#[tokio::test]
async fn b054_source_is_read_of_demoted_tools_and_of_revoked_connections() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.engine.demote(&caller, &tool("create")).await.unwrap();
    let connection = house.engine.connection("shop").await.unwrap();
    house.engine.revoke_connection(&house.person().await, &connection.id).await.unwrap();
    for version in [None, Some(1)] {
        let read = house.engine.read_tool_source(&tool("create"), version).await.unwrap();
        assert_eq!((read.source.as_str(), read.version, read.current), (&*writes(), 1, 1));
        assert!(!read.hints.read_only && !read.hints.destructive);
        assert_eq!(read.call_sites.len(), 1);
        assert_eq!(read.input_schema["type"], "object");
    }
}

#[tokio::test]
async fn b056_identical_content_is_a_no_op_that_says_so() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let first = house.publish(&caller, "list", &reads()).await;
    let again = house.publish(&caller, "list", &reads()).await;
    assert!(again.unchanged && !again.promoted);
    assert_eq!((again.version, again.hash), (first.version, first.hash));
}

#[tokio::test]
async fn decision15_a_publish_needs_a_connection_in_scope() {
    let house = House::new().await;
    let (agent, caller) = house.agent("claude").await;
    let none = house.try_publish(&caller, "list", &reads()).await.unwrap_err();
    assert_eq!(none.code(), "connection_not_found");

    let (other, other_caller) = house.agent("codex").await;
    let new = NewConnection { agents: vec![other.id.clone()], ..shop() };
    let secret = || Some(Secret::new(b"s".to_vec()));
    house.engine.create_connection(&house.person().await, new, secret()).await.unwrap();
    let named = |slug: &str| PublishRequest {
        tool: tool("list"),
        connection: Some(slug.into()),
        source: reads(),
    };
    let publisher = Publisher::Agent(caller.clone());
    let refused = house.engine.publish(&publisher, named("shop")).await.unwrap_err();
    assert_eq!(refused.code(), "connection_not_found");
    assert!(house.engine.tools().await.unwrap().is_empty(), "nothing half done");

    house.publish(&other_caller, "list", &reads()).await;
    let envelope = house.call(&caller, "list").await;
    assert_eq!(crate::house::code(&envelope), "connection_not_in_scope");

    let new = NewConnection { slug: "shop-two".into(), agents: vec![agent.id], ..shop() };
    house.engine.create_connection(&house.person().await, new, secret()).await.unwrap();
    house.publish(&caller, "mine", &reads()).await;
    let new = NewConnection { slug: "shop-three".into(), ..shop() };
    house.engine.create_connection(&house.person().await, new, secret()).await.unwrap();
    let several = house.try_publish(&caller, "mine", &writes()).await.unwrap_err();
    assert_eq!(several.code(), "argument_invalid", "{several}");
    let published = house.engine.publish(&publisher, named("shop-three")).await.unwrap();
    assert_eq!(published.connection, "shop-three");

    let new = NewConnection { slug: "git".into(), vendor: "git".into(), ..shop() };
    house.engine.create_connection(&house.person().await, new, secret()).await.unwrap();
    let wrong = house.engine.publish(&publisher, named("git")).await.unwrap_err();
    assert_eq!(wrong.code(), "argument_invalid");
}

#[tokio::test]
async fn b047_a_module_that_does_not_pass_is_refused_whole() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let sources = [
        "export default async function (ctx, input) {".to_owned(),
        module("A host.", r#""https://evil.example/orders""#),
        reads().replace("type: \"object\",", "type: \"array\","),
        reads().replace("maximum: 3", "maximum: 1e400"),
    ];
    for source in sources {
        let refused = house.try_publish(&caller, "list", &source).await.unwrap_err();
        assert_eq!(refused.code(), "check_failed", "{source}");
    }
    let long = format!("{}//{}", reads(), "x".repeat(256 * 1024));
    let refused = house.try_publish(&caller, "list", &long).await.unwrap_err();
    assert_eq!(refused.code(), "argument_invalid");
    assert!(house.engine.tools().await.unwrap().is_empty());
}

#[tokio::test]
async fn b003_the_vendor_execute_is_reserved() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let request = PublishRequest {
        tool: cambium_engine::ToolName::new("execute", "shop").unwrap(),
        connection: Some("shop".into()),
        source: reads(),
    };
    let publisher = Publisher::Agent(caller);
    let refused = house.engine.publish(&publisher, request).await.unwrap_err();
    assert_eq!(refused.code(), "name_invalid");
}

#[tokio::test]
async fn decision29_a_row_whose_mac_does_not_hold_runs_nowhere_and_poisons_nothing() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "list", &reads()).await;
    let house = house.under_another_key().await;
    assert!(house.listed(&caller).await.is_empty(), "left out, the list still answers");
    assert!(house.engine.find_tool(&caller, "orders").await.unwrap().hits.is_empty());
    let envelope = house.call(&caller, "list").await;
    assert!(envelope.is_error());
    assert!(house.sandbox.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn b096_a_published_tool_survives_a_kill() {
    let house = House::new().await;
    let (_, caller) = house.furnished().await;
    let published = house.publish(&caller, "list", &reads()).await;
    let house = house.restarted().await;
    let source = house.engine.read_tool_source(&tool("list"), None).await.unwrap();
    assert_eq!(source.hash, published.hash);
    assert_eq!(house.listed(&caller).await, ["shop__list"]);
}
