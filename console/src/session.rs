//! Who looks: a person with a console session, read from its cookie at each
//! request. The token of a session's forms is derived from its own, so it needs
//! no place of its own and ends with it. An agent's token opens nothing here.

use crate::Console;
use crate::error::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cambium_engine::PersonProof;
use http::HeaderMap;
use http::header::{COOKIE, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const COOKIE_NAME: &str = "cambium_session";
/// As long as the engine keeps a session.
const COOKIE_SECONDS: u32 = 12 * 60 * 60;
/// Longest session token looked at, bytes.
const TOKEN_BYTES_MAX: usize = 128;

/// A person who is logged in.
pub(crate) struct Visitor {
    token: String,
    /// Not fresh: standing and destructive answers need the passphrase again.
    pub(crate) proof: PersonProof,
}

impl Visitor {
    /// The visitor of a request, or the way to the login.
    pub(crate) async fn of(
        console: &Console,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Self, Problem> {
        let token = cookie(headers).ok_or_else(|| Problem::login(path))?;
        match console.engine.session(&token).await {
            Ok(proof) => Ok(Self { token, proof }),
            Err(cambium_engine::EngineError::PersonRequired) => Err(Problem::login(path)),
            Err(error) => Err(error.into()),
        }
    }

    /// What every form of this session carries.
    pub(crate) fn form_token(&self) -> String {
        let digest = Sha256::new()
            .chain_update(b"cambium console form\0")
            .chain_update(self.token.as_bytes())
            .finalize();
        URL_SAFE_NO_PAD.encode(digest)
    }

    /// Refuses a form that is not one of this session's.
    pub(crate) fn check_form(&self, given: &str) -> Result<(), Problem> {
        let holds: bool = self.form_token().as_bytes().ct_eq(given.as_bytes()).into();
        if holds { Ok(()) } else { Err(Problem::form()) }
    }

    /// Its session token, to end it.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

/// The cookie that carries a session; `None` ends it.
pub(crate) fn set_cookie(token: Option<&str>) -> Option<HeaderValue> {
    let (token, seconds) = token.map_or(("", 0), |token| (token, COOKIE_SECONDS));
    let text =
        format!("{COOKIE_NAME}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    HeaderValue::from_str(&text).ok()
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let mut found = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, token)| token);
    let token = found.next()?;
    // Two of that name: one was planted.
    let sound = found.next().is_none() && !token.is_empty() && token.len() <= TOKEN_BYTES_MAX;
    sound.then(|| token.to_owned())
}
