//! What the isolate shows a module and what it can ask of its process, as
//! goldens: a new operation or a new global of a dependency fails here first.
#![allow(clippy::unwrap_used)]

use cambium_engine::RunLimits;
use cambium_sandbox_tests::bench::Setup;
use cambium_sandbox_tests::rig::{Rig, source, value};
use cambium_sandbox_tests::vendor::answer;
use std::time::Duration;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// Compares with a golden file; `UPDATE_GOLDENS=1` writes it.
fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{}", path.display());
}

#[test]
fn operations_are_the_listed_ones() {
    let lines: Vec<String> = cambium_isolate::op_names()
        .unwrap()
        .into_iter()
        .map(|(name, allowed)| format!("{} {name}\n", if allowed { "on " } else { "off" }))
        .collect();
    golden("isolate_ops.txt", &lines.concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn globals_are_the_listed_ones() {
    let rig = Rig::start(WORKER).await;
    let source = "export default async function (ctx) {
        const names = Reflect.ownKeys(globalThis).map(String).sort();
        return [...names, ...Reflect.ownKeys(ctx).map((key) => `ctx.${key}`).sort()].join('\\n');
    }";
    let report = rig.run_source(source, "{}", RunLimits::default(), rig.reads()).await;
    let names: String = serde_json::from_str(value(&report)).unwrap();
    golden("isolate_globals.txt", &format!("{names}\n"));
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exec_path_runs_the_same_tools() {
    let rig = Rig::with(WORKER, false, Setup::default()).await;
    rig.still_works().await;
    let platform = source("good_platform");
    let report = rig.run_source(&platform, "{}", RunLimits::default(), rig.dry()).await;
    assert_eq!(value(&report), "[]");
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_run_kills_its_worker() {
    let rig = Rig::start(WORKER).await;
    rig.still_works().await;
    let source = "export default async function () { for (;;); }";
    {
        let run = rig.run_source(source, "{}", RunLimits::default(), rig.reads());
        let cut = tokio::time::timeout(Duration::from_millis(200), run).await;
        assert!(cut.is_err());
    }
    // Returns only once every worker is reaped.
    rig.sandbox.shutdown().await;
}

/// Credit for a reply comes back while the reply still runs, and may come before
/// or after its end: neither is a fault of the worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_of_many_windows_arrives_whole() {
    let body = "0123456789abcdef".repeat(64 * 1024).into_bytes();
    let vendor = move |heard: &cambium_sandbox_tests::vendor::Heard| {
        let small: &[u8] = b"{\"ok\":true}";
        let body = if heard.line().contains("/big") { &body } else { small };
        answer("200 OK", "content-type: text/plain\r\n", body)
    };
    let rig = Rig::with(WORKER, true, Setup::answering(vendor)).await;
    let source = "export default async function (ctx) {
        let total = (await (await ctx.fetch('/big')).text()).length;
        for (let n = 0; n < 14; n += 1) total += (await (await ctx.fetch('/small')).text()).length;
        return total;
    }";
    for _ in 0..8 {
        let report = rig.run_source(source, "{}", RunLimits::default(), rig.reads()).await;
        assert_eq!(value(&report), (1024 * 1024 + 14 * 11).to_string());
    }
    rig.sandbox.shutdown().await;
}
