//! The life of workers: limits, orphans (row 52), pools, leaks, shutdown.

use crate::support::{PATHS, config, jail, take, take_with, within};
use cambium_jail::{Jail, JailConfig, Origin, Verdict, WorkerLimits};
use std::io::{BufRead, BufReader};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

#[tokio::test]
async fn a_spinning_worker_dies_within_its_limit_and_a_quarter_second() {
    for path in PATHS {
        let jail = jail(path);
        let limits = WorkerLimits { cpu: Duration::from_millis(300), ..WorkerLimits::default() };
        let mut worker = take_with(&jail, "version", limits).await;
        worker.tell("spin").await;
        let exit = worker.end().await;
        assert_eq!(exit.verdict(), Verdict::CpuLimit, "{exit:?}");
        // CPU time, not the clock: other tests share the machine.
        assert!(exit.cpu >= limits.cpu, "{exit:?}");
        assert!(exit.cpu < limits.cpu + Duration::from_millis(250), "{exit:?}");
        assert!(take(&jail, "version").await.ask("getpid").await.is_ok());
        jail.shutdown().await;
    }
}

#[tokio::test]
async fn a_killed_worker_is_reaped_at_once_and_says_so() {
    let jail = jail(Origin::Zygote);
    let mut worker = take(&jail, "version").await;
    worker.tell("spin").await;
    worker.leash.kill();
    assert_eq!(worker.end().await.verdict(), Verdict::Killed);
    let mut worker = take(&jail, "version").await;
    assert_eq!(worker.ask("exit 7").await.unwrap_err().verdict(), Verdict::Exited(7));
    jail.shutdown().await;
}

#[tokio::test]
async fn s52_workers_die_with_their_engine() {
    let mut engine =
        Command::new(env!("CARGO_BIN_EXE_stub")).stdout(Stdio::piped()).spawn().unwrap();
    let mut watched = Vec::new();
    for line in BufReader::new(engine.stdout.take().unwrap()).lines() {
        match line.unwrap().parse::<u32>() {
            Ok(pid) => watched.push(watch(pid)),
            Err(_) => break,
        }
    }
    assert_eq!(watched.len(), 3);
    let children = children_of(engine.id());
    assert_eq!(children.len(), 5, "three workers, a zygote and the exec path's first process");
    let grandchildren: Vec<u32> = children.iter().flat_map(|&pid| children_of(pid)).collect();
    assert_eq!(grandchildren.len(), 2, "the first processes of both pid namespaces");
    watched.extend(children.iter().chain(&grandchildren).map(|&pid| watch(pid)));
    engine.kill().unwrap();
    engine.wait().unwrap();
    for pidfd in &watched {
        let _ended = within(pidfd.readable()).await.unwrap();
    }
}

#[allow(unsafe_code)]
fn watch(pid: u32) -> AsyncFd<OwnedFd> {
    // SAFETY: numbers; a new descriptor that is owned once and stays open while
    // it is watched.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        assert!(fd >= 0, "process {pid} is there");
        AsyncFd::register(OwnedFd::from_raw_fd(fd.try_into().unwrap())).unwrap()
    }
}

/// What is open, without the directory that is read to learn it.
fn open_descriptors() -> Vec<String> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let mut open: Vec<String> = entries
        .filter_map(|path| Some(path.read_link().ok()?.display().to_string()))
        .filter(|target| !target.ends_with("/fd"))
        .collect();
    open.sort();
    open
}

pub(crate) fn children() -> usize {
    children_of(std::process::id()).len()
}

pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        // A thread may end meanwhile; its children are another's then.
        let path = task.unwrap().path().join("children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        found.extend(children.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    found
}

#[tokio::test]
async fn runs_leave_no_zombie_and_no_descriptor() {
    let runs = std::env::var("CAMBIUM_RUNS").map_or(200, |text| text.parse().unwrap());
    let before = open_descriptors();
    let jail = Jail::start(JailConfig { pool: 2, ..config(Origin::Zygote) }).unwrap();
    for run in 0..runs {
        let mut worker = take(&jail, "version").await;
        match run % 4 {
            0 => assert!(worker.ask("getpid").await.is_ok()),
            1 => assert!(worker.ask("exit 0").await.is_err()),
            2 => worker.leash.kill(),
            _ => {}
        }
    }
    assert!(children() < 10, "{} children", children());
    jail.shutdown().await;
    assert_eq!(children(), 0);
    drop(jail);
    assert_eq!(open_descriptors(), before);
}

/// Zygotes of this process: its children that are in its own pid namespace.
pub(crate) fn zygotes() -> Vec<u32> {
    let own_namespace = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| numbers.split_whitespace().count() == 1)
    };
    children_of(std::process::id()).into_iter().filter(own_namespace).collect()
}

#[tokio::test]
async fn d07_a_fresh_zygote_takes_over_after_two_thousand_runs() {
    let jail = jail(Origin::Zygote);
    let mut kept = take(&jail, "version").await;
    let first = zygotes();
    assert_eq!(first.len(), 1);
    for _ in 0..2_050 {
        let worker = take(&jail, "version").await;
        assert_eq!(worker.leash.origin(), Origin::Zygote);
    }
    let both = zygotes();
    assert_eq!(both.len(), 2, "the old one waits for its last child");
    assert!(kept.ask("getpid").await.is_ok(), "which is still served");
    drop(kept);
    within(async {
        while zygotes().contains(&first[0]) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(zygotes().len(), 1);
    jail.shutdown().await;
}

#[tokio::test]
async fn many_takes_at_once_of_many_agents_get_one_worker_each() {
    let jail =
        Jail::start(JailConfig { pool: 1, zygotes_max: 2, ..config(Origin::Zygote) }).unwrap();
    let limits = WorkerLimits::default();
    let agents = ["a", "b", "c"];
    let takes = (0..12).map(|n| jail.take(agents[n % 3], "version", limits));
    let mut pids: Vec<u32> = futures(takes).await;
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 12);
    jail.shutdown().await;
    assert_eq!(children(), 0);
}

async fn futures<F>(takes: impl Iterator<Item = F>) -> Vec<u32>
where
    F: Future<Output = Result<cambium_jail::Worker, cambium_jail::JailError>>,
{
    let mut takes: Vec<_> = takes.map(Box::pin).collect();
    let mut workers = Vec::new();
    within(std::future::poll_fn(|context| {
        takes.retain_mut(|take| match take.as_mut().poll(context) {
            std::task::Poll::Ready(worker) => {
                workers.push(worker.unwrap());
                false
            }
            std::task::Poll::Pending => true,
        });
        if takes.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
    .await;
    workers.iter().map(|worker| worker.leash().pid()).collect()
}

#[tokio::test]
async fn shutdown_kills_what_runs_and_refuses_what_comes() {
    let jail = jail(Origin::Zygote);
    let mut worker = take(&jail, "version").await;
    worker.tell("spin").await;
    within(jail.shutdown()).await;
    assert_eq!(worker.end().await.verdict(), Verdict::Killed);
    let refused = jail.take("agent", "version", WorkerLimits::default()).await.unwrap_err();
    assert_eq!(refused.code(), "jail_closed");
}

#[tokio::test]
async fn a_guest_that_does_not_boot_says_why() {
    for path in PATHS {
        let payload = std::sync::Arc::from(*b"refuse to boot");
        let jail = Jail::start(JailConfig { payload, ..config(path) }).unwrap();
        let error = jail.take("agent", "version", WorkerLimits::default()).await.unwrap_err();
        assert!(error.to_string().contains("told to refuse"), "{error}");
        jail.shutdown().await;
    }
    let exe = Some("/nonexistent".into());
    let jail = Jail::start(JailConfig { exe, ..config(Origin::Zygote) }).unwrap();
    let error = jail.take("agent", "version", WorkerLimits::default()).await.unwrap_err();
    assert_eq!(error.code(), "jail_launch");
    jail.shutdown().await;
}

#[tokio::test]
#[allow(clippy::print_stdout)]
async fn memory_of_a_trivial_guest() {
    let jail = jail(Origin::Zygote);
    let mut workers = Vec::new();
    let mut total = 0;
    for _ in 0..20 {
        workers.push(take(&jail, "version").await);
    }
    for worker in &workers {
        let rollup = format!("/proc/{}/smaps_rollup", worker.leash.pid());
        let rollup = std::fs::read_to_string(rollup).unwrap();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        total += pss.split_whitespace().next().unwrap().parse::<usize>().unwrap();
    }
    println!("20 workers: {} KiB proportional set size each", total / 20);
    jail.shutdown().await;
}

/// Prints; asserts nothing about the clock, which belongs to a shared machine.
#[tokio::test]
#[allow(clippy::print_stdout)]
async fn times_of_a_trivial_guest() {
    for (name, path, pool, runs) in [
        ("fork to ready", Origin::Zygote, 0, 200),
        ("take from the pool", Origin::Zygote, 2, 200),
        ("exec to ready", Origin::Exec, 0, 30),
    ] {
        let jail = Jail::start(JailConfig { pool, ..config(path) }).unwrap();
        drop(take(&jail, "version").await);
        let mut taken = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            let mut worker = take(&jail, "version").await;
            taken.push(start.elapsed().as_micros());
            worker.ask("getpid").await.unwrap();
            worker.leash.kill();
            worker.end().await;
        }
        taken.sort_unstable();
        println!("{name}: p50 {} us, p99 {} us", taken[runs / 2], taken[runs * 99 / 100]);
        jail.shutdown().await;
    }
}
