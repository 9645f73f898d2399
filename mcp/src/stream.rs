//! MCP over a pair of byte streams, one JSON message a line: what a bridge
//! carries between a harness's standard input and output and this server.

use crate::asking::Parking;
use crate::door::MESSAGE_BYTES_MAX;
use crate::error::McpError;
use crate::handler::{Handler, Listener, Who};
use cambium_engine::Engine;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, TransportAdapterIdentity};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Serves one harness until it closes its side or `cancel` fires. The token is
/// resolved now, and again at each request, so one that was rotated or revoked
/// meanwhile is refused. Everything it started has ended when it returns.
pub async fn serve_stream<R, W>(
    engine: Arc<Engine>,
    token: String,
    read: R,
    write: W,
    cancel: CancellationToken,
) -> Result<(), McpError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    engine.authenticate(&token).await?;
    let tasks = TaskTracker::new();
    let transport = AsyncRwTransport::new(read, write).with_max_line_length(MESSAGE_BYTES_MAX);
    let ended = serve(&engine, &token, &tasks, transport, &cancel).await;
    tasks.close();
    tasks.wait().await;
    ended
}

/// The library gives up on a client whose first words are not `initialize`: a
/// stray notification would end the harness's server. Here the client is given
/// another go on the same stream for as long as it stays.
async fn serve<T>(
    engine: &Arc<Engine>,
    token: &str,
    tasks: &TaskTracker,
    transport: T,
    cancel: &CancellationToken,
) -> Result<(), McpError>
where
    T: Transport<RoleServer> + 'static,
{
    let parking = Arc::new(Parking::default());
    let back = Arc::new(Mutex::new(Some(transport)));
    loop {
        let taken = back.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(transport) = taken else { return Ok(()) };
        let listener = Listener(CancellationToken::new());
        let lent =
            Lent { transport: Some(transport), back: back.clone(), listener: listener.clone() };
        let who = Who::Token(token.to_owned());
        let handler =
            Handler::new(engine.clone(), who, Some(listener), tasks.clone(), parking.clone());
        let begun = serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(
            handler,
            lent,
            cancel.child_token(),
        );
        match begun.await {
            Ok(running) => {
                // its end is the stream's end; how it came about is logged there
                let _ = running.waiting().await;
                return Ok(());
            }
            Err(
                ServerInitializeError::ExpectedInitializeRequest(_)
                | ServerInitializeError::InitializeFailed(_)
                | ServerInitializeError::UnexpectedInitializeResponse(_),
            ) => tracing::debug!("a harness spoke before it initialized"),
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(McpError::Stream(error.to_string())),
        }
    }
}

/// A transport that finds its way back when the library drops it.
struct Lent<T> {
    transport: Option<T>,
    back: Arc<Mutex<Option<T>>>,
    listener: Listener,
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.transport.take();
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Lent<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let sent = self.transport.as_mut().map(|transport| transport.send(message));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.transport.as_mut()?.receive().await;
        if message.is_none() {
            // The library still waits for what is under way; nobody reads it.
            self.listener.0.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        match self.transport.as_mut() {
            Some(transport) => transport.close().await,
            None => Ok(()),
        }
    }
}
