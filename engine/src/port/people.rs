//! Persons, their one-time codes and their console sessions. Codes and
//! sessions are stored as hashes; the passphrase as the text of an Argon2id
//! hash, which only `person.rs` reads.

use super::{Answering, SecretHash};
use cambium_proxy::PersonId;

/// A person.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonRow {
    /// Their id.
    pub id: PersonId,
    /// Argon2id in PHC text; absent until set-up is done.
    pub passphrase: Option<String>,
    /// Milliseconds UTC.
    pub created_ms: i64,
}

/// A one-time code.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeRow {
    /// Hash of the code.
    pub hash: SecretHash,
    /// Whom it proves.
    pub person: PersonId,
    /// Milliseconds UTC.
    pub expires_ms: i64,
}

/// A console session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Hash of its token.
    pub hash: SecretHash,
    /// Whose.
    pub person: PersonId,
    /// Milliseconds UTC.
    pub opened_ms: i64,
    /// Milliseconds UTC.
    pub expires_ms: i64,
}

/// Keeps persons, codes and sessions.
pub trait PersonStore: Send + Sync {
    /// The one person, if set up.
    fn person(&self) -> Answering<'_, Option<PersonRow>>;
    /// Creates the person. Conflict when there is one.
    fn insert_person<'a>(&'a self, person: &'a PersonRow) -> Answering<'a, ()>;
    /// Replaces the passphrase's hash and, with `end_sessions`, ends every
    /// open session.
    fn set_passphrase<'a>(
        &'a self,
        person: &'a PersonId,
        passphrase: &'a str,
        end_sessions: bool,
        now_ms: i64,
    ) -> Answering<'a, ()>;
    /// Keeps a code.
    fn insert_code<'a>(&'a self, code: &'a CodeRow) -> Answering<'a, ()>;
    /// Marks an unused code that has not expired as used, by compare-and-swap:
    /// true for exactly one caller.
    fn redeem_code<'a>(&'a self, hash: &'a SecretHash, now_ms: i64) -> Answering<'a, bool>;
    /// Keeps a session.
    fn insert_session<'a>(&'a self, session: &'a SessionRow) -> Answering<'a, ()>;
    /// An open session that has not expired.
    fn session<'a>(
        &'a self,
        hash: &'a SecretHash,
        now_ms: i64,
    ) -> Answering<'a, Option<SessionRow>>;
    /// Ends one session. No error when there is none.
    fn end_session<'a>(&'a self, hash: &'a SecretHash, now_ms: i64) -> Answering<'a, ()>;
}
