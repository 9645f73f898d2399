//! The library's own client, of either era over either transport.

use super::World;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, FormElicitationCapability, ProgressNotificationParam,
    ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ErrorData, RoleClient, serve_client_with_lifecycle,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

/// Which handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Initialize,
    Discover,
}

/// Which transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Http,
    Stream,
}

/// What a server says unasked.
#[derive(Debug)]
pub(crate) enum Heard {
    ListChanged,
    Progress(f64),
}

/// A connected client.
pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Ears>,
    pub(crate) heard: mpsc::UnboundedReceiver<Heard>,
}

/// A form a server showed, and where its answer goes.
pub(crate) struct Form {
    pub(crate) params: ElicitRequestParams,
    pub(crate) answer: oneshot::Sender<ElicitResult>,
}

pub(crate) struct Ears {
    said: mpsc::UnboundedSender<Heard>,
    /// A client with it declares that it shows forms.
    forms: Option<mpsc::UnboundedSender<Form>>,
    /// It declares that it knows tasks.
    tasks: bool,
    /// It opens pages instead of showing forms.
    pages: bool,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        if self.forms.is_some() {
            let ways = match self.pages {
                true => ElicitationCapability::new().with_url(UrlElicitationCapability::default()),
                false => {
                    ElicitationCapability::new().with_form(FormElicitationCapability::default())
                }
            };
            info.capabilities.elicitation = Some(ways);
        }
        if self.tasks {
            let tasks = ClientCapabilities::builder().enable_tasks().build();
            info.capabilities.extensions = tasks.extensions;
        }
        info
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (answer, answered) = oneshot::channel();
        self.forms.as_ref().unwrap().send(Form { params, answer }).unwrap();
        Ok(answered.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.said.send(Heard::ListChanged);
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.said.send(Heard::Progress(progress.progress));
    }
}

/// One answer: `isError`, and the JSON its text and structured content share.
pub(crate) struct Answered {
    pub(crate) is_error: bool,
    pub(crate) json: Value,
    pub(crate) whole: Value,
}

/// Connects over `over`, opening the door or the stream first.
pub(crate) async fn connect(world: &World, token: &str, over: Over, era: Era) -> Client {
    match over {
        Over::Http => connect_http(&world.listen().await, token, era).await,
        Over::Stream => connect_stream(world, token, era).await,
    }
}

/// A client that shows forms.
pub(crate) async fn connect_asked(
    world: &World,
    token: &str,
    over: Over,
    era: Era,
) -> (Client, mpsc::UnboundedReceiver<Form>) {
    connect_eliciting(world, token, over, era, false).await
}

/// A client that opens pages.
pub(crate) async fn connect_paged(
    world: &World,
    token: &str,
    over: Over,
    era: Era,
) -> (Client, mpsc::UnboundedReceiver<Form>) {
    connect_eliciting(world, token, over, era, true).await
}

async fn connect_eliciting(
    world: &World,
    token: &str,
    over: Over,
    era: Era,
    pages: bool,
) -> (Client, mpsc::UnboundedReceiver<Form>) {
    let (forms, shown) = mpsc::unbounded_channel();
    let ears = |said| Ears { said, forms: Some(forms), tasks: false, pages };
    let client = match over {
        Over::Http => http(&world.listen().await, token, era, ears).await,
        Over::Stream => stream(world, token, era, ears).await,
    };
    (client, shown)
}

/// A client that knows tasks and shows forms.
pub(crate) async fn connect_tasked(world: &World, token: &str, over: Over, era: Era) -> Client {
    let (forms, _) = mpsc::unbounded_channel();
    let ears = |said| Ears { said, forms: Some(forms), tasks: true, pages: false };
    match over {
        Over::Http => http(&world.listen().await, token, era, ears).await,
        Over::Stream => stream(world, token, era, ears).await,
    }
}

pub(crate) async fn connect_http(url: &str, token: &str, era: Era) -> Client {
    http(url, token, era, |said| Ears { said, forms: None, tasks: false, pages: false }).await
}

type Said = mpsc::UnboundedSender<Heard>;

async fn http(url: &str, token: &str, era: Era, ears: impl FnOnce(Said) -> Ears) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
    let (said, heard) = mpsc::unbounded_channel();
    let transport = StreamableHttpClientTransport::from_config(config);
    let service = serve_client_with_lifecycle(ears(said), transport, lifecycle(era)).await.unwrap();
    Client { service, heard }
}

pub(crate) async fn connect_stream(world: &World, token: &str, era: Era) -> Client {
    stream(world, token, era, |said| Ears { said, forms: None, tasks: false, pages: false }).await
}

async fn stream(world: &World, token: &str, era: Era, ears: impl FnOnce(Said) -> Ears) -> Client {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(far);
    let (engine, cancel) = (world.engine.clone(), world.cancel.clone());
    let token = token.to_owned();
    world.tasks.spawn(async move {
        cambium_mcp::serve_stream(engine, token, read, write, cancel).await.unwrap();
    });
    let (said, heard) = mpsc::unbounded_channel();
    let service = serve_client_with_lifecycle(ears(said), near, lifecycle(era)).await.unwrap();
    Client { service, heard }
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

impl Client {
    pub(crate) async fn names(&self) -> Vec<String> {
        let tools = self.service.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Answered {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(object(arguments));
        let answer = self.service.call_tool(params).await.unwrap();
        let whole = serde_json::to_value(&answer).unwrap();
        let text = whole["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, whole["structuredContent"].to_string(), "text and structure differ");
        Answered {
            is_error: answer.is_error == Some(true),
            json: whole["structuredContent"].clone(),
            whole,
        }
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}
