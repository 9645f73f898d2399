//! The system calls of the attack rows, each tried from inside the locked worker.

use std::io::Error;

pub(crate) fn call(number: libc::c_long, a: [i64; 6]) -> String {
    // SAFETY: the point is to try; pointers given are null or live.
    let result = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    if result < 0 {
        format!("errno {}", Error::last_os_error().raw_os_error().unwrap())
    } else {
        format!("got {result}")
    }
}

/// One attack, by the name of the call.
pub(crate) fn attack(what: &str) -> String {
    let path = c"/etc/passwd".as_ptr() as i64;
    let private = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let mut bytes = [0u8; 64];
    let buffer = bytes.as_mut_ptr() as i64;
    let page = {
        let layout = std::alloc::Layout::from_size_align(4096, 4096).unwrap();
        // SAFETY: a valid layout; leaked on purpose.
        unsafe { std::alloc::alloc(layout) as i64 }
    };
    let at = i64::from(libc::AT_FDCWD);
    let mem = c"/proc/1/mem".as_ptr() as i64;
    let fds = c"/proc/self/fd".as_ptr() as i64;
    let (number, arguments) = match what {
        "openat" => (libc::SYS_openat, [at, path, 0, 0, 0, 0]),
        "openat_proc_mem" => (libc::SYS_openat, [at, mem, 2, 0, 0, 0]),
        "openat_proc_fd" => (libc::SYS_openat, [at, fds, 0, 0, 0, 0]),
        "readlinkat" => (libc::SYS_readlinkat, [at, fds, buffer, 64, 0, 0]),
        "statx" => (libc::SYS_statx, [at, path, 0, 0, buffer, 0]),
        "ioctl" => (libc::SYS_ioctl, [3, 0x5401, buffer, 0, 0, 0]),
        "fcntl_dup" => (libc::SYS_fcntl, [3, 0, 0, 0, 0, 0]),
        "unlinkat" => (libc::SYS_unlinkat, [at, path, 0, 0, 0, 0]),
        "memfd_create" => (libc::SYS_memfd_create, [path, 0, 0, 0, 0, 0]),
        "socket" => (libc::SYS_socket, [2, 1, 0, 0, 0, 0]),
        "socketpair" => (libc::SYS_socketpair, [1, 1, 0, buffer, 0, 0]),
        "connect" => (libc::SYS_connect, [3, buffer, 16, 0, 0, 0]),
        "bind" => (libc::SYS_bind, [3, buffer, 16, 0, 0, 0]),
        "sendmsg" => (libc::SYS_sendmsg, [3, buffer, 0, 0, 0, 0]),
        "recvmsg" => (libc::SYS_recvmsg, [3, buffer, 0, 0, 0, 0]),
        "sendto_address" => (libc::SYS_sendto, [3, buffer, 1, 0, buffer, 16]),
        "sendto_oob" => (libc::SYS_sendto, [3, buffer, 1, 1, 0, 0]),
        "recvfrom_oob" => (libc::SYS_recvfrom, [3, buffer, 1, 1, 0, 0]),
        "recvfrom_address" => (libc::SYS_recvfrom, [3, buffer, 1, 0x40, buffer, buffer]),
        "execve" => (libc::SYS_execve, [c"/bin/sh".as_ptr() as i64, 0, 0, 0, 0, 0]),
        "execveat" => (libc::SYS_execveat, [3, c"".as_ptr() as i64, 0, 0, 0x1000, 0]),
        "ptrace_traceme" => (libc::SYS_ptrace, [0, 0, 0, 0, 0, 0]),
        "process_vm_readv" => (libc::SYS_process_vm_readv, [1, buffer, 1, buffer, 1, 0]),
        "io_uring_setup" => (libc::SYS_io_uring_setup, [8, buffer, 0, 0, 0, 0]),
        "bpf" => (libc::SYS_bpf, [0, buffer, 64, 0, 0, 0]),
        "userfaultfd" => (libc::SYS_userfaultfd, [0, 0, 0, 0, 0, 0]),
        "mmap_exec" => (libc::SYS_mmap, [0, 4096, 5, private, -1, 0]),
        "mmap_shared" => (libc::SYS_mmap, [0, 4096, 3, 0x21, -1, 0]),
        "mmap_file" => (libc::SYS_mmap, [0, 4096, 1, 2, 3, 0]),
        "mmap_growsdown" => (libc::SYS_mmap, [0, 4096, 3, private | 0x100, -1, 0]),
        "mprotect_exec" => (libc::SYS_mprotect, [page, 4096, 5, 0, 0, 0]),
        "pkey_mprotect" => (libc::SYS_pkey_mprotect, [page, 4096, 5, -1, 0, 0]),
        "madvise_remove" => (libc::SYS_madvise, [page, 4096, 9, 0, 0, 0]),
        "madvise_poison" => (libc::SYS_madvise, [page, 4096, 100, 0, 0, 0]),
        "futex_shared" => (libc::SYS_futex, [page, 1, 1, 0, 0, 0]),
        "futex_requeue_pi" => (libc::SYS_futex, [page, 12 | 128, 1, 0, page, 0]),
        "kill_parent" => (libc::SYS_kill, [1, 9, 0, 0, 0, 0]),
        "kill_all" => (libc::SYS_kill, [-1, 9, 0, 0, 0, 0]),
        "tgkill_other" => (libc::SYS_tgkill, [1, 1, 9, 0, 0, 0]),
        "tkill" => (libc::SYS_tkill, [1, 9, 0, 0, 0, 0]),
        "pidfd_open" => (libc::SYS_pidfd_open, [1, 0, 0, 0, 0, 0]),
        "prctl_dumpable" => (libc::SYS_prctl, [4, 1, 0, 0, 0, 0]),
        "prctl_pdeathsig" => (libc::SYS_prctl, [1, 0, 0, 0, 0, 0]),
        "seccomp" => (libc::SYS_seccomp, [1, 0, buffer, 0, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "fork" => (libc::SYS_fork, [0; 6]),
        "clone_process" => (libc::SYS_clone, [17, 0, 0, 0, 0, 0]),
        "clone_thread" => (libc::SYS_clone, [0x10f00, page + 4096, 0, 0, 0, 0]),
        "clone3" => (libc::SYS_clone3, [buffer, 64, 0, 0, 0, 0]),
        "unshare_user" => (libc::SYS_unshare, [0x1000_0000, 0, 0, 0, 0, 0]),
        "setns" => (libc::SYS_setns, [3, 0, 0, 0, 0, 0]),
        "setuid" => (libc::SYS_setuid, [0; 6]),
        "capset" => (libc::SYS_capset, [buffer, buffer, 0, 0, 0, 0]),
        "mount" => (libc::SYS_mount, [path, path, path, 0, 0, 0]),
        "chroot" => (libc::SYS_chroot, [path, 0, 0, 0, 0, 0]),
        "setrlimit" => (libc::SYS_setrlimit, [2, buffer, 0, 0, 0, 0]),
        "prlimit_parent" => (libc::SYS_prlimit64, [1, 2, buffer, 0, 0, 0]),
        "keyctl" => (libc::SYS_keyctl, [0, -3, 0, 0, 0, 0]),
        "perf_event_open" => (libc::SYS_perf_event_open, [buffer, 0, -1, -1, 0, 0]),
        "shmget" => (libc::SYS_shmget, [1, 4096, 0o1777, 0, 0, 0]),
        "clock_of_parent" => (libc::SYS_clock_gettime, [(!1i64 << 3) | 2, buffer, 0, 0, 0, 0]),
        "reboot" => (libc::SYS_reboot, [0; 6]),
        #[cfg(target_arch = "x86_64")]
        "x32_getpid" => (0x4000_0000 + libc::SYS_getpid, [0; 6]),
        "getpid" => (libc::SYS_getpid, [0; 6]),
        "segfault" => {
            // SAFETY: none; it is to crash.
            unsafe { std::ptr::null_mut::<u8>().wrapping_add(8).write_volatile(1) };
            return "survived".into();
        }
        "abort" => std::process::abort(),
        "spin" => loop {
            std::hint::spin_loop();
        },
        other => return format!("unknown attack {other}"),
    };
    let answer = call(number, arguments);
    if answer == "got 0" && ["fork", "clone_process"].contains(&what) {
        // The child of a fork that should not have worked must not go on as us.
        std::process::abort();
    }
    answer
}
