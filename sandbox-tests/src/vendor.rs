//! A vendor that can misbehave: raw bytes over TLS, written from a script, so
//! that a test can send what no HTTP library would. It counts connections and
//! keeps every byte it got. Its certificate authority is made anew each time.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// One request as the vendor got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Rises over all connections, from 0.
    pub number: usize,
    /// Which connection, from 0.
    pub connection: usize,
    /// Request line and headers as text, without the empty line.
    pub head: String,
    /// The body, by its `content-length`.
    pub body: Vec<u8>,
    /// The client's certificate, DER, if it showed one.
    pub peer: Option<Vec<u8>>,
}

impl Heard {
    /// The request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// Every value of a header, by lower-case name.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect()
    }
}

/// What the vendor does next on a connection.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes bytes.
    Send(Vec<u8>),
    /// Writes them again and again until the peer goes away.
    Forever(Vec<u8>),
    /// Does nothing more, and keeps the connection.
    Stall,
    /// Waits until [`Vendor::release`] was called.
    Await,
    /// Closes.
    Close,
}

/// What a vendor speaks under its TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1; no ALPN is agreed.
    Lines,
    /// Raw HTTP/2 frames: a script's bytes go out as they are.
    Frames,
    /// HTTP/2 by a library; it answers every request with its own head and body.
    Echo,
    /// Agrees on HTTP/2 and reads and writes HTTP/1.1 lines.
    LinesAsFrames,
    /// No TLS at all.
    Plain,
}

/// A step list for each request.
pub type Script = Arc<dyn Fn(&Heard) -> Vec<Step> + Send + Sync>;

/// A complete answer, kept alive.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// Raw bytes, then the connection is closed.
pub fn raw(bytes: impl Into<Vec<u8>>) -> Vec<Step> {
    vec![Step::Send(bytes.into()), Step::Close]
}

pub(crate) struct Shared {
    script: Script,
    heard: Mutex<Vec<Heard>>,
    forgets: AtomicBool,
    connections: AtomicUsize,
    released: watch::Sender<bool>,
    news: watch::Sender<usize>,
}

/// A vendor that listens on loopback.
pub struct Vendor {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its authority, PEM.
    pub ca_pem: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Vendor {
    /// Starts one whose certificate names these hosts.
    pub async fn start(hosts: &[&str], script: Script) -> Self {
        Self::speaking(Speaks::Lines, hosts, script).await
    }

    /// Starts one that speaks something else.
    pub async fn speaking(speaks: Speaks, hosts: &[&str], script: Script) -> Self {
        Self::listen(tls(hosts, speaks, None), speaks, script).await
    }

    /// Starts one only for clients with a certificate of these authorities.
    pub async fn mutual(hosts: &[&str], clients: &[&Identity], script: Script) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        for client in clients {
            roots.add(client.authority.clone()).expect("an authority");
        }
        let speaks = Speaks::Lines;
        Self::listen(tls(hosts, speaks, Some(roots)), speaks, script).await
    }

    async fn listen(
        (acceptor, ca_pem): (TlsAcceptor, String),
        speaks: Speaks,
        script: Script,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be bound");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script,
            heard: Mutex::default(),
            forgets: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            released: watch::Sender::new(false),
            news: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, acceptor, speaks, shared.clone()));
        Self { address, ca_pem, shared, task }
    }

    /// What it got so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps nothing of what it hears from here on: for who asks a million times.
    pub fn forget(&self) {
        self.shared.forgets.store(true, Ordering::Relaxed);
    }

    /// TCP connections so far, whatever became of them.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Lets every [`Step::Await`] go on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Waits until that many requests have come.
    pub async fn until_heard(&self, count: usize) {
        let mut news = self.shared.news.subscribe();
        news.wait_for(|heard| *heard >= count).await.expect("the vendor lives");
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client's certificate of an authority of its own.
pub struct Identity {
    /// Certificate and key, PEM: what a person enters.
    pub pem: String,
    /// The certificate, DER: what the vendor sees.
    pub certificate: Vec<u8>,
    authority: rustls_pki_types::CertificateDer<'static>,
}

impl Identity {
    /// Makes one.
    pub fn new(name: &str) -> Self {
        let (ca, ca_key) = authority("Authority of a test client");
        let authority = ca.self_signed(&ca_key).expect("a certificate").der().clone();
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec![name.to_owned()]).expect("names");
        let leaf = leaf.signed_by(&key, &Issuer::from_params(&ca, &ca_key)).expect("a certificate");
        let pem = format!("{}{}", leaf.pem(), key.serialize_pem());
        Self { pem, certificate: leaf.der().to_vec(), authority }
    }
}

fn authority(name: &str) -> (CertificateParams, KeyPair) {
    let mut ca = CertificateParams::new(Vec::new()).expect("no names");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // A name of its own: some clients take a leaf with its issuer's name for self-signed.
    ca.distinguished_name.push(DnType::CommonName, name);
    (ca, KeyPair::generate().expect("a key"))
}

fn tls(
    hosts: &[&str],
    speaks: Speaks,
    clients: Option<rustls::RootCertStore>,
) -> (TlsAcceptor, String) {
    let (ca, ca_key) = authority("Authority of the test vendor");
    let ca_certificate = ca.self_signed(&ca_key).expect("a certificate");
    let issuer = Issuer::from_params(&ca, &ca_key);
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let leaf = CertificateParams::new(names).expect("names");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let mut config =
        config.with_single_cert(vec![leaf.der().clone()], key).expect("a certificate and its key");
    if matches!(speaks, Speaks::Frames | Speaks::Echo | Speaks::LinesAsFrames) {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    (TlsAcceptor::from(Arc::new(config)), ca_certificate.pem())
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, speaks: Speaks, shared: Arc<Shared>) {
    let mut peers = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        peers.spawn(async move {
            if speaks == Speaks::Plain {
                return serve(socket, number, None, &shared).await;
            }
            let Ok(stream) = acceptor.accept(socket).await else { return };
            match speaks {
                Speaks::Frames => crate::frames::serve(stream, number, &shared).await,
                Speaks::Echo => crate::frames::echo(stream, number, &shared).await,
                Speaks::Lines | Speaks::LinesAsFrames | Speaks::Plain => {
                    let peer = stream.get_ref().1.peer_certificates();
                    let peer = peer.and_then(|chain| chain.first()).map(|leaf| leaf.to_vec());
                    serve(stream, number, peer, &shared).await;
                }
            }
        });
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    peer: Option<Vec<u8>>,
    shared: &Shared,
) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut buffer).await {
        let heard = shared.hear(connection, head, body, peer.clone());
        if !shared.play(&mut stream, &heard).await {
            return;
        }
    }
}

impl Shared {
    /// Keeps a request.
    pub(crate) fn hear(
        &self,
        connection: usize,
        head: String,
        body: Vec<u8>,
        peer: Option<Vec<u8>>,
    ) -> Heard {
        let mut all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *self.news.borrow();
        let heard = Heard { number, connection, head, body, peer };
        if !self.forgets.load(Ordering::Relaxed) {
            all.push(heard.clone());
        }
        self.news.send_replace(number + 1);
        heard
    }

    /// Does what the script says; answers whether the connection lives on.
    pub(crate) async fn play(&self, stream: &mut (impl AsyncWrite + Unpin), heard: &Heard) -> bool {
        for step in (self.script)(heard) {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                        return false;
                    }
                }
                Step::Forever(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() {}
                    return false;
                }
                Step::Stall => std::future::pending().await,
                Step::Await => {
                    let mut released = self.released.subscribe();
                    if released.wait_for(|released| *released).await.is_err() {
                        return false;
                    }
                }
                Step::Close => {
                    let _ = stream.shutdown().await;
                    return false;
                }
            }
        }
        true
    }
}

async fn request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Option<(String, Vec<u8>)> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length = head.lines().filter_map(|line| line.split_once(':'));
    let length = length
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .find_map(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    while buffer.len() < end + 4 + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[end + 4..end + 4 + length].to_vec();
    buffer.drain(..end + 4 + length);
    Some((head, body))
}
