//! What is written down of one request: its audit rows and its entry in the
//! run's report. Query values, header values and bodies are never taken in;
//! what is taken in has the secret hidden first.

use super::{Exchange, Inner};
use crate::audit::writer::Ticket;
use crate::headers;
use crate::judge::Findings;
use crate::scrub::Redactor;
use crate::target::Target;
use crate::{AskId, AuditEvent, AuditKind, ContentHash, Effect, Grant, Preview, Refusal};
use std::sync::Arc;

/// Longest text of a module's own that an audit row keeps, characters.
const TEXT: usize = 512;

/// Most notes on a row: a request can drop as many headers as it may carry.
const NOTES: usize = 64;

/// One request, from the moment it was asked.
#[derive(Clone)]
pub(super) struct Trail {
    inner: Arc<Inner>,
    redactor: Redactor,
    number: u32,
    /// Place in the report; `None` once the report is full.
    place: Option<usize>,
    /// Bytes may have gone.
    pub(super) wired: bool,
    started: u64,
    pub(super) held_us: u64,
    pub(super) vendor_us: u64,
    /// Waiting for the module to read.
    pub(super) reader_us: u64,
    pub(super) effect: Option<Effect>,
    pub(super) decision: &'static str,
    pub(super) rule: String,
    pub(super) digest: Option<ContentHash>,
    pub(super) approval: Option<AskId>,
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) redactions: u32,
    method: String,
    host: String,
    path: String,
    query_keys: Vec<String>,
    notes: Vec<String>,
}

impl Trail {
    pub(super) fn begin(
        inner: &Arc<Inner>,
        redactor: Redactor,
        method: &str,
        target: &str,
    ) -> Self {
        let number = inner.budget.number();
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let mut trail = Self {
            inner: inner.clone(),
            number,
            place: None,
            wired: false,
            started: inner.shared.parts.clock.ticks_us(),
            held_us: 0,
            vendor_us: 0,
            reader_us: 0,
            effect: None,
            decision: "refuse",
            rule: String::new(),
            digest: None,
            approval: None,
            status: None,
            bytes: None,
            redactions: 0,
            method: foreign(&redactor, method),
            host: String::new(),
            path: foreign(&redactor, path),
            query_keys: Vec::new(),
            notes: Vec::new(),
            redactor,
        };
        trail.enter();
        trail
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Where the request goes.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Microseconds since some fixed moment.
    pub(super) fn ticks(&self) -> u64 {
        self.inner.shared.parts.clock.ticks_us()
    }

    /// Takes in what the judge found.
    pub(super) fn learns(&mut self, found: &Findings) {
        if let Some(target) = &found.target {
            self.aims(target);
        }
        if found.parameters_dropped > 0 {
            self.note("query_parameter_dropped");
        }
        self.effect = found.effect.or(found.method);
        let dropped = found.headers.iter().flat_map(|headers| &headers.notes);
        dropped.for_each(|note| self.note(note));
        found.rule.clone_into(&mut self.rule);
    }

    /// From here on the row holds what goes on the wire.
    pub(super) fn aims(&mut self, target: &Target) {
        self.host.clone_from(&target.authority);
        self.path = self.redactor.text(&target.path).0;
        self.query_keys = target
            .query_keys()
            .iter()
            .take(NOTES)
            .map(|key| foreign(&self.redactor, key))
            .collect();
    }

    pub(super) fn note(&mut self, note: &str) {
        if self.notes.len() < NOTES {
            self.notes.push(foreign(&self.redactor, note));
        }
    }

    /// Queues a row.
    pub(super) fn row(&self, kind: AuditKind, durable: bool) -> Ticket {
        self.inner.shared.writer.put(self.event(kind), durable)
    }

    /// Queues a row that nobody waits for.
    pub(super) fn row_later(&self, kind: AuditKind) {
        self.inner.shared.writer.put_later(self.event(kind));
    }

    /// Records a refusal that came before the wire. The row failing changes
    /// nothing: nothing is sent either way.
    pub(super) async fn refused(&mut self, refusal: &Refusal) {
        self.decision = "refuse";
        refusal.code().clone_into(&mut self.rule);
        self.fatal(refusal);
        self.settle(Some(refusal), None);
        if let Err(fault) = self.row(AuditKind::Refusal, false).stored().await {
            tracing::error!(%fault, code = refusal.code(), "a refusal could not be recorded");
        }
    }

    /// Ends the run where a refusal must.
    pub(super) fn fatal(&self, refusal: &Refusal) {
        let ends = match refusal {
            Refusal::MethodExceedsHint(_)
            | Refusal::ToolDenied(_)
            | Refusal::AwaitingApproval(_)
            | Refusal::AskDismissed(_)
            | Refusal::ProxyFailed(_)
            | Refusal::ConnectionRevoked(_)
            | Refusal::ConnectionNotInScope(_) => true,
            // A read that could not be recorded may be tried again.
            Refusal::AuditUnavailable(_) => self.effect.is_none_or(|e| e != Effect::Read),
            _ => false,
        };
        if ends {
            self.inner.report().fatal.get_or_insert_with(|| refusal.clone());
            self.inner.ended.cancel();
        }
    }

    /// Brings the report up to date.
    pub(super) fn settle(&self, refusal: Option<&Refusal>, preview: Option<Preview>) {
        let Some(place) = self.place else { return };
        let mut report = self.inner.report();
        if let Some(entry) = report.exchanges.get_mut(place) {
            *entry = self.exchange();
            entry.refusal = refusal.cloned();
            entry.preview = preview;
        }
    }

    fn enter(&mut self) {
        let entry = self.exchange();
        let mut report = self.inner.report();
        // One past the cap, so that the refusal is seen; a loop fills no more.
        if report.exchanges.len() <= self.inner.budget.most() {
            self.place = Some(report.exchanges.len());
            report.exchanges.push(entry);
        }
    }

    fn exchange(&self) -> Exchange {
        Exchange {
            method: self.method.clone(),
            host: self.host.clone(),
            path: self.path.clone(),
            status: self.status,
            preview: None,
            refusal: None,
            dropped: self.notes.iter().filter_map(|note| dropped(note)).collect(),
            vendor_us: self.vendor_us,
            proxy_us: self.proxy_us(),
            held_us: self.held_us,
        }
    }

    fn proxy_us(&self) -> u64 {
        let total = self.ticks().saturating_sub(self.started);
        total.saturating_sub(self.held_us + self.vendor_us + self.reader_us)
    }

    fn event(&self, kind: AuditKind) -> AuditEvent {
        let spec = &self.inner.spec;
        let after = kind == AuditKind::Outcome;
        AuditEvent {
            kind,
            at_ms: self.inner.shared.parts.clock.now_ms(),
            run: spec.run.to_string(),
            request: self.number,
            agent: spec.agent.to_string(),
            tool: spec.tool.clone(),
            version: spec.version.to_string(),
            connection: spec.connection.id.to_string(),
            approval: self.approval.as_ref().map(AskId::to_string),
            effect: self.effect.map(|effect| effect_name(effect).to_owned()),
            decision: self.decision.to_owned(),
            rule: self.rule.clone(),
            method: self.method.clone(),
            host: self.host.clone(),
            path: self.path.clone(),
            query_keys: self.query_keys.clone(),
            digest: self.digest.map(String::from),
            status: self.status,
            bytes: self.bytes,
            vendor_us: after.then_some(self.vendor_us),
            proxy_us: after.then(|| self.proxy_us()),
            redactions: after.then_some(self.redactions),
            dry_run: matches!(spec.grant, Grant::Preview),
            notes: self.notes.clone(),
        }
    }
}

impl Drop for Trail {
    /// A request that was given up before its bytes went is one that was not
    /// sent, whatever its method: a reader of the report must not take it for a
    /// write whose outcome nobody knows.
    fn drop(&mut self) {
        let Some(place) = self.place.filter(|_| !self.wired) else { return };
        if let Some(entry) = self.inner.report().exchanges.get_mut(place)
            && entry.status.is_none()
            && entry.preview.is_none()
        {
            entry.refusal.get_or_insert_with(super::send::closed);
        }
    }
}

/// The header a note says was dropped, where its loss is worth telling.
fn dropped(note: &str) -> Option<String> {
    let name = note.strip_prefix("header_dropped:")?;
    (!headers::ALWAYS_OURS.contains(&name)).then(|| name.to_owned())
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Destroy => "destroy",
    }
}

/// A module's own text as a row keeps it: hidden, escaped, cut.
fn foreign(redactor: &Redactor, text: &str) -> String {
    // Hidden before it is cut, so that no half of a secret is left at the end.
    let bounded: String = text.chars().take(16 * TEXT).collect();
    let hidden = redactor.text(&bounded).0;
    hidden.escape_debug().take(TEXT).collect()
}
