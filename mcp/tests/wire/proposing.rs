//! Asking a person for a connection or a credential: the links, the statuses,
//! and that no argument or answer of ours has a place for a secret.

use super::support::{Client, Era, Over, READ, World, connect};
use serde_json::{Value, json};

const CANARY: &str = "canary-5d0c77a1";

async fn house(era: Era) -> (World, Client) {
    let world = World::new().await;
    let agent = world.agent("one").await;
    world.publish("acme", "list-orders", READ).await;
    let client = connect(&world, &agent.token, Over::Http, era).await;
    (world, client)
}

#[tokio::test]
async fn b078_b082_an_agent_gets_a_link_to_give_to_the_person() {
    for era in [Era::Initialize, Era::Discover] {
        let (world, client) = house(era).await;
        let wanted = json!({
            "vendor": "bank", "primaryHost": "api.bank.com", "scheme": "api_key_header",
            "schemeConfig": { "header": "x-key" }, "hosts": ["files.bank.com"],
            "displayName": "Bank", "docsUrl": "https://bank.com/docs",
        });
        let asked = client.call("request_connection", wanted.clone()).await;
        assert!(!asked.is_error, "{}", asked.json);
        assert_eq!(asked.json["status"], "awaiting_connection");
        let link = asked.json["ask"]["link"].as_str().unwrap();
        assert!(link.contains("/handoff/"), "{link}");
        assert!(asked.json["next"].as_str().unwrap().contains("link"));
        let again = client.call("request_connection", wanted).await;
        assert_eq!(again.json, asked.json, "the same open link");

        // What the errors name is there.
        for (connection, code) in [("nobody", "connection_not_found"), ("acme", "argument_invalid")]
        {
            let said =
                client.call("request_credential", json!({ "connectionId": connection })).await;
            assert_eq!((said.is_error, &said.json["code"]), (true, &json!(code)), "{connection}");
        }
        let said = client.call("request_credential", json!({ "connectionId": "nobody" })).await;
        let names = client.names().await;
        let next = said.json["next"].as_str().unwrap();
        assert!(
            next.contains("request_connection") && names.contains(&"request_connection".into())
        );
        client.service.cancel().await.unwrap();
        world.close().await;
    }
}

#[tokio::test]
async fn b078_everything_that_is_wrong_with_a_proposal_is_told_at_once() {
    let (world, client) = house(Era::Initialize).await;
    let cases = [
        (json!({}), &["vendor", "primaryHost", "scheme"][..]),
        (
            json!({ "host": "api.bank.com", "vendor": 7 }),
            &["host", "vendor", "primaryHost", "scheme"],
        ),
        (
            json!({
                "vendor": "The Bank", "primaryHost": "https://api.bank.com/", "scheme": "bearer",
                "schemeConfig": { "header": "x" }, "hosts": ["10.0.0.1"], "docsUrl": "http://bank.com",
                "displayName": "",
            }),
            &["vendor", "primaryHost", "schemeConfig", "hosts", "docsUrl", "displayName"],
        ),
        (
            json!({ "vendor": "bank", "primaryHost": "", "scheme": "beer" }),
            &["primaryHost", "scheme"],
        ),
    ];
    for (arguments, named) in cases {
        let refused = client.call("request_connection", arguments.clone()).await;
        assert_eq!(refused.json["code"], "argument_invalid", "{arguments} {}", refused.json);
        let message = refused.json["message"].as_str().unwrap();
        for name in named {
            let once = message.matches(&format!("argument `{name}`:")).count();
            assert_eq!(once, 1, "{name} of {arguments}: {message}");
        }
        let all = message.matches("argument `").count();
        assert_eq!(all, named.len(), "{arguments}: {message}");
    }
    // One fault keeps its own code.
    let one = json!({ "vendor": "The Bank", "primaryHost": "api.bank.com", "scheme": "bearer" });
    assert_eq!(client.call("request_connection", one).await.json["code"], "name_invalid");
    assert!(world.engine.proposals().await.unwrap().is_empty(), "nothing was kept");
    client.service.cancel().await.unwrap();
    world.close().await;
}

#[tokio::test]
async fn b079_no_argument_and_no_answer_has_a_place_for_a_secret() {
    let (world, client) = house(Era::Initialize).await;
    let tools = client.service.list_all_tools().await.unwrap();
    for tool in &tools {
        let properties = tool.input_schema["properties"].as_object().unwrap();
        for name in properties.keys().map(|name| name.to_lowercase()) {
            let speaks = ["secret", "password", "passphrase", "token", "apikey", "privatekey"];
            assert!(!speaks.iter().any(|word| name.contains(word)), "{}.{name}", tool.name);
        }
    }
    let base = json!({ "vendor": "bank", "primaryHost": "api.bank.com", "scheme": "bearer" });
    let with = |name: &str, value: Value| {
        let mut wanted = base.clone();
        wanted[name] = value;
        wanted
    };
    let wanted = [
        with("secret", CANARY.into()),
        with("token", CANARY.into()),
        with("schemeConfig", json!({ "token": CANARY })),
        with("schemeConfig", json!({ "secret": CANARY })),
    ];
    for arguments in wanted {
        let refused = client.call("request_connection", arguments).await;
        assert_eq!(refused.json["code"], "argument_invalid", "{}", refused.json);
        assert!(!refused.whole.to_string().contains(CANARY), "{}", refused.whole);
    }
    let refused = client
        .call("request_credential", json!({ "connectionId": "acme", "secret": CANARY }))
        .await;
    assert_eq!(refused.json["code"], "argument_invalid");
    assert!(!refused.whole.to_string().contains(CANARY));
    assert!(world.engine.proposals().await.unwrap().is_empty(), "nothing was kept");
    client.service.cancel().await.unwrap();
    world.close().await;
}
