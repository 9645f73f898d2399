//! What engine and zygote say to each other on the control socket, which keeps
//! message boundaries: one hello, then a request for a worker with its two
//! sockets, then an answer with the worker's process descriptor. Fixed sizes;
//! the engine treats what the zygote says as hostile.

use crate::LayerReport;
use crate::limits::WorkerLimits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// First message of a zygote.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Hello {
    /// It is up, under these layers.
    Up(Vec<LayerReport>),
    /// It is not, and why.
    Failed(String),
}

/// Bytes of a request for a worker.
pub(crate) const FORK_BYTES: usize = 24;

/// A request for a worker: its limits. Job and fetch socket come along.
pub(crate) fn fork_request(limits: &WorkerLimits) -> [u8; FORK_BYTES] {
    let cpu = u64::try_from(limits.cpu.as_millis()).unwrap_or(u64::MAX);
    let mut bytes = [0; FORK_BYTES];
    for (slot, value) in bytes.chunks_exact_mut(8).zip([cpu, limits.data_bytes, limits.stack_bytes])
    {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Reads a request for a worker.
pub(crate) fn parse_fork_request(bytes: &[u8]) -> Option<WorkerLimits> {
    let bytes: &[u8; FORK_BYTES] = bytes.try_into().ok()?;
    let mut values = bytes
        .chunks_exact(8)
        .map(|slot| slot.try_into().map(u64::from_le_bytes).unwrap_or_default());
    Some(WorkerLimits {
        cpu: Duration::from_millis(values.next()?),
        data_bytes: values.next()?,
        stack_bytes: values.next()?,
    })
}

/// Bytes of an answer: 0 when a process descriptor comes along, else an errno.
pub(crate) const ANSWER_BYTES: usize = 4;
