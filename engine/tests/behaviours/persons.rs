//! Decision 37 and behaviour 67: codes, the passphrase, sessions and tokens.

use crate::house::{House, START_MS};
use cambium_engine::{NewAgent, PersonCredential};

fn passphrase(text: &str) -> PersonCredential {
    PersonCredential::Passphrase(text.to_owned())
}

#[tokio::test]
async fn decision37_a_code_proves_once_and_for_ten_minutes() {
    let house = House::new().await;
    let code = house.engine.issue_code().await.unwrap();
    let show = |code: &str| house.engine.prove_person(PersonCredential::Code(code.to_owned()));
    assert!(show(&code).await.unwrap().is_fresh());
    assert_eq!(show(&code).await.unwrap_err().code(), "person_required", "single use");
    let late = house.engine.issue_code().await.unwrap();
    house.clock.advance(10 * 60 * 1000);
    assert_eq!(show(&late).await.unwrap_err().code(), "person_required", "ten minutes");
    assert_eq!(show("").await.unwrap_err().code(), "person_required");
    let two = house.engine.issue_code().await.unwrap();
    let (one, other) = tokio::join!(show(&two), show(&two));
    assert_eq!([one, other].iter().filter(|proof| proof.is_ok()).count(), 1);
}

#[tokio::test]
async fn decision37_the_passphrase_is_set_once_proved_and_a_change_ends_sessions() {
    let house = House::new().await;
    let engine = &house.engine;
    assert!(engine.needs_setup().await.unwrap());
    assert!(engine.prove_person(passphrase("anything")).await.is_err(), "none is set");
    let proof = house.person().await;
    let short = engine.set_passphrase(&proof, passphrase("short")).await.unwrap_err();
    assert_eq!(short.code(), "out_of_range");
    let session = engine.open_session(&proof).await.unwrap();
    engine.set_passphrase(&proof, passphrase("correct horse")).await.unwrap();
    assert!(!engine.needs_setup().await.unwrap());
    let at_console = engine.session(&session).await.unwrap();
    assert!(!at_console.is_fresh());
    let stale = engine.set_passphrase(&at_console, passphrase("another one")).await;
    assert_eq!(stale.unwrap_err().code(), "person_required");
    assert!(engine.prove_person(passphrase("correct hors")).await.is_err());
    let proof = engine.prove_person(passphrase("correct horse")).await.unwrap();
    engine.set_passphrase(&proof, passphrase("battery staple")).await.unwrap();
    assert!(engine.session(&session).await.is_err(), "a change ends every session");
    assert!(engine.prove_person(passphrase("correct horse")).await.is_err());
}

#[tokio::test]
async fn decision37_the_first_code_is_one_at_a_time_and_renewed_when_it_is_spent() {
    let house = House::new().await;
    let engine = &house.engine;
    let show = |code: &str| engine.prove_person(PersonCredential::Code(code.to_owned()));
    let first = engine.first_code().await.unwrap().unwrap();
    assert_eq!(first.expires_ms, START_MS + 10 * 60 * 1000);
    let again = engine.first_code().await.unwrap().unwrap();
    assert_eq!((&again.code, again.expires_ms), (&first.code, first.expires_ms), "not prolonged");
    house.clock.advance(10 * 60 * 1000);
    assert_eq!(show(&first.code).await.unwrap_err().code(), "person_required", "ten minutes");
    let second = engine.first_code().await.unwrap().unwrap();
    assert_ne!(second.code, first.code);
    assert_eq!(show("").await.unwrap_err().code(), "person_required");
    let (one, other) = tokio::join!(show(&second.code), show(&second.code));
    assert_eq!([one, other].iter().filter(|proof| proof.is_ok()).count(), 1, "single use");
    let third = engine.first_code().await.unwrap().unwrap();
    assert_ne!(third.code, second.code, "a used one is renewed");
    let restarted = house.restarted().await;
    let shown = restarted.engine.prove_person(PersonCredential::Code(third.code)).await;
    assert_eq!(shown.unwrap_err().code(), "person_required", "it ends with its server");
}

#[tokio::test]
async fn decision37_no_first_code_is_worth_anything_once_a_passphrase_is_set() {
    let house = House::new().await;
    let engine = &house.engine;
    let show = |code: &str| engine.prove_person(PersonCredential::Code(code.to_owned()));
    let used = engine.first_code().await.unwrap().unwrap();
    let slow = show(&used.code).await.unwrap();
    let used = engine.first_code().await.unwrap().unwrap();
    let proof = show(&used.code).await.unwrap();
    let left = engine.first_code().await.unwrap().unwrap();
    engine.set_passphrase(&proof, passphrase("correct horse")).await.unwrap();
    assert_eq!(show(&left.code).await.unwrap_err().code(), "person_required");
    assert!(engine.first_code().await.unwrap().is_none(), "and no other is made");
    let late = engine.set_passphrase(&slow, passphrase("battery staple")).await;
    assert_eq!(late.unwrap_err().code(), "person_required", "the first one set stands");
    let again = engine.set_passphrase(&proof, passphrase("battery staple")).await;
    assert_eq!(again.unwrap_err().code(), "person_required", "it sets, and does not change");
    engine.prove_person(passphrase("correct horse")).await.unwrap();
    let again = house.restarted().await;
    assert!(again.engine.first_code().await.unwrap().is_none(), "nor after a restart");
}

#[tokio::test]
async fn decision37_a_session_ends_by_itself_and_by_hand() {
    let house = House::new().await;
    let proof = house.person().await;
    let one = house.engine.open_session(&proof).await.unwrap();
    let two = house.engine.open_session(&proof).await.unwrap();
    house.engine.close_session(&one).await.unwrap();
    assert!(house.engine.session(&one).await.is_err());
    let again = house.restarted().await;
    assert!(again.engine.session(&two).await.is_ok(), "it survives a restart");
    house.clock.advance(12 * 60 * 60 * 1000);
    assert!(house.engine.session(&two).await.is_err());
    assert!(house.engine.session("").await.is_err());
}

#[tokio::test]
async fn b012_a_token_is_an_agent_until_it_is_rotated() {
    let house = House::new().await;
    let proof = house.person().await;
    let new = |name: &str| NewAgent { name: name.into(), cap: 20, idle_days: 21 };
    let (agent, token) = house.engine.create_agent(&proof, new("claude")).await.unwrap();
    assert_eq!(house.engine.authenticate(&token).await.unwrap().agent().id, agent.id);
    let taken = house.engine.create_agent(&proof, new("claude")).await.unwrap_err();
    assert_eq!(taken.code(), "taken");
    let rotated = house.engine.rotate_token(&proof, &agent.id).await.unwrap();
    assert_eq!(house.engine.authenticate(&token).await.unwrap_err().code(), "unauthenticated");
    assert!(house.engine.authenticate(&rotated).await.is_ok());
    for wrong in ["", "cambium_", &"x".repeat(10_000)] {
        assert_eq!(house.engine.authenticate(wrong).await.unwrap_err().code(), "unauthenticated");
    }
    assert_eq!(house.engine.agent("claude").await.unwrap().id, agent.id);
    assert_eq!(house.engine.agent("nobody").await.unwrap_err().code(), "agent_not_found");
    for wrong in ["", " ", "a\nb", &"x".repeat(65)] {
        let refused = house.engine.create_agent(&proof, new(wrong)).await.unwrap_err();
        assert_eq!(refused.code(), "out_of_range");
    }
}
