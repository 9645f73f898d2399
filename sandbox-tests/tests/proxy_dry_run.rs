//! Rows I: a dry run reads and shows, and never writes.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{AuditKind, Grant};
use cambium_sandbox_tests::bench::{
    Bench, DESTROYS, SECRET, Setup, WRITES, anywhere, request, with_body, with_headers,
};

#[tokio::test]
async fn i01_a_read_goes_with_the_credential_and_is_marked() {
    let bench = Bench::new().await;
    let got = bench.send(&bench.dry(), request("GET", "/x")).await.unwrap();
    assert!(!got.intercepted);
    assert_eq!(bench.vendor.heard()[0].header("authorization").len(), 1);
    assert!(bench.row(AuditKind::Intent).await.dry_run);
    assert!(bench.row(AuditKind::Outcome).await.dry_run);
    bench.finish().await;
}

#[tokio::test]
async fn i02_everything_else_is_shown_and_stops() {
    // No secret at all: a stopped request needs none.
    let bench = Bench::start(Setup { secret: None, ..Setup::default() }).await;
    let run = || {
        bench.open(DESTROYS, anywhere(&["POST", "PUT", "PATCH", "DELETE", "MKCOL"]), Grant::Preview)
    };
    for method in ["POST", "PUT", "PATCH", "DELETE", "MKCOL"] {
        let session = run();
        let got = bench.send(&session, with_body(method, "/o?a=1", "{\"n\":2}")).await.unwrap();
        assert_eq!((got.status, got.intercepted), (202, true));
        let shown: serde_json::Value = serde_json::from_str(&got.text()).unwrap();
        assert_eq!(shown["dryRun"], true);
        assert_eq!(shown["request"]["method"], method);
        assert_eq!(shown["request"]["path"], "/o");
        assert_eq!(shown["request"]["query"], "a=1");
        assert_eq!(shown["request"]["credential"], "bearer, acme");
        assert_eq!(shown["request"]["body"], "{\"n\":2}");
        assert_eq!(shown["request"]["digest"].as_str().unwrap().len(), 64);
        assert!(session.report().exchanges[0].preview.is_some());
        assert_eq!(bench.row(AuditKind::Preview).await.method, method);
    }
    assert_eq!(bench.vendor.connections(), 0);
    assert!(bench.desk.shown().is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn i03_refusals_stay_refusals() {
    let bench = Bench::new().await;
    let override_ = with_headers("POST", "/x", &[("x-http-method-override", b"DELETE")]);
    for (request, code) in [
        (request("get", "/x"), "method_invalid"),
        (override_, "header_refused"),
        (with_body("GET", "/x", "{}"), "body_on_read"),
        (request("TRACE", "/x"), "method_invalid"),
        (request("DELETE", "/x"), "method_exceeds_hint"),
    ] {
        bench.refused(&bench.dry(), request, code).await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn i05_a_request_after_the_run() {
    let bench = Bench::new().await;
    let run = bench.open(WRITES, anywhere(&["POST"]), Grant::Preview);
    run.close();
    bench.refused(&run, with_body("POST", "/x", "{}"), "run_closed").await;
    bench.finish().await;
}

#[tokio::test]
async fn i07_a_secret_typed_by_the_person_is_not_in_the_audit() {
    let bench = Bench::new().await;
    let target = format!("/x/{SECRET}?{SECRET}=1");
    let mut reply = bench.dry().send(with_body("POST", &target, SECRET)).await.unwrap();
    let mut body = Vec::new();
    while let Some(chunk) = reply.body.chunk().await {
        body.extend_from_slice(&chunk.unwrap());
    }
    assert!(String::from_utf8(body).unwrap().contains(SECRET), "the agent's own data is shown");
    let row = bench.row(AuditKind::Preview).await;
    assert_eq!(row.path, "/x/[REDACTED:acme]");
    bench.assert_no_secret();
    bench.finish().await;
}
