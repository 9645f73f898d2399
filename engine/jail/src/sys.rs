//! The system calls of the jail, each behind a safe function that checks what
//! it can. No policy: what is called when is decided by the callers.
#![allow(unsafe_code)]

mod mount;

pub(crate) use mount::{
    become_root, bind, empty_root, keep_mounts_private, make_read_only, mount_tmpfs,
};

use std::ffi::CStr;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

fn check(result: libc::c_long) -> Result<libc::c_long> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn check_int(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a clone this is.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The caller, with a descriptor of the new process.
    Parent(OwnedFd),
}

/// Threads of this process, by the kernel's count.
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// A new process like fork makes it. As a `sibling` it is a child of the
/// caller's parent. The caller must have one thread only, so that the copy has
/// every lock in a known state.
pub(crate) fn fork(sibling: bool) -> Result<Forked> {
    let flags = libc::CLONE_PIDFD | libc::SIGCHLD | if sibling { libc::CLONE_PARENT } else { 0 };
    let mut pidfd: RawFd = -1;
    // SAFETY: no CLONE_VM and no stack: both sides go on with a copy of this
    // memory, as after fork. The third argument is where CLONE_PIDFD stores the
    // descriptor on every architecture; it points to a live integer. Callers
    // are single-threaded, so no lock is held by a thread that is gone.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags as libc::c_ulong,
            std::ptr::null_mut::<libc::c_void>(),
            std::ptr::from_mut(&mut pidfd),
            0 as libc::c_ulong,
            0 as libc::c_ulong,
        )
    })?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    if pidfd < 0 {
        return Err(Error::from_raw_os_error(libc::ENOSYS));
    }
    // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
    Ok(Forked::Parent(unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Ends the process at once: no destructors, no exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any integer and does not return.
    unsafe { libc::_exit(code) }
}

/// A descriptor of a child that was not reaped yet.
pub(crate) fn pidfd_open(pid: u32) -> Result<OwnedFd> {
    // SAFETY: plain integers; the result is checked.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) })?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Sends a signal through a process descriptor, into any pid namespace.
pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<()> {
    // SAFETY: the descriptor is open while borrowed; a null siginfo is allowed.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })
    .map(drop)
}

/// How a process ended.
pub(crate) struct Reaped {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) cpu: Duration,
    pub(crate) max_rss: u64,
}

/// Reaps an exited child; `None` while it still runs.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Result<Option<Reaped>> {
    // SAFETY: both are plain data for which all zeroes is a value.
    let (mut info, mut usage): (libc::siginfo_t, libc::rusage) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: the raw call takes a fifth argument, where usage is stored; both
    // pointers are to live values of the kernel's own types.
    check(unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            pidfd.as_raw_fd(),
            std::ptr::from_mut(&mut info),
            libc::WEXITED | libc::WNOHANG,
            std::ptr::from_mut(&mut usage),
        )
    })?;
    // SAFETY: waitid filled the child fields, or left si_pid 0 when none ended.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(None);
    }
    let exited = info.si_code == libc::CLD_EXITED;
    Ok(Some(Reaped {
        code: exited.then_some(status),
        signal: (!exited).then_some(status),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

/// Reaps one ended child of a process group: true when there was one, false when
/// there are only living ones, an error when there is none at all. The group's
/// number must be held by a member, else it may be another's by now.
pub(crate) fn reap_of_group(group: u32) -> Result<bool> {
    // SAFETY: plain data for which all zeroes is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG;
    // SAFETY: the pointer is to a live value of the kernel's own type.
    check_int(unsafe { libc::waitid(libc::P_PGID, group, &mut info, flags) })?;
    // SAFETY: waitid filled the child fields, or left si_pid 0 when none ended.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Blocks until a child has ended, and reaps it.
pub(crate) fn wait(pidfd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: a null siginfo and a null usage are allowed.
    check(unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            pidfd.as_raw_fd(),
            std::ptr::null_mut::<libc::siginfo_t>(),
            libc::WEXITED,
            std::ptr::null_mut::<libc::rusage>(),
        )
    })
    .map(drop)
}

/// Blocks until a child has ended, reaps it, and tells its exit code or 128 and
/// the number of its signal.
pub(crate) fn wait_code(pidfd: BorrowedFd<'_>) -> Result<i32> {
    // SAFETY: plain data for which all zeroes is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let id = pidfd.as_raw_fd() as libc::id_t;
    // SAFETY: writes one siginfo, which is live.
    check_int(unsafe { libc::waitid(libc::P_PIDFD, id, &mut info, libc::WEXITED) })?;
    // SAFETY: waitid filled the child fields.
    let status = unsafe { info.si_status() };
    Ok(if info.si_code == libc::CLD_EXITED { status } else { 128 + status })
}

/// Kills every other process of the pid namespace this one is the first of, and
/// reaps them all.
pub(crate) fn end_all_others() -> Result<()> {
    if own_pid() != 1 {
        return Err(Error::other("not the first process of a namespace"));
    }
    // SAFETY: -1 means every process this one can see but itself; the first
    // process of a namespace sees its own namespace only.
    if let Err(error) = check_int(unsafe { libc::kill(-1, libc::SIGKILL) })
        && error.raw_os_error() != Some(libc::ESRCH)
    {
        return Err(error);
    }
    loop {
        // SAFETY: a null status is allowed.
        match check_int(unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) }) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Fails unless the process is an unreaped child of this process.
pub(crate) fn is_child(pidfd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: a null siginfo is allowed; nothing is written and nothing reaped.
    check(unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            pidfd.as_raw_fd(),
            std::ptr::null_mut::<libc::siginfo_t>(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
            std::ptr::null_mut::<libc::rusage>(),
        )
    })
    .map(drop)
}

fn time(value: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or(0))
}

/// CPU time a process has used, by its pid in this namespace. The pid must be
/// held by an unreaped child of ours, else it may be another's by now.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    // The kernel's clock id of a process: its pid inverted, shifted by three,
    // plus 2 for the scheduler's own count (nanoseconds).
    let clock = (!(pid as libc::clockid_t) << 3) | 2;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is live.
    check_int(unsafe { libc::clock_gettime(clock, &mut now) })?;
    Ok(Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    ))
}

/// `prctl` with up to two numbers.
pub(crate) fn prctl(option: libc::c_int, two: libc::c_ulong, three: libc::c_ulong) -> Result<i32> {
    // SAFETY: only used with options whose arguments are numbers.
    check_int(unsafe { libc::prctl(option, two, three, 0, 0) })
}

/// Kill this process when the thread that made it dies.
pub(crate) fn die_with_parent() -> Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0).map(drop)
}

/// Leaves namespaces of the given flags.
pub(crate) fn unshare(flags: libc::c_int) -> Result<()> {
    // SAFETY: a number; affects this process only.
    check_int(unsafe { libc::unshare(flags) }).map(drop)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Sets the soft and hard limit of a resource.
pub(crate) fn rlimit(resource: Resource, value: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: reads one rlimit, which is live.
    check_int(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}

/// Sets the soft limit only, as far as the hard limit lets.
pub(crate) fn soft_rlimit(resource: Resource, value: u64) -> Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit, which is live.
    check_int(unsafe { libc::getrlimit(resource, &mut limit) })?;
    limit.rlim_cur = value.min(limit.rlim_max);
    // SAFETY: reads one rlimit, which is live.
    check_int(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}

/// `target` becomes a copy of `source`, kept across exec.
pub(crate) fn dup_to(source: RawFd, target: RawFd) -> Result<()> {
    // SAFETY: numbers; a wrong one is an error, not undefined.
    check_int(unsafe { libc::dup2(source, target) }).map(drop)
}

/// Closes every descriptor from `first` up, or marks them close-on-exec.
pub(crate) fn close_from(first: RawFd, on_exec: bool) -> Result<()> {
    let flags = if on_exec { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: numbers. Callers drop no owner of such a descriptor afterwards:
    // they exec, or never return.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) }).map(drop)
}

/// A copy of a descriptor at 10 or above, closed on exec.
pub(crate) fn dup_high(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    // SAFETY: numbers; the descriptor is open while borrowed.
    let copy = check_int(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 10) })?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Takes over a descriptor that exec or clone left at a fixed number.
pub(crate) fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: called once per number, at the start of a role, for the numbers
    // the launcher put there.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// True when the peer of a socket has gone.
pub(crate) fn hung_up(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
    // SAFETY: one live pollfd; timeout 0 returns at once.
    let ready = unsafe { libc::poll(&mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// True when a process has ended, reaped or not, by its descriptor.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd; timeout 0 returns at once.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 }
}

/// A pair of connected control sockets that keep message boundaries.
pub(crate) fn message_pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: writes two integers, which are live.
    check_int(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) })?;
    // SAFETY: the kernel just made both descriptors for us.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

/// A memfd that holds `bytes` and can never change again.
pub(crate) fn sealed_memfd(name: &CStr, bytes: &[u8]) -> Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a terminated name and a number.
    let fd = check_int(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the kernel just made this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut file = std::fs::File::from(fd);
    std::io::Write::write_all(&mut file, bytes)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: numbers on an open descriptor.
    check_int(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file.into())
}

/// Maps a whole file privately and read-only for the life of the process.
pub(crate) fn map_forever(fd: BorrowedFd<'_>, length: usize) -> Result<&'static [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            fd.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    // SAFETY: `length` readable bytes that are never unmapped; the file is
    // sealed against writing and shrinking, so they never change.
    Ok(unsafe { std::slice::from_raw_parts(address.cast(), length) })
}

/// Default action for the signals that mean a crash, no blocked signals: an
/// inherited handler must not turn a crash into something else.
pub(crate) fn default_signals() {
    let crashes = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGABRT,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGFPE,
        libc::SIGSYS,
        libc::SIGXCPU,
        libc::SIGCHLD,
    ];
    for signal in crashes {
        // SAFETY: SIG_DFL installs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set on the stack, read by the kernel.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Effective user id.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Effective group id.
pub(crate) fn effective_gid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getegid() }
}

/// Own process id, in the own namespace.
pub(crate) fn own_pid() -> u32 {
    std::process::id()
}

/// Becomes another user and group with no supplementary groups.
pub(crate) fn become_user(id: u32) -> Result<()> {
    // SAFETY: numbers and an empty list; one thread, so raw calls would do too.
    unsafe {
        check_int(libc::setgroups(0, std::ptr::null()))?;
        check_int(libc::setresgid(id, id, id))?;
        check_int(libc::setresuid(id, id, id))?;
    }
    Ok(())
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Version 3 of the capability interface: two words a set.
const CAP_VERSION: u32 = 0x2008_0522;

/// Makes every permitted capability effective again.
pub(crate) fn raise_capabilities() -> Result<()> {
    let mut header = CapHeader { version: CAP_VERSION, pid: 0 };
    let mut data = [CapData::default(); 2];
    // SAFETY: header and two data words of the kernel's layout, all live.
    check(unsafe { libc::syscall(libc::SYS_capget, &mut header, data.as_mut_ptr()) })?;
    for word in &mut data {
        word.effective = word.permitted;
    }
    // SAFETY: as above, read only.
    check(unsafe { libc::syscall(libc::SYS_capset, &mut header, data.as_ptr()) }).map(drop)
}

/// Empties effective, permitted and inheritable.
pub(crate) fn clear_capabilities() -> Result<()> {
    let mut header = CapHeader { version: CAP_VERSION, pid: 0 };
    let data = [CapData::default(); 2];
    // SAFETY: header and two data words of the kernel's layout, all live.
    check(unsafe { libc::syscall(libc::SYS_capset, &mut header, data.as_ptr()) }).map(drop)
}

/// Which rights new files and folders do not get.
pub(crate) fn umask(mask: u32) {
    // SAFETY: a number; cannot fail.
    unsafe { libc::umask(mask) };
}

/// Whether the kernel knows the filter action that kills the whole process.
pub(crate) fn seccomp_kill_known() -> Result<()> {
    let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: reads one integer, which is live.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            std::ptr::from_ref(&action),
        )
    })
    .map(drop)
}

/// Bytes of ancillary data for at most four descriptors, aligned for cmsghdr.
#[repr(align(8))]
struct Ancillary([u8; 64]);

/// Lets the runtime watch a descriptor.
pub(crate) fn watch(fd: OwnedFd) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor names the same open file until the AsyncFd
    // that owns it now is dropped, which takes it off the watch first.
    unsafe { AsyncFd::register(fd) }.map_err(Into::into)
}

/// Sends one message with descriptors. Never raises SIGPIPE.
pub(crate) fn send_message(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> Result<()> {
    assert!(fds.len() <= 4);
    let mut ancillary = Ancillary([0; 64]);
    let mut vector =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr of zeroes is empty; every pointer set below is to a value
    // that lives to the end of this function; the ancillary space holds four
    // descriptors and their header (16 + 16 bytes).
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut vector;
        message.msg_iovlen = 1;
        if !fds.is_empty() {
            let size = std::mem::size_of_val(fds) as u32;
            message.msg_control = ancillary.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(head).cast(), fds.len());
        }
        check(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as _).map(drop)
    }
}

/// Receives one message and its descriptors. Zero bytes means the peer closed.
pub(crate) fn receive_message(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Result<(usize, Vec<OwnedFd>)> {
    let mut ancillary = Ancillary([0; 64]);
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut fds = Vec::new();
    // SAFETY: as in `send_message`; the kernel keeps within the lengths given.
    // Each descriptor it lists was just made for us and is owned once.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut vector;
        message.msg_iovlen = 1;
        message.msg_control = ancillary.0.as_mut_ptr().cast();
        message.msg_controllen = ancillary.0.len() as _;
        let flags = libc::MSG_CMSG_CLOEXEC;
        let length = check(libc::recvmsg(socket.as_raw_fd(), &mut message, flags) as _)?;
        let mut head = libc::CMSG_FIRSTHDR(&message);
        while !head.is_null() {
            if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                let size = (*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..size / std::mem::size_of::<RawFd>() {
                    let fd = libc::CMSG_DATA(head).cast::<RawFd>().add(index).read_unaligned();
                    fds.push(OwnedFd::from_raw_fd(fd));
                }
            }
            head = libc::CMSG_NXTHDR(&message, head);
        }
        if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
            return Err(Error::from_raw_os_error(libc::EMSGSIZE));
        }
        Ok((length as usize, fds))
    }
}
