//! How the measured call and memory grow (P1): with callers at the same time, and
//! with the toolbox. More than the node has places for are answered `busy`;
//! such a caller comes again a little later, and its wait counts.
//!
//! Each toolbox is filled in a process of its own and then opened by another,
//! as a server that starts on it would be, so that what an import leaves in the
//! allocator is not counted. `-- growth`, never run unless it is named.

use crate::burst::{A_NODE, AN_AGENT};
use crate::chart::{self, Panel, Scale, Series};
use crate::figures::Row;
use crate::house::House;
use crate::load::closed_loop;
use crate::{WARM_UP, process, timed, toolbox};
use cambium_engine::Caller;
use cambium_sandbox_tests::vendor::Vendor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CALLERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const TOOLBOXES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
const ROUNDS: usize = 5;
/// In a round, over all callers.
const CALLS: usize = 300;
const POOL: usize = 1;
/// Between two looks at memory.
const LOOK: Duration = Duration::from_millis(50);
/// What a process of this bench does instead of its tables, as JSON.
const PART: &str = "CAMBIUM_GROWTH_PART";

/// What one process does.
#[derive(Serialize, Deserialize)]
enum Part {
    /// Makes a house for a vendor and fills its toolbox; prints the agent's token.
    Fill { directory: PathBuf, tools: usize, vendor: std::net::SocketAddr, ca_pem: String },
    /// Opens it and calls; prints [`Figures`].
    Call { directory: PathBuf, token: String, calls: usize },
}

/// One point of a curve.
#[derive(Serialize, Deserialize)]
struct Figures {
    p50_us: f64,
    p99_us: f64,
    /// Of the engine's process.
    resident_kib: u64,
    /// Proportional, of zygotes and workers together; 0 where the kernel does not tell.
    workers_kib: u64,
    /// Answers that were `busy`.
    busy: usize,
}

/// Runs this process's part, if it has one.
pub(crate) async fn part() -> bool {
    let Some(part) = std::env::var_os(PART) else { return false };
    let part = serde_json::from_str(part.to_str().expect("text")).expect("a part");
    match part {
        Part::Fill { directory, tools, vendor, ca_pem } => {
            let house = House::made(directory, vendor, &ca_pem, 0).await;
            toolbox::fill(&house, tools).await;
            println!("{}", json!(house.token));
            house.leave().await;
        }
        Part::Call { directory, token, calls } => {
            let house = House::again(directory, token, POOL).await;
            println!("{}", json!(one_caller(&house, calls).await));
            house.leave().await;
        }
    }
    true
}

/// Measures both, prints, and draws.
pub(crate) async fn run(vendor: &Vendor) -> (Value, String) {
    let callers = by_callers(vendor).await;
    let tools = tokio::task::block_in_place(|| by_tools(vendor));
    let drawn = chart::panels(
        "One call (process, module, one read through the proxy) as what is asked of it grows",
        &[
            latency("callers at the same time", &callers),
            memory("callers at the same time", &callers),
            latency("tools in the toolbox, one caller", &tools),
            memory("tools in the toolbox, one caller", &tools),
        ],
    );
    let all = |points: &[(usize, Figures)]| -> Vec<Value> {
        points.iter().map(|(at, figures)| json!({ "at": at, "figures": figures })).collect()
    };
    (json!({ "callers": all(&callers), "tools": all(&tools), "places": A_NODE }), drawn)
}

async fn by_callers(vendor: &Vendor) -> Vec<(usize, Figures)> {
    let house = Arc::new(House::build(vendor, POOL, "growth").await);
    let most = CALLERS.iter().max().map_or(0, |most| most.div_ceil(AN_AGENT));
    let agents = Arc::new(house.agents(most).await);
    let mut memory = Vec::new();
    // Upwards and first: an agent's zygote stays once it was needed.
    for callers in CALLERS {
        memory.push(at_work(&house, &agents, callers).await);
    }
    let mut rows = CALLERS.map(|callers| Row::new(&callers.to_string()));
    let mut busy = [0; CALLERS.len()];
    for _ in 0..ROUNDS {
        for (at, callers) in CALLERS.into_iter().enumerate() {
            let (times, refused) = closed_loop(&house, &agents, callers, CALLS).await;
            rows[at].push(times);
            busy[at] += refused;
        }
    }
    head("callers");
    let mut points = Vec::new();
    for (at, callers) in CALLERS.into_iter().enumerate() {
        let (resident_kib, workers_kib) = memory[at];
        let (p50_us, p99_us) = (rows[at].percentile(50.0), rows[at].percentile(99.0));
        let figures = Figures { p50_us, p99_us, resident_kib, workers_kib, busy: busy[at] };
        print(callers, &figures);
        points.push((callers, figures));
    }
    if let Ok(house) = Arc::try_unwrap(house) {
        house.close().await;
    }
    points
}

/// The most memory seen while so many call, in a run of its own: looking slows
/// what is looked at.
async fn at_work(house: &Arc<House>, agents: &Arc<Vec<Caller>>, callers: usize) -> (u64, u64) {
    let mut working = Box::pin(closed_loop(house, agents, callers, CALLS));
    let (mut resident, mut workers) = (0, 0);
    loop {
        let over = tokio::time::timeout(LOOK, &mut working).await.is_ok();
        resident = resident.max(process::resident_kib());
        workers = workers.max(workers_kib());
        if over {
            return (resident, workers);
        }
    }
}

fn workers_kib() -> u64 {
    process::children().into_iter().filter_map(process::pss).sum()
}

fn by_tools(vendor: &Vendor) -> Vec<(usize, Figures)> {
    head("tools");
    let mut points = Vec::new();
    for tools in TOOLBOXES {
        let directory =
            std::env::temp_dir().join(format!("cambium-growth-{}-{tools}", std::process::id()));
        let fill = Part::Fill {
            directory: directory.clone(),
            tools,
            vendor: vendor.address,
            ca_pem: vendor.ca_pem.clone(),
        };
        let token = carried_out(&fill);
        let calls = Part::Call { directory: directory.clone(), token, calls: CALLS };
        let figures: Figures = carried_out(&calls);
        print(tools, &figures);
        let _ = std::fs::remove_dir_all(&directory);
        points.push((tools, figures));
    }
    points
}

fn carried_out<T: serde::de::DeserializeOwned>(part: &Part) -> T {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new(own);
    command.env(PART, json!(part).to_string()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let out = command.output().expect("this program runs");
    assert!(out.status.success(), "a part ended with {}", out.status);
    serde_json::from_slice(&out.stdout).expect("JSON")
}

async fn one_caller(house: &House, calls: usize) -> Figures {
    for _ in 0..WARM_UP {
        house.call().await;
    }
    let mut row = Row::new("");
    for _ in 0..ROUNDS {
        row.push(timed(calls, async || house.call().await, |_| {}).await);
    }
    Figures {
        p50_us: row.percentile(50.0),
        p99_us: row.percentile(99.0),
        resident_kib: process::resident_kib(),
        workers_kib: workers_kib(),
        busy: 0,
    }
}

fn head(what: &str) {
    println!(
        "| {what} | p50 ms | p99 ms | engine resident MiB | workers PSS MiB | answered busy |\n|---|---|---|---|---|---|"
    );
}

fn print(at: usize, figures: &Figures) {
    let (p50, p99) = (figures.p50_us / 1000.0, figures.p99_us / 1000.0);
    let (engine, workers) = (mib(figures.resident_kib), mib(figures.workers_kib));
    println!("| {at} | {p50:.2} | {p99:.2} | {engine:.0} | {workers:.0} | {} |", figures.busy);
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn latency(x: &str, points: &[(usize, Figures)]) -> Panel {
    panel(
        x,
        "milliseconds a call (logarithmic)",
        Scale::Logarithmic,
        points,
        [
            ("median", |figures| figures.p50_us / 1000.0),
            ("99th percentile", |figures| figures.p99_us / 1000.0),
        ],
    )
}

fn memory(x: &str, points: &[(usize, Figures)]) -> Panel {
    panel(
        x,
        "MiB",
        Scale::FromZero,
        points,
        [
            ("engine's process, resident", |figures| mib(figures.resident_kib)),
            ("zygotes and workers, PSS", |figures| mib(figures.workers_kib)),
        ],
    )
}

type Of = fn(&Figures) -> f64;

fn panel(
    x: &str,
    y: &str,
    scale: Scale,
    points: &[(usize, Figures)],
    series: [(&str, Of); 2],
) -> Panel {
    Panel {
        x: x.to_owned(),
        y: y.to_owned(),
        scale,
        places: points.iter().map(|(at, _)| at.to_string()).collect(),
        series: series.map(|(name, of)| Series {
            name: name.to_owned(),
            values: points.iter().map(|(_, figures)| of(figures)).collect(),
        }),
    }
}
