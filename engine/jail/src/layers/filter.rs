//! The system-call filter: two stacked programs, since one program has one
//! answer for what matches, behind a small one that makes them cheap to install
//! (`known.rs`). The first answers EPERM to file calls and to
//! executable memory, so that a library that merely looks around gets an error
//! it understands. The second lets through what a single-threaded worker really
//! uses, arguments included, and kills the process for anything else, which the
//! parent sees as SIGSYS: an escape attempt.

use super::known;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Stands for the worker's pid in a compiled filter: compiling takes longer
/// than forking, so it is done once and the pid is put in after the fork.
const PID_SENTINEL: u32 = 0x7e57_91d0;

/// mmap flags beyond private and anonymous that V8 and the allocator set.
const MMAP_EXTRA: i32 = libc::MAP_FIXED | libc::MAP_NORESERVE;
/// Advice V8 and the allocator give.
const ADVICE: [i32; 7] = [
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_DONTFORK,
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
];
/// Socket flags of tokio and the standard library; never MSG_OOB.
const SOCKET_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
/// FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET (also on the wall clock), FUTEX_WAKE_BITSET, all private.
const FUTEX_OPS: [i32; 5] = [128, 129, 128 + 9, 128 + 9 + 256, 128 + 10];
/// Clocks of the system, not of other processes (those ids are negative).
const CLOCK_MAX: u64 = 11;

/// The programs, compiled, with the pid still open. Empty where the kernel has
/// no filters, which the engine is told and refuses unless it was told to go on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    known: BpfProgram,
    refuse: BpfProgram,
    allow: BpfProgram,
}

impl Filter {
    /// Compiles the programs for this architecture.
    pub(crate) fn compile() -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| text(&e))?;
        let compile = |rules, otherwise, matched| {
            SeccompFilter::new(rules, otherwise, matched, arch)
                .and_then(BpfProgram::try_from)
                .map_err(|e| text(&e))
        };
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        // Installing what comes behind it takes two calls that are over then.
        let known = allowed_calls()?.into_keys().chain([libc::SYS_seccomp, libc::SYS_prctl]);
        Ok(Self {
            known: known::program(known)?,
            refuse: compile(refused_calls()?, SeccompAction::Allow, refused)?,
            allow: compile(allowed_calls()?, SeccompAction::KillProcess, SeccompAction::Allow)?,
        })
    }

    /// Puts the own pid in and the programs in force.
    pub(crate) fn apply(mut self) -> Result<(), String> {
        if self.allow.is_empty() {
            return Ok(());
        }
        let mut patched = 0;
        for instruction in &mut self.allow {
            if instruction.k == PID_SENTINEL {
                instruction.k = crate::sys::own_pid();
                patched += 1;
            }
        }
        if patched != 1 {
            return Err(format!("the filter names its pid {patched} times"));
        }
        apply_filter(&self.known).map_err(|error| error.to_string())?;
        apply_filter(&self.refuse).map_err(|error| error.to_string())?;
        apply_filter(&self.allow).map_err(|error| error.to_string())
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rule(conditions: &[(u8, Op, u64)]) -> Result<SeccompRule, String> {
    let conditions = conditions
        .iter()
        .map(|(index, op, value)| SeccompCondition::new(*index, Len::Dword, op.clone(), *value))
        .collect::<Result<Vec<_>, _>>();
    conditions.and_then(SeccompRule::new).map_err(|error| error.to_string())
}

/// Argument `index` has none of the bits outside `bits`.
fn only(index: u8, bits: i32) -> (u8, Op, u64) {
    (index, Op::MaskedEq(u64::from(!(bits as u32))), 0)
}

fn is(index: u8, value: i32) -> (u8, Op, u64) {
    (index, Op::Eq, u64::from(value as u32))
}

/// The address argument of sendto and recvfrom is null, in both halves.
fn no_address(index: u8) -> Result<SeccompCondition, String> {
    SeccompCondition::new(index, Len::Qword, Op::Eq, 0).map_err(|error| error.to_string())
}

fn socket_call() -> Result<SeccompRule, String> {
    let flags =
        SeccompCondition::new(3, Len::Dword, Op::MaskedEq(u64::from(!(SOCKET_FLAGS as u32))), 0)
            .map_err(|error| error.to_string())?;
    SeccompRule::new(vec![flags, no_address(4)?]).map_err(|error| error.to_string())
}

/// Calls on files: answered with EPERM.
fn file_calls() -> Vec<i64> {
    let mut calls = vec![
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_newfstatat,
        libc::SYS_fstat,
        libc::SYS_statx,
        libc::SYS_statfs,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_getcwd,
        libc::SYS_lseek,
        libc::SYS_pread64,
        libc::SYS_ioctl,
        libc::SYS_fcntl,
        libc::SYS_uname,
        libc::SYS_sysinfo,
        libc::SYS_prlimit64,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_open,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_access,
        libc::SYS_readlink,
        libc::SYS_getrlimit,
    ]);
    calls
}

fn refused_calls() -> Result<Rules, String> {
    let mut rules: Rules = file_calls().into_iter().map(|call| (call, Vec::new())).collect();
    let exec = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule(&[(2, Op::MaskedEq(exec), exec)])?]);
    }
    Ok(rules)
}

fn allowed_calls() -> Result<Rules, String> {
    // What the first program refuses must pass here, else it would kill.
    let mut rules: Rules = file_calls().into_iter().map(|call| (call, Vec::new())).collect();
    let any = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_ctl,
        // A dropped write half of a socket shuts it down.
        libc::SYS_shutdown,
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_brk,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_exit,
        libc::SYS_exit_group,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait,
    ];
    rules.extend(any.into_iter().map(|call| (call, Vec::new())));

    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let shape = Op::MaskedEq(u64::from(!(MMAP_EXTRA as u32)));
    rules.insert(libc::SYS_mmap, vec![rule(&[only(2, all), (3, shape, private as u64)])?]);
    rules.insert(libc::SYS_mprotect, vec![rule(&[only(2, all)])?]);
    let moves = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    rules.insert(libc::SYS_mremap, vec![rule(&[only(3, moves)])?]);
    let advice = ADVICE.iter().map(|&advice| rule(&[is(2, advice)])).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_madvise, advice);
    let futex = FUTEX_OPS.iter().map(|&op| rule(&[is(1, op)])).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_futex, futex);
    rules.insert(libc::SYS_clock_gettime, vec![rule(&[(0, Op::Le, CLOCK_MAX)])?]);
    rules.insert(libc::SYS_sendto, vec![socket_call()?]);
    rules.insert(libc::SYS_recvfrom, vec![socket_call()?]);
    let own = (0, Op::Eq, u64::from(PID_SENTINEL));
    rules.insert(libc::SYS_tgkill, vec![rule(&[own])?]);
    Ok(rules)
}
