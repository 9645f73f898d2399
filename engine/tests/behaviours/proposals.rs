//! Behaviours I, as far as an agent asks a person: proposals of connections and
//! of credentials, and what a person takes back and gives again.

use crate::house::{DAY_MS, House, START_MS, code, posts, reads, sent, tool, writes};
use cambium_engine::port::ConnectionStore;
use cambium_engine::{
    Acceptance, ConnectionChange, Envelope, Event, MoveCause, Status, WantedConnection,
};
use cambium_proxy::{Answer, Connection, ConnectionId, ConnectionStatus, Host, Secret};
use serde_json::{Map, Value, json};
use std::time::Duration;

fn acme() -> WantedConnection {
    WantedConnection {
        vendor: "acme".into(),
        primary_host: "api.acme.com".into(),
        scheme: "bearer".into(),
        ..WantedConnection::default()
    }
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn secret() -> Option<Secret> {
    Some(Secret::new(b"s3cret-of-acme".to_vec()))
}

fn accepted(slug: &str) -> Acceptance {
    Acceptance {
        slug: slug.into(),
        display_name: "Acme".into(),
        confirmed: vec!["api.acme.com".into()],
        ..Acceptance::default()
    }
}

fn id(answer: &Envelope) -> String {
    answer.ask.as_ref().unwrap().id.clone()
}

#[tokio::test]
async fn b078_the_same_proposal_has_one_link_and_then_is_connected() {
    let house = House::new().await;
    let (_, caller) = house.agent("claude").await;
    let (_, other) = house.agent("codex").await;
    let mut events = house.engine.events();
    let first = house.engine.propose_connection(&caller, acme()).await.unwrap();
    assert_eq!(first.status, Status::AwaitingConnection);
    assert_eq!(sent(&mut events), [Event::Proposed(id(&first))]);
    // Other words for the same hosts and scheme are the same proposal.
    let spoken = WantedConnection {
        display_name: Some("Acme Inc".into()),
        hosts: vec!["API.acme.com:443".into()],
        ..acme()
    };
    let again = house.engine.propose_connection(&caller, spoken).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(sent(&mut events), []);
    // Another agent's, and another vendor's, are not.
    let theirs = house.engine.propose_connection(&other, acme()).await.unwrap();
    assert_ne!(theirs.ask, first.ask);
    assert_eq!(house.engine.waiting().await.unwrap(), 2);
    // Survives a restart.
    let house = house.restarted().await;
    assert_eq!(house.engine.propose_connection(&caller, acme()).await.unwrap(), first);

    let person = house.console().await;
    let link = id(&first);
    let made = house.engine.accept_connection(&person, &link, accepted("acme"), secret());
    let made = made.await.unwrap();
    assert_eq!(made.status, ConnectionStatus::Connected);
    let late = house.engine.accept_connection(&person, &link, accepted("acme-2"), secret());
    assert_eq!(late.await.unwrap_err().code(), "ask_settled");
    let then = house.engine.propose_connection(&caller, acme()).await.unwrap();
    assert_eq!(
        (then.status, then.result.unwrap()["connectionId"].clone()),
        (Status::Ok, json!(made.id))
    );
    // In scope for both, so the other's is connected as well.
    let then = house.engine.propose_connection(&other, acme()).await.unwrap();
    assert_eq!(then.status, Status::Ok);
    assert_eq!(house.engine.connections().await.unwrap().len(), 1);
}

#[tokio::test]
async fn b078_a_link_ends_a_refusal_lasts_a_day_and_few_wait_at_once() {
    let house = House::new().await;
    let (_, caller) = house.agent("claude").await;
    let person = house.console().await;
    let first = house.engine.propose_connection(&caller, acme()).await.unwrap();
    house.clock.advance(60 * 60 * 1000);
    let link = id(&first);
    let late = house.engine.accept_connection(&person, &link, accepted("acme"), secret());
    let late = late.await.unwrap_err();
    assert!(late.to_string().contains("expired"), "{late}");
    let second = house.engine.propose_connection(&caller, acme()).await.unwrap();
    assert_ne!(second.ask, first.ask);

    house.engine.refuse_proposal(&person, &id(&second)).await.unwrap();
    house.clock.advance(DAY_MS - 1);
    let refused = house.engine.propose_connection(&caller, acme()).await.unwrap_err();
    assert_eq!(refused.code(), "proposal_refused");
    assert!(refused.to_string().contains("api.acme.com"), "{refused}");
    house.clock.advance(1);
    house.engine.propose_connection(&caller, acme()).await.unwrap();

    for number in 2..=8 {
        let primary_host = format!("api{number}.acme.com");
        let wanted = WantedConnection { primary_host, ..acme() };
        house.engine.propose_connection(&caller, wanted).await.unwrap();
    }
    let ninth = WantedConnection { primary_host: "api9.acme.com".into(), ..acme() };
    let full = house.engine.propose_connection(&caller, ninth).await.unwrap_err();
    assert_eq!(full.code(), "proposals_full");
    // A link of another vault's is none of ours; an id alone is a person's.
    let link = second.ask.unwrap().link;
    let end = link.rsplit('/').next().unwrap().to_owned();
    assert!(house.engine.proposal(&end).await.is_ok());
    let forged = format!("{}0", &end[..end.len() - 1]);
    let forged = if forged == end { format!("{}1", &end[..end.len() - 1]) } else { forged };
    assert_eq!(house.engine.proposal(&forged).await.unwrap_err().code(), "proposal_not_found");
}

#[tokio::test]
async fn b080_b081_what_cannot_be_a_connection_is_refused_when_proposed() {
    let house = House::new().await;
    let (_, caller) = house.agent("claude").await;
    let host = |name: &str| WantedConnection { primary_host: name.into(), ..acme() };
    let scheme = |name: &str, config: Value| WantedConnection {
        scheme: name.into(),
        scheme_config: fields(config),
        ..acme()
    };
    let token = |url: &str| {
        scheme("oauth2_client_credentials", json!({ "token_url": url, "client_id": "c" }))
    };
    let rows = vec![
        (host("localhost"), "address_denied", "local"),
        (host("127.0.0.1"), "address_denied", "address"),
        (host("10.0.0.8"), "address_denied", "address"),
        (host("169.254.169.254"), "address_denied", "address"),
        (host("metadata.google.internal"), "address_denied", "metadata"),
        (host("2130706433"), "address_denied", "IPv4"),
        (host("[::1]"), "argument_invalid", "primaryHost"),
        (host("printer"), "address_denied", "local"),
        (host("https://api.acme.com"), "argument_invalid", "primaryHost"),
        (host(""), "argument_invalid", "primaryHost"),
        (
            WantedConnection {
                hosts: (0..60_000).map(|n| format!("h{n}.acme.com")).collect(),
                ..acme()
            },
            "argument_invalid",
            "fewer than 16",
        ),
        (WantedConnection { hosts: vec!["localhost".into()], ..acme() }, "address_denied", "local"),
        (scheme("magic", json!({})), "argument_invalid", "magic"),
        (scheme("bearer", json!({ "token": "x" })), "argument_invalid", "token"),
        (scheme("api_key_header", json!({})), "argument_invalid", "header"),
        (scheme("api_key_header", json!({ "header": "host" })), "argument_invalid", "header"),
        (token("https://localhost/token"), "argument_invalid", "token_url"),
        (token("http://auth.acme.com/token"), "argument_invalid", "token_url"),
        (WantedConnection { vendor: "Acme".into(), ..acme() }, "name_invalid", "Acme"),
        (WantedConnection { vendor: "execute".into(), ..acme() }, "argument_invalid", "reserved"),
        (
            WantedConnection { docs_url: Some("javascript:1".into()), ..acme() },
            "argument_invalid",
            "docsUrl",
        ),
    ];
    for (wanted, expected, named) in rows {
        let what = format!("{wanted:?}");
        let refused = house.engine.propose_connection(&caller, wanted).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{what}: {refused}");
        assert!(refused.to_string().contains(named), "{what}: {refused}");
    }
    assert!(house.engine.proposals().await.unwrap().is_empty());
}

#[tokio::test]
async fn b078_every_host_is_confirmed_also_those_of_the_scheme() {
    let house = House::new().await;
    let (agent, caller) = house.agent("claude").await;
    let wanted = WantedConnection {
        scheme: "oauth2_client_credentials".into(),
        scheme_config: fields(json!({ "token_url": "https://auth.evil.test/t", "client_id": "c" })),
        ..acme()
    };
    let asked = house.engine.propose_connection(&caller, wanted).await.unwrap();
    let person = house.console().await;
    let take = |acceptance: Acceptance| {
        house.engine.accept_connection(
            &person,
            &asked.ask.as_ref().unwrap().id,
            acceptance,
            secret(),
        )
    };
    for (confirmed, typed, said) in [
        (vec![], vec![], "api.acme.com"),
        (vec!["api.acme.com"], vec![], "auth.evil.test"),
        (vec!["api.acme.com", "auth.evil.test"], vec![], "typed"),
    ] {
        let words = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let acceptance =
            Acceptance { confirmed: words(confirmed), typed: words(typed), ..accepted("acme") };
        let refused = take(acceptance).await.unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let agents = vec![agent.id.clone()];
    let typed = vec!["auth.evil.test".into()];
    let made = take(Acceptance { typed, agents, ..accepted("acme") }).await.unwrap();
    assert_eq!(house.engine.connections().await.unwrap(), [made]);
}

#[tokio::test]
async fn b082_a_credential_is_asked_for_again_and_approvals_stay_for_the_same_account() {
    let house = House::waiting(Duration::from_millis(50)).await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();
    let stands = house.engine.standing_answers().await.unwrap();
    assert_eq!(
        (stands.len(), stands[0].answer, &stands[0].agent),
        (1, Answer::Standing, &agent.id)
    );

    let person = house.console().await;
    let ask = |reason: &'static str| house.engine.propose_credential(&caller, "shop", reason);
    let asked = ask("401").await.unwrap();
    assert_eq!(asked.status, Status::AwaitingCredential);
    assert_eq!(ask("401 again").await.unwrap(), asked, "one open link");
    let new = || Secret::new(b"another".to_vec());
    let same = house.engine.accept_credential(&person, &id(&asked), new(), true).await.unwrap();
    assert_eq!(same.generation, 1);
    assert_eq!(house.call(&caller, "create").await.status, Status::Ok, "nothing is asked");
    assert_eq!(ask("").await.unwrap().status, Status::Ok, "it was entered just now");

    house.clock.advance(10 * 60 * 1000);
    let asked = ask("").await.unwrap();
    let other = house.engine.accept_credential(&person, &id(&asked), new(), false).await.unwrap();
    assert_eq!(other.generation, 2);
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    let late = house.engine.accept_credential(&person, &id(&asked), new(), true).await;
    assert_eq!(late.unwrap_err().code(), "ask_settled");
    let unknown = house.engine.propose_credential(&caller, "nobody", "").await.unwrap_err();
    assert_eq!(unknown.code(), "connection_not_found");
    let long = "x".repeat(501);
    assert!(house.engine.propose_credential(&caller, "shop", &long).await.is_err());
}

#[tokio::test]
async fn b083_reconnecting_puts_back_what_the_revoke_took_and_nothing_else() {
    let house = House::waiting(Duration::from_millis(50)).await;
    let (agent, caller) = house.furnished().await;
    let (other, other_caller) = house.agent("codex").await;
    house.publish(&caller, "list", &reads()).await;
    house.publish(&caller, "create", &writes()).await;
    house.publish(&caller, "gone", &reads().replace("orders", "things")).await;
    house.engine.promote(&other_caller, &tool("list")).await.unwrap();
    house.engine.demote(&caller, &tool("gone")).await.unwrap();
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Standing).await.unwrap();

    let console = house.console().await;
    let shop = house.engine.connection("shop").await.unwrap();
    let early = house.engine.reconnect_connection(&console, &shop.id, None).await.unwrap_err();
    assert_eq!(early.code(), "argument_invalid", "it is not revoked");
    house.engine.revoke_connection(&console, &shop.id).await.unwrap();
    assert_eq!(
        house.engine.propose_credential(&caller, "shop", "").await.unwrap_err().code(),
        "connection_revoked"
    );
    let person = house.person().await;
    let taken = house.engine.create_connection(&person, crate::house::shop(), secret());
    assert_eq!(taken.await.unwrap_err().code(), "connection_revoked", "its slug is not given away");

    let mut events = house.engine.events();
    let back = house.engine.reconnect_connection(&console, &shop.id, None).await.unwrap();
    assert_eq!((back.status, back.generation), (ConnectionStatus::Connected, 2));
    let Event::ListChanged(agents) = sent(&mut events).remove(0) else { panic!() };
    assert!(agents.contains(&agent.id) && agents.contains(&other.id));
    let set = |of| house.engine.working_set(of);
    let names: Vec<String> =
        set(&agent.id).await.unwrap().iter().map(|entry| entry.tool.to_string()).collect();
    assert_eq!(names, ["shop__create", "shop__list"], "what the agent demoted stays out");
    let theirs = set(&other.id).await.unwrap();
    assert_eq!((theirs.len(), theirs[0].promoted_by), (1, MoveCause::Reconnect));
    // The stored secret works again; what was allowed is asked anew.
    house.sandbox.plays("shop__list", [crate::house::Step::Return(json!([]))]);
    assert_eq!(house.call(&caller, "list").await.status, Status::Ok);
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
    assert_eq!(house.dry_run(&caller, "create").await.status, Status::DryRun);
}

#[tokio::test]
async fn a_connections_authority_is_replaced_and_taken_away() {
    let house = House::new().await;
    let shop = house.shop().await;
    let person = house.person().await;
    let change = |ca_pem: Option<&str>| ConnectionChange {
        ca_pem: Some(ca_pem.map(str::to_owned)),
        ..ConnectionChange::default()
    };
    let wrong = house.engine.change_connection(&person, &shop.id, change(Some("no PEM"))).await;
    assert_eq!(wrong.unwrap_err().code(), "argument_invalid");
    let none = house.engine.change_connection(&person, &shop.id, change(None)).await.unwrap();
    assert_eq!(none.generation, 1, "it had none");
}

#[tokio::test]
async fn a_denial_that_stands_is_listed_and_can_be_taken_back() {
    let house = House::waiting(Duration::from_millis(50)).await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "create", &writes()).await;
    house.sandbox.plays("shop__create", posts("{}"));
    house.call(&caller, "create").await;
    let ask = house.engine.asks().await.unwrap().remove(0);
    house.decide(&ask, Answer::Deny).await.unwrap();
    let stands = house.engine.standing_answers().await.unwrap();
    assert_eq!(
        (stands.len(), stands[0].answer, &*stands[0].tool),
        (1, Answer::Deny, "shop__create")
    );
    assert_eq!(code(&house.call(&caller, "create").await), "tool_denied");
    house.engine.withdraw(&house.person().await, &agent.id, &tool("create")).await.unwrap();
    assert!(house.engine.standing_answers().await.unwrap().is_empty());
    assert_eq!(house.call(&caller, "create").await.status, Status::AwaitingApproval);
}

#[tokio::test]
async fn b078_b096_an_acceptance_that_was_cut_off_is_finished_and_doubles_nothing() {
    let house = House::new().await;
    let (agent, caller) = house.agent("claude").await;
    let person = house.console().await;
    // Cut off before anything was made: the question is there as it was.
    let link = id(&house.engine.propose_connection(&caller, acme()).await.unwrap());
    let house = house.restarted().await;
    assert_eq!(house.engine.waiting().await.unwrap(), 1);
    // Cut off when the connection stood without its secret, and when only the
    // proposal was left to settle.
    let made = house.engine.accept_connection(&person, &link, accepted("acme"), secret()).await;
    let made = made.unwrap();
    let other =
        WantedConnection { vendor: "other".into(), primary_host: "api.other.com".into(), ..acme() };
    let link = id(&house.engine.propose_connection(&caller, other).await.unwrap());
    let half = Connection {
        id: ConnectionId::new(&link),
        slug: "other".into(),
        vendor: "other".into(),
        hosts: vec![Host {
            label: "api.other.com".into(),
            name: "api.other.com".into(),
            port: 443,
        }],
        generation: 1,
        status: ConnectionStatus::Pending,
        ..made.clone()
    };
    house.store.insert_connection(&half, std::slice::from_ref(&agent.id), START_MS).await.unwrap();
    let house = house.restarted().await;
    let acceptance = Acceptance { confirmed: vec!["api.other.com".into()], ..accepted("another") };
    let finish =
        |secret| house.engine.accept_connection(&person, &link, acceptance.clone(), secret);
    let finished = finish(secret()).await.unwrap();
    assert_eq!(
        (finished.id.as_str(), finished.status),
        (link.as_str(), ConnectionStatus::Connected)
    );
    assert_eq!(finished.slug, "other", "what was begun is what is finished");
    assert_eq!(finish(secret()).await.unwrap_err().code(), "ask_settled");
    assert_eq!(house.engine.connections().await.unwrap().len(), 2);
    assert_eq!(house.engine.waiting().await.unwrap(), 0);
}

#[tokio::test]
async fn b083_a_sign_in_brings_its_tools_back_when_it_is_done_and_not_before() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    house.publish(&caller, "orders", &reads()).await;
    let shop = house.engine.connection("shop").await.unwrap();
    let person = house.console().await;
    house.engine.revoke_connection(&person, &shop.id).await.unwrap();
    assert!(house.listed(&caller).await.is_empty());
    // As a reconnect of a scheme that is signed in to leaves it.
    let waits = Connection { generation: 2, status: ConnectionStatus::Pending, ..shop.clone() };
    let back = house.store.reconnect_connection(&waits, None, START_MS).await.unwrap();
    assert_eq!(back.back, []);
    assert!(house.listed(&caller).await.is_empty(), "nothing of it could run");
    let back = house.store.mark_connected(&shop.id, START_MS).await.unwrap();
    assert_eq!(back.back, [(agent.id.clone(), tool("orders"))]);
    assert_eq!(house.listed(&caller).await, ["shop__orders"]);
    // Once only.
    assert_eq!(house.store.mark_connected(&shop.id, START_MS).await.unwrap().back, []);
}

#[tokio::test]
async fn b083_whom_a_connection_is_for_is_changed_by_a_person_and_stays_changed() {
    let house = House::new().await;
    let (agent, caller) = house.furnished().await;
    let (other, others) = house.agent("codex").await;
    house.publish(&caller, "orders", &reads()).await;
    let shop = house.engine.connection("shop").await.unwrap().id;
    let person = house.console().await;
    assert_eq!(house.engine.scope_of(&shop).await.unwrap(), [], "all of them");
    house.engine.change_scope(&person, &shop, std::slice::from_ref(&other.id)).await.unwrap();
    assert_eq!(code(&house.call(&caller, "orders").await), "connection_not_in_scope");
    let asked = house.engine.propose_credential(&caller, "shop", "").await.unwrap_err();
    assert_eq!(asked.code(), "connection_not_found", "it is told nothing of it any more");
    assert_ne!(code(&house.call(&others, "orders").await), "connection_not_in_scope");
    let house = house.restarted().await;
    assert_eq!(house.engine.scope_of(&shop).await.unwrap(), std::slice::from_ref(&other.id));
    let both = [agent.id.clone(), other.id.clone()];
    house.engine.change_scope(&person, &shop, &both).await.unwrap();
    assert_ne!(code(&house.call(&caller, "orders").await), "connection_not_in_scope");
    house.engine.change_scope(&person, &shop, &[]).await.unwrap();
    assert_eq!(house.engine.scope_of(&shop).await.unwrap(), []);
    let nobody = [cambium_proxy::AgentId::new("nobody")];
    let unknown = house.engine.change_scope(&person, &shop, &nobody).await.unwrap_err();
    assert_eq!(unknown.code(), "agent_not_found");
    let said: Vec<_> = house.audited().await.into_iter().flat_map(|row| row.notes).collect();
    assert!(said.contains(&"now: for codex".to_owned()), "{said:?}");
}
