//! Answers a harness passes on. An offer names one ask and the digest it shows,
//! is kept here and not by the client, and can be answered once, by the agent it
//! was made to. An answer that comes sooner than a person can read is a client's
//! own and counts as a dismissal.

use crate::approvals::Deciding;
use crate::command::Caller;
use crate::id::random;
use crate::waiting::Verdict;
use crate::{AskView, DecideRequest, Engine, EngineError, InBand};
use cambium_proxy::{AgentId, Answer, AskId, ContentHash, Effect};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The least time a person takes to read a form.
const READING_MS: i64 = 1_500;
/// Offers open at once; more than can be held (64) are forgotten ones.
const OFFERS_MAX: usize = 128;
/// An offer nobody answered is forgotten after the longest time a request can
/// be held, so that clients that went away use up no place.
const OFFER_LIFE_MS: i64 = 60 * 60 * 1000;
/// What is recorded beside a decision.
const CHANNEL: &str = "elicitation";

/// An ask as a harness may put it to its person.
#[derive(Debug, Clone)]
pub struct Offer {
    /// 128 random bits, hexadecimal.
    pub id: String,
    /// What is asked.
    pub ask: AskView,
    /// *From now on* may be answered too.
    pub standing: bool,
}

/// What came back for an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InBandAnswer {
    /// *Allow this once.*
    Once,
    /// *Allow from now on.*
    Standing,
    /// A person said no.
    Deny,
    /// Nobody said anything.
    Dismissed,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferEnd {
    /// It decided the ask.
    Decided,
    /// The form was put away without an answer.
    Dismissed,
    /// It came faster than a person reads, and counts for nothing.
    TooFast,
    /// It came too late, or was no longer asked for.
    Void,
}

struct Open {
    agent: AgentId,
    ask: AskId,
    digest: ContentHash,
    standing: bool,
    made_ms: i64,
}

/// Offers that can still be answered.
#[derive(Default)]
pub(crate) struct Offers(Mutex<HashMap<String, Open>>);

impl Offers {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Offers an open ask to the agent's own harness: `None` unless a person
    /// switched that on for the agent, the ask is for eyes that see a form only,
    /// and nobody else was offered it.
    pub async fn offer(&self, caller: &Caller, ask: &AskId) -> Result<Option<Offer>, EngineError> {
        let setting = self.in_band(&caller.agent.id).await?;
        if setting == InBand::Off {
            return Ok(None);
        }
        let view = self.ask(ask).await?;
        let too_much = view.body_bytes > crate::approvals::SHOWN_BYTES || view.body.is_none();
        let destroys = view.effect == Effect::Destroy;
        if view.agent != caller.agent.id
            || view.state != "open"
            || too_much
            || (destroys && setting != InBand::StandingAndDestructive)
        {
            return Ok(None);
        }
        let Ok(digest) = ContentHash::try_from(view.digest.clone()) else { return Ok(None) };
        let id = format!("{:032x}", u128::from_be_bytes(random::<16>()?));
        let standing = setting.standing() && view.can_stand;
        let made_ms = self.now();
        let mut offers = self.offers.open();
        offers.retain(|_, open| made_ms.saturating_sub(open.made_ms) < OFFER_LIFE_MS);
        if offers.values().any(|open| open.ask == view.id) || offers.len() >= OFFERS_MAX {
            return Ok(None);
        }
        let agent = caller.agent.id.clone();
        offers.insert(id.clone(), Open { agent, ask: view.id.clone(), digest, standing, made_ms });
        Ok(Some(Offer { id, ask: view, standing }))
    }

    /// Takes an offer's answer and says what it came to. Whatever it is, the offer
    /// is gone afterwards.
    pub async fn answer_offer(
        &self,
        caller: &Caller,
        offer: &str,
        answer: InBandAnswer,
    ) -> Result<OfferEnd, EngineError> {
        let open = {
            let mut offers = self.offers.open();
            match offers.get(offer) {
                Some(open) if open.agent == caller.agent.id => offers.remove(offer),
                _ => None,
            }
        };
        let Some(open) = open else { return Ok(OfferEnd::Void) };
        let taken = self.now().saturating_sub(open.made_ms);
        let answer = match answer {
            InBandAnswer::Dismissed => return Ok(OfferEnd::Dismissed),
            _ if taken < READING_MS => {
                tracing::info!(ask = %open.ask, taken, "answered faster than a person reads");
                return Ok(OfferEnd::TooFast);
            }
            InBandAnswer::Once => Answer::Once,
            InBandAnswer::Standing if open.standing => Answer::Standing,
            InBandAnswer::Standing => return Ok(OfferEnd::Void),
            InBandAnswer::Deny => Answer::Deny,
        };
        // It may have been switched off, or the ask replaced, while it was shown.
        let setting = self.in_band(&caller.agent.id).await?;
        if setting == InBand::Off || (answer == Answer::Standing && !setting.standing()) {
            return Ok(OfferEnd::Void);
        }
        let request = DecideRequest { ask: open.ask, answer, channel: CHANNEL.to_owned() };
        match self.decide_as(Deciding::InBand { shown: open.digest, setting }, request).await {
            Ok(_) => Ok(OfferEnd::Decided),
            Err(EngineError::AskSettled { .. }) => Ok(OfferEnd::Void),
            Err(error) => Err(error),
        }
    }

    /// Ends the wait of this agent's calls with the request an ask shows: their
    /// harness was asked and nobody answered. The ask stays open elsewhere.
    pub fn leave_open(&self, caller: &Caller, ask: &AskId) {
        self.approvals.waiting.wake_shown(ask, &caller.agent.id, Verdict::Unanswered);
    }
}
