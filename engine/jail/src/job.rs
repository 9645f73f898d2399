//! What engine and worker say to each other on the job socket of a run: the job
//! going in, console lines and one ending coming out. The sizes of what comes out
//! are checked by the parent before anything is kept; the worker's own side is in
//! `worker`. A guest of another kind may speak otherwise.

mod worker;

use crate::frames::{FrameLimits, GUEST_KINDS};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use worker::{Out, Received, leave, receive};

/// Names what is said here. A worker of another binary is handed it at its boot, so
/// that one of another version says so.
pub const WORDS: &str = concat!("cambium-job-1 of ", env!("CARGO_PKG_VERSION"));

/// To the worker: [`JobHead`] as JSON; source and input follow.
pub const JOB: u8 = GUEST_KINDS;
/// To the worker: a piece of the code, then of the input and the modules.
pub const JOB_PIECE: u8 = GUEST_KINDS + 1;
/// To the parent: a console line behind a `u32` of bytes dropped.
pub const LOG: u8 = GUEST_KINDS + 16;
/// To the parent: [`Ending`] as JSON; the pieces of a result follow.
pub const ENDING: u8 = GUEST_KINDS + 17;
/// To the parent: a piece of the result.
pub const RESULT_PIECE: u8 = GUEST_KINDS + 18;

/// Largest piece of source, input or result, bytes.
pub const PIECE: usize = 64 * 1024;
/// Largest message of an ending, bytes of JSON: 4 K characters of message and
/// 8 K of stack, six bytes each at worst.
pub const ENDING_MAX: usize = 96 * 1024;
/// Largest job a worker takes: a compiled component of 64 MB or a module with
/// eight bundles of 2 MB, and input 50 MB.
pub const JOB_LIMITS: FrameLimits =
    FrameLimits { payload: PIECE, frames: 3_000, bytes: 128 * 1024 * 1024 };
/// Exit code of a worker whose own heap limit is reached.
pub const EXIT_HEAP: i32 = 85;
/// Exit code of a worker whose own code panicked: a fault of ours. What is left
/// to end a worker by SIGABRT is an allocation that failed.
pub const EXIT_PANIC: i32 = 86;

/// What the parent takes from a worker with these caps.
pub fn answer_limits(result_bytes: usize, log_bytes: usize) -> FrameLimits {
    let pieces = result_bytes / PIECE + 2;
    // Every kept line costs the log at least a byte.
    let frames = (pieces + log_bytes + 64) as u64;
    let bytes = (result_bytes + 5 * log_bytes + ENDING_MAX + PIECE) as u64;
    FrameLimits { payload: ENDING_MAX, frames, bytes }
}

/// One run as the worker is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobHead {
    /// `<vendor>__<name>`.
    pub tool: String,
    /// Slug of its connection.
    pub slug: String,
    /// Vendor of its connection.
    pub vendor: String,
    /// What a person calls the connection.
    pub display_name: String,
    /// Origin of the primary host.
    pub proxy_base: String,
    /// What the code itself may allocate.
    pub heap_bytes: usize,
    /// Largest result.
    pub result_bytes: usize,
    /// Most console output.
    pub log_bytes: usize,
    /// Bytes of the code that follows.
    pub code_bytes: usize,
    /// Bytes of the input that follows the code.
    pub input_bytes: usize,
    /// What the module may import: name and bytes of each.
    pub modules: Vec<(String, usize)>,
}

/// How a run ended, as the worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "end", rename_all = "snake_case")]
pub enum Ending {
    /// A value; its JSON text follows in pieces.
    Value {
        /// How many bytes follow.
        bytes: usize,
    },
    /// A `Response`; its body follows in pieces.
    Response {
        /// The vendor's.
        status: u16,
        /// Its content type.
        content_type: String,
        /// How many bytes follow.
        bytes: usize,
    },
    /// It threw.
    Threw {
        /// Bounded text.
        message: String,
        /// Frames, one a line.
        stack: String,
    },
    /// Its promise can never settle.
    NeverSettled,
    /// The result is over the cap.
    TooLarge,
}

/// A result beside its ending.
pub type Ended = (Ending, Bytes);
