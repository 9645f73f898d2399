//! The demo's harness: a real MCP client over streamable HTTP, as any other.

use super::Differs;
use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A connected client.
pub(crate) struct Harness {
    client: RunningService<RoleClient, Ears>,
    notices: Arc<AtomicUsize>,
}

/// What one call answered.
pub(crate) struct Answered {
    /// The envelope, as the harness's model would read it.
    pub(crate) envelope: Value,
    /// Where the time went, from the answer's metadata.
    pub(crate) times: Value,
    /// The protocol's error mark.
    pub(crate) is_error: bool,
}

/// Counts list-changed notices.
#[derive(Clone)]
struct Ears(Arc<AtomicUsize>);

impl ClientHandler for Ears {
    async fn on_tool_list_changed(&self, _: rmcp::service::NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Harness {
    /// Connects with an agent's token.
    pub(crate) async fn connect(url: &str, token: &str) -> Result<Self, Differs> {
        // The library's HTTP client wants a provider even where no TLS is spoken.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config =
            StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp")).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let notices = Arc::new(AtomicUsize::new(0));
        let client = Ears(notices.clone()).serve(transport).await;
        let client =
            client.map_err(|error| Differs::new("the MCP client cannot connect", error))?;
        Ok(Self { client, notices })
    }

    /// The whole list.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, Differs> {
        let listed = self.client.list_all_tools().await;
        listed.map_err(|error| Differs::new("tools/list failed", error))
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<Answered, Differs> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let call = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let answer = self.client.call_tool(call).await;
        let answer =
            answer.map_err(|error| Differs::new(&format!("calling {name} failed"), error))?;
        let whole = serde_json::to_value(&answer).unwrap_or_default();
        let text = whole["content"][0]["text"].as_str().unwrap_or_default();
        let times = whole["_meta"]["cambium/times"].clone();
        let envelope = answer.structured_content.clone().unwrap_or_default();
        let read: Value = serde_json::from_str(text).unwrap_or_default();
        if envelope != Value::Null && read != envelope {
            return Err(Differs::new("text and structured content of an answer differ", text));
        }
        let envelope = if envelope.is_null() { read } else { envelope };
        Ok(Answered { envelope, times, is_error: answer.is_error == Some(true) })
    }

    /// List-changed notices heard so far.
    pub(crate) fn notices(&self) -> usize {
        self.notices.load(Ordering::Relaxed)
    }

    /// Hangs up.
    pub(crate) async fn close(self) {
        let _ = self.client.cancel().await;
    }
}
