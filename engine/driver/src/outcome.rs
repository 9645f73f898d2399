//! How a run ended, from what the parent saw: the worker's word for its result,
//! the kernel's for its death, our own limits for the rest. The order here is
//! the order of trust.

use cambium_engine::{Evidence, Outcome, RunLimits, ToolResult};
use cambium_jail::job::{EXIT_HEAP, EXIT_PANIC, Ended, Ending};
use cambium_jail::{Exit, Killed, Origin, Verdict};
use std::time::Duration;

/// Deepest JSON a result may nest; readers of the answer recurse.
const DEPTH: usize = 100;

/// Longest message and stack of what was thrown, bytes: the glue's own bounds,
/// four bytes a character.
const MESSAGE: usize = 16 * 1024;
const STACK: usize = 32 * 1024;

/// What ended a run first, as the parent saw it.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The worker sent a whole ending.
    Ended(Ended),
    /// The worker's socket closed without one.
    Gone,
    /// The worker sent what it must not.
    Forged(String),
    /// The wall clock ran out.
    Timeout,
    /// The session ended the run.
    Denied,
}

/// The outcome. `exit` is the process's end.
pub(crate) fn outcome(seen: Seen, exit: &Exit) -> Outcome {
    match seen {
        Seen::Ended((ending, bytes)) => from_ending(ending, bytes),
        Seen::Timeout => Outcome::Timeout,
        Seen::Denied => Outcome::PolicyDenied,
        Seen::Forged(reason) => {
            tracing::warn!(reason, "a worker sent what it must not and was killed");
            Outcome::Crashed { signal: libc::SIGKILL }
        }
        Seen::Gone => from_exit(exit),
    }
}

/// Everything the parent saw, for a person.
pub(crate) fn evidence(
    seen: &Seen,
    exit: &Exit,
    origin: Origin,
    run: Duration,
    limits: &RunLimits,
) -> Evidence {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (first, reason) = match seen {
        Seen::Ended(_) => ("answered", None),
        Seen::Gone => ("gone", None),
        Seen::Forged(reason) => ("forged", Some(reason.clone())),
        Seen::Timeout => ("wall_clock", None),
        Seen::Denied => ("session", None),
    };
    Evidence {
        first,
        reason,
        ended_by: match exit.killed {
            _ if exit.code.is_some() => "itself",
            None => "itself",
            Some(Killed::Cpu) => "cpu_limit",
            Some(Killed::Caller) => "us",
            Some(Killed::Shutdown) => "shutdown",
            Some(Killed::Zygote) => "zygote_gone",
        },
        exit_code: exit.code,
        signal: exit.signal,
        origin: match origin {
            Origin::Zygote => "zygote",
            Origin::Exec => "exec",
        },
        cpu_ms: millis(exit.cpu),
        cpu_limit_ms: millis(limits.cpu),
        max_rss: exit.max_rss,
        heap_limit: limits.heap_bytes as u64,
        data_limit: limits.data_bytes as u64,
        wall_ms: millis(run),
    }
}

fn from_exit(exit: &Exit) -> Outcome {
    match exit.verdict() {
        Verdict::CpuLimit => Outcome::CpuLimit,
        // Our own panics exit and V8's own checks trap, so an abort is an
        // allocation that failed, however little was resident by then.
        Verdict::MemoryLimit | Verdict::Exited(EXIT_HEAP) | Verdict::Crashed(libc::SIGABRT) => {
            Outcome::MemoryLimit
        }
        Verdict::Exited(EXIT_PANIC) => {
            tracing::error!("a worker's own code panicked");
            Outcome::Crashed { signal: libc::SIGABRT }
        }
        Verdict::Crashed(signal) => Outcome::Crashed { signal },
        Verdict::Exited(code) => {
            Outcome::Unavailable(format!("the worker ended with code {code} and no result"))
        }
        // It hid its end and was killed for it, or the server shuts down.
        Verdict::Killed => Outcome::Crashed { signal: libc::SIGKILL },
    }
}

fn from_ending(ending: Ending, bytes: bytes::Bytes) -> Outcome {
    match ending {
        Ending::Value { .. } => match checked_json(&bytes) {
            Ok(text) => Outcome::Ok(ToolResult::Value(text)),
            Err(reason) => Outcome::ToolError { message: reason.to_owned(), stack: String::new() },
        },
        Ending::Response { status, content_type, .. } if (200..=599).contains(&status) => {
            let content_type = plain(content_type);
            Outcome::Ok(ToolResult::Response { status, content_type, body: bytes })
        }
        Ending::Response { .. } => Outcome::ToolError {
            message: "the module returned a response without a status of HTTP".to_owned(),
            stack: String::new(),
        },
        Ending::Threw { message, stack } => {
            Outcome::ToolError { message: clip(message, MESSAGE), stack: clip(stack, STACK) }
        }
        Ending::NeverSettled => Outcome::NeverSettled,
        Ending::TooLarge => Outcome::OutputLimit,
    }
}

/// A text the worker bounds itself; it is not believed to have done so.
fn clip(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

/// A content type is printable ASCII, or none.
fn plain(text: String) -> String {
    if text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) { text } else { String::new() }
}

/// The worker is hostile: its JSON is text until it was read.
fn checked_json(bytes: &[u8]) -> Result<String, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the result is not UTF-8")?;
    if depth(bytes) > DEPTH {
        return Err("the result nests deeper than 100 levels");
    }
    serde_json::from_str::<serde_json::Value>(text).map_err(|_| "the result is not JSON")?;
    Ok(text.to_owned())
}

fn depth(json: &[u8]) -> usize {
    let (mut depth, mut most, mut string, mut escaped) = (0_usize, 0, false, false);
    for &byte in json {
        match (string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => string = !string,
            (false, b'[' | b'{') => {
                depth += 1;
                most = most.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_a_forged_or_bottomless_result_is_no_result() {
        assert!(checked_json(br#"{"__proto__":{"a":[1,"]]]"]}}"#).is_ok());
        assert!(checked_json(b"{").is_err());
        assert!(checked_json(b"\xff").is_err());
        let deep = [vec![b'['; 101], vec![b']'; 101]].concat();
        assert!(checked_json(&deep).is_err());
    }
}
