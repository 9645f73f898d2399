//! The guard against getting slower: two ratios against peers of the same
//! minutes, held to `benches/side_by_side/baseline.json` (another file when
//! `CAMBIUM_BASELINE` names one). A round measures ours and the peer's one right
//! after the other and gives one ratio; an attempt's is the median of its
//! rounds, which a burst of somebody else's work leaves alone. A machine that is
//! busy for longer can only make an attempt worse, so each waits a while for a
//! quiet moment, and a ratio counts as worse when it was in every attempt: in
//! three during which the machine did little else, or in all there was time for.
//! Code that is slower is so in each of them.

use crate::figures::Row;
use crate::house::House;
use crate::peers::Peers;
use crate::process::{DISTURBED, Others};
use crate::{WARM_UP, mcp_client, through, timed};
use cambium_sandbox_tests::vendor::Vendor;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Of each of the four rows in an attempt.
const ROUNDS: usize = 7;
const CALLS: usize = 50;
/// Undisturbed ones.
const ATTEMPTS: usize = 3;
/// No attempt begins after it.
const TIME: Duration = Duration::from_secs(120);
/// The longest wait for a quiet moment, in looks of a second.
const LOOKS: usize = 10;
/// How much worse than the baseline is a failure.
const WORSE: f64 = 1.25;
/// The build's own figures: an unoptimised one is slower than its peers.
const BUILD: &str = if cfg!(debug_assertions) { "dev" } else { "release" };
/// The guarded ratios of median times, ours by theirs.
const NAMES: [&str; 2] = ["engine call by isolated-vm", "MCP call by plain MCP server"];

type Ratios = [f64; 2];

/// Measures until no ratio is worse or the attempts are used up; what is worse
/// is the error.
pub(crate) async fn run(vendor: &Vendor, peers: &Peers) -> (Value, Result<(), String>) {
    prove();
    let usual = baseline();
    let house = House::build(vendor, 1, "quick").await;
    let (mut attempts, mut undisturbed) = (Vec::new(), 0);
    let began = Instant::now();
    println!(
        "| attempt | {} | {} | others had of the machine |\n|---|---|---|---|",
        NAMES[0], NAMES[1]
    );
    println!("| baseline | {:.2} | {:.2} | |", usual[0], usual[1]);
    let worse = loop {
        quiet_moment().await;
        let mut others = Others::new();
        let ratios = measure(&house, peers).await;
        let share = others.share();
        attempts.push(ratios);
        undisturbed += usize::from(share < DISTURBED);
        println!(
            "| {} | {:.2} | {:.2} | {:.0} % |",
            attempts.len(),
            ratios[0],
            ratios[1],
            share * 100.0
        );
        let worse = worse(&attempts, usual);
        if worse.is_empty() || undisturbed == ATTEMPTS || began.elapsed() > TIME {
            break worse;
        }
    };
    house.close().await;
    let best = best(&attempts);
    let json = json!({ "build": BUILD, NAMES[0]: best[0], NAMES[1]: best[1] });
    (json, if worse.is_empty() { Ok(()) } else { Err(worse.join("; ")) })
}

/// Returns when others had little of the machine for a second, or it is given up.
async fn quiet_moment() {
    for _ in 0..LOOKS {
        let mut others = Others::new();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if others.share() < DISTURBED {
            return;
        }
    }
}

fn baseline() -> Ratios {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/side_by_side/baseline.json");
    let file = std::env::var_os("CAMBIUM_BASELINE").map_or(usual, PathBuf::from);
    let text = std::fs::read_to_string(&file).expect("the baseline can be read");
    let baseline: Value = serde_json::from_str(&text).expect("the baseline is JSON");
    NAMES.map(|name| baseline[BUILD][name].as_f64().expect("the baseline has each ratio"))
}

fn best(attempts: &[Ratios]) -> Ratios {
    let least = |at: usize| attempts.iter().map(|ratios| ratios[at]).fold(f64::INFINITY, f64::min);
    [least(0), least(1)]
}

/// What was too slow in every attempt.
fn worse(attempts: &[Ratios], usual: Ratios) -> Vec<String> {
    let best = best(attempts);
    let all = NAMES.into_iter().zip(best).zip(usual);
    all.filter(|((_, ratio), usual)| ratio.is_nan() || *ratio > usual * WORSE)
        .map(|((name, ratio), usual)| format!("{name} is {ratio:.2}, its baseline is {usual:.2}"))
        .collect()
}

/// Panics when a regression of three in ten would pass.
fn prove() {
    let usual = [1.4, 2.2];
    let regressed = |at: usize, by: f64| {
        let mut ratios = usual;
        ratios[at] *= by;
        ratios
    };
    for at in 0..NAMES.len() {
        assert_eq!(worse(&[regressed(at, 1.3); ATTEMPTS], usual).len(), 1);
        let once_not = [regressed(at, 1.3), regressed(at, 1.2)];
        assert_eq!(worse(&once_not, usual), Vec::<String>::new());
    }
}

async fn measure(house: &House, peers: &Peers) -> Ratios {
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
    let mut rounds = NAMES.map(Row::new);
    for _ in 0..ROUNDS {
        let ours = timed(CALLS, async || house.call().await, |_| {}).await;
        let theirs = peers.times("isolated_vm.mjs", CALLS);
        rounds[0].push(vec![median(ours) / median(theirs)]);
        let ours = timed(CALLS, async || through(&client).await, |()| {}).await;
        let theirs = timed(CALLS, async || through(&plain).await, |()| {}).await;
        rounds[1].push(vec![median(ours) / median(theirs)]);
    }
    let _ = client.cancel().await;
    let _ = plain.cancel().await;
    cancel.cancel();
    rounds.map(|rounds| rounds.percentile(50.0))
}

fn median(times: Vec<f64>) -> f64 {
    let mut row = Row::new("");
    row.push(times);
    row.percentile(50.0)
}

/// Without its peers there is nothing to compare with.
pub(crate) fn found(peers: Option<&Peers>) -> &Peers {
    peers.expect("the peers are not installed: run benches/side_by_side/run")
}
