//! Answers that were read and believed, kept with the claims they rest on. One is
//! given again only while the ledger bears all of its claims out, so it is never
//! older than what the ledger knows; each spares a trip to the database's thread.
//! Nothing is kept that rests on no claim.

use crate::ledger::{Claim, Ledger};
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
pub(crate) struct Memory(Mutex<HashMap<Question, Kept>>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("kept", &self.kept().len()).finish()
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

    fn kept(&self) -> MutexGuard<'_, HashMap<Question, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
