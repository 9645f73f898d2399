//! The MCP server one session, or one request without a session, talks to. It
//! reads who asks, hands calls to [`crate::dispatch`] and keeps the client told
//! meanwhile. Nothing about an agent is kept between requests.

use crate::asking::{self, ParkedCall, Parking, Ways};
use crate::dispatch::dispatch;
use crate::heartbeat::beat;
use crate::instructions::INSTRUCTIONS;
use crate::list;
use crate::meta_tools::MetaTool;
use crate::notices::{Early, next_change};
use crate::reply::Reply;
use crate::tasks;
use cambium_engine::{AskName, Caller, Engine, EngineError, InBandAnswer, Live, Offer, Status};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CreateTaskResult,
    Extensions, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Where a client's metadata names a call of its own: the same name, tool and
/// input again is the same call.
const CALL_ID: &str = "cambium/callId";
/// Longest such name, bytes.
const CALL_ID_BYTES: usize = 256;

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
    parking: Arc<Parking>,
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
        parking: Arc<Parking>,
    ) -> Self {
        let ended = CancellationToken::new();
        Self {
            engine,
            who,
            listener,
            tasks,
            parking,
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

    async fn task_caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        self.caller(&context.extensions).await.map_err(|error| tasks::unknown(&error))
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
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = match self.caller(&context.extensions).await {
            Ok(caller) => caller,
            Err(error) => return Ok(CallToolResult::from(Reply::from(error)).into()),
        };
        let name = request.name.into_owned();
        let arguments = request.arguments.unwrap_or_default();
        let gone = CancellationToken::new();
        let mut said = None;
        let mut waiting = match request.request_state {
            None => self.begin(&caller, &name, &arguments, &context, &gone),
            Some(state) => {
                let agent = caller.agent().id.as_str();
                let Some(parked) = self.parking.take(&state, agent, &name, &arguments) else {
                    let why = "requestState names no call of this agent that waits for an answer";
                    return Err(ErrorData::invalid_params(why, None));
                };
                let Some(answer) = asking::input(request.input_responses.as_ref()) else {
                    // Nothing was said: the question stands as it was.
                    return self.park(parked);
                };
                let end = asking::answered(&self.engine, &caller, &parked.offer.id, answer).await;
                said = asking::unanswered(end);
                if said.is_some() {
                    self.engine.leave_open(&caller, &parked.offer.ask.id);
                    Waiting { call: parked.call, held: parked.held }
                } else if parked.call.is_finished() {
                    // Its wait ended first and nothing was sent: what was decided
                    // is stored, and the same call finds it.
                    self.begin(&caller, &name, &arguments, &context, &gone)
                } else {
                    Waiting { call: parked.call, held: parked.held }
                }
            }
        };
        let left = self.left(&context.extensions);
        let ways = Ways::of(context.client_capabilities().as_ref());
        let newer = context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
        let mut asked = FuturesUnordered::new();
        let mut beats = pin!(beat(context.peer.clone(), context.meta.get_progress_token()));
        loop {
            tokio::select! {
                done = &mut waiting.call => return match done {
                    Ok(reply) => {
                        let reply = reply.noting(said);
                        Ok(self.as_task(&caller, &name, reply, &context).await)
                    }
                    Err(error) => {
                        tracing::error!(%error, "a call ended without an answer");
                        Err(ErrorData::internal_error("the call ended without an answer", None))
                    }
                },
                Some(ask) = waiting.held.recv(), if ways.form || ways.url => {
                    match self.offered(&caller, &ask, ways).await {
                        Some(offer) if newer => {
                            return self.park(ParkedCall {
                                agent: caller.agent().id.as_str().to_owned(),
                                name,
                                arguments,
                                call: waiting.call,
                                held: waiting.held,
                                offer,
                            });
                        }
                        Some(offer) => asked.push(self.ask(&caller, &context, Some(offer), ask)),
                        None if ways.url && !newer => {
                            asked.push(self.ask(&caller, &context, None, ask));
                        }
                        None => {}
                    }
                }
                Some(end) = asked.next(), if !asked.is_empty() => {
                    // said first: the call may end as soon as it waits no longer
                    if let Some((ask, why)) = end {
                        said = Some(why);
                        self.engine.leave_open(&caller, &ask);
                    }
                }
                // the run is told and still waited for: what a write came to
                // must be recorded, even when nobody is left to read it
                () = context.ct.cancelled(), if !gone.is_cancelled() => gone.cancel(),
                () = left.cancelled(), if !gone.is_cancelled() => gone.cancel(),
                never = &mut beats => match never {},
            }
        }
    }

    /// A run that goes on is a task to a client that knows them.
    async fn as_task(
        &self,
        caller: &Caller,
        name: &str,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let declared = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if declared
            && MetaTool::named(name) == Some(MetaTool::RunTool)
            && let Reply::Envelope(envelope) = &reply
            && envelope.status == Status::Running
            && let Some(run) = &envelope.run
            && let Ok(task) = tasks::begun(&self.engine, caller, run).await
        {
            return CreateTaskResult::new(task).into();
        }
        CallToolResult::from(reply).into()
    }

    /// A task of its own: a panic in it costs one call, not the session.
    fn begin(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
        gone: &CancellationToken,
    ) -> Waiting {
        let (told, held) = mpsc::unbounded_channel();
        let call_id = context.meta.get(CALL_ID).and_then(serde_json::Value::as_str);
        let live = Live {
            cancel: gone.clone(),
            held: Some(told),
            call_id: call_id.filter(|id| id.len() <= CALL_ID_BYTES).map(str::to_owned),
        };
        let call = self.tasks.spawn({
            let (engine, caller) = (self.engine.clone(), caller.clone());
            let (name, arguments) = (name.to_owned(), arguments.clone());
            async move { dispatch(&engine, &caller, &name, arguments, live).await }
        });
        Waiting { call, held }
    }

    fn park(&self, parked: ParkedCall) -> Result<CallToolResponse, ErrorData> {
        self.parking.park(parked).map(CallToolResponse::from).ok_or_else(|| {
            ErrorData::internal_error("too many calls wait for an answer; answer one first", None)
        })
    }

    /// The ask as this client's form, if a person switched that on.
    async fn offered(&self, caller: &Caller, ask: &AskName, ways: Ways) -> Option<Offer> {
        if !ways.form {
            return None;
        }
        self.engine.offer(caller, ask).await.unwrap_or_else(|error| {
            tracing::warn!(%ask, %error, "an ask could not be offered");
            None
        })
    }

    /// Puts an ask to the client of the older era and takes its answer. Answers
    /// what the call is told, if its form was shown and came to nothing.
    async fn ask(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        offer: Option<Offer>,
        ask: AskName,
    ) -> Option<(AskName, &'static str)> {
        let (id, params) = match &offer {
            Some(offer) => (Some(offer.id.as_str()), asking::form(offer)),
            None => (None, asking::page(ask.as_str(), self.engine.ask_link(&ask))),
        };
        let (shown, answer) = match context.peer.create_elicitation(params).await {
            Ok(result) => (true, asking::meant(&result)),
            Err(error) => {
                tracing::info!(%ask, %error, "a client did not show a form");
                (false, InBandAnswer::Dismissed)
            }
        };
        let end = asking::answered(&self.engine, caller, id?, answer).await;
        // A client that shows none leaves the wait to the console.
        asking::unanswered(end).filter(|_| shown).map(|why| (ask, why))
    }
}

/// A call under way, and the asks its requests are held for.
struct Waiting {
    call: JoinHandle<Reply>,
    held: mpsc::UnboundedReceiver<AskName>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
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
        let connections = self.engine.executes(&caller).await.map_err(told)?;
        let low_level = self.engine.low_level(&caller.agent().id).await.map_err(told)?;
        Ok(ListToolsResult::with_all_items(list::tools(low_level, &connections, promoted)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.task_caller(&context).await?;
        let forms = Ways::of(context.client_capabilities().as_ref()).form;
        let shown = &self.parking.shown;
        let task = tasks::look(&self.engine, shown, &caller, &request.task_id, forms).await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.task_caller(&context).await?;
        let (task, responses) = (request.task_id, request.input_responses);
        self.parking.shown.answer(&self.engine, &caller, &task, responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.task_caller(&context).await?;
        let ended = self.engine.cancel_process(&caller, &request.task_id).await;
        ended.map_err(|error| tasks::unknown(&error))
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
