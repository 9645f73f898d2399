//! Rows D, C13 and H3 for each scheme whose credential is the same on each
//! request: where it stands on the wire, what a module cannot put beside it,
//! and that no form of it comes back.
#![allow(clippy::unwrap_used, missing_docs)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cambium_proxy::{Answer, AuditKind, OutboundRequest, Proxy, Scheme, Secret};
use cambium_sandbox_tests::bench::{Bench, SECRET, Setup, forms, request, with_body, with_headers};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, answer};
use std::sync::{Arc, Mutex};

fn scheme(json: serde_json::Value) -> Scheme {
    serde_json::from_value(json).unwrap()
}

fn query() -> Scheme {
    Scheme::ApiKeyQuery { parameter: "api_key".into() }
}

fn basic(username: &str) -> Scheme {
    Scheme::Basic { username: Some(username.into()) }
}

fn cookie() -> Scheme {
    Scheme::Cookie { name: "session".into() }
}

fn path() -> Scheme {
    Scheme::UrlPath { template: "/bot{token}".into() }
}

async fn bench(scheme: Scheme) -> Bench {
    Bench::start(Setup { scheme, ..Setup::default() }).await
}

/// What the vendor got for a read.
async fn wire(bench: &Bench, request: OutboundRequest) -> Heard {
    bench.send(&bench.reader(), request).await.unwrap();
    bench.vendor.heard().pop().unwrap()
}

#[tokio::test]
async fn d00_none_adds_nothing() {
    let bench =
        Bench::start(Setup { scheme: Scheme::None, secret: None, ..Setup::default() }).await;
    let heard = wire(&bench, with_headers("GET", "/x?a=1", &[("Cookie", b"a=1")])).await;
    assert_eq!(heard.line(), "GET /x?a=1 HTTP/1.1");
    let mut names: Vec<&str> =
        heard.head.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "host", "user-agent"]);
    bench.finish().await;
}

#[tokio::test]
async fn d01_a_key_in_the_query_is_ours_and_there_once() {
    let bench = bench(query()).await;
    for (asked, sent) in [
        ("/x", "/x?api_key="),
        ("/x?", "/x?api_key="),
        ("/x?a=1", "/x?a=1&api_key="),
        ("/x?api_key=mine", "/x?api_key="),
        ("/x?api%5Fkey=mine&b=2", "/x?b=2&api_key="),
        ("/x?API_KEY=mine", "/x?api_key="),
        ("/x?a=1&api_key=one&api_key=two", "/x?a=1&api_key="),
        ("/x?api_key", "/x?api_key="),
        ("/x?api_key[]=mine&a;api_key=x", "/x?a&api_key="),
    ] {
        let heard = wire(&bench, request("GET", asked)).await;
        assert_eq!(heard.line(), format!("GET {sent}{SECRET} HTTP/1.1"), "{asked}");
        assert!(heard.header("authorization").is_empty());
        let intent = bench.row(AuditKind::Intent).await;
        let mine = asked.to_ascii_lowercase().contains("key");
        assert_eq!(!intent.notes.is_empty(), mine, "{asked}");
        assert!(!intent.query_keys.iter().any(|key| key.contains("api_key")), "{asked}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn d02_a_key_with_reserved_characters_stays_one_parameter() {
    let secret = "a&b=c#d e/f+g%41?";
    let bench = Bench::start(Setup { scheme: query(), secret: Some(secret), ..Setup::default() });
    let bench = bench.await;
    let heard = wire(&bench, request("GET", "/x?a=1")).await;
    let sent = "a%26b%3Dc%23d%20e%2Ff%2Bg%2541%3F";
    assert_eq!(heard.line(), format!("GET /x?a=1&api_key={sent} HTTP/1.1"));
    bench.finish().await;
}

#[tokio::test]
async fn d03_a_token_in_the_path() {
    let bench = bench(path()).await;
    let heard = wire(&bench, request("GET", "/getMe?a=1")).await;
    assert_eq!(heard.line(), format!("GET /bot{SECRET}/getMe?a=1 HTTP/1.1"));
    let intent = bench.row(AuditKind::Intent).await;
    assert_eq!((intent.path.as_str(), intent.query_keys.len()), ("/getMe", 1));
    // What leads out of the template is refused as it always is.
    for target in ["/../x", "/%2e%2e/x", "//x", "/a%2Fb"] {
        bench.refused(&bench.reader(), request("GET", target), "path_ambiguous").await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn d03_d05_d16_secrets_refused_at_entry() {
    let long = "x".repeat(9 * 1024);
    let template = || scheme(serde_json::json!({"scheme": "url_path", "template": "/{token}"}));
    for (scheme, secret) in [
        (Scheme::Bearer, None),
        (Scheme::Bearer, Some("")),
        (Scheme::Bearer, Some("a\r\nb: c")),
        (Scheme::Bearer, Some(long.as_str())),
        (Scheme::None, Some("x")),
        (query(), Some("é")),
        (basic("me"), Some("a\nb")),
        (Scheme::Basic { username: None }, Some("me:you")),
        (cookie(), Some("a;b")),
        (cookie(), Some("a b")),
        (cookie(), Some("a\"b")),
        (path(), Some("a/b")),
        (path(), Some("..")),
        (path(), Some("a..b")),
        (path(), Some("a%2Fb")),
        (path(), Some("a\\b")),
        (path(), Some("a?b")),
        (path(), Some("a#b")),
        (path(), Some("a;b")),
        (template(), Some(".")),
        (template(), Some("..")),
    ] {
        let entered = secret.map(|secret| Secret::new(secret.into()));
        let fault = Proxy::check_secret(&scheme, entered.as_ref()).unwrap_err();
        assert_eq!(fault.field, "secret", "{scheme:?} {secret:?}");
    }
    for (scheme, secret) in [
        (basic("me"), "pass:word"),
        (path(), "123456:AAH-x_y.z"),
        (Scheme::Basic { username: None }, "sk_live_1"),
    ] {
        Proxy::check_secret(&scheme, Some(&Secret::new(secret.into()))).unwrap();
    }
}

#[tokio::test]
async fn d04_basic_with_a_user_or_a_key_alone() {
    for (scheme, pair) in [
        (basic("me@acme.test/token"), format!("me@acme.test/token:{SECRET}")),
        (Scheme::Basic { username: None }, format!("{SECRET}:")),
    ] {
        let bench = bench(scheme).await;
        let asked = with_headers("GET", "/x", &[("Authorization", b"Basic bWU6eW91")]);
        let heard = wire(&bench, asked).await;
        assert_eq!(heard.header("authorization"), [format!("Basic {}", STANDARD.encode(pair))]);
        bench.finish().await;
    }
}

#[tokio::test]
async fn c13_cookies_are_the_schemes_alone() {
    for (scheme, sent) in
        [(cookie(), vec![format!("session={SECRET}")]), (Scheme::Bearer, Vec::new())]
    {
        let bench = bench(scheme).await;
        for cookies in [
            &[("Cookie", &b"session=mine; s=1"[..])][..],
            &[("cookie", b"a=1"), ("COOKIE", b"b=1")],
        ] {
            let heard = wire(&bench, with_headers("GET", "/x", cookies)).await;
            assert_eq!(heard.header("cookie"), sent);
            assert_eq!(bench.row(AuditKind::Intent).await.notes, ["header_dropped:cookie"]);
        }
        bench.finish().await;
    }
}

/// Each scheme, and what is made of its secret.
fn all() -> Vec<(Scheme, Vec<String>)> {
    let pair = format!("me:{SECRET}");
    let encoded = STANDARD.encode(&pair);
    vec![
        (Scheme::Bearer, vec![format!("Bearer {SECRET}")]),
        (Scheme::ApiKeyHeader { header: "x-key".into(), prefix: "Key ".into() }, Vec::new()),
        (query(), Vec::new()),
        (basic("me"), vec![pair, encoded]),
        (cookie(), vec![format!("session={SECRET}")]),
        (path(), vec![format!("/bot{SECRET}")]),
    ]
}

#[tokio::test]
async fn h03_no_form_of_any_schemes_credential_comes_back() {
    for (scheme, made) in all() {
        let mut values: Vec<Vec<u8>> = made.iter().map(|text| text.clone().into_bytes()).collect();
        values.push(SECRET.into());
        let echoes = Arc::new(Mutex::new(Vec::new()));
        for form in values.iter().flat_map(|value| forms(value)) {
            echoes.lock().unwrap().push(form);
        }
        let count = echoes.lock().unwrap().len();
        let script = move |heard: &Heard| {
            let echo = echoes.lock().unwrap()[heard.number].clone();
            let echo = String::from_utf8_lossy(&echo).into_owned();
            let body = format!("{}\r\n<{echo}>", heard.head);
            answer(
                "200 OK",
                &format!("etag: \"{echo}\"\r\nlocation: /y?a={echo}\r\n"),
                body.as_bytes(),
            )
        };
        let bench =
            Bench::start(Setup { scheme: scheme.clone(), ..Setup::answering(script) }).await;
        values.into_iter().for_each(|value| bench.hide(value));
        for _ in 0..count {
            let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
            let text = got.text();
            assert!(text.matches("[REDACTED:acme]").count() >= 2, "{scheme:?}: {text}");
        }
        bench.finish().await;
    }
}

#[tokio::test]
async fn h03_a_key_as_the_query_has_it_is_a_secret_too() {
    let (secret, wire) = ("sk+live/S3CRET=0123&45", "sk%2Blive%2FS3CRET%3D0123%2645");
    let (hex, upper): (String, String) =
        wire.bytes().map(|byte| (format!("{byte:02x}"), format!("{byte:02X}"))).unzip();
    let mut echoes = vec![wire.to_owned(), wire.to_lowercase().replace("s3cret", "S3CRET")];
    echoes.extend([wire.replace('%', "%25"), wire.replace('%', "%2525"), hex, upper]);
    echoes.push(wire.replace("%2F", "/"));
    for before in ["", "?", "a=", "key="] {
        echoes.push(STANDARD.encode(format!("{before}{wire}")));
    }
    for echo in echoes {
        let body = echo.clone();
        let script = move |_: &Heard| answer("200 OK", "", body.as_bytes());
        let setup = Setup { scheme: query(), secret: Some(secret), ..Setup::answering(script) };
        let bench = Bench::start(setup).await;
        bench.hide(wire);
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert!(got.text().contains("[REDACTED:acme]"), "{echo}: {}", got.text());
        bench.finish().await;
    }
}

#[tokio::test]
async fn f07_h05_a_redirect_that_repeats_the_query_key() {
    let script = |heard: &Heard| {
        let target = heard.line().split(' ').nth(1).unwrap().to_owned();
        answer("302 Found", &format!("location: {target}\r\n"), b"")
    };
    for (scheme, location) in
        [(query(), "/x?api_key=[REDACTED:acme]"), (path(), "/bot[REDACTED:acme]/x")]
    {
        let bench = Bench::start(Setup { scheme, ..Setup::answering(script) }).await;
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.header("location"), Some(location));
        bench.finish().await;
    }
}

#[tokio::test]
async fn i02_j01_previews_and_cards_name_the_scheme_and_hold_no_credential() {
    for (scheme, _) in all() {
        let name = scheme.name();
        let bench = bench(scheme).await;
        let asked = || with_body("POST", "/orders?a=1", "{}");
        let got = bench.send(&bench.dry(), asked()).await.unwrap();
        let preview: serde_json::Value = serde_json::from_str(&got.text()).unwrap();
        assert_eq!(preview["request"]["credential"], format!("{name}, acme"));
        assert_eq!(preview["request"]["query"], "a=1");
        assert_eq!(bench.vendor.connections(), 0);
        bench.desk.will(Word::Say(Answer::Once));
        bench.send(&bench.writer(), asked()).await.unwrap();
        let shown = bench.desk.shown().pop().unwrap();
        assert_eq!(shown.target, "/orders?a=1");
        assert!(!format!("{shown:?}").contains(SECRET));
        assert_eq!(bench.vendor.heard().len(), 1);
        bench.finish().await;
    }
}

#[tokio::test]
async fn d14_each_schemes_secret_is_bound_to_its_config() {
    for (scheme, changed) in [
        (query(), Scheme::ApiKeyQuery { parameter: "q".into() }),
        (basic("me"), basic("you")),
        (cookie(), Scheme::Cookie { name: "tracking".into() }),
        (path(), Scheme::UrlPath { template: "/{token}".into() }),
        (Scheme::Bearer, query()),
    ] {
        let mut bench = bench(scheme).await;
        bench.connection.scheme = changed;
        bench.memory.put_connection(bench.connection.clone());
        bench.refused(&bench.reader(), request("GET", "/x"), "credential_unavailable").await;
        bench.finish().await;
    }
}
