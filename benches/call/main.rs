//! A call, end to end, beside what people would pick instead. Closed loop, one
//! caller, rounds interleaved. Every layer of the jail, the audit and the
//! redaction are on in each of our rows.
//!
//! `cargo bench --bench call`, or `benches/side_by_side/run` with the peers.

#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

mod figures;
mod house;
mod memory;
mod peers;

use figures::Row;
use house::House;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 5;
const WARM_UP: usize = 30;
const CALLS: usize = 200;
/// A `deno run` takes tens of milliseconds.
const PROCESSES: usize = 10;

fn main() -> ExitCode {
    if let Some(ended) = cambium_isolate::role_main(&[]) {
        return ended;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run());
    ExitCode::SUCCESS
}

async fn run() {
    let vendor = house::vendor().await;
    let warm = House::build(&vendor, 1, "warm").await;
    let cold = House::build(&vendor, 0, "cold").await;
    let cancel = CancellationToken::new();
    let address = warm.serve(cancel.clone()).await;
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"))
        .auth_header(warm.token.clone());
    let transport = StreamableHttpClientTransport::from_config(config);
    let client = ().serve(transport).await.expect("an MCP client");
    let peers = peers::Peers::find(&vendor);

    let mut engine = Row::new("engine call, one ready worker");
    let mut empty = Row::new("engine call, empty pool");
    let mut mcp = Row::new("the same through MCP (streamable HTTP)");
    let mut isolated = Row::new("isolated-vm 7.0.1, fresh isolate, unguarded fetch");
    let mut deno = Row::new("deno 2.9.6, `deno run` per call");
    let mut stages = Stages::default();
    for _ in 0..WARM_UP {
        warm.call().await;
        cold.call().await;
    }
    for _ in 0..ROUNDS {
        engine.push(timed(CALLS, || warm.call(), |_| {}).await);
        empty.push(timed(CALLS, || cold.call(), |envelope| stages.add(envelope)).await);
        let through = || async {
            let params = CallToolRequestParams::new("shop__list-orders")
                .with_arguments(json!({ "limit": 20 }).as_object().cloned().expect("an object"));
            let answer = client.call_tool(params).await.expect("an answer");
            assert_ne!(answer.is_error, Some(true), "{answer:?}");
        };
        mcp.push(timed(CALLS, through, |()| {}).await);
        if let Some(peers) = &peers {
            isolated.push(tokio::task::block_in_place(|| peers.isolated_vm(CALLS)));
            deno.push(tokio::task::block_in_place(|| peers.deno_run(PROCESSES)));
        }
    }
    let memory = memory::per_worker(&vendor).await;

    let mut rows = vec![engine, empty, mcp];
    if peers.is_some() {
        rows.extend([isolated, deno]);
    }
    println!("{}", figures::table(&rows));
    println!("{}", stages.table());
    println!("Memory per idle worker, 20 alive, proportional set size: {memory} KiB");
    let json = json!({
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "stages_us_p50": stages.json(), "worker_pss_kib": memory,
    });
    println!("\n{json:#}");
    let _ = client.cancel().await;
    cancel.cancel();
    warm.close().await;
    cold.close().await;
}

/// Times each of `calls` in turn, microseconds.
async fn timed<T, F: Future<Output = T>>(
    calls: usize,
    mut call: impl FnMut() -> F,
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
    take: Vec<f64>,
    proxy: Vec<f64>,
    vendor: Vec<f64>,
    run: Vec<f64>,
}

impl Stages {
    fn add(&mut self, envelope: cambium_engine::Envelope) {
        let times = envelope.times.expect("a run has times");
        self.take.push(times.take_us as f64);
        self.run.push(times.run_us as f64);
        self.proxy.push(times.proxy_us as f64);
        self.vendor.push(times.vendor_us as f64);
    }

    fn medians(&self) -> [(&'static str, f64, f64); 4] {
        let both = |times: &Vec<f64>| {
            let mut row = Row::new("");
            row.push(times.clone());
            (row.percentile(50.0), row.percentile(99.0))
        };
        [
            ("fork to ready worker", &self.take),
            ("job to result, requests included", &self.run),
            ("proxy's own part of the request", &self.proxy),
            ("vendor, TLS on a kept connection", &self.vendor),
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

    fn json(&self) -> serde_json::Value {
        self.medians()
            .iter()
            .map(|(name, p50, _)| ((*name).to_owned(), json!(p50)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}
