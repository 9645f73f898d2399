//! Rows F, G and H: redirects, hostile answers, and the credential coming back.
#![allow(clippy::unwrap_used, missing_docs)]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cambium_proxy::{AuditKind, Limits, Refusal};
use cambium_sandbox_tests::bench::{Bench, Got, SECRET, Setup, forms, request};
use cambium_sandbox_tests::vendor::{Step, answer, raw};
use std::io::Write;
use std::time::Duration;

async fn get(script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static) -> Result<Got, Refusal> {
    get_with(Limits::default(), script).await
}

async fn get_with(
    limits: Limits,
    script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
) -> Result<Got, Refusal> {
    let setup = Setup { limits, ..Setup::answering(move |heard| script(&heard.head)) };
    let bench = Bench::start(setup).await;
    let got = bench.send(&bench.reader(), request("GET", "/x")).await;
    let outcome = bench.row(AuditKind::Outcome).await;
    let failed = match &got {
        Ok(got) => got.body.as_ref().err(),
        Err(refusal) => Some(refusal),
    };
    assert_eq!(outcome.rule, failed.map_or("completed", Refusal::code));
    bench.finish().await;
    got
}

/// The code of whatever broke, before or within the body.
fn code(got: Result<Got, Refusal>) -> &'static str {
    match got {
        Err(refusal) => refusal.code(),
        Ok(got) => got.body.map_or_else(|refusal| refusal.code(), |_| "whole"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn quick() -> Limits {
    let short = Duration::from_millis(300);
    Limits { head: short, idle: short, exchange: 3 * short, ..Limits::default() }
}

#[tokio::test]
async fn f01_f03_redirects_are_not_followed() {
    for (location, host) in [
        ("https://evil.test/x", "evil.test"),
        ("http://evil.test:8080/x", "evil.test:8080"),
        ("//evil.test/x", "evil.test"),
        ("/\\evil.test", "evil.test"),
        ("https://api.acme.test@evil.test/", "evil.test"),
        ("https://files.acme.test/x", "files.acme.test"),
        ("javascript:alert(1)", "unreadable"),
    ] {
        let got = get(move |_| answer("302 Found", &format!("location: {location}\r\n"), b""))
            .await
            .unwrap();
        assert_eq!(got.status, 302);
        assert_eq!(got.header("location"), None, "{location}");
        assert_eq!(got.header("x-cambium-redirect-host"), Some(host), "{location}");
    }
    let got = get(|_| answer("302 Found", "location: /y?a=1\r\n", b"")).await.unwrap();
    assert_eq!(got.header("location"), Some("/y?a=1"));
}

#[tokio::test]
async fn f07_a_location_that_holds_the_secret() {
    let got =
        get(|_| answer("302 Found", &format!("location: /y?key={SECRET}\r\n"), b"")).await.unwrap();
    assert_eq!(got.header("location"), Some("/y?key=[REDACTED:acme]"));
}

#[tokio::test]
async fn g01_length_and_chunks_at_once() {
    let got = get(|_| raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")).await;
    assert_eq!(code(got), "upstream_protocol");
    let got =
        get(|_| raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"))
            .await;
    assert_eq!(code(got), "upstream_protocol");
}

#[tokio::test]
async fn g03_a_short_body_is_never_whole() {
    let got = get(|_| raw("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello")).await;
    assert_eq!(code(got), "upstream_truncated");
    let got =
        get(|_| raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")).await;
    assert_eq!(code(got), "upstream_truncated");
    let half = gzip(&[b'x'; 10_000]);
    let half = half[..half.len() - 6].to_vec();
    let got = get(move |_| answer("200 OK", "content-encoding: gzip\r\n", &half)).await;
    assert_eq!(code(got), "upstream_truncated");
}

#[tokio::test]
async fn g05_heads_that_are_not_http() {
    for head in [
        "hello\r\n\r\n",
        "<html>",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let refusal = get(move |_| raw(head)).await.unwrap_err();
        assert!(["upstream_protocol", "upstream_truncated"].contains(&refusal.code()), "{head}");
    }
    let refusal = get(|_| vec![Step::Close]).await.unwrap_err();
    assert_eq!(refusal.code(), "upstream_truncated");
}

#[tokio::test]
async fn g05_what_reads_is_taken_and_what_was_odd_is_not_used_again() {
    // Each is answered whole; the connection serves no second request.
    for (head, kept) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", true),
        ("HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n", true),
        ("HTTP/1.1 200 OK\ncontent-length: 2\n\n", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\n\r\n", false),
        ("HTTP/1.1 103 Early Hints\n\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n", false),
    ] {
        let script = move |_: &_| vec![Step::Send(format!("{head}ok").into())];
        let bench = Bench::start(Setup::answering(script)).await;
        for _ in 0..2 {
            let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
            assert_eq!(got.text(), "ok", "{head:?}");
        }
        let connections = bench.vendor.connections();
        assert_eq!(connections, if kept { 1 } else { 2 }, "{head:?}");
        bench.finish().await;
    }
    // More than was asked for: the rest is nobody's answer.
    let script = |_: &_| [answer("200 OK", "", b"ok"), answer("200 OK", "", b"no")].concat();
    let bench = Bench::start(Setup::answering(script)).await;
    for _ in 0..3 {
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.text(), "ok");
    }
    bench.finish().await;
}

#[tokio::test]
async fn g06_a_protocol_switch_nobody_asked_for() {
    let got = get(|_| {
        raw("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nraw")
    })
    .await;
    assert_eq!(code(got), "upstream_protocol");
}

#[tokio::test]
async fn g07_endless_interim_answers() {
    let got = get_with(quick(), |_| {
        vec![Step::Forever(b"HTTP/1.1 103 Early Hints\r\nset-cookie: a=b\r\n\r\n".to_vec())]
    })
    .await;
    assert!(["upstream_timeout", "upstream_protocol"].contains(&code(got)));
}

#[tokio::test]
async fn g09_chunks_out_of_bounds() {
    let chunked = |chunk: String| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        move |_: &str| raw(format!("{head}{chunk}"))
    };
    for chunk in [
        format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(1024 * 1024)),
        "ffffffffffffffffff\r\nhello".into(),
        "-5\r\nhello\r\n0\r\n\r\n".into(),
    ] {
        let code = code(get(chunked(chunk)).await);
        assert!(["upstream_protocol", "upstream_truncated"].contains(&code), "{code}");
    }
}

#[tokio::test]
async fn g11_g13_slow_vendors_meet_deadlines() {
    let got = get_with(quick(), |_| vec![Step::Send(b"HTTP/1.1 200".to_vec()), Step::Stall]).await;
    assert_eq!(code(got), "upstream_timeout");
    let head = b"HTTP/1.1 200 OK\r\n\r\nsome".to_vec();
    let got = get_with(quick(), move |_| vec![Step::Send(head.clone()), Step::Stall]).await;
    assert_eq!(code(got), "upstream_timeout");
}

#[tokio::test]
async fn g12_a_large_head() {
    let got = get(|_| answer("200 OK", &format!("a: {}\r\n", "x".repeat(512 * 1024)), b"")).await;
    assert_eq!(code(got), "upstream_protocol");
}

#[tokio::test]
async fn g14_a_body_over_the_cap() {
    let got = get(|_| raw("HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n")).await;
    assert_eq!(got.unwrap_err().code(), "response_too_large");
    let got = get(|_| {
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        vec![Step::Send(head), Step::Forever(vec![b'x'; 64 * 1024])]
    })
    .await
    .unwrap();
    assert_eq!(got.body.unwrap_err().code(), "response_too_large");
    assert!(got.partial.len() <= Limits::default().response_bytes);
}

#[tokio::test]
async fn g15_bombs_and_other_codings() {
    let bomb = gzip(&vec![0; 64 * 1024 * 1024]);
    let got = get(move |_| answer("200 OK", "content-encoding: gzip\r\n", &bomb)).await.unwrap();
    assert_eq!(got.body.unwrap_err().code(), "response_too_large");
    assert!(got.partial.len() <= Limits::default().response_bytes);
    for coding in ["br", "zstd", "deflate", "gzip, gzip", "gzip, br"] {
        let got =
            get(move |_| answer("200 OK", &format!("content-encoding: {coding}\r\n"), b"x")).await;
        assert_eq!(code(got), "upstream_protocol", "{coding}");
    }
}

#[tokio::test]
async fn g17_utf16_bodies() {
    for wide in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
        let text = format!("<{SECRET}>");
        let body: Vec<u8> = text.encode_utf16().flat_map(wide).collect();
        for kind in ["text/plain; charset=utf-16", "text/plain; charset=latin1", "image/png"] {
            let (body, kind) = (body.clone(), format!("content-type: {kind}\r\n"));
            let got = get(move |_| answer("200 OK", &kind, &body)).await.unwrap();
            let bytes = got.body.unwrap();
            assert!(memchr::memmem::find(&bytes, b"[REDACTED:acme]").is_some(), "{bytes:?}");
        }
    }
}

#[tokio::test]
async fn g23_no_way_to_another_protocol() {
    let headers = "alt-svc: h3=\":443\"\r\nupgrade: h2c\r\nstrict-transport-security: x\r\n";
    let got = get(move |_| answer("200 OK", headers, b"x")).await.unwrap();
    assert!(got.headers.is_empty(), "{:?}", got.headers);
}

#[tokio::test]
async fn h01_an_echo() {
    let got = get(|head| answer("200 OK", "content-type: text/plain\r\n", head.as_bytes()))
        .await
        .unwrap();
    assert!(got.text().contains("authorization: Bearer [REDACTED:acme]"), "{}", got.text());
}

#[tokio::test]
async fn h02_split_anywhere() {
    for at in [1, 12, SECRET.len() - 1] {
        let got = get(move |_| {
            let (one, two) = SECRET.split_at(at);
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            vec![
                Step::Send(format!("{head}{}{}", chunk("before "), chunk(one)).into()),
                Step::Send(format!("{}{}0\r\n\r\n", chunk(two), chunk(" after")).into()),
            ]
        })
        .await
        .unwrap();
        assert_eq!(got.text(), "before [REDACTED:acme] after");
    }
    let long = [&vec![b'.'; 64 * 1024 - 5][..], SECRET.as_bytes(), b"!"].concat();
    let got = get(move |_| answer("200 OK", "", &long)).await.unwrap();
    assert!(got.text().ends_with(".[REDACTED:acme]!"));
}

#[tokio::test]
async fn h03_every_form() {
    let mut echoes = forms(SECRET.as_bytes());
    echoes.push(format!("Bearer {SECRET}").into_bytes());
    for user in ["u:", "us:", "usr:"] {
        echoes.push(STANDARD.encode(format!("{user}{SECRET}")).into_bytes());
        echoes.push(URL_SAFE_NO_PAD.encode(format!("{user}{SECRET}??>>")).into_bytes());
    }
    for echo in echoes {
        let body = [b"<".as_slice(), &echo, b">"].concat();
        let got = get(move |_| answer("200 OK", "", &body)).await.unwrap();
        let text = got.text();
        assert!(text.contains("[REDACTED:acme]"), "{}", String::from_utf8_lossy(&echo));
    }
}

#[tokio::test]
async fn h03_some_of_its_characters_in_some_escape() {
    // What encoders at large make of a token with the characters tokens have.
    let secret = "sk_live/S3CRET+01<23>45&67\"89=";
    let replace = |pairs: &[(char, &str)]| {
        pairs.iter().fold(secret.to_owned(), |text, (from, to)| text.replace(*from, to))
    };
    let echoes = [
        // One of JSON's characters, the first, what Go, PHP and .NET choose.
        replace(&[('=', "\\u003d")]),
        secret.replacen('s', "\\u0073", 1),
        replace(&[('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e"), ('"', "\\\"")]),
        replace(&[('/', "\\/"), ('"', "\\\"")]),
        replace(&[('+', "\\u002B"), ('"', "\\u0022"), ('&', "\\u0026"), ('<', "\\u003C")]),
        // URLs that leave a slash, or a plus, or more.
        replace(&[
            ('<', "%3C"),
            ('>', "%3E"),
            ('&', "%26"),
            ('"', "%22"),
            ('=', "%3D"),
            ('+', "%2B"),
        ]),
        replace(&[('+', "%2b")]),
        replace(&[('=', "%253D")]),
        // HTML, attribute or text.
        replace(&[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;")]),
        replace(&[('=', "&#x3D;"), ('/', "&#x2F;")]),
        replace(&[('=', "&equals;")]),
        // One in another.
        replace(&[('=', "\\\\u003d"), ('"', "\\\\\\\"")]),
        replace(&[('/', "\\u002f"), ('=', "%3d"), ('&', "&amp;")]),
    ];
    for echo in echoes {
        let (etag, body) = (echo.clone(), format!("{{\"key\":\"{echo}\"}}"));
        let script = move |_: &_| answer("200 OK", &format!("etag: <{etag}>\r\n"), body.as_bytes());
        let bench = Bench::start(Setup { secret: Some(secret), ..Setup::answering(script) }).await;
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.text(), "{\"key\":\"[REDACTED:acme]\"}", "{echo}");
        assert_eq!(got.header("etag"), Some("<[REDACTED:acme]>"), "{echo}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn h04_decoded_before_it_is_searched() {
    let body = gzip(format!("{{\"key\":\"{SECRET}\"}}").as_bytes());
    let got = get(move |_| answer("200 OK", "content-encoding: gzip\r\n", &body)).await.unwrap();
    assert_eq!(got.text(), "{\"key\":\"[REDACTED:acme]\"}");
    assert_eq!(got.header("content-encoding"), None);
}

#[tokio::test]
async fn h05_k01_headers_of_a_reply() {
    let headers = format!(
        "etag: \"{SECRET}\"\r\nwww-authenticate: {SECRET}\r\nset-cookie: a={SECRET}\r\n\
         x-echo: {SECRET}\r\nalt-svc: h3\r\nx-request-id: 7\r\ncontent-type: text/plain\r\n"
    );
    let got = get(move |_| answer(&format!("200 {SECRET}"), &headers, b"x")).await.unwrap();
    let mut names: Vec<&str> = got.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "etag", "x-request-id"]);
    assert_eq!(got.header("etag"), Some("\"[REDACTED:acme]\""));
}

#[tokio::test]
async fn h06_trailers_are_dropped() {
    let got = get(|_| raw(format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n2\r\nok\r\n0\r\nx: {SECRET}\r\n\r\n"
    ))).await.unwrap();
    assert_eq!(got.text(), "ok");
}

#[tokio::test]
async fn h07_what_nobody_can_find_is_written_down() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md"))
        .unwrap();
    let section = page.split("## What is not defended").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    for word in ["encrypted", "reversed", "one character a", "under eight bytes", "ranges"] {
        assert!(section.contains(word), "docs/security.md does not say `{word}`");
    }
    // As it says: such an echo comes through, and it comes from the vendor alone.
    let reversed: String = SECRET.chars().rev().collect();
    let got = get(move |_| answer("200 OK", "", reversed.as_bytes())).await.unwrap();
    assert_eq!(got.text().len(), SECRET.len());
}

#[tokio::test]
async fn h09_a_short_secret_hides_no_innocent_text() {
    let script = |_: &_| answer("200 OK", "", b"pages 1234 to 1300");
    let bench = Bench::start(Setup { secret: Some("1234"), ..Setup::answering(script) }).await;
    // Past the bench, whose own search takes the page number for a leak.
    let run = bench.reader();
    let mut reply = run.send(request("GET", "/x")).await.unwrap();
    let chunk = reply.body.chunk().await.unwrap().unwrap();
    assert_eq!(&chunk[..], b"pages 1234 to 1300");
    bench.proxy.stop().await;
    for (secret, short) in [("1234", true), ("1234567", true), ("12345678", false)] {
        assert_eq!(cambium_proxy::Secret::new(secret.into()).is_too_short_to_hide(), short);
    }
}

#[test]
fn h17_safe_rust() {
    let lib = include_str!("../../proxy/src/lib.rs");
    assert!(lib.lines().any(|line| line == "#![forbid(unsafe_code)]"));
}
