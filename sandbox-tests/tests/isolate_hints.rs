//! What the check says of a module against what it does: modules out of parts
//! run in the real isolate, once where everything may pass and once held to what
//! was recorded. The long form is `CAMBIUM_CASES=100000` (`./dev soak`).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use cambium_engine::{CheckReport, RunLimits, check_module};
use cambium_proxy::{CallSite, Grant, Hints, MethodPattern, PathPattern, Session};
use cambium_sandbox_tests::modules::module;
use cambium_sandbox_tests::rig::Rig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// Cases inside the suite.
const CASES: u64 = 400;
/// Cases on one rig; the vendor keeps all it heard.
const BATCH: u64 = 500;

fn limits() -> RunLimits {
    let cpu = Duration::from_secs(2);
    RunLimits { wall: Duration::from_secs(20), cpu, ..RunLimits::default() }
}

/// A session that lets every request pass as far as a dry run does: what the
/// module asks for is what its report lists.
fn open(rig: &Rig) -> Arc<Session> {
    let hosts = [None, Some("files".to_owned())];
    let sites = hosts
        .map(|host| CallSite { method: MethodPattern::Any, host, path: PathPattern::Any })
        .to_vec();
    rig.bench.open(Hints { read_only: false, destructive: true }, sites, Grant::Preview)
}

/// A session as the engine opens it for a version with this report.
fn held(rig: &Rig, report: &CheckReport) -> Arc<Session> {
    let grant = if report.hints.read_only { Grant::ReadOnly } else { Grant::Preview };
    rig.bench.open(report.hints, report.sites.clone(), grant)
}

/// The same rule as the proxy's, written a second time.
fn fits(site: &CallSite, method: &str, path: &str) -> bool {
    let method_fits = match &site.method {
        MethodPattern::Exactly(only) => only == method,
        MethodPattern::Any => true,
    };
    let path_fits = match &site.path {
        PathPattern::Any => true,
        PathPattern::Template(template) => {
            let (wanted, found): (Vec<_>, Vec<_>) =
                (template.split('/').collect(), path.split('/').collect());
            wanted.len() == found.len()
                && wanted.iter().zip(&found).all(|(wanted, found)| match wanted.split_once("{}") {
                    Some((before, after)) => {
                        found.len() > before.len() + after.len()
                            && found.starts_with(before)
                            && found.ends_with(after)
                    }
                    None => wanted == found,
                })
        }
    };
    method_fits && path_fits
}

#[derive(Debug, Default)]
struct Count {
    refused: u64,
    read_only: u64,
    writes: u64,
    destroys: u64,
    any_site: u64,
    asked: BTreeMap<String, u64>,
    sent: u64,
}

async fn case(rig: &Rig, seed: u64, count: &mut Count) {
    let source = module(seed);
    let report = check_module(&source);
    let Some(javascript) = report.javascript.as_deref().filter(|_| report.ok) else {
        count.refused += 1;
        return;
    };
    let hints = report.hints;
    count.read_only += u64::from(hints.read_only);
    count.writes += u64::from(!hints.read_only && !hints.destructive);
    count.destroys += u64::from(hints.destructive);
    count.any_site += u64::from(report.sites.iter().any(|site| site.method == MethodPattern::Any));
    let said = || format!("seed {seed} {hints:?} {:?}\n{source}", report.sites);
    let input = r#"{"id":"a b"}"#;

    // With nothing in its way: what the check believed must be what it asks for.
    let session = open(rig);
    rig.run_source(javascript, input, limits(), session.clone()).await;
    for asked in session.report().exchanges {
        *count.asked.entry(asked.method.clone()).or_default() += 1;
        let read = matches!(asked.method.as_str(), "GET" | "HEAD");
        assert!(read || !hints.read_only, "{} {} by\n{}", asked.method, asked.path, said());
    }

    // Held to what was recorded: nothing arrives that is not one of its sites.
    let before = rig.bench.vendor.heard().len();
    let session = held(rig, &report);
    rig.run_source(javascript, input, limits(), session.clone()).await;
    for passed in session.report().exchanges {
        // One that was cut off before it was judged has none of the three.
        if passed.refusal.is_some() || (passed.status.is_none() && passed.preview.is_none()) {
            continue;
        }
        let recorded = report.sites.iter().any(|site| fits(site, &passed.method, &passed.path));
        assert!(recorded, "{} {} by\n{}", passed.method, passed.path, said());
        assert!(passed.method != "DELETE" || hints.destructive, "DELETE by\n{}", said());
        count.sent += 1;
    }
    for heard in &rig.bench.vendor.heard()[before..] {
        let read = heard.line().starts_with("GET ") || heard.line().starts_with("HEAD ");
        assert!(read, "{} by\n{}", heard.line(), said());
    }
    // The hint itself comes from a literal and from nothing else.
    if hints.destructive {
        assert!(source.contains("DELETE"), "{}", said());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b041_b095_what_the_check_calls_read_only_only_reads() {
    let cases = std::env::var("CAMBIUM_CASES").map_or(CASES, |text| text.parse().unwrap());
    let first = std::env::var("CAMBIUM_SEED").map_or(1, |text| text.parse::<u64>().unwrap());
    let mut count = Count::default();
    let mut seed = first;
    while seed < first + cases {
        let rig = Rig::start(WORKER).await;
        for _ in 0..BATCH.min(first + cases - seed) {
            case(&rig, seed, &mut count).await;
            seed += 1;
        }
        rig.sandbox.shutdown().await;
        if cases > CASES {
            println!("{} cases: {count:?}", seed - first);
        }
    }
    println!("{cases} cases: {count:?}");
    // The parts must not all be refused, or all be one kind.
    assert!(count.read_only > cases / 50 && count.writes > cases / 50, "{count:?}");
    assert!(count.destroys > 0 && count.refused < cases / 2, "{count:?}");
    assert!(count.asked.len() >= 5, "{count:?}");
}
