//! A session for a sandbox outside, by the commands a person has: a client that
//! is no module of ours reaches a vendor through the listener, with a token that
//! is worth nothing after the session.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use support::Home;
use vendor::Vendor;

/// One request of a client outside; its answer, whole.
fn ask(pass: &Value, line: &str, body: &str) -> String {
    let address = pass["baseUrl"].as_str().unwrap().strip_prefix("http://").unwrap();
    let token = pass["token"].as_str().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A read has no length to speak of.
    let head = if body.is_empty() { head.replace("Content-Length: 0\r\n", "") } else { head };
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(!said.contains("shop-token"), "{said}");
    said
}

fn open(home: &Home, more: &[&str]) -> Value {
    let open = ["sandbox", "open", "--agent", "one", "--connection", "shop"];
    home.run(&[&open[..], more].concat()).ok()
}

#[test]
fn k03_a_session_outside_lives_until_it_is_closed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let shop = runtime.block_on(Vendor::open("shop-token")).unwrap();
    let home = Home::new();
    let server = home.set_up();
    support::connect_shop(&home, shop.address.port(), &shop.ca_pem);
    home.run(&["agents", "create", "one"]).ok();
    let off = home.run(&["sandbox", "open", "--agent", "one", "--connection", "shop"]);
    assert_eq!(off.error(), "sandbox_listener_off", "off unless a person wrote it down");
    assert_eq!(server.stop(), 0);

    home.write("config.toml", "[sandbox]\nlisten = \"127.0.0.1:0\"\n");
    let server = home.serve();
    let mut unproven = home.command(&["sandbox", "open", "--agent", "one", "--connection", "shop"]);
    let unproven = support::ended(unproven.env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap());
    assert_ne!(unproven.code, 0, "it takes a person");
    let pass = open(&home, &[]);
    let said = ask(&pass, "GET /orders?limit=1", "");
    assert!(said.starts_with("HTTP/1.1 200 OK") && said.contains("{\"orders\":["), "{said}");
    assert_eq!(home.run(&["sandbox", "list"]).ok()[0], pass["run"]);
    let rows = home.run(&["audit", "list"]).ok().to_string();
    assert!(rows.contains(pass["run"].as_str().unwrap()), "{rows}");
    let run = pass["run"].as_str().unwrap();
    home.run(&["sandbox", "close", run]).ok();
    let said = ask(&pass, "GET /orders?limit=1", "");
    assert!(said.starts_with("HTTP/1.1 401") && said.contains("run_closed"), "{said}");
    assert_eq!(home.run(&["sandbox", "close", run]).error(), "run_not_found");
    let outcome = loop {
        let outcome = home.run(&["runs", "show", run]).ok()["outcome"].clone();
        if !outcome.is_null() {
            break outcome;
        }
    };
    assert_eq!(outcome, "ok");

    // Without --write a write ends the session.
    let pass = open(&home, &[]);
    let said = ask(&pass, "POST /orders", "{\"item\":\"x\"}");
    assert!(said.contains("method_exceeds_hint"), "{said}");
    assert!(ask(&pass, "GET /orders?limit=1", "").contains("run_closed"));

    // With it each is held for a person, and goes as it was shown.
    let pass = open(&home, &["--write"]);
    let written = std::thread::spawn(move || {
        ask(&pass, "POST /orders", "{\"item\":\"oak chair\",\"quantity\":1}")
    });
    let waiting = loop {
        let open = home.run(&["approvals", "list", "--open"]).ok();
        if let Some(ask) = open[0]["id"].as_str() {
            break ask.to_owned();
        }
    };
    let posts = || shop.received().into_iter().filter(|heard| heard.method == "POST").count();
    assert_eq!(posts(), 0);
    home.run(&["approvals", "allow", &waiting, "--once"]).ok();
    let said = written.join().unwrap();
    assert!(said.starts_with("HTTP/1.1 201") || said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(posts(), 1);
    // An open session does not keep the server.
    assert_eq!(server.stop(), 0);
    runtime.block_on(shop.close());
}
