//! MCP clients that are not ours, against the real binary, over stdio and over
//! HTTP: each lists, runs a read, gets a preview, is asked, promotes and sees the
//! new list. `scripts/clients` installs the clients; without them these fail.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Home, Server, clients};
use vendor::Vendor;

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");

/// A server with a shop, a read and a write tool, and one agent with both.
struct House {
    server: Option<Server>,
    vendor: Option<Vendor>,
    runtime: tokio::runtime::Runtime,
    url: String,
    token: String,
    bridge: PathBuf,
    remote: PathBuf,
    home: Home,
}

impl House {
    fn start() -> Self {
        let clients = clients();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let vendor = runtime.block_on(Vendor::open("shop-token")).unwrap();
        let home = Home::new();
        // a client without a form waits no longer than that for its person
        home.write("config.toml", "wait_budget_seconds = 6\n");
        let server = home.set_up();
        support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
        let made = home.run(&["agents", "create", "harness"]).ok();
        let token = made["token"].as_str().unwrap().to_owned();
        home.run(&["agents", "set", "harness", "--in-band", "once"]).ok();
        for (name, module) in [("list-orders", READ), ("create-order", WRITE)] {
            let file = home.write(&format!("{name}.ts"), module);
            let file = file.to_str().unwrap();
            let publish = ["publish", file, "--vendor", "shop", "--name", name];
            home.run(&[&publish[..], &["--agent", "harness"]].concat()).ok();
        }
        let url = format!("{}/mcp", server.url);
        let token_file = home.write("token", &token);
        let bridge = script(
            &home,
            "bridge",
            &format!(
                "exec '{}' --config '{}' --data-dir '{}' mcp --token-file '{}'",
                env!("CARGO_BIN_EXE_cambium"),
                home.path().join("config.toml").display(),
                home.data_dir().display(),
                token_file.display(),
            ),
        );
        let remote = script(
            &home,
            "remote",
            &format!(
                "exec '{}' '{}' {url} --allow-http --transport http-only --silent \\\n  --header 'Authorization: Bearer {token}'",
                clients.join("node").display(),
                clients.join("node_modules/mcp-remote/dist/proxy.js").display(),
            ),
        );
        let (server, vendor) = (Some(server), Some(vendor));
        Self { server, vendor, runtime, url, token, bridge, remote, home }
    }

    /// Runs a client that must succeed, and reads its JSON.
    fn run(&self, client: &mut Command) -> Value {
        let output = client
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .env("CAMBIUM_TOKEN", &self.token)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{client:?}\n{out}\n{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}\n{out}\n{err}"))
    }

    fn inspector(&self, transport: &str, era: &str, method: &[&str]) -> Value {
        let clients = clients();
        let launcher =
            "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let mut client = Command::new(clients.join("node"));
        client.arg(clients.join(launcher)).arg("--cli");
        match transport {
            "stdio" => {
                client.arg(&self.bridge);
            }
            _ => {
                let header = format!("Authorization: Bearer {}", self.token);
                client.args([&self.url, "--transport", "http", "--header", &header]);
            }
        }
        client.args(["--protocol-era", era]).args(method);
        self.run(&mut client)
    }

    fn inspector_call(&self, transport: &str, era: &str, tool: &str, input: &Value) -> Value {
        let call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json"];
        let input = input.to_string();
        let answer = self.inspector(transport, era, &[&call[..], &[&input]].concat());
        answer["structuredContent"].clone()
    }

    fn mcporter(&self, transport: &str, command: &str, arguments: &[&str]) -> Value {
        let clients = clients();
        let mut client = Command::new(clients.join("node"));
        client.arg(clients.join("node_modules/mcporter/dist/cli.js")).arg(command);
        match transport {
            "stdio" => client.arg("--stdio").arg(&self.bridge),
            _ => client
                .args(["--http-url", &self.url, "--allow-http"])
                .arg("--header")
                .arg(format!("Authorization=Bearer {}", self.token)),
        };
        self.run(client.args(["--name", "cambium"]).args(arguments))
    }

    /// A client written in Python: `arguments`, transport and where.
    fn script(&self, file: &str, arguments: &[&str], transport: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(file);
        let mut client = Command::new(clients().join("python/bin/python"));
        client.arg(script).args(arguments);
        match transport {
            "stdio" => client.arg("stdio").arg(&self.bridge),
            "remote" => client.arg("stdio").arg(&self.remote),
            _ => client.arg("http").arg(&self.url),
        };
        self.run(&mut client)
    }

    /// Orders of an item the shop took.
    fn ordered(&self, item: &str) -> usize {
        let received = self.vendor.as_ref().unwrap().received();
        let wanted = format!("\"{item}\"");
        received.iter().filter(|r| r.method == "POST" && r.body.contains(&wanted)).count()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        if let Some(vendor) = self.vendor.take() {
            self.runtime.block_on(vendor.close());
        }
    }
}

/// A program without arguments, as clients are configured with.
fn script(home: &Home, name: &str, line: &str) -> PathBuf {
    let path = home.write(name, &format!("#!/bin/sh\n{line}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn names(listed: &Value) -> Vec<&str> {
    listed
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|tool| tool.as_str().or(tool["name"].as_str()).unwrap())
        .collect()
}

fn check_names(listed: &Value) {
    let names = names(listed);
    for wanted in ["find_tool", "run_tool", "execute__shop", "shop__list-orders"] {
        assert!(names.contains(&wanted), "{names:?}");
    }
}

/// The shop's orders: the two it opened with are the oldest.
fn check_read(envelope: &Value) {
    assert_eq!(envelope["status"], "ok", "{envelope}");
    let items: Vec<&Value> =
        envelope["result"].as_array().unwrap().iter().map(|order| &order["item"]).collect();
    assert!(!items.is_empty(), "{envelope}");
}

fn check_preview(envelope: &Value, item: &str) {
    assert_eq!(envelope["status"], "dry_run", "{envelope}");
    let body = envelope["preview"][0]["request"]["body"].as_str().unwrap();
    assert!(body.contains(item), "{body}");
}

fn check_waiting(envelope: &Value) {
    assert_eq!(envelope["status"], "awaiting_approval", "{envelope}");
    assert!(envelope["ask"]["link"].as_str().unwrap().starts_with("http://127.0.0.1:"));
}

/// What a client written in Python saw.
fn check_saw(house: &House, saw: &Value, item: &str) {
    check_names(&saw["tools"]);
    check_read(&saw["read"]);
    check_preview(&saw["preview"], item);
    assert!(!names(&saw["demoted"]).contains(&"shop__list-orders"), "{}", saw["demoted"]);
    assert!(names(&saw["promoted"]).contains(&"shop__list-orders"), "{}", saw["promoted"]);
    let forms = saw["forms"].as_array().unwrap();
    assert_eq!(forms.len(), 1, "{forms:?}");
    assert!(forms[0].as_str().unwrap().contains(item), "{forms:?}");
    assert_eq!(saw["asked"]["status"], "ok", "{}", saw["asked"]);
    assert_eq!(house.ordered(item), 1);
}

#[test]
fn the_inspector_does_it_all_over_stdio_and_http_in_both_eras() {
    let house = House::start();
    for transport in ["stdio", "http"] {
        for era in ["legacy", "modern"] {
            let strict = house.inspector(transport, era, &["--method", "tools/list", "--strict"]);
            check_names(&strict["tools"]);
            let call =
                |tool: &str, input: &Value| house.inspector_call(transport, era, tool, input);
            check_read(&call("shop__list-orders", &json!({"limit": 5})));
            let found = call("find_tool", &json!({"query": "list orders"}));
            assert_eq!(found["hits"][0]["wireName"], "shop__list-orders", "{found}");
            let item = format!("inspector {transport} {era} chair");
            let order = json!({"item": item, "quantity": 1});
            let dry =
                json!({"vendor": "shop", "name": "create-order", "input": order, "dryRun": true});
            check_preview(&call("run_tool", &dry), &item);
            check_waiting(&call("shop__create-order", &order));
            assert_eq!(house.ordered(&item), 0);
            let tool = json!({"vendor": "shop", "name": "list-orders"});
            call("demote", &tool);
            let listed = house.inspector(transport, era, &["--method", "tools/list"]);
            assert!(!names(&listed["tools"]).contains(&"shop__list-orders"));
            call("promote", &tool);
            check_names(&house.inspector(transport, era, &["--method", "tools/list"])["tools"]);
        }
    }
}

#[test]
fn mcporter_does_it_all_over_stdio_and_http() {
    let house = House::start();
    for transport in ["stdio", "http"] {
        let list = || house.mcporter(transport, "list", &["--json"])["tools"].clone();
        let call = |tool: &str, input: &Value| {
            let input = input.to_string();
            let arguments = ["--tool", tool, "--args", &input, "--output", "json", "--no-oauth"];
            house.mcporter(transport, "call", &arguments)
        };
        check_names(&list());
        check_read(&call("shop__list-orders", &json!({"limit": 5})));
        let item = format!("mcporter {transport} chair");
        let order = json!({"item": item, "quantity": 1});
        let dry = json!({"vendor": "shop", "name": "create-order", "input": order, "dryRun": true});
        check_preview(&call("run_tool", &dry), &item);
        check_waiting(&call("shop__create-order", &order));
        let tool = json!({"vendor": "shop", "name": "list-orders"});
        call("demote", &tool);
        assert!(!names(&list()).contains(&"shop__list-orders"));
        call("promote", &tool);
        check_names(&list());
    }
}

#[test]
fn the_python_client_does_it_all_over_stdio_and_http_in_both_eras() {
    let house = House::start();
    for transport in ["stdio", "http"] {
        for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
            let saw = house.script("python_client.py", &[mode], transport);
            assert_eq!(saw["protocol"], protocol, "{transport} {mode}: {saw}");
            check_saw(&house, &saw, &format!("{mode} {transport} chair"));
            assert_eq!(saw["read"], saw["text"]);
            assert_eq!(saw["found"]["hits"][0]["wireName"], "shop__list-orders", "{saw}");
            assert_eq!(saw["refused"]["isError"], true);
            assert_eq!(saw["refused"]["text"]["code"], "argument_invalid", "{saw}");
        }
    }
}

#[test]
fn fastmcp_does_it_all_over_stdio_and_http() {
    let house = House::start();
    for transport in ["stdio", "http"] {
        let saw = house.script("fastmcp_client.py", &[], transport);
        check_saw(&house, &saw, &format!("fastmcp {transport} chair"));
    }
}

#[test]
fn mcp_remote_carries_it_all_from_stdio_to_http() {
    let house = House::start();
    let saw = house.script("python_client.py", &["legacy"], "remote");
    check_saw(&house, &saw, "legacy stdio chair");
}

#[test]
fn codex_does_it_all_over_stdio_and_http_without_a_login() {
    let house = House::start();
    let codex = clients().join("codex");
    for transport in ["stdio", "http"] {
        let saw = house.script("codex_client.py", &[codex.to_str().unwrap()], transport);
        check_saw(&house, &saw, &format!("codex {transport} chair"));
    }
}
