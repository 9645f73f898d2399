//! Decisions of a person, as stored, and the one function that turns a stored
//! decision into a grant. The MAC over a row is checked here at every use.

use crate::grant::Covers;
use crate::{
    AgentId, AskId, BoxFuture, ConnectionId, ContentHash, Grant, Permit, PersonId, Refusal,
    StoreFault, Vault,
};
use serde::{Deserialize, Serialize};

/// The vault's MAC domain of decisions.
const DOMAIN: &str = "decision";

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// From now on: the recorded call sites of that version on that connection
    /// at that generation.
    Standing,
    /// Exactly the bytes shown, once.
    Once,
    /// Refused until changed.
    Deny,
    /// Takes back a standing answer or a deny; a row like the others, since
    /// nothing is deleted.
    Withdrawn,
}

/// One decision. Append-only; the newest row for (agent, tool) stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRow {
    /// The ask it answers (a withdrawal names the ask of what it withdraws).
    pub ask: AskId,
    /// Rises per (agent, tool); the newest stands.
    pub sequence: u64,
    /// Whose toolbox.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// The version's content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// At which generation of it.
    pub generation: u64,
    /// The held request's digest.
    pub digest: ContentHash,
    /// The answer.
    pub answer: Answer,
    /// Where it was given: `console`, `cli`, `elicitation`.
    pub channel: String,
    /// When, milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above, under a key derived from the vault's.
    pub mac: Vec<u8>,
}

/// What names a one-request permit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PermitKey {
    /// Which agent.
    pub agent: AgentId,
    /// The version's content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// The wire bytes' digest.
    pub digest: ContentHash,
}

/// Reads decisions and consumes one-request permits. `store` implements it.
pub trait ApprovalSource: Send + Sync {
    /// The newest standing, deny or withdrawn row of this agent for this tool,
    /// or for the same content under another name if that is a deny.
    fn standing<'a>(
        &'a self,
        agent: &'a AgentId,
        tool: &'a str,
        version: &'a ContentHash,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
    /// The decision that answered one ask.
    fn decision<'a>(
        &'a self,
        ask: &'a AskId,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
    /// An unused *once* decision for exactly this request, marked used by
    /// compare-and-swap in the same step: a second caller gets `None`.
    fn consume_once<'a>(
        &'a self,
        key: &'a PermitKey,
    ) -> BoxFuture<'a, Result<Option<DecisionRow>, StoreFault>>;
}

impl DecisionRow {
    /// Sets the MAC over all other fields; called once, where a decision is made.
    pub fn sign(mut self, vault: &Vault) -> Self {
        self.mac = self.under_mac(|fields| vault.mac(DOMAIN, fields).to_vec());
        self
    }

    /// Whether the MAC holds for every field.
    pub fn holds(&self, vault: &Vault) -> bool {
        self.under_mac(|fields| vault.mac_holds(DOMAIN, fields, &self.mac))
    }

    fn under_mac<T>(&self, act: impl FnOnce(&[&[u8]]) -> T) -> T {
        let answer: &[u8] = match self.answer {
            Answer::Standing => b"standing",
            Answer::Once => b"once",
            Answer::Deny => b"deny",
            Answer::Withdrawn => b"withdrawn",
        };
        act(&[
            self.ask.as_str().as_bytes(),
            &self.sequence.to_be_bytes(),
            self.person.as_str().as_bytes(),
            self.agent.as_str().as_bytes(),
            self.tool.as_bytes(),
            &self.version.0,
            self.connection.as_str().as_bytes(),
            &self.generation.to_be_bytes(),
            &self.digest.0,
            answer,
            self.channel.as_bytes(),
            &self.at_ms.to_be_bytes(),
        ])
    }
}

/// What a decision must be about to count for a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) person: &'a PersonId,
    pub(crate) agent: &'a AgentId,
    pub(crate) tool: &'a str,
    pub(crate) version: &'a ContentHash,
    pub(crate) connection: &'a ConnectionId,
    pub(crate) generation: u64,
}

/// What stands for a run.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nobody has answered for this version on this connection as it is.
    Nothing,
    /// A person said *from now on*.
    Allowed(Permit),
    /// A person said no.
    Denied,
}

/// Reads what stands. The only place that makes a permit for recorded sites.
pub(crate) async fn standing(
    source: &dyn ApprovalSource,
    vault: &Vault,
    about: About<'_>,
) -> Result<Standing, Refusal> {
    let row = source.standing(about.agent, about.tool, about.version).await.map_err(unread)?;
    let Some(row) = row else { return Ok(Standing::Nothing) };
    if !row.holds(vault) {
        // Forged or damaged: it allows nothing, and a person is asked anew.
        tracing::error!(ask = %row.ask, "a decision's MAC does not hold");
        return Ok(Standing::Nothing);
    }
    Ok(match row.answer {
        // A no is about the tool by name or by content, so neither a new
        // version, a new name nor another connection gets round it.
        Answer::Deny if row.agent == *about.agent => Standing::Denied,
        Answer::Standing if is_about(&row, about) => {
            Standing::Allowed(Permit { ask: row.ask, covers: Covers::RecordedSites })
        }
        Answer::Deny | Answer::Standing | Answer::Once | Answer::Withdrawn => Standing::Nothing,
    })
}

/// Consumes a *once* for exactly these bytes, if a person gave one. The store
/// hands it out by compare-and-swap, so it releases one request.
pub(crate) async fn once(
    source: &dyn ApprovalSource,
    vault: &Vault,
    about: About<'_>,
    digest: ContentHash,
) -> Result<Option<Permit>, Refusal> {
    let key = PermitKey {
        agent: about.agent.clone(),
        version: *about.version,
        connection: about.connection.clone(),
        digest,
    };
    let Some(row) = source.consume_once(&key).await.map_err(unread)? else { return Ok(None) };
    let counts = row.holds(vault)
        && row.answer == Answer::Once
        && row.digest == digest
        && is_about(&row, about);
    Ok(counts.then_some(Permit { ask: row.ask, covers: Covers::Digest(digest) }))
}

/// What a person answered to one ask.
#[derive(Debug)]
pub(crate) enum Reading {
    /// *From now on*, and the bytes shown in any case.
    Standing(Permit, ContentHash),
    /// *Once*, for these bytes; still to be consumed.
    Once(ContentHash),
    /// No.
    Denied,
    /// The answer is for another version or connection state, or taken back.
    Elsewhere,
}

/// Reads the decision under an ask; a desk's word is not enough.
pub(crate) async fn decision(
    source: &dyn ApprovalSource,
    vault: &Vault,
    about: About<'_>,
    ask: &AskId,
) -> Result<Reading, Refusal> {
    let row = source.decision(ask).await.map_err(unread)?;
    let row = row.ok_or_else(|| {
        Refusal::AuditUnavailable("the decision is not in the store; nothing was sent".into())
    })?;
    if !row.holds(vault) || row.ask != *ask {
        tracing::error!(%ask, "a decision's MAC does not hold");
        return Err(Refusal::AuditUnavailable(
            "the stored decision does not hold; nothing was sent".into(),
        ));
    }
    Ok(match row.answer {
        Answer::Deny if row.agent == *about.agent => Reading::Denied,
        Answer::Standing if is_about(&row, about) => {
            let digest = row.digest;
            Reading::Standing(Permit { ask: row.ask, covers: Covers::RecordedSites }, digest)
        }
        Answer::Once if is_about(&row, about) => Reading::Once(row.digest),
        Answer::Deny | Answer::Standing | Answer::Once | Answer::Withdrawn => Reading::Elsewhere,
    })
}

/// What kind of run asks to be admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) read_only: bool,
    pub(crate) dry_run: bool,
    pub(crate) each: bool,
}

/// Turns what is stored into a grant.
pub(crate) async fn admit(
    source: &dyn ApprovalSource,
    vault: &Vault,
    about: About<'_>,
    wanted: Wanted,
) -> Result<Grant, Refusal> {
    let standing = standing(source, vault, about).await?;
    Ok(match standing {
        Standing::Denied => return Err(denied()),
        _ if wanted.dry_run => Grant::Preview,
        _ if wanted.read_only => Grant::ReadOnly,
        _ if wanted.each => Grant::AskEach,
        Standing::Allowed(permit) => Grant::Write(permit),
        Standing::Nothing => Grant::Ask,
    })
}

/// A person said no.
pub(crate) fn denied() -> Refusal {
    Refusal::ToolDenied("a person refused this tool for this agent".into())
}

fn is_about(row: &DecisionRow, about: About<'_>) -> bool {
    row.person == *about.person
        && row.agent == *about.agent
        && row.tool == about.tool
        && row.version == *about.version
        && row.connection == *about.connection
        && row.generation == about.generation
}

fn unread(fault: StoreFault) -> Refusal {
    tracing::error!(%fault, "approvals could not be read");
    Refusal::AuditUnavailable("the approvals could not be read; nothing was sent".into())
}
