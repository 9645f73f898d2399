//! A person's sign-in at a vendor's (`oauth2_authorization_code`): the link they
//! follow, and what their browser brings back. PKCE always; the answer counts
//! once, for the connection as it stood, and only from the issuer that was
//! bound when the connection was confirmed. Whose browser it is, is the
//! console's and the engine's.

use super::bundle::Bundle;
use super::mint::{self, Errand};
use super::token::Client;
use super::{open_bundle, seal_bundle, unavailable};
use crate::{
    ClientAuth, CodeScheme, Connection, ConnectionId, Refusal, Scheme, SealedSecret, Secret,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A parameter's value in a link.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Longest code a vendor may answer, bytes: longer ones do not fit in a link.
const CODE_BYTES: usize = 4 * 1024;

/// A sign-in that was begun. Using it up is what finishing takes.
pub struct Consent {
    connection: ConnectionId,
    generation: u64,
    verifier: Secret,
    redirect_uri: String,
    /// What the browser must bring back.
    state: String,
}

impl Consent {
    /// What names it in the vendor's answer: 256 random bits.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Which connection it is for.
    pub fn connection(&self) -> &ConnectionId {
        &self.connection
    }
}

impl std::fmt::Debug for Consent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consent").field("connection", &self.connection).finish_non_exhaustive()
    }
}

fn scheme(connection: &Connection) -> Result<&CodeScheme, Refusal> {
    match &connection.scheme {
        Scheme::Oauth2AuthorizationCode(scheme) => Ok(scheme),
        other => {
            let why = format!("nobody signs in for a connection of scheme `{}`", other.name());
            Err(unavailable(&why))
        }
    }
}

/// The link a person follows, and what is kept until they are back.
pub(crate) fn begin(
    connection: &Connection,
    redirect_uri: &str,
) -> Result<(String, Consent), Refusal> {
    let scheme = scheme(connection)?;
    let (state, verifier) = (random()?, random()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut link = format!("{}?response_type=code", scheme.authorization_url);
    let mut put = |name: &str, value: &str| {
        let value = utf8_percent_encode(value, VALUE);
        link.push_str(&format!("&{name}={value}"));
    };
    put("client_id", &scheme.client_id);
    put("redirect_uri", redirect_uri);
    if let Some(scope) = &scheme.scope {
        put("scope", scope);
    }
    put("state", &state);
    put("code_challenge", &challenge);
    put("code_challenge_method", "S256");
    scheme.parameters.iter().for_each(|(name, value)| put(name, value));
    let consent = Consent {
        connection: connection.id.clone(),
        generation: connection.generation,
        verifier: Secret::new(verifier.as_bytes().to_vec()),
        redirect_uri: redirect_uri.to_owned(),
        state: (*state).clone(),
    };
    Ok((link, consent))
}

/// Redeems what a browser brought back and seals it to `after`: the connection
/// as it will stand, its generation raised if the account may be another.
pub(crate) async fn finish(
    errand: &Errand,
    after: &Connection,
    consent: Consent,
    code: &Secret,
    issuer: Option<&str>,
) -> Result<SealedSecret, Refusal> {
    let connection = errand.line.connection();
    let scheme = scheme(connection)?;
    if consent.connection != connection.id || consent.generation != connection.generation {
        return Err(unavailable("the connection was changed since the sign-in began"));
    }
    check_issuer(scheme, issuer)?;
    let parts = &errand.shared.parts;
    let bundle = match scheme.client_auth {
        ClientAuth::None => Bundle::new(None),
        ClientAuth::Basic | ClientAuth::Body => {
            let sealed = parts.secrets.secret(&connection.id).await;
            open_bundle(&parts.vault, connection, sealed)?.1
        }
    };
    let call = super::code_call(scheme, &bundle, &consent, code)?;
    let granted = mint::ask(errand, call).await?;
    let bundle = Bundle::new(bundle.client_secret.as_ref().map(super::token::Hidden::as_str));
    seal_bundle(&parts.vault, after, &bundle.renewed(&granted, parts.clock.now_ms()))
}

/// RFC 9207: an answer of another issuer's is not taken, and where one is bound
/// an answer must name it.
fn check_issuer(scheme: &CodeScheme, answered: Option<&str>) -> Result<(), Refusal> {
    let holds = match (&scheme.issuer, answered) {
        (Some(bound), Some(answered)) => bound == answered,
        (Some(_), None) => false,
        (None, None) => true,
        (None, Some(answered)) => {
            let host = format!("https://{}", scheme.authorization_url.authority());
            let rest = answered.strip_prefix(&host);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    };
    if holds {
        Ok(())
    } else {
        Err(unavailable("the answer does not come from the connection's issuer"))
    }
}

/// The client of a scheme, with its secret.
pub(super) fn client<'a>(scheme: &'a CodeScheme, bundle: &'a Bundle) -> Client<'a> {
    Client {
        endpoint: &scheme.token_url,
        id: &scheme.client_id,
        auth: scheme.client_auth,
        secret: bundle.client_secret.as_ref().map(super::token::Hidden::as_bytes),
    }
}

impl Consent {
    /// The fields of the redemption; the bytes come from `credential.rs`.
    pub(super) fn fields<'a>(
        &'a self,
        code: &'a str,
        verifier: &'a str,
    ) -> [(&'a str, &'a str); 4] {
        [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", verifier),
        ]
    }

    pub(super) fn verifier(&self) -> &Secret {
        &self.verifier
    }
}

/// Whether a code can be one.
pub(super) fn check_code(code: &[u8]) -> Result<&str, Refusal> {
    let visible = code.iter().all(|byte| (0x20..0x7f).contains(byte));
    match std::str::from_utf8(code) {
        Ok(text) if visible && !text.is_empty() && text.len() <= CODE_BYTES => Ok(text),
        _ => Err(unavailable("the vendor's answer holds no usable code")),
    }
}

fn random() -> Result<Zeroizing<String>, Refusal> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)
        .map_err(|_| unavailable("no sign-in could be begun: no randomness"))?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}
