//! P11: what a check of a module costs, parse, scope analysis, hints, schemas
//! and the JavaScript that will run, beside the TypeScript compiler's own check
//! of the same file. Whole processes both: ours with its jail. The pure function
//! is timed too.

use crate::figures::Row;
use crate::peers::Peers;
use cambium_engine::check_module;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;
const PROCESSES: usize = 10;
const CHECKS: usize = 100;
/// Bytes of the module, at least.
const SIZE: usize = 5 * 1024;

/// A module of that size: one call, and the shaping of its answer.
fn module() -> String {
    let mut source = String::from(
        "export const description = \"Lists orders, shaped.\";\n\
         export const inputSchema = { type: \"object\", properties: { limit: { type: \"integer\" } }, \
         additionalProperties: false } as const;\n\
         type Order = { id: number; total: number; note?: string };\n",
    );
    let mut parts = 0;
    while source.len() < SIZE - 400 {
        let _ = write!(
            source,
            "function part{parts}(order: Order, rate: number): {{ id: number; sum: number }} {{\n  \
             const sum = order.total * rate + {parts};\n  if (sum > 1_000) return {{ id: order.id, sum }};\n  \
             return {{ id: order.id, sum: Math.round(sum) }};\n}}\n"
        );
        parts += 1;
    }
    let _ = write!(
        source,
        "export default async function (ctx: any, input: {{ limit?: number }}): Promise<unknown> {{\n  \
         const answer = await ctx.fetch(`/orders?limit=${{input.limit ?? 20}}`);\n  \
         const {{ orders }} = await answer.json();\n  return orders.map((order: Order) => [{}]);\n}}\n",
        (0..parts).map(|n| format!("part{n}(order, {n})")).collect::<Vec<_>>().join(", ")
    );
    source
}

pub(crate) fn run(peers: &Peers) -> Value {
    let folder = std::env::temp_dir().join(format!("cambium-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory of our own");
    let file = folder.join("tool.ts");
    let source = module();
    assert!(source.len() >= SIZE, "{} bytes", source.len());
    assert!(check_module(&source).ok, "{:?}", check_module(&source).diagnostics);
    std::fs::write(&file, &source).expect("the module");
    let ours = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cambium"));
        command
            .arg("check")
            .arg(&file)
            .env_clear()
            .env("CAMBIUM_DATA_DIR", &folder)
            .env("HOME", &folder);
        command
    };
    let theirs = || {
        let mut command = Command::new(peers.tsc());
        command
            .args(["--strict", "--target", "esnext", "--outDir"])
            .arg(folder.join("out"))
            .arg(&file);
        command
    };
    let mut rows = [
        "`cambium check`, whole process, jailed",
        "`tsc` 7.0.2, whole process",
        "the check alone, in a warm process",
    ]
    .map(Row::new);
    processes(1, ours);
    processes(1, theirs);
    for _ in 0..ROUNDS {
        rows[0].push(processes(PROCESSES, ours));
        rows[1].push(processes(PROCESSES, theirs));
        let one = || {
            let began = Instant::now();
            assert!(check_module(&source).ok);
            began.elapsed().as_secs_f64() * 1e6
        };
        rows[2].push((0..CHECKS).map(|_| one()).collect());
    }
    println!("| a module of {} bytes | p50 ms | p99 ms |\n|---|---|---|", source.len());
    for row in &rows {
        let (p50, p99) = (row.percentile(50.0) / 1000.0, row.percentile(99.0) / 1000.0);
        println!("| {} | {p50:.2} | {p99:.2} |", row.name);
    }
    let ratio = rows[0].percentile(50.0) / rows[1].percentile(50.0);
    let warm = rows[2].percentile(50.0) / rows[1].percentile(50.0);
    println!("P11, ours by tsc: {ratio:.3} as processes, {warm:.4} the check alone");
    let _ = std::fs::remove_dir_all(&folder);
    json!({ "rows": rows.each_ref().map(Row::json), "ratio": ratio, "ratio_warm": warm })
}

fn processes(count: usize, command: impl Fn() -> Command) -> Vec<f64> {
    let one = |_| {
        let began = Instant::now();
        let out = command().stdin(Stdio::null()).output().expect("it runs");
        let took = began.elapsed().as_secs_f64() * 1e6;
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stdout));
        took
    };
    (0..count).map(one).collect()
}
