//! The one file that opens a [`Secret`]: checks it at entry, seals it to its
//! connection, opens it again, and hands its bytes to the scheme's own file in
//! `credential/`, which turns them into what goes last on a request. Everything
//! it hands out is marked sensitive, and every value made of the secret is
//! among those `scrub` looks for. Getting tokens is `mint`'s, a person's
//! sign-in `consent`'s.

mod basic;
mod bundle;
mod consent;
mod cookie;
mod header;
pub(crate) mod hmac;
mod jwt;
mod mint;
mod mtls;
mod path;
mod query;
mod sigv4;
mod token;

pub use consent::Consent;
pub(crate) use consent::{begin, finish};
pub(crate) use mint::{Errand, Live};
pub(crate) use mtls::Identity;

use crate::scrub::Redactor;
use crate::target::Target;
use crate::{
    Connection, EntryFault, HeldRequest, Refusal, Scheme, SealedSecret, Secret, StoreFault, Vault,
};
use bundle::Bundle;
use http::header::{HeaderName, HeaderValue};
use mint::Tokens;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use token::{Client, TokenCall};
use zeroize::Zeroizing;

/// Longest secret of one line: a header of 8 KiB is what common servers still take.
const LINE_BYTES: usize = 8 * 1024;

/// Longest key or certificate chain, bytes of PEM.
const PEM_BYTES: usize = 64 * 1024;

/// RFC 7523's name for an assertion.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Why a secret cannot be placed or taken, in words that follow its name.
type Unfit = &'static str;

/// The opened credential of one state of a connection.
pub(crate) struct Credential {
    connection: Connection,
    secret: Option<Secret>,
    /// What is the same on each request.
    header: Option<(HeaderName, HeaderValue)>,
    redactor: Redactor,
    tokens: Tokens,
}

/// What goes last on one request.
pub(crate) struct Placement {
    /// Headers, replacing any of their names.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Path and query as sent.
    pub(crate) target: Zeroizing<String>,
    /// Hides the secret and everything made of it for this request.
    pub(crate) redactor: Redactor,
    /// The access token, if it was got for an earlier request: a vendor may
    /// have ended it since.
    pub(crate) earlier: Option<Arc<Live>>,
    /// A token was got for this request.
    pub(crate) token_is_new: bool,
}

/// A request as it will be sent, for signing.
struct Wire<'a> {
    method: &'a str,
    authority: &'a str,
    target: &'a str,
    headers: &'a [(String, String)],
    body: &'a [u8],
    now_ms: i64,
}

impl Credential {
    /// Hides every form of the secret and of a token known so far.
    pub(crate) fn redactor(&self) -> Redactor {
        self.tokens.known().map_or_else(|| self.redactor.clone(), |live| live.redactor.clone())
    }

    /// The vault's one narrow call: a complete request of this connection in,
    /// what is to be added to exactly that request out. May get a token.
    pub(crate) async fn place(
        self: &Arc<Self>,
        held: &HeldRequest,
        errand: &Errand,
    ) -> Result<Placement, Refusal> {
        let hosts = &self.connection.hosts;
        let ours = held.connection == self.connection.id
            && held.generation == self.connection.generation
            && hosts.iter().any(|host| crate::target::authority(host) == held.authority);
        if !ours {
            return Err(unavailable("the request is not one of this credential's connection"));
        }
        let mut placement = Placement {
            headers: self.header.iter().cloned().collect(),
            target: Zeroizing::new(held.target.clone()),
            redactor: self.redactor.clone(),
            earlier: None,
            token_is_new: false,
        };
        let Some(secret) = &self.secret else { return Ok(placement) };
        let wire = Wire {
            method: &held.method,
            authority: &held.authority,
            target: &held.target,
            headers: &held.headers,
            body: &held.body,
            now_ms: errand.shared.parts.clock.now_ms(),
        };
        match &self.connection.scheme {
            Scheme::None
            | Scheme::Bearer
            | Scheme::ApiKeyHeader { .. }
            | Scheme::Basic { .. }
            | Scheme::Cookie { .. }
            | Scheme::Mtls => {}
            Scheme::ApiKeyQuery { parameter } => {
                placement.target = text(&query::place(parameter, secret.expose(), &held.target))?;
            }
            Scheme::UrlPath { template } => {
                placement.target = text(&path::place(template, secret.expose(), &held.target))?;
            }
            Scheme::Hmac(scheme) => placement.add(hmac::sign(scheme, secret.expose(), &wire))?,
            Scheme::AwsSigv4(scheme) => {
                placement.add(sigv4::sign(scheme, secret.expose(), &wire))?
            }
            Scheme::JwtAssertion(_)
            | Scheme::Oauth2ClientCredentials(_)
            | Scheme::Oauth2AuthorizationCode(_) => {
                let (live, minted) = mint::live(self, errand).await?;
                placement.headers.push(live.header.clone());
                placement.redactor = live.redactor.clone();
                placement.token_is_new = minted;
                placement.earlier = (!minted).then_some(live);
            }
        }
        Ok(placement)
    }

    /// The vendor refused a token: it is not used again.
    pub(crate) fn spoil(&self, live: &Arc<Live>) {
        self.tokens.spoil(live);
    }

    /// The certificate for the handshake, if that is the credential.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, Refusal> {
        match (&self.connection.scheme, &self.secret) {
            (Scheme::Mtls, Some(secret)) => {
                mtls::identity(secret.expose()).map(Some).map_err(unavailable)
            }
            _ => Ok(None),
        }
    }

    /// A signed token.
    fn assertion(&self, now_ms: i64) -> Result<Zeroizing<String>, Refusal> {
        match (&self.connection.scheme, &self.secret) {
            (Scheme::JwtAssertion(scheme), Some(secret)) => {
                jwt::sign(scheme, secret.expose(), now_ms).map_err(unavailable)
            }
            _ => Err(unavailable("the scheme signs no token")),
        }
    }

    /// What a token endpoint is asked for a token of the client's own.
    fn token_call(&self, now_ms: i64) -> Result<TokenCall, Refusal> {
        match (&self.connection.scheme, &self.secret) {
            (Scheme::Oauth2ClientCredentials(scheme), Some(secret)) => {
                let (endpoint, id, auth) =
                    (&scheme.token_url, &scheme.client_id, scheme.client_auth);
                let client = Client { endpoint, id, auth, secret: Some(secret.expose()) };
                let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
                client.call(&[
                    ("grant_type", "client_credentials"),
                    ("scope", &or_none(&scheme.scope)),
                    ("audience", &or_none(&scheme.audience)),
                ])
            }
            (Scheme::JwtAssertion(crate::JwtScheme { token_url: Some(endpoint), .. }), Some(_)) => {
                let assertion = self.assertion(now_ms)?;
                Client { endpoint, id: "", auth: crate::ClientAuth::None, secret: None }
                    .call(&[("grant_type", JWT_BEARER), ("assertion", &assertion)])
            }
            _ => Err("is for no token endpoint"),
        }
        .map_err(unavailable)
    }

    /// What a token endpoint is asked for a new token of a person's; `None`
    /// when nobody has signed in.
    fn refresh_call(&self, bundle: &Bundle) -> Result<Option<TokenCall>, Refusal> {
        let Scheme::Oauth2AuthorizationCode(scheme) = &self.connection.scheme else {
            return Ok(None);
        };
        let Some(refresh) = &bundle.refresh else { return Ok(None) };
        let client = consent::client(scheme, bundle);
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        client.call(&fields).map(Some).map_err(unavailable)
    }
}

/// What a token endpoint is asked when a person is back from signing in.
fn code_call(
    scheme: &crate::CodeScheme,
    bundle: &Bundle,
    consent: &Consent,
    code: &Secret,
) -> Result<TokenCall, Refusal> {
    let code = consent::check_code(code.expose())?;
    let verifier = std::str::from_utf8(consent.verifier().expose())
        .map_err(|_| unavailable("the sign-in's own part is not text"))?;
    consent::client(scheme, bundle).call(&consent.fields(code, verifier)).map_err(unavailable)
}

impl Placement {
    fn add(&mut self, signed: Result<hmac::Signed, Unfit>) -> Result<(), Refusal> {
        let signed = signed.map_err(unavailable)?;
        let made: Vec<&[u8]> = signed.made.iter().map(|value| value.as_slice()).collect();
        self.redactor = self.redactor.with(&made);
        self.headers.extend(signed.headers);
        Ok(())
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential")
    }
}

/// Takes out of a query what a vendor could read as the credential's own
/// parameters; answers how many were taken out.
pub(crate) fn clean_query(scheme: &Scheme, target: &mut Target) -> usize {
    let Some(query) = &target.query else { return 0 };
    let (query, dropped) = match scheme {
        Scheme::ApiKeyQuery { parameter } => {
            let ours = query::plain(parameter);
            query::without(query, |name| name == ours)
        }
        Scheme::AwsSigv4(_) => query::without(query, |name| sigv4::PRESIGNED.contains(&name)),
        Scheme::None
        | Scheme::Bearer
        | Scheme::ApiKeyHeader { .. }
        | Scheme::Basic { .. }
        | Scheme::Cookie { .. }
        | Scheme::UrlPath { .. }
        | Scheme::Hmac(_)
        | Scheme::JwtAssertion(_)
        | Scheme::Mtls
        | Scheme::Oauth2ClientCredentials(_)
        | Scheme::Oauth2AuthorizationCode(_) => return 0,
    };
    target.query = query;
    dropped
}

/// A tool never asks where tokens are handed out: what is answered there is a
/// credential, and what is sent there may end one.
pub(crate) fn check_path(scheme: &Scheme, target: &Target) -> Result<(), Refusal> {
    let Some(endpoint) = scheme.token_endpoint() else { return Ok(()) };
    let plain = |path: &str| {
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        let decoded = decoded.split(';').next().unwrap_or_default().to_ascii_lowercase();
        decoded.trim_end_matches('/').to_owned()
    };
    if endpoint.authority() == target.authority && plain(endpoint.path()) == plain(&target.path) {
        let why = "the path is the token endpoint, which only the proxy calls";
        return Err(Refusal::CredentialPath(why.into()));
    }
    Ok(())
}

/// Whether a secret can be one of this scheme.
pub(crate) fn check_secret(scheme: &Scheme, secret: Option<&Secret>) -> Result<(), EntryFault> {
    let wrong = |why: &str| Err(EntryFault::new("secret", why));
    let name = scheme.name();
    let bytes = match (scheme.takes_secret(), secret) {
        (false, None) => return Ok(()),
        (false, Some(_)) => return wrong(&format!("is not used: the scheme `{name}` takes none")),
        (true, None) => return wrong(&format!("is missing: the scheme `{name}` needs one")),
        (true, Some(secret)) => secret.expose(),
    };
    let fits = match scheme {
        Scheme::None
        | Scheme::Bearer
        | Scheme::ApiKeyHeader { .. }
        | Scheme::ApiKeyQuery { .. }
        | Scheme::Oauth2ClientCredentials(_)
        | Scheme::Oauth2AuthorizationCode(_) => line(bytes),
        Scheme::Basic { username } => {
            line(bytes).and_then(|()| basic::check_secret(username.as_deref(), bytes))
        }
        Scheme::Cookie { .. } => line(bytes).and_then(|()| cookie::check_secret(bytes)),
        Scheme::UrlPath { .. } => line(bytes).and_then(|()| path::check_secret(bytes)),
        Scheme::Hmac(scheme) => line(bytes).and_then(|()| hmac::check_secret(scheme, bytes)),
        Scheme::AwsSigv4(_) => {
            short(bytes, LINE_BYTES).and_then(|()| sigv4::parts(bytes).map(drop))
        }
        Scheme::JwtAssertion(scheme) => {
            short(bytes, PEM_BYTES).and_then(|()| jwt::check_secret(scheme, bytes))
        }
        Scheme::Mtls => short(bytes, PEM_BYTES).and_then(|()| mtls::check_secret(bytes)),
    };
    fits.or_else(wrong)
}

fn short(bytes: &[u8], most: usize) -> Result<(), Unfit> {
    if bytes.is_empty() || bytes.len() > most { Err("is empty or too long") } else { Ok(()) }
}

/// What fits in a header by itself.
fn line(bytes: &[u8]) -> Result<(), Unfit> {
    short(bytes, LINE_BYTES)?;
    let visible = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    if !visible || bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
        return Err("holds a line end, a space at an end, or something else than visible ASCII");
    }
    Ok(())
}

/// Seals a secret a person entered to a connection as it stands.
pub(crate) fn seal(
    vault: &Vault,
    connection: &Connection,
    secret: &Secret,
) -> Result<SealedSecret, Refusal> {
    check_secret(&connection.scheme, Some(secret))
        .map_err(|fault| Refusal::CredentialUnavailable(format!("the {fault}")))?;
    if connection.scheme.needs_sign_in() {
        let secret =
            std::str::from_utf8(secret.expose()).map_err(|_| unavailable("is not text"))?;
        return seal_bundle(vault, connection, &Bundle::new(Some(secret)));
    }
    seal_bytes(vault, connection, secret.expose())
}

fn seal_bundle(
    vault: &Vault,
    connection: &Connection,
    bundle: &Bundle,
) -> Result<SealedSecret, Refusal> {
    seal_bytes(vault, connection, &bundle.bytes())
}

fn seal_bytes(
    vault: &Vault,
    connection: &Connection,
    bytes: &[u8],
) -> Result<SealedSecret, Refusal> {
    let sealed = vault
        .seal(bytes, &bound_to(connection))
        .ok_or_else(|| unavailable("the secret could not be sealed: no randomness"))?;
    Ok(SealedSecret {
        connection: connection.id.clone(),
        generation: connection.generation,
        wrapped_key: sealed.wrapped_key,
        sealed: sealed.sealed,
    })
}

/// Opens the secret of a connection as it stands and prepares it for use.
pub(crate) fn open(
    vault: &Vault,
    connection: &Connection,
    sealed: Result<Option<SealedSecret>, StoreFault>,
) -> Result<Credential, Refusal> {
    let connection = connection.clone();
    let tokens = Tokens::default();
    if !connection.scheme.takes_secret() && !connection.scheme.needs_sign_in() {
        let redactor = Redactor::none();
        return Ok(Credential { connection, secret: None, header: None, redactor, tokens });
    }
    let (_, secret) = unseal(vault, &connection, sealed)?;
    let bytes = secret.expose();
    let slug = &connection.slug;
    let plain = || Redactor::new(&[bytes], slug);
    let (header, redactor) = match &connection.scheme {
        Scheme::None
        | Scheme::UrlPath { .. }
        | Scheme::Hmac(_)
        | Scheme::Oauth2ClientCredentials(_) => (None, plain()),
        // What is on the wire is encoded by us, and may be encoded again.
        Scheme::ApiKeyQuery { .. } => (None, Redactor::new(&[bytes, &query::value(bytes)], slug)),
        // Each of its lines is one.
        Scheme::AwsSigv4(_) => {
            let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            (None, Redactor::new(&lines, slug))
        }
        // The key itself goes nowhere.
        Scheme::JwtAssertion(_) | Scheme::Mtls => (None, Redactor::new(&[], slug)),
        Scheme::Bearer => (Some(header::header("authorization", "Bearer ", bytes)), plain()),
        Scheme::ApiKeyHeader { header, prefix } => {
            (Some(header::header(header, prefix, bytes)), plain())
        }
        Scheme::Cookie { name } => (Some(cookie::place(name, bytes)), plain()),
        Scheme::Basic { username } => {
            let [pair, encoded] = basic::pair(username.as_deref(), bytes);
            let redactor = Redactor::new(&[bytes, &pair, &encoded], slug);
            (Some(basic::place(&encoded)), redactor)
        }
        Scheme::Oauth2AuthorizationCode(_) => {
            let bundle = Bundle::read(bytes)
                .ok_or_else(|| unavailable("the stored tokens are not readable"))?;
            let secrets: Vec<&[u8]> = bundle.secrets().collect();
            (None, Redactor::new(&secrets, slug))
        }
    };
    let header = header.transpose().map_err(unavailable)?;
    Ok(Credential { connection, secret: Some(secret), header, redactor, tokens })
}

/// Opens a person's tokens as they are stored now.
fn open_bundle(
    vault: &Vault,
    connection: &Connection,
    sealed: Result<Option<SealedSecret>, StoreFault>,
) -> Result<(SealedSecret, Bundle), Refusal> {
    let (sealed, secret) = unseal(vault, connection, sealed)?;
    let bundle = Bundle::read(secret.expose())
        .ok_or_else(|| unavailable("the stored tokens are not readable"))?;
    Ok((sealed, bundle))
}

fn unseal(
    vault: &Vault,
    connection: &Connection,
    sealed: Result<Option<SealedSecret>, StoreFault>,
) -> Result<(SealedSecret, Secret), Refusal> {
    let sealed = sealed
        .map_err(|_| unavailable("the stored credential could not be read"))?
        .ok_or_else(|| unavailable("the connection has no credential"))?;
    if sealed.connection != connection.id || sealed.generation != connection.generation {
        return Err(unavailable("the stored credential is another state's of the connection"));
    }
    let plain = vault
        .unseal(&sealed.wrapped_key, &sealed.sealed, &bound_to(connection))
        .ok_or_else(|| unavailable("the stored credential does not open for this connection"))?;
    Ok((sealed, Secret::take(plain)))
}

fn text(bytes: &[u8]) -> Result<Zeroizing<String>, Refusal> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| unavailable("the credential does not fit in a path"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn unavailable(why: &str) -> Refusal {
    Refusal::CredentialUnavailable(why.to_owned())
}

/// Opens the secret of one state of a connection and seals it for the next.
pub(crate) fn reseal(
    vault: &Vault,
    before: &Connection,
    after: &Connection,
    sealed: Result<Option<SealedSecret>, StoreFault>,
    now_ms: i64,
) -> Result<SealedSecret, Refusal> {
    let (_, secret) = unseal(vault, before, sealed)?;
    let renewing = || Bundle::read(secret.expose()).is_some_and(|bundle| bundle.claimed(now_ms));
    if before.scheme.needs_sign_in() && renewing() {
        // What is being got would come back to a state that is gone.
        return Err(unavailable("its token is being renewed; change it again in a moment"));
    }
    seal_bytes(vault, after, secret.expose())
}

/// What a sealed secret is bound to: it opens for nothing else.
fn bound_to(connection: &Connection) -> Vec<u8> {
    let scheme = serde_json::to_vec(&connection.scheme).unwrap_or_default();
    let mut reach = Sha256::new();
    let mut put = |bytes: &[u8]| {
        reach.update((bytes.len() as u64).to_be_bytes());
        reach.update(bytes);
    };
    put(&(connection.hosts.len() as u64).to_be_bytes());
    for host in &connection.hosts {
        put(host.name.as_bytes());
        put(&host.port.to_be_bytes());
    }
    put(&(connection.exceptions.len() as u64).to_be_bytes());
    for exception in &connection.exceptions {
        put(exception.cidr.to_string().as_bytes());
        put(&exception.port.to_be_bytes());
    }
    let overrides = serde_json::to_vec(&connection.overrides).unwrap_or_default();
    put(&overrides);
    match &connection.ca_pem {
        None => put(b"public roots"),
        Some(pem) => {
            put(b"own authority");
            put(pem.as_bytes());
        }
    }
    let reach = reach.finalize();
    let generation = connection.generation.to_be_bytes();
    let fields: [&[u8]; 5] =
        [b"cambium secret 1", connection.id.as_str().as_bytes(), &generation, &scheme, &reach];
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend((field.len() as u64).to_be_bytes());
        bytes.extend(field);
    }
    bytes
}

#[cfg(test)]
mod tests;
