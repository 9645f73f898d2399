//! Holding a write for a person. The session hands the exact bytes to the
//! [`Desk`]; what comes back names an ask, and the session reads the decision
//! itself, so a desk can never let anything through.

use crate::{AgentId, AskId, BoxFuture, ConnectionId, ContentHash, Effect, PersonId, RunId};
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The exact request a person is asked about.
#[derive(Debug, Clone)]
pub struct HeldRequest {
    /// The run that waits.
    pub run: RunId,
    /// Whose agent.
    pub person: PersonId,
    /// Which agent.
    pub agent: AgentId,
    /// `<vendor>__<name>`.
    pub tool: String,
    /// The version's content.
    pub version: ContentHash,
    /// On which connection.
    pub connection: ConnectionId,
    /// At which generation of it.
    pub generation: u64,
    /// Write or destroy.
    pub effect: Effect,
    /// Upper-case method.
    pub method: String,
    /// `host` or `host:port` as on the wire.
    pub authority: String,
    /// Path and query as on the wire.
    pub target: String,
    /// Headers as on the wire, without the credential.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
    /// Over length-prefixed method, authority, target, headers and body.
    pub digest: ContentHash,
}

/// What became of a held request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOutcome {
    /// A decision is stored under this ask; the session reads and checks it.
    Decided(AskId),
    /// The wait budget ended, or too many are held. The ask stays open.
    Parked(Parked),
    /// A person put the question aside: no yes and no no. Nothing is sent.
    Dismissed(AskId),
    /// The agent has as many questions open as a person is asked. Nothing is sent.
    TooMany,
    /// The ask could not be stored. Nothing is sent.
    Failed,
}

/// The open ask a request was left with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The ask.
    pub ask: AskId,
    /// When it expires, milliseconds UTC.
    pub expires_ms: i64,
    /// Whether it shows this request. If not, it is about another one of the same
    /// tool, and no answer to it should be asked for in this one's name.
    pub shown: bool,
}

/// Asks a person and waits. `engine` implements it.
pub trait Desk: Send + Sync {
    /// Stores the ask (or waits for the open one of the same agent and tool) and
    /// waits until it is decided or the wait budget ends. Dropping the future
    /// leaves the ask open.
    fn hold<'a>(&'a self, request: HeldRequest) -> BoxFuture<'a, HoldOutcome>;
}

/// The digest a person's answer is bound to: over the wire bytes, each field
/// with its length, so that no two requests share one and nothing is decoded.
pub fn request_digest(
    method: &str,
    authority: &str,
    target: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> ContentHash {
    let mut hash = Sha256::new();
    let mut put = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    put(b"cambium request 1");
    put(method.as_bytes());
    put(authority.as_bytes());
    put(target.as_bytes());
    put(&(headers.len() as u64).to_be_bytes());
    for (name, value) in headers {
        put(name.as_bytes());
        put(value.as_bytes());
    }
    put(body);
    ContentHash(hash.finalize().into())
}
