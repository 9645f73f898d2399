//! Foreign programs (a type checker, a bundler, a command of an agent's) in a
//! jail of their own profile: a file tree made of nothing but what is named, no
//! network, no user of this machine, few system calls, limits. Unlike a worker's
//! layers, none of these may be missing: a program that was not written for the
//! jail would notice nothing. What happens inside until the program runs is in
//! `inside`, its system calls in `filter`, its file tree in `tree`.

mod filter;
mod inside;
mod kept;
mod tree;

pub(crate) use inside::main;
pub use kept::Kept;

use crate::control::Hello;
use crate::error::JailError;
use crate::jail::{Inner, Jail, closed};
use crate::limits::{BOOT_DEADLINE, HELLO_MAX};
use crate::process::Process;
use crate::role::{EXIT_BOOT, PROGRAM};
use crate::sys::{self, Reaped};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// What is run, and in what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Path of the program, as it sees itself.
    pub exe: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Files and folders of this machine it may read and execute.
    pub shown: Vec<Shown>,
    /// Symbolic links: where, and to what.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files made for it, readable: where, and their bytes.
    #[serde(skip)]
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Its working directory: writable, gone with it.
    pub scratch: PathBuf,
    /// What lies in the working directory at the start, writable: where in it,
    /// and the bytes.
    #[serde(skip)]
    pub seeds: Vec<(PathBuf, Vec<u8>)>,
    /// What it may use.
    pub limits: ProgramLimits,
}

/// A file or folder of this machine, read-only in the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Where it is on this machine, absolute.
    pub from: PathBuf,
    /// Where the program sees it, absolute.
    pub at: PathBuf,
}

/// What a program and all its children may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramLimits {
    /// From start to end.
    pub wall: Duration,
    /// CPU time of one process, whole seconds.
    pub cpu_seconds: u64,
    /// Private writable memory of one process, bytes (RLIMIT_DATA).
    pub data_bytes: u64,
    /// Processes and threads alive at the same time.
    pub processes: u64,
    /// Everything it keeps in its scratch directory, bytes.
    pub scratch_bytes: u64,
    /// Standard output and standard error, bytes each.
    pub output_bytes: usize,
    /// What is read beyond that and dropped, bytes each; a program that says
    /// more is ended.
    pub dropped_bytes: usize,
    /// Files brought back from the working directory after its end.
    pub kept_files: usize,
    /// Their bytes, all together.
    pub kept_bytes: usize,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(20),
            cpu_seconds: 20,
            data_bytes: 1024 * 1024 * 1024,
            processes: 64,
            scratch_bytes: 64 * 1024 * 1024,
            output_bytes: 1024 * 1024,
            dropped_bytes: 0,
            kept_files: 0,
            kept_bytes: 0,
        }
    }
}

/// How a program ended, and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Its exit code; 128 and the number of the signal that ended it.
    pub code: i32,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// It wrote more to standard output than is kept.
    pub stdout_cut: bool,
    /// It wrote more to standard error than is kept.
    pub stderr_cut: bool,
    /// What it left in its working directory, as far as that is brought back.
    pub kept: Kept,
}

/// Why there is no end of a program's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No process could be made.
    #[error("{0}")]
    Jail(#[from] JailError),
    /// A layer of the profile does not hold on this machine, or a file is not there.
    #[error("the program cannot be jailed here: {0}")]
    Unavailable(String),
    /// Wall time ran out; it was killed.
    #[error("it took longer than {} s and was ended", .0.as_secs())]
    Timeout(Duration),
    /// It wrote more than it may; it was killed.
    #[error("it wrote more than {0} bytes and was ended")]
    Output(usize),
}

impl Jail {
    /// Runs a program to its end, with `stdin` as its standard input.
    pub async fn program(
        &self,
        program: &Program,
        stdin: &[u8],
    ) -> Result<ProgramEnd, ProgramError> {
        let limits = &program.limits;
        let started = start(self.inner(), program).await?;
        let Started { control, stdin: mut input, stdout, stderr, kept, end, leash } = started;
        let feed = async {
            // A program that does not read its input closes it early.
            let _ = input.write_all(stdin).await;
            drop(input);
        };
        let run = async {
            // What says too much is ended at once, not when it has ended by itself.
            let said = async {
                tokio::try_join!(heard(stdout, limits), heard(stderr, limits), left(kept, program))
            };
            let ((), said, hello) = tokio::join!(feed, said, complaint(control));
            if let Some(reason) = hello {
                return Err(ProgramError::Unavailable(reason));
            }
            let ((stdout, stdout_cut), (stderr, stderr_cut), kept) = said?;
            let reaped = end.await.map_err(|_| JailError::Closed)?;
            match reaped.code {
                Some(EXIT_BOOT) => Err(ProgramError::Unavailable("it ended before it ran".into())),
                Some(code) => Ok(ProgramEnd { code, stdout, stderr, stdout_cut, stderr_cut, kept }),
                // Its supervisor ends by a signal only when the jail sends one.
                None => Err(JailError::Closed.into()),
            }
        };
        let outcome = tokio::time::timeout(limits.wall, run).await;
        drop(leash);
        outcome.unwrap_or(Err(ProgramError::Timeout(limits.wall)))
    }
}

struct Started {
    control: OwnedFd,
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    /// What is brought back of its working directory.
    kept: pipe::Receiver,
    end: oneshot::Receiver<Reaped>,
    /// Kills what runs when it is dropped.
    leash: oneshot::Sender<Infallible>,
}

async fn start(jail: &Arc<Inner>, program: &Program) -> Result<Started, ProgramError> {
    let text = |error: std::io::Error| JailError::Launch(error.to_string());
    let payload = inside::payload(program).map_err(text)?;
    let length = payload.len().to_string();
    let payload = sys::sealed_memfd(c"program", &payload).map_err(text)?;
    let (control, theirs) = sys::message_pair().map_err(text)?;
    let (stdin_theirs, stdin) = std::io::pipe().map_err(text)?;
    let (stdout, stdout_theirs) = std::io::pipe().map_err(text)?;
    let (stderr, stderr_theirs) = std::io::pipe().map_err(text)?;
    let (kept, kept_theirs) = std::io::pipe().map_err(text)?;
    let arguments: Vec<OsString> = vec![PROGRAM.into(), length.into()];
    let pidfd = jail.start(arguments, theirs, payload).await?;
    let process = Process::new(pidfd).map_err(text)?;
    let (leash, dropped) = oneshot::channel();
    let (publish, end) = oneshot::channel();
    let mut closing = jail.closing();
    jail.spawn(async move {
        tokio::select! {
            _ = process.ended() => {}
            _ = dropped => process.kill(),
            () = closed(&mut closing) => process.kill(),
        }
        match process.reap().await {
            Ok(reaped) => drop(publish.send(reaped)),
            Err(error) => tracing::error!(%error, "a jailed program could not be reaped"),
        }
    });
    let streams = [
        stdin_theirs.as_raw_fd(),
        stdout_theirs.as_raw_fd(),
        stderr_theirs.as_raw_fd(),
        kept_theirs.as_raw_fd(),
    ];
    sys::send_message(control.as_fd(), b"go", &streams).map_err(text)?;
    Ok(Started {
        control,
        stdin: pipe::Sender::from_owned_fd(stdin.into()).map_err(text)?,
        stdout: pipe::Receiver::from_owned_fd(stdout.into()).map_err(text)?,
        stderr: pipe::Receiver::from_owned_fd(stderr.into()).map_err(text)?,
        kept: pipe::Receiver::from_owned_fd(kept.into()).map_err(text)?,
        end,
        leash,
    })
}

/// The beginning of what a program says, and whether it said more.
async fn heard(
    mut stream: impl AsyncRead + Unpin,
    limits: &ProgramLimits,
) -> Result<(Vec<u8>, bool), ProgramError> {
    let most = limits.output_bytes;
    let broke = |error: std::io::Error| JailError::Launch(error.to_string());
    let mut bytes = Vec::new();
    (&mut stream).take(most as u64).read_to_end(&mut bytes).await.map_err(broke)?;
    if bytes.len() < most {
        return Ok((bytes, false));
    }
    let mut rest = stream.take(limits.dropped_bytes as u64 + 1);
    let dropped = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map_err(broke)?;
    match dropped > limits.dropped_bytes as u64 {
        true => Err(ProgramError::Output(most)),
        false => Ok((bytes, dropped > 0)),
    }
}

/// What was left in the working directory, read no further than it may go.
async fn left(stream: impl AsyncRead + Unpin, program: &Program) -> Result<Kept, ProgramError> {
    let mut bytes = Vec::new();
    let most = kept::most_bytes(program) as u64;
    let read = stream.take(most).read_to_end(&mut bytes).await;
    read.map_err(|error| JailError::Launch(error.to_string()))?;
    kept::read(&bytes, program).map_err(|why| JailError::Launch(why.into()).into())
}

/// Why the program never ran; `None` once it runs, which closes the socket.
async fn complaint(control: OwnedFd) -> Option<String> {
    let said = async {
        let control = sys::watch(control).map_err(|error| error.to_string())?;
        let mut bytes = [0; HELLO_MAX];
        loop {
            let mut ready = control.readable().await.map_err(|error| error.to_string())?;
            match sys::receive_message(control.get_ref().as_fd(), &mut bytes) {
                Ok((0, _)) => return Ok(None),
                Ok((length, _)) => return Ok(Some(bytes[..length].to_vec())),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    match tokio::time::timeout(BOOT_DEADLINE, said).await {
        Ok(Ok(None)) => None,
        Ok(Ok(Some(hello))) => match serde_json::from_slice(&hello) {
            Ok(Hello::Failed(reason)) => Some(reason),
            Ok(Hello::Up(_)) | Err(_) => Some("it said what it must not say".into()),
        },
        Ok(Err(reason)) => Some(reason),
        Err(_) => Some("it did not start in time".into()),
    }
}
