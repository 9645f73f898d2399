//! Memory of ready workers: a pool of twenty for one agent, each asked of the
//! kernel as its proportional set size.

use crate::house::House;
use crate::peers::Peers;
use crate::process::{children, pss};
use cambium_sandbox_tests::vendor::Vendor;

/// Ready workers.
const ALIVE: usize = 20;

/// Measures and prints.
pub(crate) async fn run(vendor: &Vendor, peers: Option<&Peers>) -> serde_json::Value {
    let worker = per_worker(vendor).await;
    println!("| idle, 20 alive | KiB each (PSS) |\n|---|---|\n| our worker process | {worker} |");
    let thread = peers.map(Peers::worker_thread_kib);
    if let Some(thread) = thread {
        println!("| node:worker_threads on Node 24.21 | {thread} |");
    }
    serde_json::json!({ "worker_kib": worker, "node_worker_thread_kib": thread })
}

/// KiB of one of twenty ready workers, on average. Zero when the kernel does
/// not tell (not root: workers are not dumpable).
async fn per_worker(vendor: &Vendor) -> u64 {
    let house = House::build(vendor, ALIVE, "memory").await;
    for _ in 0..3 {
        house.call().await;
    }
    // The pool refills behind the calls; it is full when nothing is new.
    let mut workers = Vec::new();
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let now = children();
        if now.len() > ALIVE && now == workers {
            break;
        }
        workers = now;
    }
    let mut sizes: Vec<u64> = workers.iter().filter_map(|pid| pss(*pid)).collect();
    // The zygotes themselves are the largest and are not workers.
    sizes.sort_unstable();
    sizes.truncate(ALIVE);
    let average = sizes.iter().sum::<u64>() / (sizes.len().max(1) as u64);
    house.close().await;
    average
}
