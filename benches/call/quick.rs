//! The guard against getting slower: two ratios against peers of the same
//! minutes, held to `benches/side_by_side/baseline.json`. A shared machine makes
//! any one measurement worse, never better, so a ratio counts as worse only when
//! it was in every attempt.

use crate::figures::Row;
use crate::house::House;
use crate::peers::Peers;
use crate::{WARM_UP, mcp_client, through, timed};
use cambium_sandbox_tests::vendor::Vendor;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Of each of the four rows in an attempt.
const ROUNDS: usize = 5;
const CALLS: usize = 60;
const ATTEMPTS: usize = 3;
/// How much worse than the baseline is a failure.
const WORSE: f64 = 1.25;
/// The build's own figures: an unoptimised one is slower than its peers.
const BUILD: &str = if cfg!(debug_assertions) { "dev" } else { "release" };
/// The guarded ratios of median times, ours by theirs.
const NAMES: [&str; 2] = ["engine call by isolated-vm", "MCP call by plain MCP server"];

/// Measures until no ratio is worse or the attempts are used up; what is worse
/// is the error.
pub(crate) async fn run(vendor: &Vendor, peers: &Peers) -> (Value, Result<(), String>) {
    let text = include_str!("../side_by_side/baseline.json");
    let baseline: Value = serde_json::from_str(text).expect("the baseline is JSON");
    let house = House::build(vendor, 1, "quick").await;
    let mut best = [f64::INFINITY; 2];
    let mut worse = Vec::new();
    println!("| attempt | {} | {} |\n|---|---|---|", NAMES[0], NAMES[1]);
    for attempt in 1..=ATTEMPTS {
        let ratios = measure(&house, peers).await;
        println!("| {attempt} | {:.2} | {:.2} |", ratios[0], ratios[1]);
        for (best, ratio) in best.iter_mut().zip(ratios) {
            *best = best.min(ratio);
        }
        worse = NAMES
            .iter()
            .zip(best)
            .filter_map(|(name, ratio)| {
                let usual = baseline[BUILD][name].as_f64().expect("the baseline has each ratio");
                (ratio > usual * WORSE)
                    .then(|| format!("{name} is {ratio:.2}, its baseline is {usual:.2}"))
            })
            .collect();
        if worse.is_empty() {
            break;
        }
    }
    house.close().await;
    let json = json!({ "build": BUILD, NAMES[0]: best[0], NAMES[1]: best[1] });
    (json, if worse.is_empty() { Ok(()) } else { Err(worse.join("; ")) })
}

async fn measure(house: &House, peers: &Peers) -> [f64; 2] {
    let cancel = CancellationToken::new();
    let address = house.serve(cancel.clone()).await;
    let client = mcp_client(address.port(), Some(&house.token)).await;
    let serving = peers.mcp_server();
    let plain = mcp_client(serving.port, None).await;
    for _ in 0..WARM_UP {
        house.call().await;
        through(&client).await;
        through(&plain).await;
    }
    let mut rows = ["ours", "isolated-vm", "ours through MCP", "plain MCP"].map(Row::new);
    for _ in 0..ROUNDS {
        rows[0].push(timed(CALLS, async || house.call().await, |_| {}).await);
        rows[1].push(peers.in_node("isolated_vm.mjs", CALLS));
        rows[2].push(timed(CALLS, async || through(&client).await, |()| {}).await);
        rows[3].push(timed(CALLS, async || through(&plain).await, |()| {}).await);
    }
    let _ = client.cancel().await;
    let _ = plain.cancel().await;
    cancel.cancel();
    let [ours, isolated, through_mcp, plain] = rows.map(|row| row.percentile(50.0));
    [ours / isolated, through_mcp / plain]
}

/// Without its peers there is nothing to compare with.
pub(crate) fn found(peers: Option<&Peers>) -> &Peers {
    peers.expect("the peers are not installed: run benches/side_by_side/run")
}
