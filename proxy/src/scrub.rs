//! What a vendor's answer goes through before a module sees it: one content
//! coding decoded under caps, then every form of the secret hidden, across
//! chunk boundaries, and then the tokens it hands out itself. Which headers pass is `headers.rs`'s.

mod decode;
mod mask;
mod needle;
mod redact;
mod spelling;

pub(crate) use decode::{Coding, Decoder};
pub(crate) use mask::Mask;
pub(crate) use redact::{Redactor, SHORTEST, Stream};
#[cfg(any(test, fuzzing))]
pub(crate) use spelling::readings;
