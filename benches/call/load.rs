//! What a call costs under load. Closed loops of 1 to 32 callers, as many as a
//! node runs at once, say where the
//! capacity is; an open loop at shares of it says what a caller waits when calls
//! come when they come: each latency counts from the moment the call was due,
//! so that a stall is felt by everything behind it.

use crate::figures::Row;
use crate::house::House;
use crate::process;
use cambium_engine::Caller;
use cambium_sandbox_tests::vendor::Vendor;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CALLERS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Each may have eight runs at once.
const AGENTS: usize = 4;
const CALLS: usize = 600;
const ROUNDS: usize = 3;
/// Shares of the capacity, per cent.
const SHARES: [usize; 4] = [30, 50, 70, 90];
const POOL: usize = 2;
/// Before a caller who was told `busy` comes again.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn run(vendor: &Vendor) -> Value {
    let house = Arc::new(House::build(vendor, POOL, "load").await);
    let agents = Arc::new(house.agents(AGENTS).await);
    for _ in 0..crate::WARM_UP {
        house.call().await;
    }
    let mut closed: Vec<(Row, Vec<f64>, u64)> = CALLERS
        .iter()
        .map(|callers| (Row::new(&format!("{callers} callers")), Vec::new(), 0))
        .collect();
    for _ in 0..ROUNDS {
        for (at, callers) in CALLERS.into_iter().enumerate() {
            let began = Instant::now();
            let (times, busy) = closed_loop(&house, &agents, callers, CALLS).await;
            assert_eq!(busy, 0, "{callers} callers have places");
            closed[at].0.push(times);
            closed[at].1.push(CALLS as f64 / began.elapsed().as_secs_f64());
            closed[at].2 = closed[at].2.max(process::resident_kib());
        }
    }
    println!(
        "| closed loop, callers | calls a second | p50 ms | p99 ms | resident MiB |\n|---|---|---|---|---|"
    );
    let mut capacity: f64 = 0.0;
    let mut rows = Vec::new();
    for ((row, rates, kib), callers) in closed.iter_mut().zip(CALLERS) {
        rates.sort_by(f64::total_cmp);
        let rate = rates[ROUNDS / 2];
        capacity = capacity.max(rate);
        let (p50, p99) = (row.percentile(50.0) / 1000.0, row.percentile(99.0) / 1000.0);
        println!("| {callers} | {rate:.0} | {p50:.2} | {p99:.2} | {:.0} |", *kib as f64 / 1024.0);
        rows.push(json!({ "callers": callers, "calls_a_second": rate, "figures": row.json(), "rss_kib": *kib }));
    }
    println!(
        "\n| open loop, share of {capacity:.0} a second | p50 ms | p99 ms | told busy |\n|---|---|---|---|"
    );
    let mut open = Vec::new();
    for share in SHARES {
        let mut row = Row::new(&format!("{share} %"));
        let mut busy = 0;
        for _ in 0..ROUNDS {
            let rate = capacity * share as f64 / 100.0;
            let (times, told) = open_loop(&house, &agents, rate).await;
            row.push(times);
            busy += told;
        }
        let (p50, p99) = (row.percentile(50.0) / 1000.0, row.percentile(99.0) / 1000.0);
        println!("| {share} % | {p50:.2} | {p99:.2} | {busy} |");
        open.push(row.json());
    }
    if let Ok(house) = Arc::try_unwrap(house) {
        house.close().await;
    }
    json!({ "closed": rows, "open": open, "capacity": capacity })
}

/// So many calls by callers who do not wait: microseconds of each, and how often
/// one was told `busy` and came again.
pub(crate) async fn closed_loop(
    house: &Arc<House>,
    agents: &Arc<Vec<Caller>>,
    callers: usize,
    calls: usize,
) -> (Vec<f64>, usize) {
    let left = Arc::new(AtomicUsize::new(calls));
    let busy = Arc::new(AtomicUsize::new(0));
    let mut callers_at_work = tokio::task::JoinSet::new();
    for number in 0..callers {
        let (house, agents) = (house.clone(), agents.clone());
        let (left, busy) = (left.clone(), busy.clone());
        callers_at_work.spawn(async move {
            let caller = &agents[number % agents.len()];
            let mut times = Vec::new();
            let one_less = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                let began = Instant::now();
                while !house.called_as(caller).await {
                    busy.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
            times
        });
    }
    let times = callers_at_work.join_all().await.concat();
    (times, busy.load(Ordering::Relaxed))
}

/// The same for calls that come when they are due: microseconds since then.
async fn open_loop(house: &Arc<House>, agents: &Arc<Vec<Caller>>, rate: f64) -> (Vec<f64>, usize) {
    let busy = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    let began = Instant::now();
    for number in 0..CALLS {
        let due = began + Duration::from_secs_f64(number as f64 / rate);
        tokio::time::sleep_until(due.into()).await;
        let (house, agents, busy) = (house.clone(), agents.clone(), busy.clone());
        calls.spawn(async move {
            while !house.called_as(&agents[number % AGENTS]).await {
                busy.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            due.elapsed().as_secs_f64() * 1e6
        });
    }
    let times = calls.join_all().await;
    (times, busy.load(Ordering::Relaxed))
}
