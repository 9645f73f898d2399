//! What the larger schemes are configured with. Plain values a person wrote;
//! `check.rs` says what they may be.

use super::EntryFault;
use crate::{Host, resolve};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// `https://host[:port]/path` of a vendor's own authorization server. It may be
/// on another host than the connection's; tools never reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint {
    host: Host,
    path: String,
}

impl Endpoint {
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Path as on the wire.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// `host` or `host:port`.
    pub(crate) fn authority(&self) -> String {
        crate::target::authority(&self.host)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{}` {why}", text.escape_debug()));
        let Some(rest) = text.strip_prefix("https://") else {
            return wrong("does not start with https://");
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().unwrap_or(0)),
            None => (authority, 443),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&b);
        let odd = |segment: &str| matches!(segment, "." | "..");
        if path.is_empty()
            || !path.bytes().all(plain)
            || path.contains("//")
            || path.split('/').any(odd)
        {
            return wrong("needs a plain path, without a query, escapes or dot segments");
        }
        if port == 0 {
            return wrong("has no port from 1 to 65535");
        }
        // What a host may be depends on the exceptions too, see `check_endpoint`.
        let in_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        if name.is_empty() || !name.bytes().all(in_name) {
            return wrong("has no lower-case host name");
        }
        let host = Host { label: name.to_owned(), name: name.to_owned(), port };
        Ok(Self { host, path: path.to_owned() })
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.path)
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

/// How a client shows a token endpoint who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// Id and secret in `Authorization: Basic`.
    #[default]
    Basic,
    /// Id and secret in the body.
    Body,
    /// A client without a secret.
    None,
}

/// `oauth2_client_credentials`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientScheme {
    /// Where tokens are got.
    pub token_url: Endpoint,
    /// The client's id.
    pub client_id: String,
    /// How the secret is shown.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// Space-separated scopes.
    #[serde(default)]
    pub scope: Option<String>,
    /// Which API, where an issuer wants it said.
    #[serde(default)]
    pub audience: Option<String>,
}

/// `oauth2_authorization_code`, with PKCE always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeScheme {
    /// Where a person signs in.
    pub authorization_url: Endpoint,
    /// Where codes and refresh tokens are redeemed.
    pub token_url: Endpoint,
    /// The client's id.
    pub client_id: String,
    /// How the secret is shown; `none` for a client without one.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// Space-separated scopes.
    #[serde(default)]
    pub scope: Option<String>,
    /// The issuer that the vendor's answer must name (RFC 9207). Without it an
    /// answer that names one must name the host where the person signs in.
    #[serde(default)]
    pub issuer: Option<String>,
    /// Further parameters of the sign-in link, like `access_type`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// Hash of an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HmacAlgorithm {
    /// HMAC-SHA256.
    #[default]
    Sha256,
    /// HMAC-SHA384.
    Sha384,
    /// HMAC-SHA512.
    Sha512,
}

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    /// Standard, padded.
    #[default]
    Base64,
    /// URL-safe, without padding.
    Base64url,
    /// Lower case.
    Hex,
}

/// How the secret holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyEncoding {
    /// Its bytes are the key.
    #[default]
    Text,
    /// The key in base64.
    Base64,
    /// The key in hexadecimal.
    Hex,
}

/// `hmac`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HmacScheme {
    /// Hash.
    #[serde(default)]
    pub algorithm: HmacAlgorithm,
    /// How the signature is written.
    #[serde(default)]
    pub encoding: SignatureEncoding,
    /// How the secret holds the key.
    #[serde(default)]
    pub key_encoding: KeyEncoding,
    /// The key's public name.
    #[serde(default)]
    pub key_id: Option<String>,
    /// What is signed: text with `{method}`, `{host}`, `{path}`, `{query}`,
    /// `{target}`, `{body}`, `{body_sha256}`, `{timestamp}`, `{timestamp_ms}`,
    /// `{nonce}`, `{key_id}`, and `\n` for a line end.
    pub message: String,
    /// Headers by name: text with `{signature}`, `{timestamp}`,
    /// `{timestamp_ms}`, `{nonce}`, `{key_id}`.
    pub headers: BTreeMap<String, String>,
}

/// `aws_sigv4`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsScheme {
    /// The key's public name.
    pub access_key_id: String,
    /// `eu-west-1`.
    pub region: String,
    /// `s3`, `dynamodb`, `execute-api`.
    pub service: String,
}

/// Signature of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JwtAlgorithm {
    /// RSA, PKCS#1 v1.5, SHA-256.
    #[default]
    Rs256,
    /// P-256, SHA-256.
    Es256,
}

/// `jwt_assertion`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtScheme {
    /// Signature.
    #[serde(default)]
    pub algorithm: JwtAlgorithm,
    /// `iss`; `{fingerprint}` in it stands for `SHA256:` and the public key's
    /// digest in base64.
    pub issuer: String,
    /// `sub`.
    #[serde(default)]
    pub subject: Option<String>,
    /// `aud`.
    #[serde(default)]
    pub audience: Option<String>,
    /// `scope`.
    #[serde(default)]
    pub scope: Option<String>,
    /// `kid`.
    #[serde(default)]
    pub key_id: Option<String>,
    /// From issue to end, seconds; 60 to 3600.
    #[serde(default = "ten_minutes")]
    pub lifetime_seconds: u32,
    /// Where the token is exchanged (RFC 7523); without it it is sent itself.
    #[serde(default)]
    pub token_url: Option<Endpoint>,
}

fn ten_minutes() -> u32 {
    600
}

/// Whether an endpoint may be dialled at all, under a connection's exceptions.
pub(crate) fn check_endpoint(
    field: &'static str,
    endpoint: &Endpoint,
    exceptions: &[crate::Exception],
) -> Result<(), EntryFault> {
    resolve::check_host(&endpoint.host.name, exceptions)
        .map_err(|refusal| EntryFault::new(field, format!("cannot be used: {refusal}")))
}
