//! Tools leave one server as files and arrive at another whole; a person sees
//! what they cost; and a server started for a test runner leaves an agent's own
//! token as it is.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::Home;

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");

fn publish(home: &Home, name: &str, source: &str, agent: &str) {
    let file = home.write("module.ts", source);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", name];
    home.run(&[&publish[..], &["--agent", agent]].concat()).ok();
}

/// A shop whose port is closed.
fn connect(home: &Home) {
    let add = ["connections", "add", "shop", "--host", "localhost:1"];
    home.run_with(&[&add[..], &["--allow-private", "127.0.0.1/32:1"]].concat(), "token").ok();
}

/// The tools an agent has promoted.
fn promoted(home: &Home, agent: &str) -> Vec<String> {
    let shown = home.run(&["agents", "show", agent]).ok();
    let entries = shown["workingSet"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            format!("{}__{}", entry["tool"]["vendor"], entry["tool"]["name"]).replace('"', "")
        })
        .collect()
}

fn arguments<'a>(words: &[&'a str], directory: &'a Path) -> Vec<&'a str> {
    [words, &[directory.to_str().unwrap()]].concat()
}

#[test]
fn tools_and_a_working_set_arrive_as_they_left() {
    let (from, to) = (Home::new(), Home::new());
    let (one, other) = (from.set_up(), to.set_up());
    for home in [&from, &to] {
        connect(home);
        home.run(&["agents", "create", "one"]).ok();
    }
    publish(&from, "list-orders", READ, "one");
    publish(&from, "create-order", WRITE, "one");
    let directory = from.path().join("tools");
    let written = from.run(&arguments(&["export", "--agent", "one"], &directory)).ok();
    assert_eq!(written["files"].as_array().unwrap().len(), 3);
    assert_eq!(std::fs::read_to_string(directory.join("shop__list-orders.ts")).unwrap(), READ);

    // a directory that holds something is left as it is
    let again = from.run(&arguments(&["export"], &directory));
    assert_eq!((again.code, again.error().as_str()), (1, "file_unwritable"), "{}", again.stderr);

    let import = arguments(&["import", "--agent", "one"], &directory);
    let done = to.run(&import).ok();
    assert_eq!((&done["unchanged"], &done["promoted"]), (&json!(0), &json!(2)), "{done}");
    assert_eq!(promoted(&to, "one"), promoted(&from, "one"));
    for tool in ["list-orders", "create-order"] {
        let source =
            |home: &Home| home.run(&["tools", "source", "shop", tool]).ok()["hash"].clone();
        assert_eq!(source(&to), source(&from), "{tool}");
    }
    let done = to.run(&import).ok();
    assert_eq!(done["unchanged"], 2, "what is there already is said to be");
    assert_eq!((one.stop(), other.stop()), (0, 0));
}

#[test]
fn an_import_that_cannot_be_done_whole_is_not_begun() {
    let home = Home::new();
    let server = home.set_up();
    connect(&home);
    home.run(&["agents", "create", "one"]).ok();
    let directory = home.path().join("in");
    std::fs::create_dir(&directory).unwrap();
    let file = |name: &str| directory.join(name);
    std::fs::write(file("shop__list-orders.ts"), READ).unwrap();
    let import = arguments(&["import", "--agent", "one"], &directory);
    let refused = |code: &str, named: &str| {
        let refused = home.run(&import);
        assert_eq!((refused.code, refused.error().as_str()), (1, code), "{}", refused.stderr);
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
        assert_eq!(home.run(&["tools", "list"]).ok(), json!([]), "something was published");
    };

    std::fs::write(file("shop__z-broken.ts"), "export default 1").unwrap();
    refused("check_failed", "shop__z-broken");
    std::fs::remove_file(file("shop__z-broken.ts")).unwrap();

    std::fs::write(file("shop__z-huge.ts"), vec![0; 2 << 20]).unwrap();
    refused("file_unreadable", "shop__z-huge.ts");
    std::fs::remove_file(file("shop__z-huge.ts")).unwrap();

    // neither a pipe, which would be waited for, nor a link out of the directory
    let made = std::process::Command::new("mkfifo").arg(file("shop__z-pipe.ts")).status().unwrap();
    assert!(made.success());
    refused("file_unreadable", "shop__z-pipe.ts");
    std::fs::remove_file(file("shop__z-pipe.ts")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", file("shop__z-link.ts")).unwrap();
    refused("file_unreadable", "shop__z-link.ts");
    std::fs::remove_file(file("shop__z-link.ts")).unwrap();

    std::fs::write(file("working-set.json"), r#"{"promoted": ["shop"]}"#).unwrap();
    refused("name_invalid", "shop");
    std::fs::write(file("working-set.json"), "[]").unwrap();
    refused("file_invalid", "working-set.json");
    std::fs::remove_file(file("working-set.json")).unwrap();
    home.run(&import).ok();
    assert_eq!(server.stop(), 0);
}

#[test]
fn statistics_count_calls_and_errors_and_what_a_list_costs() {
    let home = Home::new();
    let server = home.set_up();
    connect(&home);
    let created = home.run(&["agents", "create", "one"]).ok();
    let token = created["token"].as_str().unwrap();
    publish(&home, "list-orders", READ, "one");
    for _ in 0..3 {
        // the vendor's port is closed
        assert_ne!(home.run_as(token, &["run", "shop", "list-orders"]).code, 0);
    }
    let found = home.run(&["tools", "stats"]).ok();
    let row = &found["tools"][0];
    assert_eq!(
        (&row["tool"], &row["calls"], &row["errors"]),
        (&json!("shop__list-orders"), &json!(3), &json!(3))
    );
    assert!(
        row["longestMs"].as_f64() >= row["meanMs"].as_f64() && row["meanMs"].is_number(),
        "{row}"
    );
    let list = &found["lists"][0];
    assert_eq!((&list["agent"], &list["tools"]), (&json!("one"), &json!(1)));
    assert!(list["tokens"].as_u64() > Some(10), "{list}");
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_server_for_a_test_runner_leaves_the_agents_token_valid() {
    let home = Home::new();
    let server = home.set_up();
    connect(&home);
    let created = home.run(&["agents", "create", "one"]).ok();
    let token = created["token"].as_str().unwrap().to_owned();
    publish(&home, "list-orders", READ, "one");
    assert_eq!(server.stop(), 0);

    let server = home.serve_with(&["--dev-agent", "one"]);
    let dry = home.run_as(&token, &["run", "shop", "list-orders"]);
    assert_ne!(dry.error(), "unauthenticated", "{}", dry.stderr);
    // a request without a token is the agent's, one with a wrong token nobody's
    let list = |header: Option<&str>| {
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "-s",
            "-o",
            "-",
            "-w",
            "\n%{http_code}",
            "-H",
            "accept: application/json, text/event-stream",
        ]);
        curl.args([
            "-H",
            "content-type: application/json",
            "-H",
            "mcp-protocol-version: 2025-11-25",
        ]);
        if let Some(header) = header {
            curl.args(["-H", header]);
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "runner", "version": "1"},
        }});
        curl.args(["-d", &body.to_string(), &format!("{}/mcp", server.url)]);
        let said = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        said.lines().last().unwrap().to_owned()
    };
    assert_eq!(list(None), "200");
    assert_eq!(list(Some("authorization: Bearer wrong")), "401");
    assert_eq!(list(Some("authorization: Basic x")), "401");
    let shown: Value = home.run(&["agents", "list"]).ok();
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!(server.stop(), 0);
}
