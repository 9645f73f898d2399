//! A sandbox that does what the input's `do` says.

use cambium_engine::{Job, Outcome, RunReport, Sandbox, StageTimes, ToolResult};
use cambium_proxy::{BoxFuture, OutboundRequest, Session};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// `echo`, `post`, `wait` (for `seconds`), `png`, `never` or `panic`.
pub(crate) struct Puppet {
    /// A permit for each run that began.
    pub(crate) begun: Semaphore,
    /// A permit for each run that was dropped before its end.
    pub(crate) dropped: Semaphore,
}

impl Default for Puppet {
    fn default() -> Self {
        Self { begun: Semaphore::new(0), dropped: Semaphore::new(0) }
    }
}

struct Unfinished<'a>(&'a Puppet, bool);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.add_permits(1);
        }
    }
}

impl Sandbox for Puppet {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let mut unfinished = Unfinished(self, false);
            self.begun.add_permits(1);
            let input: serde_json::Value = serde_json::from_str(&job.input).unwrap();
            let result = match input["do"].as_str() {
                Some("wait") => {
                    let seconds = input["seconds"].as_u64().unwrap();
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    ToolResult::Value("\"waited\"".into())
                }
                Some("post") => {
                    let body = input["body"].as_str().unwrap_or("{}").to_owned();
                    let request = OutboundRequest {
                        method: "POST".into(),
                        host: None,
                        target: "/orders".into(),
                        headers: vec![("content-type".into(), b"application/json".to_vec())],
                        body: body.into(),
                        sdk: false,
                    };
                    let said = tokio::select! {
                        sent = session.send(request) => match sent {
                            Ok(reply) => reply.status.to_string(),
                            Err(refusal) => refusal.code().to_owned(),
                        },
                        () = session.ended() => "ended".to_owned(),
                    };
                    ToolResult::Value(format!("\"{said}\""))
                }
                Some("png") => ToolResult::Response {
                    status: 200,
                    content_type: "image/png".into(),
                    body: bytes::Bytes::from_static(&[0x89, b'P', b'N', b'G', 0xff]),
                },
                Some("never") => std::future::pending().await,
                Some("panic") => panic!("as the test asked"),
                _ => ToolResult::Value(job.input.to_string()),
            };
            unfinished.1 = true;
            RunReport {
                outcome: Outcome::Ok(result),
                logs: Vec::new(),
                logs_dropped: 0,
                times: StageTimes::default(),
                evidence: None,
            }
        })
    }
}
