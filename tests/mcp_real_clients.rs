//! MCP clients that are not ours, against the real binary: the Inspector's
//! command line and the Python client, each over stdio and over HTTP, in both
//! protocol eras. The server and the vendor are those of `cambium demo --keep`.
//! `scripts/clients` installs the clients; without them these tests fail.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::Home;

/// The demo's server with its vendor; ended when dropped.
struct Kept {
    _home: Home,
    demo: Child,
    url: String,
    token: String,
    bridge: PathBuf,
}

impl Kept {
    fn start() -> Self {
        let home = Home::new();
        let mut demo = home
            .bare()
            .args(["demo", "--keep"])
            .env("TMPDIR", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        let (mut url, mut data, mut told) = (String::new(), PathBuf::new(), String::new());
        for line in lines {
            let line = line.unwrap();
            told.push_str(&line);
            told.push('\n');
            if let Some(rest) = line.strip_prefix("server   ") {
                let (at, directory) = rest.split_once(" (data in ").unwrap();
                url = format!("{at}/mcp");
                data = directory.trim_end_matches(')').into();
            }
            if line.starts_with("export CAMBIUM_TOKEN=") {
                let bridge = write_bridge(&home, &data);
                let token = std::fs::read_to_string(data.with_file_name("agent-token")).unwrap();
                let token = token.trim().to_owned();
                return Self { _home: home, demo, url, token, bridge };
            }
        }
        let ended = demo.wait().unwrap();
        panic!("the demo did not stay, {ended}:\n{told}");
    }

    /// Runs a client that must succeed, and reads its JSON.
    fn run(&self, client: &mut Command) -> Value {
        let output = client
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self._home.path())
            .env("CAMBIUM_TOKEN", &self.token)
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

    fn python(&self, transport: &str, mode: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python_client.py");
        let mut client = Command::new(clients().join("python/bin/python"));
        client.arg(script).args([mode, transport]);
        match transport {
            "stdio" => client.arg(&self.bridge),
            _ => client.arg(&self.url),
        };
        self.run(&mut client)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let pid = self.demo.id().try_into().ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // as Ctrl-C would: it takes its server and its directory with it
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::Int);
        }
        let _ = self.demo.wait();
    }
}

/// A program without arguments, as clients are configured with.
fn write_bridge(home: &Home, data: &Path) -> PathBuf {
    let demo = data.parent().unwrap();
    let text = format!(
        "#!/bin/sh\nexec '{}' --config '{}' --data-dir '{}' mcp --token-file '{}'\n",
        env!("CARGO_BIN_EXE_cambium"),
        demo.join("config.toml").display(),
        data.display(),
        demo.join("agent-token").display(),
    );
    let path = home.write("bridge", &text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Where `scripts/clients` puts them.
fn clients() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("CAMBIUM_CACHE").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("cambium")
    });
    let clients = cache.join("clients");
    assert!(
        clients.join("ready").exists(),
        "the MCP clients are not installed in {}; run scripts/clients",
        clients.display()
    );
    clients
}

fn names(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

fn check_names(names: &[&str]) {
    for wanted in ["find_tool", "run_tool", "publish_tool", "shop__list-orders"] {
        assert!(names.contains(&wanted), "{names:?}");
    }
}

/// The shop's orders: the two it opened with and the one the demo made.
fn check_read(envelope: &Value) {
    assert_eq!(envelope["status"], "ok", "{envelope}");
    let items: Vec<&Value> =
        envelope["result"].as_array().unwrap().iter().map(|order| &order["item"]).collect();
    assert_eq!(items, ["walnut table", "reading lamp", "oak shelf"]);
}

#[test]
fn the_inspector_lists_and_calls_over_stdio_and_http_in_both_eras() {
    clients();
    let kept = Kept::start();
    for transport in ["stdio", "http"] {
        for era in ["legacy", "modern"] {
            let listed = kept.inspector(transport, era, &["--method", "tools/list"]);
            let tools = listed["tools"].as_array().unwrap();
            let names: Vec<&str> =
                tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            check_names(&names);

            let call = ["--method", "tools/call", "--tool-name", "shop__list-orders"];
            let read = kept.inspector(
                transport,
                era,
                &[&call[..], &["--tool-args-json", r#"{"limit":5}"#]].concat(),
            );
            check_read(&read["structuredContent"]);

            let call = ["--method", "tools/call", "--tool-name", "find_tool"];
            let found = kept.inspector(
                transport,
                era,
                &[&call[..], &["--tool-args-json", r#"{"query":"list orders"}"#]].concat(),
            );
            let hit = &found["structuredContent"]["hits"][0];
            assert_eq!(hit["wireName"], "shop__list-orders", "{found}");
        }
    }
}

#[test]
fn the_python_client_lists_and_calls_over_stdio_and_http_in_both_eras() {
    clients();
    let kept = Kept::start();
    for transport in ["stdio", "http"] {
        for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
            let saw = kept.python(transport, mode);
            assert_eq!(saw["protocol"], protocol, "{transport} {mode}: {saw}");
            check_names(&names(&saw["tools"]));
            check_read(&saw["read"]);
            assert_eq!(saw["read"], saw["text"]);
            assert_eq!(saw["found"]["hits"][0]["wireName"], "shop__list-orders", "{saw}");
            assert_eq!(saw["refused"]["isError"], true);
            assert_eq!(saw["refused"]["text"]["code"], "argument_invalid", "{saw}");
        }
    }
}
