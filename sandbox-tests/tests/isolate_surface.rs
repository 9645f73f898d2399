//! What the isolate shows a module and what it can ask of its process, as
//! goldens: a new operation or a new global of a dependency fails here first.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Outcome, RunLimits};
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

#[test]
fn what_the_extensions_register_is_the_listed() {
    golden("isolate_registered.txt", &format!("{}\n", cambium_isolate::registered().join("\n")));
}

/// Every global with its own names and those of its prototype.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_the_globals_are_the_listed_ones() {
    let rig = Rig::start(WORKER).await;
    let source = "export default async function (ctx) {
        const names = (object) => Reflect.ownKeys(object).map(String).sort().join(' ');
        const isObject = (value) => value !== null && ['object', 'function'].includes(typeof value);
        const lines = [];
        const line = (name, value) => {
            if (!isObject(value)) return lines.push(`${name}: ${typeof value}`);
            lines.push(`${name}: ${names(value)}`);
            if (isObject(value.prototype)) lines.push(`${name}.prototype: ${names(value.prototype)}`);
        };
        for (const name of Reflect.ownKeys(globalThis).map(String).sort()) {
            if (name !== 'globalThis' && name !== 'self') line(name, globalThis[name]);
        }
        line('crypto.subtle', crypto.subtle);
        line('TypedArray', Object.getPrototypeOf(Uint8Array));
        line('GeneratorFunction', Object.getPrototypeOf(function* () {}));
        line('AsyncFunction', Object.getPrototypeOf(async () => {}));
        line('import.meta', import.meta);
        return lines.join('\\n');
    }";
    let report = rig.run_source(source, "{}", RunLimits::default(), rig.reads()).await;
    let names: String = serde_json::from_str(value(&report)).unwrap();
    golden("isolate_members.txt", &format!("{names}\n"));
    rig.sandbox.shutdown().await;
}

/// Runs of every kind leave nothing behind: no process, no descriptor, no
/// memory that grows. The long form is `CAMBIUM_RUNS=10000` (`./dev soak`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_every_kind_leave_nothing_behind() {
    let runs = std::env::var("CAMBIUM_RUNS").map_or(80, |text| text.parse().unwrap());
    let rig = Rig::start(WORKER).await;
    let kinds = [
        "return 1;",
        "return (await ctx.fetch('/x')).status;",
        "throw new Error('x');",
        "for (;;);",
        "const all = []; for (;;) all.push(new Array(1e5).fill(0));",
        "return 'x'.repeat(1e8);",
        "await new Promise(() => {});",
        "ctx.fetch('/x'); return 1;",
    ];
    let limits = RunLimits {
        cpu: Duration::from_millis(60),
        heap_bytes: 16 * 1024 * 1024,
        ..RunLimits::default()
    };
    let mut steady = None;
    for run in 0..runs {
        let kind = kinds[run % kinds.len()];
        let source = format!("export default async function (ctx) {{ {kind} }}");
        let ended = rig.run_source(&source, "{}", limits, rig.reads());
        if run % 16 == 9 {
            let _ = tokio::time::timeout(Duration::from_millis(5), ended).await;
        } else {
            let outcome = ended.await.outcome;
            assert!(!matches!(outcome, Outcome::Unavailable(_)), "{kind} {outcome:?}");
        }
        // Two zygotes at most, the workers that are about to be reaped, and what
        // the vendor and the proxy keep open to each other.
        if run % 40 == 39 {
            let (children, open) = (children(), open_descriptors());
            assert!(children <= 8, "{children} processes after {run} runs");
            let steady = *steady.get_or_insert(open);
            assert!(open <= steady + 16, "{open} descriptors after {run} runs, {steady} before");
        }
    }
    rig.sandbox.shutdown().await;
    assert_eq!(children(), 0);
}

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    tasks.map(|task| of(task).split_whitespace().count()).sum()
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
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
