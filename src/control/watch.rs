//! Waiting for what a person is asked next: the answer comes when something
//! waits that the asker has not seen, or after a while, to be asked again.

use super::answer::{Answered, value};
use cambium_engine::port::ProposalState;
use cambium_engine::{Engine, Event};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// How long one question is held open.
const HELD: Duration = Duration::from_secs(25);

/// What waits and is not among `seen`.
pub(super) async fn unseen(engine: &Engine, seen: &[String], gone: &CancellationToken) -> Answered {
    // Before looking: what comes in between is heard.
    let mut events = engine.events();
    let deadline = tokio::time::Instant::now() + HELD;
    loop {
        let found = look(engine, seen).await?;
        if !found.is_empty() {
            return Ok(found.into());
        }
        let heard = tokio::time::timeout_at(deadline, next(&mut events));
        match gone.run_until_cancelled(heard).await {
            Some(Ok(true)) => {}
            Some(Ok(false) | Err(_)) | None => return Ok(json!([])),
        }
    }
}

async fn look(engine: &Engine, seen: &[String]) -> Result<Vec<Value>, crate::failure::Failure> {
    let new = |id: &str| !seen.iter().any(|known| known == id);
    let mut found = Vec::new();
    for ask in engine.asks().await? {
        if ask.state == "open" && new(ask.id.as_str()) {
            let link = engine.ask_link(&ask.id);
            found.push(json!({ "kind": "ask", "link": link, "ask": value(ask)? }));
        }
    }
    for one in engine.proposals().await? {
        if one.state == ProposalState::Open && new(&one.id) {
            found.push(json!({ "kind": "proposal", "link": one.link, "proposal": value(one)? }));
        }
    }
    Ok(found)
}

/// False when nothing more can come.
async fn next(events: &mut Receiver<Event>) -> bool {
    loop {
        match events.recv().await {
            Ok(Event::AskOpened(_) | Event::AskSettled(_) | Event::Proposed(_)) => return true,
            Ok(Event::ListChanged(_)) => {}
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}
