//! The engine's front door: what it is built from, how it starts, ticks and
//! drains. The commands it can be given stand in the files that carry them out:
//! `call`, `toolbox`, `publish`, `working_set`, `approvals`, `agents`,
//! `connections`, `proposals`, `permissions`, `acquire`, `commands`, `pages`,
//! `sign_in`, `person` and `first_code`.

use crate::acquire::{Authoring, Authors};
use crate::agents::Seen;
use crate::approvals::Approvals;
use crate::changes::Herald;
use crate::commands::Commands;
use crate::first_code::FirstCodes;
use crate::flight::Flights;
use crate::id::new_id;
use crate::in_band::Offers;
use crate::input::Validators;
use crate::jobs::{Jobs, Replays};
use crate::low_level::LowLevelParts;
use crate::owed::Owed;
use crate::pages::Reads;
use crate::person::Attempts;
use crate::port::{PersonRow, Store};
use crate::rule::SWEEP_EVERY;
use crate::sdk::Bundles;
use crate::sign_in::SignIns;
use crate::toolbox::Toolbox;
use crate::{Checker, EngineError, Sandbox};
use cambium_proxy::{Clock, PersonId, Proxy, StoreFault, Vault};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long cancelled runs may take to record their end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the engine is built from.
pub struct Parts {
    /// Name of this node: its runs end as lost when it starts anew.
    pub node: String,
    /// The database.
    pub store: Arc<dyn Store>,
    /// The only way out.
    pub proxy: Arc<Proxy>,
    /// Signs and checks versions, pointers and decisions.
    pub vault: Arc<Vault>,
    /// Runs modules.
    pub sandbox: Arc<dyn Sandbox>,
    /// Reads modules without running them.
    pub checker: Arc<dyn Checker>,
    /// Who writes tools for acquire, besides documents.
    pub authors: Authors,
    /// Who carries the low-level set out; without, agents have none of it.
    pub low_level: Option<LowLevelParts>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What a person set.
    pub settings: Settings,
}

/// What a person can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the console is reached, for links: `http://127.0.0.1:7171`.
    pub console_url: String,
    /// How long a call waits for a person.
    pub wait_budget: Duration,
}

/// Everything a call means.
pub struct Engine {
    /// For tasks that outlive the call that began them.
    pub(crate) me: Weak<Self>,
    pub(crate) parts: Arc<Parts>,
    pub(crate) person: PersonId,
    pub(crate) toolbox: Toolbox,
    pub(crate) validators: Validators,
    pub(crate) bundles: Bundles,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) jobs: Jobs,
    pub(crate) commands: Arc<Commands>,
    pub(crate) reads: Reads,
    pub(crate) seen: Seen,
    pub(crate) owed: Arc<Owed>,
    pub(crate) offers: Offers,
    pub(crate) replays: Replays,
    pub(crate) attempts: Attempts,
    pub(crate) first_codes: FirstCodes,
    pub(crate) authoring: Authoring,
    pub(crate) sign_ins: SignIns,
    /// Held while a proposal is opened or answered.
    pub(crate) proposing: tokio::sync::Mutex<()>,
    /// Held by the sweep under way.
    pub(crate) sweeping: tokio::sync::Mutex<()>,
    /// Every run's task.
    pub(crate) tasks: TaskTracker,
    /// Ends every run.
    pub(crate) stop_runs: CancellationToken,
    pub(crate) herald: Herald,
    stop_ticker: CancellationToken,
    ticker: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Joins the parts: makes the person on first start, ends the runs this
    /// node lost, sweeps once and starts the ticker. [`Self::drain`] stops it
    /// again.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, EngineError> {
        let now = parts.clock.now_ms();
        let person = person(parts.store.as_ref(), now).await?;
        let lost = parts.store.end_lost(&parts.node, now).await?;
        if lost > 0 {
            tracing::warn!(lost, "runs of the last start were ended as lost");
        }
        let toolbox =
            Toolbox::open(parts.store.clone(), parts.vault.clone(), person.clone()).await?;
        let herald = Herald::default();
        let approvals = Arc::new(Approvals::new(&parts, herald.clone()));
        let engine = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            parts: Arc::new(parts),
            person,
            toolbox,
            validators: Validators::default(),
            bundles: Bundles::default(),
            approvals,
            flights: Arc::default(),
            jobs: Jobs::default(),
            commands: Arc::default(),
            reads: Reads::default(),
            seen: Seen::default(),
            owed: Arc::new(Owed::new(herald.clone())),
            offers: Offers::default(),
            replays: Replays::default(),
            attempts: Attempts::default(),
            first_codes: FirstCodes::default(),
            authoring: Authoring::default(),
            sign_ins: SignIns::default(),
            proposing: tokio::sync::Mutex::default(),
            sweeping: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            stop_runs: CancellationToken::new(),
            herald,
            stop_ticker: CancellationToken::new(),
            ticker: Mutex::default(),
        });
        // What time has settled meanwhile, before anyone is answered; after this
        // one the ticker's come at their interval.
        if let Err(fault) = engine.sweep().await {
            tracing::warn!(%fault, "the sweep at the start failed");
        }
        engine.resume_jobs().await?;
        let ticker = tokio::spawn(tick(Arc::downgrade(&engine), engine.stop_ticker.clone()));
        *engine.ticker.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticker);
        Ok(engine)
    }

    /// Stops admitting, waits for runs up to `grace`, cancels the rest.
    pub async fn drain(&self, grace: Duration) {
        let left = self.flights.drain();
        if left > 0 {
            let runs = if left == 1 { "run" } else { "runs" };
            let seconds = grace.as_secs();
            tracing::info!("stopping: waiting for {left} {runs}, at most {seconds} s");
        }
        self.authoring.stop.cancel();
        self.stop_ticker.cancel();
        let ticker = self.ticker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ticker) = ticker {
            let _ = ticker.await;
        }
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            self.stop_runs.cancel();
            if tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await.is_err() {
                tracing::error!(left = self.tasks.len(), "some runs did not end in time");
            }
        }
        self.owed.pay(self.parts.store.as_ref()).await;
    }

    /// The engine's time, milliseconds UTC.
    pub fn now(&self) -> i64 {
        self.parts.clock.now_ms()
    }
}

/// The one person of this data directory, made on first start.
async fn person(store: &dyn Store, now_ms: i64) -> Result<PersonId, StoreFault> {
    if let Some(row) = store.person().await? {
        return Ok(row.id);
    }
    let row =
        PersonRow { id: PersonId::new(new_id(now_ms)?), passphrase: None, created_ms: now_ms };
    store.insert_person(&row).await?;
    Ok(row.id)
}

/// A host that slept gets one catch-up sweep, not one for each tick it missed.
async fn tick(engine: Weak<Engine>, stop: CancellationToken) {
    let first = tokio::time::Instant::now() + SWEEP_EVERY;
    let mut ticks = tokio::time::interval_at(first, SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Some(engine) = engine.upgrade() else { return };
        if let Err(fault) = engine.sweep().await {
            tracing::warn!(%fault, "a sweep failed");
        }
    }
}
