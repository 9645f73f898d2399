//! The library's own client, of either era over either transport.

use super::World;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

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

pub(crate) struct Ears(mpsc::UnboundedSender<Heard>);

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(Heard::ListChanged);
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(Heard::Progress(progress.progress));
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

pub(crate) async fn connect_http(url: &str, token: &str, era: Era) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
    let (said, heard) = mpsc::unbounded_channel();
    let transport = StreamableHttpClientTransport::from_config(config);
    let service = serve_client_with_lifecycle(Ears(said), transport, lifecycle(era)).await.unwrap();
    Client { service, heard }
}

pub(crate) async fn connect_stream(world: &World, token: &str, era: Era) -> Client {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(far);
    let (engine, cancel) = (world.engine.clone(), world.cancel.clone());
    let token = token.to_owned();
    world.tasks.spawn(async move {
        cambium_mcp::serve_stream(engine, token, read, write, cancel).await.unwrap();
    });
    let (said, heard) = mpsc::unbounded_channel();
    let service = serve_client_with_lifecycle(Ears(said), near, lifecycle(era)).await.unwrap();
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
