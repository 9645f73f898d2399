//! Rows E: what a host may resolve to.
#![allow(clippy::unwrap_used, missing_docs)]

use cambium_proxy::{Exception, Proxy};
use cambium_sandbox_tests::bench::{Bench, Setup, request};

const API: &str = "api.acme.test";

async fn denied(bench: &Bench, addresses: &[&str]) {
    for address in addresses {
        bench.names.set(API, &[&[address]]);
        // An intent row stands before the look-up; the refusal is its outcome.
        let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
        assert_eq!(refusal.code(), "address_denied", "{address}");
        assert!(!refusal.to_string().contains(address), "the text names {address}");
    }
    assert_eq!(bench.vendor.connections(), 0);
}

#[tokio::test]
async fn e01_loopback() {
    let bench = Bench::start(Setup { excepted: false, ..Setup::default() }).await;
    denied(&bench, &["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::127.0.0.1"]).await;
    bench.finish().await;
}

#[tokio::test]
async fn e02_e03_metadata_whoever_asks() {
    let mut bench = Bench::new().await;
    let port = bench.vendor.address.port();
    let all = ["0.0.0.0/0", "::/0"].map(|cidr| Exception { cidr: cidr.parse().unwrap(), port });
    bench.change(|connection| connection.exceptions = all.to_vec()).await;
    denied(
        &bench,
        &[
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "fd00:100::100:200",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "169.254.1.1",
            "fe80::1",
        ],
    )
    .await;
    bench.finish().await;
}

#[tokio::test]
async fn e04_private_ranges_need_the_persons_word_for_range_and_port() {
    let mut bench = Bench::start(Setup { excepted: false, ..Setup::default() }).await;
    let privates =
        ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fc00::1"];
    denied(&bench, &privates).await;
    let port = bench.vendor.address.port();
    // Right range, wrong port; right port, wrong range.
    for (cidr, port) in [("127.0.0.0/8", port - 1), ("10.0.0.0/8", port)] {
        let exception = Exception { cidr: cidr.parse().unwrap(), port };
        bench.change(|connection| connection.exceptions = vec![exception]).await;
        denied(&bench, &["127.0.0.1"]).await;
    }
    let exception = Exception { cidr: "127.0.0.1/32".parse().unwrap(), port };
    bench.change(|connection| connection.exceptions = vec![exception]).await;
    bench.names.set(API, &[&["127.0.0.1"]]);
    assert_eq!(bench.send(&bench.reader(), request("GET", "/x")).await.unwrap().status, 200);
    bench.finish().await;
}

#[tokio::test]
async fn e05_reserved_ranges() {
    let mut bench = Bench::new().await;
    let port = bench.vendor.address.port();
    let all = Exception { cidr: "0.0.0.0/0".parse().unwrap(), port };
    bench.change(|connection| connection.exceptions = vec![all]).await;
    denied(
        &bench,
        &[
            "0.0.0.0",
            "0.1.2.3",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
        ],
    )
    .await;
    bench.finish().await;
}

#[tokio::test]
async fn e06_our_own_listener_whoever_asks() {
    let bench = Bench::start(Setup { own: true, ..Setup::default() }).await;
    let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "self_address");
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

#[test]
fn e07_literal_hosts_at_creation() {
    for host in [
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "１６９.254.169.254",
        "169。254。169。254",
        "[fe80::1%25eth0]",
        "127.0.0.1",
        "8.8.8.8",
        "::1",
        "localhost",
        "x.localhost",
        "a..b",
        "-a.test",
        "a_b.test",
        "A.test",
        "a.test.",
        "*.acme.test",
        "*",
        "a.test:443",
        "a/b.test",
        "metadata.google.internal",
        "",
        "com",
    ] {
        let refusal = Proxy::check_host(host, &[]).expect_err(host);
        assert_eq!(refusal.code(), "address_denied", "{host}");
    }
    for host in ["api.acme.test", "xn--caf-dma.test", "a-b.c1.io"] {
        Proxy::check_host(host, &[]).expect(host);
    }
    let exception = [Exception { cidr: "127.0.0.0/8".parse().unwrap(), port: 8443 }];
    for host in ["localhost", "127.0.0.1"] {
        Proxy::check_host(host, &exception).expect(host);
    }
    Proxy::check_host("10.0.0.1", &exception).unwrap_err();
    Proxy::check_host("metadata.google.internal", &exception).unwrap_err();
}

#[tokio::test]
async fn e08_the_checked_address_is_the_dialled_one() {
    // The name changes after its first look-up: to loopback, where the vendor
    // listens and no exception holds.
    let bench = Bench::start(Setup { excepted: false, ..Setup::default() }).await;
    bench.names.set(API, &[&["10.0.0.1"], &["127.0.0.1"]]);
    for _ in 0..3 {
        let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
        assert_eq!(refusal.code(), "address_denied");
    }
    assert_eq!(bench.vendor.connections(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn e09_a_mixed_answer_keeps_what_is_allowed() {
    let bench = Bench::new().await;
    bench.names.set(API, &[&["10.0.0.1", "169.254.169.254", "127.0.0.1"]]);
    assert_eq!(bench.send(&bench.reader(), request("GET", "/x")).await.unwrap().status, 200);
    bench.finish().await;
}

#[tokio::test]
async fn e11_an_exception_is_about_the_address_not_the_name() {
    let mut bench = Bench::new().await;
    bench.change(|connection| connection.hosts[0].name = "evil.localhost".into()).await;
    bench.names.set("evil.localhost", &[&["169.254.169.254"]]);
    let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "address_denied");
    bench.finish().await;
}

#[tokio::test]
async fn e17_proxies_of_the_environment_are_not_read() {
    if std::env::var_os("CAMBIUM_E17").is_none() {
        // Once more in a process that has them set, to a port nobody serves.
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "e17_proxies_of_the_environment_are_not_read"])
            .env("CAMBIUM_E17", "1")
            .envs(
                [
                    "HTTP_PROXY",
                    "HTTPS_PROXY",
                    "ALL_PROXY",
                    "http_proxy",
                    "https_proxy",
                    "all_proxy",
                ]
                .map(|name| (name, "http://127.0.0.1:9")),
            )
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let bench = Bench::new().await;
    assert_eq!(bench.send(&bench.reader(), request("GET", "/x")).await.unwrap().status, 200);
    bench.finish().await;
}

#[tokio::test]
async fn e18_a_wrong_certificate() {
    let mut bench = Bench::new().await;
    bench.change(|connection| connection.ca_pem = None).await;
    let refusal = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert_eq!(refusal.code(), "tls_failed");
    assert!(bench.vendor.heard().is_empty());
    bench.finish().await;
}

#[test]
fn e15_a_wildcard_is_no_host() {
    for host in ["*.acme.test", "*.github.io", "*.com", "*", "a.*.test", "api.*"] {
        let refusal = Proxy::check_host(host, &[]).expect_err(host);
        assert_eq!(refusal.code(), "address_denied", "{host}");
    }
}

#[tokio::test]
async fn e19_an_exception_nobody_may_make_is_refused_when_it_is_written() {
    let bench = Bench::start(Setup { own: true, ..Setup::default() }).await;
    let port = bench.vendor.address.port();
    for (cidr, port, code) in [
        ("127.0.0.1/32", port, Some("self_address")),
        ("127.0.0.0/8", port, Some("self_address")),
        ("0.0.0.0/0", port, Some("self_address")),
        ("127.0.0.1/32", port - 1, None),
        ("10.0.0.0/8", port, None),
        ("fd12:3456::/32", port, None),
        ("169.254.169.254/32", port, Some("address_denied")),
        ("169.254.0.0/16", port, Some("address_denied")),
        ("0.0.0.0/0", port - 1, Some("address_denied")),
        ("128.0.0.0/1", port, Some("address_denied")),
        ("100.64.0.0/10", port, Some("address_denied")),
        ("100.64.0.0/16", port, None),
        ("::/0", port, Some("address_denied")),
        ("fc00::/7", port, Some("address_denied")),
        ("fd00:ec2::254/128", port, Some("address_denied")),
        ("fd00:ec2:1::/48", port, Some("address_denied")),
        ("::ffff:169.254.169.254/128", port, Some("address_denied")),
    ] {
        let exception = Exception { cidr: cidr.parse().unwrap(), port };
        let checked = bench.proxy.check_exceptions(&[exception]);
        assert_eq!(checked.err().map(|refusal| refusal.code()), code, "{cidr} {port}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn m08_a_text_names_the_host_and_the_class_and_no_address() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut bench = Bench::new().await;
    let read = async |bench: &Bench| {
        bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err().to_string()
    };
    bench.names.set(API, &[&["10.0.0.1"]]);
    assert_eq!(read(&bench).await, "api.acme.test resolves to a private address");
    bench.names.set(API, &[&["169.254.169.254"]]);
    assert_eq!(read(&bench).await, "api.acme.test resolves to a cloud metadata address");
    bench.names.set(API, &[&[]]);
    assert_eq!(read(&bench).await, "api.acme.test has no address");
    bench.names.set(API, &[&["127.0.0.1"]]);
    bench.change(|connection| connection.ca_pem = None).await;
    let said = read(&bench).await;
    assert_eq!(said, "api.acme.test: its certificate is signed by nobody this connection trusts");
    bench.change(|connection| connection.hosts[0].name = "nowhere.acme.test".into()).await;
    assert_eq!(read(&bench).await, "the name nowhere.acme.test could not be looked up");
    bench
        .change(|connection| {
            connection.hosts[0].name = API.into();
            connection.hosts[0].port = closed;
            connection.exceptions[0].port = closed;
        })
        .await;
    assert_eq!(read(&bench).await, "api.acme.test could not be reached: it refuses connections");
    bench.finish().await;

    let mut bench = Bench::new().await;
    bench.names.set("other.acme.test", &[&["127.0.0.1"]]);
    bench.change(|connection| connection.hosts[0].name = "other.acme.test".into()).await;
    assert_eq!(read(&bench).await, "other.acme.test: its certificate is for another name");
    bench.finish().await;
}
