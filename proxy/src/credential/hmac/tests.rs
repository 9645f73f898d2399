//! Signatures over fixed messages.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

fn wire(target: &'static str) -> Wire<'static> {
    Wire {
        method: "POST",
        authority: "api.acme.test",
        target,
        headers: &[],
        body: b"{}",
        now_ms: 1_700_000_000_123,
    }
}

fn signed(scheme: serde_json::Value, secret: &[u8], target: &'static str) -> Vec<(String, String)> {
    let scheme: HmacScheme = serde_json::from_value(scheme).unwrap();
    let signed = sign(&scheme, secret, &wire(target)).unwrap();
    assert!(signed.headers.iter().all(|(_, value)| value.is_sensitive()));
    let text = |(name, value): (HeaderName, HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
    };
    signed.headers.into_iter().map(text).collect()
}

#[test]
fn d19_the_query_string_signed_as_unleashed_does() {
    let scheme = json!({
        "key_id": "id", "message": "{query}",
        "headers": {"api-auth-id": "{key_id}", "api-auth-signature": "{signature}"},
    });
    // RFC 4231, case 2: the key and the message are given, the digest is known.
    let headers = signed(scheme.clone(), b"Jefe", "/Products?what do ya want for nothing?");
    let digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let bytes: Vec<u8> =
        (0..64).step_by(2).map(|at| u8::from_str_radix(&digest[at..at + 2], 16).unwrap()).collect();
    assert_eq!(headers[0], ("api-auth-id".into(), "id".into()));
    assert_eq!(headers[1], ("api-auth-signature".into(), STANDARD.encode(bytes)));
    // Without a query the empty text is signed.
    assert_ne!(signed(scheme, b"Jefe", "/Products")[1], headers[1]);
}

#[test]
fn d19_every_placeholder_and_encoding() {
    let scheme = json!({
        "algorithm": "sha512", "encoding": "hex", "key_encoding": "hex", "key_id": "k",
        "message": "{method}\\n{host}\\n{path}\\n{query}\\n{target}\\n{body}\\n{body_sha256}\\n{timestamp}\\n{timestamp_ms}\\n{key_id}",
        "headers": {"x-sign": "v1 {timestamp} {signature}"},
    });
    let message = format!(
        "POST\napi.acme.test\n/a\nb=1\n/a?b=1\n{{}}\n{}\n1700000000\n1700000000123\nk",
        hex(&Sha256::digest(b"{}"))
    );
    let expected = hex(&mac(HmacAlgorithm::Sha512, &[0x4a, 0x65], message.as_bytes()).unwrap());
    let headers = signed(scheme, b"4a65", "/a?b=1");
    assert_eq!(headers[0].1, format!("v1 1700000000 {expected}"));
}

#[test]
fn d19_a_nonce_is_new_each_time() {
    let scheme = json!({
        "message": "{nonce}", "headers": {"x-nonce": "{nonce}", "x-sign": "{signature}"},
    });
    let (one, two) = (signed(scheme.clone(), b"k", "/"), signed(scheme, b"k", "/"));
    assert_ne!(one, two);
    let expected = mac(HmacAlgorithm::Sha256, b"k", one[0].1.as_bytes()).unwrap();
    assert_eq!(one[1].1, STANDARD.encode(expected));
}
