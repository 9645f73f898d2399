//! A program's process until the program runs. Three of them: a supervisor (the
//! engine's child), the first process of a pid namespace (which a program must
//! not be: it would ignore signals and owe reaping), and the program. The death
//! of either of the first ends the whole namespace.

use super::{Program, filter, kept, tree};
use crate::control::Hello;
use crate::layers::{self, Applied};
use crate::role::EXIT_BOOT;
use crate::sys::{self, Forked};
use crate::zygote::{FIRST, SECOND};
use serde::{Deserialize, Serialize};
use std::io::{Error, Result as IoResult};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What the payload holds ahead of the files' bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    program: Program,
    files: Vec<(PathBuf, usize)>,
    seeds: Vec<(PathBuf, usize)>,
}

/// Where the first process keeps the way out for what is brought back.
const KEPT: RawFd = 1;

/// The layers that must hold; without one the program does not run.
const REQUIRED: [&str; 4] =
    ["user_namespace", "network_namespace", "mount_namespace", "ipc_namespace"];

/// A program as it crosses to its process: length of the head, head, files.
pub(super) fn payload(program: &Program) -> IoResult<Vec<u8>> {
    let lengths = |files: &[(PathBuf, Vec<u8>)]| {
        files.iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect()
    };
    let (files, seeds) = (lengths(&program.files), lengths(&program.seeds));
    let head = serde_json::to_vec(&Head { program: program.clone(), files, seeds })?;
    let length = u32::try_from(head.len()).map_err(Error::other)?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&head);
    for (_, file) in program.files.iter().chain(&program.seeds) {
        bytes.extend_from_slice(file);
    }
    Ok(bytes)
}

fn read(bytes: &[u8]) -> Result<Program, String> {
    let short = || "the payload is cut".to_owned();
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, mut rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let Head { mut program, files, seeds } =
        serde_json::from_slice(head).map_err(|error| error.to_string())?;
    for (into, lengths) in [(&mut program.files, files), (&mut program.seeds, seeds)] {
        for (path, length) in lengths {
            let (file, after) = rest.split_at_checked(length).ok_or_else(short)?;
            into.push((path, file.to_vec()));
            rest = after;
        }
    }
    Ok(program)
}

/// Runs the role: the supervisor's life. Returns its exit code.
pub(crate) fn main(length: usize) -> ExitCode {
    let control = sys::adopt(FIRST);
    let code = match supervise(length, &control) {
        Ok(code) => code,
        Err(reason) => {
            if let Ok(hello) = serde_json::to_vec(&Hello::Failed(reason)) {
                // The engine sees the exit code when this fails.
                let _ = sys::send_message(control.as_fd(), &hello, &[]);
            }
            EXIT_BOOT
        }
    };
    sys::exit_now(code)
}

fn at(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

fn supervise(length: usize, control: &OwnedFd) -> Result<i32, String> {
    sys::default_signals();
    if sys::threads() != 1 {
        return Err("something started a thread".into());
    }
    layers::taken_first();
    let payload = sys::adopt(SECOND);
    let program = read(sys::map_forever(payload.as_fd(), length).map_err(at("the payload"))?)?;
    drop(payload);
    let mut word = [0; 8];
    let (_, streams) =
        sys::receive_message(control.as_fd(), &mut word).map_err(at("the control socket"))?;
    let [stdin, stdout, stderr, kept] = <[OwnedFd; 4]>::try_from(streams)
        .map_err(|streams| format!("{} streams came instead of four", streams.len()))?;

    let root = tree::root(&program)?;
    // As root the tree is made with root's right to read it, before root is left.
    let privileged = sys::effective_uid() == 0 && sys::unshare(libc::CLONE_NEWNS).is_ok();
    let mut unplaced = Vec::new();
    if privileged {
        unplaced = tree::build(&program, root)?;
    }
    layers::leave_root().map_err(at("leaving root"))?;
    let mut applied = Applied::default();
    layers::enter_namespaces(&mut applied);
    if let Some(missing) = REQUIRED.iter().find(|layer| !applied.holds(layer)) {
        let reports = applied.into_reports();
        let why = reports.iter().find(|report| report.layer == **missing);
        return Err(format!("{missing}: {}", why.map_or("", |report| &report.detail)));
    }
    if !privileged {
        unplaced = tree::build(&program, root)?;
    }
    tree::enter(root).map_err(at("entering the file tree"))?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map_err(at("no_new_privs"))?;
    sys::unshare(libc::CLONE_NEWPID).map_err(at("pid_namespace"))?;
    let filter = filter::Filter::compile()?;
    match sys::fork(false).map_err(at("fork"))? {
        Forked::Child => {
            let streams = [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()];
            match first(&program, &unplaced, filter, streams, &kept) {
                Ok(code) => sys::exit_now(code),
                Err(reason) => Err(reason),
            }
        }
        Forked::Parent(child) => {
            drop((stdin, stdout, stderr, kept));
            // Only the others may still speak on it.
            sys::dup_to(0, FIRST).map_err(at("the control socket"))?;
            // A bounding set that stays (an ordinary user's) is empty of use here.
            let _ = layers::drop_capabilities();
            sys::die_with_parent().map_err(at("the death signal"))?;
            sys::wait_code(child.as_fd()).map_err(at("waiting"))
        }
    }
}

/// The first process of the pid namespace: waits for the program, ends whatever
/// it left running and hands out what it left lying.
fn first(
    program: &Program,
    unplaced: &[PathBuf],
    filter: filter::Filter,
    streams: [RawFd; 3],
    kept: &OwnedFd,
) -> Result<i32, String> {
    let _ = layers::drop_capabilities();
    sys::die_with_parent().map_err(at("the death signal"))?;
    match sys::fork(false).map_err(at("fork"))? {
        Forked::Child => Err(run(program, filter, streams)),
        Forked::Parent(child) => {
            sys::dup_to(child.as_raw_fd(), 0).map_err(at("a descriptor"))?;
            // Closed with all others below; its copy stays.
            std::mem::forget(child);
            sys::dup_to(kept.as_raw_fd(), KEPT).map_err(at("a descriptor"))?;
            sys::close_from(KEPT + 1, false).map_err(at("closing descriptors"))?;
            sys::prctl(libc::PR_SET_DUMPABLE, 0, 0).map_err(at("dumpable"))?;
            // Orphans that end before the program wait for the namespace's end.
            let code = sys::wait_code(sys::adopt(0).as_fd()).map_err(at("waiting"))?;
            let out = sys::adopt(KEPT);
            if program.limits.kept_files > 0 {
                // Nothing may change while it is read.
                sys::end_all_others().map_err(at("ending what was left"))?;
                kept::write(program, unplaced, out);
            }
            Ok(code)
        }
    }
}

/// Becomes the program; returns only with the reason why not.
fn run(program: &Program, filter: filter::Filter, streams: [RawFd; 3]) -> String {
    let limited = || -> Result<(), String> {
        let limits = &program.limits;
        for (place, stream) in (0..).zip(streams) {
            sys::dup_to(stream, place).map_err(at("a stream"))?;
        }
        // The control socket closes with the exec, which tells the engine.
        sys::close_from(FIRST, true).map_err(at("closing descriptors"))?;
        for (resource, value) in [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
            (libc::RLIMIT_NOFILE, 256),
            (libc::RLIMIT_FSIZE, limits.scratch_bytes),
            (libc::RLIMIT_NPROC, limits.processes),
            (libc::RLIMIT_CPU, limits.cpu_seconds),
            (libc::RLIMIT_DATA, limits.data_bytes),
        ] {
            sys::rlimit(resource, value).map_err(at("a limit"))?;
        }
        tree::restrict(&program.scratch)?;
        std::env::set_current_dir(&program.scratch).map_err(at("the scratch directory"))?;
        sys::die_with_parent().map_err(at("the death signal"))?;
        filter.apply()
    };
    if let Err(reason) = limited() {
        return reason;
    }
    let environment = program.environment.iter().map(|(name, value)| (name, value));
    let failed =
        Command::new(&program.exe).args(&program.arguments).env_clear().envs(environment).exec();
    format!("{} cannot be run: {failed}", program.exe.display())
}
