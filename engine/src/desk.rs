//! The desk a session asks when a write is held: opens the ask or joins the
//! open one, waits for a person within the run's wait budget, and answers with
//! the ask's name only. It can let nothing through: the session reads the
//! decision itself.

use crate::ToolName;
use crate::approvals::Approvals;
use crate::ask::AskEvent;
use crate::flight::Flights;
use crate::port::{AskReason, AskRow, AskState};
use crate::waiting::{Place, Stands, Verdict, Waiter};
use cambium_proxy::{AskId, BoxFuture, Desk, HeldRequest, HoldOutcome, Parked, StoreFault};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// An ask's life: a person who looks once a day sees each.
const ASK_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// Open asks of one agent: more would train a person to click.
const OPEN_PER_AGENT: u32 = 8;

/// What must be left of a run's wait for its question to take the place of one
/// whose own run has just ended: less is no time to answer in.
const ASKED_AFTER: Duration = Duration::from_secs(10);

/// The desk of one run.
pub(crate) struct RunDesk {
    approvals: Arc<Approvals>,
    flights: Arc<Flights>,
    tool: ToolName,
    number: u32,
    /// Told of each ask a request is held for.
    told: Option<mpsc::UnboundedSender<AskId>>,
    /// What is left of the run's wait budget, over all its held requests.
    left: Mutex<Duration>,
}

/// The ask a request waits for, what it has to do with this request, and the
/// place it waits at, unless too many wait.
struct Joined {
    ask: AskRow,
    stands: Stands,
    place: Option<Place>,
}

impl RunDesk {
    /// A desk for a run of one version.
    pub(crate) fn new(
        approvals: Arc<Approvals>,
        flights: Arc<Flights>,
        tool: ToolName,
        number: u32,
        wait_budget: Duration,
        told: Option<mpsc::UnboundedSender<AskId>>,
    ) -> Self {
        Self { approvals, flights, tool, number, told, left: Mutex::new(wait_budget) }
    }

    async fn held(&self, request: &HeldRequest) -> Result<HoldOutcome, StoreFault> {
        loop {
            let Some(Joined { ask, stands, place }) = self.open_or_join(request).await? else {
                return Ok(HoldOutcome::TooMany);
            };
            let shown = stands == Stands::Shown;
            let parked = || {
                let (ask, expires_ms) = (ask.id.clone(), ask.expires_ms);
                Ok(HoldOutcome::Parked(Parked { ask, expires_ms, shown }))
            };
            let Some(mut place) = place else { return parked() };
            // Nobody is shown another request as if it were this one.
            if let Some(told) = self.told.as_ref().filter(|_| shown) {
                let _ = told.send(ask.id.clone());
            }
            let verdict = match self.wait(&mut place.verdict).await {
                Some(verdict) => verdict,
                // It may have come at the last moment.
                None => match place.verdict.try_recv() {
                    Ok(verdict) => verdict,
                    Err(_) => return parked(),
                },
            };
            match verdict {
                Verdict::Answered => return Ok(HoldOutcome::Decided(ask.id)),
                Verdict::PutAside => return Ok(HoldOutcome::Dismissed(ask.id)),
                Verdict::Unanswered => return parked(),
                Verdict::Anew => {}
                // Its caller was given its link a moment ago: it is not put aside
                // for a question that goes unheard as soon.
                Verdict::Left if *self.left() < ASKED_AFTER => return parked(),
                Verdict::Left => {}
            }
        }
    }

    /// Waits within what is left of the budget and takes it off.
    async fn wait(&self, verdict: &mut tokio::sync::oneshot::Receiver<Verdict>) -> Option<Verdict> {
        let left = *self.left();
        let began = Instant::now();
        let _waiting = self.flights.wait();
        let answer = tokio::time::timeout(left, verdict).await;
        let mut left = self.left();
        *left = left.saturating_sub(began.elapsed());
        answer.ok().and_then(Result::ok)
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Duration> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One open ask per agent and tool, and a place among those who wait for it,
    /// taken in the same step: an ask somebody waits for is not replaced. `None`
    /// when the agent has too many.
    async fn open_or_join(&self, request: &HeldRequest) -> Result<Option<Joined>, StoreFault> {
        let approvals = &self.approvals;
        let _deciding = approvals.deciding().await;
        let now = approvals.now();
        let mut replaced = None;
        if let Some(ask) = approvals.store().open_ask(&request.agent, &self.tool).await? {
            let same = ask.version == request.version
                && ask.connection == request.connection
                && ask.generation == request.generation;
            let stands = match (same, same && ask.digest == request.digest) {
                (_, true) => Stands::Shown,
                (true, false) => Stands::Behind,
                (false, false) => Stands::Apart,
            };
            if ask.expires_ms <= now {
                approvals.settle_unanswered(&ask, AskEvent::RanOut).await?;
            } else if stands == Stands::Shown || approvals.waiting.any_shown(&ask.id) {
                return Ok(Some(self.joined(ask, stands, request)));
            } else {
                replaced = Some(ask);
            }
        }
        let open = approvals.store().count_open(&request.agent, now).await?;
        if open.saturating_sub(u32::from(replaced.is_some())) >= OPEN_PER_AGENT
            || !approvals.may_ask(&request.agent)
        {
            tracing::warn!(agent = %request.agent, "an ask was refused: too many");
            return Ok(None);
        }
        let ask = self.row(request, now).await?;
        if let Some(replaced) = replaced {
            approvals.settle_unanswered(&replaced, AskEvent::Replaced).await?;
        }
        approvals.store().insert_ask(&ask).await?;
        let joined = self.joined(ask, Stands::Shown, request);
        approvals.opened(&joined.ask.id);
        Ok(Some(joined))
    }

    fn joined(&self, ask: AskRow, stands: Stands, request: &HeldRequest) -> Joined {
        let waiter = Waiter { run: request.run.clone(), agent: request.agent.clone(), stands };
        let place = self.approvals.waiting.take(&ask.id, waiter);
        Joined { ask, stands, place }
    }

    async fn row(&self, request: &HeldRequest, now: i64) -> Result<AskRow, StoreFault> {
        Ok(AskRow {
            id: crate::id::new_ask_id()?,
            person: request.person.clone(),
            agent: request.agent.clone(),
            tool: self.tool.clone(),
            version: request.version,
            number: self.number,
            connection: request.connection.clone(),
            generation: request.generation,
            reason: self.reason(request).await?,
            run: request.run.clone(),
            effect: request.effect,
            method: request.method.clone(),
            authority: request.authority.clone(),
            target: request.target.clone(),
            headers: request.headers.clone(),
            body: request.body.to_vec(),
            digest: request.digest,
            state: AskState::Open,
            opened_ms: now,
            expires_ms: now.saturating_add(ASK_LIFE_MS),
            settled_ms: None,
        })
    }

    /// Why it is asked; shown, never relied upon.
    async fn reason(&self, request: &HeldRequest) -> Result<AskReason, StoreFault> {
        let store = self.approvals.store();
        let last = match store.standing_decision(&request.agent, &self.tool).await? {
            Some(row) => Some(row),
            None => store.newest_decision(&request.agent, &self.tool).await?,
        };
        Ok(match last {
            None => AskReason::FirstCall,
            Some(row) if row.version != request.version => AskReason::Republished,
            Some(row)
                if row.connection != request.connection || row.generation != request.generation =>
            {
                AskReason::ConnectionChanged
            }
            Some(_) => AskReason::NotStanding,
        })
    }
}

impl Desk for RunDesk {
    fn hold<'a>(&'a self, request: HeldRequest) -> BoxFuture<'a, HoldOutcome> {
        Box::pin(async move {
            self.held(&request).await.unwrap_or_else(|fault| {
                tracing::error!(%fault, run = %request.run, "a held request could not be asked about");
                HoldOutcome::Failed
            })
        })
    }
}
