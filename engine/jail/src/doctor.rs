//! Which layers hold on this machine: starts a real jailed process, takes its
//! own report and lets a locked worker try what the filter must refuse.

use crate::error::JailError;
use crate::jail::{Jail, JailConfig};
use crate::layers::{Applied, LayerReport};
use crate::oneshot::{OneshotError, OneshotLimits};

/// Name of the built-in one-shot that tries the filter.
pub(crate) const PROBE: &str = "__probe";

/// Tries every layer. Fails only when no jailed process can be started at all.
pub async fn doctor(config: JailConfig) -> Result<Vec<LayerReport>, JailError> {
    let jail = Jail::start(JailConfig { allow_weak: true, ..config })?;
    let probed = jail.oneshot(PROBE, b"", OneshotLimits::default()).await;
    let mut reports = jail.layers().map(<[LayerReport]>::to_vec).unwrap_or_default();
    jail.shutdown().await;
    let held = match probed {
        Ok(answer) if answer[..] == *b"refused" => Ok(()),
        Ok(_) => Err("a locked worker could look for a file".to_owned()),
        Err(OneshotError::Jail(error)) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    let mut applied = Applied::default();
    applied.note(
        "locked_worker",
        "a forked worker locks itself and a file call answers EPERM",
        "see the layers above; without seccomp the server starts only with --allow-weak-sandbox",
        held,
    );
    reports.extend(applied.into_reports());
    Ok(reports)
}

/// Runs in a locked worker: a file call must be refused by the filter itself,
/// not merely find nothing.
pub(crate) fn probe(_: &[u8]) -> Vec<u8> {
    match std::fs::metadata("/") {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => b"refused".to_vec(),
        _ => b"open".to_vec(),
    }
}
