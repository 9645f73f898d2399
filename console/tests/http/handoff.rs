//! The handoff: what its page shows, what it takes, and where the secret goes.

use crate::house::{House, PASSPHRASE};
use cambium_engine::{
    Caller, Envelope, Live, LowLevel, NewAgent, PersonCredential, Status, WantedConnection,
};
use cambium_proxy::{ConnectionStatus, Effect};
use serde_json::json;

const CANARY: &str = "canary-8f2e5b61";

/// A set-up house, an agent of it, and what the agent may ask.
async fn furnished(name: &str) -> (House, Caller) {
    let house = House::open(name).await;
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let passphrase = PersonCredential::Passphrase(PASSPHRASE.into());
    house.engine.set_passphrase(&proof, passphrase).await.unwrap();
    let new = NewAgent { name: "cl<b>aude".into(), cap: 20, idle_days: 21 };
    let (_, token) = house.engine.create_agent(&proof, new).await.unwrap();
    let caller = house.engine.authenticate(&token).await.unwrap();
    (house, caller)
}

fn acme() -> WantedConnection {
    WantedConnection {
        vendor: "acme".into(),
        primary_host: "api.acme.com".into(),
        scheme: "bearer".into(),
        display_name: Some("Acme <i>shop</i>".into()),
        ..WantedConnection::default()
    }
}

fn path(answer: &Envelope) -> String {
    let link = &answer.ask.as_ref().unwrap().link;
    link[link.find("/handoff/").unwrap()..].to_owned()
}

#[tokio::test]
async fn b078_a_person_checks_the_hosts_and_enters_the_secret_on_the_page() {
    let (house, caller) = furnished("handoff").await;
    let wanted = WantedConnection {
        hosts: vec!["files.acme.com".into(), "xn--pple-43d.com".into()],
        docs_url: Some("https://acme.com/\u{202e}docs".into()),
        ..acme()
    };
    let answer = house.engine.propose_connection(&caller, wanted.clone()).await.unwrap();
    let path = path(&answer);

    // The link shows nothing without a session, and comes back after the login.
    for cookie in ["", "cambium_session=x"] {
        let turned = house.get(&path, cookie).await;
        assert_eq!(
            (turned.status, &*turned.headers["location"]),
            (303, &*format!("/login?next={path}"))
        );
        assert_eq!(house.post(&path, cookie, "answer=accept&secret=s").await.status, 303);
    }
    let (cookie, form) = house.log_in().await;
    assert!(house.get("/asks", &cookie).await.body.contains("Waiting for you: 1"));
    let page = house.get(&path, &cookie).await.body;
    for shown in [
        "cl&#60;b&#62;aude",
        "Acme &#60;i&#62;shop&#60;/i&#62;",
        "api.acme.com",
        "files.acme.com",
        "xn--pple-43d.com",
        "\u{430}pple.com",
        "acme.com",
        "outside `acme.com`",
        "letters that can look like others",
        "bearer token",
        "⟨U+202E⟩docs",
        "Documentation, the agent says",
    ] {
        assert!(page.contains(shown), "{shown} is not on the page: {page}");
    }
    assert!(!page.contains("<script>") && !page.contains("style=\""));

    // Slips: nothing is made, what was typed is there again, the secret is not.
    let agent = &caller.agent().id;
    let common =
        format!("form={form}&answer=accept&slug=acme&display_name=Acme+%07X&secret={CANARY}");
    let (ticks, scope) =
        ("&confirmed=api.acme.com&confirmed=files.acme.com", format!("&agent={agent}"));
    let typed = "&typed=xn--pple-43d.com";
    for (body, said) in [
        (
            format!("{common}{scope}&confirmed=api.acme.com{typed}"),
            "`files.acme.com` was not confirmed",
        ),
        (format!("{common}{scope}{ticks}&confirmed=xn--pple-43d.com"), "has to be typed"),
        (format!("{common}{scope}{ticks}&typed=apple.com"), "has to be typed"),
        (format!("{common}{ticks}{typed}"), "tick at least one agent"),
        (format!("{common}{scope}{ticks}{typed}"), "plain characters"),
        (
            format!(
                "form={form}&answer=accept&slug=A+B&display_name=A&secret={CANARY}{scope}{ticks}{typed}"
            ),
            "is not a tool name",
        ),
        (
            format!(
                "form={form}&answer=accept&slug=acme&display_name=A&secret={scope}{ticks}{typed}"
            ),
            "secret",
        ),
        (format!("form={form}&answer=maybe"), "must be accept or refuse"),
    ] {
        let slip = house.post(&path, &cookie, &body).await;
        assert_eq!(slip.status, 400, "{body}: {}", slip.body);
        assert!(slip.body.contains(said), "{said}: {}", slip.body);
        assert!(!slip.body.contains(CANARY), "the secret was shown again");
    }
    let slip = house.post(&path, &cookie, &format!("{common}{scope}{ticks}")).await.body;
    assert!(
        slip.contains("value=\"Acme ⟨U+0007⟩X\"")
            && slip.contains("value=\"api.acme.com\" checked"),
        "{slip}"
    );
    assert_eq!(house.post(&path, &cookie, "form=x&answer=accept").await.status, 403);
    assert!(house.engine.connections().await.unwrap().is_empty());

    let right = format!(
        "form={form}&answer=accept&slug=acme&display_name=Acme&secret={CANARY}{scope}{ticks}{typed}"
    );
    let done = house.post(&path, &cookie, &right).await;
    assert_eq!((done.status, &*done.headers["location"]), (303, "/connections"));
    let made = house.engine.connection("acme").await.unwrap();
    assert_eq!((made.status, made.hosts.len()), (ConnectionStatus::Connected, 3));
    let again = house.post(&path, &cookie, &right).await;
    assert_eq!(again.status, 409, "{}", again.body);

    // Then the same proposal answers `connected`, and no page has the secret.
    let then = house.engine.propose_connection(&caller, wanted).await.unwrap();
    assert_eq!((then.status, &then.result.unwrap()["connected"]), (Status::Ok, &json!(true)));
    for path in [&*path, "/asks", "/connections", "/agents", "/toolbox"] {
        assert!(!house.get(path, &cookie).await.body.contains(CANARY), "{path}");
    }
}

#[tokio::test]
async fn b078_a_link_that_is_not_whole_leads_nowhere_and_a_refusal_is_told() {
    let (house, caller) = furnished("handoff-refused").await;
    let answer = house.engine.propose_connection(&caller, acme()).await.unwrap();
    let path = path(&answer);
    let (cookie, form) = house.log_in().await;
    let (id, signature) = path.split_once('-').unwrap();
    let mut other = signature.to_owned();
    other.replace_range(..1, if signature.starts_with('0') { "1" } else { "0" });
    for bad in [format!("{id}-{other}"), format!("{id}-"), format!("/handoff/{signature}")] {
        assert_eq!(house.get(&bad, &cookie).await.status, 404, "{bad}");
    }
    let done = house.post(&path, &cookie, &format!("form={form}&answer=refuse")).await;
    assert_eq!(done.status, 303);
    let refused = house.engine.propose_connection(&caller, acme()).await.unwrap_err();
    assert_eq!(refused.code(), "proposal_refused");
    assert!(house.get(&path, &cookie).await.body.contains("refused"));
}

#[tokio::test]
async fn b082_a_credential_is_entered_again_on_the_page() {
    let (house, _) = House::with_ask("credential", Effect::Write).await;
    let caller = house.engine.authenticate(&house.agent_token).await.unwrap();
    let none = house.engine.propose_credential(&caller, "acme", "").await.unwrap_err();
    assert_eq!(none.code(), "argument_invalid", "a connection without a credential");

    let first = house
        .engine
        .propose_connection(&caller, WantedConnection { vendor: "bank".into(), ..acme() });
    let connect = path(&first.await.unwrap());
    let (cookie, form) = house.log_in().await;
    let agent = &caller.agent().id;
    let body = format!(
        "form={form}&answer=accept&slug=bank&display_name=Bank&secret=first-secret&agent={agent}\
         &confirmed=api.acme.com"
    );
    assert_eq!(house.post(&connect, &cookie, &body).await.status, 303);

    let why = "401 <b>\u{202e}";
    let asked = house.engine.propose_credential(&caller, "bank", why).await.unwrap();
    assert_eq!(asked.status, Status::AwaitingCredential);
    let path = path(&asked);
    let page = house.get(&path, &cookie).await.body;
    assert!(
        page.contains("in the agent's words") && page.contains("401 &#60;b&#62;⟨U+202E⟩"),
        "{page}"
    );
    let empty = house.post(&path, &cookie, &format!("form={form}&answer=accept&secret=")).await;
    assert_eq!(empty.status, 400);
    let body = format!("form={form}&answer=accept&secret={CANARY}&same_account=yes");
    let done = house.post(&path, &cookie, &body).await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(house.engine.connection("bank").await.unwrap().generation, 1, "approvals stay");
    let then = house.engine.propose_credential(&caller, "bank", why).await.unwrap();
    assert_eq!(then.status, Status::Ok);
}

#[tokio::test]
async fn b087_a_person_allows_pages_of_a_host_on_its_page_and_takes_it_back_on_the_agents() {
    let (house, caller) = furnished("permission").await;
    let (engine, agent) = (&house.engine, &caller.agent().id);
    let code = engine.issue_code().await.unwrap();
    let proof = engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    engine.set_low_level(&proof, agent, LowLevel::All).await.unwrap();
    let live = || Live::new(Default::default());
    let url = "https://docs.acme.com/a";
    let asked = engine.read_web_page(&caller, url, live()).await.unwrap();
    let path = path(&asked);
    assert_eq!(house.get(&path, "").await.status, 303);
    let (cookie, form) = house.log_in().await;
    assert!(house.get("/asks", &cookie).await.body.contains("to read pages of docs.acme.com"));
    let page = house.get(&path, &cookie).await.body;
    for shown in ["Let an agent read pages of", "docs.acme.com", "cl&#60;b&#62;aude"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let forged = house.post(&path, &cookie, "form=x&answer=accept").await;
    assert_eq!(forged.status, 403);
    assert!(engine.permissions(agent).await.unwrap().is_empty());
    let allowed = house.post(&path, &cookie, &format!("form={form}&answer=accept")).await;
    assert_eq!((allowed.status, &*allowed.headers["location"]), (303, "/asks"));
    assert_eq!(engine.permissions(agent).await.unwrap().len(), 1);
    let again = house.post(&path, &cookie, &format!("form={form}&answer=accept")).await;
    assert_eq!(again.status, 409);
    let at = format!("/agents/{agent}");
    assert!(house.get(&at, &cookie).await.body.contains("to read pages of docs.acme.com"));
    let back = format!("form={form}&do=forget&host=docs.acme.com");
    assert_eq!(house.post(&at, &cookie, &back).await.status, 303);
    assert!(engine.permissions(agent).await.unwrap().is_empty());
    let asked = engine.read_web_page(&caller, url, live()).await.unwrap();
    assert_eq!(asked.status, Status::AwaitingApproval);
}
