//! The deno_core sandbox in the jail: the only crate that names V8. One half
//! runs inside the worker process (snapshot, glue, ops, the module itself), the
//! other half in the engine's process (takes a worker, hands it a job, carries
//! its requests to the run's session, judges how it ended). The engine's half
//! believes nothing the worker says.

mod error;
mod role;
mod sandbox;

mod allow;
mod digest;
mod extension;
mod guest;
mod link;
mod module;
mod ops;
mod platform;
mod runtime;
mod snapshot;
mod text;

pub use allow::{ALLOWED_OPS, op_names};
pub use error::IsolateError;
pub use extension::registered;
pub use guest::IsolateGuest;
pub use role::role_main;
pub use sandbox::{IsolateConfig, IsolateSandbox};
pub use snapshot::make_snapshot;
