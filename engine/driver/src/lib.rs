//! What every sandbox shares in the engine's process: how a run is driven, from
//! taking a worker to judging how it ended. It knows the jail, the engine's
//! `Sandbox` port and the proxy's session; what kind of guest runs in the worker is
//! its users' business.

mod drive;
mod outcome;
mod pump;

pub use drive::{drive, report, worker_limits};
