//! What a jailed process is, read from the outside: identity, capabilities,
//! descriptors, memory maps, namespaces. Decision 8 and row 50. Needs root.

use crate::support::{PATHS, jail, take, take_with, within};
use cambium_jail::{Origin, WorkerLimits, doctor};
use std::fs;

fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    line.trim().to_owned()
}

fn descriptors(pid: u32) -> Vec<(u32, String)> {
    let mut found: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("reading another's descriptors needs root")
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let number = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            // One that closed between the listing and now is not there any more.
            let target = fs::read_link(&path).ok()?;
            Some((number, target.to_str().unwrap().to_owned()))
        })
        .collect();
    found.sort();
    found
}

/// Children of this process that run as the stub's zygote.
fn zygotes() -> Vec<u32> {
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let children = task.unwrap().path().join("children");
        for pid in fs::read_to_string(children).unwrap().split_whitespace() {
            found.push(pid.parse().unwrap());
        }
    }
    found
}

fn assert_powerless(pid: u32) {
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status(pid, set), "0000000000000000", "{set}");
    }
    for ids in ["Uid", "Gid"] {
        assert!(!status(pid, ids).split_whitespace().any(|id| id == "0"), "{ids}");
    }
    assert_eq!(status(pid, "Groups"), "");
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    assert_eq!(status(pid, "Threads"), "1");
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"", "environment");
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim(), "1000");
    for namespace in ["user", "net", "mnt", "ipc", "uts", "cgroup"] {
        let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{namespace}")).unwrap();
        assert_ne!(of(&pid.to_string()), of("self"), "{namespace} namespace");
    }
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines() {
        let rights = line.split_whitespace().nth(1).unwrap();
        assert!(!(rights.contains('w') && rights.contains('s')), "shared and writable: {line}");
        assert!(!(rights.contains('w') && rights.contains('x')), "writable and executable: {line}");
    }
    let root = fs::read_dir(format!("/proc/{pid}/root/")).unwrap().count();
    assert_eq!(root, 0, "the file tree is empty");
    // Owned by root although its user is not: it is not dumpable.
    let owner =
        std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{pid}/fd")).unwrap());
    assert_eq!(owner, 0, "dumpable");
}

#[tokio::test]
async fn d08_s50_a_worker_has_no_power_and_only_its_descriptors() {
    for path in PATHS {
        let jail = jail(path);
        let mut worker = take(&jail, "version").await;
        assert_eq!(worker.ask("payload").await.unwrap(), "the payload");
        let pid = worker.leash.pid();
        assert_powerless(pid);
        assert_eq!(status(pid, "Seccomp"), "2");
        assert_eq!(status(pid, "Seccomp_filters"), "3");
        assert_ne!(status(pid, "NSpid").split_whitespace().last().unwrap(), "1", "never pid 1");
        assert_eq!(status(pid, "NSpid").split_whitespace().count(), 2, "a pid namespace");
        for (number, target) in descriptors(pid) {
            let fits = match number {
                0..=2 => target == "/dev/null",
                3 | 4 => target.starts_with("socket:"),
                // What its runtime made after the fork.
                _ => target.starts_with("anon_inode:[event") || target.starts_with("socket:"),
            };
            assert!(fits, "descriptor {number} is {target} on {path:?}");
        }
        drop(worker);
        jail.shutdown().await;
    }
}

#[tokio::test]
async fn d08_a_zygote_has_no_power_and_only_its_descriptors() {
    let jail = jail(Origin::Zygote);
    let worker = take(&jail, "version").await;
    let zygote: Vec<u32> = zygotes().into_iter().filter(|&pid| pid != worker.leash.pid()).collect();
    assert_eq!(zygote.len(), 1);
    assert_powerless(zygote[0]);
    // The null device thrice and in the payload's place, control, the init's
    // descriptor and the socket that holds it. The descriptor of the worker just
    // made closes at any moment now.
    let found = within(async {
        loop {
            let found = descriptors(zygote[0]);
            if found.len() == 7 {
                return found;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for (number, target) in &found {
        let fits = match number {
            0..=2 | 4 => target == "/dev/null",
            3 => target.starts_with("socket:"),
            _ => target == "anon_inode:[pidfd]" || target.starts_with("socket:"),
        };
        assert!(fits, "descriptor {number} is {target}");
    }
    drop(worker);
    jail.shutdown().await;
}

#[tokio::test]
async fn d09_siblings_share_no_random_number() {
    let jail = jail(Origin::Zygote);
    let (mut one, mut two) = (take(&jail, "version").await, take(&jail, "version").await);
    let (one, two) = (one.ask("random").await.unwrap(), two.ask("random").await.unwrap());
    for (left, right) in one.rsplit_once(' ').into_iter().zip(two.rsplit_once(' ')) {
        assert_ne!(left.0, right.0, "getrandom");
        assert_ne!(left.1, right.1, "hash seed");
    }
    jail.shutdown().await;
}

#[tokio::test]
async fn data_is_a_hard_limit_of_memory() {
    for path in PATHS {
        let jail = jail(path);
        let limits = WorkerLimits { data_bytes: 64 << 20, ..WorkerLimits::default() };
        let mut worker = take_with(&jail, "version", limits).await;
        assert_eq!(worker.ask(&format!("alloc {}", 16 << 20)).await.unwrap(), "got 16777216");
        assert_eq!(worker.ask(&format!("alloc {}", 65 << 20)).await.unwrap(), "refused");
        jail.shutdown().await;
    }
}

pub(crate) const EVERY_LAYER: [&str; 15] = [
    "rlimits",
    "ordinary_user",
    "user_namespace",
    "network_namespace",
    "mount_namespace",
    "ipc_namespace",
    "uts_namespace",
    "cgroup_namespace",
    "no_new_privs",
    "seccomp",
    "empty_root",
    "landlock",
    "pid_namespace",
    "capabilities",
    "locked_worker",
];

#[tokio::test]
async fn every_layer_holds_here_and_doctor_says_so() {
    let reports = doctor(crate::support::config(Origin::Zygote)).await.unwrap();
    let names: Vec<&str> = reports.iter().map(|report| report.layer.as_str()).collect();
    assert_eq!(names, EVERY_LAYER);
    for report in &reports {
        assert!(report.holds, "{report:?}");
        assert!(report.next.is_empty(), "{report:?}");
    }
}
