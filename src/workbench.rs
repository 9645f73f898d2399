//! The low-level set, carried out in the jail: commands in the profile of
//! foreign programs (no network, the machine's own programs read-only, one
//! writable folder), pages read by a one-shot process on the bytes alone.

use crate::checker::{READABLE, refused};
use crate::failure::Failure;
use cambium_engine::{Command, CommandEnd, CommandFault, Readable, Workbench};
use cambium_jail::{
    Jail, JailConfig, OneshotLimits, Program, ProgramEnd, ProgramError, ProgramLimits, Shown,
    WorkerLimits,
};
use cambium_proxy::BoxFuture;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a command sees of this machine, where it is there: programs and what
/// they are made of, nothing of a user's.
const SHOWN: [&str; 4] = ["/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share"];
/// Where programs and the dynamic loader are looked for.
const LINKS: [(&str, &str); 3] =
    [("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")];
/// The workspace's folder.
const FOLDER: &str = "/work";
/// Private memory of one process, bytes.
const DATA_BYTES: u64 = 512 * 1024 * 1024;
/// Processes and threads at the same time.
const PROCESSES: u64 = 32;
/// The workspace, and what a command makes beside it, bytes.
const SCRATCH_BYTES: u64 = 64 * 1024 * 1024;
/// Of each stream, bytes: what a model reads at once.
const OUTPUT_BYTES: usize = 64 * 1024;
/// Of each stream, read and dropped, bytes; then the command is ended.
const DROPPED_BYTES: usize = 16 * 1024 * 1024;
/// What is brought back: the workspace's own bounds.
const KEPT: (usize, usize) = (200, 8 * 1024 * 1024);
/// The largest page is read in well under a second.
const READ_WALL: Duration = Duration::from_secs(5);
/// Longest answer about a page, bytes: its text as JSON.
const READ_BYTES: usize = 1024 * 1024;

/// The workbench of this machine.
pub(crate) struct JailedWorkbench {
    jail: Jail,
}

impl JailedWorkbench {
    /// Makes it; what a command needs of the machine is tried with the first one.
    pub(crate) fn start() -> Result<Self, Failure> {
        // Its profile needs every layer by itself, whatever may be missing for workers.
        let config =
            JailConfig { zygote: false, allow_weak: true, pool: 0, ..JailConfig::default() };
        let jail = Jail::start(config).map_err(|error| refused(&error))?;
        Ok(Self { jail })
    }

    /// Ends its processes.
    pub(crate) async fn shutdown(&self) {
        self.jail.shutdown().await;
    }
}

impl Workbench for JailedWorkbench {
    fn run<'a>(&'a self, command: &'a Command) -> BoxFuture<'a, Result<CommandEnd, CommandFault>> {
        Box::pin(async move {
            match self.jail.program(&program(command), b"").await {
                Ok(end) => Ok(ended(end)),
                Err(ProgramError::Timeout(wall)) => Err(CommandFault::Timeout(wall)),
                Err(ProgramError::Output(_)) => Err(CommandFault::Output),
                Err(error @ (ProgramError::Jail(_) | ProgramError::Unavailable(_))) => {
                    tracing::warn!(%error, "a command was not run");
                    Err(CommandFault::Unavailable(error.to_string()))
                }
            }
        })
    }

    fn readable<'a>(&'a self, html: &'a [u8]) -> BoxFuture<'a, Result<Readable, String>> {
        Box::pin(async move {
            let limits = OneshotLimits {
                worker: WorkerLimits { cpu: READ_WALL, ..OneshotLimits::default().worker },
                wall: READ_WALL,
                output_bytes: READ_BYTES,
            };
            let read = self.jail.oneshot(READABLE, html, limits).await;
            let read = read.map_err(|error| format!("the page could not be read: {error}"))?;
            serde_json::from_slice(&read).map_err(|error| format!("the page's reader: {error}"))
        })
    }
}

fn program(command: &Command) -> Program {
    let there = |path: &&&str| Path::new(path).is_dir();
    let shown = |path: &str| Shown { from: path.into(), at: path.into() };
    let seed = |(path, text): &(String, String)| (PathBuf::from(path), text.as_bytes().to_vec());
    let environment = [("PATH", "/usr/bin"), ("HOME", FOLDER), ("LANG", "C.UTF-8")];
    Program {
        exe: "/usr/bin/sh".into(),
        arguments: vec!["-c".into(), command.text.clone()],
        environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
        shown: SHOWN.iter().filter(there).map(|path| shown(path)).collect(),
        links: LINKS.map(|(at, to)| (at.into(), to.into())).to_vec(),
        files: Vec::new(),
        scratch: FOLDER.into(),
        seeds: command.files.iter().map(seed).collect(),
        limits: ProgramLimits {
            wall: command.wall,
            cpu_seconds: command.wall.as_secs().max(1),
            data_bytes: DATA_BYTES,
            processes: PROCESSES,
            scratch_bytes: SCRATCH_BYTES,
            output_bytes: OUTPUT_BYTES,
            dropped_bytes: DROPPED_BYTES,
            kept_files: KEPT.0,
            kept_bytes: KEPT.1,
        },
    }
}

fn ended(end: ProgramEnd) -> CommandEnd {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let named = |(path, bytes): (PathBuf, Vec<u8>)| {
        // A name that is no text is no name of a workspace either.
        (path.to_string_lossy().into_owned(), bytes)
    };
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    CommandEnd {
        code: end.code,
        stdout: text(&end.stdout),
        stderr: text(&end.stderr),
        stdout_cut: end.stdout_cut,
        stderr_cut: end.stderr_cut,
        gone: paths(&end.kept.gone),
        unplaced: paths(&end.kept.unplaced),
        files: end.kept.files.into_iter().map(named).collect(),
        files_cut: end.kept.cut,
    }
}
