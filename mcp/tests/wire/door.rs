//! Who gets in: token, Host, Origin, and a session only for its own agent.

use super::support::{HOST, Raw, World, messages};
use http::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn a_request_without_a_valid_token_is_refused_as_the_protocol_says() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let router = world.router();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let good = format!("Bearer {}", agent.token);
    let refused = [
        Raw::post("nonsense", &list),
        Raw::post("", &list),
        Raw::post(&agent.token, &list).without("authorization"),
        Raw::post(&agent.token, &list).with("authorization", &agent.token),
        Raw::post(&agent.token, &list).with("authorization", &format!("Basic {}", agent.token)),
        // two: which of them holds must not depend on who looks
        Raw::post(&agent.token, &list).also("authorization", &good),
        Raw::of(Method::GET, "nonsense"),
        Raw::of(Method::DELETE, "nonsense"),
        Raw::initialize("nonsense"),
    ];
    for request in refused {
        let response = request.send(&router).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        assert!(challenge.starts_with(r#"Bearer realm="cambium""#), "{challenge}");
        let body = messages(response).await.remove(0);
        assert_eq!(body["code"], "unauthenticated");
    }
    let response = Raw::post("nonsense", &list).send(&router).await;
    let challenge = response.headers()["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
    world.close().await;
}

#[tokio::test]
async fn host_and_origin_must_be_exactly_ours() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let router = world.router();
    let initialize = || Raw::initialize(&agent.token);
    for host in ["127.0.0.1", "127.0.0.1:80", "localhost:7171", "evil.example:7171", ""] {
        let status = initialize().with("host", host).status(&router).await;
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    let two = initialize().also("host", HOST).status(&router).await;
    assert_eq!(two, StatusCode::MISDIRECTED_REQUEST);
    let none = initialize().without("host").status(&router).await;
    assert_eq!(none, StatusCode::MISDIRECTED_REQUEST);

    for origin in ["null", "http://evil.example", "https://127.0.0.1:7171", "http://127.0.0.1", ""]
    {
        let status = initialize().with("origin", origin).status(&router).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{origin}");
    }
    let beside = initialize().on_our_page().also("origin", "http://evil.example");
    assert_eq!(beside.status(&router).await, StatusCode::FORBIDDEN);
    assert_eq!(initialize().on_our_page().status(&router).await, StatusCode::OK);
    assert_eq!(initialize().status(&router).await, StatusCode::OK);
    world.close().await;
}

#[tokio::test]
async fn a_session_serves_the_agent_that_opened_it_and_no_other() {
    let world = World::new().await;
    let (owner, other) = (world.agent("owner").await, world.agent("other").await);
    let router = world.router();
    let session = Raw::session(&owner.token, &router).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});

    for request in [
        Raw::post(&other.token, &list),
        Raw::of(Method::GET, &other.token),
        Raw::of(Method::DELETE, &other.token),
    ] {
        let status = request.with("mcp-session-id", &session).status(&router).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    let own = Raw::post(&owner.token, &list).with("mcp-session-id", &session);
    let answer = messages(own.send(&router).await).await;
    assert!(answer.last().unwrap()["result"]["tools"].is_array(), "{answer:?}");

    let end = Raw::of(Method::DELETE, &owner.token).with("mcp-session-id", &session);
    assert_eq!(end.status(&router).await, StatusCode::NO_CONTENT);
    let gone = Raw::post(&owner.token, &list).with("mcp-session-id", &session);
    assert_eq!(gone.status(&router).await, StatusCode::NOT_FOUND);
    world.close().await;
}

#[tokio::test]
async fn a_rotated_token_is_refused_inside_an_open_session() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let router = world.router();
    let session = Raw::session(&agent.token, &router).await;
    let fresh = world.engine.rotate_token(&world.proof, &agent.id).await.unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let old = Raw::post(&agent.token, &list).with("mcp-session-id", &session);
    assert_eq!(old.status(&router).await, StatusCode::UNAUTHORIZED);
    let new = Raw::post(&fresh, &list).with("mcp-session-id", &session);
    assert_eq!(new.status(&router).await, StatusCode::OK);
    world.close().await;
}

#[tokio::test]
async fn a_message_over_four_mebibytes_is_refused() {
    let world = World::new().await;
    let agent = world.agent("one").await;
    let long = Value::from("x".repeat(4 * 1024 * 1024));
    let call = Raw::call(&agent.token, 1, "find_tool", &json!({ "query": long }));
    let status = call.status(&world.router()).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    world.close().await;
}
