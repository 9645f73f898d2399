//! `cambium run` as a person uses it: what it says while it waits for them, what
//! they are told to do next, and the lists they look at afterwards.
#![allow(clippy::unwrap_used)]

mod support;

use cambium_sandbox_tests::vendor::{Script, Vendor, answer};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use support::{Home, Server, connect_shop, ended};
use tokio::runtime::Runtime;

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");
const ORDER: &str = r#"{"item": "lamp", "quantity": 1}"#;

struct Shop {
    home: Home,
    agent: String,
    vendor: Vendor,
    _server: Server,
    _runtime: Runtime,
}

impl Shop {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let script: Script = Arc::new(|request| match request.line().starts_with("POST") {
            true => answer("201 Created", "content-type: application/json\r\n", b"{\"id\": 1}"),
            false => answer("401 Unauthorized", "", b""),
        });
        let vendor = runtime.block_on(Vendor::start(&["localhost"], script));
        let home = Home::new();
        let server = home.set_up();
        connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
        let agent = home.run(&["agents", "create", "laptop"]).ok();
        let agent = agent["token"].as_str().unwrap().to_owned();
        for (name, module) in [("create-order", WRITE), ("list-orders", READ)] {
            let file = home.write("tool.ts", module);
            let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", name];
            home.run(&[&publish[..], &["--agent", "laptop"]].concat()).ok();
        }
        Self { home, agent, vendor, _server: server, _runtime: runtime }
    }

    fn plain(&self, arguments: &[&str]) -> support::Ended {
        ended(self.home.plain(arguments).env("CAMBIUM_TOKEN", &self.agent).output().unwrap())
    }
}

#[test]
fn a_call_that_waits_says_at_once_for_what_and_how_it_is_answered() {
    let shop = Shop::open();
    for json in [false, true] {
        let arguments = ["run", "shop", "create-order", "--input", ORDER];
        let mut command = match json {
            true => shop.home.command(&arguments),
            false => shop.home.plain(&arguments),
        };
        command.env("CAMBIUM_TOKEN", &shop.agent).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let id = if json {
            let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
            assert!(line["waiting"]["expiresMs"].is_i64(), "{line}");
            line["waiting"]["id"].as_str().unwrap().to_owned()
        } else {
            let told: Vec<String> = lines.by_ref().take(4).collect();
            let id = told[1].trim().strip_prefix("question ").unwrap().split(',').next().unwrap();
            let told = told.join("\n");
            let link = format!("/asks/{id}");
            for said in ["POST https://localhost:", "/orders", "open until 20", &link] {
                assert!(told.contains(said), "{said}: {told}");
            }
            assert!(told.contains(&format!("cambium approvals allow {id} --once")), "{told}");
            id.to_owned()
        };
        shop.home.run(&["approvals", "allow", &id, "--once"]).ok();
        let end = child.wait().unwrap();
        assert!(end.success(), "{:?}", lines.collect::<Vec<_>>());

        let audit = shop.plain(&["audit", "list"]).stdout;
        let head: Vec<&str> = audit.lines().next().unwrap().split("  ").map(str::trim).collect();
        for name in ["AGENT", "CONNECTION", "ASK"] {
            assert!(head.contains(&name), "{audit}");
        }
        let sent = audit.lines().find(|line| line.contains(&id)).unwrap();
        assert!(sent.contains(" laptop ") && sent.contains(" shop "), "{sent}");
    }
    let posts = shop.vendor.heard().iter().filter(|heard| heard.line().starts_with("POST")).count();
    assert_eq!(posts, 2);
}

#[test]
fn a_person_is_told_their_own_next_step() {
    let shop = Shop::open();
    let run = ["run", "shop", "create-order", "--input", ORDER];
    let asked = || {
        let mut command = shop.home.command(&run);
        command.env("CAMBIUM_TOKEN", &shop.agent).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let waiting: serde_json::Value = serde_json::from_str(&line).unwrap();
        (child, waiting["waiting"]["id"].as_str().unwrap().to_owned())
    };
    // Put aside, the tool is not refused: the next call asks anew.
    let (mut child, first) = asked();
    let aside = shop.home.run(&["approvals", "dismiss", &first]).ok();
    assert!(!child.wait().unwrap().success());
    assert_eq!(aside["state"], "dismissed");
    assert!(aside["excerpt"].as_str().unwrap().contains("item"), "{aside}");
    assert_eq!(shop.home.run(&["approvals", "standing"]).ok(), serde_json::json!([]));
    let (mut child, id) = asked();
    assert_ne!(first, id);
    // A yes that does not say how far it goes is none.
    let bare = shop.plain(&["approvals", "allow", &id]);
    assert_eq!((bare.code, bare.error().as_str()), (2, "usage"), "{}", bare.stderr);
    assert!(bare.stderr.contains("--once or --from-now-on"), "{}", bare.stderr);
    let both = shop.plain(&["approvals", "allow", &id, "--once", "--from-now-on"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    let card = shop.plain(&["approvals", "show", &id]).stdout;
    assert!(card.contains(&format!("allow {id} --once (or --from-now-on)")), "{card}");
    let denied = shop.plain(&["approvals", "deny", &id]);
    assert_eq!(denied.code, 0, "{}", denied.stderr);
    let back = "refused to laptop, until: cambium approvals withdraw laptop shop create-order";
    assert!(denied.stdout.contains(back), "{}", denied.stdout);
    let late = shop.plain(&["approvals", "allow", &id, "--once"]);
    assert_eq!(late.error(), "ask_settled", "{}", late.stderr);
    assert!(late.stderr.contains("cambium approvals withdraw"), "{}", late.stderr);
    child.wait().unwrap();
    let denied = shop.plain(&run);
    assert_eq!((denied.code, denied.error().as_str()), (1, "tool_denied"), "{}", denied.stderr);
    let statistics = shop.home.run(&["tools", "stats"]).ok();
    let orders = statistics["tools"].as_array().unwrap();
    let orders = orders.iter().find(|tool| tool["tool"] == "shop__create-order").unwrap();
    assert_eq!(orders["errors"], 0, "your no is no error of the tool: {orders}");
    let next = "cambium approvals withdraw AGENT shop create-order";
    assert!(denied.stderr.contains(next), "{}", denied.stderr);

    let denied = shop.plain(&[&run[..], &["--agent", "laptop"]].concat());
    assert!(denied.stderr.contains("withdraw laptop shop create-order`"), "{}", denied.stderr);

    let refused = shop.plain(&["run", "shop", "list-orders"]);
    assert!(refused.stdout.contains("vendor answered 401"), "{}", refused.stdout);
    assert!(refused.stdout.contains("cambium connections set "), "{}", refused.stdout);
    assert!(refused.stdout.contains("set shop --secret-stdin"), "{}", refused.stdout);
    assert!(!refused.stdout.contains("request_credential"), "{}", refused.stdout);
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let other = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
    let other = shop.home.write("other.pem", &other);
    let set = ["connections", "set", "shop", "--ca", other.to_str().unwrap()];
    let set = shop.home.run(&set).ok();
    assert!(set["warnings"].is_null(), "{set}");
    let strange = shop.plain(&["run", "shop", "list-orders"]);
    assert_eq!(strange.error(), "tls_failed", "{}", strange.stderr);
    for said in ["cambium connections set shop --ca FILE", "basicConstraints=critical,CA:FALSE"] {
        assert!(strange.stderr.contains(said), "{said}: {}", strange.stderr);
    }
    let paused = shop.home.run(&["agents", "set", "laptop", "--pause"]);
    assert_eq!(paused.code, 0, "{}", paused.stderr);
    let paused = shop.plain(&["run", "shop", "list-orders"]);
    assert!(paused.stderr.contains("--resume"), "{}", paused.stderr);
}

#[test]
fn every_list_names_its_columns_and_spells_strangers_text_out() {
    let shop = Shop::open();
    let hostile = READ.replace("Lists the orders", "Lists \\u001b[2J\\u202e the orders");
    assert_ne!(hostile, READ);
    let file = shop.home.write("hostile.ts", &hostile);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "hostile"];
    shop.home.run(&publish).ok();
    shop.plain(&["run", "shop", "list-orders"]);
    for list in [
        &["tools", "list"][..],
        &["tools", "find", "orders"],
        &["tools", "stats"],
        &["agents", "list"],
        &["connections", "list"],
        &["runs", "list"],
        &["audit", "list"],
        &["sweep", "--plan"],
        &["sweep"],
    ] {
        let told = shop.plain(list);
        assert_eq!(told.code, 0, "{list:?} {}", told.stderr);
        let (head, rows) = told.stdout.split_once('\n').unwrap();
        // As many columns named as the fullest row has: two spaces part them.
        let count = |line: &str| line.split("  ").filter(|cell| !cell.trim().is_empty()).count();
        let fullest = rows.lines().take_while(|row| !row.is_empty()).map(count).max().unwrap();
        assert!(count(head) >= fullest, "{list:?}\n{}", told.stdout);
        let first = head.split(' ').next().unwrap();
        assert!(!first.is_empty() && first == first.to_uppercase(), "{list:?} {head}");
        assert!(!told.stdout.contains(['\u{1b}', '\u{202e}']), "{list:?}");
    }
    assert!(shop.plain(&["tools", "list"]).stdout.contains("\\u{1b}[2J"));
}

#[test]
fn versions_are_listed_and_told_apart_after_a_rollback() {
    let shop = Shop::open();
    let file = shop.home.write("tool.ts", &READ.replace("Lists", "Lists all"));
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "list-orders"];
    shop.home.run(&publish).ok();
    shop.home.run(&["tools", "rollback", "shop", "list-orders", "1"]).ok();
    let list = shop.home.run(&["tools", "versions", "shop", "list-orders"]).ok();
    let current: Vec<_> = list.as_array().unwrap().iter().map(|one| &one["current"]).collect();
    assert_eq!(current, [true, false], "{list}");
    let told = shop.plain(&["tools", "versions", "shop", "list-orders"]).stdout;
    for one in list.as_array().unwrap() {
        assert!(told.contains(&one["hash"].as_str().unwrap()[..12]), "{told}");
    }
    assert!(told.lines().nth(1).unwrap().contains("  yes  "), "{told}");

    let source =
        |more: &[&str]| shop.plain(&[&["tools", "source", "shop", "list-orders"], more].concat());
    assert!(source(&[]).stdout.contains("version 1 (the current one)"));
    let newer = source(&["--version", "2"]).stdout;
    assert!(newer.contains("version 2 (version 1 is current)"), "{newer}");
    let none = source(&["--version", "9"]);
    assert_eq!(none.error(), "version_not_found", "{}", none.stderr);
    assert!(none.stderr.contains("cambium tools versions"), "{}", none.stderr);
}

#[test]
fn what_is_taken_lost_or_open_to_others_is_said_with_its_way_out() {
    let shop = Shop::open();
    let told = |arguments: &[&str], code: &str, next: &str| {
        let mut command = shop.home.plain(arguments);
        let refused = ended(command.env_remove("CAMBIUM_TOKEN").output().unwrap());
        assert_eq!(refused.error(), code, "{arguments:?} {}", refused.stderr);
        assert!(refused.stderr.contains(next), "{arguments:?} {}", refused.stderr);
    };
    told(&["agents", "create", "laptop"], "taken", "cambium agents rotate");
    told(&["run", "shop", "list-orders"], "token_missing", "--agent NAME");
    told(&["tools", "find", "orders"], "token_missing", "--agent NAME");
    let add = ["connections", "add", "shop", "--host", "shop.example"];
    let again = shop.home.run_with(&add, "another secret");
    assert_eq!(again.error(), "taken", "{}", again.stderr);
    assert!(again.stderr.contains("cambium connections set SLUG"), "{}", again.stderr);
    let token = shop.home.write("token", "not a token");
    let token = token.to_str().unwrap();
    let call = ["run", "shop", "list-orders", "--token-file", token];
    told(&call, "unauthenticated", "cambium agents rotate");
    std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o644)).unwrap();
    told(&call, "token_file_open_to_others", "chmod 600");
}

#[test]
fn a_server_that_stops_says_what_it_waits_for() {
    let Shop { home, agent, vendor: _vendor, _server: server, _runtime } = Shop::open();
    let mut command = home.command(&["run", "shop", "create-order", "--input", ORDER]);
    command.env("CAMBIUM_TOKEN", &agent).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let waiting: serde_json::Value = serde_json::from_str(&line).unwrap();
    server.ask_to_stop();
    while !home.log().contains("stopping: ") {
        std::thread::yield_now();
    }
    // Until it has drained it still takes answers.
    home.run(&["approvals", "deny", waiting["waiting"]["id"].as_str().unwrap()]).ok();
    child.wait().unwrap();
    assert_eq!(server.wait(), 0);
    let log = home.log();
    assert!(log.contains("stopping: waiting for 1 run, at most 10 s"), "{log}");
    assert!(log.trim_end().ends_with("stopped"), "{log}");
}

#[test]
fn a_dry_run_shows_a_write_once_and_a_run_its_times() {
    let shop = Shop::open();
    let dry = shop.plain(&["run", "shop", "create-order", "--input", ORDER, "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert_eq!(dry.stdout.matches("POST").count(), 1, "{}", dry.stdout);
    let runs = shop.home.run(&["runs", "list"]).ok();
    let shown = shop.plain(&["runs", "show", runs[0]["run"].as_str().unwrap()]).stdout;
    for moment in ["begun", "ended"] {
        let line = shown.lines().find(|line| line.starts_with(&format!("{moment} "))).unwrap();
        assert!(line.ends_with('Z'), "{shown}");
    }
}
