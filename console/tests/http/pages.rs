//! The pages a person looks around in, and what they change there.

use crate::house::House;
use cambium_engine::{PersonCredential, PublishRequest, Publisher, ToolName};
use cambium_proxy::{Answer, ConnectionStatus, Effect};

const CANARY: &str = "canary-77ab01c3";

fn in_order(page: &str, words: &[&str]) {
    let mut from = 0;
    for word in words {
        let at = page[from..].find(word);
        from += at.unwrap_or_else(|| panic!("{word} is not on the page, or too early: {page}"));
    }
}

#[tokio::test]
async fn b088_an_agent_is_made_changed_and_its_token_is_shown_once() {
    let (house, _) = House::with_ask("agents", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    for (name, cap, idle) in [
        ("new", "0", "21"),
        ("new", "501", "21"),
        ("new", "1.5", "21"),
        ("new", "", "21"),
        ("new", "20", "0"),
        ("new", "20", "3651"),
        ("", "20", "21"),
        ("a%07b", "20", "21"),
    ] {
        let body = format!("form={form}&name={name}&cap={cap}&idle_days={idle}");
        let slip = house.post("/agents", &cookie, &body).await;
        assert_eq!(slip.status, 400, "{body}");
        assert!(slip.body.contains("Nothing was done"), "{}", slip.body);
        assert!(slip.body.contains(&format!("value=\"{cap}\"")), "what was typed is there again");
    }
    assert_eq!(house.engine.agents().await.unwrap().len(), 1);
    let body = format!("form={form}&name=laptop&cap=5&idle_days=7");
    assert_eq!(house.post("/agents", &cookie, &body.replace(&form, "x")).await.status, 403);
    let made = house.post("/agents", &cookie, &body).await;
    assert_eq!(made.status, 200);
    let token = made.body.split("cambium_").nth(1).unwrap().split('<').next().unwrap();
    let token = format!("cambium_{token}");
    let agent = house.engine.authenticate(&token).await.unwrap().agent().clone();
    assert_eq!((&*agent.name, agent.cap, agent.idle_days), ("laptop", 5, 7));
    assert_eq!(house.post("/agents", &cookie, &body).await.status, 400, "the name is taken");

    let page = format!("/agents/{}", agent.id);
    for path in [&*page, "/agents"] {
        assert!(!house.get(path, &cookie).await.body.contains(&token), "{path}");
    }
    let edit = format!("form={form}&do=edit&name=desk&cap=6&idle_days=8&paused=yes");
    assert_eq!(house.post(&page, &cookie, &edit).await.status, 303);
    let changed = house.engine.agent("desk").await.unwrap();
    assert_eq!((changed.cap, changed.idle_days, changed.paused), (6, 8, true));
    let wrong = house.post(&page, &cookie, &edit.replace("cap=6", "cap=six")).await;
    assert!(wrong.status == 400 && wrong.body.contains("six"), "{}", wrong.body);
    let rotated = house.post(&page, &cookie, &format!("form={form}&do=rotate")).await;
    assert!(rotated.status == 200 && !rotated.body.contains(&token));
    assert!(house.engine.authenticate(&token).await.is_err());
    assert_eq!(house.post(&page, &cookie, &format!("form={form}&do=dance")).await.status, 400);
}

#[tokio::test]
async fn b088_an_agents_page_has_the_set_the_history_the_forecast_and_what_stands() {
    let (house, id) = House::with_ask("agent", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let agent = house.engine.agents().await.unwrap().remove(0);
    let path = format!("/agents/{}", agent.id);
    let page = house.get(&path, &cookie).await.body;
    in_order(
        &page,
        &[
            "Working set (1)",
            "Promoted by",
            "Last used",
            "Leaves",
            "acme__pay",
            "a publish",
            "never",
            "unused past the idle window",
            "No answer of yours stands",
            "History",
            "published for the agent",
        ],
    );

    let (ask, deny) = (format!("/asks/{id}"), format!("form={form}&answer=deny"));
    assert_eq!(house.post(&ask, &cookie, &deny).await.status, 303);
    let page = house.get(&path, &cookie).await.body;
    in_order(&page, &["What stands", "acme__pay", "denied", "acme", "Withdraw"]);
    let withdraw = format!("form={form}&do=withdraw&tool=acme__pay");
    assert_eq!(house.post(&path, &cookie, &withdraw).await.status, 303);
    assert!(house.engine.standing_answers().await.unwrap().is_empty(), "a no is taken back too");
    assert_eq!(house.post(&path, &cookie, &withdraw).await.status, 400, "nothing stands");

    let demote = format!("form={form}&do=demote&tool=acme__pay");
    assert_eq!(house.post(&path, &cookie, &demote).await.status, 303);
    in_order(&house.get(&path, &cookie).await.body, &["Working set (0)", "out", "you moved it"]);
    let promote = format!("form={form}&do=promote&tool=acme__pay");
    assert_eq!(house.post(&path, &cookie, &promote).await.status, 303);
    in_order(&house.get(&path, &cookie).await.body, &["Working set (1)", "you", "you moved it"]);
    for tool in ["acme__nothing", "nonsense"] {
        let body = format!("form={form}&do=promote&tool={tool}");
        assert!(house.post(&path, &cookie, &body).await.status >= 400, "{tool}");
    }
}

#[tokio::test]
async fn b089_a_card_has_tools_calls_and_the_way_out_and_back() {
    let (house, _) = House::with_ask("cards", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let agent = house.engine.agents().await.unwrap().remove(0);
    let try_it = format!("form={form}&agent={}&input=%7B%22a%22%3A%22%E2%80%AEx%22%7D", agent.id);
    let tried = house.post("/toolbox/acme__pay", &cookie, &try_it).await;
    assert_eq!(tried.status, 200, "{}", tried.body);
    in_order(&tried.body, &["What it answered", "dry_run", "⟨U+202E⟩x"]);

    let page = house.get("/connections", &cookie).await.body;
    in_order(
        &page,
        &[
            "Acme &#60;b&#62;",
            "connected",
            "Tools authored against it",
            "acme__pay",
            "Last calls",
            "(dry run)",
            "Revoke",
        ],
    );
    let revoke = format!("form={form}&do=revoke");
    assert_eq!(house.post("/connections/acme", &cookie, "form=x&do=revoke").await.status, 403);
    assert_eq!(house.post("/connections/acme", &cookie, &revoke).await.status, 303);
    let page = house.get("/connections", &cookie).await.body;
    in_order(&page, &["revoked", "Reconnect"]);
    let history = house.get(&format!("/agents/{}", agent.id), &cookie).await.body;
    assert!(history.contains("its connection was revoked"));
    let back = format!("form={form}&do=reconnect&secret=");
    assert_eq!(house.post("/connections/acme", &cookie, &back).await.status, 303);
    let now = house.engine.connection("acme").await.unwrap();
    assert_eq!(now.status, ConnectionStatus::Connected);
    let history = house.get(&format!("/agents/{}", agent.id), &cookie).await.body;
    in_order(&history, &["Working set (1)", "the rule", "its connection came back"]);
    let twice = house.post("/connections/acme", &cookie, &back).await;
    assert!(twice.status == 400 && twice.body.contains("is not revoked"), "{}", twice.body);
    assert_eq!(house.post("/connections/nobody", &cookie, &revoke).await.status, 404);
}

#[tokio::test]
async fn b089_a_tool_has_its_versions_a_difference_and_a_dry_run() {
    let (house, _) = House::with_ask("versions", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let tool = ToolName::new("acme", "pay").unwrap();
    let source = house.engine.read_tool_source(&tool, None).await.unwrap().source;
    let source =
        source.replace("'/orders'", "'/orders\u{202e}'").replace("/orders\u{202e}", "/payments");
    let request = PublishRequest { tool, connection: Some("acme".into()), source };
    house.engine.publish(&Publisher::Person { promote_for: None }, request).await.unwrap();
    let page = house.get("/toolbox/acme__pay", &cookie).await.body;
    in_order(
        &page,
        &["the current one", "POST /payments", "Versions", "?version=2&amp;from=1", "?version=1"],
    );
    let old = house.get("/toolbox/acme__pay?version=1", &cookie).await.body;
    in_order(&old, &["version 2 is the current one", "POST /orders"]);
    let diff = house.get("/toolbox/acme__pay?version=2&from=1", &cookie).await.body;
    in_order(
        &diff,
        &["What changed from version 1", "class=\"removed\"", "class=\"added\"", "/payments"],
    );
    assert_eq!(house.get("/toolbox/acme__pay?version=9", &cookie).await.status, 404);

    let agent = house.engine.agents().await.unwrap().remove(0);
    for (input, status) in [("%7B%7D", 200), ("nonsense", 400), ("%5B%5D", 400)] {
        let body = format!("form={form}&agent={}&input={input}", agent.id);
        let tried = house.post("/toolbox/acme__pay", &cookie, &body).await;
        assert_eq!(tried.status, status, "{input}: {}", tried.body);
    }
    let body = format!("form={form}&agent=nobody&input=%7B%7D");
    assert_eq!(house.post("/toolbox/acme__pay", &cookie, &body).await.status, 404);
    let runs = house.get("/runs", &cookie).await.body;
    in_order(
        &runs,
        &[
            "By tool",
            "acme__pay",
            "<svg class=\"chart\"",
            "<rect x=\"0\"",
            "Newest",
            "acme__pay version 2",
            "(dry run)",
        ],
    );
}

#[tokio::test]
async fn b089_the_audit_is_filtered_and_read_backwards() {
    let (house, _) = House::with_ask("audit", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    for word in ["revoke", "reconnect"] {
        house.post("/connections/acme", &cookie, &format!("form={form}&do={word}")).await;
    }
    let all = house.get("/audit", &cookie).await.body;
    in_order(&all, &["<tbody>", "change", "now: reconnected"]);
    for (filter, there) in [
        ("kind=change", true),
        ("kind=intent", false),
        ("connection=acme", true),
        ("connection=other", false),
        ("connection=acme&kind=change&agent=&tool=", true),
        ("tool=pay", false),
        ("agent=claude", false),
        ("before=1", false),
        ("kind=%3Cscript%3E", false),
    ] {
        let page = house.get(&format!("/audit?{filter}"), &cookie).await;
        assert_eq!((page.status, page.body.contains("now: reconnected")), (200, there), "{filter}");
        assert!(!page.body.contains("<script>"));
    }
}

#[tokio::test]
async fn b091_no_page_shows_a_secret() {
    let (house, id) = House::with_ask("canary", Effect::Write).await;
    let caller = house.engine.authenticate(&house.agent_token).await.unwrap();
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let wanted = cambium_engine::WantedConnection {
        vendor: "bank".into(),
        primary_host: "api.bank.com".into(),
        scheme: "bearer".into(),
        ..Default::default()
    };
    let asked = house.engine.propose_connection(&caller, wanted).await.unwrap();
    let (cookie, form) = house.log_in().await;
    let handoff = asked.ask.unwrap().link.replace("http://127.0.0.1", "");
    let body = format!(
        "form={form}&answer=accept&slug=bank&display_name=Bank&secret={CANARY}&every_agent=yes\
         &confirmed=api.bank.com"
    );
    assert_eq!(house.post(&handoff, &cookie, &body).await.status, 303);
    house.post("/connections/bank", &cookie, &format!("form={form}&do=revoke")).await;
    let back = format!("form={form}&do=reconnect&secret={CANARY}2");
    assert_eq!(house.post("/connections/bank", &cookie, &back).await.status, 303);
    let wrong = house.post("/connections/bank", &cookie, &back).await;
    assert!(wrong.status == 400 && !wrong.body.contains(CANARY));
    let request = cambium_engine::DecideRequest {
        ask: cambium_proxy::AskId::new(id.clone()),
        answer: Answer::Deny,
        channel: "console".into(),
    };
    house.engine.decide(&proof, request).await.unwrap();
    let agent = &caller.agent().id;
    for path in [
        "/asks".to_owned(),
        format!("/asks/{id}"),
        handoff,
        "/agents".into(),
        format!("/agents/{agent}"),
        "/connections".into(),
        "/connections/bank/authorize".into(),
        "/toolbox".into(),
        "/toolbox/acme__pay".into(),
        "/runs".into(),
        "/audit".into(),
    ] {
        let page = house.get(&path, &cookie).await.body;
        for secret in [CANARY, &house.agent_token, crate::house::PASSPHRASE] {
            assert!(!page.contains(secret), "{path}");
        }
        let token = cookie.split_once('=').unwrap().1;
        assert!(!page.contains(token), "{path} shows the session");
    }
}

#[tokio::test]
async fn b091_the_first_run_goes_from_the_link_to_a_harness_that_has_called() {
    let house = House::open("start").await;
    let code = house.engine.issue_code().await.unwrap();
    let login = house.get(&format!("/login?code={code}"), "").await.body;
    assert!(login.contains(&format!("value=\"{code}\"")), "the link fills the code in");
    assert!(house.engine.needs_setup().await.unwrap(), "a link alone does nothing");
    for planted in ["x%22%3E%3Cscript%3E", "%E2%80%AEabc", &"a".repeat(65)] {
        let page = house.get(&format!("/login?code={planted}"), "").await.body;
        assert!(page.contains("name=\"code\" value=\"\""), "{planted}");
    }
    assert_eq!(house.get("/start", "").await.headers["location"], "/login?next=/start");
    let set = format!("code={code}&passphrase=long+enough&again=long+enough");
    let entered = house.post("/login", "", &set).await;
    assert_eq!((entered.status, &*entered.headers["location"]), (303, "/start"));
    let cookie = entered.headers["set-cookie"].split(';').next().unwrap().to_owned();
    let page = house.get("/start", &cookie).await.body;
    assert!(page.contains("Make an agent") && page.contains("Your first agent"), "{page}");
    let form = page.split("name=\"form\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let new = format!("form={form}&name=laptop&cap=20&idle_days=21");
    let made = house.post("/agents", &cookie, &new).await;
    assert_eq!(made.status, 200);
    for lines in ["claude mcp add", "bearer_token_env_var", "mcpServers", "/mcp", "CAMBIUM_TOKEN"] {
        assert!(made.body.contains(lines), "{lines}: {}", made.body);
    }
    let token = made.body.split("cambium_").nth(1).unwrap().split('<').next().unwrap();
    let token = format!("cambium_{token}");
    let lines = made.body.split("Claude Code").nth(1).unwrap();
    assert!(!lines.contains(&token), "the token stands in no line to paste");
    let agent = house.engine.agent("laptop").await.unwrap().id;
    let at = format!("/start/{agent}");
    let waiting = house.get(&at, &cookie).await.body;
    assert!(waiting.contains("has not called") && waiting.contains("Look again"), "{waiting}");
    assert!(!waiting.contains(&token));
    assert!(!waiting.contains("<h2>A service"), "one step after the other: {waiting}");
    let caller = house.engine.authenticate(&token).await.unwrap();
    let connected = house.get(&at, &cookie).await.body;
    in_order(
        &connected,
        &["Connected: its harness called last at", "<h2>A service", "/connect", "<h2>A tool"],
    );
    let start = house.get("/start", &cookie).await.body;
    in_order(&start, &["A harness has called", "<strong>Connect a service", "connected: called"]);
    assert_eq!(house.get("/start/nobody", &cookie).await.status, 404);

    // What the agent asks for is on the way, and so is what there is to add.
    let wanted = cambium_engine::WantedConnection {
        vendor: "bank".into(),
        primary_host: "api.bank.com".into(),
        scheme: "bearer".into(),
        ..Default::default()
    };
    house.engine.propose_connection(&caller, wanted).await.unwrap();
    for path in [&*at, "/start"] {
        let page = house.get(path, &cookie).await.body;
        in_order(&page, &["Your agent asks you", "/handoff/", "a connection to bank"]);
    }
    let vendors = house.get("/connect", &cookie).await.body;
    in_order(&vendors, &["/connect/github", "api.github.com", "/connect/xero"]);
    let ask = house.get("/connect/github", &cookie).await.body;
    assert!(ask.contains("uploads.github.com") && ask.contains("checked"), "{ask}");
    let add = format!("form={form}&slug=github&display_name=GitHub&secret={CANARY}&agent={agent}");
    let done = house.post("/connect/github", &cookie, &add).await;
    assert_eq!((done.status, &*done.headers["location"]), (303, "/connections"));
    let made = house.engine.connection("github").await.unwrap();
    assert_eq!((made.status, made.hosts.len()), (ConnectionStatus::Connected, 2));
    assert!(made.overrides.graphql.is_some(), "what is known of the vendor's ways holds");
    assert_eq!(house.engine.scope_of(&made.id).await.unwrap(), [agent]);
    let page = house.get(&at, &cookie).await.body;
    in_order(
        &page,
        &["Connected: github", "<h2>A tool", "Tell your agent what you want of github"],
    );

    let source = "export const description = 'Reads';\n\
                  export const inputSchema = { type: 'object' };\n\
                  export default async (ctx) => ctx.fetch('/user');";
    let tool = ToolName::new("github", "user").unwrap();
    let request =
        PublishRequest { tool, connection: Some("github".into()), source: source.to_owned() };
    house.engine.publish(&Publisher::Person { promote_for: None }, request).await.unwrap();
    let page = house.get("/start", &cookie).await.body;
    in_order(&page, &["A service is connected", "A tool is there", "/toolbox/github__user"]);
}

#[tokio::test]
async fn b089_a_known_service_is_connected_on_its_page() {
    let (house, _) = House::with_ask("known", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let at = "/connect/google-gmail";
    assert_eq!(house.get(at, "").await.headers["location"], format!("/login?next={at}"));
    assert_eq!(house.get("/connect/nobody", &cookie).await.status, 404);
    let common = format!("form={form}&display_name=Mail&every_agent=yes&secret={CANARY}");
    assert_eq!(house.post(at, &cookie, &common.replace(&form, "x")).await.status, 403);
    for (body, said) in [
        (format!("{common}&slug=mail"), "client_id"),
        (format!("{common}&slug=mail&field-client_id=++"), "client_id"),
        (format!("{common}&slug=M+L&field-client_id=me"), "is not a tool name"),
        (format!("{common}&slug=acme&field-client_id=me"), "acme"),
        (format!("{common}&slug=mail&field-client_id=me").replace("every_agent", "no"), "tick"),
    ] {
        let slip = house.post(at, &cookie, &body).await;
        assert_eq!(slip.status, 400, "{body}: {}", slip.body);
        assert!(slip.body.contains(said) && slip.body.contains("Nothing was done"), "{said}");
        assert!(slip.body.contains("value=\"Mail\"") && !slip.body.contains(CANARY), "{body}");
    }
    let body = format!("{common}&slug=mail&field-client_id=me");
    let done = house.post(at, &cookie, &body).await;
    assert_eq!((done.status, &*done.headers["location"]), (303, "/connections/mail/authorize"));
    let made = house.engine.connection("mail").await.unwrap();
    assert_eq!((&*made.vendor, made.status), ("google-gmail", ConnectionStatus::Pending));
}
