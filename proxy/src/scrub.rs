//! What a vendor's answer goes through before a module sees it: one content
//! coding decoded under caps, then every form of the secret hidden, across
//! chunk boundaries. Which headers pass is `headers.rs`'s.

mod decode;
mod redact;

pub(crate) use decode::{Coding, Decoder};
pub(crate) use redact::{Redactor, SHORTEST, Stream};
