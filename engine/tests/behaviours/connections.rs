//! Behaviours I, as far as a person makes and revokes connections by hand.

use crate::house::{House, code, posts, reads, sent, shop, tool, writes};
use cambium_engine::{ConnectionChange, Event, MoveCause, NewConnection, Status};
use cambium_proxy::{Answer, ConnectionStatus, Overrides, Scheme, Secret};
use std::time::Duration;

#[tokio::test]
async fn b083_a_revoke_takes_the_tools_out_and_loses_nothing_else() {
    let house = House::waiting(Duration::from_millis(50)).await;
    let (agent, caller) = house.furnished().await;
    let (other, other_caller) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    house.publish(&caller, "create", &writes()).await;
    house.engine.promote(&other_caller, &tool("list")).await.unwrap();
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();

    let connection = house.engine.connection("shop").await.unwrap();
    let mut events = house.engine.events();
    let console = house.console().await;
    house.engine.revoke_connection(&console, &connection.id).await.unwrap();
    let Event::ListChanged(agents) = sent(&mut events).remove(0) else { panic!() };
    assert!(agents.contains(&agent.id) && agents.contains(&other.id));
    house.engine.revoke_connection(&console, &connection.id).await.unwrap();
    assert_eq!(sent(&mut events), [], "a second revoke changes nothing");

    assert!(house.listed(&caller).await.is_empty());
    assert!(house.listed(&other_caller).await.is_empty());
    let history = house.engine.history(&other.id).await.unwrap();
    assert_eq!((history[0].promoted, history[0].cause), (false, MoveCause::Revoke));
    assert_eq!(code(&house.call(&caller, "list").await), "connection_revoked");
    assert_eq!(house.engine.find_tool(&caller, "orders").await.unwrap().total, 2, "b017");
    assert_eq!(house.engine.read_tool_source(&tool("list"), None).await.unwrap().version, 1);
    use cambium_engine::port::AskStore;
    let row = house.store.standing_decision(&agent.id, &tool("create")).await.unwrap().unwrap();
    assert_eq!(row.answer, Answer::Withdrawn, "b065: its approvals are withdrawn");
}

#[tokio::test]
async fn b080_a_connection_is_checked_before_it_is_made() {
    let house = House::new().await;
    let secret = || Some(Secret::new(b"s".to_vec()));
    let cases: Vec<(NewConnection, Option<Secret>, &str)> = vec![
        (shop(), None, "argument_invalid"),
        (NewConnection { scheme: Scheme::None, ..shop() }, secret(), "argument_invalid"),
        (NewConnection { slug: "Shop".into(), ..shop() }, secret(), "name_invalid"),
        (NewConnection { vendor: "execute".into(), ..shop() }, secret(), "argument_invalid"),
        (NewConnection { hosts: Vec::new(), ..shop() }, secret(), "argument_invalid"),
        (NewConnection { display_name: String::new(), ..shop() }, secret(), "argument_invalid"),
        (
            NewConnection { agents: vec![cambium_proxy::AgentId::new("no")], ..shop() },
            secret(),
            "agent_not_found",
        ),
        (
            NewConnection {
                scheme: Scheme::ApiKeyHeader { header: "X Key".into(), prefix: String::new() },
                ..shop()
            },
            secret(),
            "argument_invalid",
        ),
    ];
    for (new, secret, expected) in cases {
        let refused =
            house.engine.create_connection(&house.person().await, new, secret).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{refused}");
    }
    assert!(house.engine.connections().await.unwrap().is_empty(), "nothing half done");
    let made = house.shop().await;
    assert_eq!(made.status, ConnectionStatus::Connected);
    let taken =
        house.engine.create_connection(&house.person().await, shop(), secret()).await.unwrap_err();
    assert_eq!(taken.code(), "taken");
    assert_eq!(house.engine.connection("shop").await.unwrap(), made);
    assert_eq!(house.engine.connection(made.id.as_str()).await.unwrap(), made);
}

#[tokio::test]
async fn b080_a_connection_without_a_credential_runs() {
    let house = House::new().await;
    let open = NewConnection { scheme: Scheme::None, ..shop() };
    house.engine.create_connection(&house.person().await, open, None).await.unwrap();
    let (_, caller) = house.agent("claude").await;
    house.publish(&caller, "list", &reads()).await;
    assert_eq!(house.call(&caller, "list").await.status, Status::Ok);
}

#[tokio::test]
async fn a_changed_policy_is_a_new_generation_and_is_asked_again() {
    let house = House::waiting(Duration::from_millis(50)).await;
    let (_, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    assert_eq!(house.let_go("POST").await, 1);

    let (before, console) = (house.engine.connection("shop").await.unwrap(), house.console().await);
    let overrides = Overrides { headers: vec!["sudo".into()], ..Overrides::default() };
    let change =
        ConnectionChange { overrides: Some(overrides.clone()), ..ConnectionChange::default() };
    let after = house.engine.change_connection(&console, &before.id, change.clone()).await.unwrap();
    assert_eq!((after.generation, &after.overrides), (before.generation + 1, &overrides));
    assert_eq!(house.engine.connection("shop").await.unwrap(), after);
    let again = house.engine.change_connection(&console, &before.id, change).await.unwrap();
    assert_eq!(again.generation, after.generation, "what changes nothing is nothing");
    // The secret came along: the request gets as far as asking.
    house.sandbox.plays("shop__create", posts("{}"));
    assert!(house.call(&caller, "create").await.ask.is_some(), "asked again");
    assert_eq!(house.let_go("POST").await, 1);

    let bad = [
        Overrides { headers: vec!["host".into()], ..Overrides::default() },
        Overrides { rate: Some(0), ..Overrides::default() },
    ];
    for bad in bad {
        let change = ConnectionChange { overrides: Some(bad), ..ConnectionChange::default() };
        let error = house.engine.change_connection(&console, &before.id, change).await.unwrap_err();
        assert_eq!(error.code(), "argument_invalid");
    }
    assert_eq!(house.engine.connection("shop").await.unwrap(), after);
}
