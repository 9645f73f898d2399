//! Detached runs as their agent sees them later: collected, looked at or ended.
//! Where they run is `call.rs`; the places they have are `jobs.rs`.

use crate::command::Caller;
use crate::jobs::JobPlace;
use crate::reply;
use crate::waiting::Stands;
use crate::{Engine, EngineError, Envelope, Status};
use cambium_proxy::{AskId, RunId};
use std::time::Duration;

/// The longest a `wait_for_process` is held; clients time out at 60 s.
const COLLECT_WAIT: Duration = Duration::from_secs(50);
/// Characters of a name that is not known, as they are said back.
const ECHO_CHARS: usize = 64;

/// A detached run at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// When it began, milliseconds UTC.
    pub begun_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// What it waits for a person with.
    pub ask: Option<AskId>,
    /// `running` until it has ended, then the answer of the call.
    pub envelope: Envelope,
}

impl Engine {
    /// Collects a detached run; answers `running` when it is not done in time.
    pub async fn wait_for_process(
        &self,
        caller: &Caller,
        process: &str,
        wait: Duration,
    ) -> Result<Envelope, EngineError> {
        let run = RunId::new(process);
        let mut place = self.job(caller, &run).await?;
        let done = place.answer.wait_for(Option::is_some);
        match tokio::time::timeout(wait.min(COLLECT_WAIT), done).await {
            Ok(Ok(envelope)) => {
                let envelope = envelope.as_deref().ok_or_else(|| not_found(&run))?;
                Ok(envelope.clone())
            }
            Ok(Err(_)) => {
                Err(EngineError::SandboxUnavailable("the run ended without an answer".into()))
            }
            Err(_) => Ok(self.still_running(&run)),
        }
    }

    /// Looks at a detached run without waiting.
    pub async fn process(&self, caller: &Caller, process: &str) -> Result<Process, EngineError> {
        let run = RunId::new(process);
        let begun_ms = self.job(caller, &run).await?.begun_ms;
        let envelope = self.wait_for_process(caller, process, Duration::ZERO).await?;
        let (ask, ended_ms) = match envelope.status == Status::Running {
            true => (self.approvals.waiting.ask_of(&run).and_then(shown), None),
            false => (None, self.parts.store.run(&run).await?.and_then(|row| row.ended_ms)),
        };
        Ok(Process { begun_ms, ended_ms, ask, envelope })
    }

    /// Ends a detached run: its sandbox is killed, what was under way at the
    /// vendor is cut off, and its answer is `cancelled`. One that has ended
    /// keeps its answer.
    pub async fn cancel_process(&self, caller: &Caller, process: &str) -> Result<(), EngineError> {
        let place = self.job(caller, &RunId::new(process)).await?;
        place.cancel.cancel();
        Ok(())
    }

    async fn job(&self, caller: &Caller, run: &RunId) -> Result<JobPlace, EngineError> {
        if let Some(place) = self.jobs.of(&caller.agent.id, run) {
            return Ok(place);
        }
        let row = self.parts.store.run(run).await?.ok_or_else(|| not_found(run))?;
        if row.agent != caller.agent.id || !row.detached {
            return Err(not_found(run));
        }
        let ended = row.outcome.unwrap_or_else(|| "lost".into());
        Err(EngineError::RunFailed {
            code: "run_lost",
            message: format!("the run's answer is gone; it ended as {ended}"),
        })
    }

    /// Says where a person is waited for, if one is.
    fn still_running(&self, run: &RunId) -> Envelope {
        let mut envelope = running(run);
        if let Some((ask, stands)) = self.approvals.waiting.ask_of(run) {
            let link = self.ask_link(&ask);
            envelope.message = Some(match stands {
                Stands::Shown => {
                    format!("A person must allow a write of it. Tell them to answer at {link} .")
                }
                Stands::Behind | Stands::Apart => reply::behind(&link),
            });
        }
        envelope
    }
}

fn shown((ask, stands): (AskId, Stands)) -> Option<AskId> {
    (stands == Stands::Shown).then_some(ask)
}

/// The answer that a run goes on.
pub(crate) fn running(run: &RunId) -> Envelope {
    let mut envelope = Envelope::of(Status::Running);
    envelope.next = Some(format!("call wait_for_process with process `{run}`"));
    envelope.run = Some(run.to_string());
    envelope
}

fn not_found(run: &RunId) -> EngineError {
    EngineError::RunNotFound(run.as_str().chars().take(ECHO_CHARS).collect())
}
