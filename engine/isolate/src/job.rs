//! What engine and worker say to each other on the job socket: the job going
//! in, console lines and one ending coming out. The sizes of what comes out are
//! checked by the parent before anything is kept.

use bytes::Bytes;
use cambium_jail::frames::{FrameLimits, GUEST_KINDS};
use serde::{Deserialize, Serialize};

/// To the worker: [`JobHead`] as JSON; source and input follow.
pub(crate) const JOB: u8 = GUEST_KINDS;
/// To the worker: a piece of the source, then of the input and the modules.
pub(crate) const JOB_PIECE: u8 = GUEST_KINDS + 1;
/// To the parent: a console line behind a `u32` of bytes dropped.
pub(crate) const LOG: u8 = GUEST_KINDS + 16;
/// To the parent: [`Ending`] as JSON; the pieces of a result follow.
pub(crate) const ENDING: u8 = GUEST_KINDS + 17;
/// To the parent: a piece of the result.
pub(crate) const RESULT_PIECE: u8 = GUEST_KINDS + 18;

/// Largest piece of source, input or result, bytes.
pub(crate) const PIECE: usize = 64 * 1024;
/// Largest message of an ending, bytes of JSON: 4 K characters of message and
/// 8 K of stack, six bytes each at worst.
pub(crate) const ENDING_MAX: usize = 96 * 1024;
/// Largest job the worker takes: source 256 KB grown by emit, input 50 MB, eight
/// bundles of 2 MB.
pub(crate) const JOB_LIMITS: FrameLimits =
    FrameLimits { payload: PIECE, frames: 2_000, bytes: 80 * 1024 * 1024 };
/// Exit code of a worker whose V8 heap is full.
pub(crate) const EXIT_HEAP: i32 = 85;
/// Exit code of a worker whose own code panicked: a fault of ours. What is left
/// to end a worker by SIGABRT is an allocation that failed.
pub(crate) const EXIT_PANIC: i32 = 86;

/// What the parent takes from a worker with these caps.
pub(crate) fn answer_limits(result_bytes: usize, log_bytes: usize) -> FrameLimits {
    let pieces = result_bytes / PIECE + 2;
    // Every kept line costs the log at least a byte.
    let frames = (pieces + log_bytes + 64) as u64;
    let bytes = (result_bytes + 5 * log_bytes + ENDING_MAX + PIECE) as u64;
    FrameLimits { payload: ENDING_MAX, frames, bytes }
}

/// One run as the worker is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobHead {
    /// `<vendor>__<name>`.
    pub(crate) tool: String,
    pub(crate) slug: String,
    pub(crate) vendor: String,
    pub(crate) display_name: String,
    pub(crate) proxy_base: String,
    pub(crate) heap_bytes: usize,
    pub(crate) result_bytes: usize,
    pub(crate) log_bytes: usize,
    pub(crate) source_bytes: usize,
    pub(crate) input_bytes: usize,
    /// What the module may import: name and bytes of each.
    pub(crate) modules: Vec<(String, usize)>,
}

/// How a run ended, as the worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "end", rename_all = "snake_case")]
pub(crate) enum Ending {
    /// A value; its JSON text follows in pieces.
    Value { bytes: usize },
    /// A `Response`; its body follows in pieces.
    Response { status: u16, content_type: String, bytes: usize },
    /// It threw.
    Threw { message: String, stack: String },
    /// Its promise can never settle.
    NeverSettled,
    /// The result is over the cap.
    TooLarge,
}

/// A result beside its ending.
pub(crate) type Ended = (Ending, Bytes);

/// JSON text whose lone surrogate escapes are U+FFFD, which every reader of
/// JSON takes. `JSON.stringify` escapes exactly the lone ones.
pub(crate) fn well_formed(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let lone = escape.starts_with("\\ud") && escape.is_char_boundary(6);
        if lone {
            out.push_str("\\ufffd");
            rest = &escape[6..];
        } else {
            // The backslash and what it escapes, which is one character.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            out.push_str(&escape[..end]);
            rest = &escape[end..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_lone_surrogates_become_replacement_characters() {
        for (given, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""a\udfffb\ud83d""#, r#""a\ufffdb\ufffd""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800\n""#, r#""\\\ufffd\n""#),
        ] {
            assert_eq!(well_formed(given.to_owned()), expected);
        }
    }
}
