//! What every port of this crate shares: the shape of its futures and of its
//! failures. The ports themselves stand beside what they serve.

use std::future::Future;
use std::pin::Pin;

/// A future a port method answers, so that ports stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a port could not answer. A port never guesses: the caller refuses.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum StoreFault {
    /// The database did not answer or refused (disk full, locked, gone).
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A compare-and-swap lost, or a unique name is taken.
    #[error("the store holds a newer state: {0}")]
    Conflict(String),
    /// A row is there but does not parse or its MAC does not hold.
    #[error("a stored row is corrupt: {0}")]
    Corrupt(String),
}
