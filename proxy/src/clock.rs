//! The only place that reads a clock. Everything else is handed a [`Clock`].

// Clock reads are banned everywhere else.
#![allow(clippy::disallowed_methods)]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from; a test passes its own.
pub trait Clock: Send + Sync {
    /// Wall time, milliseconds since 1970 UTC. May jump.
    fn now_ms(&self) -> i64;
    /// Monotonic time in microseconds since some fixed moment; never goes back.
    fn ticks_us(&self) -> u64;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn ticks_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
