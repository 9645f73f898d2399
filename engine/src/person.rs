//! The person who decides. A decision takes a [`PersonProof`], which only a
//! checked passphrase, a redeemed code or a console session can make. Wrong
//! passphrases are answered one at a time and ever more slowly; codes are too
//! long to guess and never wait behind them.

use crate::changes::Topic;
use crate::id::{code_hash, new_code, new_session, secret_hash};
use crate::passphrase;
use crate::port::{CodeRow, PersonRow, SessionRow};
use crate::{Engine, EngineError};
use std::time::Duration;
use tokio::sync::Mutex;

/// A code is typed at once or asked for again.
pub(crate) const CODE_LIFE_MS: i64 = 10 * 60 * 1000;
/// A console session lasts a working day.
const SESSION_LIFE_MS: i64 = 12 * 60 * 60 * 1000;
/// Characters of a passphrase. The upper bound keeps hashing cheap to refuse.
const PASSPHRASE_CHARS: std::ops::RangeInclusive<usize> = 8..=1024;
/// The wait after a first wrong passphrase; it doubles from there.
const FIRST_PENALTY: Duration = Duration::from_millis(250);
/// Where it stops doubling: a person who mistypes must still get in.
const LONGEST_PENALTY: Duration = Duration::from_secs(8);
/// Passphrases that may wait to be checked; each is 19 MiB of work.
const WAITING_MAX: usize = 8;

/// When a console session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd(i64);

/// What a person shows.
pub enum PersonCredential {
    /// The passphrase.
    Passphrase(String),
    /// A one-time code.
    Code(String),
}

/// Proof that a person is there.
#[derive(Debug)]
pub struct PersonProof {
    fresh: bool,
    /// By the first code, which sets a passphrase and changes none.
    first: bool,
}

impl PersonProof {
    /// True when the passphrase or a code was given just now; standing and
    /// destructive answers need it.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// Counts wrong passphrases and lets one be checked at a time.
pub(crate) struct Attempts {
    failures: Mutex<u32>,
    waiting: tokio::sync::Semaphore,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { failures: Mutex::new(0), waiting: tokio::sync::Semaphore::new(WAITING_MAX) }
    }
}

impl Engine {
    /// True until a passphrase is set.
    pub async fn needs_setup(&self) -> Result<bool, EngineError> {
        Ok(self.person_row().await?.passphrase.is_none())
    }

    /// A one-time code (ten minutes, single use) of a proved person, for the
    /// command line; before there is a passphrase, see [`Self::first_code`].
    pub async fn issue_code(&self) -> Result<String, EngineError> {
        let code = new_code()?;
        let row = CodeRow {
            hash: code_hash(&code),
            person: self.person.clone(),
            expires_ms: self.now() + CODE_LIFE_MS,
        };
        self.parts.store.insert_code(&row).await?;
        Ok(code)
    }

    /// Checks a passphrase or redeems a code. Slow on purpose; counts failures.
    pub async fn prove_person(
        &self,
        credential: PersonCredential,
    ) -> Result<PersonProof, EngineError> {
        let (holds, first) = match credential {
            PersonCredential::Passphrase(text) => (self.passphrase_holds(text).await?, false),
            PersonCredential::Code(text) if self.redeem_first(&text).await? => (true, true),
            PersonCredential::Code(text) => {
                (self.parts.store.redeem_code(&code_hash(&text), self.now()).await?, false)
            }
        };
        if !holds {
            return Err(EngineError::PersonRequired);
        }
        Ok(PersonProof { fresh: true, first })
    }

    /// Sets or changes the passphrase, given a fresh proof; one by the first code
    /// only sets. A change ends every open console session.
    pub async fn set_passphrase(
        &self,
        proof: &PersonProof,
        passphrase: PersonCredential,
    ) -> Result<(), EngineError> {
        if !proof.fresh {
            return Err(EngineError::PersonRequired);
        }
        let PersonCredential::Passphrase(text) = passphrase else {
            return Err(EngineError::ArgumentInvalid {
                name: "passphrase".into(),
                reason: "a code cannot be kept as a passphrase".into(),
            });
        };
        let length = text.chars().count();
        if !PASSPHRASE_CHARS.contains(&length) {
            return Err(EngineError::OutOfRange {
                name: "the passphrase",
                value: format!("{length} characters"),
                rule: "8 to 1024 characters long",
            });
        }
        let mut first_code = self.first_codes.hold().await;
        let changes = self.person_row().await?.passphrase.is_some();
        if changes && proof.first {
            return Err(EngineError::PersonRequired);
        }
        let hash = off_thread(move || passphrase::hash(&text)).await??;
        self.parts.store.set_passphrase(&self.person, &hash, changes, self.now()).await?;
        *first_code = None;
        self.first_codes.tell();
        self.changed(Topic::Sessions);
        Ok(())
    }

    /// Opens a console session; answers its token, stored hashed.
    pub async fn open_session(&self, _proof: &PersonProof) -> Result<String, EngineError> {
        let token = new_session()?;
        let opened_ms = self.now();
        let row = SessionRow {
            hash: secret_hash(&token),
            person: self.person.clone(),
            opened_ms,
            expires_ms: opened_ms + SESSION_LIFE_MS,
        };
        self.parts.store.insert_session(&row).await?;
        Ok(token)
    }

    /// The proof of a console session: not fresh.
    pub async fn session(&self, token: &str) -> Result<PersonProof, EngineError> {
        match self.parts.store.session(&secret_hash(token), self.now()).await? {
            Some(_) => Ok(PersonProof { fresh: false, first: false }),
            None => Err(EngineError::PersonRequired),
        }
    }

    /// When a console session ends, unless it is ended before.
    pub async fn session_ends(&self, token: &str) -> Result<SessionEnd, EngineError> {
        let row = self.parts.store.session(&secret_hash(token), self.now()).await?;
        Ok(SessionEnd(row.ok_or(EngineError::PersonRequired)?.expires_ms))
    }

    /// How long it is until then, by the clock on the wall.
    pub fn left(&self, end: SessionEnd) -> Duration {
        Duration::from_millis(u64::try_from(end.0.saturating_sub(self.now())).unwrap_or(0))
    }

    /// Ends a console session; an unknown one is no error.
    pub async fn close_session(&self, token: &str) -> Result<(), EngineError> {
        self.parts.store.end_session(&secret_hash(token), self.now()).await?;
        self.changed(Topic::Sessions);
        Ok(())
    }

    async fn passphrase_holds(&self, text: String) -> Result<bool, EngineError> {
        let _place = self.attempts.waiting.try_acquire().map_err(|_| EngineError::Busy)?;
        // Held through the penalty: guesses are answered one after the other.
        let mut failures = self.attempts.failures.lock().await;
        let Some(stored) = self.person_row().await?.passphrase else { return Ok(false) };
        let holds = text.chars().count() <= *PASSPHRASE_CHARS.end()
            && off_thread(move || passphrase::holds(&stored, &text)).await?;
        if holds {
            *failures = 0;
        } else {
            *failures = failures.saturating_add(1);
            tracing::warn!(failures = *failures, "a wrong passphrase was given");
            tokio::time::sleep(penalty(*failures)).await;
        }
        Ok(holds)
    }

    async fn person_row(&self) -> Result<PersonRow, EngineError> {
        self.parts.store.person().await?.ok_or(EngineError::PersonRequired)
    }
}

fn penalty(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    LONGEST_PENALTY.min(FIRST_PENALTY * 2_u32.saturating_pow(doublings))
}

/// Argon2 takes tens of milliseconds of one core: never on an async thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| EngineError::SandboxUnavailable("the passphrase could not be checked".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_grow_slow_but_not_endless() {
        assert_eq!(penalty(1), FIRST_PENALTY);
        assert_eq!(penalty(3), FIRST_PENALTY * 4);
        assert_eq!(penalty(u32::MAX), LONGEST_PENALTY);
    }
}
