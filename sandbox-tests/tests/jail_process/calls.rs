//! Rows 49 to 51: system calls of an owned worker. Each is refused with EPERM or
//! ends the worker as SIGSYS, on both paths, and the next worker is fine.

use crate::support::{PATHS, jail, take};
use cambium_jail::{Origin, Verdict};

/// Refused with an error the caller can read.
const REFUSED: [&str; 10] = [
    "openat",
    "openat_proc_mem",
    "openat_proc_fd",
    "readlinkat",
    "statx",
    "ioctl",
    "fcntl_dup",
    "mmap_exec",
    "mprotect_exec",
    "prlimit_parent",
];

/// End the worker.
const KILLED: [&str; 47] = [
    "unlinkat",
    "memfd_create",
    "socket",
    "socketpair",
    "connect",
    "bind",
    "sendmsg",
    "recvmsg",
    "sendto_address",
    "sendto_oob",
    "recvfrom_oob",
    "recvfrom_address",
    "execve",
    "execveat",
    "ptrace_traceme",
    "process_vm_readv",
    "io_uring_setup",
    "bpf",
    "userfaultfd",
    "mmap_shared",
    "mmap_file",
    "mmap_growsdown",
    "pkey_mprotect",
    "madvise_remove",
    "madvise_poison",
    "futex_shared",
    "futex_requeue_pi",
    "kill_parent",
    "kill_all",
    "tgkill_other",
    "tkill",
    "pidfd_open",
    "prctl_dumpable",
    "prctl_pdeathsig",
    "seccomp",
    "clone_process",
    "clone_thread",
    "clone3",
    "unshare_user",
    "setns",
    "setuid",
    "capset",
    "mount",
    "chroot",
    "setrlimit",
    "keyctl",
    "clock_of_parent",
];

/// As above, where the architecture has them.
#[cfg(target_arch = "x86_64")]
const KILLED_HERE: [&str; 5] = ["fork", "x32_getpid", "perf_event_open", "shmget", "reboot"];
#[cfg(not(target_arch = "x86_64"))]
const KILLED_HERE: [&str; 3] = ["perf_event_open", "shmget", "reboot"];

#[tokio::test]
async fn s49_s50_file_calls_and_executable_memory_answer_eperm() {
    for path in PATHS {
        let jail = jail(path);
        let mut worker = take(&jail, "version").await;
        assert_eq!(worker.leash.origin(), path);
        for call in REFUSED {
            assert_eq!(worker.ask(call).await.unwrap(), "errno 1", "{call} on {path:?}");
        }
        assert!(worker.ask("getpid").await.unwrap().starts_with("got "), "still alive");
        drop(worker);
        jail.shutdown().await;
    }
}

#[tokio::test]
async fn s49_s50_s51_every_other_call_ends_the_worker_as_an_escape_attempt() {
    for path in PATHS {
        let jail = jail(path);
        for call in KILLED.iter().chain(&KILLED_HERE) {
            let mut worker = take(&jail, &format!("{call}{path:?}")).await;
            assert_eq!(worker.leash.origin(), path, "{call}");
            let exit = worker.ask(call).await.expect_err(call);
            assert_eq!(exit.verdict(), Verdict::Crashed(libc::SIGSYS), "{call} on {path:?}");
        }
        let mut next = take(&jail, "fine").await;
        assert!(next.ask("getpid").await.is_ok(), "the next worker is fine");
        drop(next);
        jail.shutdown().await;
    }
}

#[tokio::test]
async fn d07_a_crash_retires_the_zygote_and_moves_the_version_to_the_exec_path() {
    let jail = jail(Origin::Zygote);
    for crash in ["segfault", "socket"] {
        let mut worker = take(&jail, crash).await;
        assert_eq!(worker.leash.origin(), Origin::Zygote);
        worker.ask(crash).await.unwrap_err();
        let same = take(&jail, crash).await;
        assert_eq!(same.leash.origin(), Origin::Exec, "{crash}");
        let other = take(&jail, "other").await;
        assert_eq!(other.leash.origin(), Origin::Zygote, "{crash}");
    }
    let mut worker = take(&jail, "abort").await;
    assert_eq!(worker.ask("abort").await.unwrap_err().verdict(), Verdict::Crashed(libc::SIGABRT));
    jail.shutdown().await;
}
