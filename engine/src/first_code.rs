//! The first code: what proves a person while nobody has set a passphrase. There
//! is one at a time, in memory only, good once and for ten minutes; whoever may
//! read the data directory gets the next when it is spent. Once a passphrase is
//! set there is none, and none that was shown before is worth anything.

use crate::id::{code_hash, new_code};
use crate::person::CODE_LIFE_MS;
use crate::{Engine, EngineError};
use tokio::sync::{Mutex, MutexGuard, Notify};

/// A code for the server's terminal and its 0600 file.
pub struct FirstCode {
    /// As it is typed.
    pub code: String,
    /// Milliseconds UTC from which it proves nothing.
    pub expires_ms: i64,
}

/// The code in force, if there is one.
#[derive(Default)]
pub(crate) struct FirstCodes {
    /// Held while a passphrase is set, too: of two that set the first, one does.
    live: Mutex<Option<FirstCode>>,
    spent: Notify,
}

impl FirstCodes {
    /// Keeps any from being shown or used meanwhile.
    pub(crate) async fn hold(&self) -> MutexGuard<'_, Option<FirstCode>> {
        self.live.lock().await
    }

    /// Tells who waits in [`Engine::first_code_spent`].
    pub(crate) fn tell(&self) {
        self.spent.notify_one();
    }
}

impl Engine {
    /// The code in force while no passphrase is set, a new one where it was used
    /// or has lapsed; `None` once a passphrase is set.
    pub async fn first_code(&self) -> Result<Option<FirstCode>, EngineError> {
        let mut live = self.first_codes.hold().await;
        if !self.needs_setup().await? {
            *live = None;
            return Ok(None);
        }
        let now = self.now();
        let first = match live.take() {
            Some(first) if first.expires_ms > now => first,
            _ => FirstCode { code: new_code()?, expires_ms: now + CODE_LIFE_MS },
        };
        let shown = FirstCode { code: first.code.clone(), expires_ms: first.expires_ms };
        *live = Some(first);
        Ok(Some(shown))
    }

    /// Waits until the code in force was used or a passphrase was set; for one
    /// waiter, who hears of what happened before it waited, too.
    pub async fn first_code_spent(&self) {
        self.first_codes.spent.notified().await;
    }

    /// Whether this is the code in force; it is not afterwards.
    pub(crate) async fn redeem_first(&self, typed: &str) -> Result<bool, EngineError> {
        let mut live = self.first_codes.hold().await;
        let hash = code_hash(typed);
        let Some(first) = live.take_if(|first| code_hash(&first.code) == hash) else {
            return Ok(false);
        };
        self.first_codes.tell();
        Ok(first.expires_ms > self.now() && self.needs_setup().await?)
    }
}
