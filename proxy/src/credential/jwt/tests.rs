//! Tokens signed with keys made for these tests, verified with their public half.
#![allow(clippy::unwrap_used)]

use super::*;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

/// Keys of these tests alone, and what openssl says of their public halves.
const RSA: &str = include_str!("rsa.pem");
const EC: &str = include_str!("ec.pem");

fn scheme(json: serde_json::Value) -> JwtScheme {
    serde_json::from_value(json).unwrap()
}

fn part(text: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

#[test]
fn d20_what_is_claimed_and_that_it_verifies() {
    for (pem, algorithm, name) in [(RSA, "rs256", "RS256"), (EC, "es256", "ES256")] {
        let scheme = scheme(serde_json::json!({
            "algorithm": algorithm, "issuer": "ACME.ME.{fingerprint}", "subject": "ACME.ME",
            "audience": "https://acme.test", "key_id": "one", "lifetime_seconds": 900,
        }));
        let token = sign(&scheme, pem.as_bytes(), 1_700_000_000_000).unwrap();
        let mut parts = token.split('.');
        let (head, claims, signature) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        assert_eq!(part(head), serde_json::json!({"alg": name, "typ": "JWT", "kid": "one"}));
        let claims = part(claims);
        let issuer = claims["iss"].as_str().unwrap();
        assert!(issuer.starts_with("ACME.ME.SHA256:") && issuer.ends_with('='), "{issuer}");
        assert_eq!(claims["sub"], "ACME.ME");
        assert_eq!(claims["iat"], 1_699_999_970);
        assert_eq!(claims["exp"], 1_699_999_970 + 900);
        let message = token.rsplit_once('.').unwrap().0;
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        match key(scheme.algorithm, pem.as_bytes()).unwrap() {
            Key::Rsa(key) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
                    .verify(message.as_bytes(), &signature)
                    .unwrap();
            }
            Key::Ec(key) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
                    .verify(message.as_bytes(), &signature)
                    .unwrap();
            }
        }
    }
}

#[test]
fn d20_a_fingerprint_is_the_one_openssl_makes() {
    for (pem, algorithm, expected) in [
        (RSA, JwtAlgorithm::Rs256, include_str!("rsa.fingerprint")),
        (EC, JwtAlgorithm::Es256, include_str!("ec.fingerprint")),
    ] {
        assert_eq!(fingerprint(&key(algorithm, pem.as_bytes()).unwrap()), expected.trim());
    }
}

#[test]
fn d16_keys_refused_at_entry() {
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
    for (algorithm, pem, why) in [
        (JwtAlgorithm::Rs256, EC, "RSA"),
        (JwtAlgorithm::Es256, RSA, "P-256"),
        (JwtAlgorithm::Rs256, "key", "PEM"),
        (JwtAlgorithm::Rs256, "", "PEM"),
        (JwtAlgorithm::Es256, sec1, "PKCS#8"),
    ] {
        let refused = key(algorithm, pem.as_bytes()).err().unwrap();
        assert!(refused.contains(why), "{refused}");
    }
}
