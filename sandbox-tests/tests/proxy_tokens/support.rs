//! Schemes whose credential is a token, an authorization server that counts, and
//! what a vendor heard.

use cambium_proxy::{AuditEvent, Scheme, Secret};
use cambium_sandbox_tests::bench::{Bench, IssuerSetup, Setup, request};
use cambium_sandbox_tests::vendor::{Heard, Script, Step, answer};
use std::sync::Arc;

pub(crate) fn scheme(text: &str) -> Scheme {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn client(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_client_credentials","token_url":"{base}/oauth/token",
            "client_id":"me","scope":"read write"}}"#
    ))
}

pub(crate) fn code(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_authorization_code","authorization_url":"{base}/authorize",
            "token_url":"{base}/oauth/token","client_id":"me","client_auth":"body",
            "parameters":{{"access_type":"offline"}}}}"#
    ))
}

pub(crate) fn public_code(base: &str) -> Scheme {
    scheme(&format!(
        r#"{{"scheme":"oauth2_authorization_code","authorization_url":"{base}/authorize",
            "token_url":"{base}/oauth/token","client_id":"me","client_auth":"none",
            "issuer":"https://acme.test"}}"#
    ))
}

/// The token of that number, from 0.
pub(crate) fn token(number: usize) -> String {
    format!("at-{number}-S3CRET-ACCESS-9876543210")
}

pub(crate) fn refresh_token(number: usize) -> String {
    format!("rt-{number}-S3CRET-REFRESH-123456789")
}

/// An authorization server that gives out `token(n)` and `refresh_token(n)`.
pub(crate) fn giving(more: &'static str) -> Script {
    Arc::new(move |heard: &Heard| grant(heard.number, more))
}

pub(crate) fn grant(number: usize, more: &str) -> Vec<Step> {
    let (access, refresh) = (token(number), refresh_token(number));
    let body = format!(
        "{{\"access_token\":\"{access}\",\"refresh_token\":\"{refresh}\",\"token_type\":\"Bearer\"{more}}}"
    );
    answer("200 OK", "content-type: application/json\r\n", body.as_bytes())
}

pub(crate) async fn bench(scheme: fn(&str) -> Scheme, script: Script) -> Bench {
    with(scheme, script, Setup::default()).await
}

pub(crate) async fn with(scheme: fn(&str) -> Scheme, script: Script, setup: Setup) -> Bench {
    let bench = Bench::start(Setup { issuer: Some(IssuerSetup { script, scheme }), ..setup }).await;
    for number in 0..8 {
        bench.hide(token(number));
        bench.hide(refresh_token(number));
    }
    bench
}

/// Signs a person in, as the console would.
pub(crate) async fn signed_in(bench: &Bench) {
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

pub(crate) fn bearers(bench: &Bench) -> Vec<String> {
    let heard = bench.vendor.heard();
    heard.iter().map(|heard| heard.header("authorization").concat()).collect()
}

pub(crate) fn bearer(number: usize) -> String {
    format!("Bearer {}", token(number))
}

pub(crate) fn token_rows(bench: &Bench) -> Vec<AuditEvent> {
    bench.memory.events().into_iter().filter(|event| event.decision == "token").collect()
}

/// Reads once, on a run of its own.
pub(crate) async fn get(bench: &Bench) -> Result<u16, &'static str> {
    let got = bench.send(&bench.reader(), request("GET", "/x")).await;
    got.map(|got| got.status).map_err(|refusal| refusal.code())
}
