//! How long a token lives: got once however many wait, never stale, never twice,
//! renewed once for a read and not for a write.

use crate::support::{
    bearer, bearers, bench, client, code, get, giving, grant, refresh_token, signed_in, with,
};
use cambium_proxy::{Answer, AuditKind, ConnectionStatus, Grant, Scheme};
use cambium_sandbox_tests::bench::{READS, Setup, anywhere, request, with_body};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Script, Step, answer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test]
async fn d06_a_hundred_first_calls_make_one_token_request() {
    let script: Script =
        Arc::new(|heard| [vec![Step::Await], grant(heard.number, ",\"expires_in\":3600")].concat());
    let bench = Arc::new(bench(client, script).await);
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let bench = bench.clone();
        calls.spawn(async move { get(&bench).await });
    }
    bench.issuer().until_heard(1).await;
    assert_eq!(bench.vendor.connections(), 0, "a request went before its token");
    bench.issuer().release();
    while let Some(status) = calls.join_next().await {
        assert_eq!(status.unwrap(), Ok(200));
    }
    let asked = bench.issuer().heard();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line(), "POST /oauth/token HTTP/1.1");
    assert_eq!(asked[0].body, b"grant_type=client_credentials&scope=read+write");
    assert_eq!(bearers(&bench), vec![bearer(0); 100]);
    Arc::into_inner(bench).unwrap().finish().await;
}

#[tokio::test]
async fn d06_whoever_waited_for_a_failure_shares_it() {
    let script: Script =
        Arc::new(|_| [vec![Step::Await], answer("503 Unavailable", "", b"gone")].concat());
    let bench = Arc::new(bench(client, script).await);
    let runs: Vec<_> = (0..20).map(|_| bench.reader()).collect();
    let mut calls = JoinSet::new();
    let started = Arc::new(AtomicUsize::new(0));
    for run in runs {
        let (bench, started) = (bench.clone(), started.clone());
        calls.spawn(async move {
            started.fetch_add(1, Ordering::SeqCst);
            bench.send(&run, request("GET", "/x")).await.unwrap_err().code()
        });
    }
    bench.issuer().until_heard(1).await;
    while started.load(Ordering::SeqCst) < 20 {
        tokio::task::yield_now().await;
    }
    bench.issuer().release();
    while let Some(code) = calls.join_next().await {
        assert_eq!(code.unwrap(), "credential_unavailable");
    }
    let asked = bench.issuer().heard().len();
    assert!(asked < 20, "{asked} token requests for one failure");
    assert_eq!(bench.vendor.connections(), 0);
    Arc::into_inner(bench).unwrap().finish().await;
}

#[tokio::test]
async fn d07_two_instances_redeem_a_rotating_token_once() {
    // Number 0 is the sign-in; each refresh token is good once.
    let script: Script = Arc::new(|heard| {
        let body = String::from_utf8_lossy(&heard.body).into_owned();
        let last = refresh_token(heard.number.saturating_sub(1));
        if heard.number > 0 && !body.contains(&last) {
            return answer("400 Bad Request", "", b"{\"error\":\"invalid_grant\"}");
        }
        let wait = if heard.number > 0 { vec![Step::Await] } else { Vec::new() };
        [wait, grant(heard.number, ",\"expires_in\":3600")].concat()
    });
    let bench = bench(code, script).await;
    signed_in(&bench).await;
    let (second, audit) = bench.second().await;
    bench.clock.advance(Duration::from_secs(3601));
    let there = bench.open_on(&second, READS, anywhere(&["GET"]), Grant::ReadOnly);
    let here = bench.reader();
    let (one, two, ()) = tokio::join!(
        bench.send(&here, request("GET", "/x")),
        bench.send(&there, request("GET", "/x")),
        async {
            bench.issuer().until_heard(2).await;
            bench.issuer().release();
        }
    );
    assert_eq!((one.unwrap().status, two.unwrap().status), (200, 200));
    assert_eq!(bench.issuer().heard().len(), 2, "redeemed twice");
    assert_eq!(bearers(&bench), [bearer(1), bearer(1)]);
    second.stop().await;
    assert!(!audit.dump().contains("S3CRET"));
    bench.finish().await;
}

#[tokio::test]
async fn d08_new_tokens_are_stored_before_they_are_used() {
    let bench = bench(code, giving(",\"expires_in\":3600")).await;
    signed_in(&bench).await;
    bench.clock.advance(Duration::from_secs(3601));
    bench.memory.secrets_fail.store(true, Ordering::SeqCst);
    assert_eq!(get(&bench).await, Err("credential_unavailable"));
    assert_eq!(bench.issuer().heard().len(), 2);
    assert_eq!(bench.vendor.connections(), 0, "used and not stored");
    bench.memory.secrets_fail.store(false, Ordering::SeqCst);
    // What was got is stored now; nothing is redeemed again.
    assert_eq!(get(&bench).await, Ok(200));
    assert_eq!(bench.issuer().heard().len(), 2);
    assert_eq!(bearers(&bench), [bearer(1)]);
    bench.finish().await;
}

#[tokio::test]
async fn d08_a_caller_that_goes_away_loses_no_token_and_stopping_waits_for_it() {
    let script: Script = Arc::new(|heard| {
        let wait = if heard.number > 0 { vec![Step::Await] } else { Vec::new() };
        [wait, grant(heard.number, ",\"expires_in\":3600")].concat()
    });
    let bench = bench(code, script).await;
    signed_in(&bench).await;
    bench.clock.advance(Duration::from_secs(3601));
    let run = bench.reader();
    tokio::select! {
        _ = run.send(request("GET", "/x")) => panic!("the token is not there yet"),
        () = bench.issuer().until_heard(2) => {}
    }
    drop(run);
    let (second, _) = bench.second().await;
    tokio::join!(bench.proxy.stop(), async { bench.issuer().release() });
    let there = bench.open_on(&second, READS, anywhere(&["GET"]), Grant::ReadOnly);
    assert_eq!(bench.send(&there, request("GET", "/x")).await.unwrap().status, 200);
    assert_eq!(bench.issuer().heard().len(), 2, "the rotated token was lost");
    assert_eq!(bearers(&bench), [bearer(1)]);
    second.stop().await;
    bench.finish().await;
}

#[tokio::test]
async fn d09_how_long_a_token_is_used() {
    for (said, used_s, over_s) in [
        (",\"expires_in\":3600", 3550, 3556),
        (",\"expires_in\":\"3600\"", 3550, 3556),
        ("", 250, 256),
        (",\"expires_in\":null", 250, 256),
        (",\"expires_in\":1e12", 86_350, 86_356),
    ] {
        let bench = bench(client, giving(said)).await;
        assert_eq!(get(&bench).await, Ok(200));
        bench.clock.advance(Duration::from_secs(used_s));
        assert_eq!(get(&bench).await, Ok(200));
        assert_eq!(bench.issuer().heard().len(), 1, "{said}");
        bench.clock.advance(Duration::from_secs(over_s - used_s));
        assert_eq!(get(&bench).await, Ok(200));
        assert_eq!(bearers(&bench), [bearer(0), bearer(0), bearer(1)], "{said}");
        bench.finish().await;
    }
    for said in [",\"expires_in\":0", ",\"expires_in\":-1", ",\"expires_in\":30"] {
        let bench = bench(client, giving(said)).await;
        assert_eq!((get(&bench).await, get(&bench).await), (Ok(200), Ok(200)));
        assert_eq!(bearers(&bench), [bearer(0), bearer(1)], "{said}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn d13_a_token_that_is_over_is_never_used() {
    let script: Script = Arc::new(|heard| match heard.number {
        0 => grant(0, ",\"expires_in\":3600"),
        _ => answer("503 Service Unavailable", "", b""),
    });
    let bench = bench(client, script).await;
    assert_eq!(get(&bench).await, Ok(200));
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(get(&bench).await, Err("credential_unavailable"));
    assert_eq!(bench.vendor.heard().len(), 1);
    assert_eq!(bench.row(AuditKind::Refusal).await.rule, "credential_unavailable");
    bench.finish().await;
}

/// A vendor to which the first token is good for one request.
fn ends_the_first(heard: &Heard) -> Vec<Step> {
    if heard.number > 0 && heard.header("authorization") == [bearer(0)] {
        return answer("401 Unauthorized", "", heard.head.as_bytes());
    }
    answer("200 OK", "", heard.head.as_bytes())
}

#[tokio::test]
async fn d15_a_read_whose_token_the_vendor_ended_is_made_again_once() {
    for scheme in [client as fn(&str) -> Scheme, code] {
        let giving = giving(",\"expires_in\":3600");
        let bench = with(scheme, giving, Setup::answering(ends_the_first)).await;
        if bench.connection.scheme.needs_sign_in() {
            signed_in(&bench).await;
        }
        assert_eq!(get(&bench).await, Ok(200));
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.status, 200);
        assert!(got.text().contains("[REDACTED:acme]"));
        assert_eq!(bearers(&bench), [bearer(0), bearer(0), bearer(1)]);
        assert_eq!(bench.issuer().heard().len(), 2);
        let outcome = bench.row(AuditKind::Outcome).await;
        assert_eq!((outcome.notes, outcome.status), (vec!["token_refused".into()], Some(200)));
        bench.finish().await;
    }
}

#[tokio::test]
async fn d15_a_write_is_not_made_again() {
    let setup = Setup::answering(ends_the_first);
    let bench = with(client, giving(",\"expires_in\":3600"), setup).await;
    bench.desk.will(Word::Say(Answer::Standing));
    let run = bench.writer();
    let order = || with_body("POST", "/orders", "{}");
    assert_eq!(bench.send(&run, order()).await.unwrap().status, 200);
    assert_eq!(bench.send(&run, order()).await.unwrap().status, 401);
    assert_eq!(bench.vendor.heard().len(), 2, "a write was sent again");
    assert_eq!(bench.send(&run, order()).await.unwrap().status, 200);
    assert_eq!(bearers(&bench), [bearer(0), bearer(0), bearer(1)]);
    bench.finish().await;
}

#[tokio::test]
async fn d15_a_vendor_that_refuses_every_token_makes_no_loop() {
    let setup = Setup::answering(|_| answer("401 Unauthorized", "", b""));
    let bench = with(client, giving(",\"expires_in\":3600"), setup).await;
    for _ in 0..3 {
        assert_eq!(get(&bench).await, Ok(401));
    }
    // One for the first, then one each for the token that was found refused.
    assert_eq!(bench.issuer().heard().len(), 3);
    assert_eq!(bench.vendor.heard().len(), 5);
    bench.finish().await;
}

#[tokio::test]
async fn d23_a_connection_revoked_while_its_token_is_got() {
    let script: Script = Arc::new(|heard| [vec![Step::Await], grant(heard.number, "")].concat());
    let bench = bench(client, script).await;
    let run = bench.reader();
    let (got, ()) = tokio::join!(bench.send(&run, request("GET", "/x")), async {
        bench.issuer().until_heard(1).await;
        let mut now = bench.connection.clone();
        now.status = ConnectionStatus::Revoked;
        bench.memory.put_connection(now);
        bench.issuer().release();
    });
    assert_eq!(got.unwrap_err().code(), "connection_revoked");
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}
