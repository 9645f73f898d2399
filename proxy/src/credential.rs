//! The one file that opens a [`Secret`]: checks it at entry, seals it to its
//! connection, opens it again, and hands its bytes to the scheme's own file in
//! `credential/`, which turns them into what goes last on a request. Everything
//! it hands out is marked sensitive, and every value made of the secret is
//! among those `scrub` looks for.

mod basic;
mod cookie;
mod header;
mod path;
mod query;

use crate::scrub::Redactor;
use crate::target::Target;
use crate::{
    Connection, EntryFault, HeldRequest, Refusal, Scheme, SealedSecret, Secret, StoreFault, Vault,
};
use http::header::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Longest secret: a header of 8 KiB is what common servers still take.
const SECRET_BYTES: usize = 8 * 1024;

/// Why a secret cannot be placed or taken, in words that follow its name.
type Unfit = &'static str;

/// The opened credential of one state of a connection.
pub(crate) struct Credential {
    connection: Connection,
    secret: Option<Secret>,
    /// What is the same on each request.
    header: Option<(HeaderName, HeaderValue)>,
    redactor: Redactor,
}

/// What goes last on one request.
pub(crate) struct Placement {
    /// Headers, replacing any of their names.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Path and query as sent.
    pub(crate) target: Zeroizing<String>,
    /// Hides the secret and everything made of it for this request.
    pub(crate) redactor: Redactor,
}

impl Credential {
    /// Hides every form of the secret.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The vault's one narrow call: a complete request of this connection in,
    /// what is to be added to exactly that request out.
    pub(crate) fn place(&self, held: &HeldRequest) -> Result<Placement, Refusal> {
        let ours = held.connection == self.connection.id
            && held.generation == self.connection.generation
            && self
                .connection
                .hosts
                .iter()
                .any(|host| crate::target::authority(host) == held.authority);
        if !ours {
            return Err(unavailable("the request is not one of this credential's connection"));
        }
        let mut placement = Placement {
            headers: self.header.iter().cloned().collect(),
            target: Zeroizing::new(held.target.clone()),
            redactor: self.redactor.clone(),
        };
        let Some(secret) = &self.secret else { return Ok(placement) };
        let target = match &self.connection.scheme {
            Scheme::None
            | Scheme::Bearer
            | Scheme::ApiKeyHeader { .. }
            | Scheme::Basic { .. }
            | Scheme::Cookie { .. } => return Ok(placement),
            Scheme::ApiKeyQuery { parameter } => {
                query::place(parameter, secret.expose(), &held.target)
            }
            Scheme::UrlPath { template } => path::place(template, secret.expose(), &held.target),
        };
        let target = std::str::from_utf8(&target)
            .map_err(|_| unavailable("the credential does not fit in a path"))?;
        placement.target = Zeroizing::new(target.to_owned());
        Ok(placement)
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
    let Scheme::ApiKeyQuery { parameter } = scheme else { return 0 };
    let Some(query) = &target.query else { return 0 };
    let ours = query::plain(parameter);
    let (query, dropped) = query::without(query, |name| name == ours);
    target.query = query;
    dropped
}

/// Whether a secret can be one of this scheme.
pub(crate) fn check_secret(scheme: &Scheme, secret: Option<&Secret>) -> Result<(), EntryFault> {
    let wrong = |why: &str| Err(EntryFault::new("secret", why));
    let bytes = match (scheme.takes_secret(), secret) {
        (false, None) => return Ok(()),
        (false, Some(_)) => {
            return wrong(&format!("is not used: the scheme `{}` takes none", scheme.name()));
        }
        (true, None) => {
            return wrong(&format!("is missing: the scheme `{}` needs one", scheme.name()));
        }
        (true, Some(secret)) => secret.expose(),
    };
    if bytes.is_empty() || bytes.len() > SECRET_BYTES {
        return wrong("is empty or longer than 8 KiB");
    }
    let visible = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    if !visible || bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
        return wrong("holds a line end, a space at an end, or something else than visible ASCII");
    }
    let fits = match scheme {
        Scheme::None
        | Scheme::Bearer
        | Scheme::ApiKeyHeader { .. }
        | Scheme::ApiKeyQuery { .. } => Ok(()),
        Scheme::Basic { username } => basic::check_secret(username.as_deref(), bytes),
        Scheme::Cookie { .. } => cookie::check_secret(bytes),
        Scheme::UrlPath { .. } => path::check_secret(bytes),
    };
    fits.or_else(wrong)
}

/// Seals a secret to a connection as it stands.
pub(crate) fn seal(
    vault: &Vault,
    connection: &Connection,
    secret: &Secret,
) -> Result<SealedSecret, Refusal> {
    check_secret(&connection.scheme, Some(secret))
        .map_err(|fault| Refusal::CredentialUnavailable(format!("the {fault}")))?;
    let sealed = vault
        .seal(secret.expose(), &bound_to(connection))
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
    if !connection.scheme.takes_secret() {
        let redactor = Redactor::none();
        return Ok(Credential { connection, secret: None, header: None, redactor });
    }
    let secret = unseal(vault, &connection, sealed)?;
    let bytes = secret.expose();
    let slug = &connection.slug;
    let plain = || Redactor::new(&[bytes], slug);
    let (header, redactor) = match &connection.scheme {
        Scheme::None | Scheme::ApiKeyQuery { .. } | Scheme::UrlPath { .. } => (None, plain()),
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
    };
    let header = header.transpose().map_err(unavailable)?;
    Ok(Credential { connection, secret: Some(secret), header, redactor })
}

fn unseal(
    vault: &Vault,
    connection: &Connection,
    sealed: Result<Option<SealedSecret>, StoreFault>,
) -> Result<Secret, Refusal> {
    let sealed = sealed
        .map_err(|_| unavailable("the stored credential could not be read"))?
        .ok_or_else(|| unavailable("the connection has no credential"))?;
    if sealed.connection != connection.id || sealed.generation != connection.generation {
        return Err(unavailable("the stored credential is another state's of the connection"));
    }
    let plain = vault
        .unseal(&sealed.wrapped_key, &sealed.sealed, &bound_to(connection))
        .ok_or_else(|| unavailable("the stored credential does not open for this connection"))?;
    Ok(Secret::take(plain))
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
) -> Result<SealedSecret, Refusal> {
    seal(vault, after, &unseal(vault, before, sealed)?)
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
