//! What a call of the isolate costs: from asking for a worker to its ready, a
//! call without and with one request, and a worker's memory. Printed, not
//! judged; run it with `cargo run --release -p cambium-sandbox-tests --bin
//! worker`.

use crate::bench::Setup;
use crate::rig::{Rig, source};
use cambium_engine::{RunLimits, RunReport};
use cambium_isolate::IsolateConfig;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Calls of each kind; the first tenth is not counted.
const CALLS: usize = 200;

/// Prints the figures.
pub fn print() -> ExitCode {
    let done = tokio::runtime::Runtime::new().map(|tokio| tokio.block_on(measure()));
    match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// One call as this user, on a kernel that may refuse a layer: `worker call
/// [LAYER [weak]]` prints what came of it.
pub fn call() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let refused = match arguments.next() {
        Some(layer) => crate::refuse::refuse(&layer),
        None => Ok(()),
    };
    let allow_weak = arguments.next().is_some();
    let done = refused.and_then(|()| {
        let tokio = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
        Ok(tokio.block_on(one_call(allow_weak)))
    });
    let mut out = std::io::stdout();
    let said = match &done {
        Ok(report) => format!("{:?}", report.outcome),
        Err(error) => format!("failed: {error}"),
    };
    match writeln!(out, "{said}") {
        Ok(()) if done.is_ok() => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::FAILURE,
    }
}

async fn one_call(allow_weak: bool) -> RunReport {
    let config = IsolateConfig { pool: 1, allow_weak, ..IsolateConfig::default() };
    let rig = Rig::of(config, Setup::default()).await;
    let module = "export default async function (ctx) { return (await ctx.fetch('/x')).status; }";
    let report = rig.run_source(module, "{}", RunLimits::default(), rig.reads()).await;
    rig.sandbox.shutdown().await;
    report
}

async fn measure() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let exe = std::env::current_exe()?;
    let exe = exe.to_str().ok_or_else(|| std::io::Error::other("a path that is not UTF-8"))?;
    let began = Instant::now();
    let rig = Rig::start(exe).await;
    writeln!(out, "snapshot and start: {:?}", began.elapsed())?;
    let began = Instant::now();
    rig.still_works().await;
    writeln!(out, "first call, zygote's boot included: {:?}", began.elapsed())?;
    for (name, guest, input) in [
        ("no request", "good_no_fetch", r#"{"a":1,"b":2}"#),
        ("one request", "good_fetch", r#"{"id":"1"}"#),
    ] {
        let javascript = source(guest);
        let mut whole = Vec::new();
        let mut reports: Vec<RunReport> = Vec::new();
        for call in 0..CALLS {
            let began = Instant::now();
            let report =
                rig.run_source(&javascript, input, RunLimits::default(), rig.reads()).await;
            if call >= CALLS / 10 {
                whole.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
                reports.push(report);
            }
        }
        let field = |pick: fn(&RunReport) -> u64| reports.iter().map(pick).collect::<Vec<_>>();
        line(&mut out, name, "whole call", whole, "us")?;
        line(&mut out, name, "until ready", field(|report| report.times.take_us), "us")?;
        line(&mut out, name, "on the worker", field(|report| report.times.run_us), "us")?;
        line(&mut out, name, "worker CPU", field(|report| report.times.cpu_us), "us")?;
        line(&mut out, name, "worker peak", field(|report| report.times.max_rss / 1024), "KiB")?;
    }
    rig.sandbox.shutdown().await;
    Ok(())
}

fn line(
    out: &mut impl Write,
    name: &str,
    what: &str,
    mut values: Vec<u64>,
    unit: &str,
) -> std::io::Result<()> {
    values.sort_unstable();
    let at = |part: usize| values.get(values.len() * part / 100).copied().unwrap_or(0);
    writeln!(out, "{name:12} {what:14} p50 {:>7} p99 {:>7} {unit}", at(50), at(99))
}
