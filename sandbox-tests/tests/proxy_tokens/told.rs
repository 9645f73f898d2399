//! What is told and written down of a token: no form of it to a module, two audit
//! rows around each call, and none got for what is not sent.

use crate::support::{
    bench, client, code, get, giving, grant, refresh_token, signed_in, token, token_rows, with,
};
use cambium_proxy::{Answer, AuditKind, Scheme};
use cambium_sandbox_tests::bench::{Bench, ISSUER, SECRET, Setup, forms, request, with_body};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Script, Step, answer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
