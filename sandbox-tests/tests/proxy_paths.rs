//! Rows A of the proxy's attack catalogue: what a module may say as a path.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Grant, OutboundRequest};
use cambium_sandbox_tests::bench::{Bench, WRITES, anywhere, request};

async fn all_refused(rows: &[(&str, &str)]) {
    let bench = Bench::new().await;
    for (target, code) in rows {
        bench.refused(&bench.reader(), request("GET", target), code).await;
    }
    bench.finish().await;
}

/// Each path arrives as the second of its pair, and the audit has its path.
async fn all_pass(rows: &[(&str, &str)]) {
    let bench = Bench::new().await;
    for (target, wire) in rows {
        let got = bench.send(&bench.reader(), request("GET", target)).await.expect(target);
        assert_eq!(got.status, 200);
        let heard = bench.vendor.heard();
        assert_eq!(heard.last().unwrap().line(), format!("GET {wire} HTTP/1.1"), "{target}");
        let intent = bench.row(cambium_proxy::AuditKind::Intent).await;
        assert_eq!(intent.path, wire.split('?').next().unwrap(), "{target}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn a01_double_slash_leaves_the_host() {
    all_refused(&[("//evil.test/x", "path_ambiguous"), ("/v1//x", "path_ambiguous")]).await;
}

#[tokio::test]
async fn a02_backslash_is_a_slash_to_others() {
    all_refused(&[
        ("/\\evil.test/x", "path_ambiguous"),
        ("\\\\evil.test", "path_ambiguous"),
        ("/%5Cevil", "path_ambiguous"),
        ("/%5cevil", "path_ambiguous"),
    ])
    .await;
}

#[tokio::test]
async fn a03_absolute_url() {
    all_refused(&[
        ("https://evil.test/x", "host_not_in_connection"),
        ("HTTPS://evil.test/x", "host_not_in_connection"),
        ("https://api.acme.test/v1/x", "host_not_in_connection"),
    ])
    .await;
}

#[tokio::test]
async fn a04_sdk_url_only_on_the_connections_own_host() {
    let bench = Bench::new().await;
    let port = bench.vendor.address.port();
    let sdk = |target: &str| OutboundRequest { sdk: true, ..request("GET", target) };
    let run = || bench.open(WRITES, anywhere(&["GET"]), Grant::Ask);
    let url = format!("https://api.acme.test:{port}/v1/x?a=1");
    assert_eq!(bench.send(&run(), sdk(&url)).await.unwrap().status, 200);
    assert_eq!(bench.vendor.heard()[0].line(), "GET /v1/x?a=1 HTTP/1.1");
    for target in [
        "https://evil.test/x".to_owned(),
        format!("https://api.acme.test.evil.test:{port}/x"),
        format!("https://api.acme.test@evil.test:{port}/x"),
        format!("https://x@api.acme.test:{port}/x"),
        format!("https://API.acme.test:{port}/x"),
        format!("https://api.acme.test.:{port}/x"),
        "https://api.acme.test/x".to_owned(),
        format!("https://api.acme.test:{port}\\@evil.test/x"),
    ] {
        let code = if target.contains('\\') { "path_ambiguous" } else { "host_not_in_connection" };
        bench.refused(&run(), sdk(&target), code).await;
    }
    // An SDK call is a write: a read-only version cannot make one.
    bench.refused(&bench.reader(), sdk(&url), "method_exceeds_hint").await;
    bench.finish().await;
}

#[tokio::test]
async fn a05_userinfo() {
    all_refused(&[
        ("https://api.acme.test@evil.test/x", "host_not_in_connection"),
        ("https://api.acme.test:443@evil.test/", "host_not_in_connection"),
    ])
    .await;
}

#[tokio::test]
async fn a06_must_start_with_one_slash() {
    let targets = ["@evil.test/x", ":80@evil.test/", ".evil.test/x", "v1/x", ""];
    all_refused(&targets.map(|target| (target, "path_not_relative"))).await;
}

#[tokio::test]
async fn a07_other_schemes() {
    all_refused(&[
        ("https:evil.test", "path_not_relative"),
        ("http:///evil.test", "host_not_in_connection"),
        ("javascript:alert(1)", "path_not_relative"),
        ("data:text/plain,x", "path_not_relative"),
        ("file:///etc/passwd", "path_not_relative"),
        ("blob:x", "path_not_relative"),
    ])
    .await;
}

#[tokio::test]
async fn a08_controls_are_never_stripped() {
    let targets = [
        "\t//evil.test",
        " /x",
        "/x\ty",
        "/x\ny",
        "/x\r\nX: y",
        "/x\0y",
        "/x\u{7f}",
        "/x\u{85}y",
        "\u{feff}/x",
        "\u{3000}/x",
    ];
    let rows = targets.map(|target| {
        (target, if target.starts_with('\u{feff}') { "path_not_relative" } else { "path_invalid" })
    });
    all_refused(&rows).await;
}

#[tokio::test]
async fn a09_encoded_controls() {
    let targets = ["/x%0d%0aX:y", "/x%00", "/x%09", "/x%7f", "/x%0A"];
    all_refused(&targets.map(|target| (target, "path_invalid"))).await;
}

#[tokio::test]
async fn a10_a11_dot_segments() {
    let targets = [
        "/v1/../admin",
        "/v1/./x",
        "/v1/..",
        "/v1/.",
        "/v1/%2e%2e/admin",
        "/v1/%2E%2e/x",
        "/v1/.%2e/x",
        "/v1/..;/admin",
        "/v1/%252e%252e/x",
        "/v1/%25252e%25252e/x",
        "/v1/%25%2532%65%25%2532%65/x",
        "/x%25%2531114",
        "/..//evil",
    ];
    all_refused(&targets.map(|target| (target, "path_ambiguous"))).await;
}

#[tokio::test]
async fn a13_encoded_slash() {
    let targets = ["/v1/a%2Fb", "/v1/..%2fadmin", "/v1/a%252fb"];
    all_refused(&targets.map(|target| (target, "path_ambiguous"))).await;
}

#[tokio::test]
async fn a15_bad_escapes() {
    let targets = ["/x%zz", "/x%", "/x%u0041", "/x?q=%zz", "/x%4"];
    all_refused(&targets.map(|target| (target, "path_invalid"))).await;
}

#[tokio::test]
async fn a17_asterisk_and_bare_query() {
    all_refused(&[("*", "path_not_relative"), ("?q=1", "path_not_relative")]).await;
}

#[tokio::test]
async fn a18_encoded_once_before_policy() {
    all_pass(&[
        ("/café", "/caf%C3%A9"),
        ("/a b", "/a%20b"),
        ("/x{y}", "/x%7By%7D"),
        ("/x\"y", "/x%22y"),
        ("/x%20y", "/x%20y"),
        ("/x?q=ä b&filter[a]=1", "/x?q=%C3%A4%20b&filter[a]=1"),
        ("/x?re=a\\b", "/x?re=a%5Cb"),
        ("/users/a@b.c:x;v=1,2", "/users/a@b.c:x;v=1,2"),
    ])
    .await;
}

#[tokio::test]
async fn a19_what_could_not_be_decoded_is_not_sent() {
    all_refused(&[("/\u{fffd}", "path_invalid"), ("/x#y", "path_invalid")]).await;
}

#[tokio::test]
async fn a21_length() {
    let (long, longer) = (format!("/{}", "a".repeat(9_000)), format!("/{}", "a".repeat(70_000)));
    let query = format!("/x?{}", "a".repeat(17_000));
    let umlauts = format!("/{}", "ä".repeat(3_000));
    let targets = [&*long, &*longer, &*query, &*umlauts];
    all_refused(&targets.map(|target| (target, "path_too_long"))).await;
}

#[tokio::test]
async fn a23_a_url_in_the_query_is_data_and_the_audit_keeps_keys() {
    let bench = Bench::new().await;
    let target = "/v1/x?u=https://evil.test&u=2&token-like-value";
    bench.send(&bench.reader(), request("GET", target)).await.unwrap();
    let intent = bench.row(cambium_proxy::AuditKind::Intent).await;
    assert_eq!(intent.query_keys, ["u", "‹no key›"]);
    assert!(!bench.memory.dump().contains("evil.test"));
    bench.finish().await;
}

#[tokio::test]
async fn a24_a_host_is_an_index_into_the_list() {
    let bench = Bench::new().await;
    let on = |host: &str| OutboundRequest { host: Some(host.into()), ..request("GET", "/x") };
    for host in ["files", "files.acme.test"] {
        bench.send(&bench.reader(), on(host)).await.unwrap();
        let heard = bench.vendor.heard();
        let wire = format!("files.acme.test:{}", bench.vendor.address.port());
        assert_eq!(heard.last().unwrap().header("host"), [wire.as_str()]);
    }
    for host in ["evil.test", "files.acme.test:22", "FILES.acme.test.", "", "files.acme.test\r\n"] {
        bench.refused(&bench.reader(), on(host), "host_not_in_connection").await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn a25_no_control_channel_in_band() {
    all_pass(&[("/__run/stop", "/__run/stop"), ("/health", "/health")]).await;
}
