//! The launcher: the one thread that starts processes. The kernel kills a jailed
//! process when the *thread* that made it dies, so this thread lives as long as
//! the jail. A new process gets an empty environment, the null device thrice,
//! its control socket and the payload, and nothing else.
#![allow(unsafe_code)]

use crate::sys;
use crate::zygote::{FIRST, SECOND};
use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// One process to start.
pub(crate) struct Launch {
    pub(crate) exe: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) control: OwnedFd,
    pub(crate) payload: OwnedFd,
    pub(crate) show_stderr: bool,
    pub(crate) reply: oneshot::Sender<Result<OwnedFd>>,
}

/// Starts the launcher; it ends when the last sender is gone.
pub(crate) fn launcher() -> Result<(mpsc::Sender<Launch>, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel::<Launch>();
    let thread = std::thread::Builder::new().name("jail-launcher".into()).spawn(move || {
        while let Ok(launch) = receiver.recv() {
            let started = start(&launch);
            // Nobody waits any more: the closed control socket ends the process.
            let _ = launch.reply.send(started);
        }
    })?;
    Ok((sender, thread))
}

fn start(launch: &Launch) -> Result<OwnedFd> {
    // High numbers, so that putting one in place never closes the other.
    let control = sys::dup_high(launch.control.as_fd())?;
    let payload = sys::dup_high(launch.payload.as_fd())?;
    let (control_fd, payload_fd) = (control.as_raw_fd(), payload.as_raw_fd());
    let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    let mut command = Command::new(&launch.exe);
    command.args(&launch.arguments).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(if launch.show_stderr { Stdio::inherit() } else { Stdio::null() });
    let place = move || {
        sys::die_with_parent()?;
        // SAFETY: neither call has memory to touch; setsid fails only for a
        // group leader, which a new process is not.
        let orphan = unsafe {
            libc::setsid();
            libc::umask(0o077);
            libc::getppid() != parent
        };
        if orphan {
            return Err(Error::from(ErrorKind::BrokenPipe));
        }
        sys::dup_to(control_fd, FIRST)?;
        sys::dup_to(payload_fd, SECOND)?;
        sys::close_from(SECOND + 1, true)
    };
    // SAFETY: the closure runs between fork and exec of a threaded process: it
    // makes plain system calls only and allocates nothing.
    unsafe { command.pre_exec(place) };
    let child = command.spawn()?;
    // The child is ours and unreaped, so its pid cannot be another's. Dropping
    // `child` neither kills nor reaps; the descriptor does both.
    sys::pidfd_open(child.id())
}
