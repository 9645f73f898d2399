//! Signing in at a vendor's, from the command line's link over a browser's
//! requests to a tool's first call, on the real binary and a raw vendor over TLS.
#![allow(clippy::unwrap_used)]
// A test is a browser, and dials the server it started.
#![allow(clippy::disallowed_methods)]

mod support;

use cambium_sandbox_tests::vendor::{Heard, Step, Vendor, answer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use support::{Home, PASSPHRASE, Server};

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const CLIENT_SECRET: &str = "cl1ent-S3CRET-0123456789";
const CODE: &str = "c0de-S3CRET-0123456789";

/// Gives out a token for the code, and orders for the token.
fn vendor(heard: &Heard) -> Vec<Step> {
    let body = String::from_utf8_lossy(&heard.body).into_owned();
    if heard.line().starts_with("POST /oauth/token ") {
        let holds = body.contains(&format!("code={CODE}&")) && body.contains("&code_verifier=");
        assert!(holds && heard.header("authorization").len() == 1, "{body}");
        let tokens = r#"{"access_token":"at-S3CRET-0123456789","refresh_token":"rt-S3CRET-0123456789","expires_in":3600}"#;
        return answer("200 OK", "content-type: application/json\r\n", tokens.as_bytes());
    }
    if heard.header("authorization") != ["Bearer at-S3CRET-0123456789"] {
        return answer("401 Unauthorized", "", b"");
    }
    let orders = r#"{"orders":[{"id":1,"item":"at-S3CRET-0123456789"}]}"#;
    answer("200 OK", "content-type: application/json\r\n", orders.as_bytes())
}

/// Status, headers and body of one request of a browser's.
fn browse(server: &Server, method: &str, path: &str, cookie: &str, form: &str) -> (u16, String) {
    let host = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let origin =
        if method == "POST" { format!("Origin: {}\r\n", server.url) } else { String::new() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Cookie: {cookie}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    text.split_once(before).unwrap().1.split_once(after).unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d12_from_the_link_to_the_first_call() {
    let vendor = Vendor::start(&["localhost"], Arc::new(vendor)).await;
    let port = vendor.address.port();
    let home = Home::new();
    let server = home.set_up();
    let ca = home.write("ca.pem", &vendor.ca_pem);
    let base = format!("https://localhost:{port}");
    let made = home.run_with(
        &[
            "connections",
            "add",
            "shop",
            "--host",
            &format!("localhost:{port}"),
            "--allow-private",
            &format!("127.0.0.1/32:{port}"),
            "--ca",
            ca.to_str().unwrap(),
            "--scheme",
            "oauth2_authorization_code",
            "--set",
            &format!("authorization_url={base}/authorize"),
            "--set",
            &format!("token_url={base}/oauth/token"),
            "--set",
            "client_id=me",
            "--set",
            "parameters.access_type=offline",
        ],
        CLIENT_SECRET,
    );
    let made = made.ok();
    assert_eq!(made["status"], "pending");
    let page = format!("{}/connections/shop/authorize", server.url);
    assert_eq!(made["authorize"], page.as_str());
    home.run(&["agents", "create", "laptop"]).ok();
    let tool = home.write("list.ts", READ);
    let publish = ["publish", tool.to_str().unwrap(), "--vendor", "shop", "--name", "list-orders"];
    let run = ["run", "shop", "list-orders", "--agent", "laptop", "--input", "{}"];
    let before = home.run(&publish);
    assert_ne!(before.code, 0, "published for a connection that cannot be used yet");

    let (status, login) = browse(
        &server,
        "POST",
        "/login",
        "",
        &format!("passphrase={}", PASSPHRASE.replace(' ', "+")),
    );
    assert_eq!(status, 303);
    let cookie = between(&login, "set-cookie: ", ";").to_owned();
    let path = "/connections/shop/authorize";
    let (_, shown) = browse(&server, "GET", path, &cookie, "");
    let form = between(&shown, "name=\"form\" value=\"", "\"").to_owned();
    let (status, linked) = browse(&server, "POST", path, &cookie, &format!("form={form}"));
    assert_eq!(status, 200, "{linked}");
    let link = between(&linked, "<a href=\"https://", "\"").replace("&#38;", "&");
    assert!(link.starts_with(&format!("localhost:{port}/authorize?")), "{link}");
    assert!(link.ends_with("&access_type=offline"), "{link}");
    let state = between(&link, "&state=", "&").to_owned();

    // The vendor sends the browser back; the cookie is not sent from there.
    let back = format!("/oauth/callback?code={CODE}&state={state}");
    let (status, returned) = browse(&server, "GET", &back, "", "");
    assert_eq!((status, vendor.heard().len()), (200, 0));
    let onward = between(&returned, "content=\"0; url=", "\"").replace("&#38;", "&");
    let (status, done) = browse(&server, "GET", &onward, &cookie, "");
    assert_eq!(status, 303, "{done}");
    let (status, _) = browse(&server, "GET", &onward, &cookie, "");
    assert_eq!(status, 400, "an answer counted twice");
    assert_eq!(vendor.heard().len(), 1);

    home.run(&publish).ok();
    let ran = home.run(&run).ok();
    assert!(ran.to_string().contains("[REDACTED:shop]"), "{ran}");
    assert_eq!(vendor.heard().len(), 2);
    let rows = home.run(&["audit", "list"]).ok().to_string();
    assert!(rows.contains("\"token\"") && rows.contains("/oauth/token"), "{rows}");
    assert_eq!(server.stop(), 0);
    let mut kept = home.log().into_bytes();
    kept.extend(rows.bytes());
    for entry in std::fs::read_dir(home.data_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            kept.extend(std::fs::read(path).unwrap());
        }
    }
    let found = kept.windows(6).any(|six| six == b"S3CRET");
    assert!(!found, "a secret is kept or logged");
}
