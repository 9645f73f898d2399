//! What lasts: the audit beyond its database, the vault's keys, backups, and
//! decisions under a hand in the database and under SIGKILL. The real server, a
//! real vendor, real files.
#![allow(clippy::unwrap_used)]

mod audit;
mod backup;
mod edits;
mod flood;
mod shop;
#[path = "../support/mod.rs"]
mod support;
mod vault;
#[path = "../../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;
