//! Rows K3 to K7 of the door for sandboxes outside, and that what comes in there
//! is a run's like any other: raw bytes against a real socket, a raw vendor
//! behind it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use cambium_proxy::{Answer, AuditKind, Door, DoorAt, DoorFrame, Limits, Pass, Session};
use cambium_sandbox_tests::bench::{Bench, SECRET, Setup};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Step, answer};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A bench with a door.
struct House {
    bench: Bench,
    door: Arc<Door>,
    address: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl House {
    async fn new(setup: Setup) -> Self {
        let bench = Bench::start(setup).await;
        let at = DoorAt::Loopback("127.0.0.1:0".parse().unwrap());
        let frame = DoorFrame::bind(&at).await.unwrap();
        let address = frame.address().unwrap();
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let door = bench.proxy.serve_door(frame, &tasks, stop.clone());
        Self { bench, door, address, tasks, stop }
    }

    fn admit(&self, session: Arc<Session>) -> Pass {
        self.door.admit(session).unwrap()
    }

    /// Sends bytes and reads whatever comes until the door closes.
    async fn raw(&self, bytes: &[u8]) -> String {
        speak(TcpStream::connect(self.address).await.unwrap(), bytes).await
    }

    /// One request as an SDK makes it.
    async fn ask(&self, token: &str, line: &str, headers: &str, body: &str) -> String {
        let length = match body {
            "" => String::new(),
            body => format!("Content-Length: {}\r\n", body.len()),
        };
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{length}{headers}\r\n",
            self.address
        );
        self.raw(format!("{head}{body}").as_bytes()).await
    }

    /// A request whose body never comes. The door waits for it: it says so.
    async fn stuck(&self, token: &str) -> TcpStream {
        const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST /x HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: 9\r\nExpect: 100-continue\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut said = [0; GO_ON.len()];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(said, GO_ON);
        stream
    }

    /// Nothing of what was answered holds the secret, and the audit's chain holds.
    async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.bench.finish().await;
    }
}

async fn speak(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    // The door may answer and close before it has read all.
    let _ = stream.write_all(bytes).await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains(SECRET), "{said}");
    said
}

fn status(said: &str) -> u16 {
    said.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("{said}"))
}

fn echo() -> Setup {
    Setup::answering(|heard: &Heard| {
        answer("200 OK", "content-type: text/plain\r\n", heard.head.as_bytes())
    })
}

#[tokio::test]
async fn k02_what_comes_in_is_the_sessions_request() {
    let house = House::new(echo()).await;
    let pass = house.admit(house.bench.reader());
    let ways = [
        format!("Authorization: Bearer {}\r\n", pass.token()),
        format!("authorization: bearer {}\r\n", pass.token()),
        format!("X-Api-Key: {}\r\n", pass.token()),
        format!("Cambium-Token: {}\r\nAccept: text/plain\r\n", pass.token()),
    ];
    for way in &ways {
        let request = format!("GET /v1/x?a=1 HTTP/1.1\r\nHost: {}\r\n{way}\r\n", house.address);
        let said = house.raw(request.as_bytes()).await;
        assert_eq!(status(&said), 200, "{said}");
        assert!(said.contains("authorization: Bearer [REDACTED:acme]"), "{said}");
        let heard = house.bench.vendor.heard().pop().unwrap();
        assert_eq!(heard.line(), "GET /v1/x?a=1 HTTP/1.1");
        assert_eq!(heard.header("authorization"), [format!("Bearer {SECRET}")]);
        assert!(!heard.head.contains(pass.token()), "the token went to the vendor");
    }
    let token = pass.token().to_owned();
    let said = house.ask(&token, "GET /x", "Cambium-Host: files\r\n", "").await;
    assert_eq!(status(&said), 200, "{said}");
    let heard = house.bench.vendor.heard().pop().unwrap();
    assert!(heard.header("host")[0].starts_with("files.acme.test:"), "{}", heard.head);
    for (line, headers, code) in [
        ("GET //evil.test/x", "", "path_ambiguous"),
        ("GET /v1/../admin", "", "path_ambiguous"),
        ("GET /x", "Cambium-Host: evil.test\r\n", "host_not_in_connection"),
        ("GET /x", "X-HTTP-Method-Override: DELETE\r\n", "header_refused"),
        ("get /x", "", "method_invalid"),
        ("TRACE /x", "", "method_invalid"),
    ] {
        let before = house.bench.vendor.connections();
        let said = house.ask(&token, line, headers, "").await;
        assert!(said.contains(&format!("cambium-refusal: {code}")), "{line}: {said}");
        assert_eq!(house.bench.vendor.connections(), before, "{line}");
        assert_eq!(house.bench.row(AuditKind::Refusal).await.rule, code, "{line}");
    }
    drop(pass);
    house.finish().await;
}

#[tokio::test]
async fn k03_a_token_that_is_none_or_no_longer() {
    let house = House::new(echo()).await;
    let (pass, other) = (house.admit(house.bench.reader()), house.admit(house.bench.reader()));
    assert_ne!(pass.token(), other.token());
    assert_eq!(pass.token().len(), 43, "256 bits");
    let ended = house.admit(house.bench.reader());
    let over = ended.token().to_owned();
    drop(ended);
    let closed = house.bench.reader();
    let shut = house.admit(closed.clone());
    closed.close();
    let near: String = pass.token().chars().rev().collect();
    let elsewhere = House::new(echo()).await;
    let foreign = elsewhere.admit(elsewhere.bench.reader());
    let long = "a".repeat(8_000);
    let mut said = Vec::new();
    for token in ["", "x", &near, &over, foreign.token(), &pass.token()[..42], &long] {
        said.push((token.to_owned(), house.ask(token, "GET /x", "", "").await));
    }
    let none = format!("GET /x HTTP/1.1\r\nHost: {}\r\n\r\n", house.address);
    said.push(("none".into(), house.raw(none.as_bytes()).await));
    let basic =
        format!("GET /x HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic eDp5\r\n\r\n", house.address);
    said.push(("basic".into(), house.raw(basic.as_bytes()).await));
    let without_date = |text: &str| {
        text.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n")
    };
    for (token, text) in &said {
        assert_eq!(status(text), 401, "{token}: {text}");
        assert!(text.contains("cambium-refusal: run_closed"), "{token}: {text}");
        assert_eq!(without_date(text), without_date(&said[0].1), "{token}");
    }
    let two = format!("X-Api-Key: {}\r\n", other.token());
    assert_eq!(status(&house.ask(pass.token(), "GET /x", &two, "").await), 401);
    // A session that is over says so itself.
    let text = house.ask(shut.token(), "GET /x", "", "").await;
    assert!(text.contains("cambium-refusal: run_closed"), "{text}");
    assert_eq!(house.bench.vendor.connections(), 0);
    let rows = house.bench.memory.events();
    let at_the_door = |notes: &[String]| notes.contains(&"at_the_door".to_owned());
    let turned = rows.iter().filter(|row| at_the_door(&row.notes)).count();
    assert_eq!(turned, said.len() + 1, "each has its row");
    assert_eq!(status(&house.ask(pass.token(), "GET /x", "", "").await), 200);
    drop((pass, other, shut, foreign));
    elsewhere.finish().await;
    house.finish().await;
}

#[tokio::test]
async fn k04_another_process_and_a_browsers_page() {
    let house = House::new(echo()).await;
    let pass = house.admit(house.bench.reader());
    let token = pass.token();
    let port = house.address.port();
    let hosts = [
        format!("Host: evil.test:{port}\r\n"),
        "Host: 127.0.0.1\r\n".into(),
        format!("Host: 127.0.0.1:{port}@evil.test\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.test\r\n"),
        format!("Host: 127.0.0.1.evil.test:{port}\r\n"),
        "Host:\r\n".into(),
        String::new(),
    ];
    for host in hosts {
        let request = format!("GET /x HTTP/1.1\r\n{host}Authorization: Bearer {token}\r\n\r\n");
        let said = house.raw(request.as_bytes()).await;
        assert_eq!(status(&said), 400, "{host}: {said}");
    }
    for header in [
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Mode: navigate\r\n",
        "Sec-WebSocket-Key: x\r\n",
    ] {
        for line in ["GET /x", "OPTIONS /x", "POST /x"] {
            let said = house.ask(token, line, header, "").await;
            assert_eq!(status(&said), 400, "{header}: {said}");
            assert!(!said.to_ascii_lowercase().contains("access-control-"), "{said}");
        }
    }
    assert_eq!(house.bench.vendor.connections(), 0);
    let localhost =
        format!("GET /x HTTP/1.1\r\nHost: LocalHost:{port}\r\nX-Api-Key: {token}\r\n\r\n");
    assert_eq!(status(&house.raw(localhost.as_bytes()).await), 200);
    drop(pass);
    house.finish().await;
}

#[tokio::test]
async fn k05_one_grammar_and_one_request_a_connection() {
    let house = House::new(echo()).await;
    let pass = house.admit(house.bench.reader());
    let (token, host) = (pass.token(), house.address);
    let with = format!("Host: {host}\r\nAuthorization: Bearer {token}\r\n");
    for request in [
        format!("GET http://{host}/x HTTP/1.1\r\n{with}\r\n"),
        format!("GET https://api.acme.test/x HTTP/1.1\r\n{with}\r\n"),
        format!("GET http://evil.test/x HTTP/1.1\r\n{with}\r\n"),
        format!("CONNECT api.acme.test:443 HTTP/1.1\r\n{with}\r\n"),
        format!("CONNECT /x HTTP/1.1\r\n{with}\r\n"),
        format!("OPTIONS * HTTP/1.1\r\n{with}\r\n"),
        format!("GET x HTTP/1.1\r\n{with}\r\n"),
        format!("GET /x HTTP/1.0\r\n{with}\r\n"),
        format!("GET /x HTTP/2.0\r\n{with}\r\n"),
        format!("GET /x\r\n{with}\r\n"),
        format!("GET /x HTTP/1.1\r\n{with}X: a\r\n b\r\n\r\n"),
        format!("GET /x HTTP/1.1\r\n{with}X : a\r\n\r\n"),
        format!("GET /x HTTP/1.1\r\n{with}: a\r\n\r\n"),
        format!("POST /x HTTP/1.1\r\n{with}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        format!("POST /x HTTP/1.1\r\n{with}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        format!("POST /x HTTP/1.1\r\n{with}Content-Length: +1\r\n\r\na"),
        format!("POST /x HTTP/1.1\r\n{with}Content-Length: -1\r\n\r\na"),
        format!(
            "POST /x HTTP/1.1\r\n{with}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        format!("POST /x HTTP/1.1\r\n{with}Transfer-Encoding: gzip\r\n\r\n"),
        format!("POST /x HTTP/1.1\r\n{with}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("POST /x HTTP/1.1\r\n{with}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("POST /x HTTP/1.1\r\n{with}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "\x16\x03\x01\x02\0\x01\0\x01".to_owned() + &"\0".repeat(600),
        format!("GET /x HTTP/1.1\r\n{with}X: {}\r\n\r\n", "a".repeat(80 * 1024)),
    ] {
        let before = house.bench.memory.events().len();
        let said = house.raw(request.as_bytes()).await;
        let shown: String = request.chars().take(200).collect();
        assert!(said.is_empty() || (400..500).contains(&status(&said)), "{shown}: {said}");
        assert_eq!(house.bench.vendor.connections(), 0, "{shown}");
        while house.bench.memory.events().len() == before {
            tokio::task::yield_now().await;
        }
    }
    // Chunks first, a length after: hyper goes by the chunks; what is behind
    // them is never read, as is a second request.
    let second = format!("GET /smuggled HTTP/1.1\r\n{with}\r\n");
    for first in [
        format!("GET /one HTTP/1.1\r\n{with}\r\n"),
        format!("GET /one HTTP/1.1\r\n{with}Connection: keep-alive\r\n\r\n"),
        format!(
            "GET /one HTTP/1.1\r\n{with}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
        ),
        format!("GET /one HTTP/1.1\r\n{with}Content-Length: 0\r\n\r\n"),
    ] {
        let before = house.bench.vendor.heard().len();
        let said = house.raw(format!("{first}{second}").as_bytes()).await;
        assert_eq!(
            said.matches("HTTP/1.1 ").count(),
            1 + said.matches("GET /one HTTP/1.1 ").count(),
            "{said}"
        );
        let heard = house.bench.vendor.heard();
        assert!(heard.len() - before <= 1, "{first}");
        assert!(heard.iter().all(|heard| !heard.head.contains("smuggled")), "{first}");
    }
    drop(pass);
    house.finish().await;
}

#[tokio::test]
async fn k07_no_other_protocol() {
    let house = House::new(echo()).await;
    let pass = house.admit(house.bench.reader());
    for headers in [
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "Upgrade: h2c\r\n",
        "Connection: keep-alive, upgrade\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n",
        "HTTP2-Settings: AAMAAABkAAQ\r\n",
    ] {
        let said = house.ask(pass.token(), "GET /x", headers, "early bytes").await;
        assert_eq!(status(&said), 400, "{headers}: {said}");
        assert!(!said.contains("101 "), "{said}");
    }
    assert_eq!(house.bench.vendor.connections(), 0);
    drop(pass);
    house.finish().await;
}

#[tokio::test]
async fn k06_a_write_is_held_as_in_any_run() {
    let house = House::new(echo()).await;
    let reading = house.admit(house.bench.reader());
    let said = house.ask(reading.token(), "POST /orders", "", "{}").await;
    assert!(said.contains("cambium-refusal: method_exceeds_hint"), "{said}");
    assert_eq!(status(&house.ask(reading.token(), "GET /x", "", "").await), 401, "it has ended");
    let pass = house.admit(house.bench.writer());
    house.bench.desk.will(Word::Say(Answer::Once));
    let kind = "Content-Type: application/json\r\n";
    let said = house.ask(pass.token(), "POST /orders", kind, "{\"n\":1}").await;
    assert_eq!(status(&said), 200, "{said}");
    assert_eq!(house.bench.desk.shown().pop().unwrap().body, "{\"n\":1}");
    assert_eq!(house.bench.vendor.heard().len(), 1);
    house.bench.desk.will(Word::Silent);
    let said = house.ask(pass.token(), "POST /orders", kind, "{\"n\":2}").await;
    assert!(said.contains("cambium-refusal: awaiting_approval"), "{said}");
    assert_eq!(house.bench.vendor.heard().len(), 1, "nothing was sent");
    let large = "x".repeat(11 * 1024 * 1024);
    let other = house.admit(house.bench.writer());
    let said = house.ask(other.token(), "POST /orders", "", &large).await;
    assert!(said.is_empty() || said.contains("cambium-refusal: body_too_large"), "{said}");
    drop((pass, other, reading));
    house.finish().await;
}

#[tokio::test]
async fn g03_a_cut_answer_is_not_whole_behind_the_door_either() {
    let script = |_: &Heard| {
        vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec()), Step::Close]
    };
    let house = House::new(Setup::answering(script)).await;
    let pass = house.admit(house.bench.reader());
    let said = house.ask(pass.token(), "GET /x", "", "").await;
    assert!(said.contains("transfer-encoding: chunked") && !said.ends_with("0\r\n\r\n"), "{said}");
    drop(pass);
    house.finish().await;
}

/// Long before any deadline of the door's.
const AT_ONCE: Duration = Duration::from_secs(8);

#[tokio::test]
async fn k08_what_one_token_leaves_stuck_keeps_no_other_out() {
    let house = House::new(echo()).await;
    let (pass, other) = (house.admit(house.bench.reader()), house.admit(house.bench.reader()));
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(TcpStream::connect(house.address).await.unwrap());
    }
    let mut stuck = Vec::new();
    for _ in 0..16 {
        stuck.push(house.stuck(pass.token()).await);
    }
    let said = house.ask(pass.token(), "GET /x", "", "").await;
    assert_eq!(status(&said), 429, "{said}");
    assert!(said.contains("cambium-refusal: rate_limited"), "{said}");
    let served = tokio::time::timeout(AT_ONCE, house.ask(other.token(), "GET /x", "", "")).await;
    assert_eq!(status(&served.expect("another token waits for none of it")), 200);
    drop(pass);
    let freed = async {
        for stream in stuck {
            let said = speak(stream, b"").await;
            assert!(said.contains("cambium-refusal: run_closed"), "{said}");
        }
    };
    tokio::time::timeout(AT_ONCE, freed).await.expect("a closed session keeps no place");
    drop((other, silent));
    house.finish().await;
}

#[tokio::test]
async fn k08_a_reply_nobody_reads_gives_its_place_up() {
    // More than the buffers between the two hold.
    let body = vec![b'x'; 9 * 1024 * 1024];
    let whole = body.len();
    let setup =
        Setup::answering(move |_: &Heard| answer("200 OK", "content-type: text/plain\r\n", &body));
    let limits = Limits { exchange: Duration::from_secs(1), ..Limits::default() };
    let house = House::new(Setup { limits, ..setup }).await;
    let mut pass = house.admit(house.bench.reader());
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let request = format!(
        "GET /x HTTP/1.1\r\nHost: {}\r\nX-Api-Key: {}\r\n\r\n",
        house.address,
        pass.token()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    house.bench.vendor.until_heard(1).await;
    let free = pass.unused_for(Duration::from_millis(20));
    tokio::time::timeout(Duration::from_secs(30), free).await.expect("its place is free");
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    assert!(said.len() < whole, "the door went on writing");
    drop(pass);
    house.finish().await;
}

#[tokio::test]
async fn k08_an_unused_session_and_where_a_door_may_be() {
    let house = House::new(echo()).await;
    let mut pass = house.admit(house.bench.reader());
    let token = pass.token().to_owned();
    let unused =
        tokio::time::timeout(Duration::from_secs(30), pass.unused_for(Duration::from_millis(20)));
    unused.await.expect("nobody came");
    drop(pass);
    assert_eq!(status(&house.ask(&token, "GET /x", "", "").await), 401);
    let open = DoorAt::Loopback("0.0.0.0:0".parse().unwrap());
    assert!(DoorFrame::bind(&open).await.is_err());

    let path = std::env::temp_dir().join(format!("cambium-door-{}.sock", std::process::id()));
    let frame = DoorFrame::bind(&DoorAt::Socket(path.clone())).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!((frame.address(), mode & 0o777), (None, 0o600));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let door = house.bench.proxy.serve_door(frame, &tasks, stop.clone());
    let pass = door.admit(house.bench.reader()).unwrap();
    let request =
        format!("GET /x HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {}\r\n\r\n", pass.token());
    let said = speak(UnixStream::connect(&path).await.unwrap(), request.as_bytes()).await;
    assert_eq!(status(&said), 200, "{said}");
    drop(pass);
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    assert!(!path.exists(), "the socket goes with its door");
    house.finish().await;
}
