//! The engine's behaviours on a real store, vault and proxy; one file a chapter.

#![allow(clippy::unwrap_used)]

mod acquiring;
mod approvals;
mod connections;
mod executing;
mod flood;
mod held;
mod house;
mod in_turn;
mod low_level;
mod model;
mod persons;
mod properties;
mod proposals;
mod publishing;
mod running;
mod storms;
mod sweeping;
mod working_sets;
