//! Pages that are read for an agent: where they may be read from, what a server
//! may send, and what is written down of it.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{
    AgentId, AuditEvent, Exception, PageAnswer, PageReach, PageRequest, Refusal, RunId,
};
use cambium_sandbox_tests::bench::{Bench, SECRET, Setup};
use cambium_sandbox_tests::vendor::{Heard, Step, answer};
use std::io::Write;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const API: &str = "api.acme.test";
const FILES: &str = "files.acme.test";

async fn house(script: fn(&Heard) -> Vec<Step>) -> Bench {
    Bench::start(Setup { script: Arc::new(script), ..Setup::default() }).await
}

fn reach(bench: &Bench) -> PageReach {
    let cidr = "127.0.0.1/32".parse().unwrap();
    let port = bench.vendor.address.port();
    PageReach {
        exceptions: vec![Exception { cidr, port }],
        ca_pem: Some(bench.vendor.ca_pem.clone()),
    }
}

fn at(bench: &Bench, host: &str, path: &str) -> String {
    format!("https://{host}:{}{path}", bench.vendor.address.port())
}

async fn read(bench: &Bench, url: &str, reach: &PageReach) -> Result<PageAnswer, Refusal> {
    let may = |host: &str| host.starts_with(API);
    read_by(bench, url, reach, &may).await
}

async fn read_by(
    bench: &Bench,
    url: &str,
    reach: &PageReach,
    may: &(dyn Fn(&str) -> bool + Send + Sync),
) -> Result<PageAnswer, Refusal> {
    let (run, agent, stop) = (RunId::new("run"), AgentId::new("agent"), CancellationToken::new());
    let wanted = PageRequest { run: &run, agent: &agent, url, reach, may, stop: &stop };
    bench.proxy.read_page(wanted).await
}

async fn code(bench: &Bench, url: &str, reach: &PageReach) -> &'static str {
    read(bench, url, reach).await.unwrap_err().code()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn rows(bench: &Bench) -> Vec<AuditEvent> {
    bench.memory.events()
}

#[tokio::test]
async fn p01_a_page_is_read_without_a_credential_and_written_down() {
    let bench = house(|_| answer("200 OK", "content-type: Text/HTML\r\n", b"<p>hello")).await;
    let url = at(&bench, API, "/docs?page=2&key=value#top");
    let PageAnswer::Page(page) = read(&bench, &url, &reach(&bench)).await.unwrap() else {
        panic!("no page")
    };
    assert_eq!((page.status, page.content_type.as_str()), (200, "text/html"));
    assert_eq!(page.body, "<p>hello");
    let heard = bench.vendor.heard();
    assert_eq!(heard[0].line(), "GET /docs?page=2&key=value HTTP/1.1");
    for name in ["authorization", "cookie", "referer"] {
        assert!(heard[0].header(name).is_empty(), "{name}");
    }
    assert!(!heard[0].head.contains(SECRET));
    let intent = rows(&bench).into_iter().find(|row| row.path == "/docs").unwrap();
    assert_eq!((intent.tool.as_str(), intent.rule.as_str()), ("read_web_page", "low_level"));
    assert_eq!((intent.agent.as_str(), intent.run.as_str()), ("agent", "run"));
    assert_eq!(intent.query_keys, ["key", "page"]);
    assert!(!serde_json::to_string(&rows(&bench)).unwrap().contains("value"));
    bench.finish().await;
}

#[tokio::test]
async fn p02_names_that_lead_inside_are_not_dialled() {
    let bench = house(|_| answer("200 OK", "", b"x")).await;
    let open = PageReach { ca_pem: Some(bench.vendor.ca_pem.clone()), ..PageReach::default() };
    for address in [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "0.0.0.0",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
        "224.0.0.1",
    ] {
        bench.names.set(API, &[&[address]]);
        let refusal = read(&bench, &format!("https://{API}/x"), &open).await.unwrap_err();
        assert_eq!(refusal.code(), "address_denied", "{address}");
        assert!(!refusal.to_string().contains(address), "the text names {address}");
    }
    // What a person lifted is lifted for that range and port, metadata never.
    let mut all = reach(&bench);
    all.exceptions[0].cidr = "0.0.0.0/0".parse().unwrap();
    bench.names.set(API, &[&["169.254.169.254"]]);
    assert_eq!(code(&bench, &at(&bench, API, "/"), &all).await, "address_denied");
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn p03_a_name_that_changes_between_look_ups_is_judged_each_time() {
    let bench = house(|_| answer("200 OK", "", b"x")).await;
    bench.names.set(API, &[&["127.0.0.1"], &["10.0.0.1"]]);
    let url = at(&bench, API, "/");
    assert!(read(&bench, &url, &reach(&bench)).await.is_ok());
    assert_eq!(code(&bench, &url, &reach(&bench)).await, "address_denied");
    bench.finish().await;
}

#[tokio::test]
async fn p04_a_redirect_is_judged_like_an_address() {
    let bench = house(|heard| {
        let to = heard.line().split(' ').nth(1).unwrap_or_default();
        let to = to.trim_start_matches('/').replace("%7C", "/");
        answer("302 Found", &format!("location: {to}\r\n"), b"")
    })
    .await;
    let reach = reach(&bench);
    for (to, expected) in [
        ("https:||169.254.169.254|latest", "address_denied"),
        ("https:||10.0.0.1|", "address_denied"),
        ("http:||api.acme.test|", "url_invalid"),
        ("file:|||etc|passwd", "url_invalid"),
        ("https:||user@api.acme.test|", "url_invalid"),
    ] {
        let found = code(&bench, &at(&bench, API, &format!("/{to}")), &reach).await;
        assert_eq!(found, expected, "{to}");
    }
    // To a host nobody allowed: not looked up, not dialled, and named.
    let dialled = bench.vendor.connections();
    let port = bench.vendor.address.port();
    let to = format!("/https:||{FILES}:{port}|x");
    let answer = read(&bench, &at(&bench, API, &to), &reach).await.unwrap();
    assert_eq!(answer, PageAnswer::Host(format!("{FILES}:{port}")));
    assert_eq!(bench.vendor.connections(), dialled + 1);
    bench.finish().await;
}

#[tokio::test]
async fn p05_a_redirect_to_an_allowed_name_that_leads_inside_is_not_dialled() {
    let bench =
        house(|_| answer("302 Found", "location: https://inside.acme.test/\r\n", b"")).await;
    bench.names.set("inside.acme.test", &[&["10.0.0.1"]]);
    let url = at(&bench, API, "/");
    let refusal = read_by(&bench, &url, &reach(&bench), &|_| true).await.unwrap_err();
    assert_eq!(refusal.code(), "address_denied");
    bench.finish().await;
}

#[tokio::test]
async fn p06_redirects_end() {
    let bench = house(|_| answer("302 Found", "location: /again\r\n", b"")).await;
    assert_eq!(code(&bench, &at(&bench, API, "/"), &reach(&bench)).await, "url_invalid");
    assert_eq!(bench.vendor.heard().len(), 5);
    bench.finish().await;
}

#[tokio::test]
async fn p07_a_bomb_and_an_endless_body_are_cut_off() {
    let bench = house(|heard| match heard.line().contains("/bomb") {
        true => answer("200 OK", "content-encoding: gzip\r\n", &gzip(&vec![0; 64 << 20])),
        false => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec()),
            Step::Forever(vec![b'a'; 64 * 1024]),
        ],
    })
    .await;
    for path in ["/bomb", "/endless"] {
        let found = code(&bench, &at(&bench, API, path), &reach(&bench)).await;
        assert_eq!(found, "response_too_large", "{path}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn p08_a_server_that_stalls_is_given_up_with_its_reader() {
    let bench = house(|_| {
        vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome".to_vec()), Step::Stall]
    })
    .await;
    let (run, agent, stop) = (RunId::new("run"), AgentId::new("agent"), CancellationToken::new());
    let (url, reach) = (at(&bench, API, "/"), reach(&bench));
    let may = |_: &str| true;
    let wanted =
        PageRequest { run: &run, agent: &agent, url: &url, reach: &reach, may: &may, stop: &stop };
    let reading = bench.proxy.read_page(wanted);
    let given_up = async {
        bench.vendor.until_heard(1).await;
        stop.cancel();
    };
    let (got, ()) = tokio::join!(reading, given_up);
    assert_eq!(got.unwrap_err().code(), "run_closed");
    bench.finish().await;
}

#[tokio::test]
async fn p09_a_host_nobody_allowed_is_not_even_looked_up() {
    let bench = house(|_| answer("200 OK", "", b"x")).await;
    let answer = read_by(&bench, "https://unknown.acme.test/x", &reach(&bench), &|_| false).await;
    assert_eq!(answer, Ok(PageAnswer::Host("unknown.acme.test".into())));
    assert!(rows(&bench).is_empty());
    bench.finish().await;
}
