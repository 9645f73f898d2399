//! The MCP surface against a real engine, store, vault and proxy. Only the
//! sandbox is a stand-in: what it would run is another crate's business, and
//! here it does what a test tells it to.
#![allow(clippy::unwrap_used)]

mod support;
mod tasks;

mod asking;
mod calls;
mod door;
mod lasting;
mod notices;
mod proposing;
mod stream;
mod workspace;
