//! The sessions of the older protocol era, each bound to the agent that opened
//! it, and the reaper that closes those nobody uses.
//!
//! The library's own reaper is switched off: it counts only messages, so it
//! ends a session whose one call is silent for five minutes. Here a session is
//! in use as long as any of its streams is open.

use cambium_engine::Caller;
use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often sessions are looked at.
const SWEEP: Duration = Duration::from_secs(60);
/// Sweeps without a request or an open stream until a session is closed.
const IDLE_SWEEPS: u32 = 30;
/// Most sessions of one agent; a client that never ends its own must not fill
/// the memory.
const SESSIONS_MAX: usize = 64;

tokio::task_local! {
    /// Who sends the request that is being answered.
    static CALLER: Caller;
}

/// Answers one HTTP request as this caller.
pub(crate) async fn as_caller<F: Future>(caller: Caller, answer: F) -> F::Output {
    CALLER.scope(caller, answer).await
}

/// Why a session could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionFault {
    /// The library's own fault.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
    /// All of the agent's sessions are in use.
    #[error("the agent has too many open sessions")]
    TooMany,
    /// A session needs somebody to belong to.
    #[error("a session was asked for by nobody")]
    Nobody,
}

struct Open {
    agent: String,
    /// Cloned into every open stream.
    in_use: Arc<()>,
    idle: u32,
}

impl Open {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.in_use) == 1
    }
}

/// Sessions by id, each with its agent.
pub(crate) struct AgentSessions {
    local: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Open>>,
}

impl Default for AgentSessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = None;
        Self { local, open: Mutex::default() }
    }
}

impl AgentSessions {
    /// False when the session is another agent's. A session that is used
    /// counts as seen.
    pub(crate) fn may_use(&self, id: &str, caller: &Caller) -> bool {
        match self.open().get_mut(id) {
            None => true,
            Some(open) => {
                let own = open.agent == caller.agent().id.as_str();
                if own {
                    open.idle = 0;
                }
                own
            }
        }
    }

    /// Closes idle sessions until cancelled.
    pub(crate) async fn reap(&self, cancel: CancellationToken) {
        let mut ticks = tokio::time::interval(SWEEP);
        while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
            let idle: Vec<SessionId> = self
                .open()
                .iter_mut()
                .filter_map(|(id, open)| {
                    open.idle = if open.is_idle() { open.idle + 1 } else { 0 };
                    (open.idle > IDLE_SWEEPS).then(|| id.clone())
                })
                .collect();
            for id in idle {
                self.close(&id).await;
            }
        }
    }

    async fn close(&self, id: &SessionId) {
        if let Err(error) = self.close_session(id).await {
            tracing::warn!(%error, "a session could not be closed");
        }
    }

    /// Makes room for one more session of this agent.
    async fn make_room(&self, agent: &str) -> Result<(), SessionFault> {
        let longest_idle = {
            let open = self.open();
            let own: Vec<_> = open.iter().filter(|(_, open)| open.agent == agent).collect();
            if own.len() < SESSIONS_MAX {
                return Ok(());
            }
            own.into_iter()
                .filter(|(_, open)| open.is_idle())
                .max_by_key(|(_, open)| open.idle)
                .map(|(id, _)| id.clone())
        };
        self.close(&longest_idle.ok_or(SessionFault::TooMany)?).await;
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_use(&self, id: &SessionId) -> Option<Arc<()>> {
        self.open().get(id).map(|open| open.in_use.clone())
    }
}

impl SessionManager for AgentSessions {
    type Error = SessionFault;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionFault> {
        let agent = CALLER
            .try_with(|caller| caller.agent().id.as_str().to_owned())
            .map_err(|_| SessionFault::Nobody)?;
        self.make_room(&agent).await?;
        let (id, transport) = self.local.create_session().await?;
        self.open().insert(id.clone(), Open { agent, in_use: Arc::default(), idle: 0 });
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionFault> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionFault> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionFault> {
        self.open().remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let in_use = self.in_use(id);
        let stream = self.local.create_stream(id, message).await?;
        Ok(InUse { stream: Box::pin(stream), _in_use: in_use })
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionFault> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let in_use = self.in_use(id);
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(InUse { stream: Box::pin(stream), _in_use: in_use })
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let in_use = self.in_use(id);
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(InUse { stream: Box::pin(stream), _in_use: in_use })
    }
}

/// A stream that keeps its session from being reaped.
struct InUse<S> {
    stream: Pin<Box<S>>,
    _in_use: Option<Arc<()>>,
}

impl<S: Stream> Stream for InUse<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}
