//! The engine's half: a [`Sandbox`] whose runs are processes of the jail. For
//! each run it takes a worker, sends the job, carries its requests to the
//! session, keeps the clocks and judges the end. Everything a worker says is
//! counted before it is kept.

use crate::error::IsolateError;
use crate::job::{
    ENDING, ENDING_MAX, Ended, Ending, JOB, JOB_PIECE, JobHead, LOG, PIECE, RESULT_PIECE,
    answer_limits,
};
use crate::outcome::{Seen, evidence, outcome};
use crate::pump::{PumpEnd, pump};
use crate::role::SNAPSHOT;
use bytes::{Buf, BytesMut};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, Sandbox, StageTimes};
use cambium_jail::frames::{Frame, FrameError};
use cambium_jail::{Jail, JailConfig, JobReader, JobWriter, Leash, WorkerLimits};
use cambium_proxy::{BoxFuture, Session};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The snapshot is made in a tenth of a second on an idle machine.
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(30);
/// A worker that closed its socket must be dead within this, or it is killed.
const GONE_DEADLINE: Duration = Duration::from_secs(1);

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

    async fn run_job(&self, job: Job, session: Arc<Session>) -> RunReport {
        let asked = Instant::now();
        let limits = worker_limits(&job.limits);
        let version = job.version.to_string();
        let taken = tokio::select! {
            biased;
            () = session.ended() => return report(Outcome::PolicyDenied),
            taken = self.jail.take(job.agent.as_str(), &version, limits) => taken,
        };
        let worker = match taken {
            Ok(worker) => worker,
            Err(error) => return report(Outcome::Unavailable(error.to_string())),
        };
        let began = Instant::now();
        let (reader, writer, fetch, mut leash) = worker.into_parts();
        let mut logs = Logs::new(job.limits.log_bytes);
        let seen = {
            let mut talk = pin!(talk(reader, writer, &job, &mut logs));
            let mut clock = pin!(wall_clock(job.limits.wall, session.holding()));
            let mut pump = pin!(pump(fetch, session.clone()));
            let mut pumping = true;
            loop {
                tokio::select! {
                    biased;
                    () = session.ended() => break Seen::Denied,
                    seen = &mut talk => break seen,
                    () = &mut clock => break Seen::Timeout,
                    end = &mut pump, if pumping => match end {
                        // What it said before is still to be read.
                        PumpEnd::Closed => pumping = false,
                        PumpEnd::Forged(reason) => break Seen::Forged(reason),
                        PumpEnd::Flood => break Seen::Denied,
                    },
                }
            }
        };
        let run = began.elapsed();
        session.close();
        if matches!(seen, Seen::Gone) {
            // Its own end tells more than ours would.
            let _ = timeout(GONE_DEADLINE, leash.ended()).await;
        }
        leash.kill();
        finish(seen, &mut leash, logs, began - asked, run, &job.limits).await
    }
}

impl Sandbox for IsolateSandbox {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(self.run_job(job, session))
    }
}

async fn finish(
    seen: Seen,
    leash: &mut Leash,
    logs: Logs,
    take: Duration,
    run: Duration,
    limits: &RunLimits,
) -> RunReport {
    let exit = leash.ended().await;
    let evidence = evidence(&seen, &exit, leash.origin(), run, limits);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    RunReport {
        outcome: outcome(seen, &exit),
        logs: logs.lines,
        logs_dropped: logs.dropped,
        times: StageTimes {
            take_us: micros(take),
            run_us: micros(run),
            cpu_us: micros(exit.cpu),
            max_rss: exit.max_rss,
        },
        evidence: Some(evidence),
    }
}

fn report(outcome: Outcome) -> RunReport {
    RunReport {
        outcome,
        logs: Vec::new(),
        logs_dropped: 0,
        times: StageTimes::default(),
        evidence: None,
    }
}

fn worker_limits(limits: &RunLimits) -> WorkerLimits {
    WorkerLimits {
        cpu: limits.cpu,
        data_bytes: limits.data_bytes as u64,
        ..WorkerLimits::default()
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

/// Resolves when the run's wall time is used up. It stands still while a
/// request is held for a person.
async fn wall_clock(limit: Duration, mut holding: watch::Receiver<bool>) {
    let mut left = limit;
    loop {
        while *holding.borrow_and_update() {
            if holding.changed().await.is_err() {
                // Nobody can be holding any more.
                return sleep(left).await;
            }
        }
        let since = Instant::now();
        tokio::select! {
            () = sleep(left) => return,
            changed = holding.changed() => {
                left = left.saturating_sub(since.elapsed());
                if changed.is_err() {
                    return sleep(left).await;
                }
            }
        }
    }
}

/// Console lines within their cap.
struct Logs {
    lines: Vec<String>,
    left: usize,
    dropped: u64,
}

impl Logs {
    fn new(cap: usize) -> Self {
        Self { lines: Vec::new(), left: cap, dropped: 0 }
    }

    fn take(&mut self, mut payload: bytes::Bytes) -> Result<(), FrameError> {
        if payload.len() < 4 {
            return Err(FrameError::Malformed("console line"));
        }
        self.dropped += u64::from(payload.get_u32_le());
        if payload.is_empty() {
            return Ok(());
        }
        if payload.len() > self.left {
            self.dropped += payload.len() as u64;
            return Ok(());
        }
        self.left = self.left.saturating_sub(payload.len() + 1);
        self.lines.push(String::from_utf8_lossy(&payload).into_owned());
        Ok(())
    }
}

/// Sends the job and listens until the worker has said how it ended.
async fn talk(mut reader: JobReader, mut writer: JobWriter, job: &Job, logs: &mut Logs) -> Seen {
    reader.set_limits(answer_limits(job.limits.result_bytes, job.limits.log_bytes));
    if send_job(&mut writer, job).await.is_err() {
        return Seen::Gone;
    }
    match listen(&mut reader, job, logs).await {
        Ok(Some(ended)) => Seen::Ended(ended),
        Ok(None) | Err(FrameError::Io(_) | FrameError::Truncated) => Seen::Gone,
        Err(error) => Seen::Forged(error.to_string()),
    }
}

async fn send_job(writer: &mut JobWriter, job: &Job) -> Result<(), FrameError> {
    let head = JobHead {
        tool: job.tool.clone(),
        slug: job.connection_slug.clone(),
        vendor: job.vendor.clone(),
        display_name: job.display_name.clone(),
        proxy_base: job.proxy_base.clone(),
        heap_bytes: job.limits.heap_bytes,
        result_bytes: job.limits.result_bytes,
        log_bytes: job.limits.log_bytes,
        source_bytes: job.javascript.len(),
        input_bytes: job.input.len(),
        modules: job.modules.iter().map(|(name, text)| (name.clone(), text.len())).collect(),
    };
    let head = serde_json::to_vec(&head).map_err(|_| FrameError::Malformed("job"))?;
    writer.send(JOB, &head).await?;
    let modules = job.modules.iter().map(|(_, text)| text);
    for text in [&job.javascript, &job.input].into_iter().chain(modules) {
        for piece in text.as_bytes().chunks(PIECE) {
            writer.send(JOB_PIECE, piece).await?;
        }
    }
    Ok(())
}

async fn listen(
    reader: &mut JobReader,
    job: &Job,
    logs: &mut Logs,
) -> Result<Option<Ended>, FrameError> {
    while let Some(Frame { kind, payload }) = reader.next().await? {
        match kind {
            LOG => logs.take(payload)?,
            ENDING if payload.len() <= ENDING_MAX => {
                let ending: Ending = serde_json::from_slice(&payload)
                    .map_err(|_| FrameError::Malformed("ending"))?;
                return result(reader, job, ending).await.map(Some);
            }
            other => return Err(FrameError::Kind(other)),
        }
    }
    Ok(None)
}

/// The pieces of a result, which must be as many bytes as were announced.
async fn result(reader: &mut JobReader, job: &Job, ending: Ending) -> Result<Ended, FrameError> {
    let size = match ending {
        Ending::Value { bytes } | Ending::Response { bytes, .. } => bytes,
        Ending::Threw { .. } | Ending::NeverSettled | Ending::TooLarge => 0,
    };
    if size > job.limits.result_bytes {
        return Ok((Ending::TooLarge, bytes::Bytes::new()));
    }
    let mut whole = BytesMut::new();
    while whole.len() < size {
        let Some(Frame { kind, payload }) = reader.next().await? else {
            return Err(FrameError::Truncated);
        };
        if kind != RESULT_PIECE {
            return Err(FrameError::Kind(kind));
        }
        if payload.is_empty() || whole.len() + payload.len() > size {
            return Err(FrameError::Malformed("result"));
        }
        whole.extend_from_slice(&payload);
    }
    Ok((ending, whole.freeze()))
}
