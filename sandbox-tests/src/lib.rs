//! Support for the sandbox tests.

pub mod bench;
pub mod frames;
pub mod leak;
pub mod measure;
pub mod memory;
pub mod modules;
pub mod refuse;
pub mod rig;
pub mod vendor;
