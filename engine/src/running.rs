//! A run under way: the sandbox, its session and the guard, carried to an end
//! that is always recorded. Whatever happens to the sandbox, the session is
//! closed before anything is said about the run.

use crate::engine::Parts;
use crate::flight::RunGuard;
use crate::hide;
use crate::owed::Owed;
use crate::port::{RunEnd, RunRow, StoredResult};
use crate::reply::{self, Ended};
use crate::{Envelope, Job, Outcome, RunReport, Sandbox, StageTimes};
use cambium_proxy::{Connection, Session, SessionReport};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the sandbox gets beyond the run's own time before it is given up: its
/// own limits are to fire first.
const SANDBOX_GRACE: Duration = Duration::from_secs(10);
/// How long what was under way at the close may take to say how it ended.
const SETTLE_TRIES: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// One run with everything it needs.
pub(crate) struct Running {
    pub(crate) parts: Arc<Parts>,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    /// A run of a tool is a use of it.
    pub(crate) counts: bool,
    pub(crate) owed: Arc<Owed>,
    pub(crate) guard: RunGuard,
    /// What a person calls its agent.
    pub(crate) agent_name: String,
    pub(crate) row: RunRow,
    pub(crate) connection: Connection,
    pub(crate) session: Arc<Session>,
    pub(crate) job: Job,
    /// The run's time and its wait for a person.
    pub(crate) backstop: Duration,
    pub(crate) notes: Vec<String>,
    /// The clock's ticks when the tool was found.
    pub(crate) came_us: u64,
}

impl Running {
    /// To the end, and its record.
    pub(crate) async fn carry_out(self, cancel: CancellationToken) -> Envelope {
        let wall_seconds = self.job.limits.wall.as_secs();
        let admit_us = self.since(self.came_us);
        let report = self.sandboxed(cancel).await;
        let sandboxed_us = self.parts.clock.ticks_us();
        let paused = self.guard.stopped().is_cancelled();
        self.session.close();
        let session = settled(&self.session).await;
        let veil = self.session.veil();
        let (report, session) = hide::reports(&veil, report, session).await;
        let used = self.counts && !matches!(report.outcome, Outcome::Unavailable(_));
        let evidence = report.evidence.as_ref().and_then(|seen| serde_json::to_string(seen).ok());
        let (mut envelope, whole) = reply::reply(Ended {
            run: &self.row.id,
            report,
            session,
            dry_run: self.row.dry_run,
            connection: &self.connection,
            wall_seconds,
            console_url: &self.parts.settings.console_url,
            paused: paused.then(|| self.agent_name.clone()),
            notes: self.notes.clone(),
            admit_us,
        });
        hide::answer(&veil, &mut envelope);
        let store = self.parts.store.as_ref();
        let ended_ms = self.parts.clock.now_ms();
        if let Some((mime_type, text)) = whole {
            let kept = StoredResult {
                run: self.row.id.clone(),
                agent: self.row.agent.clone(),
                mime_type: mime_type.to_owned(),
                text,
                stored_ms: ended_ms,
            };
            if let Err(fault) = store.put_result(&kept).await {
                tracing::error!(%fault, run = %self.row.id, "a whole result could not be kept");
                envelope.notes.push("the whole result could not be kept".into());
            }
        }
        let end = RunEnd {
            id: self.row.id.clone(),
            outcome: reply::outcome(&envelope).to_owned(),
            used,
            ended_ms,
            evidence,
        };
        self.owed.record(store, end).await;
        if let Some(times) = &mut envelope.times {
            times.record_us = self.since(sandboxed_us);
        }
        drop(self.guard);
        envelope
    }

    fn since(&self, us: u64) -> u64 {
        self.parts.clock.ticks_us().saturating_sub(us)
    }

    async fn sandboxed(&self, cancel: CancellationToken) -> RunReport {
        let run = self.sandbox.run(self.job.clone(), self.session.clone());
        // A panic of a sandbox is that run's, not the server's.
        let run = AssertUnwindSafe(run).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => ended_by(Outcome::Cancelled),
            () = self.guard.stopped().cancelled() => ended_by(Outcome::Cancelled),
            answer = tokio::time::timeout(self.backstop + SANDBOX_GRACE, run) => match answer {
                Ok(Ok(report)) => report,
                Ok(Err(_)) => {
                    tracing::error!(run = %self.row.id, "a sandbox panicked");
                    ended_by(Outcome::Crashed { signal: 0 })
                }
                Err(_) => {
                    tracing::error!(run = %self.row.id, "a sandbox did not end its run in time");
                    ended_by(Outcome::Timeout)
                }
            },
        }
    }
}

/// The session's report once what was under way has said how it ended.
async fn settled(session: &Session) -> SessionReport {
    for _ in 0..SETTLE_TRIES {
        let report = session.report();
        let open = report
            .exchanges
            .iter()
            .any(|e| e.status.is_none() && e.refusal.is_none() && e.preview.is_none());
        if !open {
            return report;
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    session.report()
}

fn ended_by(outcome: Outcome) -> RunReport {
    RunReport {
        outcome,
        logs: Vec::new(),
        logs_dropped: 0,
        times: StageTimes::default(),
        evidence: None,
    }
}
