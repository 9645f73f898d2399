//! Rows G over HTTP/2: what a vendor may do with frames, and what comes of it.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Answer, Limits, Refusal};
use cambium_sandbox_tests::bench::{Bench, Got, SECRET, Setup, request, with_body};
use cambium_sandbox_tests::frames::{
    END_HEADERS, END_STREAM, OK, answer as whole, field, frame, kind,
};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Speaks, Step, answer};
use std::time::Duration;

/// What a vendor sends on a stream.
type Bytes = fn(u32) -> Vec<u8>;
/// The same, once and then again and again.
type Twice = fn(u32) -> Vec<Vec<u8>>;

fn quick() -> Limits {
    let short = Duration::from_millis(700);
    Limits { head: short, idle: short, exchange: 2 * short, ..Limits::default() }
}

fn stream(heard: &Heard) -> u32 {
    heard.head.strip_prefix("stream ").unwrap().parse().unwrap()
}

async fn bench(script: impl Fn(u32, &Heard) -> Vec<Step> + Send + Sync + 'static) -> Bench {
    let setup = Setup::answering(move |heard| script(stream(heard), heard));
    Bench::start(Setup { speaks: Speaks::Frames, limits: quick(), ..setup }).await
}

async fn read(bench: &Bench) -> Result<Got, Refusal> {
    bench.send(&bench.reader(), request("GET", "/x")).await
}

/// The code of whatever broke, before or within the body.
fn code(got: Result<Got, Refusal>) -> &'static str {
    match got {
        Err(refusal) => refusal.code(),
        Ok(got) => got.body.map_or_else(|refusal| refusal.code(), |_| "whole"),
    }
}

fn refuses(stream: u32) -> Vec<u8> {
    frame(kind::RESET, 0, stream, &7_u32.to_be_bytes())
}

fn leaves(last: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), 0_u32.to_be_bytes()].concat())
}

#[tokio::test]
async fn g18_http2_carries_a_request_and_hides_its_echo() {
    let bench = Bench::start(Setup { speaks: Speaks::Echo, ..Setup::default() }).await;
    let got = read(&bench).await.unwrap();
    assert!(got.text().contains("authorization: Bearer [REDACTED:acme]"), "{}", got.text());
    assert_eq!(got.header("alt-svc"), None, "g23");
    bench.desk.will(Word::Say(Answer::Once));
    bench.send(&bench.writer(), with_body("POST", "/orders", "{\"n\":1}")).await.unwrap();
    let heard = bench.vendor.heard();
    assert_eq!(heard[0].header("authorization"), [format!("Bearer {SECRET}")]);
    let port = bench.vendor.address.port();
    assert_eq!(heard[0].line(), format!("GET https://api.acme.test:{port}/x HTTP/2"));
    assert_eq!(
        (heard[1].body.as_slice(), heard[1].header("content-length")),
        (&b"{\"n\":1}"[..], vec!["7"])
    );
    for name in ["host", "connection", "te", "transfer-encoding"] {
        assert!(heard.iter().all(|heard| heard.header(name).is_empty()), "{name}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn g19_refused_or_left_a_read_goes_once_more_and_a_write_does_not() {
    for give_up in [refuses as fn(u32) -> Vec<u8>, |_| leaves(0)] {
        let script = move |stream: u32, heard: &Heard| match heard.number {
            0 => vec![Step::Send(give_up(stream))],
            _ => vec![Step::Send(whole(stream, &[], b"x"))],
        };
        let reads = bench(script).await;
        let got = read(&reads).await;
        let heard = reads.vendor.heard().len();
        reads.finish().await;
        let writes = bench(script).await;
        writes.desk.will(Word::Say(Answer::Once));
        let wrote = writes.send(&writes.writer(), with_body("POST", "/orders", "{}")).await;
        assert_eq!(wrote.unwrap_err().code(), "outcome_unknown");
        assert_eq!(writes.vendor.heard().len(), 1, "a write was sent again");
        writes.finish().await;
        assert_eq!((code(got), heard), ("whole", 2));
    }
}

#[tokio::test]
async fn g19_a_read_refused_twice_is_over() {
    let bench = bench(|stream, _| vec![Step::Send(refuses(stream))]).await;
    assert_eq!(read(&bench).await.unwrap_err().code(), "upstream_truncated");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn g20_bodies_that_are_not_what_they_say() {
    let head =
        |stream, fields: &[u8]| frame(kind::HEADERS, END_HEADERS, stream, &[OK, fields].concat());
    let rows: [(&str, Bytes, &[&str]); 4] = [
        (
            "reset in its body",
            |s| {
                let mut bytes = frame(kind::HEADERS, END_HEADERS, s, OK);
                bytes.extend(frame(kind::DATA, 0, s, b"half"));
                bytes.extend(frame(kind::RESET, 0, s, &2_u32.to_be_bytes()));
                bytes
            },
            &["upstream_truncated"],
        ),
        (
            "shorter than its length",
            |s| whole(s, &field("content-length", "9"), b"x"),
            &["upstream_protocol", "upstream_truncated"],
        ),
        (
            "longer than its length",
            |s| whole(s, &field("content-length", "1"), b"xyz"),
            &["upstream_protocol", "upstream_truncated"],
        ),
        (
            "an unsolicited switch",
            |s| frame(kind::HEADERS, END_HEADERS | END_STREAM, s, &field(":status", "101")),
            &["upstream_protocol", "upstream_truncated"],
        ),
    ];
    for (what, bytes, codes) in rows {
        let bench = bench(move |stream, _| vec![Step::Send(bytes(stream))]).await;
        let code = code(read(&bench).await);
        assert!(codes.contains(&code), "{what}: {code}");
        bench.finish().await;
    }
    // An end without the end: the connection closes within the body.
    let bench = bench(move |stream, _| {
        vec![
            Step::Send([head(stream, &[]), frame(kind::DATA, 0, stream, b"half")].concat()),
            Step::Close,
        ]
    })
    .await;
    assert_eq!(code(read(&bench).await), "upstream_truncated");
    bench.finish().await;
}

#[tokio::test]
async fn g20_heads_and_frames_that_are_not_http2() {
    let rows: [(&str, Bytes); 8] = [
        ("a hop header", |s| {
            let fields = [OK, &field("transfer-encoding", "chunked")].concat();
            frame(kind::HEADERS, END_HEADERS | END_STREAM, s, &fields)
        }),
        ("an upper-case name", |s| {
            frame(kind::HEADERS, END_HEADERS | END_STREAM, s, &[OK, &field("X-A", "1")].concat())
        }),
        ("no status", |s| frame(kind::HEADERS, END_HEADERS | END_STREAM, s, &field("a", "1"))),
        ("an index out of the table", |s| {
            frame(kind::HEADERS, END_HEADERS | END_STREAM, s, &[0xff, 0xff, 0x7f])
        }),
        ("data on stream 0", |_| frame(kind::DATA, END_STREAM, 0, b"x")),
        ("data before a head", |s| frame(kind::DATA, END_STREAM, s, b"x")),
        ("a push", |s| frame(kind::PUSH, END_HEADERS, s, &[&2_u32.to_be_bytes()[..], OK].concat())),
        ("a frame over the size", |s| {
            frame(kind::DATA, END_STREAM, s, &vec![b'x'; 2 * 1024 * 1024])
        }),
    ];
    for (what, bytes) in rows {
        let bench = bench(move |stream, _| vec![Step::Send(bytes(stream)), Step::Stall]).await;
        let code = code(read(&bench).await);
        assert!(["upstream_protocol", "upstream_truncated"].contains(&code), "{what}: {code}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn g20_floods_end_the_connection_or_meet_the_deadline() {
    let rows: [(&str, Twice); 6] = [
        ("continuations", |s| {
            vec![
                frame(kind::HEADERS, 0, s, OK),
                frame(kind::CONTINUATION, 0, s, &field("a", &"x".repeat(120)).repeat(8)),
            ]
        }),
        ("empty continuations", |s| {
            vec![frame(kind::HEADERS, 0, s, OK), frame(kind::CONTINUATION, 0, s, &[])]
        }),
        ("pings", |_| vec![Vec::new(), frame(kind::PING, 0, 0, &[0; 8])]),
        ("settings", |_| vec![Vec::new(), frame(kind::SETTINGS, 0, 0, &[])]),
        ("interim answers", |s| {
            vec![Vec::new(), frame(kind::HEADERS, END_HEADERS, s, &field(":status", "103"))]
        }),
        ("empty data", |s| {
            vec![frame(kind::HEADERS, END_HEADERS, s, OK), frame(kind::DATA, 0, s, &[])]
        }),
    ];
    for (what, bytes) in rows {
        let bench = bench(move |stream, _| {
            let [once, again] = bytes(stream).try_into().unwrap();
            vec![Step::Send(once), Step::Forever(again)]
        })
        .await;
        let code = code(read(&bench).await);
        assert!(
            ["upstream_protocol", "upstream_truncated", "upstream_timeout"].contains(&code),
            "{what}: {code}"
        );
        bench.finish().await;
    }
}

#[tokio::test]
async fn g20_a_window_that_overflows_and_a_body_over_the_cap() {
    let bench = bench(|stream, _| {
        let most = 0x7fff_ffff_u32.to_be_bytes();
        let grow = frame(kind::WINDOW, 0, 0, &most);
        vec![Step::Send([grow.clone(), grow, whole(stream, &[], b"x")].concat()), Step::Stall]
    })
    .await;
    let code = code(read(&bench).await);
    assert!(["upstream_protocol", "upstream_truncated"].contains(&code), "{code}");
    bench.finish().await;
}

#[tokio::test]
async fn g21_one_protocol_agreed_and_another_spoken() {
    let lines = |_: &Heard| answer("200 OK", "", b"x");
    for (speaks, codes) in [
        (
            Speaks::LinesAsFrames,
            &["upstream_protocol", "upstream_truncated", "upstream_timeout"][..],
        ),
        (Speaks::Plain, &["tls_failed", "upstream_timeout"]),
    ] {
        let setup = Setup { speaks, limits: quick(), ..Setup::answering(lines) };
        let bench = Bench::start(setup).await;
        let code = code(read(&bench).await);
        assert!(codes.contains(&code), "{speaks:?}: {code}");
        assert!(bench.vendor.heard().iter().all(|heard| heard.header("authorization").is_empty()));
        bench.finish().await;
    }
    // Frames where HTTP/1.1 was agreed.
    let frames = |_: &Heard| vec![Step::Send(frame(kind::SETTINGS, 0, 0, &[])), Step::Close];
    let bench = Bench::start(Setup { limits: quick(), ..Setup::answering(frames) }).await;
    assert_eq!(code(read(&bench).await), "upstream_protocol");
    bench.finish().await;
}
