//! The TLS stream of a vendor as hyper reads it, and what hyper would not say:
//! whether a head came with bare line feeds. hyper takes such a head; another
//! reader would frame it otherwise, so the connection is not used again.

use hyper_util::client::legacy::connect::{Connected, Connection as Link};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Set once a head on the connection was not written as HTTP/1.1 says. Travels
/// with every reply of the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Odd(Arc<AtomicBool>);

impl Odd {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A TLS stream hyper can use.
pub(super) struct Wire {
    stream: TokioIo<TlsStream<TcpStream>>,
    odd: Odd,
    heads: Heads,
}

impl Wire {
    pub(super) fn new(stream: TlsStream<TcpStream>) -> Self {
        let framed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let heads = if framed { Heads::Framed } else { Heads::Over };
        Self { stream: TokioIo::new(stream), odd: Odd::default(), heads }
    }
}

/// Where in the answers of an HTTP/1 connection its reader is. Requests on one
/// connection follow each other, so what comes after a request is a head.
enum Heads {
    /// HTTP/2: its frames have no lines.
    Framed,
    /// In a body, or nothing was asked yet.
    Over,
    /// In a head: its first bytes, and the last two.
    Within { start: Vec<u8>, last: [u8; 2] },
}

/// Up to and with the first digit of a status: `HTTP/1.1 1`.
const START: usize = 10;

impl Heads {
    fn begin() -> Self {
        Self::Within { start: Vec::with_capacity(START), last: *b"\r\n" }
    }

    /// A request goes out: what comes next is a head.
    fn asked(&mut self) {
        if matches!(self, Self::Over) {
            *self = Self::begin();
        }
    }

    /// Looks at what came; answers whether a line ended without its CR.
    fn read(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            let Self::Within { start, last } = self else { return false };
            if start.len() < START {
                start.push(*byte);
            }
            match (*last, byte) {
                ([_, b'\n'], b'\n') => return true,
                ([_, last], b'\n') if last != b'\r' => return true,
                // The empty line: its CR follows a line feed. An interim
                // answer is followed by another head.
                ([b'\n', b'\r'], b'\n') if start.len() == START => {
                    let interim = start.last() == Some(&b'1');
                    *self = if interim { Self::begin() } else { Self::Over };
                    continue;
                }
                _ => {}
            }
            *last = [last[1], *byte];
        }
        false
    }
}

impl Link for Wire {
    fn connected(&self) -> Connected {
        let (_, tls) = self.stream.inner().get_ref();
        let connected = Connected::new().extra(self.odd.clone());
        if tls.alpn_protocol() == Some(b"h2") { connected.negotiated_h2() } else { connected }
    }
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !matches!(self.heads, Heads::Within { .. }) {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        // hyper's buffer shows only what is still free, so a head goes through
        // one of ours.
        let mut ours = [0; 8 * 1024];
        let room = ours.len().min(buffer.remaining());
        let mut head = tokio::io::ReadBuf::new(&mut ours[..room]);
        std::task::ready!(AsyncRead::poll_read(
            Pin::new(self.stream.inner_mut()),
            context,
            &mut head
        ))?;
        if self.heads.read(head.filled()) {
            self.odd.0.store(true, Ordering::Relaxed);
            self.heads = Heads::Over;
        }
        buffer.put_slice(head.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.heads.asked();
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
        self.heads.asked();
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(pieces: &[&str]) -> bool {
        let mut heads = Heads::Over;
        heads.asked();
        pieces.iter().any(|piece| heads.read(piece.as_bytes()))
    }

    #[test]
    fn g05_bare_line_feeds_show_in_every_head_and_in_no_body() {
        for plain in [
            &["HTTP/1.1 200 OK\r\na: b\r\n\r\nbody\nwith\n\nlines"][..],
            &["HTTP/1.1 200 OK\r", "\n\r", "\n\n\n"],
            &["HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\n"],
        ] {
            assert!(!odd(plain), "{plain:?}");
        }
        for bare in [
            &["HTTP/1.1 200 OK\na: b\n\n"][..],
            &["HTTP/1.1 200 OK\r\na: b\n\r\n"],
            &["HTTP/1.1 200 OK\r\na: b\r\n\n"],
            &["HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\n"],
            &["HTTP/1.1 200", " OK", "\n"],
        ] {
            assert!(odd(bare), "{bare:?}");
        }
    }
}
