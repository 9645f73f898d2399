//! Rows B and C: methods, classes, bodies and request headers.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{
    AuditKind, CallSite, Grant, Limits, MethodPattern, PathPattern, Scheme, Session,
};
use cambium_sandbox_tests::bench::{
    Bench, DESTROYS, READS, SECRET, Setup, WRITES, anywhere, request, site, with_body, with_headers,
};
use cambium_sandbox_tests::memory::Word;
use std::sync::Arc;

const ALL: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"];

fn destroyer(bench: &Bench) -> Arc<Session> {
    bench.open(DESTROYS, anywhere(ALL), Grant::Ask)
}

#[tokio::test]
async fn b01_lower_case_methods() {
    let bench = Bench::new().await;
    for method in ["get", "GeT", "delete", "dElEtE", "patch"] {
        bench.refused(&destroyer(&bench), request(method, "/x"), "method_invalid").await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn b02_methods_that_are_never_sent_and_those_that_are_writes() {
    let bench = Bench::new().await;
    for method in ["TRACE", "TRACK", "CONNECT", "G ET", "GET\r\n", "", "GET /x HTTP/1.1\r\nA:"] {
        bench.refused(&destroyer(&bench), request(method, "/x"), "method_invalid").await;
    }
    bench.refused(&destroyer(&bench), request("OPTIONS", "*"), "path_not_relative").await;
    for method in ["OPTIONS", "PROPFIND", "QUERY"] {
        let got = bench.send(&bench.dry(), request(method, "/x")).await.unwrap();
        assert!(got.intercepted, "{method} went out of a dry run");
    }
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn b03_a_read_only_version_that_posts_is_stopped() {
    let bench = Bench::new().await;
    let run = bench.open(READS, anywhere(ALL), Grant::ReadOnly);
    bench.refused(&run, with_body("POST", "/x", "{}"), "method_exceeds_hint").await;
    run.ended().await;
    assert_eq!(run.report().fatal.unwrap().code(), "method_exceeds_hint");
    bench.refused(&run, request("GET", "/x"), "run_closed").await;
    bench.finish().await;
}

#[tokio::test]
async fn b04_delete_needs_its_hint() {
    let bench = Bench::new().await;
    for site in [
        CallSite { method: MethodPattern::Any, host: None, path: PathPattern::Any },
        CallSite {
            method: MethodPattern::Exactly("DELETE".into()),
            host: None,
            path: PathPattern::Any,
        },
    ] {
        let run = bench.open(WRITES, vec![site], Grant::Ask);
        bench.refused(&run, request("DELETE", "/x"), "method_exceeds_hint").await;
        run.ended().await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn b05_method_override_headers() {
    let bench = Bench::new().await;
    for name in [
        "X-HTTP-Method-Override",
        "X-HTTP-Method",
        "X-Method-Override",
        "x_http_method_override",
        "content_type",
    ] {
        let request = with_headers("POST", "/orders", &[(name, b"DELETE")]);
        bench.refused(&bench.writer(), request, "header_refused").await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn b07_a_read_has_no_body() {
    let bench = Bench::new().await;
    bench.refused(&bench.reader(), with_body("GET", "/x", "{}"), "body_on_read").await;
    bench.refused(&bench.reader(), with_body("HEAD", "/x", "{}"), "body_on_read").await;
    bench.finish().await;
}

#[tokio::test]
async fn b13_a_loop_meets_the_cap() {
    let bench = Bench::new().await;
    let run = bench.reader();
    for _ in 0..Limits::default().requests {
        assert_eq!(bench.send(&run, request("GET", "/x")).await.unwrap().status, 200);
    }
    for _ in 0..5 {
        bench.refused(&run, request("GET", "/x"), "run_request_cap").await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn b14_requests_outside_the_recorded_sites() {
    let bench = Bench::new().await;
    let sites = vec![site("GET", "/orders/{}/lines"), site("GET", "/v{}/x-{}.json")];
    let run = || bench.open(READS, sites.clone(), Grant::ReadOnly);
    for target in ["/orders/7/lines", "/orders/a%20b/lines?x=1", "/v1/x-a.b.json"] {
        assert_eq!(
            bench.send(&run(), request("GET", target)).await.unwrap().status,
            200,
            "{target}"
        );
    }
    for target in [
        "/orders/7",
        "/orders//lines",
        "/orders/7/8/lines",
        "/orders/7/lines/",
        "/Orders/7/lines",
        "/v/x-a.json",
        "/v1/x-.json",
        "/v1/x-a.jsonx",
        "/",
    ] {
        let code = if target.contains("//") { "path_ambiguous" } else { "outside_call_sites" };
        bench.refused(&run(), request("GET", target), code).await;
    }
    bench.refused(&run(), request("HEAD", "/orders/7/lines"), "outside_call_sites").await;
    let other = cambium_proxy::OutboundRequest {
        host: Some("files".into()),
        ..request("GET", "/orders/7/lines")
    };
    bench.refused(&run(), other, "outside_call_sites").await;
    bench.finish().await;
}

/// Sends headers and answers the head the vendor got and the audit's notes.
async fn wire(
    bench: &Bench,
    headers: &[(&str, &[u8])],
) -> (cambium_sandbox_tests::vendor::Heard, Vec<String>) {
    bench.send(&bench.reader(), with_headers("GET", "/x", headers)).await.unwrap();
    let heard = bench.vendor.heard().pop().unwrap();
    (heard, bench.row(AuditKind::Intent).await.notes)
}

#[tokio::test]
async fn c01_c03_authorization_is_ours() {
    let bench = Bench::new().await;
    let ours = format!("Bearer {SECRET}");
    for headers in [
        &[("Authorization", &b"Bearer mine"[..])][..],
        &[("authorization", b"Bearer a"), ("AUTHORIZATION", b"Bearer b")],
    ] {
        let (heard, notes) = wire(&bench, headers).await;
        assert_eq!(heard.header("authorization"), [ours.as_str()]);
        assert_eq!(notes, ["header_dropped:authorization"]);
        // Nothing of the module's comes after it; the host is ours too.
        let after: Vec<&str> = heard.head.split_once(&ours).unwrap().1.trim().lines().collect();
        assert!(after.iter().all(|line| line.starts_with("host:")), "{after:?}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn c04_host_is_ours() {
    let bench = Bench::new().await;
    let authority = format!("api.acme.test:{}", bench.vendor.address.port());
    let (heard, _) = wire(&bench, &[("Host", b"evil.test"), ("host", b"evil2.test")]).await;
    assert_eq!(heard.header("host"), [authority.as_str()]);
    let request = with_headers("GET", "/x", &[(":authority", b"evil.test")]);
    bench.refused(&bench.reader(), request, "header_refused").await;
    bench.finish().await;
}

#[tokio::test]
async fn c05_c06_c09_framing_and_hops_are_ours() {
    let bench = Bench::new().await;
    let (heard, notes) = wire(
        &bench,
        &[
            ("Connection", b"close, Authorization"),
            ("Transfer-Encoding", b"xchunked"),
            ("Content-Length", b"+5"),
            ("Expect", b"100-continue"),
            ("TE", b"trailers"),
            ("Upgrade", b"h2c"),
            ("Keep-Alive", b"timeout=1"),
            ("Proxy-Authorization", b"x"),
        ],
    )
    .await;
    for name in ["connection", "transfer-encoding", "content-length", "expect", "te", "upgrade"] {
        assert!(heard.header(name).is_empty(), "{name}: {}", heard.head);
    }
    assert_eq!(heard.header("authorization").len(), 1);
    assert_eq!(notes.len(), 8);
    bench.finish().await;
}

#[tokio::test]
async fn c07_one_request_with_the_right_length() {
    let bench = Bench::new().await;
    bench.desk.will(Word::Say(cambium_proxy::Answer::Standing));
    let run = bench.writer();
    for length in ["0", "2", "50", "5,6"] {
        let mut request = with_body("POST", "/orders", "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        request.headers.push(("Content-Length".into(), length.into()));
        assert_eq!(bench.send(&run, request).await.unwrap().status, 200);
    }
    let heard = bench.vendor.heard();
    assert_eq!(heard.len(), 4);
    for heard in heard {
        assert_eq!(heard.header("content-length"), ["35"]);
        assert_eq!(heard.line(), "POST /orders HTTP/1.1");
    }
    bench.finish().await;
}

#[tokio::test]
async fn c11_c12_c13_c19_c21_dropped_headers() {
    let bench = Bench::new().await;
    let names = [
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "Forwarded",
        "X-Original-URL",
        "X-Rewrite-URL",
        "True-Client-IP",
        "CF-Connecting-IP",
        "Sudo",
        "Impersonate-User",
        "Stripe-Account",
        "X-Goog-User-Project",
        "Cookie",
        "Range",
        "Origin",
        "Referer",
        "X-Anything",
        "Proxy-Version",
        "X-Forwarded-Version",
        "Sec-Fetch-Version",
    ];
    let mut headers: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b"1"[..])).collect();
    headers.push(("Accept-Encoding", b"br"));
    headers.push(("User-Agent", b"curl"));
    let (heard, notes) = wire(&bench, &headers).await;
    for name in names {
        assert!(heard.header(name).is_empty(), "{name}");
    }
    assert_eq!(heard.header("accept-encoding"), ["gzip"]);
    assert!(heard.header("user-agent")[0].starts_with("cambium/"));
    assert_eq!(notes.len(), headers.len());
    bench.finish().await;
}

#[tokio::test]
async fn c15_values_that_are_not_visible_ascii() {
    let bench = Bench::new().await;
    for value in [&b"caf\xe9"[..], "é".as_bytes(), b" x", b"x ", b"a\r\nb: c", b"\0", b"\x7f"] {
        let request = with_headers("GET", "/x", &[("accept", value)]);
        bench.refused(&bench.reader(), request, "header_refused").await;
    }
    for name in ["", "a b", "a:b", "a\r\nb", "é"] {
        bench
            .refused(&bench.reader(), with_headers("GET", "/x", &[(name, b"x")]), "header_refused")
            .await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn c17_too_many_headers() {
    let bench = Bench::new().await;
    let many = vec![("accept", &b"x"[..]); 1_000];
    bench.refused(&bench.reader(), with_headers("GET", "/x", &many), "header_refused").await;
    let big = vec![b'x'; 64 * 1024];
    bench
        .refused(&bench.reader(), with_headers("GET", "/x", &[("accept", &big)]), "header_refused")
        .await;
    bench.finish().await;
}

#[tokio::test]
async fn c20_headers_that_pass() {
    let bench = Bench::new().await;
    let headers: [(&str, &[u8]); 7] = [
        ("If-None-Match", b"\"a\""),
        ("Idempotency-Key", b"k"),
        ("Accept", b"application/json"),
        ("Content-Type", b"text/plain"),
        ("Prefer", b"return=minimal"),
        ("Notion-Version", b"1"),
        ("X-GitHub-Api-Version", b"2022-11-28"),
    ];
    let (heard, notes) = wire(&bench, &headers).await;
    for (name, value) in headers {
        assert_eq!(heard.header(name), [std::str::from_utf8(value).unwrap()]);
    }
    assert!(notes.is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn c22_an_api_key_header_is_placed_and_cannot_be_set() {
    let scheme = Scheme::ApiKeyHeader { header: "x-api-version".into(), prefix: "Key ".into() };
    let bench = Bench::start(Setup { scheme, ..Setup::default() }).await;
    let (heard, notes) = wire(&bench, &[("X-Api-Version", b"mine"), ("Authorization", b"x")]).await;
    assert_eq!(heard.header("x-api-version"), [format!("Key {SECRET}").as_str()]);
    assert!(heard.header("authorization").is_empty());
    assert_eq!(notes.len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn b16_a_body_over_the_limit() {
    let limits = Limits { request_body_bytes: 8, ..Limits::default() };
    let bench = Bench::start(Setup { limits, ..Setup::default() }).await;
    let order = with_body("POST", "/orders", "{\"n\": 1234}");
    bench.refused(&bench.writer(), order.clone(), "body_too_large").await;
    bench.refused(&bench.dry(), order, "body_too_large").await;
    bench.finish().await;
}
