//! One worker as its driver holds it: the job socket in frames, the fetch
//! socket, and the leash. Whoever holds the leash can kill the process and learn
//! how it ended; dropping it kills. A task of the jail watches the CPU clock,
//! reaps the process and publishes the end.

use crate::error::JailError;
use crate::exit::{Exit, Killed};
use crate::frames::{self, FrameLimits, FrameReader, FrameWriter};
use crate::jail::{Inner, closed};
use crate::limits::{CPU_LOOK, READY_DEADLINE, READY_PAYLOAD, WorkerLimits, ZYGOTE_NEWS};
use crate::process::Process;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

/// What a worker says on its job socket.
pub type JobReader = FrameReader<OwnedReadHalf>;
/// What a worker is told on its job socket.
pub type JobWriter = FrameWriter<OwnedWriteHalf>;

/// How a worker came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Forked from a warm zygote.
    Zygote,
    /// Started afresh.
    Exec,
}

/// A process that is locked and ready for one job.
#[derive(Debug)]
pub struct Worker {
    reader: JobReader,
    writer: JobWriter,
    fetch: UnixStream,
    leash: Leash,
}

impl Worker {
    /// Job socket (set its limits before reading), fetch socket and leash.
    pub fn into_parts(self) -> (JobReader, JobWriter, UnixStream, Leash) {
        (self.reader, self.writer, self.fetch, self.leash)
    }

    /// The leash.
    pub fn leash(&self) -> &Leash {
        &self.leash
    }

    pub(crate) fn new(job: UnixStream, fetch: UnixStream, leash: Leash) -> Self {
        let (reader, writer) = job.into_split();
        let limits = FrameLimits { payload: READY_PAYLOAD, frames: 1, bytes: READY_PAYLOAD as u64 };
        let (reader, writer) = (FrameReader::new(reader, limits), FrameWriter::new(writer));
        Self { reader, writer, fetch, leash }
    }

    /// It died already: in the pool, it may have.
    pub(crate) fn has_ended(&self) -> bool {
        self.leash.process.has_ended()
    }

    /// Waits until it is locked; from here its CPU limit counts.
    pub(crate) async fn ready(mut self) -> Result<Self, JailError> {
        let frame =
            tokio::time::timeout(READY_DEADLINE, self.reader.next()).await.map_err(|_| {
                JailError::Deadline { what: "a worker's boot", seconds: READY_DEADLINE.as_secs() }
            })??;
        match frame {
            // Its last word is the reason, whether or not its end was seen first.
            Some(frame) if frame.kind == frames::FAILED => {
                Err(JailError::Boot(String::from_utf8_lossy(&frame.payload).into_owned()))
            }
            // It may have said so long ago and died in the pool.
            Some(_) if self.has_ended() => {
                let exit = self.leash.ended().await;
                Err(JailError::Boot(format!("it ended while it waited: {:?}", exit.verdict())))
            }
            Some(frame) if frame.kind == frames::READY && frame.payload.is_empty() => {
                let used = u64::try_from(self.leash.process.cpu().as_nanos()).unwrap_or(0);
                self.leash.shared.base_ns.store(used, Ordering::Relaxed);
                Ok(self)
            }
            Some(frame) => Err(frames::FrameError::Kind(frame.kind).into()),
            None => {
                // It has ended, or it closed its socket and will get no job.
                self.leash.kill();
                let exit = self.leash.ended().await;
                Err(JailError::Boot(format!("it ended at once: {:?}", exit.verdict())))
            }
        }
    }
}

/// Holds a worker's process.
#[derive(Debug)]
pub struct Leash {
    process: Arc<Process>,
    shared: Arc<Shared>,
    exit: watch::Receiver<Option<Exit>>,
    origin: Origin,
}

/// What leash and watcher both know.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Who killed it: 0 nobody, else a [`Killed`] plus one.
    killed: AtomicU8,
    /// CPU time at ready, nanoseconds.
    base_ns: AtomicU64,
    /// The version it serves.
    version: OnceLock<String>,
}

impl Shared {
    fn kill(&self, process: &Process, why: Killed) {
        self.note(why);
        process.kill();
    }

    /// The first reason stands.
    fn note(&self, why: Killed) {
        let code = match why {
            Killed::Cpu => 1,
            Killed::Caller => 2,
            Killed::Shutdown => 3,
            Killed::Zygote => 4,
        };
        let _ = self.killed.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn killed(&self) -> Option<Killed> {
        match self.killed.load(Ordering::Relaxed) {
            1 => Some(Killed::Cpu),
            2 => Some(Killed::Caller),
            3 => Some(Killed::Shutdown),
            4 => Some(Killed::Zygote),
            _ => None,
        }
    }
}

impl Leash {
    /// Sends SIGKILL. Returns at once; [`Leash::ended`] tells the end.
    pub fn kill(&self) {
        self.shared.kill(&self.process, Killed::Caller);
    }

    /// Waits until the process has ended and is reaped.
    pub async fn ended(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.clone(),
            Err(_) => None,
        }
        // The watcher always publishes before it goes, unless its runtime was
        // torn down; then nobody can know.
        .unwrap_or(Exit {
            code: None,
            signal: Some(libc::SIGKILL),
            killed: Some(Killed::Shutdown),
            cpu: Duration::ZERO,
            max_rss: 0,
            limits: WorkerLimits::default(),
        })
    }

    /// CPU time since ready, as of now.
    pub fn cpu(&self) -> Duration {
        let base = Duration::from_nanos(self.shared.base_ns.load(Ordering::Relaxed));
        self.process.cpu().saturating_sub(base)
    }

    /// Its pid, for diagnosis only: signals go through the leash.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// How it came to be.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn serve(&self, version: &str) {
        let _ = self.shared.version.set(version.to_owned());
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the watcher of one worker needs.
pub(crate) struct Watch {
    pub(crate) jail: Arc<Inner>,
    pub(crate) limits: WorkerLimits,
    pub(crate) origin: Origin,
    /// Set when the zygote must not serve any more.
    pub(crate) crashed: Arc<AtomicBool>,
    /// Dropped at the end: the zygote's keeper counts its children by it.
    pub(crate) alive: mpsc::Sender<Infallible>,
    /// Its zygote: when that ends, the kernel ends this worker.
    pub(crate) zygote: Arc<Process>,
}

/// Puts a process on a leash and starts its watcher.
pub(crate) fn leash(process: Process, watch: Watch) -> Leash {
    let (publish, exit) = watch::channel(None);
    let process = Arc::new(process);
    let shared = Arc::new(Shared::default());
    let leash =
        Leash { process: process.clone(), shared: shared.clone(), exit, origin: watch.origin };
    let jail = watch.jail.clone();
    jail.spawn(watch_worker(process, shared, publish, watch));
    leash
}

async fn watch_worker(
    process: Arc<Process>,
    shared: Arc<Shared>,
    publish: watch::Sender<Option<Exit>>,
    watch: Watch,
) {
    let mut closing = watch.jail.closing();
    let mut pause = watch.limits.cpu.max(CPU_LOOK);
    loop {
        tokio::select! {
            _ = process.ended() => break,
            _ = tokio::time::sleep(pause) => {
                let base = Duration::from_nanos(shared.base_ns.load(Ordering::Relaxed));
                let used = process.cpu().saturating_sub(base);
                if used >= watch.limits.cpu {
                    shared.kill(&process, Killed::Cpu);
                }
                // One thread: CPU time never runs faster than the clock.
                pause = watch.limits.cpu.saturating_sub(used).max(CPU_LOOK);
            }
            () = closed(&mut closing) => {
                shared.kill(&process, Killed::Shutdown);
                break;
            }
        }
    }
    let exit = match process.reap().await {
        Ok(reaped) => {
            let unknown = reaped.signal == Some(libc::SIGKILL) && shared.killed().is_none();
            if unknown && tokio::time::timeout(ZYGOTE_NEWS, watch.zygote.ended()).await.is_ok() {
                shared.note(Killed::Zygote);
            }
            Exit {
                code: reaped.code,
                signal: reaped.signal,
                killed: shared.killed(),
                cpu: reaped.cpu,
                max_rss: reaped.max_rss,
                limits: watch.limits,
            }
        }
        Err(error) => {
            tracing::error!(%error, pid = process.pid(), "a worker could not be reaped");
            return;
        }
    };
    if exit.is_suspicious() {
        tracing::warn!(signal = exit.signal, version = shared.version.get(), "a worker crashed");
        if let Some(version) = shared.version.get() {
            watch.jail.suspect(version);
        }
        watch.crashed.store(true, Ordering::Relaxed);
    }
    let _ = publish.send(Some(exit));
    drop(watch.alive);
}
