//! What a harness speaks to: the Model Context Protocol over streamable HTTP
//! and over any byte stream, in both of its eras.
//!
//! One flat list: a fixed tool's name goes to its handler, any other name is a
//! call of an authored tool. Which agent asks is read from the credential of
//! each request, never from a session. What a call means is the engine's
//! business; this crate reads arguments strictly and puts answers on the wire.

mod arguments;
mod asking;
mod dispatch;
mod door;
mod error;
#[cfg(test)]
mod golden;
mod handler;
mod heartbeat;
mod instructions;
mod list;
mod meta_tools;
mod notices;
mod reply;
mod sessions;
mod stream;
mod tasks;

pub use door::{DevAgent, HttpConfig, http_service, http_service_with};
pub use error::McpError;
pub use instructions::INSTRUCTIONS;
pub use list::listed_tokens;
pub use stream::serve_stream;
