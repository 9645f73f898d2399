//! Calls and answers of token endpoints.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn d09_lifetimes() {
    for (said, seconds) in [
        ("0", 0),
        ("-1", 0),
        ("30", 0),
        ("46", 1),
        ("\"3600\"", 3600 - MARGIN_S),
        ("3600", 3600 - MARGIN_S),
        ("3600.5", 3600 - MARGIN_S),
        ("1e12", LONGEST_S - MARGIN_S),
        ("1e400", UNSAID_S - MARGIN_S),
        ("\"soon\"", UNSAID_S - MARGIN_S),
        ("\"NaN\"", UNSAID_S - MARGIN_S),
        ("\"inf\"", LONGEST_S - MARGIN_S),
        ("null", UNSAID_S - MARGIN_S),
        ("[1]", UNSAID_S - MARGIN_S),
    ] {
        let body = format!("{{\"access_token\":\"a\",\"expires_in\":{said}}}");
        match read(200, body.as_bytes()) {
            Ok(granted) => assert_eq!(granted.lifetime_s, seconds, "{said}"),
            // Not every reader of JSON takes a number this large.
            Err(why) => assert!(said == "1e400" && why.contains("JSON"), "{said}: {why}"),
        }
    }
    assert_eq!(read(200, b"{\"access_token\":\"a\"}").unwrap().lifetime_s, UNSAID_S - MARGIN_S);
}

#[test]
fn d13_answers_without_a_usable_token() {
    for (status, body, said) in [
        (200, "", "not the JSON"),
        (200, "[]", "not the JSON"),
        (200, "<html>", "not the JSON"),
        (200, "{}", "without a token"),
        (200, "{\"error\":\"invalid_grant\"}", "without a token (invalid_grant)"),
        (200, "{\"access_token\":\"\"}", "fits in no header"),
        (200, "{\"access_token\":\"a b\"}", "fits in no header"),
        (200, "{\"access_token\":\"a\\r\\nb\"}", "fits in no header"),
        (200, "{\"access_token\":\"a\",\"refresh_token\":\"\\n\"}", "fits in no header"),
        (200, "{\"access_token\":7}", "not the JSON"),
        (200, "{\"access_token\":\"a\",\"token_type\":\"mac\"}", "no bearer token"),
        (201, "{\"access_token\":\"a\"}", "answered 201"),
        (302, "{\"access_token\":\"a\"}", "answered 302"),
        (400, "{\"error\":\"invalid_client\"}", "answered 400 (invalid_client)"),
        (400, "{\"error\":\"<b>look here</b>\"}", "answered 400"),
        (503, "gone", "answered 503"),
    ] {
        let why = read(status, body.as_bytes()).err().unwrap();
        assert!(why.ends_with(said) || why.contains(said), "{body}: {why}");
        assert!(!why.contains("look here"));
    }
}

#[test]
fn d06_what_is_said_to_an_endpoint() {
    let endpoint: Endpoint = "https://id.acme.test/token".parse().unwrap();
    let call = |auth| {
        let client = Client { endpoint: &endpoint, id: "me:1", auth, secret: Some(b"s e&c") };
        let fields = [("grant_type", "client_credentials"), ("scope", "a b"), ("audience", "")];
        client.call(&fields).unwrap()
    };
    let basic = call(ClientAuth::Basic);
    assert_eq!(*basic.body, "grant_type=client_credentials&scope=a+b");
    let sent = basic.headers[0].1.to_str().unwrap();
    assert_eq!(sent, format!("Basic {}", STANDARD.encode("me%3A1:s+e%26c")));
    assert!(basic.headers[0].1.is_sensitive());
    let body = call(ClientAuth::Body);
    assert!(body.headers.is_empty());
    assert!(body.body.ends_with("&client_id=me%3A1&client_secret=s+e%26c"));
    assert!(call(ClientAuth::None).body.ends_with("scope=a+b&client_id=me%3A1"));
}
