//! The rule: which tools leave a working set when no one asked. Idle first,
//! then cap, decided from values alone; the sweep reads the values, calls
//! [`plan`] for one agent at a time and stores what it says. Ticking, locking
//! and the guard over runs in flight are the sweep's business.

use crate::{EngineError, MoveCause, ToolName};
use std::time::Duration;

/// Between two sweeps.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5 * 60);

const CAP_RULE: &str = "a whole number from 1 to 500";
const IDLE_RULE: &str = "a whole number of days from 1 to 3650";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// How large an agent's working set may grow by itself, and how long a tool
/// may lie unused. Only valid pairs exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetLimits {
    cap: u32,
    idle_days: u32,
}

impl Default for SetLimits {
    fn default() -> Self {
        Self { cap: 20, idle_days: 21 }
    }
}

impl SetLimits {
    /// `cap` 1..=500 tools, `idle_days` 1..=3650.
    pub fn new(cap: u32, idle_days: u32) -> Result<Self, EngineError> {
        if !(1..=500).contains(&cap) {
            return Err(out_of_range("the working-set cap", &cap.to_string(), CAP_RULE));
        }
        if !(1..=3650).contains(&idle_days) {
            return Err(out_of_range("the idle window", &idle_days.to_string(), IDLE_RULE));
        }
        Ok(Self { cap, idle_days })
    }

    /// The same from text a person typed: blanks, signs and fractions are
    /// refused, nothing is rounded.
    pub fn parse(cap: &str, idle_days: &str) -> Result<Self, EngineError> {
        let cap = whole(cap).ok_or_else(|| out_of_range("the working-set cap", cap, CAP_RULE))?;
        let idle_days = whole(idle_days)
            .ok_or_else(|| out_of_range("the idle window", idle_days, IDLE_RULE))?;
        Self::new(cap, idle_days)
    }

    /// Tools.
    pub fn cap(self) -> u32 {
        self.cap
    }

    /// Days.
    pub fn idle_days(self) -> u32 {
        self.idle_days
    }

    fn window_ms(self) -> i64 {
        i64::from(self.idle_days) * DAY_MS
    }
}

/// A promoted tool as the rule sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The tool.
    pub tool: ToolName,
    /// Its latest promotion, milliseconds UTC.
    pub promoted_ms: i64,
    /// Its last use by this agent, before or after that promotion.
    pub last_used_ms: Option<i64>,
}

impl Member {
    /// Where the idle clock stands: the last use since the promotion, else the
    /// promotion. A use from before it does not count as one since.
    fn idle_clock_ms(&self) -> i64 {
        self.last_used_ms.map_or(self.promoted_ms, |used| used.max(self.promoted_ms))
    }
}

/// One tool the rule takes out, and which half of the rule did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demotion {
    /// The tool.
    pub tool: ToolName,
    /// [`MoveCause::Idle`] or [`MoveCause::Cap`].
    pub cause: MoveCause,
}

/// What to demote from one agent's set at `now_ms`. Nothing while a run of the
/// agent is in flight. Idle demotions come first, by wire name; then those over
/// the cap, oldest promotion first.
pub fn plan(set: &[Member], limits: SetLimits, now_ms: i64, in_flight: bool) -> Vec<Demotion> {
    if in_flight {
        return Vec::new();
    }
    // Exactly at the window stays; a moment ahead of `now` (a clock that was
    // set back) counts as just now.
    let outside = |moment: i64| now_ms.saturating_sub(moment) > limits.window_ms();
    let (mut idle, rest): (Vec<&Member>, Vec<&Member>) =
        set.iter().partition(|member| outside(member.idle_clock_ms()));
    idle.sort_by_cached_key(|member| member.tool.to_string());

    let excess = rest.len().saturating_sub(limits.cap as usize);
    // A use inside the window protects, also one before the latest promotion.
    let mut unused: Vec<&Member> =
        rest.into_iter().filter(|member| member.last_used_ms.is_none_or(outside)).collect();
    unused.sort_by_cached_key(|member| (member.promoted_ms, member.tool.to_string()));

    let out = |cause| move |member: &Member| Demotion { tool: member.tool.clone(), cause };
    let idle = idle.into_iter().map(out(MoveCause::Idle));
    let over = unused.into_iter().take(excess).map(out(MoveCause::Cap));
    idle.chain(over).collect()
}

/// Until when a tool may stay if it is not used: after that it is idle.
pub(crate) fn idle_after(member: &Member, limits: SetLimits) -> i64 {
    member.idle_clock_ms().saturating_add(limits.window_ms())
}

fn whole(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn out_of_range(name: &'static str, value: &str, rule: &'static str) -> EngineError {
    EngineError::OutOfRange { name, value: value.chars().take(40).collect(), rule }
}
