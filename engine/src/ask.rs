//! An ask's life as one transition function. Pure: who may say what, and what
//! an answer needs, stands here; storing and waking is in `approvals.rs`.

use crate::port::AskState;
use cambium_proxy::{Answer, CallSite, Effect, MethodPattern, PathPattern};

/// What can happen to an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskEvent {
    /// A person answered.
    Answered(Answer),
    /// Its time ran out.
    RanOut,
    /// Another version, connection or request took its place.
    Replaced,
    /// A person put it aside.
    PutAside,
}

/// Where an ask goes. `None` is a refused transition: what is settled stays
/// settled, and a withdrawal answers no ask.
pub(crate) fn transition(from: AskState, event: AskEvent) -> Option<AskState> {
    match (from, event) {
        (AskState::Open, AskEvent::Answered(Answer::Standing)) => Some(AskState::AllowedStanding),
        (AskState::Open, AskEvent::Answered(Answer::Once)) => Some(AskState::AllowedOnce),
        (AskState::Open, AskEvent::Answered(Answer::Deny)) => Some(AskState::Denied),
        (AskState::Open, AskEvent::RanOut) => Some(AskState::Expired),
        (AskState::Open, AskEvent::Replaced) => Some(AskState::Superseded),
        (AskState::Open, AskEvent::PutAside) => Some(AskState::Dismissed),
        (AskState::Open, AskEvent::Answered(Answer::Withdrawn))
        | (
            AskState::AllowedStanding
            | AskState::AllowedOnce
            | AskState::Denied
            | AskState::Expired
            | AskState::Superseded
            | AskState::Dismissed,
            AskEvent::Answered(_) | AskEvent::RanOut | AskEvent::Replaced | AskEvent::PutAside,
        ) => None,
    }
}

/// Whether *from now on* can be given: each site it would cover is known, or
/// the person let it cover any on this connection.
pub(crate) fn can_stand(sites: &[CallSite], any: bool) -> bool {
    !sites.is_empty()
        && sites.iter().all(|site| {
            any || matches!(site.method, MethodPattern::Exactly(_))
                && matches!(site.path, PathPattern::Template(_))
        })
}

/// Whether an answer needs the passphrase or a code, given just now.
pub(crate) fn needs_fresh(answer: Answer, effect: Effect) -> bool {
    match (answer, effect) {
        (Answer::Deny | Answer::Withdrawn, _) => false,
        (Answer::Standing, _) | (Answer::Once, Effect::Destroy) => true,
        (Answer::Once, Effect::Read | Effect::Write) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [AskState; 7] = [
        AskState::Open,
        AskState::AllowedStanding,
        AskState::AllowedOnce,
        AskState::Denied,
        AskState::Expired,
        AskState::Superseded,
        AskState::Dismissed,
    ];
    const EVENTS: [AskEvent; 7] = [
        AskEvent::Answered(Answer::Standing),
        AskEvent::Answered(Answer::Once),
        AskEvent::Answered(Answer::Deny),
        AskEvent::Answered(Answer::Withdrawn),
        AskEvent::RanOut,
        AskEvent::Replaced,
        AskEvent::PutAside,
    ];

    #[test]
    fn only_six_transitions_are_not_refused() {
        let mut allowed = Vec::new();
        for from in STATES {
            for event in EVENTS {
                if let Some(to) = transition(from, event) {
                    allowed.push((from, event, to));
                }
            }
        }
        assert_eq!(
            allowed,
            [
                (AskState::Open, EVENTS[0], AskState::AllowedStanding),
                (AskState::Open, EVENTS[1], AskState::AllowedOnce),
                (AskState::Open, EVENTS[2], AskState::Denied),
                (AskState::Open, EVENTS[4], AskState::Expired),
                (AskState::Open, EVENTS[5], AskState::Superseded),
                (AskState::Open, EVENTS[6], AskState::Dismissed),
            ]
        );
    }

    #[test]
    fn every_state_is_read_back_as_written() {
        for state in STATES {
            assert_eq!(AskState::parse(state.as_str()), Some(state));
        }
        assert_eq!(AskState::parse("maybe"), None);
    }

    #[test]
    fn an_any_site_cannot_stand_unless_the_connection_says_so() {
        let site = |method, path| CallSite { method, host: None, path };
        let post = || MethodPattern::Exactly("POST".into());
        let orders = || PathPattern::Template("/orders".into());
        let any = || site(post(), PathPattern::Any);
        assert!(can_stand(&[site(post(), orders())], false));
        assert!(!can_stand(&[site(post(), orders()), any()], false));
        assert!(!can_stand(&[site(MethodPattern::Any, orders())], false));
        assert!(can_stand(&[site(post(), orders()), any()], true));
        assert!(!can_stand(&[], true));
    }
}
