//! The zygote: a jailed, single-threaded process that boots its guest once and
//! forks one child per run. The order below was found by trial and each step
//! says what it must precede. On the exec path the same process forks first and
//! its one worker boots by itself. What the child does until its guest runs is
//! here too; the engine's side is in `zygotes.rs`.

use crate::control::{self, Hello};
use crate::frames;
use crate::guest::{Guest, Payload, WorkerSide, send_failed};
use crate::init::{self, Init};
use crate::layers::filter::Filter;
use crate::layers::{self, Applied};
use crate::limits::WorkerLimits;
use crate::role::{EXIT_BOOT, OneshotFn};
use crate::sys::{self, Forked};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Control socket of a zygote; job socket of a worker.
pub(crate) const FIRST: RawFd = 3;
/// Payload of a zygote; fetch socket of a worker.
pub(crate) const SECOND: RawFd = 4;

/// When the guest boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// Before the fork, once for all.
    Early,
    /// In the worker: the exec path.
    Late,
}

/// What a zygote serves: a guest, or one named function.
pub(crate) trait Entry: Sized {
    /// What the role's arguments say.
    type Told;
    /// Brings it up.
    fn boot(told: Self::Told, payload: Payload) -> Result<Self, String>;
    /// Serves one run in a process of its own.
    fn run(self, worker: WorkerSide) -> i32;
}

/// A zygote of a guest.
pub(crate) struct GuestEntry<G>(G);

impl<G: Guest> Entry for GuestEntry<G> {
    type Told = ();

    fn boot((): (), payload: Payload) -> Result<Self, String> {
        G::boot(payload).map(Self)
    }

    fn run(self, worker: WorkerSide) -> i32 {
        self.0.run(worker)
    }
}

/// A zygote of a one-shot function.
pub(crate) struct OneshotEntry(OneshotFn);

impl Entry for OneshotEntry {
    type Told = (String, Option<OneshotFn>);

    fn boot((name, function): Self::Told, _: Payload) -> Result<Self, String> {
        if name == crate::doctor::PROBE {
            return Ok(Self(crate::doctor::probe));
        }
        function.map(Self).ok_or_else(|| format!("no one-shot function `{name}`"))
    }

    fn run(self, worker: WorkerSide) -> i32 {
        let (job, fetch, lock) = worker.into_parts();
        drop(fetch);
        match serve_oneshot(self.0, job, lock) {
            Ok(()) => 0,
            Err(_) => EXIT_BOOT,
        }
    }
}

/// Blocking reads and writes: this process has nothing else to wait for.
fn serve_oneshot(
    function: OneshotFn,
    mut job: UnixStream,
    lock: crate::guest::Lock,
) -> std::io::Result<()> {
    job.set_nonblocking(false)?;
    if let Err(reason) = lock.close() {
        return send_failed(&mut job, &reason);
    }
    job.write_all(&[1, 0, 0, 0, frames::READY])?;
    let mut head = [0; 5];
    job.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if head[4] != frames::ONESHOT_INPUT || length == 0 {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut input = vec![0; length - 1];
    job.read_exact(&mut input)?;
    let output = function(&input);
    let length = u32::try_from(output.len() + 1).map_err(std::io::Error::other)?;
    job.write_all(&length.to_le_bytes())?;
    job.write_all(&[frames::ONESHOT_OUTPUT])?;
    job.write_all(&output)
}

/// Runs the role. Returns only when the process is to end.
pub(crate) fn main<E: Entry>(boot: Boot, length: usize, told: E::Told) -> Option<ExitCode> {
    let control = sys::adopt(FIRST);
    match prepare(boot, length, told, &control) {
        Ok(ready) => serve::<E>(ready, &control),
        Err(reason) => {
            say(&control, &Hello::Failed(reason));
            Some(ExitCode::from(EXIT_BOOT as u8))
        }
    }
}

struct Ready<E: Entry> {
    entry: Slot<E>,
    filter: Filter,
    init: Option<Init>,
}

/// A guest that is up, or what it takes to boot it.
enum Slot<E: Entry> {
    Booted(E),
    Later { told: E::Told, payload: Payload, own_mounts: bool },
}

fn prepare<E: Entry>(
    boot: Boot,
    length: usize,
    told: E::Told,
    control: &OwnedFd,
) -> Result<Ready<E>, String> {
    let text = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let mut applied = Applied::default();
    sys::default_signals();
    if sys::threads() != 1 {
        return Err("a zygote must have one thread; something started another".into());
    }
    std::env::set_current_dir("/").map_err(text("chdir"))?;
    applied.note(
        "rlimits",
        "no core, no file growth, few descriptors; memory and CPU per worker",
        "raise the hard limits of the service",
        layers::zygote_limits(),
    );
    // Where only uid 0 is mapped (a rootless container) this fails, and the user
    // namespace below gives another uid; the last step insists on one of both.
    applied.note(
        "ordinary_user",
        "it is not root outside either",
        "map a second user id into the container, or start the server as an ordinary user",
        layers::leave_root(),
    );
    layers::enter_namespaces(&mut applied);
    applied.note(
        "no_new_privs",
        "no set-uid binary helps",
        "use a kernel from 3.5 on",
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop),
    );
    let own_mounts = applied.holds("mount_namespace");
    let payload = map_payload(length).map_err(text("mapping the payload"))?;
    applied.note(
        "seccomp",
        "two dozen system calls are left, the rest kill",
        "use a kernel with CONFIG_SECCOMP_FILTER",
        sys::seccomp_kill_known(),
    );
    let filter = match applied.holds("seccomp") {
        true => Filter::compile()?,
        false => Filter::default(),
    };
    let (entry, init) = match boot {
        Boot::Early => {
            let entry = E::boot(told, payload)?;
            if sys::threads() != 1 {
                return Err("the boot started a thread".into());
            }
            // The maps are hidden once the files are closed.
            layers::prepare_for_forks().map_err(text("reading the own maps"))?;
            layers::seal(&mut applied, own_mounts);
            // Only now: an init forked earlier would not be under Landlock.
            let init = init::enter_pid_namespace(&mut applied);
            (Slot::Booted(entry), init)
        }
        Boot::Late => {
            // The worker must not be pid 1 (it would ignore its own SIGABRT), so
            // the init comes first and seals itself.
            let init = init::enter_pid_namespace(&mut applied);
            (Slot::Later { told, payload, own_mounts }, init)
        }
    };
    if boot == Boot::Early {
        finish_identity(&mut applied)?;
    }
    let report = applied.into_reports();
    say(control, &Hello::Up(report));
    Ok(Ready { entry, filter, init })
}

/// Capabilities go last; credential changes clear the parent's death signal, so
/// it is set anew.
fn finish_identity(applied: &mut Applied) -> Result<(), String> {
    applied.note(
        "capabilities",
        "every set is empty, the bounding set too",
        "run the server as an ordinary user with user namespaces, or as root",
        layers::drop_capabilities(),
    );
    let text = |error: std::io::Error| error.to_string();
    if sys::effective_uid() == 0 {
        return Err("a jailed process would still be uid 0: start the server as an ordinary \
                    user, or map a second user id into its container"
            .into());
    }
    sys::prctl(libc::PR_SET_DUMPABLE, 0, 0).map_err(text)?;
    sys::die_with_parent().map_err(text)?;
    if sys::hung_up(FIRST) {
        sys::exit_now(EXIT_BOOT);
    }
    Ok(())
}

/// Maps the payload and leaves the null device in its place, so that received
/// descriptors never land on the fixed numbers.
fn map_payload(length: usize) -> std::io::Result<Payload> {
    let fd = sys::adopt(SECOND);
    let bytes = sys::map_forever(fd.as_fd(), length)?;
    sys::dup_to(0, SECOND)?;
    std::mem::forget(fd);
    Ok(Payload::new(bytes))
}

fn say(control: &OwnedFd, hello: &Hello) {
    if let Ok(bytes) = serde_json::to_vec(hello) {
        // The engine sees a closed socket when this fails.
        let _ = sys::send_message(control.as_fd(), &bytes, &[]);
    }
}

/// Forks one child per request until the engine closes the control socket.
fn serve<E: Entry>(ready: Ready<E>, control: &OwnedFd) -> Option<ExitCode> {
    let Ready { entry, filter, init } = ready;
    let mut entry = Some(entry);
    let code = loop {
        let mut bytes = [0; control::FORK_BYTES + 1];
        let Ok((length, fds)) = sys::receive_message(control.as_fd(), &mut bytes) else {
            break EXIT_BOOT;
        };
        if length == 0 {
            break 0;
        }
        let request = control::parse_fork_request(&bytes[..length]);
        let (Some(limits), [job, fetch]) = (request, &fds[..]) else {
            break EXIT_BOOT;
        };
        let late = matches!(entry, Some(Slot::Later { .. }));
        if entry.is_none() {
            // The exec path serves one run.
            break EXIT_BOOT;
        }
        match sys::fork(true) {
            Ok(Forked::Child) => {
                let (job, fetch) = (job.as_raw_fd(), fetch.as_raw_fd());
                // The numbers are replaced and closed by the child itself.
                std::mem::forget((fds, init));
                let Some(entry) = entry else { sys::exit_now(EXIT_BOOT) };
                sys::exit_now(child(entry, filter, job, fetch, &limits))
            }
            Ok(Forked::Parent(pidfd)) => {
                drop(fds);
                answer(control, 0, Some(pidfd.as_fd()));
                if late {
                    entry = None;
                    // What is left only waits for the end; it needs nothing.
                    let _ = layers::restrict_files();
                    let _ = layers::drop_capabilities();
                    let _ = sys::prctl(libc::PR_SET_DUMPABLE, 0, 0);
                    let _ = sys::die_with_parent();
                }
            }
            Err(error) => {
                drop(fds);
                answer(control, error.raw_os_error().unwrap_or(libc::EIO), None);
            }
        }
    };
    if let Some(init) = init {
        init.end();
    }
    sys::exit_now(code)
}

fn answer(control: &OwnedFd, errno: i32, pidfd: Option<BorrowedFd<'_>>) {
    let fds: Vec<RawFd> = pidfd.iter().map(AsRawFd::as_raw_fd).collect();
    let _ = sys::send_message(control.as_fd(), &errno.to_le_bytes(), &fds);
}

/// The forked worker, up to its guest.
fn child<E: Entry>(
    slot: Slot<E>,
    filter: Filter,
    job: RawFd,
    fetch: RawFd,
    limits: &WorkerLimits,
) -> i32 {
    let placed = sys::dup_to(job, FIRST)
        .and_then(|()| sys::dup_to(fetch, SECOND))
        .and_then(|()| sys::close_from(SECOND + 1, false));
    if placed.is_err() {
        return EXIT_BOOT;
    }
    let mut job = UnixStream::from(sys::adopt(FIRST));
    let fetch = UnixStream::from(sys::adopt(SECOND));
    let entry = match slot {
        Slot::Booted(entry) => Ok(entry),
        Slot::Later { told, payload, own_mounts } => E::boot(told, payload).and_then(|entry| {
            let mut applied = Applied::default();
            layers::seal(&mut applied, own_mounts);
            finish_identity(&mut applied).map(|()| entry)
        }),
    };
    let limited = sys::prctl(libc::PR_SET_DUMPABLE, 0, 0)
        .and_then(|_| sys::die_with_parent())
        .and_then(|()| layers::worker_limits(limits));
    // An engine that died before the death signal was set has closed its end.
    if sys::hung_up(FIRST) {
        return EXIT_BOOT;
    }
    match (entry, limited) {
        (Ok(entry), Ok(())) => entry.run(WorkerSide::new(job, fetch, filter)),
        (Err(reason), _) => {
            let _ = send_failed(&mut job, &reason);
            EXIT_BOOT
        }
        (_, Err(error)) => {
            let _ = send_failed(&mut job, &error.to_string());
            EXIT_BOOT
        }
    }
}
