//! The calls that make a file tree of a process's own.

use super::{check, check_int};
use std::ffi::CString;
use std::io::{Error, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as the kernel takes it.
fn terminated(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(Error::from)
}

/// No mount made here is seen elsewhere.
pub(crate) fn keep_mounts_private() -> Result<()> {
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    let none = c"none".as_ptr();
    // SAFETY: terminated strings, numbers and null data.
    check_int(unsafe {
        libc::mount(none, c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null())
    })
    .map(drop)
}

/// An empty file system in memory over a directory; nothing in it is executed.
pub(crate) fn mount_tmpfs(at: &Path, bytes: u64, inodes: u64, mode: u32) -> Result<()> {
    let at = terminated(at)?;
    let options = CString::new(format!("size={bytes},nr_inodes={inodes},mode={mode:o}"))?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: terminated strings that live to the end of the call, and numbers.
    check_int(unsafe {
        let kind = c"tmpfs".as_ptr();
        libc::mount(c"none".as_ptr(), at.as_ptr(), kind, flags, options.as_ptr().cast())
    })
    .map(drop)
}

/// Shows a file or a folder (without the mounts below it) at another place.
pub(crate) fn bind(from: &Path, at: &Path) -> Result<()> {
    let (from, at) = (terminated(from)?, terminated(at)?);
    let none = std::ptr::null();
    // SAFETY: terminated strings that live to the end of the call, and numbers.
    check_int(unsafe { libc::mount(from.as_ptr(), at.as_ptr(), none, libc::MS_BIND, none.cast()) })
        .map(drop)
}

/// Makes a mount read-only, keeping the restrictions it has; `executable` says
/// whether programs in it may run.
pub(crate) fn make_read_only(at: &Path, executable: bool) -> Result<()> {
    let at = terminated(at)?;
    // SAFETY: plain data for which all zeroes is a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a terminated string and one live value to write.
    check_int(unsafe { libc::statvfs(at.as_ptr(), &mut found) })?;
    // An unprivileged namespace may not take a restriction of the original away.
    let kept = [
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    let mut flags =
        libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    for (has, keep) in kept {
        if found.f_flag & has != 0 {
            flags |= keep;
        }
    }
    if !executable {
        flags |= libc::MS_NOEXEC;
    }
    let none = std::ptr::null();
    // SAFETY: a terminated string that lives to the end of the call, and numbers.
    check_int(unsafe { libc::mount(c"none".as_ptr(), at.as_ptr(), none, flags, none.cast()) })
        .map(drop)
}

/// Makes a directory with everything mounted below it the root; what was the
/// root is gone.
pub(crate) fn become_root(at: &Path) -> Result<()> {
    let at = terminated(at)?;
    let none = std::ptr::null();
    let all = libc::MS_BIND | libc::MS_REC;
    // SAFETY: terminated strings that live to the end of their calls, numbers.
    unsafe {
        // A mount taken along into a user namespace is locked in its place and
        // cannot become a root; a second view of it can.
        check_int(libc::mount(at.as_ptr(), at.as_ptr(), none, all, none.cast()))?;
        check_int(libc::chdir(at.as_ptr()))?;
        check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
        check_int(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check_int(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}

/// Replaces the whole file tree of this mount namespace by an empty read-only one.
pub(crate) fn empty_root() -> Result<()> {
    let none = std::ptr::null::<libc::c_void>();
    let sealed = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    // SAFETY: terminated strings, numbers and null data throughout.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check_int(libc::mount(c"none".as_ptr(), c"/".as_ptr(), none.cast(), private, none))?;
        let at = c"/tmp";
        let options = c"size=4k,mode=0555".as_ptr().cast();
        check_int(libc::mount(c"none".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), sealed, options))?;
        check_int(libc::chdir(at.as_ptr()))?;
        check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
        check_int(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check_int(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}
