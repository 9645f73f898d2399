//! The console over real HTTP, on a real engine and store: who gets in, which
//! forms count, what a decision does, that foreign text cannot hide, and where
//! a secret goes (behaviours 67, 78, 81, 82, 88 to 91).
#![allow(clippy::unwrap_used)]
// A test is a client, and dials its own listener.
#![allow(clippy::disallowed_methods)]

mod asks;
mod handoff;
mod house;
mod live;
mod pages;

use cambium_engine::{NewConnection, PersonCredential};
use cambium_proxy::{AskId, Effect, Host};
use house::House;

#[tokio::test]
async fn b091_the_first_login_sets_the_passphrase_and_costs_its_code() {
    let house = House::open("setup").await;
    let page = house.get("/login", "").await;
    assert!(page.body.contains("One-time code") && page.body.contains("New passphrase"));
    assert!(page.body.contains("own user"), "the notice is on each page");
    let code = house.engine.issue_code().await.unwrap();
    let form =
        |code: &str, again: &str| format!("code={code}&passphrase=long+enough&again={again}");
    let slip = house.post("/login", "", &form(&code, "long+enouhg")).await;
    assert_eq!(slip.status, 400, "a slip does not cost the code");
    let wrong = house.post("/login", "", &form("aaaaaaa-bbbbbbb", "long+enough")).await;
    assert_eq!(wrong.status, 403);
    assert!(house.engine.needs_setup().await.unwrap());
    let right = house.post("/login", "", &form(&code, "long+enough")).await;
    assert_eq!((right.status, right.headers["location"].as_str()), (303, "/start"));
    let cookie = &right.headers["set-cookie"];
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(house.get("/asks", cookie).await.status, 200);
    let again = house.post("/login", "", &format!("code={code}")).await;
    assert_eq!(again.status, 403, "a code is good once");
    assert!(again.body.contains("The code is wrong, used or expired"), "{}", again.body);
    let wrong = house.post("/login", "", "passphrase=something+else").await;
    assert_eq!(wrong.status, 403);
    assert!(wrong.body.contains("The passphrase is wrong"), "{}", wrong.body);
    assert!(!wrong.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn b091_j10_nothing_is_shown_or_done_without_a_session() {
    let (house, id) = House::with_ask("anonymous", Effect::Write).await;
    let ask = format!("/asks/{id}");
    for path in ["/asks", &ask, "/agents", "/toolbox", "/toolbox/acme__pay", "/connections"] {
        let token = house.agent_token.clone();
        for cookie in
            ["", "cambium_session=", "cambium_session=x", &format!("cambium_session={token}")]
        {
            let answer = house.get(path, cookie).await;
            assert_eq!(answer.status, 303, "{path} {cookie}");
            assert_eq!(answer.headers["location"], format!("/login?next={path}"));
            assert!(!answer.body.contains("orders"));
        }
        // An agent's token is no person, however it is shown.
        let bearer = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n",
            house.address
        );
        assert_eq!(house.send(&bearer, "").await.status, 303);
    }
    let answer = house.post(&ask, "", "answer=once").await;
    assert_eq!(answer.status, 303);
    assert_eq!(house.state(&id).await, "open");
    let (cookie, _) = house.log_in().await;
    let planted = house.get("/asks", &format!("{cookie}; cambium_session=x")).await;
    assert_eq!(planted.status, 303, "two cookies of the name");
}

#[tokio::test]
async fn b091_j10_a_form_counts_only_from_its_own_session_and_origin() {
    let (house, id) = House::with_ask("forms", Effect::Write).await;
    let ask = format!("/asks/{id}");
    let (cookie, form) = house.log_in().await;
    let (_, other) = house.log_in().await;
    assert_ne!(form, other);
    for body in
        ["answer=once".to_owned(), "form=&answer=once".into(), format!("form={other}&answer=once")]
    {
        assert_eq!(house.post(&ask, &cookie, &body).await.status, 403, "{body}");
    }
    let good = format!("form={form}&answer=once");
    for origin in [
        String::new(),
        "Origin: null\r\n".into(),
        "Origin: http://evil.test\r\n".into(),
        format!("Origin: https://{}\r\n", house.address),
        format!("Origin: http://{}.evil.test\r\n", house.address),
        format!("Origin: http://{0}\r\nOrigin: http://{0}\r\n", house.address),
        format!("Origin: http://{}\r\nSec-Fetch-Site: cross-site\r\n", house.address),
    ] {
        assert_eq!(house.post_from(&ask, &cookie, &origin, &good).await.status, 403, "{origin}");
    }
    for host in ["evil.test", "localhost", "127.0.0.1"] {
        let head = format!("GET /asks HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n");
        let answer = house.send(&head, "").await;
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.body.contains("orders"));
    }
    let head = format!(
        "GET /asks HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.test\r\nCookie: {cookie}\r\n",
        house.address
    );
    assert_eq!(house.send(&head, "").await.status, 403);
    let unknown = house.post(&ask, &cookie, &format!("{good}&more=1")).await;
    assert_eq!(unknown.status, 422);
    assert_eq!(house.state(&id).await, "open");
    assert_eq!(house.post("/logout", &cookie, "form=x").await.status, 403);
    let out = house.post("/logout", &cookie, &format!("form={form}")).await;
    assert!(out.headers["set-cookie"].contains("Max-Age=0"));
    assert_eq!(house.get("/asks", &cookie).await.status, 303);
}

#[tokio::test]
async fn b091_every_answer_carries_the_security_headers() {
    let (house, _) = House::with_ask("headers", Effect::Write).await;
    let (cookie, _) = house.log_in().await;
    let asks = house.get("/asks", &cookie).await.body;
    let script = asks.split("<script src=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(script.starts_with("/console-") && script.ends_with(".js"), "{script}");
    for path in ["/", "/login", "/asks", "/nowhere", "/live", "/style.css", script] {
        let answer = house.get(path, if path == "/live" { "" } else { &cookie }).await;
        assert_eq!(
            answer.headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
             form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            "{path}"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        let kept = if path == script { "immutable" } else { "no-store" };
        assert!(answer.headers["cache-control"].ends_with(kept), "{path}");
        // The one script is a file; where nobody is logged in there is none.
        let scripts = answer.body.matches("<script").count();
        assert_eq!(scripts, usize::from(path == "/asks"), "{path}");
        let inline =
            |word: &str| word.starts_with("style=") || word.starts_with("on") && word.contains('=');
        assert!(path == script || !answer.body.split_whitespace().any(inline), "{path}");
    }
    let text = house.get(script, "").await;
    assert_eq!(text.headers["content-type"], "text/javascript; charset=utf-8");
    for sink in
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval", "Function("]
    {
        assert!(!text.body.contains(sink), "{sink}");
    }
    assert_eq!(house.get("/console-0000000000000000.js", &cookie).await.status, 404);
    assert_eq!(house.get("/nowhere", &cookie).await.status, 404);
    assert_eq!(house.get("/asks/unknown", &cookie).await.status, 404);
    assert_eq!(house.get("/toolbox/Not_A_Name", &cookie).await.status, 400);
}

#[tokio::test]
async fn b090_an_ask_shows_the_exact_request_and_nothing_hides() {
    let (house, id) = House::with_ask("page", Effect::Write).await;
    let (cookie, _) = house.log_in().await;
    let list = house.get("/asks", &cookie).await.body;
    assert!(list.contains("Waiting for you: 1") && list.contains("Asks (1)"));
    let page = house.get(&format!("/asks/{id}"), &cookie).await.body;
    for shown in [
        "POST",
        "api.acme.test",
        "/orders",
        "to=%E2%80%AEmoc.live&#38;note=a+b",
        "⟨U+202E⟩moc.live",
        "a b",
        "“al⟨U+202E⟩ecila”",
        "“&#60;img src=x&#62;”",
        "content-type",
        "Pays &#60;script&#62;alert(1)&#60;/script&#62;",
        &house.engine.ask(&AskId::new(id.clone())).await.unwrap().digest,
        "acme__pay",
        "POST /orders",
        "Allow once",
        "Allow from now on",
        "Deny",
    ] {
        assert!(page.contains(shown), "{shown} is not on the page: {page}");
    }
    for hidden in ['\u{202e}', '\u{200b}'] {
        assert!(!page.contains(hidden) && !list.contains(hidden));
    }
    let (method, query) = (page.find("<dt>Method").unwrap(), page.find("<h2>Query").unwrap());
    assert!(method < query && query < page.find("Who asks").unwrap());
    for path in ["/agents", "/toolbox", "/toolbox/acme__pay", "/connections"] {
        let page = house.get(path, &cookie).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(!page.body.contains("<script>") && !page.body.contains("Acme <b>"));
    }
    let agent = house.engine.agents().await.unwrap().remove(0);
    let page = house.get(&format!("/agents/{}", agent.id), &cookie).await.body;
    assert!(page.contains("acme__pay") && page.contains("Promoted by") && page.contains("never"));
}

#[tokio::test]
async fn b062_j09_the_first_decision_wins_and_a_second_is_told() {
    let (house, id) = House::with_ask("twice", Effect::Write).await;
    let ask = format!("/asks/{id}");
    let (cookie, form) = house.log_in().await;
    let once = house.post(&ask, &cookie, &format!("form={form}&answer=once")).await;
    assert_eq!((once.status, once.headers["location"].as_str()), (303, ask.as_str()));
    assert_eq!(house.state(&id).await, "allowed_once");
    let late = house.post(&ask, &cookie, &format!("form={form}&answer=deny")).await;
    assert_eq!(late.status, 409);
    assert!(late.body.contains("already settled: allowed once"));
    assert_eq!(house.state(&id).await, "allowed_once");
    let page = house.get(&ask, &cookie).await.body;
    assert!(!page.contains("Your answer"));
    assert!(house.get("/asks", &cookie).await.body.contains("Waiting for you: 0"));
}

#[tokio::test]
async fn standing_and_destructive_answers_need_the_passphrase_again() {
    let (house, id) = House::with_ask("standing", Effect::Write).await;
    let ask = format!("/asks/{id}");
    let (cookie, form) = house.log_in().await;
    for rest in ["", "&passphrase=", "&passphrase=wrong+one"] {
        let answer = house.post(&ask, &cookie, &format!("form={form}&answer=standing{rest}")).await;
        assert_eq!(answer.status, 403, "{rest}");
        assert!(answer.body.contains("Nothing was decided"));
        assert_eq!(house.state(&id).await, "open");
    }
    let unknown = house.post(&ask, &cookie, &format!("form={form}&answer=withdrawn")).await;
    assert_eq!(unknown.status, 400);
    let body = format!("form={form}&answer=standing&passphrase=correct+horse+battery");
    assert_eq!(house.post(&ask, &cookie, &body).await.status, 303);
    assert_eq!(house.state(&id).await, "allowed_standing");

    let (house, id) = House::with_ask("destructive", Effect::Destroy).await;
    let ask = format!("/asks/{id}");
    let (cookie, form) = house.log_in().await;
    assert!(house.get(&ask, &cookie).await.body.contains("It deletes"));
    assert_eq!(house.post(&ask, &cookie, &format!("form={form}&answer=once")).await.status, 403);
    assert_eq!(house.state(&id).await, "open");
    let body = format!("form={form}&answer=once&passphrase=correct+horse+battery");
    assert_eq!(house.post(&ask, &cookie, &body).await.status, 303);
    assert_eq!(house.state(&id).await, "allowed_once");
}

/// A connection whose vendor is a closed port: everything up to the redemption
/// can be seen, and that it fails closed.
async fn with_sign_in(house: &House) -> String {
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let scheme = serde_json::json!({
        "scheme": "oauth2_authorization_code", "client_auth": "none", "client_id": "me",
        "authorization_url": "https://localhost:1/authorize", "token_url": "https://localhost:1/token",
        "issuer": "https://localhost:1",
    });
    let exceptions = serde_json::json!([{"cidr": "127.0.0.0/8", "port": 1}]);
    let new = NewConnection {
        slug: "bank".into(),
        vendor: "bank".into(),
        display_name: "Bank <b>".into(),
        hosts: vec![Host { label: "api".into(), name: "localhost".into(), port: 1 }],
        scheme: serde_json::from_value(scheme).unwrap(),
        exceptions: serde_json::from_value(exceptions).unwrap(),
        ca_pem: None,
        overrides: cambium_proxy::Overrides::default(),
        agents: Vec::new(),
    };
    let made = house.engine.create_connection(&proof, new, None).await.unwrap();
    made.id.to_string()
}

/// The link on the page after the form, unescaped.
async fn link(house: &House, cookie: &str, form: &str) -> String {
    let page = house.post("/connections/bank/authorize", cookie, &format!("form={form}")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let link = page.body.split("<a href=\"https://").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    format!("https://{link}")
}

fn state_in(link: &str) -> &str {
    link.split("&state=").nth(1).unwrap().split('&').next().unwrap()
}

#[tokio::test]
async fn d17_a_sign_in_begins_and_ends_in_one_session_and_once() {
    let (house, _) = House::with_ask("sign-in", Effect::Write).await;
    with_sign_in(&house).await;
    let (cookie, form) = house.log_in().await;
    let list = house.get("/connections", &cookie).await;
    assert!(list.body.contains("waits for you to sign in"), "{}", list.body);
    assert!(list.body.contains("/connections/bank/authorize"));
    // Without a session or a form of its own nothing begins; another scheme has no page.
    assert_eq!(house.get("/connections/bank/authorize", "").await.status, 303);
    assert_eq!(house.get("/connections/acme/authorize", &cookie).await.status, 404);
    for forged in ["", "form=x"] {
        let refused = house.post("/connections/bank/authorize", &cookie, forged).await;
        assert_eq!(refused.status, 403);
    }
    let page = house.get("/connections/bank/authorize", &cookie).await;
    assert!(page.body.contains("Bank &#60;b&#62;"), "{}", page.body);
    let first = link(&house, &cookie, &form).await;
    assert!(first.starts_with("https://localhost:1/authorize?response_type=code&client_id=me&"));
    let back = format!(
        "&redirect_uri=http%3A%2F%2F127.0.0.1%3A{}%2Foauth%2Fcallback&",
        house.address.port()
    );
    assert!(first.contains(&back) && first.contains("&code_challenge_method=S256"), "{first}");

    // The vendor's answer arrives without the cookie and is only passed on.
    let state = state_in(&first).to_owned();
    let query =
        format!("state={state}&code=a%22%3E%3Cscript%3E&iss=https%3A%2F%2Flocalhost%3A1&x=1");
    let returned = house.get(&format!("/oauth/callback?{query}"), "").await;
    assert_eq!(returned.status, 200);
    let onward =
        format!("url=/oauth/complete?state={}", state.replace('-', "%2D").replace('_', "%5F"));
    assert!(returned.body.contains(&onward), "{}", returned.body);
    assert!(!returned.body.contains("<script>") && !returned.body.contains("x=1"));

    // Another session, or none, brings nothing and uses the sign-in up.
    let complete = |state: &str| {
        format!("/oauth/complete?state={state}&code=c&iss=https%3A%2F%2Flocalhost%3A1")
    };
    assert_eq!(house.get(&complete(&state), "").await.status, 303);
    let (other, _) = house.log_in().await;
    let stolen = house.get(&complete(&state), &other).await;
    assert_eq!(stolen.status, 400, "{}", stolen.body);
    assert!(stolen.body.contains("no sign-in of this session"));
    assert_eq!(house.get(&complete(&state), &cookie).await.status, 400);

    // Its own session gets as far as the vendor, which is a closed port.
    let second = link(&house, &cookie, &form).await;
    assert_ne!(state_in(&second), state);
    let failed = house.get(&complete(state_in(&second)), &cookie).await;
    assert_eq!(failed.status, 403);
    assert!(failed.body.contains("credential_unavailable"), "{}", failed.body);
    // An answer that names no issuer, another one, or no code is not redeemed.
    for answer in ["code=c", "code=c&iss=https%3A%2F%2Fevil.test", "error=access_denied"] {
        let begun = link(&house, &cookie, &form).await;
        let refused = house
            .get(&format!("/oauth/complete?state={}&{answer}", state_in(&begun)), &cookie)
            .await;
        assert_eq!(refused.status, 403, "{answer}");
    }
    assert_eq!(house.get("/oauth/complete?state=guessed&code=c", &cookie).await.status, 400);
    let still = house.engine.connection("bank").await.unwrap();
    assert_eq!((still.status, still.generation), (cambium_proxy::ConnectionStatus::Pending, 1));
}

#[tokio::test]
async fn b055_a_description_is_the_agents_account_wherever_it_is_shown() {
    let (house, id) = House::with_ask("account", Effect::Write).await;
    let (cookie, _) = house.log_in().await;
    for path in [&*format!("/asks/{id}"), "/toolbox", "/toolbox/acme__pay"] {
        let page = house.get(path, &cookie).await.body;
        let (marked, text) = (page.find("What the agent says it does"), page.find("Pays "));
        assert!(marked.is_some() && marked < text, "{path}: {page}");
        assert!(!page.contains("<script>alert"), "{path}: as text");
    }
}
