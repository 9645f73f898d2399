//! Support for the sandbox tests.

pub mod bench;
pub mod memory;
pub mod vendor;
