//! Decision 2: the bridge starts a server only after a person's opt-in, under
//! a lock, with a cleaned environment and a fixed configuration, and that
//! server outlives its bridges. The bridges here are real child processes.
#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use support::{Home, ended};

/// A bridge that has started a session.
struct Bridge {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Bridge {
    fn spawn(home: &Home, token: &str) -> Self {
        let mut child = home
            .command(&["mcp"])
            .env("CAMBIUM_TOKEN", token)
            .env("SOME_SECRET", "must not reach the server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn initialize(&mut self) -> Value {
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        });
        writeln!(self.stdin, "{hello}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut said = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("no answer: {line:?}, {said}")
        })
    }

    /// Closes its stdin and waits for its end.
    fn end(self) -> i32 {
        let Self { mut child, stdin, stdout } = self;
        drop((stdin, stdout));
        child.wait().unwrap().code().unwrap()
    }
}

/// The server a bridge started; ended with the test.
struct Started(Pid);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::Kill);
    }
}

fn started(home: &Home) -> Started {
    let status = home.run(&["status"]).ok();
    Started(Pid::from_raw(i32::try_from(status["pid"].as_i64().unwrap()).unwrap()).unwrap())
}

/// A home whose person said yes, with an agent's token.
fn opted_in() -> (Home, String) {
    let home = Home::new();
    let server = home.set_up();
    let token =
        home.run(&["agents", "create", "laptop"]).ok()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.stop(), 0);
    home.write("config.toml", "listen = \"127.0.0.1:0\"\n");
    home.run(&["setup", "--bridge-starts-server", "yes"]).ok();
    (home, token)
}

#[test]
fn a_bridge_starts_no_server_unless_a_person_said_so() {
    let home = Home::new();
    let server = home.set_up();
    let token =
        home.run(&["agents", "create", "laptop"]).ok()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.stop(), 0);
    let alone = home.run_as(&token, &["mcp"]);
    assert_eq!((alone.code, alone.error().as_str()), (4, "no_server"));
    assert!(alone.stderr.contains("--bridge-starts-server"), "{}", alone.stderr);
}

#[test]
fn bridges_share_one_server_that_outlives_them() {
    let (home, token) = opted_in();
    let mut bridges: Vec<_> = (0..3).map(|_| Bridge::spawn(&home, &token)).collect();
    for bridge in &mut bridges {
        assert_eq!(bridge.initialize()["result"]["serverInfo"]["name"], "cambium");
    }
    let server = started(&home);
    let pid = server.0.as_raw_nonzero();
    // The server's memory is closed to its own user, the environment with it.
    let environ = format!("/proc/{pid}/environ");
    assert_eq!(std::fs::metadata(&environ).unwrap().uid(), 0);
    if !rustix::process::getuid().is_root() {
        assert_eq!(std::fs::read(&environ).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    let environment = std::fs::read(environ).unwrap_or_else(|_| b"HOME=\0".to_vec());
    let mut names: Vec<_> = environment
        .split(|&byte| byte == 0)
        .filter_map(|pair| std::str::from_utf8(pair).unwrap().split_once('=').map(|pair| pair.0))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME"]);
    // A session of its own: a terminal's hang-up ends only the bridge.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap();
    assert_eq!(session, pid.to_string());
    for bridge in bridges {
        assert_eq!(bridge.end(), 0);
    }
    assert_eq!(started(&home).0, server.0, "it outlives its bridges");
}

#[test]
fn a_server_that_cannot_start_says_why_through_the_bridge() {
    let (home, token) = opted_in();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    home.write("config.toml", &format!("listen = \"{}\"\n", taken.local_addr().unwrap()));
    let mut command = home.command(&["mcp"]);
    let failed = ended(command.env("CAMBIUM_TOKEN", &token).output().unwrap());
    assert_eq!((failed.code, failed.error().as_str()), (7, "listen_in_use"));
    assert_eq!(failed.stdout, "", "nothing but the protocol is on stdout");
}

#[test]
fn a_servers_log_is_not_written_through_a_link() {
    let (home, token) = opted_in();
    let theirs = home.write("theirs", "as it was");
    std::os::unix::fs::symlink(&theirs, home.data_dir().join("server.log")).unwrap();
    let refused = home.run_as(&token, &["mcp"]);
    assert_eq!(refused.error(), "data_dir_unwritable", "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "as it was");
}

#[test]
fn the_opt_in_is_taken_back() {
    let (home, token) = opted_in();
    home.run(&["setup", "--bridge-starts-server", "no"]).ok();
    assert_eq!(home.run_as(&token, &["mcp"]).error(), "no_server");
}
