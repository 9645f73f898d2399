//! A child process as the engine holds it: by its descriptor. Signals and
//! reaping go through the descriptor only, so a reused pid is never hit and
//! nobody else's child is ever waited for.

use crate::sys::{self, Reaped};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// One child, not yet reaped.
#[derive(Debug)]
pub(crate) struct Process {
    pidfd: AsyncFd<OwnedFd>,
    pid: u32,
}

impl Process {
    /// Takes a descriptor over, if it is of a child of ours.
    pub(crate) fn new(pidfd: OwnedFd) -> Result<Self> {
        sys::is_child(pidfd.as_fd())?;
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
        let pid = info
            .lines()
            .find_map(|line| line.strip_prefix("Pid:"))
            .and_then(|pid| pid.trim().parse().ok())
            .ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
        Ok(Self { pidfd: sys::watch(pidfd)?, pid })
    }

    /// Its pid in this namespace; only good until it is reaped.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills it. A process that has ended is left as it is.
    pub(crate) fn kill(&self) {
        let _ = sys::pidfd_signal(self.pidfd.get_ref().as_fd(), libc::SIGKILL);
    }

    /// CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        sys::cpu_time(self.pid).unwrap_or_default()
    }

    /// It has ended by now.
    pub(crate) fn has_ended(&self) -> bool {
        sys::has_ended(self.pidfd.get_ref().as_fd())
    }

    /// Resolves when it has ended; does not reap.
    pub(crate) async fn ended(&self) -> Result<()> {
        self.pidfd.readable().await.map(|mut ready| ready.retain_ready())
    }

    /// Waits for its end and reaps it.
    pub(crate) async fn reap(&self) -> Result<Reaped> {
        loop {
            let mut ready = self.pidfd.readable().await?;
            match sys::reap(self.pidfd.get_ref().as_fd())? {
                Some(reaped) => return Ok(reaped),
                None => ready.clear_ready(),
            }
        }
    }
}
