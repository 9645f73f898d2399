//! What runs inside the jail, as seen from its code: a [`Guest`] is booted once
//! (warm, single-threaded) and runs once, in a process of its own. This file
//! gives it its payload, its two sockets and the lock; it knows nothing of what
//! a guest does with them.

use crate::frames;
use crate::layers::filter::Filter;
use std::io::Write;
use std::ops::Deref;
use std::os::unix::net::UnixStream;

/// Code that runs jailed, one run a process.
pub trait Guest: Sized {
    /// Brings everything up that every run needs. Runs in the zygote before it
    /// forks (or in the worker itself on the exec path): stay on this one
    /// thread, start no other, open no epoll, draw no random number.
    fn boot(payload: Payload) -> Result<Self, String>;

    /// Serves one run and returns the exit code. Runs in the forked worker:
    /// make the runtime, register both sockets, call [`Lock::close`], send
    /// [`frames::READY`] on the job socket, then work.
    fn run(self, worker: WorkerSide) -> i32;
}

/// What the engine hands to every boot, such as a snapshot: mapped read-only,
/// its descriptor closed, there for the life of the process.
#[derive(Debug, Clone, Copy)]
pub struct Payload(&'static [u8]);

impl Payload {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes, which outlive everything in the process.
    pub fn bytes(self) -> &'static [u8] {
        self.0
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

/// A worker's two sockets, both non-blocking, and its last layer.
#[derive(Debug)]
pub struct WorkerSide {
    job: UnixStream,
    fetch: UnixStream,
    lock: Lock,
}

impl WorkerSide {
    pub(crate) fn new(job: UnixStream, fetch: UnixStream, filter: Filter) -> Self {
        Self { job, fetch, lock: Lock { filter } }
    }

    /// The job socket, the fetch socket and the lock to close behind them.
    pub fn into_parts(self) -> (UnixStream, UnixStream, Lock) {
        (self.job, self.fetch, self.lock)
    }

    /// Says that this worker cannot serve, and why. For guests that fail
    /// before they could lock.
    pub fn fail(mut self, reason: &str) -> i32 {
        let _ = send_failed(&mut self.job, reason);
        crate::role::EXIT_BOOT
    }
}

/// The system-call filter, not yet in force.
#[derive(Debug)]
#[must_use = "a worker that does not close its lock can call the whole kernel"]
pub struct Lock {
    filter: Filter,
}

impl Lock {
    /// Puts the filter in force for the rest of the process. After this the
    /// process can compute, use the sockets it has and exit.
    pub fn close(self) -> Result<(), String> {
        self.filter.apply()
    }
}

/// Sends a [`frames::FAILED`] frame by plain writes; small enough for an empty
/// socket buffer.
pub(crate) fn send_failed(job: &mut UnixStream, reason: &str) -> std::io::Result<()> {
    let reason = &reason.as_bytes()[..reason.len().min(1_000)];
    let length = u32::try_from(reason.len() + 1).unwrap_or(1);
    let mut frame = length.to_le_bytes().to_vec();
    frame.push(frames::FAILED);
    frame.extend_from_slice(reason);
    job.write_all(&frame)
}
