//! A call, end to end, and the proxy alone, beside what people would pick
//! instead. Closed loop, one caller, rounds interleaved. Every layer of the
//! jail, the audit and the redaction are on in each of our rows.
//!
//! `cargo bench --bench call`, or `benches/side_by_side/run` with the peers; a
//! word chooses one table: `call`, `hop`, `memory`, `check`, `bombs`, `load` or `toolbox`;
//! only by its name `growth`, which imports a hundred thousand tools in a process of its own;
//! `quick` and `soak --minutes 5` are the guards that CI runs. With `CAMBIUM_FIGURES` naming a directory,
//! the figures are written there as JSON and as a chart.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, missing_docs)]

mod bombs;
mod burst;
mod chart;
mod check;
mod figures;
mod growth;
mod hop;
mod house;
mod load;
mod memory;
mod peers;
mod process;
mod quick;
mod soak;
mod stdio;
#[path = "../../tests/support/mod.rs"]
mod support;
mod toolbox;
mod verdict;

use figures::Row;
use house::House;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 5;
const WARM_UP: usize = 30;
const CALLS: usize = 200;
/// What is run only by its name, and fails when it does not hold.
const GUARDS: [&str; 2] = ["quick", "soak"];
/// The vendor's thread.
const VENDOR: &str = "vendor";
/// A `deno run` takes tens of milliseconds.
const PROCESSES: usize = 10;

fn main() -> ExitCode {
    if let Some(ended) = cambium_isolate::role_main(&[]) {
        return ended;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |word: &str| words.is_empty() || words.iter().any(|given| *given == word);
    // The vendor on a thread of its own, so that its CPU time can be told from ours.
    let vendors = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(VENDOR)
        .enable_all()
        .build()
        .expect("the vendor's runtime");
    let vendor = vendors.block_on(house::vendor());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let held = runtime.expect("a runtime").block_on(async {
        if growth::part().await {
            return Ok(());
        }
        let peers = peers::Peers::find(&vendor);
        let mut json = Map::new();
        let mut held = Ok(());
        if words.iter().any(|word| *word == "quick") {
            let (figures, kept) = quick::run(&vendor, quick::found(peers.as_ref())).await;
            json.insert("quick".into(), figures);
            held = kept.map_err(|worse| format!("slower than the baseline allows: {worse}"));
        }
        if words.iter().any(|word| *word == "soak") {
            let (figures, kept) = soak::run(&vendor, soak::minutes(&arguments)).await;
            json.insert("soak".into(), figures);
            held = held.and(kept.map_err(|broken| format!("the soak does not hold: {broken}")));
        }
        if wanted("call") {
            json.insert("call".into(), call(&vendor, peers.as_ref()).await);
        }
        if let (true, Some(peers)) = (wanted("hop"), &peers) {
            json.insert("hop".into(), hop::run(peers).await);
        }
        if wanted("memory") {
            json.insert("memory".into(), memory::run(&vendor, peers.as_ref()).await);
        }
        if let (true, Some(peers)) = (wanted("check"), &peers) {
            json.insert("check".into(), tokio::task::block_in_place(|| check::run(peers)));
        }
        if let (true, Some(peers)) = (wanted("bombs"), &peers) {
            json.insert("bombs".into(), bombs::run(peers).await);
        }
        if wanted("load") {
            json.insert("load".into(), load::run(&vendor).await);
        }
        if wanted("toolbox") {
            json.insert("toolbox".into(), toolbox::run(&vendor).await);
        }
        let mut drawn = None;
        if words.iter().any(|word| *word == "growth") {
            let (figures, chart) = growth::run(&vendor).await;
            json.insert("growth".into(), figures);
            drawn = Some(chart);
        }
        // A guard measures whatever build CI has made: beside the tables, not over them.
        let guard = words.iter().find(|word| GUARDS.contains(&word.as_str()));
        write_figures(&json, guard.map_or("figures", |word| word), drawn);
        println!("\n{:#}", Value::Object(json));
        held
    });
    match held {
        Ok(()) => ExitCode::SUCCESS,
        Err(worse) => {
            eprintln!("{worse}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the figures where the environment says.
fn write_figures(json: &Map<String, Value>, name: &str, growth: Option<String>) {
    let Some(folder) = std::env::var_os("CAMBIUM_FIGURES").map(std::path::PathBuf::from) else {
        return;
    };
    std::fs::create_dir_all(&folder).expect("the directory for the figures");
    let text = format!("{:#}\n", Value::Object(json.clone()));
    std::fs::write(folder.join(format!("{name}.json")), text).expect("the figures");
    if let Some(rows) = json.get("call").and_then(|call| call["rows"].as_array()) {
        let chart = chart::bars("One call, median and 99th percentile (logarithmic)", rows);
        std::fs::write(folder.join("call.svg"), chart).expect("the chart");
    }
    if let Some(chart) = growth {
        std::fs::write(folder.join("growth.svg"), chart).expect("the chart");
    }
}

async fn call(
    vendor: &cambium_sandbox_tests::vendor::Vendor,
    peers: Option<&peers::Peers>,
) -> Value {
    let warm = House::build(vendor, 1, "warm").await;
    let cold = House::build(vendor, 0, "cold").await;
    let cancel = CancellationToken::new();
    let address = warm.serve(cancel.clone()).await;
    let client = mcp_client(address.port(), Some(&warm.token)).await;
    let mut rows: Vec<Row> = [
        "engine call, one ready worker: fresh process, module, one fetch",
        "engine call, empty pool",
        "the same through MCP (streamable HTTP), rmcp's client",
        "the same through MCP (stdio), `cambium mcp` and server processes of their own",
        "plain MCP server (TypeScript SDK 1.32.2), no sandbox, rmcp's client",
        "the same plain MCP server over stdio, rmcp's client",
        "isolated-vm 7.0.1 on Node 24.21, fresh isolate",
        "workerd 1.20261117.1, dynamic worker, over loopback HTTP",
        "node:vm, fresh context",
        "node:worker_threads, fresh thread",
        "quickjs-emscripten 0.32.0, fresh context",
        "deno 2.9.6, `deno run` per call, whole process",
        "UTCP code mode 1.2.12, fresh isolated-vm isolate, a tool of the host's",
        "pydantic-monty 1.4, fresh session in a worker process, Python",
    ]
    .map(Row::new)
    .into();
    let mut stages = Stages::default();
    let mut cpu = Cpu::default();
    let piped = stdio::ours(vendor).await;
    for _ in 0..WARM_UP {
        warm.call().await;
        cold.call().await;
        through(&piped.client).await;
    }
    let serving = peers.map(|peers| (peers.mcp_server(), peers.workerd("main.js")));
    let served = match &serving {
        None => None,
        Some((mcp, workerd)) => {
            let mut caller = peers::Caller::to(workerd.port).await;
            let plain = mcp_client(mcp.port, None).await;
            let plain_piped = stdio::theirs(peers.expect("they serve")).await;
            for _ in 0..WARM_UP {
                caller.call().await;
                through(&plain).await;
                through(&plain_piped.client).await;
            }
            Some((plain, plain_piped, workerd))
        }
    };
    for _ in 0..ROUNDS {
        let before = ours();
        rows[0].push(timed(CALLS, async || warm.call().await, |_| {}).await);
        cpu.ours += ours() - before;
        let look = |envelope| stages.add(envelope);
        rows[1].push(timed(CALLS, async || cold.call().await, look).await);
        rows[2].push(timed(CALLS, async || through(&client).await, |()| {}).await);
        rows[3].push(timed(CALLS, async || through(&piped.client).await, |()| {}).await);
        let (Some(peers), Some((plain, plain_piped, workerd))) = (peers, &served) else { continue };
        rows[4].push(timed(CALLS, async || through(plain).await, |()| {}).await);
        rows[5].push(timed(CALLS, async || through(&plain_piped.client).await, |()| {}).await);
        rows[6].push(peers.times("isolated_vm.mjs", CALLS));
        // It closes a connection that was idle for the other rows.
        let mut caller = peers::Caller::to(workerd.port).await;
        let before = workerd.cpu_seconds();
        rows[7].push(timed(CALLS, async || caller.call().await, |()| {}).await);
        cpu.workerd += workerd.cpu_seconds() - before;
        rows[8].push(peers.times("node_vm.mjs", CALLS));
        rows[9].push(peers.times("worker_thread.mjs", CALLS));
        rows[10].push(peers.times("quickjs.mjs", CALLS));
        rows[11].push(peers.deno_run(PROCESSES));
        rows[12].push(peers.times("code_mode.mjs", CALLS));
        rows[13].push(peers.times("monty.py", CALLS));
    }
    rows.retain(|row| row.calls() > 0);
    println!("{}", figures::table(&rows));
    println!("{}", stages.table());
    cpu.print(CALLS * ROUNDS);
    let _ = client.cancel().await;
    if let Some((plain, ..)) = served {
        let _ = plain.cancel().await;
    }
    cancel.cancel();
    warm.close().await;
    cold.close().await;
    let rows: Vec<_> = rows.iter().map(Row::json).collect();
    json!({ "rows": rows, "stages_us_p50": stages.json(), "cpu_seconds": cpu.json() })
}

/// Without the vendor's.
fn ours() -> f64 {
    process::cpu_seconds("self") - process::thread_seconds(VENDOR)
}

/// CPU time of the processes a call is made in: ours with its workers, reaped
/// within the round; workerd's. The vendor's is in neither.
#[derive(Default)]
struct Cpu {
    ours: f64,
    workerd: f64,
}

impl Cpu {
    fn print(&self, calls: usize) {
        let per = |seconds: f64| calls as f64 / seconds;
        println!("calls per CPU second, ours: {:.0}", per(self.ours));
        if self.workerd > 0.0 {
            println!("calls per CPU second, workerd: {:.0}", per(self.workerd));
        }
    }

    fn json(&self) -> Value {
        json!({ "ours": self.ours, "workerd": self.workerd })
    }
}

type Client = RunningService<RoleClient, ()>;

async fn mcp_client(port: u16, token: Option<&str>) -> Client {
    let uri = format!("http://127.0.0.1:{port}/mcp");
    let config = StreamableHttpClientTransportConfig::with_uri(uri);
    let config = match token {
        Some(token) => config.auth_header(token.to_owned()),
        None => config,
    };
    let transport = StreamableHttpClientTransport::from_config(config);
    ().serve(transport).await.expect("an MCP client")
}

async fn through(client: &Client) {
    assert_eq!(try_through(client).await, Ok(()));
}

/// One call through MCP; what went wrong is the error.
async fn try_through(client: &Client) -> Result<(), String> {
    let params = CallToolRequestParams::new("shop__list-orders")
        .with_arguments(json!({ "limit": 20 }).as_object().cloned().expect("an object"));
    let answer = client.call_tool(params).await.map_err(|error| error.to_string())?;
    if answer.is_error == Some(true) { Err(format!("{answer:?}")) } else { Ok(()) }
}

/// Times each of `calls` in turn, microseconds.
async fn timed<T>(
    calls: usize,
    mut call: impl AsyncFnMut() -> T,
    mut look: impl FnMut(T),
) -> Vec<f64> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        let answer = call().await;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        look(answer);
    }
    times
}

/// Where the time of a call with an empty pool goes.
#[derive(Default)]
struct Stages {
    admit: Vec<f64>,
    take: Vec<f64>,
    proxy: Vec<f64>,
    vendor: Vec<f64>,
    run: Vec<f64>,
    record: Vec<f64>,
}

impl Stages {
    fn add(&mut self, envelope: cambium_engine::Envelope) {
        let times = envelope.times.expect("a run has times");
        self.admit.push(times.admit_us as f64);
        self.record.push(times.record_us as f64);
        self.take.push(times.take_us as f64);
        self.run.push(times.run_us as f64);
        self.proxy.push(times.proxy_us as f64);
        self.vendor.push(times.vendor_us as f64);
    }

    fn medians(&self) -> [(&'static str, f64, f64); 6] {
        let both = |times: &Vec<f64>| {
            let mut row = Row::new("");
            row.push(times.clone());
            (row.percentile(50.0), row.percentile(99.0))
        };
        [
            ("place, input, run's row, admission, session", &self.admit),
            ("fork to ready worker", &self.take),
            ("job to result, the next two included", &self.run),
            ("of it the proxy's own part of the request", &self.proxy),
            ("of it the vendor, TLS on a kept connection", &self.vendor),
            ("the session's end, the run's record", &self.record),
        ]
        .map(|(name, times)| {
            let (p50, p99) = both(times);
            (name, p50, p99)
        })
    }

    fn table(&self) -> String {
        let mut out = String::from(
            "| stage of a call with an empty pool | p50 ms | p99 ms |\n|---|---|---|\n",
        );
        for (name, p50, p99) in self.medians() {
            out += &format!("| {name} | {:.2} | {:.2} |\n", p50 / 1000.0, p99 / 1000.0);
        }
        out
    }

    fn json(&self) -> Value {
        self.medians()
            .iter()
            .map(|(name, p50, _)| ((*name).to_owned(), json!(p50)))
            .collect::<Map<_, _>>()
            .into()
    }
}
