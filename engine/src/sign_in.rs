//! A person signing in at a vendor's, for connections whose tokens are theirs.
//! A sign-in is begun in a console session and ends in the same one, once and
//! within ten minutes; whoever brings an answer without that session brings
//! nothing. The redemption itself is the proxy's.

use crate::id::secret_hash;
use crate::port::SecretHash;
use crate::{Engine, EngineError, Event, PersonProof};
use cambium_proxy::{
    AgentId, Connection, ConnectionStatus, Consent, Proxy, Refusal, Secret, StoreFault,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a person may take at the vendor's, milliseconds.
const LIFE_MS: i64 = 10 * 60 * 1000;

/// Sign-ins under way: more than a person has browsers open.
const OPEN_MAX: usize = 32;

/// Longest error word of a vendor's that is repeated, bytes.
const ERROR_BYTES: usize = 64;

/// Sign-ins that were begun, by the state their answer must bring.
#[derive(Default)]
pub(crate) struct SignIns {
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    consent: Consent,
    session: SecretHash,
    same_account: bool,
    expires_ms: i64,
}

impl SignIns {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a browser brought back from the vendor.
pub struct SignInAnswer {
    /// Which sign-in it answers.
    pub state: String,
    /// What is to be redeemed, if the person agreed.
    pub code: Option<Secret>,
    /// Why not, in the vendor's word.
    pub error: Option<String>,
    /// Who answered (RFC 9207).
    pub issuer: Option<String>,
}

impl Engine {
    /// Begins a sign-in in a console session; answers the vendor's link.
    /// `same_account` keeps what was allowed on the connection.
    pub async fn begin_sign_in(
        &self,
        _proof: &PersonProof,
        session: &str,
        connection: &str,
        redirect_uri: &str,
        same_account: bool,
    ) -> Result<String, EngineError> {
        let connection = self.connection(connection).await?;
        if connection.status == ConnectionStatus::Revoked {
            let said = format!("`{}` was revoked", connection.slug);
            return Err(Refusal::ConnectionRevoked(said).into());
        }
        let (link, consent) = Proxy::begin_consent(&connection, redirect_uri)?;
        let now = self.now();
        let mut open = self.sign_ins.open();
        open.retain(|_, begun| begun.expires_ms > now);
        if open.len() >= OPEN_MAX {
            return Err(EngineError::Busy);
        }
        let begun = Open {
            session: secret_hash(session),
            // Nobody has allowed anything on a connection that never worked.
            same_account: same_account || connection.status == ConnectionStatus::Pending,
            expires_ms: now + LIFE_MS,
            consent,
        };
        open.insert(begun.consent.state().to_owned(), begun);
        Ok(link)
    }

    /// Ends a sign-in: redeems the code and makes the connection usable. The
    /// sign-in is used up whatever comes of it.
    pub async fn finish_sign_in(
        &self,
        _proof: &PersonProof,
        session: &str,
        answer: SignInAnswer,
    ) -> Result<Connection, EngineError> {
        let begun = self.sign_ins.open().remove(&answer.state);
        let unknown = || EngineError::ArgumentInvalid {
            name: "state".to_owned(),
            reason: "names no sign-in of this session; begin it anew".to_owned(),
        };
        let begun = begun
            .filter(|begun| begun.session == secret_hash(session) && begun.expires_ms > self.now())
            .ok_or_else(unknown)?;
        let connection = self.connection(begun.consent.connection().as_str()).await?;
        if connection.status == ConnectionStatus::Revoked {
            let said = format!("`{}` was revoked", connection.slug);
            return Err(Refusal::ConnectionRevoked(said).into());
        }
        let Some(code) = answer.code else {
            let word = answer.error.unwrap_or_default();
            let plain = word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let word = if plain && word.len() <= ERROR_BYTES { word } else { String::new() };
            let said = format!("the vendor gave no sign-in ({word})");
            return Err(Refusal::CredentialUnavailable(said).into());
        };
        let proxy = &self.parts.proxy;
        let issuer = answer.issuer.as_deref();
        // Until it is stored: the key it is sealed under must not leave meanwhile.
        let sealing = proxy.sealing().await;
        let (consent, same_account) = (begun.consent, begun.same_account);
        let finished =
            proxy.finish_consent(&sealing, &connection, consent, &code, issuer, same_account);
        let (mut after, secret) = finished.await?;
        let store = &self.parts.store;
        let kept = match secret {
            Some(secret) => match store.change_connection(&after, Some(&secret)).await {
                // One that came back from a revoke waits for this.
                Ok(()) => store.mark_connected(&after.id, self.now()).await,
                Err(fault) => Err(fault),
            },
            None => store.mark_connected(&after.id, self.now()).await,
        };
        drop(sealing);
        let returned = match kept {
            Ok(returned) => returned,
            Err(StoreFault::Conflict(_)) => {
                let said = format!("`{}` was revoked or changed meanwhile", after.slug);
                return Err(Refusal::ConnectionRevoked(said).into());
            }
            Err(fault) => return Err(fault.into()),
        };
        after.status = ConnectionStatus::Connected;
        self.credential_entered(&after.id).await?;
        let mut agents: BTreeSet<AgentId> = self.in_scope(&after.id).await?.into_iter().collect();
        agents.extend(returned.back.into_iter().map(|(agent, _)| agent));
        self.send(Event::list_changed(agents));
        Ok(after)
    }
}
