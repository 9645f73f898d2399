//! A temporary home for the binary under test: its commands run with a cleaned
//! environment on a data directory of their own, and a server started here is
//! killed when it is dropped.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The passphrase of the person in these tests.
pub(crate) const PASSPHRASE: &str = "correct horse battery";

/// A directory that goes away with it.
pub(crate) struct Home {
    path: PathBuf,
}

/// What a command did.
pub(crate) struct Ended {
    /// Exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Ended {
    /// The code in `error[…]` or in the JSON error.
    pub(crate) fn error(&self) -> String {
        let json = self.stderr.lines().find_map(|line| {
            let value: Value = serde_json::from_str(line).ok()?;
            Some(value["error"]["code"].as_str()?.to_owned())
        });
        let text = self.stderr.split_once("error[").and_then(|(_, rest)| rest.split_once(']'));
        json.or_else(|| text.map(|(code, _)| code.to_owned())).unwrap_or_default()
    }

    /// The JSON on standard output; the command must have succeeded.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.code, 0, "stdout {}\nstderr {}", self.stdout, self.stderr);
        if self.stdout.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&self.stdout).unwrap()
        }
    }
}

impl Home {
    /// An empty home with a person's passphrase file.
    pub(crate) fn new() -> Self {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("cambium-test-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        let home = Self { path };
        home.write("passphrase", PASSPHRASE);
        home.write("config.toml", "");
        home
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The data directory in it.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path.join("data")
    }

    /// A private file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.create(true).truncate(true).write(true).mode(0o600).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    /// The binary with a cleaned environment, nothing of this home named yet.
    pub(crate) fn bare(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cambium"));
        command.env_clear().env("HOME", &self.path).stdin(Stdio::null());
        command
    }

    /// The binary on this home, answering in JSON.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare();
        command
            .arg("--config")
            .arg(self.path.join("config.toml"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .arg("--json")
            .args(arguments)
            .env("CAMBIUM_PASSPHRASE_FILE", self.path.join("passphrase"));
        command
    }

    /// The same answering as a person reads it.
    pub(crate) fn plain(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare();
        command
            .arg("--config")
            .arg(self.path.join("config.toml"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .args(arguments)
            .env("CAMBIUM_PASSPHRASE_FILE", self.path.join("passphrase"));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    /// Runs a command to its end with something on stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its stdin closes it early.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        ended(child.wait_with_output().unwrap())
    }

    /// Runs a command as an agent.
    pub(crate) fn run_as(&self, token: &str, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).env("CAMBIUM_TOKEN", token).output().unwrap())
    }

    /// Sets the passphrase and starts a server.
    pub(crate) fn set_up(&self) -> Server {
        self.run(&["setup", "--no-config"]).ok();
        self.serve()
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn serve_with(&self, more: &[&str]) -> Server {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path.join("server.log"))
            .unwrap();
        let mut child = self
            .command(&["serve", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = ready["url"].as_str().unwrap_or_else(|| panic!("not ready: {}", self.log()));
        Server { url: url.to_owned(), child }
    }

    /// What the servers of this home logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path.join("server.log")).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    child: Child,
}

impl Server {
    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn stop(self) -> i32 {
        self.ask_to_stop();
        self.wait()
    }

    /// SIGTERM alone.
    pub(crate) fn ask_to_stop(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::Term).unwrap();
    }

    /// The exit code once it has ended.
    pub(crate) fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads how a command ended.
pub(crate) fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Where the set-up steps put what they install.
pub(crate) fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CAMBIUM_CACHE").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("cambium")
    })
}

/// Where `scripts/clients` puts the MCP clients.
pub(crate) fn clients() -> PathBuf {
    let clients = cache().join("clients");
    assert!(
        clients.join("ready").exists(),
        "the MCP clients are not installed in {}; run scripts/clients",
        clients.display()
    );
    clients
}

/// One call of a fixed tool over the stdio bridge.
pub(crate) fn call_tool(home: &Home, token: &str, name: &str, arguments: &Value) -> Value {
    let mut bridge = home
        .command(&["mcp"])
        .env("CAMBIUM_TOKEN", token)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    writeln!(stdin, "{hello}").unwrap();
    lines.next().unwrap().unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    let params = json!({ "name": name, "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    writeln!(stdin, "{request}").unwrap();
    let answer = loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if line["id"] == 2 {
            break line;
        }
    };
    drop(stdin);
    bridge.wait().unwrap();
    answer["result"]["structuredContent"].clone()
}

/// The demo's shop as a connection, by a person.
pub(crate) fn connect_shop(home: &Home, port: u16, ca_pem: &str) {
    connect_shop_with(home, port, ca_pem, "shop-token");
}

/// The same with a credential of one's own.
pub(crate) fn connect_shop_with(home: &Home, port: u16, ca_pem: &str, secret: &str) {
    let ca = home.write("ca.pem", ca_pem);
    let (host, range) = (format!("localhost:{port}"), format!("127.0.0.1/32:{port}"));
    let six = format!("::1/128:{port}");
    let add = [
        "connections",
        "add",
        "shop",
        "--host",
        &host,
        "--ca",
        ca.to_str().unwrap(),
        "--allow-private",
        &range,
        "--allow-private",
        &six,
    ];
    home.run_with(&add, secret).ok();
}
