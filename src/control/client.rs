//! The command line's end of the control socket.

use super::{ANSWER_BYTES, Reply, Request, line};
use crate::data_dir;
use crate::failure::Failure;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// An open control connection.
pub(crate) struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// Connects, asks once and hangs up.
pub(crate) async fn ask(data_dir: &Path, request: &Request) -> Result<Value, Failure> {
    Client::connect(data_dir).await?.ask(request).await
}

/// The same with bytes behind the line.
pub(crate) async fn ask_with(
    data_dir: &Path,
    request: &Request,
    bytes: &[u8],
) -> Result<Value, Failure> {
    Client::connect(data_dir).await?.send(request, bytes, &mut |_| {}).await
}

/// A call; `held` is told of each question to a person it waits for.
pub(crate) async fn call(
    data_dir: &Path,
    request: &Request,
    mut held: impl FnMut(&Value),
) -> Result<Value, Failure> {
    Client::connect(data_dir).await?.send(request, b"", &mut held).await
}

impl Client {
    /// Connects to the server of a data directory; never starts one.
    pub(crate) async fn connect(data_dir: &Path) -> Result<Self, Failure> {
        let path = data_dir::socket(data_dir);
        let stream = UnixStream::connect(&path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(
                "no_server",
                format!("no server runs on {}", data_dir.display()),
                "start one with `cambium serve`, or name its directory with --data-dir",
            ),
            _ => Failure::new(
                "no_server",
                format!("the control socket {} cannot be reached: {error}", path.display()),
                "run this as the user who runs the server",
            ),
        })?;
        let (reader, writer) = stream.into_split();
        Ok(Self { reader: BufReader::new(reader), writer })
    }

    /// Sends one request and waits for its answer.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Value, Failure> {
        self.send(request, b"", &mut |_| {}).await
    }

    async fn send(
        &mut self,
        request: &Request,
        bytes: &[u8],
        held: &mut impl FnMut(&Value),
    ) -> Result<Value, Failure> {
        let mut text = serde_json::to_string(request).map_err(|error| {
            Failure::new("request_invalid", format!("the request has no JSON form: {error}"), "")
        })?;
        text.push('\n');
        let mut sent = self.writer.write_all(text.as_bytes()).await;
        if sent.is_ok() && !bytes.is_empty() {
            sent = self.writer.write_all(bytes).await;
        }
        loop {
            let answer = line(&mut self.reader, ANSWER_BYTES).await?;
            let Some(answer) = answer.filter(|_| sent.is_ok()) else {
                return Err(Failure::new(
                    "server_gone",
                    "the server hung up without an answer",
                    "look at its log, start it again, and look before repeating a write",
                ));
            };
            return match serde_json::from_str(&answer) {
                Ok(Reply::Held(ask)) => {
                    held(&ask);
                    continue;
                }
                Ok(Reply::Ok(value)) => Ok(value),
                Ok(Reply::Error(failure)) => Err(failure),
                Err(error) => Err(Failure::new(
                    "server_gone",
                    format!("the server's answer is not understood: {error}"),
                    "use the same version of cambium on both sides",
                )),
            };
        }
    }

    /// The stream itself, once a bridge has been agreed.
    pub(crate) fn into_parts(self) -> (BufReader<OwnedReadHalf>, OwnedWriteHalf) {
        (self.reader, self.writer)
    }
}
