//! Notices of what waits for a person: the webhook, its signature, its retries,
//! what is in it and what is not, and calls that never wait for it.
#![allow(clippy::unwrap_used)]
// How long a call takes is what one of them is about.
#![allow(clippy::disallowed_methods)]

mod support;

use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::Home;

const WRITE: &str = include_str!("../examples/shop__create-order.ts");
const KEY: &str = "the-key-of-the-webhook";

/// An address that answers with these statuses, one after the other; what is
/// beyond them is kept open without an answer.
fn listen(statuses: &'static [u16]) -> (u16, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, notices) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut signature) = (0, String::new());
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "cambium-signature" => signature = value.trim().to_owned(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = heard.send((String::from_utf8(body).unwrap(), signature));
            match statuses.get(number) {
                Some(status) => {
                    let _ = write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                }
                None => kept.push(stream),
            }
        }
    });
    (port, notices)
}

fn configured(port: u16) -> Home {
    let home = Home::new();
    let key = home.write("key", KEY);
    home.write(
        "config.toml",
        &format!(
            "wait_budget_seconds = 1\n[notify]\nurl = \"http://127.0.0.1:{port}/hook\"\n\
             key_file = \"{}\"\n",
            key.display()
        ),
    );
    home
}

/// An agent whose tool writes; answers how its call ended and how long it took.
fn ask(home: &Home) -> (i32, Duration) {
    let add = ["connections", "add", "shop", "--host", "localhost:9"];
    let private = ["--allow-private", "127.0.0.1/32:9"];
    home.run_with(&[&add[..], &private].concat(), "the-vendors-secret").ok();
    let made = home.run(&["agents", "create", "laptop"]).ok();
    let token = made["token"].as_str().unwrap().to_owned();
    let file = home.write("create.ts", WRITE);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "create-order"];
    home.run(&[&publish[..], &["--agent", "laptop"]].concat()).ok();
    let order = r#"{"item": "the-item-in-the-body", "quantity": 1}"#;
    let since = Instant::now();
    let held = home.run_as(&token, &["run", "shop", "create-order", "--input", order]);
    (held.code, since.elapsed())
}

#[test]
fn a_pending_ask_is_told_signed_again_until_it_is_taken_and_says_no_more_than_it_must() {
    let (port, notices) = listen(&[500, 204]);
    let home = configured(port);
    let _server = home.set_up();
    assert_eq!(ask(&home).0, 6);
    let first = notices.recv_timeout(Duration::from_secs(30)).unwrap();
    let (body, signature) = notices.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(first.0, body, "the second attempt says the same");
    let said: Value = serde_json::from_str(&body).unwrap();
    let keys: Vec<_> = said.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["event", "id", "agent", "tool", "link"]);
    assert_eq!((&said["event"], &said["agent"]), (&"ask".into(), &"laptop".into()));
    assert_eq!(said["tool"], "shop__create-order");
    assert!(said["link"].as_str().unwrap().contains("/asks/"), "{said}");
    for hidden in ["the-item-in-the-body", "the-vendors-secret", KEY] {
        assert!(!body.contains(hidden), "{hidden}: {body}");
    }
    let (time, mac) = signature.split_once(",v1=").unwrap();
    let mut hmac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
    hmac.update(format!("{}.{body}", time.strip_prefix("t=").unwrap()).as_bytes());
    let right: String = hmac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(mac, right);
    assert!(home.log().contains("a person is asked"), "{}", home.log());
    assert!(!home.log().contains(KEY));
}

#[test]
fn an_address_that_never_answers_holds_up_neither_a_call_nor_the_end() {
    let (port, notices) = listen(&[]);
    let home = configured(port);
    let server = home.set_up();
    let (code, took) = ask(&home);
    assert_eq!(code, 6);
    assert!(took < Duration::from_secs(20), "{took:?}");
    notices.recv_timeout(Duration::from_secs(30)).unwrap();
    let since = Instant::now();
    assert_eq!(server.stop(), 0);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

#[test]
fn an_address_that_may_not_be_told_is_refused_at_the_start() {
    let home = Home::new();
    home.run(&["setup", "--no-config"]).ok();
    let key = home.write("key", KEY);
    for (url, why) in [
        ("http://hooks.example.com/x", "must be https except on this machine"),
        ("ftp://127.0.0.1/x", "must begin with https://"),
        ("https://user@hooks.example.com/", "may hold no query and no user"),
        ("nothing", "must begin with https://"),
    ] {
        let text = format!("[notify]\nurl = \"{url}\"\nkey_file = \"{}\"\n", key.display());
        home.write("config.toml", &text);
        let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!((refused.code, refused.error().as_str()), (3, "config_invalid"), "{url}");
        assert!(refused.stderr.contains("notify.url") && refused.stderr.contains(why), "{url}");
    }
    home.write("config.toml", "[notify]\nurl = \"https://hooks.example.com/\"\n");
    assert_eq!(home.run(&["serve", "--listen", "127.0.0.1:0"]).code, 3);
}
