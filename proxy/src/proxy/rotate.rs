//! Rotating the sealing key: a new one joins the key file, every secret is
//! sealed anew under it, and the old one leaves. Each step is whole on the disk
//! before the next; one that a crash cut off is taken up again where it was.

use super::Shared;
use crate::{SealedSecret, StoreFault, VaultError, credential};
use std::time::Duration;

/// How long a round waits for a token call, and how many there are: longer than
/// such a call may take.
const PAUSE: Duration = Duration::from_millis(100);
const ROUNDS: u32 = 600;

/// What a rotation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Rotated {
    /// Secrets sealed anew.
    pub resealed: u64,
    /// Secrets that opened for no state of their connection, before as after:
    /// they are of no use and were left.
    pub dead: u64,
}

/// What becomes of one secret.
enum Again {
    /// Sealed anew for its connection as it stands.
    Sealed(SealedSecret),
    /// A token call is under way that will store its answer in its place, and
    /// must find it as it left it.
    Renewing,
    /// It does not open.
    Dead,
}

pub(super) async fn rotate(shared: &Shared) -> Result<Rotated, StoreFault> {
    // Held throughout: no secret is sealed under the key that is about to leave.
    let _alone = shared.sealing.write().await;
    let vault = &shared.parts.vault;
    vault.begin_rotation().map_err(unkept)?;
    let mut rotated = Rotated { resealed: 0, dead: 0 };
    let mut dead: Vec<SealedSecret> = Vec::new();
    for _ in 0..ROUNDS {
        let mut left = shared.parts.secrets.secrets().await?;
        left.retain(|old| !vault.is_current(&old.wrapped_key) && !dead.contains(old));
        if left.is_empty() {
            rotated.dead = dead.len() as u64;
            vault.end_rotation().map_err(unkept)?;
            return Ok(rotated);
        }
        let mut renewing = false;
        for old in left {
            match again(shared, &old).await? {
                Again::Dead => dead.push(old),
                Again::Renewing => renewing = true,
                Again::Sealed(new) => match shared.parts.secrets.replace_secret(&old, &new).await {
                    Ok(()) => rotated.resealed += 1,
                    // A token was refreshed meanwhile: seen in the next round.
                    Err(StoreFault::Conflict(_)) => {}
                    Err(fault) => return Err(fault),
                },
            }
        }
        if renewing {
            tokio::time::sleep(PAUSE).await;
        }
    }
    let why = "a token is still being renewed; rotate again to take this up";
    Err(StoreFault::Unavailable(why.into()))
}

async fn again(shared: &Shared, old: &SealedSecret) -> Result<Again, StoreFault> {
    let parts = &shared.parts;
    let found = parts.connections.connection(&old.connection).await?;
    let Some(now) = found else { return Ok(Again::Dead) };
    let sealed = || Ok(Some(old.clone()));
    match credential::reseal(&parts.vault, &now, &now, sealed(), parts.clock.now_ms()) {
        Ok(new) => Ok(Again::Sealed(new)),
        Err(_) if credential::open(&parts.vault, &now, sealed()).is_ok() => Ok(Again::Renewing),
        Err(_) => Ok(Again::Dead),
    }
}

fn unkept(error: VaultError) -> StoreFault {
    StoreFault::Unavailable(error.to_string())
}
