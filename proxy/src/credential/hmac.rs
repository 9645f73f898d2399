//! `hmac`: a signature over a message whose template the connection fixes. A
//! module chooses the request, never what is signed or where it stands; the
//! message is made of the final bytes, so what is signed is what is sent.

use super::header::header;
use super::{Unfit, Wire};
use crate::scheme::{HmacAlgorithm, HmacScheme, KeyEncoding, SignatureEncoding};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use http::header::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

/// Headers that carry a signature, and the values to hide.
pub(super) struct Signed {
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) made: Vec<Zeroizing<Vec<u8>>>,
}

/// What may stand in a message and in a header's value.
pub(crate) const IN_MESSAGE: &[&str] = &[
    "method",
    "host",
    "path",
    "query",
    "target",
    "body",
    "body_sha256",
    "timestamp",
    "timestamp_ms",
    "nonce",
    "key_id",
];

/// What may stand in a header's value.
pub(crate) const IN_HEADER: &[&str] =
    &["signature", "timestamp", "timestamp_ms", "nonce", "key_id"];

/// A template's pieces: text, and holes by name. `\n` stands for a line end.
pub(crate) fn pieces(template: &str) -> Result<Vec<Piece<'_>>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (text, hole) = rest.split_at(at);
        let end = hole.find('}').ok_or("holds `{` without `}`")?;
        pieces.push(Piece::Text(text));
        pieces.push(Piece::Hole(&hole[1..end]));
        rest = &hole[end + 1..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// One piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Hole(&'a str),
}

/// Whether a key can be read.
pub(super) fn check_secret(scheme: &HmacScheme, secret: &[u8]) -> Result<(), Unfit> {
    key(scheme, secret).map(drop)
}

fn key(scheme: &HmacScheme, secret: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unfit> {
    let key = match scheme.key_encoding {
        KeyEncoding::Text => secret.to_vec(),
        KeyEncoding::Base64 => STANDARD.decode(secret).map_err(|_| "is not base64")?,
        KeyEncoding::Hex => unhex(secret).ok_or("is not hexadecimal")?,
    };
    Ok(Zeroizing::new(key))
}

/// Signs one request.
pub(super) fn sign(scheme: &HmacScheme, secret: &[u8], wire: &Wire<'_>) -> Result<Signed, Unfit> {
    let key = key(scheme, secret)?;
    let nonce = nonce()?;
    let seconds = (wire.now_ms / 1000).to_string();
    let millis = wire.now_ms.to_string();
    let key_id = scheme.key_id.as_deref().unwrap_or_default();
    let (path, query) = wire.target.split_once('?').unwrap_or((wire.target, ""));
    let mut message = Vec::new();
    for piece in pieces(&scheme.message)? {
        match piece {
            Piece::Text(text) => message.extend_from_slice(text.replace("\\n", "\n").as_bytes()),
            Piece::Hole(name) => match name {
                "method" => message.extend_from_slice(wire.method.as_bytes()),
                "host" => message.extend_from_slice(wire.authority.as_bytes()),
                "path" => message.extend_from_slice(path.as_bytes()),
                "query" => message.extend_from_slice(query.as_bytes()),
                "target" => message.extend_from_slice(wire.target.as_bytes()),
                "body" => message.extend_from_slice(wire.body),
                "body_sha256" => {
                    message.extend_from_slice(hex(&Sha256::digest(wire.body)).as_bytes())
                }
                "timestamp" => message.extend_from_slice(seconds.as_bytes()),
                "timestamp_ms" => message.extend_from_slice(millis.as_bytes()),
                "nonce" => message.extend_from_slice(nonce.as_bytes()),
                "key_id" => message.extend_from_slice(key_id.as_bytes()),
                _ => return Err("is for a message with an unknown placeholder"),
            },
        }
    }
    let mac = Zeroizing::new(mac(scheme.algorithm, &key, &message)?);
    let signature = Zeroizing::new(match scheme.encoding {
        SignatureEncoding::Base64 => STANDARD.encode(&*mac),
        SignatureEncoding::Base64url => URL_SAFE_NO_PAD.encode(&*mac),
        SignatureEncoding::Hex => hex(&mac),
    });
    let mut headers = Vec::with_capacity(scheme.headers.len());
    for (name, template) in &scheme.headers {
        let mut value = Zeroizing::new(String::new());
        for piece in pieces(template)? {
            value.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Hole("signature") => &signature,
                Piece::Hole("timestamp") => &seconds,
                Piece::Hole("timestamp_ms") => &millis,
                Piece::Hole("nonce") => &nonce,
                Piece::Hole("key_id") => key_id,
                Piece::Hole(_) => return Err("is for a header with an unknown placeholder"),
            });
        }
        headers.push(header(name, "", value.as_bytes())?);
    }
    let made = vec![mac, Zeroizing::new(signature.as_bytes().to_vec())];
    Ok(Signed { headers, made })
}

fn mac(algorithm: HmacAlgorithm, key: &[u8], message: &[u8]) -> Result<Vec<u8>, Unfit> {
    fn over<M: Mac + hmac::digest::KeyInit>(key: &[u8], message: &[u8]) -> Result<Vec<u8>, Unfit> {
        let mac = <M as Mac>::new_from_slice(key).map_err(|_| "is no key for HMAC")?;
        Ok(mac.chain_update(message).finalize().into_bytes().to_vec())
    }
    match algorithm {
        HmacAlgorithm::Sha256 => over::<Hmac<Sha256>>(key, message),
        HmacAlgorithm::Sha384 => over::<Hmac<Sha384>>(key, message),
        HmacAlgorithm::Sha512 => over::<Hmac<Sha512>>(key, message),
    }
}

/// 128 random bits, hexadecimal.
pub(super) fn nonce() -> Result<String, Unfit> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| "cannot be used: no randomness")?;
    Ok(hex(&bytes))
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
