//! A person's sign-in: for one state of one connection, and what it leaves.

use crate::support::{
    bearer, bearers, bench, code, get, giving, grant, public_code, refresh_token, signed_in, token,
};
use cambium_proxy::{Scheme, Secret, SecretStore};
use cambium_sandbox_tests::bench::request;
use cambium_sandbox_tests::vendor::{Script, Step, answer};
use std::sync::Arc;
use std::time::Duration;

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
