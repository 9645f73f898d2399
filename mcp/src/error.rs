//! Why a connection of a harness could not be served. What goes wrong inside a
//! request is answered on the wire and is no error here.

use cambium_engine::EngineError;

/// Why serving a stream ended otherwise than by its end.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The token the stream came with was refused; nothing was served.
    #[error("{0}")]
    Refused(#[from] EngineError),
    /// The bytes could not be written; the other side is gone.
    #[error("the stream of the harness broke: {0}")]
    Stream(String),
}

impl McpError {
    /// Stable snake_case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(error) => error.code(),
            Self::Stream(_) => "stream_broken",
        }
    }
}
