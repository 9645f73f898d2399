//! What is said to a token endpoint and what is read of its answer. Pure: the
//! call itself is `mint.rs`'s. Nothing of an answer but a known error code ever
//! reaches a person or a log.

use super::Unfit;
use super::header::header;
use crate::scheme::{ClientAuth, Endpoint};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::{Zeroize, Zeroizing};

/// `application/x-www-form-urlencoded`, but for the space.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

/// Longest a token is used without asking again, seconds.
const LONGEST_S: i64 = 24 * 60 * 60;

/// How long a token is used when its issuer does not say, seconds.
const UNSAID_S: i64 = 5 * 60;

/// A token is not used in its last seconds: the request must arrive before its
/// end, by the vendor's clock.
const MARGIN_S: i64 = 45;

/// Longest access token, bytes: as a header of 8 KiB is what servers take.
const TOKEN_BYTES: usize = 8 * 1024;

/// RFC 6749's errors, the only words of an answer that are passed on.
const ERRORS: &[&str] = &[
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "unauthorized_client",
    "unsupported_grant_type",
];

/// A text that is secret, kept inside what is sealed. It is wiped when dropped
/// and cannot be printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(String);

impl Hidden {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A request to a token endpoint.
pub(crate) struct TokenCall {
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Zeroizing<String>,
}

/// Who asks.
pub(super) struct Client<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) id: &'a str,
    pub(super) auth: ClientAuth,
    pub(super) secret: Option<&'a [u8]>,
}

impl Client<'_> {
    /// A call with these fields; empty ones are left out.
    pub(super) fn call(&self, fields: &[(&str, &str)]) -> Result<TokenCall, Unfit> {
        let mut body = Zeroizing::new(String::new());
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                if !body.is_empty() {
                    body.push('&');
                }
                body.push_str(name);
                body.push('=');
                encode(value, &mut body);
            }
        };
        fields.iter().for_each(|(name, value)| put(name, value));
        let secret = std::str::from_utf8(self.secret.unwrap_or_default());
        let secret = secret.map_err(|_| "is not UTF-8")?;
        let mut headers = Vec::new();
        match self.auth {
            ClientAuth::Basic => {
                // RFC 6749 2.3.1: both halves are form-encoded first.
                let mut pair = Zeroizing::new(String::new());
                encode(self.id, &mut pair);
                pair.push(':');
                encode(secret, &mut pair);
                let pair = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
                headers.push(header("authorization", "Basic ", pair.as_bytes())?);
            }
            ClientAuth::Body => {
                put("client_id", self.id);
                put("client_secret", secret);
            }
            ClientAuth::None => put("client_id", self.id),
        }
        Ok(TokenCall { endpoint: self.endpoint.clone(), headers, body })
    }
}

fn encode(text: &str, into: &mut String) {
    for (number, part) in text.split(' ').enumerate() {
        into.push_str(if number == 0 { "" } else { "+" });
        into.extend(utf8_percent_encode(part, FORM));
    }
}

/// What an issuer gave.
pub(crate) struct Granted {
    pub(crate) access: Hidden,
    pub(crate) refresh: Option<Hidden>,
    /// How long it may be used, seconds, margin taken off; 0 is once.
    pub(crate) lifetime_s: i64,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<Hidden>,
    refresh_token: Option<Hidden>,
    token_type: Option<String>,
    expires_in: Option<Value>,
    error: Option<String>,
}

/// Reads an answer; the error is what a person is told.
pub(super) fn read(status: u16, body: &[u8]) -> Result<Granted, String> {
    let answer: Option<Answer> = serde_json::from_slice(body).ok();
    let error = answer.as_ref().and_then(|answer| answer.error.as_deref());
    let code = error.and_then(|error| ERRORS.iter().find(|known| **known == error));
    let said = code.map(|code| format!(" ({code})")).unwrap_or_default();
    if status != 200 {
        return Err(format!("the token endpoint answered {status}{said}"));
    }
    let answer = answer.ok_or("the token endpoint's answer is not the JSON it should be")?;
    let Some(access) = answer.access_token else {
        return Err(format!("the token endpoint answered without a token{said}"));
    };
    let visible = |text: &str| {
        !text.is_empty()
            && text.len() <= TOKEN_BYTES
            && text.bytes().all(|b| (0x21..0x7f).contains(&b))
    };
    if !visible(access.as_str())
        || answer.refresh_token.as_ref().is_some_and(|t| !visible(t.as_str()))
    {
        return Err("the token endpoint answered with a token that fits in no header".into());
    }
    if answer.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token endpoint answered with a token that is no bearer token".into());
    }
    let lifetime_s = lifetime_s(answer.expires_in.as_ref());
    Ok(Granted { access, refresh: answer.refresh_token, lifetime_s })
}

/// What an issuer says of a lifetime, within bounds and less the margin.
fn lifetime_s(said: Option<&Value>) -> i64 {
    let number = match said {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    let seconds = match number {
        // `as` saturates; the clamp is what counts.
        #[allow(clippy::cast_possible_truncation)]
        Some(number) if !number.is_nan() => (number as i64).clamp(0, LONGEST_S),
        _ => UNSAID_S,
    };
    (seconds - MARGIN_S).max(0)
}

#[cfg(test)]
mod tests;
