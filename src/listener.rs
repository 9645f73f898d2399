//! The one loopback listener of MCP and console: binds, accepts, and gives
//! every connection a deadline for its request head and an end at shutdown.

use crate::failure::Failure;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once: harnesses with their streams, and a few browser tabs.
const CONNECTIONS: usize = 512;
/// A request's head must be complete within this.
const HEAD: Duration = Duration::from_secs(10);

/// The bound listener.
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the address; port 0 takes a free one.
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let bound = TcpListener::bind(address).await.and_then(|listener| {
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        });
        bound.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => Failure::new(
                "listen_in_use",
                format!("{address} is in use by another process"),
                "is a server running already (`cambium status`)? else pass another --listen",
            ),
            _ => Failure::new(
                "listen_refused",
                format!("{address} cannot be listened on: {error}"),
                "pass a --listen this user may use, such as 127.0.0.1:7171",
            ),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` fires; then no new connection is taken and open ones
    /// end with their current answer.
    pub(crate) async fn serve(self, router: Router, tasks: TaskTracker, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                () = stop.cancelled() => return,
            };
            let Ok(place) = place else { return };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (router, stop) = (router.clone(), stop.clone());
                    tasks.spawn(async move {
                        let _place = place;
                        converse(stream, router, stop).await;
                    });
                }
                Err(error) => {
                    // Out of descriptors: give those in use a moment to close.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn converse(stream: TcpStream, router: Router, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection =
        server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection ended early");
    }
}
