//! What a person switched on for an agent: signed words, newest first. A row is
//! never changed; a later one takes its place.

use super::Answering;
use cambium_proxy::AgentId;

/// One setting of one switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRow {
    /// For which agent.
    pub agent: AgentId,
    /// Which switch: `in_band`, `low_level`, or `every_time:` and a tool's wire name.
    pub name: String,
    /// Rises per agent and switch, starts at 1; the newest stands.
    pub sequence: u64,
    /// What it is set to.
    pub value: String,
    /// Milliseconds UTC.
    pub at_ms: i64,
    /// Over all of the above.
    pub mac: Vec<u8>,
}

/// Keeps switches.
pub trait SwitchStore: Send + Sync {
    /// The newest setting.
    fn switch<'a>(&'a self, agent: &'a AgentId, name: &'a str) -> Answering<'a, Option<SwitchRow>>;
    /// Appends a setting. Conflict when its sequence is taken.
    fn set_switch<'a>(&'a self, row: &'a SwitchRow) -> Answering<'a, ()>;
}
