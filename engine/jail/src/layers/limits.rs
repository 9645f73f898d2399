//! Resource limits of a zygote and, tighter, of a worker; and the hint that the
//! kernel should take these processes first when memory runs out.

use crate::limits::{CPU_BACKSTOP_SECONDS, WORKER_DESCRIPTORS, WorkerLimits};
use crate::sys;
use std::io::Result;

/// Asks the kernel to take this process and its children first when memory runs
/// out.
pub(crate) fn taken_first() {
    // Raising one's own score is always allowed; without /proc it is only a hint lost.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// What holds for a zygote and all its children.
pub(crate) fn zygote_limits() -> Result<()> {
    taken_first();
    sys::rlimit(libc::RLIMIT_CORE, 0)?;
    sys::rlimit(libc::RLIMIT_FSIZE, 0)?;
    sys::rlimit(libc::RLIMIT_MEMLOCK, 0)?;
    sys::rlimit(libc::RLIMIT_MSGQUEUE, 0)?;
    sys::rlimit(libc::RLIMIT_NOFILE, WORKER_DESCRIPTORS)
}

/// What holds for one worker. RLIMIT_AS is left out: V8 reserves far more
/// address space than it uses.
pub(crate) fn worker_limits(limits: &WorkerLimits) -> Result<()> {
    let cpu = limits.cpu.as_secs() + 1 + CPU_BACKSTOP_SECONDS;
    sys::rlimit(libc::RLIMIT_DATA, limits.data_bytes)?;
    sys::rlimit(libc::RLIMIT_CPU, cpu)?;
    sys::soft_rlimit(libc::RLIMIT_STACK, limits.stack_bytes)?;
    sys::rlimit(libc::RLIMIT_NPROC, 0)
}
