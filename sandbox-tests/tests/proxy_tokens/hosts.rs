//! Where tokens are got: endpoints that give none, move, are no path of a tool,
//! or are at addresses that are not dialled.

use crate::support::{bench, client, code, get, giving, grant, signed_in, token, token_rows, with};
use cambium_proxy::Grant;
use cambium_sandbox_tests::bench::{Bench, ISSUER, Setup, anywhere, request};
use cambium_sandbox_tests::vendor::{Heard, Script, Step, answer};
use std::sync::Arc;
use std::time::Duration;

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
