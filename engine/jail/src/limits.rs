//! Every limit of the jail, with its unit and its reason. What a run may send
//! or return is in [`crate::frames`] and in the sandboxes.

use std::time::Duration;

/// What one worker may use. Enforced by the kernel and by the parent, never by
/// the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// CPU time from ready on. The parent kills at it; RLIMIT_CPU stands behind.
    pub cpu: Duration,
    /// RLIMIT_DATA, bytes: the hard memory limit. What the zygote had mapped
    /// when it was forked counts.
    pub data_bytes: u64,
    /// RLIMIT_STACK of the one thread, bytes.
    pub stack_bytes: u64,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(5),
            data_bytes: 256 * 1024 * 1024,
            stack_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Descriptors a worker may have open: job, fetch, the null device thrice and
/// what its runtime opens (epoll twice, eventfd, a signal pipe).
pub(crate) const WORKER_DESCRIPTORS: u64 = 32;
/// Runs a zygote serves before a fresh one takes over: its children share
/// address layout and hash seed.
pub(crate) const ZYGOTE_RUNS: u64 = 2_000;
/// Age at which a zygote is replaced, for the same reason.
pub(crate) const ZYGOTE_AGE: Duration = Duration::from_secs(30 * 60);
/// A zygote must say hello within this; V8 boots in 25 ms on an idle machine.
pub(crate) const BOOT_DEADLINE: Duration = Duration::from_secs(20);
/// A zygote must answer a request for a worker within this.
pub(crate) const FORK_DEADLINE: Duration = Duration::from_secs(5);
/// A worker must be locked and ready within this, its own boot included.
pub(crate) const READY_DEADLINE: Duration = Duration::from_secs(20);
/// A worker killed by nobody known waits so long for the news that its zygote,
/// and with it its pid namespace, has ended.
pub(crate) const ZYGOTE_NEWS: Duration = Duration::from_millis(50);
/// A zygote whose control socket is closed must be gone within this.
pub(crate) const EXIT_DEADLINE: Duration = Duration::from_secs(2);
/// Pause between two looks at what a dying zygote has left.
pub(crate) const REAP_LOOK: Duration = Duration::from_millis(5);
/// The parent's shortest pause between two looks at a worker's CPU clock. A
/// worker has one thread, so it cannot pass its limit by more than this.
pub(crate) const CPU_LOOK: Duration = Duration::from_millis(10);
/// RLIMIT_CPU beyond the limit, whole seconds; it acts only when the parent
/// does not (it counts in seconds and includes the boot).
pub(crate) const CPU_BACKSTOP_SECONDS: u64 = 2;
/// Versions remembered as having crashed a worker; beyond it the oldest goes.
pub(crate) const SUSPECTS: usize = 1_024;
/// Requests for workers waiting at one zygote.
pub(crate) const TAKE_QUEUE: usize = 256;
/// Largest hello of a zygote, bytes.
pub(crate) const HELLO_MAX: usize = 16 * 1024;
/// Largest payload of a frame a worker may send before its driver sets its own.
pub(crate) const READY_PAYLOAD: usize = 4 * 1024;
