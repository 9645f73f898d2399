//! SQLite behind the ports that `proxy` and `engine` define. One [`Store`]
//! implements them all; each method is one transaction, and a method answers
//! only after its commit. Rows that decide something come back only as the
//! ledger has them (`seal.rs` says which); MACs of single rows are made and
//! checked by those who define them.
//!
//! Who owns which table; nobody else writes it, except where a line below says so.
//!
//! | file | tables | port |
//! |---|---|---|
//! | `people.rs` | persons, codes, sessions | `PersonStore` |
//! | `agents.rs` | agents, agent_tokens | `AgentStore` |
//! | `connections.rs` | connections, connection_scopes, scope_changes | `ConnectionStore`, `ConnectionSource` |
//! | `secrets.rs` | secrets | `SecretStore` |
//! | `tools.rs` | versions, pointers, files | `ToolStore` |
//! | `sets.rs` | members, history | `SetStore` |
//! | `asks.rs` | asks | `AskStore` |
//! | `decisions.rs` | decisions, permit_uses | `ApprovalSource`, part of `AskStore` |
//! | `proposals.rs` | proposals | `ProposalStore` |
//! | `switches.rs` | switches | `SwitchStore` |
//! | `authoring.rs` | author_jobs, author_lines | `AuthorStore` |
//! | `documents.rs` | documents | `DocumentStore` |
//! | `runs.rs` | runs, results | `RunStore` |
//! | `audit.rs` | audit, audit_segments | `AuditSink` |
//! | `workspace.rs` | workspace_files | `WorkspaceStore` |
//! | `ledger.rs` | ledger | none: it seals rows of the others |
//!
//! Transactions that span owners, each through the owner's own function:
//! *publish* (versions, pointers, members, history), *revoke* (connections,
//! members, history, decisions), *reconnect* (connections, secrets, members, history), *change*
//! (connections, secrets), *settle* (asks, decisions).
//! The end of a run that was a use is two statements, the use (members) first.
//!
//! Statements keep to what SQLite and PostgreSQL both take; the schema is
//! written per database, since triggers and column types differ.

mod agents;
mod asks;
mod audit;
mod authoring;
mod checkpoint;
mod connections;
mod database;
mod decisions;
mod documents;
mod error;
mod head;
mod ledger;
mod memory;
mod people;
#[cfg(test)]
mod plans;
mod pool;
mod proposals;
mod row;
mod runs;
mod schema;
mod seal;
mod secrets;
mod sets;
mod switches;
mod tools;
mod workspace;

pub use database::Store;
pub use error::StoreError;
