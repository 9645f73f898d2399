//! The engine's half: a [`Sandbox`] whose runs are processes of the jail, each
//! forked from a zygote with V8 up. How a run is driven is in `cambium_driver`;
//! here is what its processes start from.

use crate::error::IsolateError;
use crate::role::SNAPSHOT;
use cambium_driver::{drive, worker_limits};
use cambium_engine::{Job, RunLimits, RunReport, Sandbox};
use cambium_jail::{Jail, JailConfig};
use cambium_proxy::{BoxFuture, Session};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The snapshot is made in a tenth of a second on an idle machine.
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(30);

/// How the sandbox works.
#[derive(Debug, Clone)]
pub struct IsolateConfig {
    /// The binary whose `main` calls [`crate::role_main`]; `None` is this one.
    pub exe: Option<PathBuf>,
    /// Fork workers from warm zygotes; without, each is started afresh.
    pub zygote: bool,
    /// Workers kept ready per agent.
    pub pool: usize,
    /// Zygotes alive at the same time, one an agent.
    pub zygotes_max: usize,
    /// Go on without the system-call filter.
    pub allow_weak: bool,
    /// Let jailed processes write to this process's standard error.
    pub show_stderr: bool,
}

impl Default for IsolateConfig {
    fn default() -> Self {
        Self {
            exe: None,
            zygote: true,
            pool: 1,
            zygotes_max: 16,
            allow_weak: false,
            show_stderr: false,
        }
    }
}

/// Runs TypeScript tools, each in a process that has nothing but its session.
#[derive(Debug)]
pub struct IsolateSandbox {
    jail: Arc<Jail>,
}

impl IsolateSandbox {
    /// Makes the snapshot in a process of its own and starts the jail.
    pub async fn start(config: IsolateConfig) -> Result<Self, IsolateError> {
        let exe = config.exe.clone().unwrap_or_else(|| "/proc/self/exe".into());
        let snapshot = snapshot_of(&exe).await?;
        let jail = Jail::start(JailConfig {
            exe: config.exe,
            payload: snapshot.into(),
            zygote: config.zygote,
            pool: config.pool,
            pool_limits: worker_limits(&RunLimits::default()),
            zygotes_max: config.zygotes_max,
            allow_weak: config.allow_weak,
            show_stderr: config.show_stderr,
            ..JailConfig::default()
        })?;
        Ok(Self { jail: Arc::new(jail) })
    }

    /// The jail, for one-shot jobs and for `doctor`.
    pub fn jail(&self) -> &Arc<Jail> {
        &self.jail
    }

    /// Kills what runs and waits until everything is reaped.
    pub async fn shutdown(&self) {
        self.jail.shutdown().await;
    }
}

impl Sandbox for IsolateSandbox {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        let code = job.javascript.clone();
        Box::pin(async move { drive(&self.jail, job, code.as_bytes(), session).await })
    }
}

/// Runs the binary in its snapshot role.
async fn snapshot_of(exe: &Path) -> Result<Vec<u8>, IsolateError> {
    let failed = |reason: String| IsolateError::Snapshot(reason);
    let output = tokio::process::Command::new(exe)
        .arg(SNAPSHOT)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let output = timeout(SNAPSHOT_DEADLINE, output)
        .await
        .map_err(|_| failed(format!("it took longer than {} s", SNAPSHOT_DEADLINE.as_secs())))?
        .map_err(|error| failed(format!("{}: {error}", exe.display())))?;
    if !output.status.success() || output.stdout.is_empty() {
        let said: String = String::from_utf8_lossy(&output.stderr).chars().take(2_000).collect();
        return Err(failed(format!("{}: {said}", output.status)));
    }
    Ok(output.stdout)
}
