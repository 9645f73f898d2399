//! The proxy's ports in memory: deterministic, and each can be told to fail.
//! A desk that answers from a script stands beside them.

use cambium_proxy::{
    AgentId, Answer, ApprovalSource, AskId, AuditEvent, AuditKind, AuditRow, AuditSegment,
    AuditSink, BoxFuture, Connection, ConnectionId, ConnectionSource, ContentHash, DecisionRow,
    Desk, HeldRequest, HoldOutcome, Parked, PermitKey, SealedSecret, SecretStore, StoreFault,
    Vault,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What a store would hold.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
    /// Audit rows cannot be stored.
    pub audit_fails: AtomicBool,
    /// Only outcome rows cannot be stored.
    pub outcomes_fail: AtomicBool,
    /// Decisions cannot be read.
    pub approvals_fail: AtomicBool,
    /// Connections cannot be read.
    pub connections_fail: AtomicBool,
    /// The connection is for no agent any more.
    pub taken_away: AtomicBool,
    /// Reading a connection panics.
    pub connections_panic: AtomicBool,
    /// Reading decisions panics.
    pub approvals_panic: AtomicBool,
    /// Secrets cannot be stored; of the swaps of a refresh, only every second.
    pub secrets_fail: AtomicBool,
    /// Swaps of a secret so far.
    pub swaps: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    connections: HashMap<ConnectionId, Connection>,
    secrets: HashMap<ConnectionId, SealedSecret>,
    decisions: Vec<DecisionRow>,
    used: HashSet<AskId>,
    rows: Vec<AuditRow>,
    segments: Vec<AuditSegment>,
    appends: Vec<(usize, bool)>,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a connection in, or changes it.
    pub fn put_connection(&self, connection: Connection) {
        self.state().connections.insert(connection.id.clone(), connection);
    }

    /// Stores a decision.
    pub fn put_decision(&self, row: DecisionRow) {
        self.state().decisions.push(row);
    }

    /// How many appends there were: rows in each and whether it was durable.
    pub fn appends(&self) -> Vec<(usize, bool)> {
        self.state().appends.clone()
    }

    /// The sealed secrets, to be tampered with.
    pub fn with_secret(&self, id: &ConnectionId, change: impl FnOnce(&mut SealedSecret)) {
        if let Some(secret) = self.state().secrets.get_mut(id) {
            change(secret);
        }
    }

    /// The audit rows, to be read or tampered with.
    pub fn with_rows<T>(&self, act: impl FnOnce(&mut Vec<AuditRow>) -> T) -> T {
        act(&mut self.state().rows)
    }

    /// The segments, to be read or tampered with.
    pub fn with_segments<T>(&self, act: impl FnOnce(&mut Vec<AuditSegment>) -> T) -> T {
        act(&mut self.state().segments)
    }

    /// The audit as events.
    pub fn events(&self) -> Vec<AuditEvent> {
        let state = self.state();
        state.rows.iter().map(|row| serde_json::from_str(&row.event).expect("an event")).collect()
    }

    /// Everything held, as text, to be searched for a secret.
    pub fn dump(&self) -> String {
        let state = self.state();
        let rows: Vec<&str> = state.rows.iter().map(|row| row.event.as_str()).collect();
        format!("{}\n{:?}\n{:?}", rows.join("\n"), state.decisions, state.secrets)
    }
}

fn fault(fails: &AtomicBool) -> Result<(), StoreFault> {
    if fails.load(Ordering::SeqCst) {
        return Err(StoreFault::Unavailable("told to fail".into()));
    }
    Ok(())
}

impl ConnectionSource for Memory {
    fn connection<'a>(
        &'a self,
        id: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<Connection>, StoreFault>> {
        Box::pin(async move {
            assert!(!self.connections_panic.load(Ordering::SeqCst), "told to panic");
            fault(&self.connections_fail)?;
            Ok(self.state().connections.get(id).cloned())
        })
    }

    fn is_for<'a>(
        &'a self,
        _id: &'a ConnectionId,
        _agent: &'a AgentId,
    ) -> BoxFuture<'a, Result<bool, StoreFault>> {
        Box::pin(async move { Ok(!self.taken_away.load(Ordering::SeqCst)) })
    }
}

impl SecretStore for Memory {
    fn secret<'a>(
        &'a self,
        connection: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<SealedSecret>, StoreFault>> {
        Box::pin(async move { Ok(self.state().secrets.get(connection).cloned()) })
    }

    fn put_secret<'a>(&'a self, secret: &'a SealedSecret) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            fault(&self.secrets_fail)?;
            self.state().secrets.insert(secret.connection.clone(), secret.clone());
            Ok(())
        })
    }

    fn secrets(&self) -> BoxFuture<'_, Result<Vec<SealedSecret>, StoreFault>> {
        Box::pin(async move { Ok(self.state().secrets.values().cloned().collect()) })
    }

    fn replace_secret<'a>(
        &'a self,
        old: &'a SealedSecret,
        new: &'a SealedSecret,
    ) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            // A claim goes through, what is got under it does not.
            if self.swaps.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                fault(&self.secrets_fail)?;
            }
            let mut state = self.state();
            match state.secrets.get_mut(&old.connection) {
                Some(stored) if stored == old => {
                    stored.clone_from(new);
                    Ok(())
                }
                _ => Err(StoreFault::Conflict("another secret is stored".into())),
            }
        })
    }
}

impl ApprovalSource for Memory {
    fn standing<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a str,
        version: &'a ContentHash,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(async move {
            assert!(!self.approvals_panic.load(Ordering::SeqCst), "told to panic");
            fault(&self.approvals_fail)?;
            let state = self.state();
            let stands = |row: &&DecisionRow| {
                row.agent == *agent
                    && row.answer != Answer::Once
                    && (row.tool == tool || (row.version == *version && row.answer == Answer::Deny))
            };
            Ok(state.decisions.iter().rev().find(stands).cloned())
        })
    }

    fn decision<'a>(
        &'a self,
        ask: &'a AskId,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(async move {
            fault(&self.approvals_fail)?;
            Ok(self.state().decisions.iter().find(|row| row.ask == *ask).cloned())
        })
    }

    fn consume_once<'a>(
        &'a self,
        key: &'a PermitKey,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>> {
        Box::pin(async move {
            fault(&self.approvals_fail)?;
            let mut state = self.state();
            let fits = |row: &DecisionRow| {
                row.answer == Answer::Once
                    && row.agent == key.agent
                    && row.version == key.version
                    && row.connection == key.connection
                    && row.digest == key.digest
            };
            let found =
                state.decisions.iter().find(|row| fits(row) && !state.used.contains(&row.ask));
            let found = found.cloned();
            if let Some(row) = &found {
                state.used.insert(row.ask.clone());
            }
            Ok(found)
        })
    }
}

impl AuditSink for Memory {
    fn append<'a>(
        &'a self,
        rows: &'a [AuditRow],
        durable: bool,
    ) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            fault(&self.audit_fails)?;
            let outcome = |row: &AuditRow| {
                let event: AuditEvent = serde_json::from_str(&row.event).expect("an event");
                event.kind == AuditKind::Outcome
            };
            if rows.iter().any(outcome) {
                fault(&self.outcomes_fail)?;
            }
            let mut state = self.state();
            state.appends.push((rows.len(), durable));
            state.rows.extend_from_slice(rows);
            Ok(())
        })
    }

    fn last<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Option<AuditRow>, StoreFault>> {
        Box::pin(async move {
            fault(&self.audit_fails)?;
            Ok(self.state().rows.iter().rev().find(|row| row.node == node).cloned())
        })
    }

    fn rows<'a>(
        &'a self,
        node: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<AuditRow>, StoreFault>> {
        Box::pin(async move {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let state = self.state();
            let rows = state.rows.iter().filter(|row| row.node == node && row.sequence > after);
            Ok(rows.take(limit).cloned().collect())
        })
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreFault>> {
        Box::pin(async move {
            let state = self.state();
            let nodes: std::collections::BTreeSet<_> =
                state.rows.iter().map(|row| row.node.clone()).collect();
            Ok(nodes.into_iter().collect())
        })
    }

    fn segments<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Vec<AuditSegment>, StoreFault>> {
        Box::pin(async move {
            let state = self.state();
            Ok(state.segments.iter().filter(|segment| segment.node == node).cloned().collect())
        })
    }

    fn let_go<'a>(&'a self, segment: &'a AuditSegment) -> BoxFuture<'a, Result<(), StoreFault>> {
        Box::pin(async move {
            let mut state = self.state();
            state.segments.push(segment.clone());
            let gone = |row: &AuditRow| {
                row.node == segment.node && (segment.first..=segment.last).contains(&row.sequence)
            };
            state.rows.retain(|row| !gone(row));
            Ok(())
        })
    }
}

/// What the person at a [`ScriptedDesk`] does with the next request.
#[derive(Debug, Clone)]
pub enum Word {
    /// Answers, for the request shown.
    Say(Answer),
    /// Answers *once*, but for other bytes.
    OnceForOther,
    /// Answers with a row whose MAC does not hold.
    Forge(Answer),
    /// Says it was decided and stores nothing.
    Lie,
    /// Does not answer within the wait budget.
    Silent,
    /// The ask cannot be stored.
    Fail,
    /// Never comes back.
    Away,
    /// Waits for [`ScriptedDesk::let_go`], then does what follows.
    Then(Box<Word>),
}

/// A desk whose person follows a script, one word a request; after the last
/// word they are silent.
pub struct ScriptedDesk {
    memory: Arc<Memory>,
    vault: Arc<Vault>,
    words: Mutex<VecDeque<Word>>,
    shown: Mutex<Vec<HeldRequest>>,
    news: watch::Sender<usize>,
    gate: watch::Sender<bool>,
}

impl ScriptedDesk {
    /// A desk that stores its decisions in `memory`, signed by `vault`.
    pub fn new(memory: Arc<Memory>, vault: Arc<Vault>) -> Arc<Self> {
        Arc::new(Self {
            memory,
            vault,
            words: Mutex::default(),
            shown: Mutex::default(),
            news: watch::Sender::new(0),
            gate: watch::Sender::new(false),
        })
    }

    /// Adds to the script.
    pub fn will(&self, word: Word) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).push_back(word);
    }

    /// What was shown so far.
    pub fn shown(&self) -> Vec<HeldRequest> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until that many requests were shown.
    pub async fn until_shown(&self, count: usize) {
        let mut news = self.news.subscribe();
        news.wait_for(|shown| *shown >= count).await.expect("the desk lives");
    }

    /// Lets every [`Word::Then`] go on.
    pub fn let_go(&self) {
        self.gate.send_replace(true);
    }
}

/// A decision about a held request, signed.
pub fn decision(request: &HeldRequest, ask: AskId, answer: Answer, vault: &Vault) -> DecisionRow {
    DecisionRow {
        ask,
        sequence: 1,
        person: request.person.clone(),
        agent: request.agent.clone(),
        tool: request.tool.clone(),
        version: request.version,
        connection: request.connection.clone(),
        generation: request.generation,
        digest: request.digest,
        answer,
        channel: "console".into(),
        at_ms: 0,
        mac: Vec::new(),
    }
    .sign(vault)
}

impl Desk for ScriptedDesk {
    fn hold<'a>(&'a self, request: HeldRequest) -> BoxFuture<'a, HoldOutcome> {
        Box::pin(async move {
            let number = {
                let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.push(request.clone());
                self.news.send_replace(shown.len());
                shown.len()
            };
            let ask = AskId::new(format!("{number:032x}"));
            let next = self.words.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let mut word = next.unwrap_or(Word::Silent);
            while let Word::Then(after) = word {
                let mut gate = self.gate.subscribe();
                gate.wait_for(|open| *open).await.expect("the desk lives");
                word = *after;
            }
            let mut row = match &word {
                Word::Say(answer) | Word::Forge(answer) => {
                    decision(&request, ask.clone(), *answer, &self.vault)
                }
                Word::OnceForOther => {
                    let mut other = request.clone();
                    other.digest = ContentHash([7; 32]);
                    decision(&other, ask.clone(), Answer::Once, &self.vault)
                }
                Word::Lie => return HoldOutcome::Decided(ask),
                Word::Silent => {
                    return HoldOutcome::Parked(Parked { ask, expires_ms: 1_000, shown: true });
                }
                Word::Fail => return HoldOutcome::Failed,
                Word::Away | Word::Then(_) => return std::future::pending().await,
            };
            if matches!(word, Word::Forge(_)) {
                row.mac[0] ^= 1;
            }
            self.memory.put_decision(row);
            HoldOutcome::Decided(ask)
        })
    }
}
