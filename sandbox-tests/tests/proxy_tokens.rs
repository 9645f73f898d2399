//! Rows D6 to D17, H3, H11, I2 and E for schemes whose credential is a token:
//! got once however many wait, never stale, never twice, never shown, and got
//! over the same guarded way out as everything else.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{
    Answer, AuditEvent, AuditKind, ConnectionStatus, Grant, Scheme, Secret, SecretStore,
};
use cambium_sandbox_tests::bench::{
    Bench, ISSUER, IssuerSetup, READS, SECRET, Setup, anywhere, forms, request, with_body,
};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Script, Step, answer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

fn scheme(text: &str) -> Scheme {
    serde_json::from_str(text).unwrap()
}

fn client(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_client_credentials","token_url":"{base}/oauth/token",
            "client_id":"me","scope":"read write"}}"#
    ))
}

fn code(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_authorization_code","authorization_url":"{base}/authorize",
            "token_url":"{base}/oauth/token","client_id":"me","client_auth":"body",
            "parameters":{{"access_type":"offline"}}}}"#
    ))
}

fn public_code(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_authorization_code","authorization_url":"{base}/authorize",
            "token_url":"{base}/oauth/token","client_id":"me","client_auth":"none",
            "issuer":"https://acme.test"}}"#
    ))
}

/// The token of that number, from 0.
fn token(number: usize) -> String {
    format!("at-{number}-S3CRET-ACCESS-9876543210")
}

fn refresh_token(number: usize) -> String {
    format!("rt-{number}-S3CRET-REFRESH-123456789")
}

/// An authorization server that gives out `token(n)` and `refresh_token(n)`.
fn giving(more: &'static str) -> Script {
    Arc::new(move |heard: &Heard| grant(heard.number, more))
}

fn grant(number: usize, more: &str) -> Vec<Step> {
    let (access, refresh) = (token(number), refresh_token(number));
    let body = format!(
        "{{\"access_token\":\"{access}\",\"refresh_token\":\"{refresh}\",\"token_type\":\"Bearer\"{more}}}"
    );
    answer("200 OK", "content-type: application/json\r\n", body.as_bytes())
}

async fn bench(scheme: fn(&str) -> Scheme, script: Script) -> Bench {
    with(scheme, script, Setup::default()).await
}

async fn with(scheme: fn(&str) -> Scheme, script: Script, setup: Setup) -> Bench {
    let bench = Bench::start(Setup { issuer: Some(IssuerSetup { script, scheme }), ..setup }).await;
    for number in 0..8 {
        bench.hide(token(number));
        bench.hide(refresh_token(number));
    }
    bench
}

/// Signs a person in, as the console would.
async fn signed_in(bench: &Bench) {
    let (_, consent) =
        cambium_proxy::Proxy::begin_consent(&bench.connection, "http://127.0.0.1/cb").unwrap();
    let issuer = match &bench.connection.scheme {
        Scheme::Oauth2AuthorizationCode(scheme) => scheme.issuer.clone(),
        _ => None,
    };
    let code = Secret::new(b"c0de-S3CRET-1234567890".to_vec());
    let sealing = bench.proxy.sealing().await;
    let finished = bench.proxy.finish_consent(
        &sealing,
        &bench.connection,
        consent,
        &code,
        issuer.as_deref(),
        true,
    );
    finished.await.unwrap();
}

fn bearers(bench: &Bench) -> Vec<String> {
    let heard = bench.vendor.heard();
    heard.iter().map(|heard| heard.header("authorization").concat()).collect()
}

fn bearer(number: usize) -> String {
    format!("Bearer {}", token(number))
}

fn token_rows(bench: &Bench) -> Vec<AuditEvent> {
    bench.memory.events().into_iter().filter(|event| event.decision == "token").collect()
}

/// Reads once, on a run of its own.
async fn get(bench: &Bench) -> Result<u16, &'static str> {
    let got = bench.send(&bench.reader(), request("GET", "/x")).await;
    got.map(|got| got.status).map_err(|refusal| refusal.code())
}

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
async fn d11_d13_token_endpoints_that_give_no_token() {
    for (status, headers, body) in [
        ("302 Found", "location: https://files.acme.test/evil\r\n", ""),
        ("307 Temporary Redirect", "location: https://files.acme.test/evil\r\n", ""),
        ("200 OK", "", "<html>"),
        ("200 OK", "", "{\"error\":\"invalid_client\"}"),
        ("400 Bad Request", "", "{\"error\":\"invalid_client\"}"),
        ("503 Service Unavailable", "", ""),
        ("200 OK", "content-encoding: br\r\n", "x"),
    ] {
        let script: Script = Arc::new(move |_| answer(status, headers, body.as_bytes()));
        let bench = bench(client, script).await;
        assert_eq!(get(&bench).await, Err("credential_unavailable"), "{status} {body}");
        assert_eq!(bench.issuer().heard().len(), 1, "{status}");
        assert_eq!(bench.vendor.connections(), 0, "{status}");
        let rows = token_rows(&bench);
        assert_eq!(rows.len(), 2, "{status}");
        assert_eq!(rows[1].rule, "credential_unavailable");
        bench.finish().await;
    }
    let long: Script = Arc::new(|_| answer("200 OK", "", &vec![b' '; 80 * 1024]));
    let hangs_up: Script = Arc::new(|_| vec![Step::Close]);
    for script in [long, hangs_up] {
        let bench = bench(client, script).await;
        assert_eq!(get(&bench).await, Err("credential_unavailable"));
        assert_eq!(bench.issuer().heard().len(), 1, "a token call was made twice");
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
async fn d17_tokens_go_to_the_issuer_bound_at_sign_in_and_no_other() {
    let mut bench = bench(code, giving(",\"expires_in\":3600")).await;
    signed_in(&bench).await;
    bench.clock.advance(Duration::from_secs(3601));
    let evil = format!("https://{ISSUER}:{}", bench.vendor.address.port());
    bench.connection.scheme = code(&evil);
    bench.memory.put_connection(bench.connection.clone());
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    assert_eq!(bench.issuer().heard().len(), 1);
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

#[tokio::test]
async fn e01_e09_token_endpoints_at_addresses_that_are_not_dialled() {
    for addresses in [
        &["127.0.0.1"][..],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["10.0.0.1"],
        &["0.0.0.0"],
        &["::1"],
        &["64:ff9b::a9fe:a9fe"],
    ] {
        let setup = Setup { excepted: false, ..Setup::default() };
        let bench = with(client, giving(""), setup).await;
        bench.names.set(ISSUER, &[addresses]);
        bench.refused(&bench.reader(), request("GET", "/x"), "address_denied").await;
        assert_eq!(bench.issuer().connections(), 0, "{addresses:?}");
        bench.finish().await;
    }
    // A mixed answer is dialled at what is allowed, and only there.
    let bench = bench(client, giving("")).await;
    bench.names.set(ISSUER, &[&["169.254.169.254", "127.0.0.1"]]);
    assert_eq!(get(&bench).await, Ok(200));
    // A name that moves is looked at when it is dialled.
    bench.finish().await;
}

#[tokio::test]
async fn h11_the_token_endpoint_is_no_path_of_a_tool() {
    // The vendor's own host gives out the tokens.
    let script = |heard: &Heard| match heard.line() {
        "POST /oauth/token HTTP/1.1" => grant(0, ",\"expires_in\":3600"),
        _ => answer("200 OK", "", b"x"),
    };
    let mut bench = Bench::start(Setup::answering(script)).await;
    let base = format!("https://api.acme.test:{}", bench.vendor.address.port());
    bench.hide(token(0));
    bench
        .change(|connection| {
            connection.scheme = client(&base);
            connection.generation = 2;
        })
        .await;
    for (method, target) in [
        ("POST", "/oauth/token"),
        ("POST", "/oauth/token/"),
        ("POST", "/oauth/TOKEN"),
        ("POST", "/oauth/t%6Fken?a=1"),
        ("POST", "/oauth/token;x=1"),
        ("GET", "/oauth/token"),
    ] {
        let run = bench.open(
            cambium_sandbox_tests::bench::WRITES,
            anywhere(&["GET", "POST"]),
            Grant::Ask,
        );
        bench.refused(&run, request(method, target), "credential_path").await;
        bench.refused(&bench.dry(), request(method, target), "credential_path").await;
    }
    assert_eq!(bench.vendor.heard().len(), 0);
    assert_eq!(get(&bench).await, Ok(200));
    bench.finish().await;
}

#[tokio::test]
async fn h11_a_token_host_is_no_host_of_a_tool() {
    let bench = bench(client, giving("")).await;
    let port = bench.issuer().address.port();
    for host in [ISSUER.to_owned(), format!("{ISSUER}:{port}")] {
        let asked = cambium_proxy::OutboundRequest { host: Some(host), ..request("GET", "/x") };
        bench.refused(&bench.reader(), asked, "host_not_in_connection").await;
    }
    assert_eq!(bench.issuer().connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn e08_a_token_host_that_moves_is_judged_when_it_is_dialled() {
    let bench = bench(client, giving(",\"expires_in\":0")).await;
    bench.names.set(ISSUER, &[&["127.0.0.1"], &["10.0.0.1"]]);
    assert_eq!(get(&bench).await, Ok(200));
    // The socket of the first call is still there and may serve the second.
    let second = get(&bench).await;
    assert!([Ok(200), Err("address_denied")].contains(&second), "{second:?}");
    assert_eq!(bench.issuer().connections(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn h11_tokens_a_vendor_hands_out_are_masked() {
    let body = "{\"access_token\":\"n3w-tok3n\",\"refresh_token\":\"n3w-r3fr3sh\",\"a\":1}";
    let bench =
        Bench::start(Setup::answering(move |_| answer("200 OK", "", body.as_bytes()))).await;
    bench.hide("n3w-tok3n");
    bench.hide("n3w-r3fr3sh");
    let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    let hidden = "[REDACTED:acme]";
    assert_eq!(
        got.text(),
        format!("{{\"access_token\":\"{hidden}\",\"refresh_token\":\"{hidden}\",\"a\":1}}")
    );
    assert_eq!(bench.row(AuditKind::Outcome).await.redactions, Some(2));
    bench.finish().await;
}

#[tokio::test]
async fn h03_no_form_of_a_token_or_of_what_it_was_got_for_comes_back() {
    for scheme in [client as fn(&str) -> Scheme, code] {
        let mut values = vec![token(0), SECRET.to_owned()];
        if scheme("https://id.acme.test").needs_sign_in() {
            values.push(refresh_token(0));
        }
        let echoes: Vec<Vec<u8>> =
            values.iter().flat_map(|value| forms(value.as_bytes())).collect();
        let count = echoes.len();
        let script = move |heard: &Heard| {
            let body = [heard.head.as_bytes(), b"\r\n<", &echoes[heard.number][..], b">"].concat();
            answer("200 OK", "", &body)
        };
        let giving = giving(",\"expires_in\":3600");
        let bench = with(scheme, giving, Setup::answering(script)).await;
        if bench.connection.scheme.needs_sign_in() {
            signed_in(&bench).await;
        }
        for _ in 0..count {
            let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
            assert_eq!(got.text().matches("[REDACTED:acme]").count(), 2, "{}", got.text());
        }
        bench.finish().await;
    }
}

#[tokio::test]
async fn i02_a_dry_run_gets_no_token_for_what_it_stops() {
    let bench = bench(client, giving(",\"expires_in\":3600")).await;
    for method in ["POST", "PUT", "PATCH", "OPTIONS"] {
        let got = bench.send(&bench.dry(), with_body(method, "/x", "{}")).await.unwrap();
        assert!(got.intercepted);
        assert!(got.text().contains("oauth2_client_credentials, acme"));
    }
    assert_eq!((bench.issuer().connections(), bench.vendor.connections()), (0, 0));
    assert!(token_rows(&bench).is_empty());
    // What it lets go may.
    assert_eq!(bench.send(&bench.dry(), request("GET", "/x")).await.unwrap().status, 200);
    assert!(token_rows(&bench).iter().all(|row| row.dry_run));
    assert_eq!(bench.issuer().heard().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn i02_nothing_is_got_for_a_write_that_is_refused_or_held() {
    let bench = bench(client, giving("")).await;
    bench.desk.will(Word::Say(Answer::Deny));
    bench.send(&bench.writer(), with_body("POST", "/orders", "{}")).await.unwrap_err();
    bench.send(&bench.writer(), with_body("POST", "/orders", "{}")).await.unwrap_err();
    bench.refused(&bench.reader(), request("GET", "//x"), "path_ambiguous").await;
    assert_eq!(bench.issuer().connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn m02_m03_a_token_call_stands_between_two_rows_or_is_not_made() {
    let script: Script = Arc::new(|heard| [vec![Step::Await], grant(heard.number, "")].concat());
    let bench = bench(client, script).await;
    bench.memory.audit_fails.store(true, Ordering::SeqCst);
    assert_eq!(get(&bench).await, Err("audit_unavailable"));
    assert_eq!((bench.issuer().connections(), bench.vendor.connections()), (0, 0));
    bench.memory.audit_fails.store(false, Ordering::SeqCst);
    let run = bench.reader();
    let (got, ()) = tokio::join!(bench.send(&run, request("GET", "/x")), async {
        bench.issuer().until_heard(1).await;
        let rows = token_rows(&bench);
        assert_eq!(rows.len(), 1, "the call went before its row");
        assert_eq!((rows[0].kind, rows[0].path.as_str()), (AuditKind::Intent, "/oauth/token"));
        assert!(rows[0].host.starts_with(ISSUER));
        bench.issuer().release();
    });
    assert_eq!(got.unwrap().status, 200);
    let rows = token_rows(&bench);
    assert_eq!((rows[1].kind, rows[1].status), (AuditKind::Outcome, Some(200)));
    assert_eq!(rows[1].rule, "completed");
    bench.finish().await;
}

#[tokio::test]
async fn d17_only_a_sign_in_that_fits_counts() {
    for (scheme, issuer, counts) in [
        (code as fn(&str) -> Scheme, None, true),
        (code, Some("https://evil.test"), false),
        (code, Some("https://id.acme.test.evil.test"), false),
        (public_code, Some("https://acme.test"), true),
        (public_code, Some("https://acme.test/"), false),
        (public_code, None, false),
    ] {
        let bench = bench(scheme, giving("")).await;
        let (link, consent) =
            cambium_proxy::Proxy::begin_consent(&bench.connection, "http://127.0.0.1:7/cb")
                .unwrap();
        let state = consent.state().to_owned();
        assert!(link.contains(&format!("&state={state}&")) && state.len() == 43, "{link}");
        assert!(link.contains("&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcb&"), "{link}");
        assert!(link.contains("&code_challenge_method=S256"), "{link}");
        let code = Secret::new(b"c0de-S3CRET-1234567890".to_vec());
        let sealing = bench.proxy.sealing().await;
        let finished = bench
            .proxy
            .finish_consent(&sealing, &bench.connection, consent, &code, issuer, true)
            .await;
        assert_eq!(finished.is_ok(), counts, "{issuer:?}");
        assert_eq!(bench.issuer().heard().len(), usize::from(counts), "{issuer:?}");
        if counts {
            let body = String::from_utf8(bench.issuer().heard()[0].body.clone()).unwrap();
            assert!(body.starts_with("grant_type=authorization_code&code=c0de-S3CRET-"), "{body}");
            assert!(body.contains("&code_verifier=") && body.contains("client_id=me"), "{body}");
            assert_eq!(get(&bench).await, Ok(200));
            assert_eq!(bearers(&bench), [bearer(0)]);
        }
        bench.finish().await;
    }
}

#[tokio::test]
async fn d17_a_sign_in_for_another_state_of_the_connection_is_not_taken() {
    let mut bench = bench(code, giving("")).await;
    let (_, consent) =
        cambium_proxy::Proxy::begin_consent(&bench.connection, "http://x/cb").unwrap();
    bench.change(|connection| connection.generation = 2).await;
    let code = Secret::new(b"c0de".to_vec());
    let refused = bench
        .proxy
        .finish_consent(&bench.proxy.sealing().await, &bench.connection, consent, &code, None, true)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "credential_unavailable");
    assert_eq!(bench.issuer().connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn d12_another_account_raises_the_generation_and_nobody_signed_in_gets_nothing() {
    let mut bench = bench(code, giving(",\"expires_in\":3600")).await;
    bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
    assert_eq!(bench.issuer().connections(), 0);
    signed_in(&bench).await;
    assert_eq!(get(&bench).await, Ok(200));
    let old = bench.reader();
    let (_, consent) =
        cambium_proxy::Proxy::begin_consent(&bench.connection, "http://x/cb").unwrap();
    let code = Secret::new(b"c0de".to_vec());
    let sealing = bench.proxy.sealing().await;
    let after =
        bench.proxy.finish_consent(&sealing, &bench.connection, consent, &code, None, false);
    let (after, sealed) = after.await.unwrap();
    assert_eq!(after.generation, 2);
    bench.memory.put_connection(after.clone());
    bench.memory.put_secret(&sealed.unwrap()).await.unwrap();
    let refused = bench.send(&old, request("GET", "/x")).await.unwrap_err();
    assert_eq!(refused.code(), "connection_revoked");
    bench.connection = after;
    assert_eq!(get(&bench).await, Ok(200));
    assert_eq!(bearers(&bench), [bearer(0), bearer(1)]);
    bench.finish().await;
}

#[tokio::test]
async fn d07_a_refresh_token_that_is_not_rotated_stays_and_one_refused_is_said() {
    let script: Script = Arc::new(|heard| match heard.number {
        0 => grant(0, ",\"expires_in\":3600"),
        1 => {
            let body = format!("{{\"access_token\":\"{}\",\"expires_in\":3600}}", token(1));
            answer("200 OK", "", body.as_bytes())
        }
        _ => answer("400 Bad Request", "", b"{\"error\":\"invalid_grant\"}"),
    });
    let bench = bench(code, script).await;
    signed_in(&bench).await;
    for expected in [Ok(200), Err("credential_unavailable"), Err("credential_unavailable")] {
        bench.clock.advance(Duration::from_secs(3601));
        assert_eq!(get(&bench).await, expected);
    }
    let asked = bench.issuer().heard();
    assert_eq!(asked.len(), 4);
    for heard in &asked[1..] {
        let body = String::from_utf8(heard.body.clone()).unwrap();
        assert!(body.contains(&refresh_token(0)), "the refresh token was lost");
    }
    bench.finish().await;
}

#[tokio::test]
async fn d12_tokens_move_with_a_change_of_policy_but_not_while_they_are_renewed() {
    let script: Script = Arc::new(|heard| {
        let wait = if heard.number > 0 { vec![Step::Await] } else { Vec::new() };
        [wait, grant(heard.number, ",\"expires_in\":3600")].concat()
    });
    let mut bench = bench(code, script).await;
    signed_in(&bench).await;
    let mut after = bench.connection.clone();
    after.generation = 2;
    let sealed = bench
        .proxy
        .reseal(&bench.proxy.sealing().await, &bench.connection, &after)
        .await
        .unwrap()
        .unwrap();
    bench.memory.put_connection(after.clone());
    bench.memory.put_secret(&sealed).await.unwrap();
    bench.connection = after.clone();
    assert_eq!(get(&bench).await, Ok(200));
    assert_eq!(bearers(&bench), [bearer(0)], "the tokens were lost");
    bench.clock.advance(Duration::from_secs(3601));
    let run = bench.reader();
    let (got, ()) = tokio::join!(bench.send(&run, request("GET", "/x")), async {
        bench.issuer().until_heard(2).await;
        after.generation = 3;
        let refused = bench
            .proxy
            .reseal(&bench.proxy.sealing().await, &bench.connection, &after)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), "credential_unavailable");
        bench.issuer().release();
    });
    assert_eq!(got.unwrap().status, 200);
    bench.finish().await;
}
