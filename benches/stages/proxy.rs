//! The proxy's stages, each the smallest request that goes through it, on ports
//! in memory and a real TLS vendor; and the audit's rows on disk.

use crate::{each, timed};
use bytes::Bytes;
use cambium_proxy::{AuditRow, AuditSink, KeySource, OutboundRequest, Session, Vault};
use cambium_sandbox_tests::bench::{Bench, Setup, request, with_body};
use cambium_sandbox_tests::vendor::answer;
use cambium_store::Store;
use criterion::Criterion;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Of the long answer, bytes: what redaction searches.
const LONG: usize = 256 * 1024;
/// Headers of the request that has many.
const HEADERS: usize = 40;

/// One session each, whose opening is in every line.
pub(crate) fn stages(criterion: &mut Criterion, runtime: &Runtime) {
    let bench = runtime.block_on(Bench::start(Setup::answering(|heard| {
        let length = if heard.line().contains("/long") { LONG } else { 16 };
        answer("200 OK", "content-type: text/plain\r\n", &vec![b'a'; length])
    })));
    bench.vendor.forget();
    let send = async |session: Arc<Session>, request: OutboundRequest, wanted: Option<usize>| {
        let (took, got) = timed(read(&session, request)).await;
        assert_eq!(got, wanted);
        session.close();
        took
    };
    each(criterion, runtime, "path refused by the target's rules", async || {
        send(bench.reader(), request("GET", "/a/%2e%2e/b"), None).await
    });
    each(criterion, runtime, "method refused by policy", async || {
        send(bench.reader(), request("POST", "/orders"), None).await
    });
    // The credential is opened and put in; from here on the vendor's answer is in it, too.
    each(criterion, runtime, "a small read, credential added", async || {
        send(bench.reader(), request("GET", "/orders"), Some(16)).await
    });
    let headers: Vec<(String, Vec<u8>)> =
        (0..HEADERS).map(|at| (format!("x-thing-{at}"), b"a value".to_vec())).collect();
    each(criterion, runtime, "the same with forty headers to filter", async || {
        let request = OutboundRequest { headers: headers.clone(), ..request("GET", "/orders") };
        send(bench.reader(), request, Some(16)).await
    });
    each(criterion, runtime, "the same with 256 KiB to redact", async || {
        send(bench.reader(), request("GET", "/long"), Some(LONG)).await
    });
    each(criterion, runtime, "a write stopped for its preview", async || {
        let session = bench.dry();
        let request = with_body("POST", "/orders", "{\"item\":\"tea\"}");
        let (took, reply) = timed(session.send(request)).await;
        assert!(reply.is_ok_and(|reply| reply.intercepted));
        session.close();
        took
    });
    runtime.block_on(bench.finish());
}

/// Bytes of the answer's body, or nothing when it was refused.
async fn read(session: &Session, request: OutboundRequest) -> Option<usize> {
    let mut reply = session.send(request).await.ok()?;
    let mut bytes = 0;
    while let Some(chunk) = reply.body.chunk().await {
        let chunk: Bytes = chunk.expect("a whole body");
        bytes += chunk.len();
    }
    Some(bytes)
}

/// A row before a read, which waits for the write-ahead log, and one before a
/// write, which waits for the disk.
pub(crate) fn audit(criterion: &mut Criterion, runtime: &Runtime) {
    let directory = std::env::temp_dir().join(format!("cambium-stages-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory of our own");
    let vault = Vault::open(&KeySource::File(directory.join("key"))).expect("a vault");
    let file = directory.join("store");
    let opened = Store::open(&file, vault.mac_key("ledger"));
    let store = runtime.block_on(opened).expect("a store");
    // The store sees that a row follows the last one; that its hash is one is verified later.
    let (mut sequence, mut previous) = (0, vec![0; 32]);
    for (name, durable) in [("audit row of a read", false), ("audit row of a write", true)] {
        each(criterion, runtime, name, async || {
            sequence += 1;
            let row = AuditRow {
                node: "stages".into(),
                sequence,
                event: "{\"kind\":\"intent\",\"method\":\"GET\",\"path\":\"/orders\"}".into(),
                previous: std::mem::replace(&mut previous, vec![1; 32]),
                hash: vec![1; 32],
                mac: vec![2; 32],
            };
            let (took, appended) = timed(store.append(&[row], durable)).await;
            appended.expect("an audit row");
            took
        });
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&directory);
}
