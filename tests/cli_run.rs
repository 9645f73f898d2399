//! `cambium run` as a person uses it: what it says while it waits for them, what
//! they are told to do next, and the lists they look at afterwards.
#![allow(clippy::unwrap_used)]

mod support;

use cambium_sandbox_tests::vendor::{Script, Vendor, answer};
use std::io::{BufRead, BufReader};
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
    let mut command = shop.home.command(&run);
    command.env("CAMBIUM_TOKEN", &shop.agent).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let waiting: serde_json::Value = serde_json::from_str(&line).unwrap();
    let id = waiting["waiting"]["id"].as_str().unwrap();
    // A yes that does not say how far it goes is none.
    let bare = shop.plain(&["approvals", "allow", id]);
    assert_eq!((bare.code, bare.error().as_str()), (2, "usage"), "{}", bare.stderr);
    assert!(bare.stderr.contains("--once or --from-now-on"), "{}", bare.stderr);
    let both = shop.plain(&["approvals", "allow", id, "--once", "--from-now-on"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    let card = shop.plain(&["approvals", "show", id]).stdout;
    assert!(card.contains(&format!("allow {id} --once (or --from-now-on)")), "{card}");
    let denied = shop.plain(&["approvals", "deny", id]);
    assert_eq!(denied.code, 0, "{}", denied.stderr);
    let back = "refused to laptop, until: cambium approvals withdraw laptop shop create-order";
    assert!(denied.stdout.contains(back), "{}", denied.stdout);
    let late = shop.plain(&["approvals", "allow", id, "--once"]);
    assert_eq!(late.error(), "ask_settled", "{}", late.stderr);
    assert!(late.stderr.contains("cambium approvals withdraw"), "{}", late.stderr);
    child.wait().unwrap();
    let denied = shop.plain(&run);
    assert_eq!((denied.code, denied.error().as_str()), (1, "tool_denied"), "{}", denied.stderr);
    let next = "cambium approvals withdraw AGENT shop create-order";
    assert!(denied.stderr.contains(next), "{}", denied.stderr);

    let denied = shop.plain(&[&run[..], &["--agent", "laptop"]].concat());
    assert!(denied.stderr.contains("withdraw laptop shop create-order`"), "{}", denied.stderr);

    let refused = shop.plain(&["run", "shop", "list-orders"]);
    assert!(refused.stdout.contains("vendor answered 401"), "{}", refused.stdout);
    assert!(refused.stdout.contains("cambium connections set "), "{}", refused.stdout);
    assert!(!refused.stdout.contains("request_credential"), "{}", refused.stdout);
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
