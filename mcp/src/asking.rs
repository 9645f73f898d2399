//! Putting an ask to the agent's own person through the harness: the form, what
//! its answer means, and the calls that wait for one across requests. Whether an
//! ask may be put at all, and what an answer then decides, is the engine's.

use crate::reply::Reply;
use crate::tasks::Shown;
use cambium_engine::{Engine, InBandAnswer, Offer, OfferEnd};
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, JsonObject,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

/// The one field every form has.
const APPROVE: &str = "approve";
/// Asks for a standing answer; there only when that may be given.
const FROM_NOW_ON: &str = "fromNowOn";
/// The form's name among the inputs a call requires.
const INPUT: &str = "approval";
/// Calls parked at once; an agent can hold four, a node 64.
const PARKED_MAX: usize = 64;

/// Which ways of asking a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    /// A form in the client.
    pub(crate) form: bool,
    /// A page the client opens.
    pub(crate) url: bool,
}

impl Ways {
    /// As the client declared them; an empty declaration means forms.
    pub(crate) fn of(client: Option<&ClientCapabilities>) -> Self {
        match client.and_then(|client| client.elicitation.as_ref()) {
            None => Self { form: false, url: false },
            Some(ways) => {
                Self { form: ways.form.is_some() || ways.url.is_none(), url: ways.url.is_some() }
            }
        }
    }
}

/// The form of an offer. What the agent or its module wrote stands in quotation
/// marks, after what we know ourselves.
pub(crate) fn form(offer: &Offer) -> ElicitRequestParams {
    let ask = &offer.ask;
    let mut message = format!(
        "Allow one write? {} https://{}{} with the credential of {}. Tool {} version {}: {}.",
        ask.method,
        ask.authority,
        plain(&ask.target),
        ask.connection_slug,
        ask.tool,
        ask.version,
        ask.reason,
    );
    if let Some(body) = ask.body.as_ref().filter(|body| !body.is_empty()) {
        message.push_str(&format!(" It sends, exactly: \u{201c}{}\u{201d}.", plain(body)));
    }
    message.push_str(&format!(
        " The agent's own account of the tool, not checked: \u{201c}{}\u{201d}.",
        plain(&ask.description)
    ));
    let mut schema = ElicitationSchema::builder().required_bool_property(APPROVE, |field| {
        field.title("Allow it").description("Only this lets the request shown go, byte for byte.")
    });
    if offer.standing {
        schema = schema.optional_bool_with(FROM_NOW_ON, |field| {
            field
                .title("From now on")
                .description("Also let this version's recorded calls go later without asking.")
        });
    }
    let requested_schema = schema.build_unchecked();
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// A page of the console, for a client that can open one. It decides nothing.
pub(crate) fn page(ask: &str, link: String) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: "A write waits for you; look at it and answer in the console.".into(),
        url: link,
        elicitation_id: ask.to_owned(),
    }
}

/// What a client's result says. Accepting the form without saying yes in it is
/// no approval.
pub(crate) fn meant(result: &ElicitResult) -> InBandAnswer {
    let says = |field: &str| {
        result.content.as_ref().and_then(|content| content.get(field)) == Some(&Value::Bool(true))
    };
    match result.action {
        ElicitationAction::Accept if says(APPROVE) && says(FROM_NOW_ON) => InBandAnswer::Standing,
        ElicitationAction::Accept if says(APPROVE) => InBandAnswer::Once,
        ElicitationAction::Decline => InBandAnswer::Deny,
        // what the library may add later decides nothing
        _ => InBandAnswer::Dismissed,
    }
}

/// Text of strangers on one line, with what cannot be seen written out.
fn plain(text: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(u32::from(c), 0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e
                | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfeff | 0xe0000..=0xe0fff)
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match hides(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
        shown
    })
}

/// A call that waits for its answer between two requests of the newer era.
pub(crate) struct ParkedCall {
    /// Which agent's.
    pub(crate) agent: String,
    /// The tool that was called.
    pub(crate) name: String,
    /// With what.
    pub(crate) arguments: JsonObject,
    /// The call itself.
    pub(crate) call: JoinHandle<Reply>,
    /// Further asks it is held for.
    pub(crate) held: UnboundedReceiver<cambium_engine::AskName>,
    /// What is asked.
    pub(crate) offer: Offer,
}

/// Calls that wait for an answer, by the state their client was given: the name
/// of an offer, 128 random bits, good for one answer.
#[derive(Default)]
pub(crate) struct Parking {
    calls: Mutex<HashMap<String, ParkedCall>>,
    /// The forms that tasks show.
    pub(crate) shown: Shown,
}

impl Parking {
    /// Keeps a call and answers what its client is told; `None` when there is no
    /// room, and the call then waits for the console alone.
    pub(crate) fn park(&self, parked: ParkedCall) -> Option<InputRequiredResult> {
        let mut places = self.places();
        if places.len() >= PARKED_MAX {
            places.retain(|_, parked| !parked.call.is_finished());
        }
        if places.len() >= PARKED_MAX {
            return None;
        }
        let state = parked.offer.id.clone();
        let request = InputRequest::Elicitation(ElicitRequest::new(form(&parked.offer)));
        places.insert(state.clone(), parked);
        let inputs = [(INPUT.to_owned(), request)].into();
        Some(InputRequiredResult::new(Some(inputs), Some(state)))
    }

    /// Takes a call back: only for the agent and the call it was made by.
    pub(crate) fn take(
        &self,
        state: &str,
        agent: &str,
        name: &str,
        arguments: &JsonObject,
    ) -> Option<ParkedCall> {
        let mut places = self.places();
        let parked = places.get(state)?;
        let same = parked.agent == agent && parked.name == name && parked.arguments == *arguments;
        if same { places.remove(state) } else { None }
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer among the inputs of a retry, if the client sent one.
pub(crate) fn input(inputs: Option<&rmcp::model::InputResponses>) -> Option<InBandAnswer> {
    let result: ElicitResult = serde_json::from_value(inputs?.get(INPUT)?.clone()).ok()?;
    Some(meant(&result))
}

/// What a call is told whose form came to nothing.
pub(crate) fn unanswered(end: OfferEnd) -> Option<&'static str> {
    match end {
        OfferEnd::Decided | OfferEnd::Void => None,
        OfferEnd::Dismissed => Some(
            "the question shown in the harness was put away without an answer; nothing was \
             decided, and it stays open in the console",
        ),
        OfferEnd::TooFast => Some(
            "the question shown in the harness was answered faster than a person reads, which \
             counts as no answer; it stays open in the console",
        ),
    }
}

/// Takes an answer; a fault is logged and leaves the ask to the console.
pub(crate) async fn answered(
    engine: &Engine,
    caller: &cambium_engine::Caller,
    offer: &str,
    answer: InBandAnswer,
) -> OfferEnd {
    match engine.answer_offer(caller, offer, answer).await {
        Ok(end) => {
            tracing::debug!(offer, ?end, "an answer came in band");
            end
        }
        Err(error) => {
            tracing::warn!(offer, %error, "an answer in band could not be taken");
            OfferEnd::Void
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(action: ElicitationAction, content: Option<Value>) -> ElicitResult {
        let mut result = ElicitResult::new(action);
        result.content = content;
        result
    }

    #[test]
    fn b061_only_a_yes_in_the_form_is_a_yes() {
        use ElicitationAction::{Accept, Cancel, Decline};
        for (action, content, want) in [
            (Accept, Some(json!({"approve": true})), InBandAnswer::Once),
            (Accept, Some(json!({"approve": true, "fromNowOn": true})), InBandAnswer::Standing),
            (Accept, Some(json!({"approve": true, "fromNowOn": "yes"})), InBandAnswer::Once),
            (Accept, Some(json!({"approve": false, "fromNowOn": true})), InBandAnswer::Dismissed),
            (Accept, Some(json!({"approve": "true"})), InBandAnswer::Dismissed),
            (Accept, Some(json!({})), InBandAnswer::Dismissed),
            (Accept, None, InBandAnswer::Dismissed),
            (Decline, None, InBandAnswer::Deny),
            (Decline, Some(json!({"approve": true})), InBandAnswer::Deny),
            (Cancel, Some(json!({"approve": true})), InBandAnswer::Dismissed),
        ] {
            assert_eq!(meant(&result(action.clone(), content.clone())), want, "{content:?}");
        }
    }

    #[test]
    fn what_strangers_wrote_cannot_hide_in_a_form() {
        assert_eq!(plain("a\u{202e}b\n\u{200b}c"), "a\\u{202e}b\\u{a}\\u{200b}c");
    }
}
