//! Keeps a client from giving up on a call that lasts: most wait sixty seconds
//! unless they hear of progress.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Well under the sixty seconds most clients wait.
const BEAT: Duration = Duration::from_secs(10);

/// Says every ten seconds that the call still runs, when the client asked to
/// be told. Never ends by itself: it is raced against the call.
pub(crate) async fn beat(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Infallible {
    let Some(token) = token else { return std::future::pending().await };
    let mut ticks = interval_at(Instant::now() + BEAT, BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut beats = 0_u32;
    loop {
        ticks.tick().await;
        beats += 1;
        let seconds = f64::from(beats) * BEAT.as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds)
            .with_message(format!("still running after {seconds} s"));
        // a client that cannot be told is the transport's business
        if peer.notify_progress(progress).await.is_err() {
            return std::future::pending().await;
        }
    }
}
