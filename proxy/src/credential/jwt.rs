//! `jwt_assertion`: a token signed with a key of the connection's, sent as it
//! is (Snowflake's key pairs, GitHub Apps) or exchanged for an access token
//! (RFC 7523). The claims are the connection's; a module adds none.

use super::Unfit;
use super::hmac::nonce;
use crate::scheme::{JwtAlgorithm, JwtScheme};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A token is dated this much earlier, seconds, for vendors whose clock is behind.
const BACKDATE_S: i64 = 30;

/// A token is not used in its last seconds: it must arrive before its end.
const MARGIN_S: i64 = 15;

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
}

/// Whether a key is one of the algorithm's.
pub(super) fn check_secret(scheme: &JwtScheme, secret: &[u8]) -> Result<(), Unfit> {
    key(scheme.algorithm, secret).map(drop)
}

fn key(algorithm: JwtAlgorithm, pem: &[u8]) -> Result<Key, Unfit> {
    let der = PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| "is not an unencrypted private key in PEM")?;
    match (algorithm, &der) {
        (JwtAlgorithm::Rs256, PrivateKeyDer::Pkcs8(key)) => {
            RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).map(Box::new).map(Key::Rsa)
        }
        (JwtAlgorithm::Rs256, PrivateKeyDer::Pkcs1(key)) => {
            RsaKeyPair::from_der(key.secret_pkcs1_der()).map(Box::new).map(Key::Rsa)
        }
        (JwtAlgorithm::Es256, PrivateKeyDer::Pkcs8(key)) => EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            key.secret_pkcs8_der(),
            &SystemRandom::new(),
        )
        .map(Box::new)
        .map(Key::Ec),
        _ => return Err("must be a PKCS#8 key in PEM (`BEGIN PRIVATE KEY`)"),
    }
    .map_err(|_| match algorithm {
        JwtAlgorithm::Rs256 => "is not an RSA key of 2048 to 4096 bits",
        JwtAlgorithm::Es256 => "is not a P-256 key",
    })
}

/// A token signed now.
pub(super) fn sign(
    scheme: &JwtScheme,
    pem: &[u8],
    now_ms: i64,
) -> Result<Zeroizing<String>, Unfit> {
    let key = key(scheme.algorithm, pem)?;
    let name = match scheme.algorithm {
        JwtAlgorithm::Rs256 => "RS256",
        JwtAlgorithm::Es256 => "ES256",
    };
    let mut head = Map::new();
    head.insert("alg".into(), name.into());
    head.insert("typ".into(), "JWT".into());
    if let Some(id) = &scheme.key_id {
        head.insert("kid".into(), id.as_str().into());
    }
    let issued = now_ms / 1000 - BACKDATE_S;
    let mut claims = Map::new();
    let issuer = scheme.issuer.replace("{fingerprint}", &fingerprint(&key));
    claims.insert("iss".into(), issuer.into());
    let texts = [("sub", &scheme.subject), ("aud", &scheme.audience), ("scope", &scheme.scope)];
    for (claim, value) in texts {
        if let Some(value) = value {
            claims.insert(claim.into(), value.as_str().into());
        }
    }
    claims.insert("iat".into(), issued.into());
    claims.insert("exp".into(), (issued + i64::from(scheme.lifetime_seconds)).into());
    claims.insert("jti".into(), nonce()?.into());
    let part =
        |object: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(object).to_string());
    let message = format!("{}.{}", part(head), part(claims));
    let signature = signature(&key, message.as_bytes())?;
    Ok(Zeroizing::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

/// How long a token is used, milliseconds: what is left of it, less a margin.
pub(super) fn lifetime_ms(scheme: &JwtScheme) -> i64 {
    (i64::from(scheme.lifetime_seconds) - BACKDATE_S - MARGIN_S) * 1000
}

fn signature(key: &Key, message: &[u8]) -> Result<Vec<u8>, Unfit> {
    let random = SystemRandom::new();
    let failed = |_| "could not sign";
    match key {
        Key::Rsa(key) => {
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
            Ok(signature)
        }
        Key::Ec(key) => Ok(key.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
    }
}

/// `SHA256:` and the base64 of the public key's digest, as Snowflake and others
/// name a key.
fn fingerprint(key: &Key) -> String {
    // SubjectPublicKeyInfo, whose first part depends on the kind of key alone.
    const RSA: &[u8] = &[0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    const P256: &[u8] = &[
        0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        3, 1, 7,
    ];
    let (algorithm, public) = match key {
        Key::Rsa(key) => (RSA, key.public_key().as_ref()),
        Key::Ec(key) => (P256, key.public_key().as_ref()),
    };
    let bits = der(3, &[&[0], public].concat());
    let info = der(0x30, &[algorithm, &bits].concat());
    format!("SHA256:{}", STANDARD.encode(Sha256::digest(info)))
}

/// One DER value of at most 64 KiB.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let [.., high, low] = length;
    let mut out = vec![tag];
    match content.len() {
        0..=127 => out.push(low),
        128..=255 => out.extend([0x81, low]),
        _ => out.extend([0x82, high, low]),
    }
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests;
