//! Whether what a person wrote for a scheme can be used. Pure; each fault names
//! its field.

use super::config::check_endpoint;
use super::{
    AwsScheme, ClientAuth, ClientScheme, CodeScheme, EntryFault, HmacScheme, JwtScheme, Scheme,
};
use crate::Exception;
use crate::credential::hmac::{IN_HEADER, IN_MESSAGE, Piece, pieces};

/// Longest header name, prefix or parameter name, bytes: no vendor needs more.
const NAME_BYTES: usize = 64;

/// Longest other text of a scheme, bytes.
const TEXT_BYTES: usize = 1024;

/// Headers of one signature, parameters of one sign-in link.
const ENTRIES: usize = 8;

/// How long an assertion may last, seconds: vendors take an hour at most.
const JWT_LIFETIME_S: std::ops::RangeInclusive<u32> = 60..=3600;

/// Headers that frame, route or read a request: never a credential's.
const NOT_A_CREDENTIAL: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Parameters of a sign-in link that are ours.
const OURS: &[&str] = &[
    "client_id",
    "code_challenge",
    "code_challenge_method",
    "redirect_uri",
    "response_mode",
    "response_type",
    "scope",
    "state",
];

type Checked = Result<(), EntryFault>;

fn wrong(field: &'static str, reason: impl Into<String>) -> Checked {
    Err(EntryFault::new(field, reason))
}

impl Scheme {
    /// Whether a person's choices can be used, given the private ranges they
    /// allowed; the fault names the field.
    pub fn check(&self, exceptions: &[Exception]) -> Result<(), EntryFault> {
        match self {
            Self::None | Self::Bearer | Self::Basic { username: None } | Self::Mtls => Ok(()),
            Self::ApiKeyHeader { header, prefix } => {
                credential_header("header", header)?;
                text("prefix", prefix, NAME_BYTES)
            }
            Self::ApiKeyQuery { parameter } => token("parameter", parameter),
            Self::Basic { username: Some(username) } => {
                if username.contains(':') {
                    return wrong("username", "holds `:`, which ends a user name in this scheme");
                }
                said("username", username)
            }
            Self::Cookie { name } => token("name", name),
            Self::UrlPath { template } => path_template(template),
            Self::Hmac(scheme) => hmac(scheme),
            Self::AwsSigv4(scheme) => aws(scheme),
            Self::JwtAssertion(scheme) => jwt(scheme, exceptions),
            Self::Oauth2ClientCredentials(scheme) => client(scheme, exceptions),
            Self::Oauth2AuthorizationCode(scheme) => code(scheme, exceptions),
        }
    }
}

fn client(scheme: &ClientScheme, exceptions: &[Exception]) -> Checked {
    check_endpoint("token_url", &scheme.token_url, exceptions)?;
    said("client_id", &scheme.client_id)?;
    if scheme.client_auth == ClientAuth::None {
        return wrong("client_auth", "`none` shows no credential; use `basic` or `body`");
    }
    maybe("scope", scheme.scope.as_ref())?;
    maybe("audience", scheme.audience.as_ref())
}

fn code(scheme: &CodeScheme, exceptions: &[Exception]) -> Checked {
    check_endpoint("authorization_url", &scheme.authorization_url, exceptions)?;
    check_endpoint("token_url", &scheme.token_url, exceptions)?;
    said("client_id", &scheme.client_id)?;
    maybe("scope", scheme.scope.as_ref())?;
    maybe("issuer", scheme.issuer.as_ref())?;
    if scheme.issuer.as_ref().is_some_and(|issuer| !issuer.starts_with("https://")) {
        return wrong("issuer", "must be an https URL, exactly as the vendor names itself");
    }
    if scheme.parameters.len() > ENTRIES {
        return wrong("parameters", format!("must be at most {ENTRIES}"));
    }
    for (name, value) in &scheme.parameters {
        token("parameters", name)?;
        if OURS.contains(&name.as_str()) {
            return wrong("parameters", format!("`{name}` is set for you"));
        }
        text("parameters", value, TEXT_BYTES)?;
    }
    Ok(())
}

fn hmac(scheme: &HmacScheme) -> Checked {
    maybe("key_id", scheme.key_id.as_ref())?;
    let signed = holes("message", &scheme.message, IN_MESSAGE)?;
    if scheme.headers.is_empty() || scheme.headers.len() > ENTRIES {
        return wrong("headers", format!("must be 1 to {ENTRIES}"));
    }
    let mut sent = Vec::new();
    for (name, template) in &scheme.headers {
        credential_header("headers", name)?;
        sent.extend(holes("headers", template, IN_HEADER)?);
    }
    if !sent.contains(&"signature") {
        return wrong("headers", "must hold `{signature}` once at least");
    }
    if signed.contains(&"nonce") && !sent.contains(&"nonce") {
        return wrong("message", "holds `{nonce}`, which no header sends");
    }
    let names_key = signed.contains(&"key_id") || sent.contains(&"key_id");
    if names_key && scheme.key_id.is_none() {
        return wrong("key_id", "is missing: `{key_id}` is used");
    }
    Ok(())
}

/// The names a template uses, each among the known.
fn holes<'a>(
    field: &'static str,
    template: &'a str,
    known: &[&str],
) -> Result<Vec<&'a str>, EntryFault> {
    text(field, template, TEXT_BYTES)?;
    let pieces = pieces(template).map_err(|why| EntryFault::new(field, why))?;
    let mut names = Vec::new();
    for piece in pieces {
        if let Piece::Hole(name) = piece {
            if !known.contains(&name) {
                let known = known.join("}`, `{");
                let reason = format!("holds `{{{name}}}`; there is `{{{known}}}`");
                return Err(EntryFault::new(field, reason));
            }
            names.push(name);
        }
    }
    Ok(names)
}

fn aws(scheme: &AwsScheme) -> Checked {
    for (field, value) in [
        ("access_key_id", &scheme.access_key_id),
        ("region", &scheme.region),
        ("service", &scheme.service),
    ] {
        // They stand between slashes and commas of a signed text.
        let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if value.is_empty() || value.len() > NAME_BYTES * 2 || !plain {
            return wrong(field, "must be letters, digits and `-`");
        }
    }
    Ok(())
}

fn jwt(scheme: &JwtScheme, exceptions: &[Exception]) -> Checked {
    if let Some(endpoint) = &scheme.token_url {
        check_endpoint("token_url", endpoint, exceptions)?;
    }
    said("issuer", &scheme.issuer)?;
    maybe("subject", scheme.subject.as_ref())?;
    maybe("audience", scheme.audience.as_ref())?;
    maybe("scope", scheme.scope.as_ref())?;
    maybe("key_id", scheme.key_id.as_ref())?;
    if !JWT_LIFETIME_S.contains(&scheme.lifetime_seconds) {
        return wrong("lifetime_seconds", "must be 60 to 3600");
    }
    Ok(())
}

/// A header a credential may be in.
fn credential_header(field: &'static str, name: &str) -> Checked {
    let plain = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if name.is_empty() || name.len() > NAME_BYTES || !plain {
        return wrong(field, "must be a lower-case header name");
    }
    if NOT_A_CREDENTIAL.contains(&name) {
        return wrong(field, format!("`{name}` has a meaning of its own"));
    }
    Ok(())
}

/// A name that needs no encoding in a query or a cookie.
fn token(field: &'static str, name: &str) -> Checked {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if name.is_empty() || name.len() > NAME_BYTES || !plain {
        return wrong(field, "must be 1 to 64 letters, digits, `-`, `.` or `_`");
    }
    Ok(())
}

/// Plain visible text.
fn text(field: &'static str, text: &str, most: usize) -> Checked {
    if text.len() > most || !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return wrong(field, format!("must be at most {most} bytes of visible ASCII"));
    }
    Ok(())
}

/// Text that is there.
fn said(field: &'static str, value: &str) -> Checked {
    if value.is_empty() {
        return wrong(field, "is empty");
    }
    text(field, value, TEXT_BYTES)
}

fn maybe(field: &'static str, value: Option<&String>) -> Checked {
    value.map_or(Ok(()), |value| said(field, value))
}

/// `{token}` once, in a path nobody can read in two ways.
fn path_template(template: &str) -> Checked {
    let wrong = |reason: &str| wrong("template", reason);
    let Some((before, after)) = template.split_once("{token}") else {
        return wrong("must hold `{token}` where the secret goes, like `/bot{token}`");
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@".contains(&b);
    if template.len() > TEXT_BYTES || !before.bytes().chain(after.bytes()).all(plain) {
        return wrong("must hold `{token}` once and otherwise letters, digits and `-._~:@/`");
    }
    if !before.starts_with('/') || after.ends_with('/') {
        return wrong("must start with `/` and not end with one");
    }
    // The token itself is no dot segment, see its file.
    if template.split('/').skip(1).any(|segment| matches!(segment, "" | "." | "..")) {
        return wrong("holds an empty or dot segment");
    }
    Ok(())
}
