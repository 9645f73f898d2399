//! Rows D18 to D21 and H3 for schemes that sign: over the final bytes, by a
//! template the connection fixes, with keys that never leave, and certificates
//! that never share a socket.
#![allow(clippy::unwrap_used, missing_docs)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cambium_proxy::{Answer, AuditKind, ConnectionId, Proxy, Scheme, Secret};
use cambium_sandbox_tests::bench::{
    Bench, IssuerSetup, SECRET, Setup, request, with_body, with_headers,
};
use cambium_sandbox_tests::memory::Word;
use cambium_sandbox_tests::vendor::{Heard, Identity, answer};
use std::sync::Arc;

const RSA: &str = include_str!("../../proxy/src/credential/jwt/rsa.pem");
const EC: &str = include_str!("../../proxy/src/credential/jwt/ec.pem");

fn scheme(json: serde_json::Value) -> Scheme {
    serde_json::from_value(json).unwrap()
}

/// Echoes the request's head and body.
fn echo(heard: &Heard) -> Vec<cambium_sandbox_tests::vendor::Step> {
    answer("200 OK", "", &[heard.head.as_bytes(), b"\r\n\r\n", &heard.body[..]].concat())
}

fn unleashed() -> Scheme {
    scheme(serde_json::json!({
        "scheme": "hmac", "key_id": "the-id", "message": "{query}",
        "headers": {"api-auth-id": "{key_id}", "api-auth-signature": "{signature}"},
    }))
}

fn aws(service: &str) -> Scheme {
    scheme(serde_json::json!({
        "scheme": "aws_sigv4", "access_key_id": "AKIDEXAMPLE", "region": "eu-west-1",
        "service": service,
    }))
}

#[tokio::test]
async fn d19_a_module_chooses_neither_message_nor_place_of_a_signature() {
    let bench = Bench::start(Setup { scheme: unleashed(), ..Setup::answering(echo) }).await;
    let mine: &[(&str, &[u8])] =
        &[("api-auth-signature", b"mine"), ("api-auth-id", b"mine"), ("Authorization", b"mine")];
    let mut signatures = Vec::new();
    for target in ["/Products?a=1&b=2", "/Products?a=1&b=3", "/Other?a=1&b=2", "/Products"] {
        let asked = with_headers("GET", target, mine);
        let got = bench.send(&bench.reader(), asked).await.unwrap();
        let heard = bench.vendor.heard().pop().unwrap();
        assert_eq!(heard.header("api-auth-id"), ["the-id"]);
        assert!(heard.header("authorization").is_empty());
        let [signature] = heard.header("api-auth-signature")[..] else { panic!("{}", heard.head) };
        assert_eq!(STANDARD.decode(signature).unwrap().len(), 32);
        assert!(got.text().contains("api-auth-signature: [REDACTED:acme]"), "{}", got.text());
        bench.hide(signature);
        signatures.push(signature.to_owned());
        assert_eq!(bench.row(AuditKind::Intent).await.notes.len(), 3);
    }
    // The query alone is signed, as the connection says.
    assert_ne!(signatures[0], signatures[1]);
    assert_eq!(signatures[0], signatures[2]);
    bench.finish().await;
}

#[tokio::test]
async fn d19_a_body_is_signed_as_it_was_shown_and_is_sent() {
    let scheme = scheme(serde_json::json!({
        "scheme": "hmac", "encoding": "hex", "message": "{method} {target} {body}",
        "headers": {"x-signature": "sha256={signature}"},
    }));
    let bench = Bench::start(Setup { scheme, ..Setup::answering(echo) }).await;
    bench.desk.will(Word::Say(Answer::Once));
    let body = "{\"n\":1}";
    let got = bench.send(&bench.writer(), with_body("POST", "/orders?x=1", body)).await.unwrap();
    let heard = bench.vendor.heard().pop().unwrap();
    assert_eq!(heard.body, body.as_bytes());
    let signature = heard.header("x-signature")[0].strip_prefix("sha256=").unwrap().to_owned();
    assert_eq!(signature.len(), 64);
    assert!(got.text().contains("x-signature: sha256=[REDACTED:acme]"), "{}", got.text());
    bench.hide(signature);
    bench.finish().await;
}

#[tokio::test]
async fn d18_aws_signs_what_is_sent_last() {
    for (service, secret, token) in [
        ("dynamodb", SECRET.to_owned(), false),
        ("s3", format!("{SECRET}\nS3SSI0N-TOKEN-1234567890"), true),
    ] {
        let secret: &'static str = secret.leak();
        let setup = Setup { scheme: aws(service), secret: Some(secret), ..Setup::answering(echo) };
        let bench = Bench::start(setup).await;
        bench.hide(SECRET);
        bench.hide("S3SSI0N-TOKEN-1234567890");
        let mine: &[(&str, &[u8])] = &[
            ("x-amz-date", b"19700101T000000Z"),
            ("x-amz-security-token", b"mine"),
            ("accept", b"*/*"),
        ];
        let target = "/a%20b?z=1&X-Amz-Signature=mine&x-amz-credential=mine&a=2";
        let got = bench.send(&bench.reader(), with_headers("GET", target, mine)).await.unwrap();
        let heard = bench.vendor.heard().pop().unwrap();
        assert_eq!(heard.line(), "GET /a%20b?z=1&a=2 HTTP/1.1", "a second signature was sent");
        let authorization = heard.header("authorization").concat();
        let token_header = if token { ";x-amz-security-token" } else { "" };
        let signed =
            format!("SignedHeaders=accept;host;x-amz-content-sha256;x-amz-date{token_header}, ");
        assert!(authorization.contains(&signed), "{authorization}");
        assert!(authorization.contains(&format!("/eu-west-1/{service}/aws4_request")));
        assert_eq!(heard.header("x-amz-date").len(), 1);
        assert_eq!(heard.header("x-amz-security-token").len(), usize::from(token));
        let signature = authorization.rsplit_once("Signature=").unwrap().1;
        assert!(!got.text().contains(signature), "the signature came back");
        bench.hide(signature);
        bench.finish().await;
    }
}

#[tokio::test]
async fn d18_a_clock_that_is_off_is_said() {
    for (date, status, code) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "403 Forbidden", Some("clock_skew")),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "400 Bad Request", Some("clock_skew")),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "200 OK", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "500 Oops", None),
        ("yesterday", "403 Forbidden", None),
    ] {
        let script = move |_: &Heard| answer(status, &format!("date: {date}\r\n"), b"no");
        let bench = Bench::start(Setup { scheme: aws("s3"), ..Setup::answering(script) }).await;
        let got = bench.send(&bench.reader(), request("GET", "/x")).await;
        assert_eq!(got.err().map(|refusal| refusal.code()), code, "{date} {status}");
        // A write that was refused so is not in doubt.
        bench.desk.will(Word::Say(Answer::Once));
        let got = bench.send(&bench.writer(), with_body("POST", "/orders", "{}")).await;
        assert_eq!(got.err().map(|refusal| refusal.code()), code, "{date} {status}");
        bench.finish().await;
    }
}

fn jwt(base: &str) -> Scheme {
    scheme(serde_json::json!({
        "scheme": "jwt_assertion", "issuer": "me", "audience": base, "token_url": format!("{base}/token"),
    }))
}

#[tokio::test]
async fn d20_a_signed_token_is_sent_or_exchanged() {
    let direct = |algorithm: &str| {
        scheme(serde_json::json!({
            "scheme": "jwt_assertion", "algorithm": algorithm, "issuer": "A.B.{fingerprint}",
            "subject": "A.B", "lifetime_seconds": 3600,
        }))
    };
    for (scheme, secret) in [(direct("rs256"), RSA), (direct("es256"), EC)] {
        let bench =
            Bench::start(Setup { scheme, secret: Some(secret), ..Setup::answering(echo) }).await;
        for _ in 0..2 {
            let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
            assert!(got.text().contains("authorization: Bearer [REDACTED:acme]"), "{}", got.text());
        }
        let heard = bench.vendor.heard();
        let sent: Vec<String> =
            heard.iter().map(|heard| heard.header("authorization").concat()).collect();
        assert_eq!(sent[0], sent[1], "signed anew though still good");
        bench.hide(sent[0].strip_prefix("Bearer ").unwrap());
        bench.clock.advance(std::time::Duration::from_secs(3580));
        bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        let last = bench.vendor.heard().pop().unwrap().header("authorization").concat();
        assert_ne!(last, sent[0], "a token that is over was sent");
        bench.finish().await;
    }
    let script = |heard: &Heard| {
        let body = String::from_utf8(heard.body.clone()).unwrap();
        let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=ey";
        assert!(body.starts_with(grant), "{body}");
        answer("200 OK", "", b"{\"access_token\":\"exchanged-t0ken-1234\",\"expires_in\":3600}")
    };
    let issuer = Some(IssuerSetup { script: Arc::new(script), scheme: jwt });
    let bench = Bench::start(Setup { issuer, secret: Some(RSA), ..Setup::answering(echo) }).await;
    bench.hide("exchanged-t0ken-1234");
    let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
    assert!(got.text().contains("Bearer [REDACTED:acme]"));
    let sent = bench.vendor.heard().pop().unwrap();
    assert_eq!(sent.header("authorization"), ["Bearer exchanged-t0ken-1234"]);
    bench.finish().await;
}

#[tokio::test]
async fn d16_keys_and_certificates_refused_at_entry() {
    let (one, two) = (Identity::new("one"), Identity::new("two"));
    let certificate = one.pem.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap();
    let other_key = two.pem.split_once("-----END CERTIFICATE-----\n").unwrap().1;
    let rs256 = scheme(serde_json::json!({"scheme": "jwt_assertion", "issuer": "me"}));
    for (scheme, secret) in [
        (rs256.clone(), "key".to_owned()),
        (rs256.clone(), EC.to_owned()),
        (Scheme::Mtls, "x".to_owned()),
        (Scheme::Mtls, certificate.to_owned()),
        (Scheme::Mtls, other_key.to_owned()),
        (Scheme::Mtls, format!("{certificate}{other_key}")),
        (aws("s3"), "a b".to_owned()),
        (aws("s3"), "a\nb\nc".to_owned()),
        (unleashed(), "a\nb".to_owned()),
    ] {
        let fault = Proxy::check_secret(&scheme, Some(&Secret::new(secret.into()))).unwrap_err();
        assert_eq!(fault.field, "secret", "{fault}");
    }
    for (scheme, secret) in [(rs256, RSA.to_owned()), (Scheme::Mtls, one.pem)] {
        Proxy::check_secret(&scheme, Some(&Secret::new(secret.into()))).unwrap();
    }
}

#[tokio::test]
async fn d21_two_certificates_for_one_host_never_share_a_socket() {
    let (one, two) = (Identity::new("one"), Identity::new("two"));
    let certificates = [one.certificate.clone(), two.certificate.clone()];
    let pems = [one.pem.clone(), two.pem.clone()];
    let setup =
        Setup { scheme: Scheme::Mtls, secret: None, clients: vec![one, two], ..Setup::default() };
    let mut bench = Bench::start(setup).await;
    let connections: Vec<_> = ["one", "two"]
        .iter()
        .map(|name| {
            let mut connection = bench.connection.clone();
            connection.id = ConnectionId::new(*name);
            connection
        })
        .collect();
    for (connection, pem) in connections.iter().zip(pems) {
        bench.memory.put_connection(connection.clone());
        bench.proxy.seal(connection, Secret::new(pem.into())).await.unwrap();
    }
    for number in [0, 1, 0, 1, 0] {
        bench.connection = connections[number].clone();
        let got = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap();
        assert_eq!(got.status, 200);
        let heard = bench.vendor.heard().pop().unwrap();
        assert_eq!(heard.peer.as_ref(), Some(&certificates[number]));
        assert!(heard.header("authorization").is_empty());
    }
    assert_eq!(bench.vendor.connections(), 2, "a pool was not used, or shared");
    bench.finish().await;
}

#[tokio::test]
async fn d21_without_its_certificate_a_vendor_is_not_reached() {
    let setup = Setup { clients: vec![Identity::new("one")], ..Setup::default() };
    let bench = Bench::start(setup).await;
    let refused = bench.send(&bench.reader(), request("GET", "/x")).await.unwrap_err();
    assert!(["tls_failed", "upstream_truncated"].contains(&refused.code()), "{refused}");
    assert!(bench.vendor.heard().is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn i02_a_dry_run_signs_nothing_it_stops() {
    for scheme in [unleashed(), aws("s3")] {
        let name = scheme.name();
        let bench = Bench::start(Setup { scheme, ..Setup::default() }).await;
        let got = bench.send(&bench.dry(), with_body("POST", "/x", "{}")).await.unwrap();
        assert!(got.intercepted && got.text().contains(&format!("{name}, acme")));
        assert_eq!(bench.vendor.connections(), 0);
        bench.finish().await;
    }
}
