//! How a connection's credential is put on a request: which scheme, and what a
//! person chose for it. Nothing here is secret; the secret is in the vault and
//! sealed to these very bytes. How each scheme places it, and what its secret
//! must look like, is in `credential/`, one file a scheme.

use serde::{Deserialize, Serialize};

/// Longest header name, prefix or parameter name, bytes: no vendor needs more.
const NAME_BYTES: usize = 64;

/// Longest other text of a scheme, bytes.
const TEXT_BYTES: usize = 512;

/// How a credential is put on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scheme", rename_all = "snake_case", deny_unknown_fields)]
pub enum Scheme {
    /// Nothing is added.
    None,
    /// `Authorization: Bearer <secret>`.
    Bearer,
    /// `<header>: <prefix><secret>`.
    ApiKeyHeader {
        /// Lower-case header name.
        header: String,
        /// Put before the secret, often empty.
        #[serde(default)]
        prefix: String,
    },
    /// `?<parameter>=<secret>`, at the end of the query.
    ApiKeyQuery {
        /// Name of the query parameter.
        parameter: String,
    },
    /// `Authorization: Basic <base64 of user:password>`.
    Basic {
        /// The user name; the secret is the password. Without one the secret is
        /// the user name and the password is empty.
        #[serde(default)]
        username: Option<String>,
    },
    /// `Cookie: <name>=<secret>`.
    Cookie {
        /// Name of the cookie.
        name: String,
    },
    /// The secret stands in the path, before what a module asks for.
    UrlPath {
        /// What goes before each path, `{token}` where the secret goes:
        /// `/bot{token}`.
        template: String,
    },
}

/// An entry a person must write otherwise: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct EntryFault {
    /// The field as it is written: `header`, `template`, `secret`.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl EntryFault {
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

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

impl Scheme {
    /// Its name as written in a connection.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bearer => "bearer",
            Self::ApiKeyHeader { .. } => "api_key_header",
            Self::ApiKeyQuery { .. } => "api_key_query",
            Self::Basic { .. } => "basic",
            Self::Cookie { .. } => "cookie",
            Self::UrlPath { .. } => "url_path",
        }
    }

    /// Where the credential goes, for a person.
    pub fn placed(&self) -> String {
        match self {
            Self::None => "nothing is added".into(),
            Self::Bearer => "bearer token".into(),
            Self::ApiKeyHeader { header, .. } => format!("key in header {header}"),
            Self::ApiKeyQuery { parameter } => format!("key in query parameter {parameter}"),
            Self::Basic { username: Some(username) } => format!("password of user {username}"),
            Self::Basic { username: None } => "key as user name".into(),
            Self::Cookie { name } => format!("cookie {name}"),
            Self::UrlPath { template } => format!("token in the path {template}"),
        }
    }

    /// Whether a person enters a secret for it.
    pub fn takes_secret(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether a header is the credential's, so that no module may set it.
    pub(crate) fn owns_header(&self, name: &str) -> bool {
        match self {
            Self::None | Self::ApiKeyQuery { .. } | Self::UrlPath { .. } => false,
            Self::Bearer | Self::Basic { .. } => name == "authorization",
            Self::ApiKeyHeader { header, .. } => name == header,
            Self::Cookie { .. } => name == "cookie",
        }
    }

    /// Whether a person's choices can be used; the fault names the field.
    pub fn check(&self) -> Result<(), EntryFault> {
        match self {
            Self::None | Self::Bearer | Self::Basic { username: None } => Ok(()),
            Self::ApiKeyHeader { header, prefix } => {
                check_header("header", header)?;
                check_text("prefix", prefix, NAME_BYTES)
            }
            Self::ApiKeyQuery { parameter } => check_token("parameter", parameter),
            Self::Basic { username: Some(username) } => {
                if username.is_empty() {
                    return Err(EntryFault::new("username", "is empty; leave it out"));
                }
                if username.contains(':') {
                    let reason = "holds `:`, which ends a user name in this scheme";
                    return Err(EntryFault::new("username", reason));
                }
                check_text("username", username, TEXT_BYTES)
            }
            Self::Cookie { name } => check_token("name", name),
            Self::UrlPath { template } => check_template(template),
        }
    }
}

/// A header a credential may be in.
fn check_header(field: &'static str, name: &str) -> Result<(), EntryFault> {
    let plain = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if name.is_empty() || name.len() > NAME_BYTES || !plain {
        return Err(EntryFault::new(field, "must be a lower-case header name"));
    }
    if NOT_A_CREDENTIAL.contains(&name) {
        return Err(EntryFault::new(field, format!("`{name}` has a meaning of its own")));
    }
    Ok(())
}

/// A name that needs no encoding in a query or a cookie.
fn check_token(field: &'static str, name: &str) -> Result<(), EntryFault> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if name.is_empty() || name.len() > NAME_BYTES || !plain {
        let reason = "must be 1 to 64 letters, digits, `-`, `.` or `_`";
        return Err(EntryFault::new(field, reason));
    }
    Ok(())
}

/// Plain visible text.
fn check_text(field: &'static str, text: &str, most: usize) -> Result<(), EntryFault> {
    if text.len() > most || !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        let reason = format!("must be at most {most} bytes of visible ASCII");
        return Err(EntryFault::new(field, reason));
    }
    Ok(())
}

/// `{token}` once, in a path nobody can read in two ways.
fn check_template(template: &str) -> Result<(), EntryFault> {
    let wrong = |reason: &str| Err(EntryFault::new("template", reason));
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
    // Around a token that is itself no dot segment.
    if template.split('/').skip(1).any(|segment| matches!(segment, "" | "." | "..")) {
        return wrong("holds an empty or dot segment");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
