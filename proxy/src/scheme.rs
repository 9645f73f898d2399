//! How a connection's credential is put on a request: which scheme, and what a
//! person chose for it. Nothing here is secret; the secret is in the vault and
//! sealed to these very bytes. `check` says what may be chosen. How each scheme
//! places its credential, and what its secret must look like, is in
//! `credential/`, one file a scheme.

mod check;
mod config;

pub use config::{
    AwsScheme, ClientAuth, ClientScheme, CodeScheme, Endpoint, HmacAlgorithm, HmacScheme,
    JwtAlgorithm, JwtScheme, KeyEncoding, SignatureEncoding,
};

use serde::{Deserialize, Serialize};

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
    /// A signature over a message the connection fixes.
    Hmac(HmacScheme),
    /// AWS Signature Version 4, in headers.
    AwsSigv4(AwsScheme),
    /// A token signed with a key of the connection's, sent or exchanged.
    JwtAssertion(JwtScheme),
    /// A certificate of the connection's in the TLS handshake.
    Mtls,
    /// An access token got for the client itself.
    Oauth2ClientCredentials(ClientScheme),
    /// Access tokens got for a person who signed in at the vendor's.
    Oauth2AuthorizationCode(CodeScheme),
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
            Self::Hmac(_) => "hmac",
            Self::AwsSigv4(_) => "aws_sigv4",
            Self::JwtAssertion(_) => "jwt_assertion",
            Self::Mtls => "mtls",
            Self::Oauth2ClientCredentials(_) => "oauth2_client_credentials",
            Self::Oauth2AuthorizationCode(_) => "oauth2_authorization_code",
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
            Self::Hmac(scheme) => {
                let names: Vec<&str> = scheme.headers.keys().map(String::as_str).collect();
                format!("HMAC of `{}` in {}", scheme.message, names.join(", "))
            }
            Self::AwsSigv4(scheme) => format!(
                "AWS signature of {} for {} in {}",
                scheme.access_key_id, scheme.service, scheme.region
            ),
            Self::JwtAssertion(scheme) => match &scheme.token_url {
                Some(endpoint) => format!("token of {} exchanged at {endpoint}", scheme.issuer),
                None => format!("signed token of {}", scheme.issuer),
            },
            Self::Mtls => "client certificate".into(),
            Self::Oauth2ClientCredentials(scheme) => {
                format!("token of client {} from {}", scheme.client_id, scheme.token_url)
            }
            Self::Oauth2AuthorizationCode(scheme) => format!(
                "sign-in at {}, tokens for client {} from {}",
                scheme.authorization_url, scheme.client_id, scheme.token_url
            ),
        }
    }

    /// Whether a person enters a secret for it.
    pub fn takes_secret(&self) -> bool {
        match self {
            Self::None => false,
            Self::Oauth2AuthorizationCode(scheme) => scheme.client_auth != ClientAuth::None,
            Self::Bearer
            | Self::ApiKeyHeader { .. }
            | Self::ApiKeyQuery { .. }
            | Self::Basic { .. }
            | Self::Cookie { .. }
            | Self::UrlPath { .. }
            | Self::Hmac(_)
            | Self::AwsSigv4(_)
            | Self::JwtAssertion(_)
            | Self::Mtls
            | Self::Oauth2ClientCredentials(_) => true,
        }
    }

    /// Whether a person must sign in at the vendor's before it can be used.
    pub fn needs_sign_in(&self) -> bool {
        matches!(self, Self::Oauth2AuthorizationCode(_))
    }

    /// Whether what is sent is dated by this machine's clock.
    pub(crate) fn is_dated(&self) -> bool {
        matches!(self, Self::Hmac(_) | Self::AwsSigv4(_) | Self::JwtAssertion(_))
    }

    /// Where its tokens are got, if it has any.
    pub(crate) fn token_endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::JwtAssertion(scheme) => scheme.token_url.as_ref(),
            Self::Oauth2ClientCredentials(scheme) => Some(&scheme.token_url),
            Self::Oauth2AuthorizationCode(scheme) => Some(&scheme.token_url),
            Self::None
            | Self::Bearer
            | Self::ApiKeyHeader { .. }
            | Self::ApiKeyQuery { .. }
            | Self::Basic { .. }
            | Self::Cookie { .. }
            | Self::UrlPath { .. }
            | Self::Hmac(_)
            | Self::AwsSigv4(_)
            | Self::Mtls => None,
        }
    }

    /// Whether a header is the credential's, so that no module may set it.
    pub(crate) fn owns_header(&self, name: &str) -> bool {
        match self {
            Self::None | Self::ApiKeyQuery { .. } | Self::UrlPath { .. } | Self::Mtls => false,
            Self::Bearer
            | Self::Basic { .. }
            | Self::JwtAssertion(_)
            | Self::Oauth2ClientCredentials(_)
            | Self::Oauth2AuthorizationCode(_) => name == "authorization",
            Self::ApiKeyHeader { header, .. } => name == header,
            Self::Cookie { .. } => name == "cookie",
            Self::Hmac(scheme) => scheme.headers.contains_key(name),
            Self::AwsSigv4(_) => {
                name == "authorization"
                    || ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"]
                        .contains(&name)
            }
        }
    }
}

#[cfg(test)]
mod tests;
