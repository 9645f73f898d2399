//! The only way out: who may send what where, with which credential, and the
//! audit of every decision.
//!
//! Nothing here knows of tools' code, MCP or HTML. A run gets one [`Session`];
//! everything the run's module asks for goes through [`Session::send`]. What
//! this crate needs from a database it names as ports ([`ApprovalSource`],
//! [`AuditSink`], [`ConnectionSource`], [`SecretStore`]); `store` implements
//! them. What it needs from a person it asks through [`Desk`]; `engine`
//! implements that.

#![forbid(unsafe_code)]

// The door and one request on its way, in order.
mod address;
mod approval;
mod audit;
mod credential;
mod door;
mod effect;
mod gauge;
mod grant;
mod headers;
mod hold;
mod judge;
mod policy;
mod preview;
mod proxy;
mod request;
mod resolve;
mod review;
mod scrub;
mod secret;
mod session;
mod site;
mod target;
mod upstream;
mod vault;
// What they share.
mod clock;
mod connection;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod id;
mod limits;
mod overrides;
mod page;
mod port;
mod refusal;
mod scheme;
mod sdk;

pub use approval::{Answer, ApprovalSource, DecisionRow, PermitKey};
pub use audit::{
    Anchor, AskRecord, AuditBreak, AuditEvent, AuditKind, AuditRow, AuditSegment, AuditSink,
    CommandRecord, VerifiedChain,
};
pub use clock::{Clock, SystemClock};
pub use connection::{
    Connection, ConnectionSource, ConnectionStatus, Exception, Host, SealedSecret, SecretStore,
};
pub use credential::Consent;
pub use door::{Door, DoorAt, DoorFrame, Pass};
pub use grant::{Grant, Permit};
pub use hold::{Desk, HeldRequest, HoldOutcome, Parked, request_digest};
pub use id::{AgentId, AskId, ConnectionId, ContentHash, PersonId, RunId};
pub use limits::Limits;
pub use overrides::{OverrideFault, Overrides, Raise};
pub use page::{Page, PageAnswer, PageReach, PageRequest};
pub use port::{BoxFuture, StoreFault};
pub use preview::{Preview, PreviewRequest};
pub use proxy::{Admission, Proxy, ProxyParts, Rotated, Sealing};
pub use refusal::{Fault, Refusal};
pub use request::{Body, OutboundRequest, Reply};
pub use resolve::{Resolve, SystemResolver, public_addresses};
pub use review::{Explanation, Review, Supposed, Verdict};
pub use scheme::{
    AwsScheme, ClientAuth, ClientScheme, CodeScheme, Endpoint, EntryFault, HmacAlgorithm,
    HmacScheme, JwtAlgorithm, JwtScheme, KeyEncoding, Scheme, SignatureEncoding,
};
pub use sdk::{Sdk, is_exact_version, is_package_name};
pub use secret::Secret;
pub use session::{Exchange, Session, SessionReport, SessionSpec, Veil};
pub use site::{CallSite, Effect, Hints, MethodPattern, PathPattern};
pub use vault::{
    BACKUP_HEADER, BACKUP_OVERHEAD, BackupKeys, BackupPieces, KeySource, MacKey, Vault, VaultError,
};
