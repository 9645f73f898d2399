//! Rows D, K, L and M: credentials, state between runs, retries, the audit.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Answer, AuditKind, ConnectionStatus, Limits, Secret};
use cambium_sandbox_tests::bench::{Bench, Setup, request, with_body};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Step, answer};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn order() -> cambium_proxy::OutboundRequest {
    with_body("POST", "/orders", "{\"n\":1}")
}

#[tokio::test]
async fn d13_no_secret_no_request() {
    let bench = Bench::start(Setup { secret: None, ..Setup::default() }).await;
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    bench.finish().await;
}

#[tokio::test]
async fn d13_a_locked_vault_lends_no_credential() {
    let bench = Bench::new().await;
    let run = bench.reader();
    bench.send(&run, request("GET", "/x")).await.unwrap();
    bench.proxy.lock_vault();
    bench.refused(&run, request("GET", "/x"), "vault_locked").await;
    // Nobody is asked about a write that could not be sent.
    bench.refused(&bench.writer(), order(), "vault_locked").await;
    assert!(bench.desk.shown().is_empty());
    // What needs no credential is as before: a stopped request is shown.
    bench.send(&bench.dry(), order()).await.unwrap();
    assert_eq!(bench.vendor.heard().len(), 1);
    bench.proxy.unlock_vault();
    bench.send(&run, request("GET", "/x")).await.unwrap();
    // Locked between a person's yes and the wire: not sent.
    bench.desk.will(Word::Then(Box::new(Word::Say(Answer::Once))));
    let run = bench.writer();
    let locking = async {
        bench.desk.until_shown(1).await;
        bench.proxy.lock_vault();
        bench.desk.let_go();
    };
    let (sent, ()) = tokio::join!(bench.send(&run, order()), locking);
    assert_eq!(sent.unwrap_err().code(), "vault_locked");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn d14_a_sealed_secret_opens_only_where_it_was_sealed() {
    let mut bench = Bench::new().await;
    bench.connection.hosts[1].name = "evil.acme.test".into();
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    bench.connection.hosts[1].name = "files.acme.test".into();
    bench.connection.generation = 2;
    bench.memory.put_connection(bench.connection.clone());
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    // The row's own generation is no proof either.
    bench.memory.with_secret(&bench.connection.id, |secret| secret.generation = 2);
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    bench.finish().await;
}

#[tokio::test]
async fn d16_secrets_that_do_not_fit_in_a_header() {
    let bench = Bench::new().await;
    for secret in ["", "a b\n", "x\r\ny: z", " x", "x ", "é", "a\0b"] {
        let sealed = bench.proxy.seal(&bench.connection, Secret::new(secret.into())).await;
        assert_eq!(sealed.unwrap_err().code(), "credential_unavailable", "{secret:?}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn d23_a_connection_revoked_or_changed_under_a_run() {
    for revoke in [true, false] {
        let bench = Bench::new().await;
        bench.desk.will(Word::Say(Answer::Standing));
        let run = bench.writer();
        bench.send(&run, order()).await.unwrap();
        let mut now = bench.connection.clone();
        if revoke {
            now.status = ConnectionStatus::Revoked;
        } else {
            now.generation += 1;
        }
        bench.memory.put_connection(now);
        let refusal = bench.send(&run, order()).await.unwrap_err();
        assert_eq!(refusal.code(), "connection_revoked");
        run.ended().await;
        assert_eq!(bench.vendor.heard().len(), 1);
        bench.finish().await;
    }
}

#[tokio::test]
async fn m07_a_connection_taken_from_an_agent_under_a_run() {
    let bench = Bench::new().await;
    let run = bench.reader();
    bench.send(&run, request("GET", "/x")).await.unwrap();
    bench.memory.taken_away.store(true, Ordering::SeqCst);
    bench.refused(&run, request("GET", "/x"), "connection_not_in_scope").await;
    // What a person had allowed already does not go either.
    bench.desk.will(Word::Say(Answer::Standing));
    bench.refused(&bench.writer(), order(), "connection_not_in_scope").await;
    assert_eq!(bench.vendor.heard().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn k01_cookies_are_nobodys() {
    let script = |_: &_| answer("200 OK", "set-cookie: session=1\r\n", b"x");
    let bench = Bench::start(Setup::answering(script)).await;
    for _ in 0..2 {
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.header("set-cookie"), None);
    }
    assert!(bench.vendor.heard().iter().all(|heard| heard.header("cookie").is_empty()));
    bench.finish().await;
}

#[tokio::test]
async fn k03_a_session_after_its_end() {
    let bench = Bench::new().await;
    let run = bench.reader();
    bench.send(&run, request("GET", "/x")).await.unwrap();
    run.close();
    let before = bench.vendor.heard().len();
    for _ in 0..3 {
        assert_eq!(bench.send(&run, request("GET", "/x")).await.unwrap_err().code(), "run_closed");
    }
    assert_eq!(bench.row(AuditKind::Refusal).await.rule, "run_closed");
    assert_eq!(bench.vendor.heard().len(), before);
    bench.finish().await;
}

#[tokio::test]
async fn k03_closing_cuts_what_is_under_way() {
    let script = |_: &_| vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\nsome".to_vec()), Step::Stall];
    let bench = Bench::start(Setup::answering(script)).await;
    let run = bench.reader();
    let mut reply = run.send(request("GET", "/x")).await.unwrap();
    run.close();
    let mut last = None;
    while let Some(chunk) = reply.body.chunk().await {
        last = Some(chunk);
    }
    assert!(last.unwrap().is_err(), "a cut body looked whole");
    assert_eq!(bench.row(AuditKind::Outcome).await.notes, ["body_not_read"]);
    bench.finish().await;
}

#[tokio::test]
async fn k09_the_connection_is_read_anew_before_the_first_byte() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Then(Box::new(Word::Say(Answer::Once))));
    let run = bench.writer();
    let (got, ()) = tokio::join!(bench.send(&run, order()), async {
        bench.desk.until_shown(1).await;
        let mut now = bench.connection.clone();
        now.generation += 1;
        bench.memory.put_connection(now);
        bench.desk.let_go();
    });
    assert_eq!(got.unwrap_err().code(), "connection_revoked");
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

/// Answers the first request of each method, then closes on the next.
fn closes_on_reuse(heard: &cambium_sandbox_tests::vendor::Heard) -> Vec<Step> {
    if heard.number == 1 { vec![Step::Close] } else { answer("200 OK", "", b"x") }
}

#[tokio::test]
async fn l01_a_write_is_never_sent_again() {
    let bench = Bench::start(Setup::answering(closes_on_reuse)).await;
    bench.desk.will(Word::Say(Answer::Standing));
    let run = bench.writer();
    bench.send(&run, order()).await.unwrap();
    assert_eq!(bench.send(&run, order()).await.unwrap_err().code(), "outcome_unknown");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn l02_a_read_is_sent_again_once() {
    let bench = Bench::start(Setup::answering(closes_on_reuse)).await;
    let run = bench.reader();
    bench.send(&run, request("GET", "/x")).await.unwrap();
    assert_eq!(bench.send(&run, request("GET", "/x")).await.unwrap().status, 200);
    assert_eq!(bench.vendor.heard().len(), 3);
    bench.finish().await;
}

#[tokio::test]
async fn l03_a_write_without_an_answer() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let bench = Bench::start(Setup { limits, ..Setup::answering(|_| vec![Step::Stall]) }).await;
    bench.desk.will(Word::Say(Answer::Once));
    let refusal = bench.send(&bench.writer(), order()).await.unwrap_err();
    assert_eq!(refusal.code(), "outcome_unknown");
    assert!(!refusal.retryable());
    assert_eq!(bench.row(AuditKind::Outcome).await.rule, "outcome_unknown");
    assert_eq!(bench.vendor.heard().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn l04_a_write_given_up_is_recorded_as_unknown() {
    let bench = Bench::start(Setup::answering(|_| vec![Step::Stall])).await;
    bench.desk.will(Word::Say(Answer::Once));
    let run = bench.writer();
    tokio::select! {
        _ = run.send(order()) => panic!("nobody answers"),
        () = bench.vendor.until_heard(1) => {}
    }
    assert_eq!(bench.row(AuditKind::Outcome).await.rule, "outcome_unknown");
    bench.finish().await;
}

#[tokio::test]
async fn l06_a_write_whose_answer_breaks_off_is_not_called_retryable() {
    let script = |_: &_| {
        vec![
            Step::Send(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nx".to_vec()),
            Step::Close,
        ]
    };
    let bench = Bench::start(Setup::answering(script)).await;
    bench.desk.will(Word::Say(Answer::Once));
    let got = bench.send(&bench.writer(), order()).await.unwrap();
    assert_eq!(got.status, 201);
    assert_eq!(got.body.unwrap_err().code(), "outcome_unknown");
    bench.finish().await;
}

#[tokio::test]
async fn l07_a_write_whose_answer_nobody_reads_is_not_in_doubt() {
    let body = vec![b'x'; 8 * 1024 * 1024];
    let script = move |_: &_| answer("201 Created", "", &body);
    let bench = Bench::start(Setup::answering(script)).await;
    bench.desk.will(Word::Say(Answer::Once));
    let run = bench.writer();
    let reply = run.send(order()).await.unwrap();
    assert_eq!(reply.status, 201);
    drop(reply);
    let outcome = bench.row(AuditKind::Outcome).await;
    assert_eq!((outcome.status, outcome.rule.as_str()), (Some(201), "completed"));
    assert_eq!(outcome.notes, ["body_not_read"]);
    assert_eq!(run.report().exchanges[0].refusal, None);
    bench.finish().await;
}

#[tokio::test]
async fn m02_a_failing_audit_refuses() {
    let bench = Bench::new().await;
    bench.memory.audit_fails.store(true, Ordering::SeqCst);
    let reader = bench.reader();
    assert_eq!(
        bench.send(&reader, request("GET", "/x")).await.unwrap_err().code(),
        "audit_unavailable"
    );
    assert!(reader.report().fatal.is_none());
    let writer = bench.writer();
    bench.desk.will(Word::Say(Answer::Standing));
    assert_eq!(bench.send(&writer, order()).await.unwrap_err().code(), "audit_unavailable");
    writer.ended().await;
    assert_eq!(bench.send(&bench.dry(), order()).await.unwrap_err().code(), "audit_unavailable");
    assert_eq!(bench.vendor.connections(), 0);
    // It comes back without a gap.
    bench.memory.audit_fails.store(false, Ordering::SeqCst);
    bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    bench.finish().await;
}

#[tokio::test]
async fn m03_intent_before_the_wire_and_outcome_after() {
    let script = |_: &_| [vec![Step::Await], answer("200 OK", "", b"hello")].concat();
    let bench = Bench::start(Setup::answering(script)).await;
    bench.desk.will(Word::Say(Answer::Once));
    let run = bench.writer();
    let (got, ()) = tokio::join!(bench.send(&run, order()), async {
        bench.vendor.until_heard(1).await;
        let kinds: Vec<AuditKind> = bench.memory.events().iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [AuditKind::Hold, AuditKind::Intent]);
        assert_eq!(bench.memory.appends().last(), Some(&(1, true)), "a write's intent is durable");
        bench.vendor.release();
    });
    got.unwrap();
    let outcome = bench.row(AuditKind::Outcome).await;
    assert_eq!(
        (outcome.status, outcome.bytes, outcome.rule.as_str()),
        (Some(200), Some(5), "completed")
    );
    assert!(outcome.vendor_us.is_some() && outcome.digest.is_some());
    bench.finish().await;
}

#[tokio::test]
async fn m05_the_chain_shows_every_edit() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    }
    bench.proxy.stop().await;
    let rows = bench.memory.with_rows(|rows| rows.clone());
    let verified = bench.proxy.verify_audit(&[]).await.unwrap();
    assert_eq!(verified[0].rows, rows.len() as u64);
    let edits: [fn(&mut Vec<cambium_proxy::AuditRow>); 5] = [
        |rows| rows[1].event = rows[1].event.replace("forward", "refuse"),
        |rows| drop(rows.remove(2)),
        |rows| rows.swap(1, 2),
        |rows| rows[3].mac[0] ^= 1,
        |rows| drop(rows.remove(0)),
    ];
    for edit in edits {
        bench.memory.with_rows(|now| {
            now.clone_from(&rows);
            edit(now);
        });
        bench.proxy.verify_audit(&[]).await.unwrap_err();
    }
}

#[tokio::test]
async fn m09_a_panic_is_one_requests() {
    for write in [false, true] {
        let bench = Bench::new().await;
        let other = bench.reader();
        bench.desk.will(Word::Say(Answer::Once));
        let (run, asked, code) = match write {
            false => (bench.reader(), request("GET", "/x"), "proxy_failed"),
            true => (bench.writer(), order(), "outcome_unknown"),
        };
        bench.memory.connections_panic.store(true, Ordering::SeqCst);
        assert_eq!(bench.send(&run, asked).await.unwrap_err().code(), code);
        assert_eq!(bench.row(AuditKind::Outcome).await.rule, code);
        bench.memory.connections_panic.store(false, Ordering::SeqCst);
        assert_eq!(bench.send(&other, request("GET", "/x")).await.unwrap().status, 200);
        bench.finish().await;
    }
    let bench = Bench::new().await;
    bench.memory.approvals_panic.store(true, Ordering::SeqCst);
    let run = bench.writer();
    bench.refused(&run, order(), "proxy_failed").await;
    run.ended().await;
    bench.memory.approvals_panic.store(false, Ordering::SeqCst);
    bench.desk.will(Word::Say(Answer::Once));
    assert_eq!(bench.send(&bench.writer(), order()).await.unwrap().status, 200);
    bench.finish().await;
}
