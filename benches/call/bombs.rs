//! P12: the resource bombs of `sandbox-tests`, ours and the peers'. A host
//! survives one when it is alive within the limit and a quarter second more and
//! its next call works; and it survives it well when that call takes less than
//! 50 ms. Each peer has the limits it offers: time for `node:vm`, time and memory
//! for isolated-vm, its worker's end for Deno. A peer's process goes on to the
//! next bomb; one that died, hangs or was slow afterwards is replaced, so that no
//! bomb pays for the one before. A bomb has a second and a half, so that the table ends
//! in about ten minutes.

use crate::peers::{BOMBS, Peers, Serving};
use cambium_engine::RunLimits;
use cambium_sandbox_tests::rig::Rig;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[path = "../../sandbox-tests/tests/isolate_bombs/table.rs"]
#[allow(dead_code)]
mod table;

/// What a bomb is given, and what it may take beyond it.
const LIMIT: Duration = Duration::from_millis(1_000);
const CPU: Duration = Duration::from_millis(300);
const SLACK: Duration = Duration::from_millis(250);
/// How long a host that is late is waited for.
const GIVEN_UP: Duration = Duration::from_millis(1_500);
const NEXT: Duration = Duration::from_millis(50);
/// How long the next call is waited for: long enough to tell slow from dead.
const NEXT_GIVEN_UP: Duration = Duration::from_millis(500);
/// Until a host that was started says so.
const UP: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Score {
    all: usize,
    in_time: usize,
    survived: usize,
    next_in_time: usize,
    next_ms: Vec<f64>,
}

impl Score {
    fn add(&mut self, bomb: Option<Duration>, next: Option<Duration>) {
        self.all += 1;
        self.in_time += usize::from(bomb.is_some_and(|took| took <= LIMIT + SLACK));
        let Some(next) = next else { return };
        self.survived += 1;
        self.next_in_time += usize::from(next < NEXT);
        self.next_ms.push(next.as_secs_f64() * 1e3);
    }

    fn row(&mut self, name: &str) -> Value {
        self.next_ms.sort_by(f64::total_cmp);
        let median = self.next_ms.get(self.next_ms.len() / 2).copied().unwrap_or(f64::NAN);
        let share = |count: usize| 100.0 * count as f64 / self.all as f64;
        println!(
            "| {name} | {:.0} % | {:.0} % | {:.0} % | {median:.1} |",
            share(self.in_time),
            share(self.survived),
            share(self.next_in_time)
        );
        json!({
            "name": name, "bombs": self.all, "ended_in_time": self.in_time, "survived": self.survived,
            "next_call_under_50_ms": self.next_in_time, "next_call_ms": median,
        })
    }
}

pub(crate) async fn run(peers: &Peers) -> Value {
    let exe = std::env::current_exe().expect("this program");
    let rig = Rig::start(exe.to_str().expect("a path")).await;
    rig.still_works().await;
    let mut ours = Score::default();
    for bomb in table::BOMBS {
        let module = format!("export default async function (ctx, input) {{\n{}\n}}", bomb.body);
        let limits = RunLimits { wall: LIMIT, cpu: CPU, ..RunLimits::default() };
        let began = Instant::now();
        let _ = rig.run_source(&module, "{}", limits, rig.reads()).await;
        let took = began.elapsed();
        let began = Instant::now();
        rig.still_works().await;
        ours.add(Some(took), Some(began.elapsed()));
    }
    rig.sandbox.shutdown().await;
    println!(
        "| host | ended in time | alive after it | next call under 50 ms | next call, median ms |\n|---|---|---|---|---|"
    );
    let mut rows = vec![ours.row("Cambium, a process each, empty pool")];
    for (name, kind) in [
        ("node:vm, 300 ms timeout", "vm"),
        ("isolated-vm, 300 ms timeout, 64 MB", "isolated-vm"),
        ("Deno worker, ended after 1 s", "deno"),
        ("workerd, a dynamic worker each", "workerd"),
    ] {
        let start = || match kind {
            "workerd" => Host::Serves(peers.workerd(BOMBS)),
            kind => Host::Lines(Lines::start(peers.bomb_host(kind))),
        };
        let mut score = Score::default();
        tokio::task::block_in_place(|| {
            let mut host = None;
            for bomb in table::BOMBS {
                let (bomb, next) = explode(&mut host, start, bomb.body);
                score.add(bomb, next);
            }
        });
        rows.push(score.row(name));
    }
    json!({ "rows": rows })
}

/// One bomb; the times of it and of the next call. Leaves the host for the next
/// if it is well.
fn explode(
    kept: &mut Option<Host>,
    start: impl Fn() -> Host,
    body: &str,
) -> (Option<Duration>, Option<Duration>) {
    let mut host = kept.take().unwrap_or_else(start);
    let bomb = host.ask(body, GIVEN_UP);
    // Who has not answered by now will not answer the next one in time.
    let next = bomb.and_then(|_| host.ask("return 1;", NEXT_GIVEN_UP));
    if next.is_some_and(|took| took < NEXT) {
        *kept = Some(host);
    }
    (bomb, next)
}

/// A peer that takes the body of a function and says when it ended.
enum Host {
    Lines(Lines),
    Serves(Serving),
}

impl Host {
    fn ask(&mut self, body: &str, given_up: Duration) -> Option<Duration> {
        let began = Instant::now();
        match self {
            Self::Lines(host) => host.ask(body, given_up)?,
            Self::Serves(host) => post(host.port, body, given_up)?,
        }
        Some(began.elapsed())
    }
}

/// A request with a connection of its own; answered well or not at all.
fn post(port: u16, body: &str, given_up: Duration) -> Option<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(given_up)).ok()?;
    stream.set_nodelay(true).ok()?;
    let length = body.len();
    let request =
        format!("POST / HTTP/1.1\r\nhost: bomb\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).ok()?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).ok()?;
    status.ends_with(b" 200").then_some(())
}

/// A line in, a line out.
struct Lines {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Lines {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the host runs");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let host = Self { child, lines };
        host.lines.recv_timeout(UP).expect("the host is up");
        host
    }

    fn ask(&mut self, body: &str, given_up: Duration) -> Option<()> {
        let stdin = self.child.stdin.as_mut()?;
        writeln!(stdin, "{}", json!(body)).ok()?;
        self.lines.recv_timeout(given_up).ok().map(drop)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
