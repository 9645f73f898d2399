//! Namespaces of a jailed process, each tried by itself so that one that is
//! refused does not cost the others.

use super::Applied;
use super::identity::NOBODY;
use crate::sys;
use std::io::Result;

const NEXT: &str = "allow unprivileged user namespaces for this user";

/// Leaves the user, network, mount, ipc, uts and cgroup namespaces. Must run
/// before any thread and before no_new_privs would matter.
pub(crate) fn enter(applied: &mut Applied) {
    applied.note("user_namespace", "its capabilities mean nothing outside", NEXT, enter_user());
    for (layer, flag, good_for) in [
        ("network_namespace", libc::CLONE_NEWNET, "there is no network interface"),
        ("mount_namespace", libc::CLONE_NEWNS, "mounts are its own"),
        ("ipc_namespace", libc::CLONE_NEWIPC, "no shared memory or queue of others"),
        ("uts_namespace", libc::CLONE_NEWUTS, "the host name is its own"),
        ("cgroup_namespace", libc::CLONE_NEWCGROUP, "cgroup paths are hidden"),
    ] {
        applied.note(layer, good_for, NEXT, sys::unshare(flag));
    }
}

/// Maps the one id the process has to nobody inside.
fn enter_user() -> Result<()> {
    let (uid, gid) = (sys::effective_uid(), sys::effective_gid());
    sys::unshare(libc::CLONE_NEWUSER)?;
    // A group map needs setgroups closed first.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{NOBODY} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{NOBODY} {gid} 1"))
}
