//! Tells a person that something waits for them: a line in the log always, and
//! a POST to the address they configured. It watches the engine's events, so no
//! call ever waits for it; what it says is which agent and tool, and the link.

use crate::config::NotifyConfig;
use crate::failure::Failure;
use crate::post::{Endpoint, Reach, read_key};
use cambium_engine::{Engine, Event, Wants};
use cambium_proxy::Clock;
use hmac::{Hmac, Mac};
use http::HeaderValue;
use serde_json::json;
use sha2::Sha256;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Notices that wait to be sent; beyond that the oldest questions are in the
/// console all the same.
const QUEUE: usize = 64;
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Pauses before the attempts after the first.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];
/// Everything about one notice; a later one is of more use.
const WHOLE: Duration = Duration::from_secs(60);
/// Carries `t=MS,v1=HEX`: HMAC-SHA256 over the time, a dot and the body.
const SIGNATURE: &str = "cambium-signature";

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notice {
    id: String,
    kind: &'static str,
    agent: String,
    /// The tool of an ask, nothing of a proposal.
    tool: Option<String>,
    link: String,
}

/// The configured address.
pub(crate) struct Webhook {
    endpoint: Endpoint,
    key_file: PathBuf,
}

impl Webhook {
    /// Refuses an address that may not be told and a key file others can read.
    pub(crate) fn new(config: &NotifyConfig) -> Result<Self, Failure> {
        let endpoint = Endpoint::new("notify.url", &config.url, "", ATTEMPT, Reach::Public)?;
        read_key(&config.key_file).map_err(|reason| {
            Failure::new("config_invalid", reason, "name a file with the key, of mode 0600")
        })?;
        Ok(Self { endpoint, key_file: config.key_file.clone() })
    }

    /// Tries until it is taken, or it is no longer worth it.
    async fn tell(&self, notice: &Notice, clock: &dyn Clock) {
        let tries = async {
            let mut pauses = PAUSES.into_iter();
            loop {
                let why = match self.once(notice, clock.now_ms()).await {
                    Ok(()) => return,
                    Err(why) => why,
                };
                tracing::debug!(%why, "a notice was not taken");
                match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return tracing::warn!(%why, "a notice was given up"),
                }
            }
        };
        if tokio::time::timeout(WHOLE, tries).await.is_err() {
            tracing::warn!("a notice was given up: its address takes too long");
        }
    }

    async fn once(&self, notice: &Notice, now_ms: i64) -> Result<(), String> {
        let body = json!({
            "event": notice.kind,
            "id": notice.id,
            "agent": notice.agent,
            "tool": notice.tool,
            "link": notice.link,
        });
        let body = body.to_string().into_bytes();
        let key = read_key(&self.key_file)?;
        let signed = signature(key.as_bytes(), now_ms, &body);
        let signed = HeaderValue::from_str(&signed).map_err(|_| "no signature".to_owned())?;
        match self.endpoint.post(vec![(SIGNATURE, signed)], body).await? {
            (200..=299, _) => Ok(()),
            // Its words are foreign and said nowhere.
            (status, _) => Err(format!("it answered {status}")),
        }
    }
}

fn signature(key: &[u8], now_ms: i64, body: &[u8]) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(now_ms.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
    format!("t={now_ms},v1={hex}")
}

/// Watches until the server stops.
pub(crate) async fn watch(
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    webhook: Option<Webhook>,
    stop: CancellationToken,
) {
    let events = engine.events();
    let (queue, notices) = mpsc::channel(QUEUE);
    let watching = gather(&engine, events, queue, webhook.is_some());
    let sending = async {
        if let Some(webhook) = &webhook {
            send(webhook, clock.as_ref(), notices).await;
        }
    };
    // What is under way at the end is given up: the question itself is stored.
    let _ = stop.run_until_cancelled(async { tokio::join!(watching, sending) }).await;
}

async fn send(webhook: &Webhook, clock: &dyn Clock, mut notices: mpsc::Receiver<Notice>) {
    while let Some(notice) = notices.recv().await {
        webhook.tell(&notice, clock).await;
    }
}

async fn gather(
    engine: &Engine,
    mut events: Receiver<Event>,
    queue: mpsc::Sender<Notice>,
    sends: bool,
) {
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "some notices were missed; the console has every question");
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let Some(notice) = notice(engine, &event).await else { continue };
        let Notice { kind, agent, tool, link, .. } = &notice;
        let tool = tool.as_deref().unwrap_or_default();
        tracing::info!(agent, tool, link, "{kind}: a person is asked");
        if sends && queue.try_send(notice).is_err() {
            tracing::warn!("a notice was dropped: its address does not keep up");
        }
    }
}

async fn notice(engine: &Engine, event: &Event) -> Option<Notice> {
    match event {
        Event::AskOpened(id) => {
            let ask = engine.ask(id).await.ok()?;
            Some(Notice {
                id: id.to_string(),
                kind: "ask",
                agent: ask.agent_name,
                tool: Some(ask.tool),
                link: engine.ask_link(id),
            })
        }
        Event::Proposed(id) => {
            let proposal = engine.proposal(id).await.ok()?;
            let kind = match proposal.wants {
                Wants::Connection { .. } => "connection",
                Wants::Credential { .. } => "credential",
                Wants::Permission { .. } => "permission",
            };
            let (agent, link) = (proposal.agent_name, proposal.link);
            Some(Notice { id: id.clone(), kind, agent, tool: None, link })
        }
        Event::ListChanged(_) | Event::AskSettled(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_over_the_time_and_the_body() {
        // RFC 4231, case 2, has this key; the text is ours.
        let signed = signature(b"Jefe", 1, b"{}");
        assert!(signed.starts_with("t=1,v1=") && signed.len() == "t=1,v1=".len() + 64);
        assert_ne!(signed, signature(b"Jefe", 2, b"{}").replace("t=2", "t=1"));
        assert_ne!(signed, signature(b"Jefe", 1, b"{ }"));
        assert_ne!(signed, signature(b"jefe", 1, b"{}"));
    }
}
