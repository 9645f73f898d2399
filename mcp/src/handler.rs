//! The MCP server one session, or one request without a session, talks to. It
//! reads who asks, hands calls to [`crate::dispatch`] and keeps the client told
//! meanwhile. Nothing about an agent is kept between requests.

use crate::dispatch::dispatch;
use crate::heartbeat::beat;
use crate::instructions::INSTRUCTIONS;
use crate::list;
use crate::notices::{Early, next_change};
use crate::reply::Reply;
use cambium_engine::{Caller, Engine, EngineError};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Extensions, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Where a request's credential is found.
pub(crate) enum Who {
    /// The door resolved it and left the caller in the HTTP request.
    Request,
    /// The stream came with this token; it is resolved again at each request.
    Token(String),
}

/// Cancelled when whoever waits for an answer is gone: the stream ended, or the
/// HTTP response was dropped. A held write must not go to nobody.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) CancellationToken);

/// One MCP server.
pub(crate) struct Handler {
    engine: Arc<Engine>,
    who: Who,
    listener: Option<Listener>,
    tasks: TaskTracker,
    early: Early,
    notified: AtomicBool,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Handler {
    /// `tasks` owns whatever outlives a single request; `listener` is the
    /// stream's, while over HTTP each request brings its own.
    pub(crate) fn new(
        engine: Arc<Engine>,
        who: Who,
        listener: Option<Listener>,
        tasks: TaskTracker,
    ) -> Self {
        let ended = CancellationToken::new();
        Self {
            engine,
            who,
            listener,
            tasks,
            early: Early::default(),
            notified: AtomicBool::new(false),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    async fn caller(&self, extensions: &Extensions) -> Result<Caller, EngineError> {
        match &self.who {
            Who::Token(token) => self.engine.authenticate(token).await,
            Who::Request => extensions
                .get::<Parts>()
                .and_then(|parts| parts.extensions.get::<Caller>())
                .cloned()
                .ok_or(EngineError::Unauthenticated),
        }
    }

    /// Resolves when nobody waits for the answer any more.
    fn left(&self, extensions: &Extensions) -> CancellationToken {
        let own = || extensions.get::<Parts>()?.extensions.get::<Listener>().cloned();
        self.listener
            .clone()
            .or_else(own)
            .map_or_else(CancellationToken::new, |listener| listener.0)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<Reply, ErrorData> {
        let caller = match self.caller(&context.extensions).await {
            Ok(caller) => caller,
            Err(error) => return Ok(error.into()),
        };
        let (gone, left) = (CancellationToken::new(), self.left(&context.extensions));
        // a task of its own: a panic in it costs one call, not the session
        let mut call = self.tasks.spawn({
            let (engine, gone) = (self.engine.clone(), gone.clone());
            let arguments = request.arguments.unwrap_or_default();
            async move { dispatch(&engine, &caller, &request.name, arguments, gone).await }
        });
        let mut beats = pin!(beat(context.peer.clone(), context.meta.get_progress_token()));
        loop {
            tokio::select! {
                done = &mut call => return done.map_err(|error| {
                    tracing::error!(%error, "a call ended without an answer");
                    ErrorData::internal_error("the call ended without an answer", None)
                }),
                // the run is told and still waited for: what a write came to
                // must be recorded, even when nobody is left to read it
                () = context.ct.cancelled(), if !gone.is_cancelled() => gone.cancel(),
                () = left.cancelled(), if !gone.is_cancelled() => gone.cancel(),
                never = &mut beats => match never {},
            }
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("cambium", env!("CARGO_PKG_VERSION")).with_title("Cambium"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.early.keep(self.engine.events());
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.notified.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(caller) = self.caller(&context.extensions).await else { return };
        let mut events = self.early.take().unwrap_or_else(|| self.engine.events());
        let (peer, ended) = (context.peer, self.ended.clone());
        self.tasks.spawn(async move {
            let told = async {
                while next_change(&mut events, caller.agent()).await.is_some() {
                    if peer.notify_tool_list_changed().await.is_err() {
                        break;
                    }
                }
            };
            ended.run_until_cancelled(told).await;
        });
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list has one page; pass no cursor", None));
        }
        let told = |error: EngineError| {
            let envelope = cambium_engine::Envelope::from(&error);
            ErrorData::internal_error(error.to_string(), serde_json::to_value(envelope).ok())
        };
        let caller = self.caller(&context.extensions).await.map_err(told)?;
        let promoted = self.engine.tool_list(&caller).await.map_err(told)?;
        Ok(ListToolsResult::with_all_items(list::tools(promoted)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::from(self.call(request, context).await?).into())
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // before the acknowledgement goes out: the client may act on it at once
        self.early.keep(self.engine.events());
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut events = self.early.take().unwrap_or_else(|| self.engine.events());
        let extensions = &context.request_context().extensions;
        let Ok(caller) = self.caller(extensions).await else {
            return Err(ErrorData::invalid_request("the agent token is not valid", None));
        };
        if context.accepted().tools_list_changed != Some(true) {
            context.cancelled().await;
            return Ok(());
        }
        let told = async {
            while next_change(&mut events, caller.agent()).await.is_some() {
                if context.sink().notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = told => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }
}
