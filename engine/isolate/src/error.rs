//! Why the sandbox could not be started: a stable code and the next step.

use cambium_jail::JailError;

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsolateError {
    /// The process that makes the snapshot failed.
    #[error("the snapshot of the isolate could not be made: {0}")]
    Snapshot(String),
    /// The jail could not be started.
    #[error("{0}")]
    Jail(#[from] JailError),
}

impl IsolateError {
    /// Stable snake_case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "isolate_snapshot",
            Self::Jail(error) => error.code(),
        }
    }

    /// The next step, for an operator.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "run `cambium doctor`; the binary may not suit this machine",
            Self::Jail(error) => error.next(),
        }
    }
}
