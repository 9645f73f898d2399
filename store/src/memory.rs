//! Answers that were read and believed, kept with the claims they rest on. One is
//! given again only while the ledger bears all of its claims out, so it is never
//! older than what the ledger knows; each spares a trip to the database's thread.
//! A sealed secret is in no ledger, since only its key can tell it from another: it
//! is kept until this process writes it.

use crate::ledger::{Claim, Ledger};
use cambium_proxy::{ConnectionId, SealedSecret};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Answers kept. A node's hot ones are few; when there are more, all are
/// forgotten, which costs each of them one read.
const KEPT: usize = 4_096;

/// Which question an answer is to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// An agent by id.
    Agent(String),
    /// An agent by the hash of its token.
    OfToken([u8; 32]),
    /// A connection by id.
    Connection(String),
    /// A connection of a person by id or slug.
    FindConnection(String, String),
    /// The agents of a connection.
    Scope(String),
    /// The decision that stands for an agent, a tool and a content.
    Standing(String, String, String),
    /// A switch of an agent.
    Switch(String, String),
    /// The pointer of a person's tool.
    Pointer(String, String),
}

struct Kept {
    claims: Vec<Claim>,
    answer: Arc<dyn Any + Send + Sync>,
}

/// The answers of one store.
#[derive(Default)]
pub(crate) struct Memory {
    answers: Mutex<HashMap<Question, Kept>>,
    secrets: Mutex<Secrets>,
}

#[derive(Default)]
struct Secrets {
    /// Begins and ends of commits so far: what was read across one is not kept.
    written: u64,
    /// Writes that are being committed: what is read meanwhile is not kept.
    committing: u32,
    /// Somebody went away in the middle of a commit: nobody knows which secret
    /// the database has, and when, so none is kept any more.
    unsure: bool,
    by_connection: HashMap<ConnectionId, SealedSecret>,
}

/// The commit of a write of secrets.
pub(crate) struct SecretsCommit<'a> {
    memory: &'a Memory,
    done: bool,
}

impl SecretsCommit<'_> {
    /// It is committed.
    pub(crate) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for SecretsCommit<'_> {
    fn drop(&mut self) {
        let mut secrets = self.memory.secrets();
        secrets.committing = secrets.committing.saturating_sub(1);
        // What was read while it committed may be of before.
        secrets.written += 1;
        secrets.unsure |= !self.done;
    }
}

/// How many secrets had been written when a read of one began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("kept", &self.kept().len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// The answer, if it still holds. One that does not is forgotten.
    pub(crate) fn recall<T: Clone + 'static>(
        &self,
        question: &Question,
        ledger: &Ledger,
    ) -> Option<T> {
        let mut kept = self.kept();
        let found = kept.get(question)?;
        if ledger.odd(&found.claims).is_some() {
            kept.remove(question);
            return None;
        }
        found.answer.downcast_ref::<T>().cloned()
    }

    /// Keeps an answer the ledger bore out.
    pub(crate) fn keep<T: Clone + Send + Sync + 'static>(
        &self,
        question: Question,
        answer: &T,
        claims: Vec<Claim>,
    ) {
        if claims.is_empty() {
            return;
        }
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(question, Kept { claims, answer: Arc::new(answer.clone()) });
    }

    /// A sealed secret, or the moment its read begins.
    pub(crate) fn secret(&self, of: &ConnectionId) -> Result<SealedSecret, Moment> {
        let secrets = self.secrets();
        secrets.by_connection.get(of).cloned().ok_or(Moment(secrets.written))
    }

    /// Keeps a secret that was read, unless one was written meanwhile.
    pub(crate) fn keep_secret(&self, began: Moment, secret: &SealedSecret) {
        let mut secrets = self.secrets();
        if secrets.unsure || secrets.committing > 0 || secrets.written != began.0 {
            return;
        }
        if secrets.by_connection.len() >= KEPT {
            secrets.by_connection.clear();
        }
        secrets.by_connection.insert(secret.connection.clone(), secret.clone());
    }

    /// Forgets every secret, and keeps none until the commit is done.
    pub(crate) fn commit_secrets(&self) -> SecretsCommit<'_> {
        let mut secrets = self.secrets();
        secrets.written += 1;
        secrets.committing += 1;
        secrets.by_connection.clear();
        SecretsCommit { memory: self, done: false }
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Question, Kept>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
