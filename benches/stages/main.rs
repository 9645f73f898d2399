//! Each stage of a call alone, by criterion: `./dev bench stages`, or
//! `cargo bench --bench stages -- NAME` for some. The parts are the product's
//! own. A stage that no public function is, is measured through the nearest
//! entry, and its line says what else is in it; two lines that differ in the
//! stage alone give it as their difference.

#![allow(clippy::disallowed_methods, missing_docs)]

#[path = "../call/house.rs"]
#[allow(dead_code)]
mod house;
mod proxy;

use cambium_driver::worker_limits;
use cambium_engine::{CallRequest, Envelope, RunLimits, ToolName, check_module};
use cambium_proxy::{Admission, ContentHash, Grant, Hints};
use criterion::Criterion;
use house::{House, TOOL, list_orders};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// A pool refills behind a take; so much is given to it, outside of what is timed.
const REFILL: Duration = Duration::from_millis(10);

/// A tool that returns before it asks for anything.
const NOTHING: &str = r#"
export const description = "Asks for nothing, unless it is told to.";
export const inputSchema = {
  type: "object",
  properties: { ask: { type: "boolean" } },
  additionalProperties: false,
} as const;
export default async function (ctx: Context, input: Input) {
  if (!input.ask) return [];
  const response = await ctx.fetch("/orders");
  return await response.json();
}
"#;

fn main() -> ExitCode {
    if let Some(ended) = cambium_isolate::role_main(&[]) {
        return ended;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    // Processes and a disk are in most of them: fewer and longer samples than usual.
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .without_plots()
        .configure_from_args();
    check(&mut criterion);
    engine(&mut criterion, &runtime);
    workers(&mut criterion, &runtime);
    proxy::stages(&mut criterion, &runtime);
    proxy::audit(&mut criterion, &runtime);
    criterion.final_summary();
    ExitCode::SUCCESS
}

/// A line whose iterations are timed one by one.
fn each(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &str,
    mut one: impl AsyncFnMut() -> Duration,
) {
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let mut all = Duration::ZERO;
                for _ in 0..times {
                    all += one().await;
                }
                all
            })
        });
    });
}

async fn timed<T>(one: impl Future<Output = T>) -> (Duration, T) {
    let began = Instant::now();
    let answer = one.await;
    (began.elapsed(), answer)
}

/// The static check, in this process: the product does it in one of the jail.
fn check(criterion: &mut Criterion) {
    assert!(check_module(TOOL).ok);
    criterion.bench_function("check", |bencher| bencher.iter(|| check_module(black_box(TOOL))));
}

fn engine(criterion: &mut Criterion, runtime: &Runtime) {
    let (vendor, house) = runtime.block_on(async {
        let vendor = house::vendor().await;
        let house = House::build(&vendor, 1, "stages").await;
        house.publish(0).await.expect("a publish");
        (vendor, house)
    });
    vendor.forget();
    // Finding the tool, a place, and the input's check, which refuses it: no run.
    each(criterion, runtime, "input against the schema, found and refused", async || {
        let request = CallRequest { input: json!({ "limit": "many" }), ..list_orders() };
        let (took, envelope) = timed(house.ask(&house.caller, request)).await;
        assert!(envelope.is_error() && envelope.run.is_none(), "{:?}", envelope.code);
        took
    });
    let connection = runtime.block_on(house.engine.connection("shop")).expect("the connection");
    let version = ContentHash([1; 32]);
    each(criterion, runtime, "admission of a read", async || {
        let question = Admission {
            person: &connection.person,
            agent: &house.caller.agent().id,
            tool: "shop__list-orders",
            version: &version,
            connection: &connection,
            hints: Hints { read_only: true, destructive: false },
            dry_run: false,
            each: false,
        };
        let (took, grant) = timed(house.proxy.admit(question)).await;
        assert!(matches!(grant, Ok(Grant::ReadOnly)));
        took
    });
    // From the job's first byte to the result's last, as the engine itself timed it.
    let run = |envelope: &Envelope| envelope.times.expect("a run has times").run_us;
    each(criterion, runtime, "job to result with one read", async || {
        Duration::from_micros(run(&house.call().await))
    });
    runtime.block_on(house.publish_as("shop__nothing", NOTHING.into())).expect("a publish");
    let nothing = || CallRequest {
        tool: ToolName::parse("shop__nothing").expect("a name"),
        input: json!({}),
        ..list_orders()
    };
    each(
        criterion,
        runtime,
        "module start: job to result of a module that does nothing",
        async || {
            let envelope = house.ask(&house.caller, nothing()).await;
            Duration::from_micros(run(&envelope))
        },
    );
    reply(criterion, runtime, &house);
    runtime.block_on(house.close());
}

/// The MCP framing of an answer: an HTTP request, the agent's token, dispatch and
/// a refusal, since the tool is not there. No run and no result is in it.
fn reply(criterion: &mut Criterion, runtime: &Runtime, house: &House) {
    let cancel = CancellationToken::new();
    let client = runtime.block_on(async {
        let address = house.serve(cancel.clone()).await;
        let uri = format!("http://{address}/mcp");
        let config = StreamableHttpClientTransportConfig::with_uri(uri);
        let config = config.auth_header(house.token.clone());
        let transport = StreamableHttpClientTransport::from_config(config);
        ().serve(transport).await.expect("an MCP client")
    });
    each(criterion, runtime, "MCP's request and reply of a tool that is not there", async || {
        let params = CallToolRequestParams::new("shop__missing");
        let (took, answer) = timed(client.call_tool(params)).await;
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.is_error == Some(true)));
        took
    });
    let envelope = runtime.block_on(house.call());
    criterion.bench_function("an answer as JSON", |bencher| {
        bencher.iter(|| serde_json::to_string(black_box(&envelope)));
    });
    let _ = runtime.block_on(client.cancel());
    cancel.cancel();
}

/// A locked, ready worker: forked for it, or taken from the pool.
fn workers(criterion: &mut Criterion, runtime: &Runtime) {
    for pool in [0, 1] {
        let (_vendor, house) = runtime.block_on(async {
            let vendor = house::vendor().await;
            let house = House::build(&vendor, pool, "workers").await;
            (vendor, house)
        });
        let name = format!("a worker, pool of {pool}");
        each(criterion, runtime, &name, async || {
            let limits = worker_limits(&RunLimits::default());
            let taken = house.sandbox.jail().take("agent", "version", limits);
            let (took, worker) = timed(taken).await;
            drop(worker.expect("a worker"));
            if pool > 0 {
                tokio::time::sleep(REFILL).await;
            }
            took
        });
        runtime.block_on(house.close());
    }
}
