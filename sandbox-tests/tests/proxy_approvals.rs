//! Rows J: what a person's word lets through, and what it does not.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Answer, AskId, AuditKind, DecisionRow, Grant, HeldRequest, Scheme, Session};
use cambium_sandbox_tests::bench::{
    Bench, Got, READS, SECRET, Setup, WRITES, request, site, with_body,
};
use cambium_sandbox_tests::memory::{Word, decision};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn order(number: u32) -> cambium_proxy::OutboundRequest {
    with_body("POST", "/orders", &format!("{{\"n\":{number}}}"))
}

async fn sent(bench: &Bench, session: &Session, number: u32) -> Got {
    bench.send(session, order(number)).await.unwrap()
}

/// What the vendor got, by body.
fn bodies(bench: &Bench) -> Vec<String> {
    let heard = bench.vendor.heard();
    heard.iter().map(|heard| String::from_utf8_lossy(&heard.body).into_owned()).collect()
}

/// The usual tool's request as it is held, learnt from a desk that stays silent.
async fn held(bench: &Bench, number: u32) -> HeldRequest {
    bench.refused(&bench.writer(), order(number), "awaiting_approval").await;
    bench.desk.shown().pop().unwrap()
}

fn store(bench: &Bench, row: DecisionRow) {
    bench.memory.put_decision(row.sign(&bench.vault));
}

#[tokio::test]
async fn j01_the_first_write_is_held_whole() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Say(Answer::Once));
    let run = bench.writer();
    assert_eq!(sent(&bench, &run, 1).await.status, 200);
    let shown = &bench.desk.shown()[0];
    assert_eq!((shown.method.as_str(), shown.target.as_str()), ("POST", "/orders"));
    assert_eq!(&shown.body[..], b"{\"n\":1}");
    assert!(shown.headers.iter().all(|(name, _)| name != "authorization"));
    assert_eq!(bodies(&bench), ["{\"n\":1}"]);
    assert_eq!(bench.row(AuditKind::Hold).await.decision, "hold");
    let intent = bench.row(AuditKind::Intent).await;
    assert_eq!(intent.approval.unwrap(), format!("{:032x}", 1));
    assert_eq!(intent.digest.unwrap(), shown.digest.to_string());
    bench.finish().await;
}

#[tokio::test]
async fn j01_bodies_no_person_can_be_shown() {
    let bench = Bench::new().await;
    let large = "x".repeat(1024 * 1024 + 1);
    bench
        .refused(
            &bench.writer(),
            with_body("POST", "/orders", &large),
            "body_too_large_for_approval",
        )
        .await;
    let mut request = order(1);
    request.body = bytes::Bytes::from_static(b"\xff\xfe");
    bench.refused(&bench.writer(), request, "body_unreadable_for_approval").await;
    assert!(bench.desk.shown().is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn j02_the_run_is_held_while_the_person_thinks() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Then(Box::new(Word::Say(Answer::Once))));
    let run = bench.writer();
    let mut holding = run.holding();
    assert!(!*holding.borrow());
    let (got, ()) = tokio::join!(bench.send(&run, order(1)), async {
        holding.wait_for(|held| *held).await.unwrap();
        assert_eq!(bench.vendor.connections(), 0);
        bench.desk.let_go();
        holding.wait_for(|held| !*held).await.unwrap();
    });
    assert_eq!(got.unwrap().status, 200);
    bench.finish().await;
}

#[tokio::test]
async fn j03_no_two_requests_share_a_digest() {
    let bench = Bench::new().await;
    let mut digests = std::collections::HashSet::new();
    let targets = ["/orders/a?to=a+b", "/orders/a?to=a%2Bb", "/orders/safe", "/orders/%73afe"];
    for target in targets {
        for body in ["{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"] {
            let request = with_body("POST", target, body);
            bench.refused(&bench.writer(), request, "awaiting_approval").await;
            assert!(digests.insert(bench.desk.shown().pop().unwrap().digest), "{target} {body}");
        }
    }
    bench.finish().await;
}

#[tokio::test]
async fn j04_no_word_nothing_sent() {
    for (word, code) in [
        (Word::Say(Answer::Deny), "tool_denied"),
        (Word::Silent, "awaiting_approval"),
        (Word::Fail, "audit_unavailable"),
        (Word::Lie, "audit_unavailable"),
        (Word::Forge(Answer::Once), "audit_unavailable"),
        (Word::Forge(Answer::Standing), "audit_unavailable"),
        (Word::Say(Answer::Withdrawn), "approval_expired"),
    ] {
        let bench = Bench::new().await;
        let shown = format!("{word:?}");
        bench.desk.will(word);
        let run = bench.writer();
        bench.refused(&run, order(1), code).await;
        if code != "approval_expired" {
            run.ended().await;
            assert_eq!(run.report().fatal.unwrap().code(), code, "{shown}");
        }
        assert_eq!(run.report().parked.is_some(), code == "awaiting_approval", "{shown}");
        bench.finish().await;
    }
    let bench = Bench::new().await;
    bench.memory.approvals_fail.store(true, Ordering::SeqCst);
    bench.refused(&bench.writer(), order(1), "audit_unavailable").await;
    assert_eq!(bench.admit(WRITES, false, false).await.unwrap_err().code(), "audit_unavailable");
    bench.finish().await;
}

#[tokio::test]
async fn j05_concurrent_first_calls() {
    // From now on frees every run, once only the bytes shown, deny none.
    let bench = Bench::new().await;
    bench.desk.will(Word::OnceForOther);
    bench.desk.will(Word::Silent);
    bench.refused(&bench.writer(), order(1), "awaiting_approval").await;
    assert_eq!(bench.desk.shown().len(), 2, "other bytes are held anew");
    bench.desk.will(Word::Then(Box::new(Word::Say(Answer::Standing))));
    let first = bench.writer();
    let (got, ()) = tokio::join!(bench.send(&first, order(2)), async {
        bench.desk.until_shown(3).await;
        bench.desk.let_go();
    });
    got.unwrap();
    for number in 3..6 {
        sent(&bench, &bench.writer(), number).await;
    }
    assert_eq!(bench.desk.shown().len(), 3);
    bench.finish().await;
}

#[tokio::test]
async fn j06_two_requests_never_share_one_once() {
    let bench = Bench::new().await;
    let shown = held(&bench, 1).await;
    store(&bench, decision(&shown, AskId::new("a"), Answer::Once, &bench.vault));
    let runs: Vec<Arc<Session>> = (0..8).map(|_| bench.writer()).collect();
    let mut sends = tokio::task::JoinSet::new();
    for run in runs {
        sends.spawn(async move { run.send(order(1)).await.map(|reply| reply.status) });
    }
    let all = sends.join_all().await;
    assert_eq!(all.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(bodies(&bench).len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn j07_a_later_once_releases_an_identical_request_and_sends_nothing_itself() {
    let bench = Bench::new().await;
    let shown = held(&bench, 1).await;
    store(&bench, decision(&shown, AskId::new("a"), Answer::Once, &bench.vault));
    assert_eq!(bench.vendor.connections(), 0);
    bench.refused(&bench.writer(), order(2), "awaiting_approval").await;
    sent(&bench, &bench.writer(), 1).await;
    bench.refused(&bench.writer(), order(1), "awaiting_approval").await;
    assert_eq!(bodies(&bench).len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn j07_a_run_that_ends_while_it_waits() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Away);
    let run = bench.writer();
    let (got, ()) = tokio::join!(bench.send(&run, order(1)), async {
        bench.desk.until_shown(1).await;
        run.close();
    });
    assert_eq!(got.unwrap_err().code(), "run_closed");
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn j08_what_a_standing_answer_is_bound_to() {
    let bench = Bench::new().await;
    let shown = held(&bench, 9).await;
    let good = decision(&shown, AskId::new("a"), Answer::Standing, &bench.vault);
    let changes: [fn(&mut DecisionRow); 5] = [
        |row| row.person = cambium_proxy::PersonId::new("x"),
        |row| row.version = cambium_proxy::ContentHash([2; 32]),
        |row| row.connection = cambium_proxy::ConnectionId::new("x"),
        |row| row.generation += 1,
        |row| row.answer = Answer::Withdrawn,
    ];
    for change in changes {
        let mut row = good.clone();
        change(&mut row);
        store(&bench, row);
        assert!(matches!(bench.admit(WRITES, false, false).await, Ok(Grant::Ask)));
        bench.refused(&bench.writer(), order(1), "awaiting_approval").await;
    }
    // Changed behind the MAC's back.
    let mut forged = good.clone();
    forged.sequence += 1;
    bench.memory.put_decision(forged);
    assert!(matches!(bench.admit(WRITES, false, false).await, Ok(Grant::Ask)));
    store(&bench, good);
    assert!(matches!(bench.admit(WRITES, false, false).await, Ok(Grant::Write(_))));
    assert!(matches!(bench.admit(WRITES, true, false).await, Ok(Grant::Preview)));
    assert!(matches!(bench.admit(WRITES, false, true).await, Ok(Grant::AskEach)));
    assert!(matches!(bench.admit(READS, false, false).await, Ok(Grant::ReadOnly)));
    bench.finish().await;
}

#[tokio::test]
async fn j12_a_no_holds_for_dry_runs_too() {
    let bench = Bench::new().await;
    let shown = held(&bench, 1).await;
    store(&bench, decision(&shown, AskId::new("a"), Answer::Deny, &bench.vault));
    for (dry_run, each) in [(false, false), (true, false), (false, true)] {
        let refusal = bench.admit(WRITES, dry_run, each).await.unwrap_err();
        assert_eq!(refusal.code(), "tool_denied");
    }
    bench.refused(&bench.writer(), order(1), "tool_denied").await;
    bench.finish().await;
}

#[tokio::test]
async fn j13_an_approved_write_version_that_deletes() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Say(Answer::Standing));
    let run = bench.writer();
    sent(&bench, &run, 1).await;
    let before = bench.vendor.heard().len();
    assert_eq!(
        bench.send(&run, request("DELETE", "/orders/1")).await.unwrap_err().code(),
        "method_exceeds_hint"
    );
    assert_eq!(bench.vendor.heard().len(), before);
    bench.finish().await;
}

#[tokio::test]
async fn j14_from_now_on_covers_recorded_sites_only() {
    let bench = Bench::new().await;
    let mut sites = vec![site("POST", "/orders")];
    sites.extend(cambium_sandbox_tests::bench::anywhere(&["PUT"]));
    let run = bench.open(WRITES, sites, Grant::Ask);
    bench.desk.will(Word::Say(Answer::Standing));
    sent(&bench, &run, 1).await;
    sent(&bench, &run, 2).await;
    assert_eq!(bench.desk.shown().len(), 1);
    // A path the check could not follow asks for itself.
    let put = with_body("PUT", "/anything", "{}");
    assert_eq!(bench.send(&run, put).await.unwrap_err().code(), "awaiting_approval");
    assert_eq!(bench.desk.shown().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn j15_an_answer_of_another_person_or_for_another_agent_counts_for_nothing() {
    let bench = Bench::new().await;
    let shown = held(&bench, 1).await;
    let changes: [fn(&mut DecisionRow); 2] = [
        |row| row.agent = cambium_proxy::AgentId::new("another"),
        |row| row.person = cambium_proxy::PersonId::new("another"),
    ];
    for change in changes {
        for answer in [Answer::Standing, Answer::Once] {
            let mut row = decision(&shown, AskId::new("a"), answer, &bench.vault);
            change(&mut row);
            store(&bench, row);
            assert!(matches!(bench.admit(WRITES, false, false).await, Ok(Grant::Ask)));
            bench.refused(&bench.writer(), order(1), "awaiting_approval").await;
        }
    }
    // Nor is another agent's no this agent's.
    let mut no = decision(&shown, AskId::new("b"), Answer::Deny, &bench.vault);
    no.agent = cambium_proxy::AgentId::new("another");
    store(&bench, no);
    assert!(matches!(bench.admit(WRITES, false, false).await, Ok(Grant::Ask)));
    bench.finish().await;
}

#[tokio::test]
async fn j17_what_a_person_is_shown_holds_no_credential() {
    for scheme in
        [Scheme::Bearer, Scheme::ApiKeyHeader { header: "x-api-key".into(), prefix: "Key ".into() }]
    {
        let bench = Bench::start(Setup { scheme, ..Setup::default() }).await;
        bench.desk.will(Word::Say(Answer::Once));
        sent(&bench, &bench.writer(), 1).await;
        let shown = format!("{:?}", bench.desk.shown());
        assert!(!shown.contains(SECRET) && !shown.contains("authorization"), "{shown}");
        assert!(!shown.contains("x-api-key"), "{shown}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn j16_every_time_is_per_request() {
    let bench = Bench::new().await;
    let run = bench.open(WRITES, vec![site("POST", "/orders")], Grant::AskEach);
    for _ in 0..2 {
        bench.desk.will(Word::Say(Answer::Once));
    }
    sent(&bench, &run, 1).await;
    sent(&bench, &run, 1).await;
    assert_eq!(bench.desk.shown().len(), 2);
    bench.desk.will(Word::Say(Answer::Standing));
    assert_eq!(bench.send(&run, order(1)).await.unwrap_err().code(), "awaiting_approval");
    assert_eq!(bodies(&bench).len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn j19_a_withdrawn_answer() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Say(Answer::Standing));
    let run = bench.writer();
    sent(&bench, &run, 1).await;
    let shown = bench.desk.shown()[0].clone();
    store(&bench, decision(&shown, AskId::new("w"), Answer::Withdrawn, &bench.vault));
    assert_eq!(bench.send(&run, order(2)).await.unwrap_err().code(), "awaiting_approval");
    assert_eq!(bodies(&bench).len(), 1);
    bench.finish().await;
}
