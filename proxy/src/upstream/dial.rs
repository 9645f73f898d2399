//! From a host of the connection to a TLS stream: guarded look-up, the first
//! address that answers, handshake. hyper's client calls it and nothing else
//! does; the authority it is called with is checked against the connection's
//! hosts once more.

use super::Network;
use crate::resolve::guarded;
use crate::target::authority;
use crate::{Connection, Exception, Host, Refusal};
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection as Link};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long one address may take to accept before the next is tried: a third
/// of the head deadline, so that a dead first address leaves time for others.
const ACCEPT: Duration = Duration::from_secs(5);

/// How long a handshake may take: it is at most two round trips, and a dial in
/// the background has no other deadline.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why nothing was dialled.
#[derive(Debug)]
pub(super) struct DialError(pub(super) Refusal);

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DialError {}

/// Dials the hosts of one connection.
#[derive(Clone)]
pub(super) struct Dialler {
    reach: Arc<Reach>,
}

struct Reach {
    hosts: Vec<Host>,
    exceptions: Vec<Exception>,
    network: Network,
    tls: TlsConnector,
}

impl Dialler {
    pub(super) fn new(connection: &Connection, network: Network, tls: Arc<ClientConfig>) -> Self {
        let reach = Reach {
            hosts: connection.hosts.clone(),
            exceptions: connection.exceptions.clone(),
            network,
            tls: TlsConnector::from(tls),
        };
        Self { reach: Arc::new(reach) }
    }
}

impl tower_service::Service<Uri> for Dialler {
    type Response = Wire;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let reach = self.reach.clone();
        Box::pin(async move { dial(&reach, &uri).await.map_err(DialError) })
    }
}

async fn dial(reach: &Reach, uri: &Uri) -> Result<Wire, Refusal> {
    let wanted = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let host = reach.hosts.iter().find(|host| authority(host) == wanted).ok_or_else(|| {
        Refusal::HostNotInConnection("the host is not one of the connection's".into())
    })?;
    let name = ServerName::try_from(host.name.clone())
        .map_err(|_| Refusal::TlsFailed("the host's name cannot be in a certificate".into()))?;
    let network = &reach.network;
    let addresses =
        guarded(&*network.resolver, host, &reach.exceptions, &network.own, &network.limits).await?;
    let tcp = first_to_accept(&addresses, &reach.exceptions).await?;
    match tokio::time::timeout(HANDSHAKE, reach.tls.connect(name, tcp)).await {
        Err(_) => Err(Refusal::UpstreamTimeout("the vendor did not finish TLS in time".into())),
        Ok(Ok(stream)) => Ok(Wire { stream: TokioIo::new(stream) }),
        Ok(Err(error)) => {
            tracing::warn!(host = %host.name, %error, "TLS failed");
            Err(Refusal::TlsFailed("the vendor's TLS could not be trusted or agreed".into()))
        }
    }
}

async fn first_to_accept(
    addresses: &[SocketAddr],
    exceptions: &[Exception],
) -> Result<TcpStream, Refusal> {
    for address in addresses {
        match tokio::time::timeout(ACCEPT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Nagle would hold small requests back for an acknowledgement.
                stream.set_nodelay(true).map_err(|_| not_reached())?;
                refuse_self(&stream, *address, exceptions)?;
                return Ok(stream);
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "not reached"),
            Err(_) => tracing::debug!(%address, "not reached in time"),
        }
    }
    Err(not_reached())
}

fn not_reached() -> Refusal {
    Refusal::UpstreamTimeout("the vendor could not be reached".into())
}

/// A public address may still be this machine's own: then both ends of the
/// socket are the same. Only a person's exception makes that right.
fn refuse_self(
    stream: &TcpStream,
    address: SocketAddr,
    exceptions: &[Exception],
) -> Result<(), Refusal> {
    let lifted = exceptions.iter().any(|exception| {
        exception.port == address.port() && exception.cidr.contains(&address.ip())
    });
    let own = stream.local_addr().is_ok_and(|local| local.ip() == address.ip());
    if own && !lifted {
        return Err(Refusal::SelfAddress("the host is this machine".into()));
    }
    Ok(())
}

/// A TLS stream hyper can use.
pub(super) struct Wire {
    stream: TokioIo<TlsStream<TcpStream>>,
}

impl Link for Wire {
    fn connected(&self) -> Connected {
        let (_, tls) = self.stream.inner().get_ref();
        let connected = Connected::new();
        if tls.alpn_protocol() == Some(b"h2") { connected.negotiated_h2() } else { connected }
    }
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}
