//! The pid namespace of a zygote's workers and its first process, which only
//! waits: a worker must never be pid 1 (it would ignore its own SIGABRT), and the
//! namespace, with everything in it, ends when this process does.

use crate::layers::{self, Applied};
use crate::role::EXIT_BOOT;
use crate::sys::{self, Forked};
use crate::zygote::{FIRST, SECOND};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Puts later children into a pid namespace of their own, if the kernel lets.
pub(crate) fn enter_pid_namespace(applied: &mut Applied) -> Option<Init> {
    let (result, init) = match Init::start() {
        Ok(init) => (Ok(()), Some(init)),
        Err(error) => (Err(error), None),
    };
    applied.note(
        "pid_namespace",
        "no process of others can be named",
        "allow unprivileged user namespaces for this user",
        result,
    );
    init
}

/// The first process of the workers' pid namespace, and the socket whose
/// closing ends it. Not a signal: Landlock may stand between.
pub(crate) struct Init {
    process: OwnedFd,
    hold: OwnedFd,
}

impl Init {
    /// Later children of the caller live in a new pid namespace, whose first
    /// process only waits.
    fn start() -> std::io::Result<Self> {
        let (hold, held) = sys::message_pair()?;
        sys::unshare(libc::CLONE_NEWPID)?;
        match sys::fork(false)? {
            Forked::Child => sys::exit_now(Self::wait(&held)),
            Forked::Parent(process) => Ok(Self { process, hold }),
        }
    }

    fn wait(held: &OwnedFd) -> i32 {
        let placed = sys::dup_to(held.as_raw_fd(), FIRST)
            .and_then(|()| sys::close_from(SECOND, false))
            .and_then(|()| sys::prctl(libc::PR_SET_DUMPABLE, 0, 0));
        // Restricted twice when the zygote was already; that is allowed.
        let _ = layers::restrict_files();
        let _ = layers::drop_capabilities();
        // Dropping capabilities clears the death signal, so it comes after.
        if placed.and_then(|_| sys::die_with_parent()).is_err() {
            return EXIT_BOOT;
        }
        // Nobody ever writes: this returns when the zygote has closed its end.
        let _ = sys::receive_message(sys::adopt(FIRST).as_fd(), &mut [0]);
        0
    }

    /// Ends it and reaps it here, so that an engine that is pid 1 itself does
    /// not inherit it.
    pub(crate) fn end(self) {
        drop(self.hold);
        let _ = sys::wait(self.process.as_fd());
    }
}
