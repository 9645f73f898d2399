//! A small shop on this machine, so that the demo needs no account: real TLS
//! under an authority of its own, refuses a wrong bearer token, keeps orders in
//! memory, and remembers what it received. It answers a write with the
//! credential it was sent, so that what must never come through is there to
//! come through.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Largest body the shop reads, bytes.
const BODY_BYTES: usize = 64 * 1024;
/// The name in its certificate.
pub(crate) const HOST: &str = "localhost";

/// A running shop.
pub(crate) struct Vendor {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// PEM of the authority that signed its certificate.
    pub(crate) ca_pem: String,
    shop: Arc<Shop>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// One request as the shop received it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Method.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The `Authorization` header, if there was one.
    pub(crate) authorization: Option<String>,
    /// The body as text.
    pub(crate) body: String,
    /// What it was answered.
    pub(crate) status: u16,
}

struct Shop {
    token: String,
    orders: Mutex<Vec<Value>>,
    received: Mutex<Vec<Received>>,
}

impl Vendor {
    /// Opens the shop on a free loopback port for holders of `token`.
    pub(crate) async fn open(token: &str) -> Result<Self, String> {
        let (tls, ca_pem) = certificate().map_err(|error| format!("certificate: {error}"))?;
        let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
            .await
            .map_err(|error| format!("no loopback port: {error}"))?;
        let address = listener.local_addr().map_err(|error| format!("no address: {error}"))?;
        let shop = Arc::new(Shop {
            token: token.to_owned(),
            orders: Mutex::new(vec![
                json!({ "id": 2, "item": "reading lamp", "quantity": 1 }),
                json!({ "id": 1, "item": "oak shelf", "quantity": 2 }),
            ]),
            received: Mutex::default(),
        });
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tasks.spawn(listen(listener, acceptor, shop.clone(), stop.clone(), tasks.clone()));
        Ok(Self { address, ca_pem, shop, stop, tasks })
    }

    /// Everything received so far, in order.
    pub(crate) fn received(&self) -> Vec<Received> {
        held(&self.shop.received).clone()
    }

    /// Closes the shop and waits for its last answer.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn listen(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    shop: Arc<Shop>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
            () = stop.cancelled() => return,
        };
        let _ = stream.set_nodelay(true);
        let (acceptor, shop, stop) = (acceptor.clone(), shop.clone(), stop.clone());
        tasks.spawn(async move {
            let served = async {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(|request| answer(shop.clone(), request));
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            };
            tokio::select! {
                () = served => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

async fn answer(
    shop: Arc<Shop>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES).collect().await;
    let body = body.map(|whole| whole.to_bytes()).unwrap_or_default();
    let header = head.headers.get(http::header::AUTHORIZATION);
    let authorization = header.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let welcome = authorization.as_deref() == Some(format!("Bearer {}", shop.token).as_str());
    let (status, said) = if !welcome {
        (StatusCode::UNAUTHORIZED, json!({ "error": "the bearer token is wrong" }))
    } else {
        match (&head.method, head.uri.path()) {
            (&Method::GET, "/orders") => list(&shop, head.uri.query()),
            (&Method::POST, "/orders") => create(&shop, &body, authorization.as_deref()),
            _ => (StatusCode::NOT_FOUND, json!({ "error": "the shop has only /orders" })),
        }
    };
    held(&shop.received).push(Received {
        method: head.method.to_string(),
        target: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        authorization,
        body: String::from_utf8_lossy(&body).into_owned(),
        status: status.as_u16(),
    });
    let mut response = Response::new(Full::new(Bytes::from(said.to_string())));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

fn list(shop: &Shop, query: Option<&str>) -> (StatusCode, Value) {
    let pairs = query.unwrap_or_default().split('&');
    let limit = pairs.filter_map(|pair| pair.strip_prefix("limit=")).next();
    let limit = limit.and_then(|limit| limit.parse().ok()).unwrap_or(20);
    let orders: Vec<Value> = held(&shop.orders).iter().take(limit).cloned().collect();
    (StatusCode::OK, json!({ "orders": orders }))
}

fn create(shop: &Shop, body: &[u8], authorization: Option<&str>) -> (StatusCode, Value) {
    let wanted: Value = serde_json::from_slice(body).unwrap_or_default();
    let (Some(item), Some(quantity)) = (wanted["item"].as_str(), wanted["quantity"].as_u64())
    else {
        return (StatusCode::BAD_REQUEST, json!({ "error": "item and quantity are needed" }));
    };
    let mut orders = held(&shop.orders);
    let order = json!({ "id": orders.len() + 1, "item": item, "quantity": quantity });
    orders.insert(0, order.clone());
    (StatusCode::CREATED, json!({ "order": order, "youSent": authorization }))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fresh authority and a certificate for [`HOST`] signed by it.
fn certificate() -> Result<(ServerConfig, String), Box<dyn std::error::Error + Send + Sync>> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "the demo shop's authority");
    let authority_key = KeyPair::generate()?;
    let ca_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec![HOST.to_owned()])?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(str::to_owned)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((tls, ca_pem))
}
