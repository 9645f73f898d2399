//! The one file that opens a [`Secret`]: seals it to its connection, opens it
//! again, and turns it into the header that goes last on a request and the
//! forms `scrub` looks for. Everything it hands out is marked sensitive.

use crate::scrub::Redactor;
use crate::{Connection, Refusal, Scheme, SealedSecret, Secret, StoreFault, Vault};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Longest secret: a header of 8 KiB is what common servers still take.
const SECRET_BYTES: usize = 8 * 1024;

/// What is put on a request of one connection, and what is hidden in replies.
pub(crate) struct Credential {
    header: Option<(HeaderName, HeaderValue)>,
    redactor: Redactor,
}

impl Credential {
    /// The header that goes last.
    pub(crate) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.header.clone()
    }

    /// Hides every form of the secret.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential")
    }
}

/// Seals a secret to a connection as it stands.
pub(crate) fn seal(
    vault: &Vault,
    connection: &Connection,
    secret: &Secret,
) -> Result<SealedSecret, Refusal> {
    let bytes = secret.expose();
    let unfit = |why: &str| Err(Refusal::CredentialUnavailable(format!("the secret {why}")));
    if matches!(connection.scheme, Scheme::None) {
        return unfit("is not used: the connection's scheme is none");
    }
    if bytes.is_empty() || bytes.len() > SECRET_BYTES {
        return unfit("is empty or longer than 8 KiB");
    }
    let visible = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    if !visible || bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
        return unfit("holds a line end, a space at an end, or something else than visible ASCII");
    }
    let Some(sealed) = vault.seal(bytes, &bound_to(connection)) else {
        return unfit("could not be sealed: no randomness");
    };
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
    let unavailable = |why: &str| Refusal::CredentialUnavailable(why.to_owned());
    let (name, prefix) = match &connection.scheme {
        Scheme::None => {
            return Ok(Credential { header: None, redactor: Redactor::none() });
        }
        Scheme::Bearer => (AUTHORIZATION, "Bearer "),
        Scheme::ApiKeyHeader { header, prefix } => {
            let name = HeaderName::from_bytes(header.as_bytes())
                .map_err(|_| unavailable("the scheme's header name is malformed"))?;
            (name, prefix.as_str())
        }
    };
    let sealed = sealed
        .map_err(|_| unavailable("the stored credential could not be read"))?
        .ok_or_else(|| unavailable("the connection has no credential"))?;
    if sealed.connection != connection.id || sealed.generation != connection.generation {
        return Err(unavailable("the stored credential is another state's of the connection"));
    }
    let plain = vault
        .unseal(&sealed.wrapped_key, &sealed.sealed, &bound_to(connection))
        .ok_or_else(|| unavailable("the stored credential does not open for this connection"))?;
    let secret = Secret::take(plain);
    let mut value = Zeroizing::new(prefix.as_bytes().to_vec());
    value.extend_from_slice(secret.expose());
    let mut value = HeaderValue::from_bytes(&value)
        .map_err(|_| unavailable("the credential does not fit in a header"))?;
    value.set_sensitive(true);
    let redactor = Redactor::new(secret.expose(), &connection.slug);
    Ok(Credential { header: Some((name, value)), redactor })
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
