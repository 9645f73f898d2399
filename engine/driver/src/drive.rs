//! The engine's half of a run: takes a worker, sends the job, carries its
//! requests to the session, keeps the clocks and judges the end. Everything a
//! worker says is counted before it is kept; what its guest is, is not known here.

use crate::outcome::{Seen, evidence, outcome};
use crate::pump::{PumpEnd, pump};
use bytes::{Buf, BytesMut};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, StageTimes};
use cambium_jail::frames::{Frame, FrameError};
use cambium_jail::job::{
    ENDING, ENDING_MAX, Ended, Ending, JOB, JOB_PIECE, JobHead, LOG, PIECE, RESULT_PIECE,
    answer_limits,
};
use cambium_jail::{Jail, JobReader, JobWriter, Leash, WorkerLimits};
use cambium_proxy::Session;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// A worker that closed its socket must be dead within this, or it is killed.
const GONE_DEADLINE: Duration = Duration::from_secs(1);

/// Runs one job to its end in a worker of `jail`; `code` is what its guest runs.
/// Dropping the future kills the worker.
pub async fn drive(jail: &Jail, job: Job, code: &[u8], session: Arc<Session>) -> RunReport {
    let asked = Instant::now();
    let limits = worker_limits(&job.limits);
    let version = job.version.to_string();
    let taken = tokio::select! {
        biased;
        () = session.ended() => return report(Outcome::PolicyDenied),
        taken = jail.take(job.agent.as_str(), &version, limits) => taken,
    };
    let worker = match taken {
        Ok(worker) => worker,
        Err(error) => return report(Outcome::Unavailable(error.to_string())),
    };
    let began = Instant::now();
    let (reader, writer, fetch, mut leash) = worker.into_parts();
    let mut logs = Logs::new(job.limits.log_bytes);
    let seen = {
        let mut talk = pin!(talk(reader, writer, &job, code, &mut logs));
        let mut clock = pin!(wall_clock(job.limits.wall, session.holding()));
        let mut pump = pin!(pump(fetch, session.clone()));
        let mut pumping = true;
        let seen = loop {
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
        };
        // While its sockets are open: one that saw them close would end by itself,
        // and the evidence would not say that it was us.
        if !matches!(seen, Seen::Gone) {
            leash.kill();
        }
        seen
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

/// The report of a run that no worker took.
pub fn report(outcome: Outcome) -> RunReport {
    RunReport {
        outcome,
        logs: Vec::new(),
        logs_dropped: 0,
        times: StageTimes::default(),
        evidence: None,
    }
}

/// What a worker for runs of these limits may use.
pub fn worker_limits(limits: &RunLimits) -> WorkerLimits {
    WorkerLimits {
        cpu: limits.cpu,
        data_bytes: limits.data_bytes as u64,
        ..WorkerLimits::default()
    }
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
async fn talk(
    mut reader: JobReader,
    mut writer: JobWriter,
    job: &Job,
    code: &[u8],
    logs: &mut Logs,
) -> Seen {
    reader.set_limits(answer_limits(job.limits.result_bytes, job.limits.log_bytes));
    if send_job(&mut writer, job, code).await.is_err() {
        return Seen::Gone;
    }
    match listen(&mut reader, job, logs).await {
        Ok(Some(ended)) => Seen::Ended(ended),
        Ok(None) | Err(FrameError::Io(_) | FrameError::Truncated) => Seen::Gone,
        Err(error) => Seen::Forged(error.to_string()),
    }
}

async fn send_job(writer: &mut JobWriter, job: &Job, code: &[u8]) -> Result<(), FrameError> {
    let head = JobHead {
        tool: job.tool.clone(),
        slug: job.connection_slug.clone(),
        vendor: job.vendor.clone(),
        display_name: job.display_name.clone(),
        proxy_base: job.proxy_base.clone(),
        heap_bytes: job.limits.heap_bytes,
        result_bytes: job.limits.result_bytes,
        log_bytes: job.limits.log_bytes,
        code_bytes: code.len(),
        input_bytes: job.input.len(),
        modules: job.modules.iter().map(|(name, text)| (name.clone(), text.len())).collect(),
    };
    let head = serde_json::to_vec(&head).map_err(|_| FrameError::Malformed("job"))?;
    writer.send(JOB, &head).await?;
    let modules = job.modules.iter().map(|(_, text)| text.as_bytes());
    for bytes in [code, job.input.as_bytes()].into_iter().chain(modules) {
        for piece in bytes.chunks(PIECE) {
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
