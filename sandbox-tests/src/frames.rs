//! HTTP/2 as a vendor may misuse it: frames written by hand, and requests told
//! apart without a decoder. Beside it a vendor of a library's, that echoes.

use crate::vendor::Shared;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Frame types.
pub mod kind {
    /// DATA.
    pub const DATA: u8 = 0;
    /// HEADERS.
    pub const HEADERS: u8 = 1;
    /// RST_STREAM.
    pub const RESET: u8 = 3;
    /// SETTINGS.
    pub const SETTINGS: u8 = 4;
    /// PUSH_PROMISE.
    pub const PUSH: u8 = 5;
    /// PING.
    pub const PING: u8 = 6;
    /// GOAWAY.
    pub const GOAWAY: u8 = 7;
    /// WINDOW_UPDATE.
    pub const WINDOW: u8 = 8;
    /// CONTINUATION.
    pub const CONTINUATION: u8 = 9;
}

/// END_STREAM, and ACK of settings and pings.
pub const END_STREAM: u8 = 1;
/// END_HEADERS.
pub const END_HEADERS: u8 = 4;

/// `:status: 200` of the static table.
pub const OK: &[u8] = &[0x88];

/// The client's first bytes.
const PREFACE: usize = 24;

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header field that is not indexed, its name and value under 127 bytes.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let short = |text: &str| u8::try_from(text.len()).expect("a short text");
    assert!(name.len() < 127 && value.len() < 127, "lengths over 126 need more than a byte");
    let mut bytes = vec![0, short(name)];
    bytes.extend(name.as_bytes());
    bytes.push(short(value));
    bytes.extend(value.as_bytes());
    bytes
}

/// A whole answer on a stream.
pub fn answer(stream: u32, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let head = [OK, fields].concat();
    let mut bytes = frame(kind::HEADERS, END_HEADERS, stream, &head);
    bytes.extend(frame(kind::DATA, END_STREAM, stream, body));
    bytes
}

/// Serves one connection: each request is kept under the head `stream N` and
/// answered by the script, its bytes untouched.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    shared: &Shared,
) {
    let mut preface = [0; PREFACE];
    if stream.read_exact(&mut preface).await.is_err() {
        return;
    }
    if stream.write_all(&frame(kind::SETTINGS, 0, 0, &[])).await.is_err() {
        return;
    }
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if stream.read_exact(&mut payload).await.is_err() {
            return;
        }
        let (of, flags) = (head[3], head[4]);
        let number = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let request = matches!(of, kind::HEADERS | kind::DATA) && flags & END_STREAM != 0;
        if of == kind::SETTINGS && flags & END_STREAM == 0 {
            let acknowledged = frame(kind::SETTINGS, END_STREAM, 0, &[]);
            if stream.write_all(&acknowledged).await.is_err() {
                return;
            }
        }
        if request {
            let heard = shared.hear(connection, format!("stream {number}"), payload, None);
            if !shared.play(&mut stream, &heard).await {
                return;
            }
        }
    }
}

/// Serves one connection by a library; answers each request with its own head.
pub(crate) async fn echo(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    shared: &Shared,
) {
    let Ok(mut requests) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = requests.accept().await {
        let (head, mut incoming) = request.into_parts();
        let mut body = Vec::new();
        while let Some(Ok(data)) = incoming.data().await {
            let _ = incoming.flow_control().release_capacity(data.len());
            body.extend_from_slice(&data);
        }
        let mut text = format!("{} {} HTTP/2\r\n", head.method, head.uri);
        for (name, value) in &head.headers {
            text.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
        }
        shared.hear(connection, text.clone(), body, None);
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-trailer", http::HeaderValue::from_static("1"));
        let response = http::Response::builder().header("alt-svc", "h3=\":443\"").body(());
        let Ok(response) = response else { return };
        let Ok(mut out) = respond.send_response(response, false) else { return };
        if out.send_data(Bytes::from(text), false).is_err() || out.send_trailers(trailers).is_err()
        {
            return;
        }
    }
}
