//! The stream that says that something changed: who gets one, how many, what
//! is on it, and when it ends.

use crate::house::{House, PASSPHRASE};
use cambium_engine::{DecideRequest, NewAgent, PersonCredential, WantedConnection};
use cambium_proxy::{Answer, AskId, Effect};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than anything here takes on a machine that has enough to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// One open stream, and what was heard of it and not asked for yet.
struct Line {
    stream: TcpStream,
    heard: String,
}

impl Line {
    /// Opens one and waits for its beginning.
    async fn open(house: &House, cookie: &str) -> Self {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        let head = format!(
            "GET /live HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n\
             Connection: close\r\n\r\n",
            house.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut line = Self { stream, heard: String::new() };
        let head = line.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
        assert!(head.contains("cache-control: no-store\r\n"), "{head}");
        line.until("retry: 2000\n\n").await;
        line
    }

    /// Reads up to a word and answers what came, the word included.
    async fn until(&mut self, word: &str) -> String {
        loop {
            if let Some(at) = self.heard.find(word) {
                let rest = self.heard.split_off(at + word.len());
                return std::mem::replace(&mut self.heard, rest);
            }
            assert!(self.read().await, "the stream ended before `{word}`: {}", self.heard);
        }
    }

    /// Reads to the end and answers what came.
    async fn rest(mut self) -> String {
        while self.read().await {}
        self.heard
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await;
        let read = read.expect("nothing came").unwrap();
        self.heard.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        read > 0
    }
}

fn event(name: &str) -> String {
    format!("event: {name}\ndata:\n\n")
}

#[tokio::test]
async fn a_stream_is_a_sessions_and_of_our_own_pages_only() {
    let (house, _) = House::with_ask("live-refused", Effect::Write).await;
    let (cookie, _) = house.log_in().await;
    let (address, token) = (house.address, &house.agent_token);
    for planted in
        ["", "cambium_session=", "cambium_session=x", &format!("cambium_session={token}")]
    {
        let refused = house.get("/live", planted).await;
        assert_eq!(refused.status, 401, "{planted}");
        assert!(refused.body.contains("session_required"), "{}", refused.body);
    }
    let bearer =
        format!("GET /live HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    assert_eq!(house.send(&bearer, "").await.status, 401);
    for (host, more, status) in [
        ("evil.test", "", 421),
        (&*address.to_string(), "Origin: http://evil.test\r\n", 403),
        (&*address.to_string(), "Origin: null\r\n", 403),
        // Another port of this machine is the same site: the cookie came along.
        (&*address.to_string(), "Sec-Fetch-Site: same-site\r\n", 403),
        (&*address.to_string(), "Sec-Fetch-Site: cross-site\r\n", 403),
        (&*address.to_string(), "Sec-Fetch-Site: none\r\n", 403),
    ] {
        let head = format!("GET /live HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{more}");
        assert_eq!(house.send(&head, "").await.status, status, "{host} {more}");
    }
    let origin = format!("Origin: http://{address}\r\n");
    assert_eq!(house.post_from("/live", &cookie, &origin, "").await.status, 405);
}

#[tokio::test]
async fn what_changed_is_named_and_nothing_of_it_is_told() {
    let (house, id) = House::with_ask("live-told", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let mut line = Line::open(&house, &cookie).await;
    let caller = house.engine.authenticate(&house.agent_token).await.unwrap();
    assert!(line.until(&event("lists")).await.ends_with(&event("lists")), "a harness called");

    // An ask appears: what the agent wrote is nowhere on the stream.
    let wanted = WantedConnection {
        vendor: "bank".into(),
        primary_host: "api.bank.com".into(),
        scheme: "bearer".into(),
        display_name: Some("Mallory's bank".into()),
        ..Default::default()
    };
    let asked = house.engine.propose_connection(&caller, wanted).await.unwrap();
    let mut all = line.until(&event("asks")).await;
    assert!(house.get("/asks", &cookie).await.body.contains("a connection to bank"));
    // It is answered; another is decided.
    let link = asked.ask.unwrap().link;
    let path = &link[link.find("/handoff/").unwrap()..];
    assert_eq!(house.post(path, &cookie, &format!("form={form}&answer=refuse")).await.status, 303);
    all += &line.until(&event("asks")).await;
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let request =
        DecideRequest { ask: AskId::new(id), answer: Answer::Deny, channel: "console".into() };
    house.engine.decide(&proof, request).await.unwrap();
    all += &line.until(&event("asks")).await;

    let new = NewAgent { name: "laptop".into(), cap: 20, idle_days: 21 };
    house.engine.create_agent(&proof, new).await.unwrap();
    all += &line.until(&event("lists")).await;
    let body = format!("form={form}&agent={}&input=%7B%7D", caller.agent().id);
    assert_eq!(house.post("/toolbox/acme__pay", &cookie, &body).await.status, 200);
    all += &line.until(&event("runs")).await;
    house.stop.cancel();
    all += &line.rest().await;

    // Chunks of HTTP apart, there are the names and no data at all.
    for text in all.split("\r\n").filter(|text| text.contains('\n')) {
        let left = ["asks", "lists", "runs"]
            .iter()
            .fold(text.to_owned(), |text, name| text.replace(&event(name), ""));
        assert_eq!(left, "", "{all}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_with_the_server() {
    let (house, _) = House::with_ask("live-ends", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let (other, _) = house.log_in().await;
    let (mine, mut theirs) = (Line::open(&house, &cookie).await, Line::open(&house, &other).await);
    assert_eq!(house.post("/logout", &cookie, &format!("form={form}")).await.status, 303);
    assert!(mine.rest().await.ends_with("0\r\n\r\n"), "it ended in order");
    assert_eq!(house.get("/live", &cookie).await.status, 401);
    // The other session's goes on, until its passphrase is another.
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let new = NewAgent { name: "laptop".into(), cap: 20, idle_days: 21 };
    house.engine.create_agent(&proof, new).await.unwrap();
    theirs.until(&event("lists")).await;
    let changed = PersonCredential::Passphrase("another battery staple".into());
    house.engine.set_passphrase(&proof, changed).await.unwrap();
    theirs.rest().await;
    assert_eq!(house.get("/live", &other).await.status, 401);

    let back = PersonCredential::Passphrase(PASSPHRASE.into());
    house.engine.set_passphrase(&proof, back).await.unwrap();
    let (cookie, _) = house.log_in().await;
    let line = Line::open(&house, &cookie).await;
    house.stop.cancel();
    line.rest().await;
}

#[tokio::test]
async fn a_session_has_four_streams_and_all_of_them_thirty_two() {
    let (house, _) = House::with_ask("live-full", Effect::Write).await;
    let mut open = Vec::new();
    let mut first = String::new();
    for _ in 0..8 {
        let (cookie, _) = house.log_in().await;
        for _ in 0..4 {
            open.push(Line::open(&house, &cookie).await);
        }
        let full = house.get("/live", &cookie).await;
        assert_eq!(full.status, 429);
        assert!(full.body.contains("streams_full"), "{}", full.body);
        first = cookie;
    }
    let (fresh, _) = house.log_in().await;
    assert_eq!(house.get("/live", &fresh).await.status, 429, "all of them are taken");
    assert_eq!(house.get("/asks", &fresh).await.status, 200, "a page needs none");
    // Who goes makes room: a closed connection is found at the latest when something is told.
    drop(open.pop());
    let code = house.engine.issue_code().await.unwrap();
    let proof = house.engine.prove_person(PersonCredential::Code(code)).await.unwrap();
    let room = async {
        loop {
            let new = house.engine.agents().await.unwrap().remove(0);
            house.engine.set_agent(&proof, &new.id, None, None, None, None).await.unwrap();
            open[0].until(&event("lists")).await;
            let mut stream = TcpStream::connect(house.address).await.unwrap();
            let head =
                format!("GET /live HTTP/1.1\r\nHost: {}\r\nCookie: {first}\r\n\r\n", house.address);
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.unwrap();
            if &status == b"HTTP/1.1 200" {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, room).await.expect("a place comes back");
}
