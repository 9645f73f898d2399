//! Zygotes that grow old, are replaced under load, or are killed at any moment:
//! every taker gets a worker, only what was in flight is lost, nothing is left.

use crate::life::{children, children_of, zygotes};
use crate::support::{config, take, within};
use cambium_jail::{Jail, JailConfig, Killed, Origin, Verdict, WorkerLimits};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// More than any of these takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

#[allow(unsafe_code)]
fn kill(pid: u32) {
    // SAFETY: a number; the process is an unreaped child of this one or gone.
    unsafe { libc::kill(pid.try_into().unwrap(), libc::SIGKILL) };
}

#[tokio::test]
async fn d07_a_zygote_is_replaced_by_age_and_waits_for_its_last_child() {
    let age = Duration::from_millis(50);
    let jail = Jail::start(JailConfig { zygote_age: age, ..config(Origin::Zygote) }).unwrap();
    let mut kept = take(&jail, "version").await;
    let first = zygotes()[0];
    // Each take looks; the successor serves once it is up.
    within(async {
        while zygotes().len() < 2 {
            take(&jail, "version").await;
        }
    })
    .await;
    assert!(kept.ask("getpid").await.is_ok(), "the old one's child is still served");
    assert!(zygotes().contains(&first), "and the old one waits for it");
    drop(kept);
    within(async {
        while zygotes().contains(&first) {
            take(&jail, "version").await;
        }
    })
    .await;
    jail.shutdown().await;
    assert_eq!(children(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d07_rotation_under_load_loses_no_call() {
    let jail = JailConfig { zygote_runs: 25, pool: 2, ..config(Origin::Zygote) };
    let jail = Arc::new(Jail::start(jail).unwrap());
    let seen = Arc::new(std::sync::Mutex::new(HashSet::new()));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (jail, seen) = (jail.clone(), seen.clone());
            tokio::spawn(async move {
                for _ in 0..60 {
                    let mut worker = take(&jail, "version").await;
                    assert_eq!(worker.leash.origin(), Origin::Zygote);
                    assert!(worker.ask("getpid").await.is_ok());
                    seen.lock().unwrap().extend(zygotes());
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(LONG, task).await.unwrap().unwrap();
    }
    let rotated = seen.lock().unwrap().len();
    assert!(rotated >= 5, "{rotated} zygotes served 480 runs");
    jail.shutdown().await;
    assert_eq!(children(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zygote_killed_at_any_moment_costs_only_what_was_in_flight() {
    let jail = Arc::new(Jail::start(JailConfig { pool: 1, ..config(Origin::Zygote) }).unwrap());
    drop(take(&jail, "version").await);
    let (told, tell) = std::sync::mpsc::channel::<()>();
    let killer = tokio::task::spawn_blocking(move || {
        // One zygote a word, whatever it is in the middle of.
        let mut killed = HashSet::new();
        while tell.recv().is_ok() {
            if let Some(pid) = zygotes().into_iter().find(|pid| !killed.contains(pid)) {
                killed.insert(pid);
                kill(pid);
            }
        }
        killed.len()
    });
    let (mut lost, mut answered) = (0, 0);
    for _ in 0..60 {
        told.send(()).unwrap();
        // Never an error: there is another zygote, or the exec path.
        let mut worker = take(&jail, "version").await;
        match worker.try_ask("getpid").await {
            Ok(_) => answered += 1,
            Err(exit) => {
                lost += 1;
                assert_eq!(exit.verdict(), Verdict::Killed, "{exit:?}");
                assert_eq!(exit.killed, Some(Killed::Zygote), "{exit:?}");
            }
        }
    }
    drop(told);
    let killed = killer.await.unwrap();
    assert!(killed >= 2 && answered >= 1, "{killed} killed, {answered} answered, {lost} lost");
    let mut fine = take(&jail, "version").await;
    assert!(fine.ask("getpid").await.is_ok());
    drop(fine);
    jail.shutdown().await;
    assert_eq!(children(), 0);
}

#[tokio::test]
async fn a_worker_that_died_in_the_pool_is_never_handed_out() {
    for pool in [1, 2, 4] {
        let jail = Jail::start(JailConfig { pool, ..config(Origin::Zygote) }).unwrap();
        jail.warm("agent");
        let ready = within(async {
            loop {
                let zygotes = zygotes();
                let ready: Vec<u32> = children_of(std::process::id())
                    .into_iter()
                    .filter(|pid| !zygotes.contains(pid))
                    .collect();
                if zygotes.len() == 1 && ready.len() == pool {
                    return ready;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        ready.into_iter().for_each(kill);
        within(async {
            while children() != 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        for _ in 0..2 * pool {
            assert!(take(&jail, "version").await.ask("getpid").await.is_ok());
        }
        jail.shutdown().await;
        assert_eq!(children(), 0);
    }
}

#[tokio::test]
async fn the_pool_serves_its_own_limits_only_and_fills_up_again() {
    let jail = Jail::start(JailConfig { pool: 3, ..config(Origin::Zygote) }).unwrap();
    jail.warm("agent");
    let small = WorkerLimits { data_bytes: 64 << 20, ..WorkerLimits::default() };
    for _ in 0..20 {
        let mut own = take(&jail, "version").await;
        assert_eq!(own.ask(&format!("alloc {}", 100 << 20)).await.unwrap(), "got 104857600");
        let mut other = crate::support::take_with(&jail, "version", small).await;
        assert_eq!(other.ask(&format!("alloc {}", 100 << 20)).await.unwrap(), "refused");
    }
    within(async {
        while children() != 1 + 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    jail.shutdown().await;
    assert_eq!(children(), 0);
}
