//! What a person may change of the policy for one connection, row by row, and
//! that each is off without them.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{
    Answer, AuditKind, Effect, Exception, Grant, Limits, OutboundRequest, Overrides, Raise,
};
use cambium_sandbox_tests::bench::{
    Bench, READS, SECRET, Setup, WRITES, anywhere, request, site, with_body, with_headers,
};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Step, answer};
use std::sync::Arc;
use std::time::Duration;

fn raise(method: &str, path: &str, to: Effect) -> Overrides {
    let raise = vec![Raise { method: method.into(), path: path.into(), to }];
    Overrides { raise, ..Overrides::default() }
}

async fn changed(overrides: Overrides) -> Bench {
    overrides.check().unwrap();
    Bench::start(Setup::changed(overrides)).await
}

#[tokio::test]
async fn a13_encoded_slash_where_a_person_allowed_it() {
    let bench = changed(Overrides { encoded_slash: true, ..Overrides::default() }).await;
    for target in ["/v1/a%2Fb", "/projects/group%2fproject/issues", "/o/a%2Fb%2Fc?alt=media"] {
        bench.send(&bench.reader(), request("GET", target)).await.unwrap();
        let heard = bench.vendor.heard();
        assert_eq!(heard.last().unwrap().line(), format!("GET {target} HTTP/1.1"));
    }
    for target in [
        "/v1/..%2fadmin",
        "/v1/%2e%2e%2Fadmin",
        "/v1/a%2F..",
        "/v1/a%2F%2e",
        "/%2Fevil.test",
        "/v1/a%2F/b",
        "/v1/a%2F%2Fb",
        "/v1/a%252Fb",
        "/v1/a%5Cb",
        "/v1/a%2F..;x/b",
    ] {
        bench.refused(&bench.reader(), request("GET", target), "path_ambiguous").await;
    }
    // One hole is one segment, and a slash in it does not make it two.
    let run = bench.open(READS, vec![site("GET", "/projects/{}")], Grant::ReadOnly);
    bench.send(&run, request("GET", "/projects/a%2Fb")).await.unwrap();
    let run = bench.open(READS, vec![site("GET", "/projects/{}")], Grant::ReadOnly);
    bench.refused(&run, request("GET", "/projects/a/b"), "outside_call_sites").await;
    bench.finish().await;
}

#[tokio::test]
async fn b09_graphql_reads_only_where_a_person_said_and_only_a_parsed_query() {
    let query = r#"{"query":"query { me { id } }"}"#;
    let mutation = r#"{"query":"mutation { pay }"}"#;
    let post = |body: &str| with_body("POST", "/graphql", body);
    let run = |bench: &Bench, grant| bench.open(WRITES, vec![site("POST", "/graphql")], grant);
    // Without the word a query is a write.
    let bench = Bench::new().await;
    bench.refused(&run(&bench, Grant::Ask), post(query), "awaiting_approval").await;
    bench.finish().await;

    let bench =
        changed(Overrides { graphql: Some("/graphql".into()), ..Overrides::default() }).await;
    assert_eq!(bench.send(&run(&bench, Grant::Ask), post(query)).await.unwrap().status, 200);
    assert_eq!(bench.row(AuditKind::Intent).await.rule, "queries_go");
    assert!(!bench.send(&run(&bench, Grant::Preview), post(query)).await.unwrap().intercepted);
    assert!(bench.send(&run(&bench, Grant::Preview), post(mutation)).await.unwrap().intercepted);
    bench.refused(&run(&bench, Grant::Ask), post(mutation), "awaiting_approval").await;
    // Nor one that a list could hide behind: read by position, or as a batch.
    for list in [format!("[{query}]"), format!(r#" ["{{ a }}",{mutation}]"#), r#"["{ a }"]"#.into()]
    {
        bench.refused(&run(&bench, Grant::Ask), post(&list), "awaiting_approval").await;
        assert!(bench.send(&run(&bench, Grant::Preview), post(&list)).await.unwrap().intercepted);
    }
    // A read-only version's GET there is held: it may carry a mutation.
    let reader = bench.open(READS, anywhere(&["GET"]), Grant::ReadOnly);
    let get = request("GET", "/graphql?query=mutation%7Bpay%7D");
    bench.refused(&reader, get, "method_exceeds_hint").await;
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn b09_a_query_is_not_sent_twice_by_itself() {
    let script = |heard: &Heard| match heard.number {
        1 => vec![Step::Close],
        _ => answer("200 OK", "", b"x"),
    };
    let overrides = Overrides { graphql: Some("/graphql".into()), ..Overrides::default() };
    let bench = Bench::start(Setup { overrides, ..Setup::answering(script) }).await;
    let run = bench.open(WRITES, vec![site("POST", "/graphql")], Grant::Ask);
    let query = || with_body("POST", "/graphql", r#"{"query":"{ me }"}"#);
    bench.send(&run, query()).await.unwrap();
    assert_eq!(bench.send(&run, query()).await.unwrap_err().code(), "upstream_truncated");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn b11_raised_requests_are_held_shown_or_refused() {
    let bench = changed(raise("GET", "/send/{}", Effect::Write)).await;
    // Admission of a read-only version asks, since it may meet the path.
    let grant = bench.admit(READS, false, false).await.unwrap();
    assert!(matches!(grant, Grant::Ask), "{grant:?}");
    let run = |grant| bench.open(READS, anywhere(&["GET", "HEAD"]), grant);
    bench.refused(&run(Grant::Ask), request("GET", "/send/1"), "awaiting_approval").await;
    assert_eq!(bench.desk.shown()[0].effect, Effect::Write);
    bench.refused(&run(Grant::Ask), request("HEAD", "/SEND/1/"), "awaiting_approval").await;
    bench.refused(&run(Grant::ReadOnly), request("GET", "/send/1"), "method_exceeds_hint").await;
    assert!(bench.send(&run(Grant::Preview), request("GET", "/send/1")).await.unwrap().intercepted);
    assert_eq!(bench.vendor.connections(), 0);
    assert_eq!(bench.send(&run(Grant::Ask), request("GET", "/list")).await.unwrap().status, 200);
    bench.desk.will(Word::Say(Answer::Once));
    assert_eq!(bench.send(&run(Grant::Ask), request("GET", "/send/1")).await.unwrap().status, 200);
    assert_eq!(bench.row(AuditKind::Intent).await.effect.unwrap(), "write");
    bench.finish().await;
}

#[tokio::test]
async fn b11_a_batch_counts_as_what_may_be_in_it() {
    let bench = changed(raise("*", "/$batch/*", Effect::Destroy)).await;
    let run = || bench.open(WRITES, vec![site("POST", "/$batch")], Grant::Ask);
    let batch = |body: &str| with_body("POST", "/$batch", body);
    bench.desk.will(Word::Say(Answer::Standing));
    bench.send(&run(), batch("[1]")).await.unwrap();
    assert_eq!(bench.desk.shown()[0].effect, Effect::Destroy);
    // What stands does not cover the next one.
    bench.refused(&run(), batch("[2]"), "awaiting_approval").await;
    assert_eq!(bench.vendor.heard().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn b11_a_get_that_writes_is_never_sent_again() {
    let script = |heard: &Heard| match heard.number {
        1 => vec![Step::Close],
        _ => answer("200 OK", "", b"x"),
    };
    let overrides = raise("GET", "*", Effect::Write);
    let bench = Bench::start(Setup { overrides, ..Setup::answering(script) }).await;
    bench.desk.will(Word::Say(Answer::Once));
    bench.desk.will(Word::Say(Answer::Once));
    let run = bench.open(READS, vec![site("GET", "/send/{}")], Grant::Ask);
    bench.send(&run, request("GET", "/send/1")).await.unwrap();
    let refusal = bench.send(&run, request("GET", "/send/2")).await.unwrap_err();
    assert_eq!(refusal.code(), "outcome_unknown");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn b13_a_rate_over_all_runs() {
    let bench = changed(Overrides { rate: Some(3), ..Overrides::default() }).await;
    for _ in 0..3 {
        bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    }
    bench.refused(&bench.reader(), request("GET", "/x"), "rate_limited").await;
    // A stopped request costs nothing, and a person is not asked in vain.
    assert!(bench.send(&bench.dry(), with_body("POST", "/x", "{}")).await.unwrap().intercepted);
    bench.refused(&bench.writer(), with_body("POST", "/orders", "{}"), "rate_limited").await;
    assert!(bench.desk.shown().is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn b13_a_number_at_a_time_over_all_runs() {
    let script = |_: &Heard| [vec![Step::Await], answer("200 OK", "", b"x")].concat();
    let overrides = Overrides { concurrent: Some(2), ..Overrides::default() };
    let limits = Limits { exchange: Duration::from_millis(400), ..Limits::default() };
    let bench = Bench::start(Setup { overrides, limits, ..Setup::answering(script) }).await;
    let runs: Vec<_> = (0..3).map(|_| bench.reader()).collect();
    let (mut codes, ()) = tokio::join!(
        async {
            let one = |run: Arc<cambium_proxy::Session>| async move {
                run.send(request("GET", "/x")).await.map_or_else(|refusal| refusal.code(), |_| "ok")
            };
            let [a, b, c] = runs.try_into().unwrap();
            let (a, b, c) = tokio::join!(one(a), one(b), one(c));
            vec![a, b, c]
        },
        async { bench.vendor.until_heard(2).await }
    );
    codes.sort_unstable();
    assert_eq!(bench.vendor.heard().len(), 2, "{codes:?}");
    assert!(codes.contains(&"rate_limited"), "{codes:?}");
    bench.vendor.release();
    bench.finish().await;
}

#[tokio::test]
async fn c12_headers_a_person_opened() {
    let bench = changed(Overrides { headers: vec!["sudo".into()], ..Overrides::default() }).await;
    let given: &[(&str, &[u8])] = &[("Sudo", b"1"), ("Impersonate-User", b"root"), ("Range", b"x")];
    bench.send(&bench.reader(), with_headers("GET", "/x", given)).await.unwrap();
    let heard = &bench.vendor.heard()[0];
    assert_eq!(heard.header("sudo"), ["1"]);
    assert!(heard.header("impersonate-user").is_empty() && heard.header("range").is_empty());
    // What goes with it is what a person is shown, and the digest covers it.
    let order = || OutboundRequest {
        headers: vec![("sudo".into(), b"1".to_vec())],
        ..with_body("POST", "/orders", "{}")
    };
    bench.refused(&bench.writer(), order(), "awaiting_approval").await;
    assert!(bench.desk.shown()[0].headers.contains(&("sudo".into(), "1".into())));
    bench.finish().await;
}

#[tokio::test]
async fn c23_ranges_where_a_person_allowed_them() {
    let script = |_: &Heard| {
        answer(
            "206 Partial Content",
            "content-range: bytes 0-0/9\r\naccept-ranges: bytes\r\n",
            b"x",
        )
    };
    let overrides = Overrides { range: true, ..Overrides::default() };
    let bench = Bench::start(Setup { overrides, ..Setup::answering(script) }).await;
    let ranged = with_headers("GET", "/x", &[("Range", b"bytes=0-0")]);
    let got = bench.send(&bench.reader(), ranged).await.unwrap();
    assert_eq!(bench.vendor.heard()[0].header("range"), ["bytes=0-0"]);
    assert_eq!((got.status, got.header("content-range")), (206, Some("bytes 0-0/9")));
    bench.finish().await;
}

#[tokio::test]
async fn e13_k09_a_change_drops_the_pool_and_ends_runs_under_way() {
    let mut bench = Bench::new().await;
    let old = bench.reader();
    bench.send(&old, request("GET", "/x")).await.unwrap();
    bench.send(&old, request("GET", "/x")).await.unwrap();
    assert_eq!(bench.vendor.connections(), 1, "the connection is kept");
    // The range the pooled connection was dialled by is taken back.
    let port = bench.vendor.address.port();
    bench
        .change(|connection| {
            connection.generation += 1;
            connection.exceptions = vec![Exception { cidr: "10.0.0.0/8".parse().unwrap(), port }];
        })
        .await;
    let refusal = bench.send(&old, request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "connection_revoked");
    let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "address_denied");
    assert_eq!(bench.vendor.heard().len(), 2, "nothing went over what was open");
    bench.finish().await;
}

/// Answers a redirect on the first request and the file on the others.
fn hands_over(to: impl Fn(&Heard) -> Option<String> + Send + Sync + 'static) -> Setup {
    Setup::answering(move |heard| match to(heard) {
        Some(location) => answer("302 Found", &format!("location: {location}\r\n"), b""),
        None => answer("200 OK", "content-type: text/plain\r\nset-cookie: a=b\r\n", b"the file"),
    })
}

async fn downloads(to: &[&str], setup: impl Fn(u16) -> Setup) -> Bench {
    // The vendor's port is known only once it listens.
    let mut bench = Bench::start(setup(0)).await;
    let port = bench.vendor.address.port();
    let to: Vec<String> = to.iter().map(|host| host.replace("PORT", &port.to_string())).collect();
    bench.change(|connection| connection.overrides.follow_downloads = to).await;
    bench
}

#[tokio::test]
async fn f05_a_download_is_followed_without_the_credential() {
    let bench = downloads(&["cdn.test:PORT"], |_| {
        hands_over(|heard| {
            let host = heard.header("host")[0];
            let port = host.rsplit_once(':').unwrap().1;
            host.starts_with("api.").then(|| format!("https://cdn.test:{port}/o/a%2Fb?sig=x%2By"))
        })
    })
    .await;
    let given: &[(&str, &[u8])] = &[("Accept", b"text/plain"), ("If-None-Match", b"\"tag\"")];
    let got = bench.send(&bench.reader(), with_headers("GET", "/file", given)).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (200, "the file"));
    assert_eq!(got.header("set-cookie"), None);
    let heard = bench.vendor.heard();
    assert_eq!(heard[0].header("authorization"), [format!("Bearer {SECRET}")]);
    assert_eq!(heard[1].line(), "GET /o/a%2Fb?sig=x%2By HTTP/1.1");
    for name in ["authorization", "cookie", "if-none-match", "referer"] {
        assert!(heard[1].header(name).is_empty(), "{name}");
    }
    assert_eq!(heard[1].header("accept"), ["text/plain"]);
    assert_ne!(heard[0].connection, heard[1].connection);
    let intents: Vec<_> =
        bench.memory.events().into_iter().filter(|e| e.kind == AuditKind::Intent).collect();
    assert!(intents[1].host.starts_with("cdn.test") && intents[1].query_keys == ["sig"]);
    assert_eq!(intents[1].notes, ["download_hop:1"]);
    bench.finish().await;
}

#[tokio::test]
async fn f05_where_a_download_is_not_followed() {
    for (location, host) in [
        ("https://evil.test/x", Some("evil.test")),
        ("http://cdn.test/x", Some("cdn.test")),
        ("//cdn.test:PORT/x", Some("cdn.test:PORT")),
        ("https://x@cdn.test:PORT/x", Some("cdn.test:PORT")),
        ("https://cdn.test:PORT@evil.test/x", Some("evil.test")),
        ("https://CDN.test:PORT/x", Some("cdn.test:PORT")),
        ("https://cdn.test.:PORT/x", Some("cdn.test.:PORT")),
        ("https://127.0.0.1:PORT/x", Some("127.0.0.1:PORT")),
        ("https://files.acme.test:PORT/x", Some("files.acme.test:PORT")),
        ("/other", None),
    ] {
        let bench = downloads(&["cdn.test:PORT", "*"], move |_| {
            hands_over(move |heard| {
                let port = heard.header("host")[0].rsplit_once(':').unwrap().1;
                Some(location.replace("PORT", port))
            })
        })
        .await;
        let port = bench.vendor.address.port().to_string();
        let got = bench.send(&bench.reader(), request("GET", "/file")).await;
        // `*` allows evil.test; its name has no address here.
        if location.contains("evil.test") && !location.contains('@') {
            assert_eq!(got.unwrap_err().to_string(), "the name evil.test could not be looked up");
        } else {
            let got = got.unwrap();
            assert_eq!(got.status, 302, "{location}");
            let host = host.map(|host| host.replace("PORT", &port));
            assert_eq!(got.header("x-cambium-redirect-host"), host.as_deref(), "{location}");
        }
        assert_eq!(bench.vendor.heard().len(), 1, "{location}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn f05_only_a_get_that_reads_and_never_with_the_secret_in_its_address() {
    let away = |heard: &Heard| {
        let port = heard.header("host")[0].rsplit_once(':').unwrap().1.to_owned();
        let key = if heard.line().contains("/leak") { format!("?key={SECRET}") } else { "".into() };
        Some(format!("https://cdn.test:{port}/o{key}"))
    };
    let bench = downloads(&["cdn.test:PORT"], move |_| hands_over(away)).await;
    let got = bench.send(&bench.reader(), request("GET", "/leak")).await.unwrap();
    assert_eq!(got.status, 302);
    let got = bench.send(&bench.reader(), request("HEAD", "/file")).await.unwrap();
    assert_eq!(got.status, 302);
    bench.desk.will(Word::Say(Answer::Once));
    let got = bench.send(&bench.writer(), with_body("POST", "/orders", "{}")).await.unwrap();
    assert_eq!(got.status, 302);
    assert_eq!(bench.vendor.heard().len(), 3);
    bench.finish().await;
}

#[tokio::test]
async fn f05_the_guard_runs_for_each_hop_and_hops_end() {
    // `*` is any public host, and the person's exceptions are not for those.
    let bench = downloads(&["*"], |_| hands_over(|_| Some("https://cdn.test/o".into()))).await;
    for address in ["127.0.0.1", "169.254.169.254", "10.0.0.1"] {
        bench.names.set("cdn.test", &[&[address]]);
        let refusal = bench.send(&bench.reader(), request("GET", "/file")).await.unwrap_err();
        assert_eq!(refusal.code(), "address_denied", "{address}");
        assert!(refusal.to_string().contains("cdn.test"), "{refusal}");
    }
    bench.finish().await;

    let onward = |heard: &Heard| {
        let host = heard.header("host")[0];
        let port = host.rsplit_once(':').unwrap().1;
        let next = if host.starts_with("cdn.") { "store" } else { "cdn" };
        Some(format!("https://{next}.test:{port}/o"))
    };
    let bench = downloads(&["cdn.test:PORT", "store.test:PORT"], move |_| hands_over(onward)).await;
    let refusal = bench.send(&bench.reader(), request("GET", "/file")).await.unwrap_err();
    assert_eq!(refusal.code(), "host_not_in_connection");
    assert_eq!(bench.vendor.heard().len(), 4, "the request and three hops");
    bench.finish().await;

    let bench = downloads(&["cdn.test:PORT"], move |_| hands_over(onward)).await;
    let refusal = bench.send(&bench.reader(), request("GET", "/file")).await.unwrap_err();
    assert_eq!(refusal.code(), "host_not_in_connection");
    assert!(refusal.to_string().contains("store.test"), "{refusal}");
    assert_eq!(bench.vendor.heard().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn f05_without_the_persons_word_nothing_is_followed() {
    let setup = hands_over(|_| Some("https://cdn.test/o".into()));
    let bench = Bench::start(setup).await;
    let got = bench.send(&bench.reader(), request("GET", "/file")).await.unwrap();
    assert_eq!((got.status, got.header("x-cambium-redirect-host")), (302, Some("cdn.test")));
    bench.finish().await;
}

#[tokio::test]
async fn the_reviewers_tools_agree_with_what_happens() {
    use cambium_proxy::{Review, Supposed, Verdict};
    let overrides = Overrides {
        raise: vec![Raise { method: "GET".into(), path: "/send/*".into(), to: Effect::Write }],
        graphql: Some("/graphql".into()),
        ..Overrides::default()
    };
    let bench = changed(overrides).await;
    let sites = anywhere(&["GET", "HEAD", "POST", "PUT"]);
    for asked in [
        request("GET", "/x"),
        request("GET", "/send/1"),
        request("get", "/x"),
        request("GET", "//evil.test/x"),
        request("GET", "/a%2Fb"),
        request("DELETE", "/x"),
        request("PATCH", "/x"),
        with_body("GET", "/x", "{}"),
        with_body("POST", "/x", "{}"),
        with_body("POST", "/graphql", r#"{"query":"{ me }"}"#),
        with_body("POST", "/graphql", r#"{"query":"mutation { x }"}"#),
        with_headers("POST", "/x", &[("x-http-method-override", b"DELETE")]),
        OutboundRequest { host: Some("evil.test".into()), ..request("GET", "/x") },
        OutboundRequest { sdk: true, ..request("GET", "https://evil.test/x") },
    ] {
        for supposed in [Supposed::Usual, Supposed::DryRun, Supposed::Each] {
            let (connection, hints) = (&bench.connection, WRITES);
            let review = Review { connection, sites: &sites, hints, supposed, request: &asked };
            let said = review.explain(&Limits::default());
            let grant = match supposed {
                Supposed::Usual => Grant::Ask,
                Supposed::DryRun => Grant::Preview,
                Supposed::Each => Grant::AskEach,
            };
            let run = bench.open(WRITES, sites.clone(), grant);
            let got = bench.send(&run, asked.clone()).await;
            let happened = match &got {
                Ok(got) if got.intercepted => Verdict::Preview,
                Ok(_) => Verdict::Forward,
                Err(refusal) if refusal.code() == "awaiting_approval" => Verdict::Ask,
                Err(_) => Verdict::Refuse,
            };
            assert_eq!(said.verdict, happened, "{asked:?} {supposed:?}: {:?}", said.steps);
            if happened == Verdict::Refuse {
                assert_eq!(said.code, Some(got.unwrap_err().code()), "{asked:?} {supposed:?}");
            }
        }
    }
    bench.finish().await;
}
