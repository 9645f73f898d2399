//! Resource bombs by what they exhaust: each ends as its row allows, inside its
//! limits, with its memory under the cap, and the next call works. A class is a
//! test; its bombs are in [`table`]. What a call costs after a bomb is printed,
//! since the clock belongs to a shared machine.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod table;

use cambium_engine::{Outcome, RunLimits, RunReport};
use cambium_sandbox_tests::rig::Rig;
use std::time::{Duration, Instant};
use table::{BOMBS, Bomb, Class};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// What a bomb may take beyond its limit.
const SLACK: Duration = Duration::from_millis(250);
/// What a process has besides RLIMIT_DATA: its stack and the binary itself.
const BESIDES: u64 = 64 * 1024 * 1024;

/// A bomb whose row names no end by time must meet another limit, so its clocks
/// are out of reach: the first touch of a page costs up to 7 ms for each MiB
/// where a virtual machine hands free memory back to its host.
fn limits(bomb: &Bomb) -> RunLimits {
    let (wall, cpu) = if bomb.ends.contains('T') { (1_000, 300) } else { (30_000, 15_000) };
    RunLimits {
        wall: Duration::from_millis(wall),
        cpu: Duration::from_millis(cpu),
        ..RunLimits::default()
    }
}

/// The letter of an outcome in the table.
fn letter(outcome: &Outcome) -> char {
    match outcome {
        Outcome::Ok(_) => 'o',
        Outcome::ToolError { .. } => 'E',
        Outcome::Timeout | Outcome::CpuLimit => 'T',
        Outcome::MemoryLimit => 'M',
        Outcome::OutputLimit => 'S',
        Outcome::NeverSettled => 'N',
        Outcome::PolicyDenied => 'D',
        Outcome::Crashed { .. } | Outcome::Cancelled | Outcome::Unavailable(_) => '!',
    }
}

async fn explode(rig: &Rig, bomb: &Bomb) -> RunReport {
    let module = format!("export default async function (ctx, input) {{\n{}\n}}", bomb.body);
    rig.run_source(&module, "{}", limits(bomb), rig.reads()).await
}

async fn class(class: Class) {
    let rig = Rig::start(WORKER).await;
    rig.still_works().await;
    let (mut next, mut faults) = (Vec::new(), Vec::new());
    for bomb in BOMBS.iter().filter(|bomb| bomb.class == class) {
        let mut fault = None;
        // The wall clock is the machine's: late three times in a row is ours.
        for _ in 0..3 {
            let report = explode(&rig, bomb).await;
            let began = Instant::now();
            rig.still_works().await;
            next.push(began.elapsed());
            let late = Duration::from_micros(report.times.run_us) > limits(bomb).wall + SLACK;
            fault = judge(bomb, &report).or(late.then(|| format!("{} was late", bomb.name)));
            if !late {
                break;
            }
        }
        faults.extend(fault);
    }
    next.sort_unstable();
    println!("{class:?}: the next call took {:?} in the middle", next[next.len() / 2]);
    rig.sandbox.shutdown().await;
    assert_eq!(children(), 0, "a process is left");
    assert!(faults.is_empty(), "{faults:#?}");
}

/// What is wrong with how a bomb ended, the clock on the wall apart.
fn judge(bomb: &Bomb, report: &RunReport) -> Option<String> {
    let Bomb { class, name, ends, .. } = bomb;
    let letter = letter(&report.outcome);
    let times = &report.times;
    let (cpu, run) = (times.cpu_us / 1_000, times.run_us / 1_000);
    let rss = times.max_rss / 1024 / 1024;
    println!("{class:?} {name:24} {letter} cpu {cpu:4} ms run {run:4} ms {rss:4} MiB");
    if !ends.contains(letter) {
        let text = format!("{:?}", report.outcome);
        return Some(format!("{name} ended as {letter}: {}", &text[..text.len().min(300)]));
    }
    if Duration::from_micros(times.cpu_us) > limits(bomb).cpu + SLACK {
        return Some(format!("{name} used {cpu} ms of CPU"));
    }
    let cap = limits(bomb).data_bytes as u64 + BESIDES;
    (times.max_rss > cap).then(|| format!("{name} had {rss} MiB"))
}

/// Processes this one has started and not reaped.
fn children() -> usize {
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.map(|task| of(task).split_whitespace().count()).sum()
}

macro_rules! classes {
    ($($test:ident $class:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            class(Class::$class).await;
        })*
    };
}

classes! {
    bombs_that_loop Loops;
    bombs_of_built_ins BuiltIns;
    bombs_of_numbers Numbers;
    bombs_of_patterns Patterns;
    bombs_of_text Text;
    bombs_of_buffers Buffers;
    bombs_of_floods Floods;
    bombs_of_depth Depth;
    bombs_of_hooks Hooks;
}

#[test]
fn there_are_at_least_eighty_and_no_two_have_one_name() {
    let mut names: Vec<&str> = BOMBS.iter().map(|bomb| bomb.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BOMBS.len());
    assert!(names.len() >= 80, "{}", names.len());
}
