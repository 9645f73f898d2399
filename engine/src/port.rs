//! What the engine needs from a database: one trait per owner of tables, each
//! in its file. `store` implements them; every method is one transaction, and a
//! method that touches two owners says so. Times are milliseconds UTC, handed
//! in. Nothing here is ever deleted but files of workspaces, which decide nothing:
//! a row ends by a column that says when.
//!
//! What comes back is not believed for being in the database: version rows,
//! pointers and decisions carry MACs which the engine checks at each use.

mod agents;
mod asks;
mod authoring;
mod connections;
mod documents;
mod people;
mod proposals;
mod runs;
mod sets;
mod switches;
mod tools;
mod workspace;

pub use agents::AgentStore;
pub use asks::{AskReason, AskRow, AskState, AskStore};
pub use authoring::{AuthorJobRow, AuthorStore, JobStatus};
pub use connections::{ConnectionStore, Returned, Revoked};
pub use documents::{DocumentRow, DocumentStore};
pub use people::{CodeRow, PersonRow, PersonStore, SessionRow};
pub use proposals::{Permission, Proposal, ProposalRow, ProposalState, ProposalStore};
pub use runs::{RunEnd, RunRow, RunStore, STATISTICS_RUNS, StoredResult, ToolRuns};
pub use sets::{Moved, SetRow, SetStore};
pub use switches::{SwitchRow, SwitchStore};
pub use tools::{Pointer, PublishRow, ToolStore, VersionRow};
pub use workspace::{WorkspaceFile, WorkspacePut, WorkspaceRoom, WorkspaceStore};

use cambium_proxy::{BoxFuture, StoreFault};

/// The SHA-256 of a token, code or session: what is stored instead of it.
pub type SecretHash = [u8; 32];

/// What every method answers.
pub type Answering<'a, T> = BoxFuture<'a, Result<T, StoreFault>>;

/// All ports at once, as the engine is handed them.
pub trait Store:
    PersonStore
    + AgentStore
    + ConnectionStore
    + ToolStore
    + SetStore
    + AskStore
    + ProposalStore
    + RunStore
    + SwitchStore
    + DocumentStore
    + AuthorStore
    + WorkspaceStore
{
}

impl<T> Store for T where
    T: PersonStore
        + AgentStore
        + ConnectionStore
        + ToolStore
        + SetStore
        + AskStore
        + ProposalStore
        + RunStore
        + SwitchStore
        + DocumentStore
        + AuthorStore
        + WorkspaceStore
{
}
