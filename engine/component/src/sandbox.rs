//! The engine's half: compiles a component in a jailed one-shot process the
//! first time it runs, keeps what came of it in memory, never on a disk, and
//! drives its runs like any other.

use bytes::Bytes;
use cambium_driver::{drive, report, worker_limits};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, Sandbox, Unfit};
use cambium_jail::{Jail, JailConfig, JailError, OneshotError, OneshotLimits, WorkerLimits, job};
use cambium_proxy::{BoxFuture, ContentHash, Session};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Name of the compiler among the binary's one-shot functions.
const COMPILE: &str = "compile";
/// Largest artefact, bytes: an engine for JavaScript with a tool in it has 40 MB.
const ARTEFACT_BYTES: usize = 64 * 1024 * 1024;
/// Artefacts kept in memory, bytes of all; the one used longest ago goes first.
const KEPT_BYTES: usize = 128 * 1024 * 1024;
/// A component of 12 MB, with a whole JavaScript engine in it, takes ten to twenty
/// seconds; a machine with other work takes its time.
const CPU: Duration = Duration::from_secs(60);
const WALL: Duration = Duration::from_secs(180);

/// First byte of the compiler's answer when an artefact follows; else a reason does.
const DONE: u8 = 1;

/// Artefacts by the digest of their component, the one used last at the end.
type Kept = VecDeque<(ContentHash, Bytes)>;

/// How the sandbox works.
#[derive(Debug, Clone)]
pub struct ComponentConfig {
    /// The binary of `engine/component/worker`.
    pub exe: PathBuf,
    /// Fork workers from warm zygotes; without, each is started afresh.
    pub zygote: bool,
    /// Go on without the system-call filter.
    pub allow_weak: bool,
    /// Let jailed processes write to this process's standard error.
    pub show_stderr: bool,
}

/// Runs components, each in a process that has nothing but its session.
#[derive(Debug)]
pub struct ComponentSandbox {
    jail: Jail,
    kept: Mutex<Kept>,
    /// One compiler at a time: it takes hundreds of megabytes.
    compiling: tokio::sync::Mutex<()>,
}

impl ComponentSandbox {
    /// Starts the jail; its zygotes start with the first run.
    pub fn start(config: ComponentConfig) -> Result<Self, JailError> {
        let jail = Jail::start(JailConfig {
            exe: Some(config.exe),
            payload: job::WORDS.as_bytes().into(),
            zygote: config.zygote,
            pool: 0,
            pool_limits: worker_limits(&RunLimits::default()),
            allow_weak: config.allow_weak,
            show_stderr: config.show_stderr,
            ..JailConfig::default()
        })?;
        Ok(Self { jail, kept: Mutex::default(), compiling: tokio::sync::Mutex::default() })
    }

    /// Kills what runs and waits until everything is reaped.
    pub async fn shutdown(&self) {
        self.jail.shutdown().await;
    }

    /// The artefact of a component.
    async fn compile(&self, digest: ContentHash, component: &[u8]) -> Result<Bytes, Unfit> {
        if let Some(artefact) = self.known(digest) {
            return Ok(artefact);
        }
        let _alone = self.compiling.lock().await;
        if let Some(artefact) = self.known(digest) {
            return Ok(artefact);
        }
        let limits = OneshotLimits {
            worker: WorkerLimits {
                cpu: CPU,
                data_bytes: 1536 * 1024 * 1024,
                ..OneshotLimits::default().worker
            },
            wall: WALL,
            output_bytes: ARTEFACT_BYTES + 1,
        };
        let answer = self.jail.oneshot(COMPILE, component, limits).await;
        let answer = answer.map_err(|error| match error {
            OneshotError::Jail(error) => {
                Unfit::Unavailable(format!("the compiler of components cannot start: {error}"))
            }
            error => Unfit::Refused(format!("it could not be compiled: {error}")),
        })?;
        let artefact = match answer.split_first() {
            Some((&DONE, _)) => answer.slice(1..),
            Some((_, reason)) => {
                let reason = String::from_utf8_lossy(reason);
                // What a jailed process says is hostile.
                let plain = |c: char| if c.is_control() { ' ' } else { c };
                let reason = reason.chars().map(plain).take(500).collect();
                return Err(Unfit::Refused(reason));
            }
            None => return Err(Unfit::Refused("the compiler said nothing".to_owned())),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |kept: &Kept| kept.iter().map(|(_, artefact)| artefact.len()).sum::<usize>();
        while !kept.is_empty() && held(&kept) + artefact.len() > KEPT_BYTES {
            kept.pop_front();
        }
        kept.push_back((digest, artefact.clone()));
        Ok(artefact)
    }

    fn known(&self, digest: ContentHash) -> Option<Bytes> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| *known == digest)?;
        let found = kept.remove(at)?;
        let artefact = found.1.clone();
        kept.push_back(found);
        Some(artefact)
    }
}

impl Sandbox for ComponentSandbox {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let Some((digest, component)) = job.component.clone() else {
                return report(Outcome::Unavailable("the job has no component".to_owned()));
            };
            match self.compile(digest, &component).await {
                Ok(artefact) => drive(&self.jail, job, &artefact, session).await,
                Err(Unfit::Refused(reason) | Unfit::Unavailable(reason)) => {
                    report(Outcome::Unavailable(reason))
                }
            }
        })
    }

    fn prepare<'a>(
        &'a self,
        digest: ContentHash,
        component: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Unfit>> {
        Box::pin(async move { self.compile(digest, component).await.map(drop) })
    }
}
