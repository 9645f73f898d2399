//! How a worker ended, by the evidence the parent has: exit code or signal, who
//! killed it, what it used. What a run's outcome is called is the sandbox's
//! business.

use crate::limits::WorkerLimits;
use std::time::Duration;

/// Why the parent killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// CPU time ran out.
    Cpu,
    /// [`crate::Leash::kill`], or the worker was dropped.
    Caller,
    /// The jail is shutting down.
    Shutdown,
    /// The kernel, because its zygote ended and the pid namespace with it.
    Zygote,
}

/// The end of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when it was ended by one.
    pub signal: Option<i32>,
    /// Why the parent killed it, if it did.
    pub killed: Option<Killed>,
    /// CPU time from the fork on, user and system.
    pub cpu: Duration,
    /// Peak resident set, bytes.
    pub max_rss: u64,
    /// What it was allowed.
    pub limits: WorkerLimits,
}

/// What an [`Exit`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It exited by itself with this code.
    Exited(i32),
    /// The caller or a shutdown killed it, or its zygote ended.
    Killed,
    /// CPU time ran out.
    CpuLimit,
    /// It died because memory ran out.
    MemoryLimit,
    /// It died by a signal nobody of ours sent; SIGSYS is an escape attempt.
    Crashed(i32),
}

impl Exit {
    /// Reads the evidence.
    pub fn verdict(&self) -> Verdict {
        if let Some(code) = self.code {
            return Verdict::Exited(code);
        }
        let signal = self.signal.unwrap_or(libc::SIGKILL);
        let near_limit = self.max_rss >= self.limits.data_bytes / 2;
        match (signal, self.killed) {
            (libc::SIGXCPU, _) | (libc::SIGKILL, Some(Killed::Cpu)) => Verdict::CpuLimit,
            (libc::SIGKILL, Some(Killed::Caller | Killed::Shutdown | Killed::Zygote)) => {
                Verdict::Killed
            }
            // The kernel's own: RLIMIT_CPU, or memory of the whole machine.
            (libc::SIGKILL, None) if self.cpu >= self.limits.cpu => Verdict::CpuLimit,
            (libc::SIGKILL, None) => Verdict::MemoryLimit,
            // An allocation that failed aborts or traps; nothing else tells it apart.
            (libc::SIGABRT | libc::SIGTRAP | libc::SIGILL, _) if near_limit => Verdict::MemoryLimit,
            (other, _) => Verdict::Crashed(other),
        }
    }

    /// A death that may be a probe of the zygote's address layout, or a fault
    /// of forking: the zygote goes and the version moves to the exec path.
    pub(crate) fn is_suspicious(&self) -> bool {
        let signals = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
        self.signal.is_some_and(|signal| signals.contains(&signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_verdict() {
        let limits = WorkerLimits::default();
        let near = limits.data_bytes / 2;
        let second = Duration::from_secs(1);
        for (code, signal, killed, cpu, max_rss, expected) in [
            (Some(3), None, None, second, 0, Verdict::Exited(3)),
            (Some(0), None, Some(Killed::Caller), second, 0, Verdict::Exited(0)),
            (None, Some(9), Some(Killed::Cpu), second, 0, Verdict::CpuLimit),
            (None, Some(9), Some(Killed::Caller), second, 0, Verdict::Killed),
            (None, Some(9), Some(Killed::Shutdown), second, 0, Verdict::Killed),
            (None, Some(9), Some(Killed::Zygote), second, 0, Verdict::Killed),
            (None, Some(9), None, limits.cpu, 0, Verdict::CpuLimit),
            (None, Some(9), None, second, 0, Verdict::MemoryLimit),
            (None, Some(libc::SIGXCPU), None, second, 0, Verdict::CpuLimit),
            (None, Some(libc::SIGABRT), None, second, near, Verdict::MemoryLimit),
            (None, Some(libc::SIGABRT), None, second, 0, Verdict::Crashed(libc::SIGABRT)),
            (
                None,
                Some(libc::SIGSYS),
                Some(Killed::Caller),
                second,
                0,
                Verdict::Crashed(libc::SIGSYS),
            ),
            (None, Some(libc::SIGSEGV), None, second, near, Verdict::Crashed(libc::SIGSEGV)),
        ] {
            let exit = Exit { code, signal, killed, cpu, max_rss, limits };
            assert_eq!(exit.verdict(), expected, "{exit:?}");
        }
    }
}
