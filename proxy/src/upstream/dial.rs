//! From a host of the connection to a TLS stream: guarded look-up, the first
//! address that answers, handshake. hyper's client calls it and nothing else
//! does; the authority it is called with is checked against the connection's
//! hosts once more.

use super::Network;
use super::wire::Wire;
use crate::resolve::guarded;
use crate::target::authority;
use crate::{Exception, Host, Refusal};
use http::Uri;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

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
    pub(super) fn new(
        hosts: &[Host],
        exceptions: &[Exception],
        network: Network,
        tls: Arc<ClientConfig>,
    ) -> Self {
        let reach = Reach {
            hosts: hosts.to_vec(),
            exceptions: exceptions.to_vec(),
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
        .map_err(|_| Refusal::TlsFailed(format!("`{}` cannot be in a certificate", host.name)))?;
    let network = &reach.network;
    let addresses =
        guarded(&*network.resolver, host, &reach.exceptions, &network.own, &network.limits).await?;
    let tcp = first_to_accept(&host.name, &addresses, &reach.exceptions).await?;
    match tokio::time::timeout(HANDSHAKE, reach.tls.connect(name, tcp)).await {
        Err(_) => {
            Err(Refusal::UpstreamTimeout(format!("{} did not finish TLS in time", host.name)))
        }
        Ok(Ok(stream)) => Ok(Wire::new(stream)),
        Ok(Err(error)) => {
            tracing::warn!(host = %host.name, %error, "TLS failed");
            Err(Refusal::TlsFailed(format!("{}: {}", host.name, tls_class(&error))))
        }
    }
}

/// Why TLS failed, as a class: the library's words may quote the peer's.
fn tls_class(error: &std::io::Error) -> &'static str {
    use rustls::{CertificateError as Cert, Error};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(certificate)) => match certificate {
            Cert::UnknownIssuer => "its certificate is signed by nobody this connection trusts",
            Cert::Expired | Cert::ExpiredContext { .. } => "its certificate has expired",
            Cert::NotValidYet | Cert::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            Cert::NotValidForName | Cert::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            Cert::Revoked => "its certificate is revoked",
            _ => "its certificate cannot be trusted",
        },
        Some(Error::AlertReceived(_)) => "it refused our side of TLS",
        Some(Error::PeerIncompatible(_)) => "it offers no TLS version or cipher we use",
        Some(Error::NoApplicationProtocol) => "it agrees on no protocol we speak",
        Some(Error::InvalidMessage(_)) => "what it speaks is not TLS",
        Some(_) => "TLS could not be agreed",
        None => "it closed before TLS was agreed",
    }
}

async fn first_to_accept(
    name: &str,
    addresses: &[SocketAddr],
    exceptions: &[Exception],
) -> Result<TcpStream, Refusal> {
    let mut class = "it has no address";
    for address in addresses {
        match tokio::time::timeout(ACCEPT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Nagle would hold small requests back for an acknowledgement.
                stream.set_nodelay(true).map_err(|_| not_reached(name, "its socket broke"))?;
                refuse_self(&stream, *address, exceptions)?;
                return Ok(stream);
            }
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "not reached");
                class = match error.kind() {
                    std::io::ErrorKind::ConnectionRefused => "it refuses connections",
                    std::io::ErrorKind::TimedOut => "it did not accept in time",
                    std::io::ErrorKind::HostUnreachable
                    | std::io::ErrorKind::NetworkUnreachable => "there is no way to it",
                    _ => "the connection failed",
                };
            }
            Err(_) => {
                tracing::debug!(%address, "not reached in time");
                class = "it did not accept in time";
            }
        }
    }
    Err(not_reached(name, class))
}

fn not_reached(name: &str, class: &str) -> Refusal {
    Refusal::UpstreamTimeout(format!("{name} could not be reached: {class}"))
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
