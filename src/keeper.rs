//! Keeps the audit as a person set it: an anchor into a file at intervals, and
//! rows beyond their days let go. A failure is logged and tried again at the next
//! turn; nothing here holds a request up.

use crate::config::Audit;
use crate::failure::Failure;
use cambium_proxy::{Anchor, Clock, Proxy};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How often old rows are looked for.
const LET_GO_EVERY: Duration = Duration::from_secs(60 * 60);

/// Until `stop` fires; one last anchor then.
pub(crate) async fn keep(
    proxy: Arc<Proxy>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    stop: CancellationToken,
) {
    let every = |period| {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let (mut anchors, mut expiry) = (every(audit.anchor_every), every(LET_GO_EVERY));
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = anchors.tick() => anchor(&proxy, &audit).await,
            _ = expiry.tick() => let_go(&proxy, clock.as_ref(), &audit).await,
        }
    }
    anchor(&proxy, &audit).await;
}

async fn anchor(proxy: &Proxy, audit: &Audit) {
    let Some(file) = &audit.anchor_file else { return };
    match proxy.anchor().await {
        Ok(anchor) => {
            if let Err(failure) = append(file, &anchor) {
                tracing::error!(reason = failure.message, "the audit could not be anchored");
            }
        }
        Err(fault) => tracing::error!(%fault, "the audit could not be anchored"),
    }
}

async fn let_go(proxy: &Proxy, clock: &dyn Clock, audit: &Audit) {
    let Some(days) = audit.keep_days else { return };
    let before = clock.now_ms().saturating_sub(i64::from(days).saturating_mul(DAY_MS));
    match proxy.expire_audit(before).await {
        Ok(0) => {}
        Ok(rows) => tracing::info!(rows, "audit rows beyond their days were let go"),
        Err(fault) => tracing::error!(%fault, "old audit rows could not be let go"),
    }
}

/// Puts an anchor on a line of its own at the end of a file, on the disk.
pub(crate) fn append(file: &Path, anchor: &Anchor) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let reason = format!("{} cannot be written: {error}", file.display());
        Failure::new("anchor_unwritten", reason, "name a file this user can write")
    };
    let mut line = serde_json::to_string(anchor).map_err(|error| failed(error.into()))?;
    line.push('\n');
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
    let mut opened = opened.map_err(failed)?;
    opened.write_all(line.as_bytes()).and_then(|()| opened.sync_all()).map_err(failed)
}
