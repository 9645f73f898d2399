//! The engine's half: gets a component's artefact from the compiler and drives its
//! runs like any other.

use crate::compiler::Compiler;
use cambium_driver::{drive, report, worker_limits};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, Sandbox, Unfit};
use cambium_jail::{Jail, JailConfig, JailError, job};
use cambium_proxy::{BoxFuture, ContentHash, Session};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

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
    jail: Arc<Jail>,
    compiler: Compiler,
}

impl ComponentSandbox {
    /// Starts the jail; its zygotes start with the first run.
    pub fn start(config: ComponentConfig) -> Result<Self, JailError> {
        let jail = Arc::new(Jail::start(JailConfig {
            exe: Some(config.exe),
            payload: job::WORDS.as_bytes().into(),
            zygote: config.zygote,
            pool: 0,
            pool_limits: worker_limits(&RunLimits::default()),
            allow_weak: config.allow_weak,
            show_stderr: config.show_stderr,
            ..JailConfig::default()
        })?);
        Ok(Self { compiler: Compiler::new(jail.clone()), jail })
    }

    /// Kills what runs and waits until everything is reaped.
    pub async fn shutdown(&self) {
        self.jail.shutdown().await;
        self.compiler.stopped().await;
    }
}

impl Sandbox for ComponentSandbox {
    fn run<'a>(&'a self, mut job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let Some((digest, component)) = job.component.clone() else {
                return report(Outcome::Unavailable("the job has no component".to_owned()));
            };
            // Seldom more than a look: it was compiled when it was published. What it
            // does take is the run's own time.
            let began = Instant::now();
            let compiled = self.compiler.artefact(digest, &component);
            let compiled = tokio::select! {
                biased;
                () = session.ended() => return report(Outcome::PolicyDenied),
                compiled = timeout(job.limits.wall, compiled) => compiled,
            };
            match compiled {
                Ok(Ok(artefact)) => {
                    job.limits.wall = job.limits.wall.saturating_sub(began.elapsed());
                    drive(&self.jail, job, &artefact, session).await
                }
                Ok(Err(Unfit::Refused(reason) | Unfit::Unavailable(reason))) => {
                    report(Outcome::Unavailable(reason))
                }
                Err(_) => {
                    let text = "its component is still being compiled; call it again in a minute";
                    report(Outcome::Unavailable(text.to_owned()))
                }
            }
        })
    }

    fn prepare<'a>(
        &'a self,
        digest: ContentHash,
        component: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Unfit>> {
        let component = component.into();
        Box::pin(async move { self.compiler.artefact(digest, &component).await.map(drop) })
    }
}
