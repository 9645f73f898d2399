//! Approvals: the asks a person sees, the decision that settles one by
//! compare-and-swap, and what wakes up then. A decision is signed here and
//! nowhere else; what it lets through is read and checked by the proxy. The
//! waiting itself is in `desk.rs` and `waiting.rs`.

use crate::ask::{AskEvent, can_stand, needs_fresh, transition};
use crate::changes::Herald;
use crate::diff;
use crate::port::{AskReason, AskRow, AskState, Store};
use crate::waiting::{Stands, Verdict, Waiting};
use crate::{
    AskView, DecideRequest, Engine, EngineError, Event, InBand, Parts, PersonProof, ToolName,
};
use cambium_proxy::{
    AgentId, Answer, AskId, AskRecord, Clock, ContentHash, DecisionRow, Effect, PersonId, Proxy,
    StoreFault, Vault, request_digest,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::MutexGuard;

/// Asks shown at once.
const ASKS_SHOWN: u32 = 200;
/// Asks of one agent within an hour: more is an agent that went astray.
const ASKS_AN_HOUR: usize = 60;
const HOUR_MS: i64 = 60 * 60 * 1000;
/// Longest body, bytes, that a terminal shows whole and that *from now on* can
/// be given for.
pub(crate) const SHOWN_BYTES: usize = 4 * 1024;
/// Characters of a body that a list shows.
const EXCERPT_CHARS: usize = 72;
/// Hexadecimal digits of a digest that a list shows.
const EXCERPT_DIGEST: usize = 12;
/// Places a decision can be given in.
const CHANNELS: [&str; 2] = ["console", "cli"];

/// What asking needs. Shared by every run's desk.
pub(crate) struct Approvals {
    store: Arc<dyn Store>,
    proxy: Arc<Proxy>,
    vault: Arc<Vault>,
    clock: Arc<dyn Clock>,
    herald: Herald,
    /// Who waits on this node.
    pub(crate) waiting: Arc<Waiting>,
    /// Held while an ask is opened or settled, so that a look and what follows
    /// from it are one step on this node; the store's compare-and-swap decides
    /// between nodes.
    deciding: tokio::sync::Mutex<()>,
    asked: Mutex<HashMap<AgentId, VecDeque<i64>>>,
}

impl Approvals {
    pub(crate) fn new(parts: &Parts, herald: Herald) -> Self {
        let Parts { store, proxy, vault, clock, .. } = parts;
        Self {
            store: store.clone(),
            proxy: proxy.clone(),
            vault: vault.clone(),
            clock: clock.clone(),
            herald,
            waiting: Arc::default(),
            deciding: tokio::sync::Mutex::default(),
            asked: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Keeps every other opening and settling on this node out.
    pub(crate) async fn deciding(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().await
    }

    /// Counts an ask against the agent's hour; false when it is full.
    pub(crate) fn may_ask(&self, agent: &AgentId) -> bool {
        let now = self.now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(agent.clone()).or_default();
        while times.front().is_some_and(|at| now.saturating_sub(*at) >= HOUR_MS) {
            times.pop_front();
        }
        let may = times.len() < ASKS_AN_HOUR;
        if may {
            times.push_back(now);
        }
        may
    }

    pub(crate) fn opened(&self, ask: &AskId) {
        self.herald.send(Event::AskOpened(ask.clone()));
    }

    /// Where an ask stands now.
    async fn state_of(&self, ask: &AskId) -> Result<AskState, StoreFault> {
        match self.store.ask(ask).await? {
            Some(row) => Ok(row.state),
            None => Err(StoreFault::Corrupt(format!("ask {ask} is gone"))),
        }
    }

    /// Settles an ask without a decision, and lets those who wait be held anew.
    /// That another took its place, or a person put it aside, is written down
    /// first.
    pub(crate) async fn settle_unanswered(
        &self,
        row: &AskRow,
        event: AskEvent,
    ) -> Result<(), StoreFault> {
        let Some(to) = transition(AskState::Open, event) else { return Ok(()) };
        match event {
            AskEvent::Replaced => self.record(row, "ask_superseded").await?,
            AskEvent::PutAside => self.record(row, "ask_dismissed").await?,
            AskEvent::RanOut | AskEvent::Answered(_) => {}
        }
        if self.store.settle(&row.id, to, None, self.now()).await? {
            self.settled(&row.id);
            self.waiting.wake_all(&row.id, |waiter| match (event, waiter.stands) {
                (AskEvent::PutAside, Stands::Shown) => Verdict::PutAside,
                _ => Verdict::Anew,
            });
        }
        Ok(())
    }

    /// Writes down what became of an ask without a decision.
    async fn record(&self, row: &AskRow, became: &'static str) -> Result<(), StoreFault> {
        let record = AskRecord {
            became,
            ask: &row.id,
            run: &row.run,
            agent: &row.agent,
            tool: &row.tool.to_string(),
            version: &row.version,
            connection: &row.connection,
            method: &row.method,
            authority: &row.authority,
            digest: &row.digest,
        };
        let recorded = self.proxy.record_ask(record).await;
        recorded.map_err(|refusal| StoreFault::Unavailable(refusal.to_string()))
    }

    /// Ends what time has ended.
    pub(crate) async fn expire(&self) {
        let _deciding = self.deciding().await;
        match self.store.expire_asks(self.now()).await {
            Ok(asks) => {
                for ask in asks {
                    self.settled(&ask);
                    self.waiting.wake_all(&ask, |_| Verdict::Anew);
                }
            }
            Err(fault) => tracing::warn!(%fault, "asks could not be expired"),
        }
    }

    /// A publish takes the place of open asks about other contents of the tool,
    /// unless a run still waits for one. The caller holds `deciding`.
    pub(crate) async fn supersede(&self, person: &PersonId, tool: &ToolName, with: ContentHash) {
        let open =
            |row: &AskRow| row.state == AskState::Open && row.tool == *tool && row.version != with;
        // An ask that is not superseded here is when the new version asks.
        let rows = match self.store.asks(person, ASKS_SHOWN).await {
            Ok(rows) => rows,
            Err(fault) => return tracing::warn!(%fault, "asks could not be superseded"),
        };
        for row in rows.into_iter().filter(open) {
            if self.waiting.any_shown(&row.id) {
                continue;
            }
            if let Err(fault) = self.settle_unanswered(&row, AskEvent::Replaced).await {
                tracing::warn!(%fault, ask = %row.id, "an ask could not be superseded");
            }
        }
    }

    /// The signed row that takes a standing answer back.
    pub(crate) async fn withdrawal(
        &self,
        of: DecisionRow,
        tool: &ToolName,
        channel: &str,
    ) -> Result<DecisionRow, StoreFault> {
        let sequence = self.next_sequence(&of.agent, tool).await?;
        let row = DecisionRow {
            sequence,
            answer: Answer::Withdrawn,
            channel: channel.to_owned(),
            at_ms: self.now(),
            mac: Vec::new(),
            ..of
        };
        Ok(row.sign(&self.vault))
    }

    async fn next_sequence(&self, agent: &AgentId, tool: &ToolName) -> Result<u64, StoreFault> {
        let newest = self.store.newest_decision(agent, tool).await?;
        Ok(newest.map_or(0, |row| row.sequence) + 1)
    }

    fn settled(&self, ask: &AskId) {
        self.herald.send(Event::AskSettled(ask.clone()));
    }

    /// Stores a decision, first one wins, and wakes who waits for it.
    async fn settle(
        &self,
        row: &AskRow,
        to: AskState,
        request: &DecideRequest,
    ) -> Result<bool, StoreFault> {
        let at_ms = self.now();
        let decision = DecisionRow {
            ask: row.id.clone(),
            sequence: self.next_sequence(&row.agent, &row.tool).await?,
            person: row.person.clone(),
            agent: row.agent.clone(),
            tool: row.tool.to_string(),
            version: row.version,
            connection: row.connection.clone(),
            generation: row.generation,
            digest: row.digest,
            answer: request.answer,
            channel: request.channel.clone(),
            at_ms,
            mac: Vec::new(),
        }
        .sign(&self.vault);
        if !self.store.settle(&row.id, to, Some(&decision), at_ms).await? {
            return Ok(false);
        }
        match request.answer {
            // Read by all, whichever version they run: it is about the tool.
            Answer::Deny => self.waiting.wake_all(&row.id, |_| Verdict::Answered),
            Answer::Standing => self.waiting.wake_all(&row.id, |waiter| match waiter.stands {
                Stands::Shown | Stands::Behind => Verdict::Answered,
                Stands::Apart => Verdict::Anew,
            }),
            Answer::Once => self.waiting.wake_one(&row.id, &row.run),
            Answer::Withdrawn => {}
        }
        self.settled(&row.id);
        Ok(true)
    }
}

/// On whose word an ask is decided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deciding<'a> {
    /// A person showed who they are.
    Person(&'a PersonProof),
    /// A harness passed the person's word on, which they had switched on.
    InBand {
        /// The request that was shown.
        shown: ContentHash,
        /// What they switched on.
        setting: InBand,
    },
}

impl Engine {
    /// Open ones first, then the newest settled, at most 200.
    pub async fn asks(&self) -> Result<Vec<AskView>, EngineError> {
        let rows = self.parts.store.asks(&self.person, ASKS_SHOWN).await?;
        let mut views = Vec::with_capacity(rows.len());
        for row in rows {
            views.push(self.view(as_held(row)?).await?);
        }
        Ok(views)
    }

    /// Where a person answers an ask.
    pub fn ask_link(&self, ask: &AskId) -> String {
        format!("{}/asks/{ask}", self.parts.settings.console_url.trim_end_matches('/'))
    }

    /// One ask.
    pub async fn ask(&self, id: &AskId) -> Result<AskView, EngineError> {
        let row = self.ask_row(id).await?;
        self.view(row).await
    }

    /// A person's answer. The first one wins; a later one is told.
    pub async fn decide(
        &self,
        proof: &PersonProof,
        request: DecideRequest,
    ) -> Result<AskView, EngineError> {
        if !CHANNELS.contains(&request.channel.as_str()) {
            return Err(argument("channel", "must be `console` or `cli`"));
        }
        self.decide_as(Deciding::Person(proof), request).await
    }

    /// The one way an ask is decided, whoever passes the person's word on.
    pub(crate) async fn decide_as(
        &self,
        who: Deciding<'_>,
        request: DecideRequest,
    ) -> Result<AskView, EngineError> {
        let _deciding = self.approvals.deciding().await;
        let mut row = self.ask_row(&request.ask).await?;
        if row.state == AskState::Open && row.expires_ms <= self.now() {
            self.approvals.settle_unanswered(&row, AskEvent::RanOut).await?;
            row.state = AskState::Expired;
        }
        let already = |state: AskState| EngineError::AskSettled {
            ask: request.ask.to_string(),
            state: state.as_str().to_owned(),
        };
        let Some(to) = transition(row.state, AskEvent::Answered(request.answer)) else {
            return Err(match row.state {
                AskState::Open => argument("answer", "must be standing, once or deny"),
                settled => already(settled),
            });
        };
        if let Deciding::InBand { shown, .. } = who
            && shown != row.digest
        {
            return Err(argument("answer", "was given for another request"));
        }
        if request.answer == Answer::Standing && self.every_time(&row.agent, &row.tool).await? {
            return Err(argument(
                "answer",
                "from now on cannot be given: this tool asks every time; allow it once instead",
            ));
        }
        let any = self.connection(row.connection.as_str()).await?.overrides.standing_any;
        if request.answer == Answer::Standing && !can_stand(&self.sites_of(&row).await?, any) {
            return Err(argument(
                "answer",
                "from now on cannot be given: the tool's code does not say which methods and \
                 paths it calls; allow it once instead, or let it cover any with \
                 `cambium connections set SLUG --standing-any on`",
            ));
        }
        let allows = matches!(request.answer, Answer::Standing | Answer::Once);
        if allows && row.body.len() > SHOWN_BYTES {
            if request.answer == Answer::Standing {
                return Err(argument(
                    "answer",
                    "from now on cannot be given: the body is more than a person reads at a \
                     glance; allow it once instead",
                ));
            }
            if request.channel != "console" {
                let reason =
                    "a request this long is answered in the console, where it is shown whole";
                return Err(argument("channel", reason));
            }
        }
        let may = match who {
            Deciding::Person(proof) => proof.is_fresh() || !needs_fresh(request.answer, row.effect),
            Deciding::InBand { setting, .. } => {
                row.effect != Effect::Destroy || setting == InBand::StandingAndDestructive
            }
        };
        if !may {
            return Err(EngineError::PersonRequired);
        }
        if !self.approvals.settle(&row, to, &request).await? {
            return Err(already(self.approvals.state_of(&row.id).await?));
        }
        let row = self.ask_row(&request.ask).await?;
        self.view(row).await
    }

    /// Puts a question aside: a person says neither yes nor no. What waits with
    /// the request shown ends, what stands behind it is asked, and the same
    /// request asks again when it comes again.
    pub async fn dismiss(&self, _proof: &PersonProof, id: &AskId) -> Result<AskView, EngineError> {
        let _deciding = self.approvals.deciding().await;
        let mut row = self.ask_row(id).await?;
        if row.state == AskState::Open && row.expires_ms <= self.now() {
            self.approvals.settle_unanswered(&row, AskEvent::RanOut).await?;
            row.state = AskState::Expired;
        }
        if row.state != AskState::Open {
            let (ask, state) = (id.to_string(), row.state.as_str().to_owned());
            return Err(EngineError::AskSettled { ask, state });
        }
        self.approvals.settle_unanswered(&row, AskEvent::PutAside).await?;
        let row = self.ask_row(id).await?;
        self.view(row).await
    }

    async fn ask_row(&self, id: &AskId) -> Result<AskRow, EngineError> {
        let row = self.parts.store.ask(id).await?;
        // Somebody else's is as unknown as one that never was.
        let row = row
            .filter(|row| row.person == self.person)
            .ok_or_else(|| EngineError::AskNotFound(id.as_str().chars().take(64).collect()))?;
        as_held(row)
    }

    async fn sites_of(&self, row: &AskRow) -> Result<Vec<cambium_proxy::CallSite>, EngineError> {
        let loaded = self.toolbox.version(&row.tool, row.number).await?;
        Ok(loaded
            .filter(|loaded| loaded.version.hash == row.version)
            .map(|loaded| loaded.version.sites.clone())
            .unwrap_or_default())
    }

    /// The difference to the version a person last answered for.
    async fn changed_since_answered(&self, row: &AskRow) -> Result<Option<String>, EngineError> {
        let last = self.parts.store.newest_decision(&row.agent, &row.tool).await?;
        let Some(last) = last.filter(|last| last.version != row.version) else { return Ok(None) };
        let Some(new) = self.toolbox.version(&row.tool, row.number).await? else { return Ok(None) };
        for number in (1..row.number).rev() {
            if let Some(old) = self.toolbox.version(&row.tool, number).await?
                && old.version.hash == last.version
            {
                return Ok(Some(diff::unified(
                    (&format!("version {number}"), &old.version.source),
                    (&format!("version {}", row.number), &new.version.source),
                )));
            }
        }
        Ok(None)
    }

    async fn view(&self, row: AskRow) -> Result<AskView, EngineError> {
        let agent = self.agent_by_id(&row.agent).await?;
        let connection = self.connection(row.connection.as_str()).await?;
        let loaded = self.toolbox.version(&row.tool, row.number).await?;
        let call_sites = self.sites_of(&row).await?;
        let every_time = self.every_time(&row.agent, &row.tool).await?;
        let once = self.became_of_once(&row).await?;
        let diff = match row.reason {
            AskReason::Republished => self.changed_since_answered(&row).await?,
            AskReason::FirstCall | AskReason::ConnectionChanged | AskReason::NotStanding => None,
        };
        Ok(AskView {
            diff,
            once,
            excerpt: excerpt(&row.body, &row.digest),
            state: row.state.as_str().to_owned(),
            agent_name: agent.name,
            tool: row.tool.to_string(),
            version: row.number,
            description: loaded
                .map(|loaded| loaded.version.description.clone())
                .unwrap_or_default(),
            reason: said(row.reason).to_owned(),
            can_stand: can_stand(&call_sites, connection.overrides.standing_any)
                && row.body.len() <= SHOWN_BYTES
                && !every_time,
            connection_slug: connection.slug,
            body_bytes: row.body.len(),
            waiting_run: self.approvals.waiting.shown(&row.id, &row.run),
            call_sites,
            digest: row.digest.to_string(),
            body: String::from_utf8(row.body).ok(),
            id: row.id,
            agent: row.agent,
            connection: row.connection,
            effect: row.effect,
            method: row.method,
            authority: row.authority,
            target: row.target,
            headers: row.headers,
            opened_ms: row.opened_ms,
            expires_ms: row.expires_ms,
        })
    }
}

/// The digest is what a decision is bound to: what is shown must be what it was
/// taken over, whoever has had the database file in between.
fn as_held(row: AskRow) -> Result<AskRow, EngineError> {
    let shown = request_digest(&row.method, &row.authority, &row.target, &row.headers, &row.body);
    if shown != row.digest {
        let fault =
            StoreFault::Corrupt(format!("ask {} shows another request than was held", row.id));
        return Err(EngineError::Store(fault));
    }
    Ok(row)
}

fn said(reason: AskReason) -> &'static str {
    match reason {
        AskReason::FirstCall => "the agent's first write with this tool",
        AskReason::Republished => "the tool was published anew since the last answer",
        AskReason::ConnectionChanged => "the connection was changed since the last answer",
        AskReason::NotStanding => {
            "no answer stands: the last one was for one request or was withdrawn"
        }
    }
}

/// The first of a body, or of the digest where there is no text to show.
pub(crate) fn excerpt(body: &[u8], digest: &ContentHash) -> String {
    // A character cut in two at the end is left out, anything else is no text.
    let head = &body[..body.len().min(EXCERPT_CHARS * 4)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => "",
    };
    match text.is_empty() {
        true => format!("digest {}", &digest.to_string()[..EXCERPT_DIGEST]),
        false => text.chars().take(EXCERPT_CHARS).collect(),
    }
}

pub(crate) fn argument(name: &str, reason: &str) -> EngineError {
    EngineError::ArgumentInvalid { name: name.to_owned(), reason: reason.to_owned() }
}
