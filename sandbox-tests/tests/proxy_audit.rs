//! Rows M: what the audit shows of itself, how long it is kept, and that a
//! rotation of the vault's key loses no credential wherever it is cut off.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Anchor, AuditKind, AuditSegment, KeySource, Vault};
use cambium_sandbox_tests::bench::{Bench, Setup, request};
use std::sync::atomic::Ordering;

async fn reads(bench: &Bench, times: usize) {
    for _ in 0..times {
        bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    }
    // An outcome is stored behind its reply's back: two rows a read.
    let rows = |kind| bench.memory.events().iter().filter(|event| event.kind == kind).count();
    while rows(AuditKind::Outcome) < rows(AuditKind::Intent) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn m01_a_malformed_first_line_has_its_row() {
    let bench = Bench::new().await;
    let long = "x".repeat(9_000);
    let longer = format!("/{}", "x".repeat(70_000));
    for (method, target, code) in [
        ("", "/x", "method_invalid"),
        ("G ET", "/x", "method_invalid"),
        ("GET\r\n", "/x", "method_invalid"),
        ("GET /x HTTP/1.1\r\nHost: evil", "/x", "method_invalid"),
        ("\0", "/x", "method_invalid"),
        (long.as_str(), "/x", "method_invalid"),
        ("get", "/x", "method_invalid"),
        ("GET", "", "path_not_relative"),
        ("GET", "x", "path_not_relative"),
        ("GET", "/x HTTP/1.1\r\nHost: evil", "path_invalid"),
        ("GET", "/\0", "path_invalid"),
        ("GET", longer.as_str(), "path_too_long"),
    ] {
        bench.refused(&bench.reader(), request(method, target), code).await;
        let row = bench.row(AuditKind::Refusal).await;
        assert!(row.method.chars().count() <= 512 && row.path.chars().count() <= 512, "{code}");
        assert!(!row.method.contains(['\r', '\n', '\0']), "{code}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn m02_reads_do_not_wait_for_the_disk_and_are_refused_without_a_row() {
    let bench = Bench::new().await;
    reads(&bench, 3).await;
    assert!(bench.memory.appends().iter().all(|(_, durable)| !durable));
    bench.memory.audit_fails.store(true, Ordering::SeqCst);
    let before = bench.vendor.connections();
    let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "audit_unavailable");
    assert_eq!(bench.vendor.connections(), before);
    bench.memory.audit_fails.store(false, Ordering::SeqCst);
    reads(&bench, 1).await;
    bench.finish().await;
}

#[tokio::test]
async fn m08_a_refusal_says_what_to_do_and_not_where_things_are() {
    let bench = Bench::start(Setup { excepted: false, ..Setup::default() }).await;
    bench.names.set("api.acme.test", &[&["10.1.2.3"]]);
    for (method, target, code) in [
        ("GET", "/x", "address_denied"),
        ("POST", "/x", "method_exceeds_hint"),
        ("GET", "//x", "path_ambiguous"),
    ] {
        let refusal = bench.send(&bench.reader(), request(method, target)).await.unwrap_err();
        assert_eq!(refusal.code(), code);
        assert!(!refusal.next().is_empty() && !refusal.retryable(), "{code}");
        let said = format!("{refusal} {}", refusal.next());
        for inside in ["10.1.2.3", "127.0.0.1", "vault.key", "/tmp"] {
            assert!(!said.contains(inside), "{code}: {said}");
        }
    }
    bench.finish().await;
}

#[tokio::test]
async fn m05_an_anchor_finds_a_chain_cut_at_its_end() {
    let bench = Bench::new().await;
    let none = bench.proxy.anchor().await.unwrap();
    assert_eq!(none.rows, 0);
    reads(&bench, 2).await;
    let anchor = bench.proxy.anchor().await.unwrap();
    assert_eq!(anchor.rows, 4);
    reads(&bench, 1).await;
    let kept = [none, anchor.clone(), bench.proxy.anchor().await.unwrap()];
    let verified = bench.proxy.verify_audit(&kept).await.unwrap();
    assert_eq!((verified[0].rows, verified[0].anchors), (6, 3));

    let rows = bench.memory.with_rows(|rows| rows.clone());
    bench.memory.with_rows(|rows| rows.truncate(4));
    bench.proxy.verify_audit(&[]).await.unwrap();
    bench.proxy.verify_audit(&kept[..2]).await.unwrap();
    let broken = bench.proxy.verify_audit(&kept).await.unwrap_err();
    assert_eq!((broken.node.as_str(), broken.row), (anchor.node.as_str(), 5), "{}", broken.reason);
    bench.memory.with_rows(|now| now.clone_from(&rows));

    let changes: [fn(&mut Anchor); 4] = [
        |anchor| anchor.rows = 2,
        |anchor| anchor.hash = "00".repeat(32),
        |anchor| anchor.at_ms += 1,
        |anchor| anchor.node = "another".into(),
    ];
    for change in changes {
        let mut changed = anchor.clone();
        change(&mut changed);
        let broken = bench.proxy.verify_audit(&[changed]).await.unwrap_err();
        assert!(broken.reason.contains("MAC"), "{}", broken.reason);
    }
    // All of a node's rows gone.
    bench.memory.with_rows(Vec::clear);
    assert_eq!(bench.proxy.verify_audit(&kept).await.unwrap_err().row, 1);
    bench.memory.with_rows(|now| *now = rows);
    bench.finish().await;
}

#[tokio::test]
async fn m05_rows_that_are_let_go_leave_a_signed_segment_and_the_chain_holds() {
    let bench = Bench::new().await;
    reads(&bench, 2).await;
    let anchor = bench.proxy.anchor().await.unwrap();
    assert_eq!(bench.proxy.expire_audit(0).await.unwrap(), 0, "none is that old");
    assert_eq!(bench.proxy.expire_audit(i64::MAX).await.unwrap(), 3, "the last row stays");
    reads(&bench, 2).await;
    assert_eq!(bench.proxy.expire_audit(i64::MAX).await.unwrap(), 4);
    assert_eq!(bench.proxy.expire_audit(i64::MAX).await.unwrap(), 0);
    reads(&bench, 1).await;
    let verified = bench.proxy.verify_audit(std::slice::from_ref(&anchor)).await.unwrap();
    assert_eq!((verified[0].rows, verified[0].let_go), (10, 7));

    let segments = bench.memory.with_segments(|segments| segments.clone());
    let edits: [fn(&mut Vec<AuditSegment>); 8] = [
        |segments| drop(segments.pop()),
        |segments| drop(segments.remove(0)),
        |segments| segments.swap(0, 1),
        |segments| segments[0].last += 1,
        |segments| segments[1].hash[0] ^= 1,
        |segments| segments[1].until_ms += 1,
        |segments| segments[0].mac[0] ^= 1,
        |segments| segments.clear(),
    ];
    for edit in edits {
        bench.memory.with_segments(|now| {
            now.clone_from(&segments);
            edit(now);
        });
        bench.proxy.verify_audit(&[]).await.unwrap_err();
    }
    bench.memory.with_segments(|now| now.clone_from(&segments));

    // What is broken is kept.
    let rows = bench.memory.with_rows(|rows| rows.clone());
    bench.memory.with_rows(|rows| rows[0].event.push(' '));
    bench.proxy.expire_audit(i64::MAX).await.unwrap_err();
    assert_eq!(bench.memory.with_rows(|rows| rows.len()), rows.len());
    bench.memory.with_rows(|now| *now = rows);
    bench.finish().await;
}

/// The bench's secret still opens, at a vendor that is asked for it.
async fn opens(bench: &Bench) {
    let heard = bench.vendor.heard().len();
    bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    assert_eq!(bench.vendor.heard().len(), heard + 1);
}

#[tokio::test]
async fn d16_a_rotation_seals_every_secret_anew_and_can_be_taken_up() {
    let bench = Bench::new().await;
    let id = bench.connection.id.clone();
    let sealed = || {
        let mut found = None;
        bench.memory.with_secret(&id, |secret| found = Some(secret.clone()));
        found.unwrap()
    };
    let key = || std::fs::read(bench.key()).unwrap();
    let (first_key, first) = (key(), sealed());
    let rotated = bench.proxy.rotate_vault().await.unwrap();
    assert_eq!((rotated.resealed, rotated.dead), (1, 0));
    let (second_key, second) = (key(), sealed());
    assert_eq!(first_key.len(), second_key.len());
    assert!(first_key != second_key && first.sealed != second.sealed);
    assert!(first.wrapped_key != second.wrapped_key);
    opens(&bench).await;

    // Cut off after the key is there and before a secret is sealed under it.
    bench.memory.secrets_fail.store(true, Ordering::SeqCst);
    bench.proxy.rotate_vault().await.unwrap_err();
    assert!(bench.vault.is_rotating());
    assert!(key().len() > second_key.len(), "both keys are kept");
    assert_eq!(sealed(), second);
    opens(&bench).await;
    // As a process that starts now would read it.
    let again = Vault::open(&KeySource::File(bench.key())).unwrap();
    assert!(again.is_rotating());
    bench.memory.secrets_fail.store(false, Ordering::SeqCst);
    assert_eq!(bench.proxy.rotate_vault().await.unwrap().resealed, 1);
    assert!(!bench.vault.is_rotating() && key().len() == second_key.len());
    assert_eq!(again.mac("x", &[b"a"]), bench.vault.mac("x", &[b"a"]), "MACs stay");

    // What opened for nothing before opens for nothing after, and is left.
    bench.memory.with_secret(&id, |secret| secret.sealed[30] ^= 1);
    let rotated = bench.proxy.rotate_vault().await.unwrap();
    assert_eq!((rotated.resealed, rotated.dead), (0, 1));
    bench.finish().await;
}
