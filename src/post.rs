//! One POST to an endpoint a person configured, and its bounded answer: TLS with
//! public roots, no redirects, one deadline for all of it; and the file its key
//! is in. The one place outside `proxy` that dials, since this is no request of
//! a tool's.

use crate::failure::Failure;
use bytes::Bytes;
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// Longest key file, bytes.
const KEY_BYTES: u64 = 8 * 1024;
/// Largest answer, bytes.
const ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// Which addresses an https endpoint's name may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Any: a model may run in the person's own network.
    Any,
    /// Public ones, by the proxy's own guard.
    Public,
}

/// Where the questions go.
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    target: String,
    tls: Option<TlsConnector>,
    timeout: Duration,
    reach: Reach,
}

impl Endpoint {
    /// `https://…`, or `http://` on this machine.
    pub(crate) fn new(
        setting: &str,
        url: &str,
        path: &str,
        timeout: Duration,
        reach: Reach,
    ) -> Result<Self, Failure> {
        let wrong = |reason: &str| {
            Failure::new(
                "config_invalid",
                format!("`{setting}` {reason}"),
                "write it like https://api.example.com/v1",
            )
        };
        let uri: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
        let host = uri.host().ok_or_else(|| wrong("names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if uri.query().is_some() || uri.authority().is_some_and(|name| name.as_str().contains('@'))
        {
            return Err(wrong("may hold no query and no user"));
        }
        let loopback =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
        let (tls, port) = match uri.scheme_str() {
            Some("https") => (Some(connector()), 443),
            Some("http") if loopback => (None, 80),
            Some("http") => return Err(wrong("must be https except on this machine")),
            _ => return Err(wrong("must begin with https://")),
        };
        let base = uri.path().trim_end_matches('/');
        Ok(Self {
            port: uri.port_u16().unwrap_or(port),
            target: format!("{base}{path}"),
            host,
            tls,
            timeout,
            reach,
        })
    }

    /// Status and body of the answer. The error is a sentence without a header.
    pub(crate) async fn post(
        &self,
        headers: Vec<(&'static str, HeaderValue)>,
        body: Vec<u8>,
    ) -> Result<(u16, Bytes), String> {
        let exchange = async {
            let stream = self.dial().await?;
            match &self.tls {
                None => self.exchange(stream, headers, body).await,
                Some(tls) => {
                    let name = ServerName::try_from(self.host.clone())
                        .map_err(|_| "its host is no name a certificate has".to_owned())?;
                    let stream = tls.connect(name, stream).await;
                    let stream = stream.map_err(|error| format!("TLS with it failed: {error}"))?;
                    self.exchange(stream, headers, body).await
                }
            }
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", self.timeout.as_secs())))
    }

    // A person configured this address; no module and no agent can change it.
    #[allow(clippy::disallowed_methods)]
    async fn dial(&self) -> Result<TcpStream, String> {
        let unreached = |error: std::io::Error| format!("it cannot be reached: {error}");
        if self.reach == Reach::Public && self.tls.is_some() {
            let addresses = cambium_proxy::public_addresses(&self.host, self.port).await;
            let addresses: Vec<SocketAddr> = addresses.map_err(|refusal| refusal.to_string())?;
            return TcpStream::connect(addresses.as_slice()).await.map_err(unreached);
        }
        TcpStream::connect((self.host.as_str(), self.port)).await.map_err(unreached)
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        headers: Vec<(&'static str, HeaderValue)>,
        body: Vec<u8>,
    ) -> Result<(u16, Bytes), String> {
        let broke = |error: hyper::Error| format!("the connection broke: {error}");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broke)?;
        let mut request = Request::post(&self.target)
            .header("host", format!("{}:{}", self.host, self.port))
            .header("content-type", "application/json")
            .header("accept", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| "the question cannot be sent".to_owned())?;
        let answered = async {
            let answer = sender.send_request(request).await.map_err(broke)?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
            let body = body.map_err(|_| "its answer broke off or is too long".to_owned())?;
            Ok((status, body.to_bytes()))
        };
        tokio::pin!(answered);
        tokio::select! {
            answer = &mut answered => answer,
            // Driven here, so that nothing of it outlives the question.
            ended = connection => match ended {
                Ok(()) => answered.await,
                Err(error) => Err(broke(error)),
            },
        }
    }
}

/// The first line of the key's file, which nobody else may read.
pub(crate) fn read_key(file: &Path) -> Result<Zeroizing<String>, String> {
    let shown = file.display();
    let unread = |error: std::io::Error| format!("the key file {shown} cannot be read: {error}");
    let metadata = std::fs::metadata(file).map_err(unread)?;
    if metadata.mode() & 0o077 != 0 {
        return Err(format!("the key file {shown} can be read by others"));
    }
    if metadata.len() > KEY_BYTES {
        return Err(format!("the key file {shown} has more than {KEY_BYTES} bytes"));
    }
    let text = Zeroizing::new(std::fs::read_to_string(file).map_err(unread)?);
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(Zeroizing::new(line.to_owned())),
        None => Err(format!("the key file {shown} is empty")),
    }
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
    match config {
        Ok(config) => TlsConnector::from(Arc::new(config)),
        // ring has every version rustls calls safe.
        Err(error) => unreachable!("rustls without a protocol version: {error}"),
    }
}
