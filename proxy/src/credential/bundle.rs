//! What is sealed for `oauth2_authorization_code`: the client's secret, what a
//! person's sign-in gave, and who is redeeming the refresh token now. It is
//! replaced as a whole, by compare-and-swap.

use super::token::{Granted, Hidden};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// How long a redemption may take before another may try, milliseconds: longer
/// than a token call's own deadline.
pub(super) const CLAIM_MS: i64 = 60_000;

/// Longest an access token is believed to last, milliseconds.
const LONGEST_MS: i64 = 24 * 60 * 60 * 1000;

/// The sealed state.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    pub(super) client_secret: Option<Hidden>,
    pub(super) refresh: Option<Hidden>,
    pub(super) access: Option<Hidden>,
    /// When the access token ends, milliseconds UTC, margin taken off.
    until_ms: i64,
    claim: Option<Claim>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    by: String,
    until_ms: i64,
}

impl Bundle {
    /// Before anybody signed in.
    pub(super) fn new(client_secret: Option<&str>) -> Self {
        let client_secret = client_secret.map(Hidden::new);
        Self { client_secret, refresh: None, access: None, until_ms: 0, claim: None }
    }

    /// Reads what was sealed.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// What is to be sealed.
    pub(super) fn bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The access token and how long it may still be used, milliseconds, unless
    /// it is over or the one the vendor refused.
    pub(super) fn usable(&self, now_ms: i64, refused: Option<[u8; 32]>) -> Option<(&Hidden, i64)> {
        let access = self.access.as_ref()?;
        let left = self.until_ms - now_ms;
        // A clock that was set back makes no token last longer.
        let holds = (1..=LONGEST_MS).contains(&left) && refused != Some(digest(access));
        holds.then_some((access, left))
    }

    /// Whether somebody else is redeeming the refresh token.
    pub(super) fn claimed(&self, now_ms: i64) -> bool {
        self.claim.as_ref().is_some_and(|claim| (1..=CLAIM_MS).contains(&(claim.until_ms - now_ms)))
    }

    /// The same under a claim, or without one.
    pub(super) fn claim(&self, by: Option<&str>, now_ms: i64) -> Self {
        let claim = by.map(|by| Claim { by: by.to_owned(), until_ms: now_ms + CLAIM_MS });
        Self {
            client_secret: self.client_secret.clone(),
            refresh: self.refresh.clone(),
            access: self.access.clone(),
            until_ms: self.until_ms,
            claim,
        }
    }

    /// With what an issuer gave; a refresh token it does not rotate stays.
    pub(super) fn renewed(&self, granted: &Granted, now_ms: i64) -> Self {
        Self {
            client_secret: self.client_secret.clone(),
            refresh: granted.refresh.clone().or_else(|| self.refresh.clone()),
            access: Some(granted.access.clone()),
            until_ms: now_ms + granted.lifetime_s * 1000,
            claim: None,
        }
    }

    /// Every secret in it.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        [&self.client_secret, &self.refresh, &self.access]
            .into_iter()
            .flatten()
            .map(Hidden::as_bytes)
    }
}

/// What a refused token is remembered by.
pub(super) fn digest(token: &Hidden) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
