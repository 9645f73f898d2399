//! Every way the jail says no: a stable code, one sentence, the next step.

use crate::frames::FrameError;

/// Why there is no worker, or no answer of a one-shot job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JailError {
    /// A process could not be started.
    #[error("a jailed process could not be started: {0}")]
    Launch(String),
    /// A zygote or worker did not become ready.
    #[error("a jailed process did not become ready: {0}")]
    Boot(String),
    /// A deadline passed.
    #[error("{what} took longer than {seconds} s")]
    Deadline {
        /// What was waited for.
        what: &'static str,
        /// The deadline, seconds.
        seconds: u64,
    },
    /// A layer that must hold does not hold here.
    #[error("the layer `{layer}` does not hold on this machine: {reason}")]
    Weak {
        /// Its name.
        layer: String,
        /// What the kernel said.
        reason: String,
    },
    /// The peer sent what it must not send.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The jail is shutting down.
    #[error("the jail is shutting down")]
    Closed,
}

impl JailError {
    /// Stable snake_case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Launch(_) => "jail_launch",
            Self::Boot(_) => "jail_boot",
            Self::Deadline { .. } => "jail_deadline",
            Self::Weak { .. } => "jail_weak",
            Self::Frame(_) => "jail_frame",
            Self::Closed => "jail_closed",
        }
    }

    /// The next step, for an operator.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Launch(_) => "check that the binary can be executed and processes can be made",
            Self::Boot(_) | Self::Weak { .. } => "run `cambium doctor` to see which layers hold",
            Self::Deadline { .. } => "check the load of the machine",
            Self::Frame(_) => "the worker was killed; read the tool's source",
            Self::Closed => "start the server again",
        }
    }
}
