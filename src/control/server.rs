//! The server's end of the control socket: accepts, reads one request a line,
//! answers it, and turns a bridge's stream into MCP. Every connection is a task
//! of the tracker, so shutdown waits for its last answer.

use super::{Front, REQUEST_BYTES, Reply, Request, line};
use crate::failure::Failure;
use cambium_engine::{DOCUMENT_BYTES_MAX, Live};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once: bridges of many harnesses, and a few commands.
const CONNECTIONS: usize = 256;
/// A new connection must say something within this.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// What follows a line must have come within this.
const BEHIND: Duration = Duration::from_secs(30);

/// The bound socket. Dropping it removes the file.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Binds it, mode 0600. The caller holds the data directory's lock, so a
    /// file that is there already is left from a process that is gone.
    pub(crate) fn bind(path: &Path) -> Result<Self, Failure> {
        let bound = match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => UnixListener::bind(path).and_then(|listener| {
                // The directory is 0700: nobody else can connect in between.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(listener)
            }),
        };
        let listener = bound.map_err(|error| {
            Failure::new(
                "data_dir_unwritable",
                format!("the control socket {} cannot be made: {error}", path.display()),
                "make the data directory writable, or pass another --data-dir",
            )
        })?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Serves until `stop` fires; then no new connection is taken.
    pub(crate) async fn serve(
        self,
        front: Arc<Front>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            let stream = match accepted {
                Ok((stream, _)) if ours(&stream) => stream,
                Ok(_) => continue,
                Err(error) => {
                    // Out of descriptors: give those in use a moment to close.
                    tracing::warn!(%error, "a control connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                tracing::warn!("more than {CONNECTIONS} control connections: one was turned away");
                continue;
            };
            let (front, stop) = (front.clone(), stop.clone());
            tasks.spawn(async move {
                let _place = place;
                converse(stream, front, stop).await;
            });
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Same user, or root: what the file's mode says already, said again.
fn ours(stream: &UnixStream) -> bool {
    let me = rustix::process::getuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == me || peer.uid() == 0)
}

async fn converse(stream: UnixStream, front: Arc<Front>, stop: CancellationToken) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut first = true;
    loop {
        let said = tokio::select! {
            said = line(&mut reader, REQUEST_BYTES) => said,
            () = stop.cancelled() => return,
            () = tokio::time::sleep(FIRST_LINE), if first => return,
        };
        first = false;
        let reply = match said {
            Ok(None) => return,
            Err(failure) => {
                let _ = write(&mut writer, &Reply::Error(failure)).await;
                return;
            }
            Ok(Some(text)) => match serde_json::from_str(&text) {
                Ok(Request::Bridge { token }) => {
                    return bridge(front, token, reader, writer, stop).await;
                }
                Ok(request) => match behind(&mut reader, request.follows()).await {
                    Ok(bytes) => {
                        answered(&front, request, &bytes, (&mut reader, &mut writer)).await
                    }
                    Err(failure) => {
                        let _ = write(&mut writer, &Reply::Error(failure)).await;
                        return;
                    }
                },
                Err(error) => Reply::Error(Failure::new(
                    "request_invalid",
                    format!("the request is not understood: {error}"),
                    "use the same version of cambium on both sides",
                )),
            },
        };
        if write(&mut writer, &reply).await.is_err() {
            return;
        }
    }
}

/// The bytes behind a line.
async fn behind(reader: &mut BufReader<OwnedReadHalf>, length: usize) -> Result<Vec<u8>, Failure> {
    if length > DOCUMENT_BYTES_MAX {
        return Err(Failure::new(
            "document_refused",
            format!("the document has {length} bytes, more than {DOCUMENT_BYTES_MAX}"),
            "choose some of its operations in a smaller document",
        ));
    }
    let mut bytes = Vec::new();
    let wanted = length as u64;
    let read = tokio::time::timeout(BEHIND, reader.take(wanted).read_to_end(&mut bytes)).await;
    match read {
        Ok(Ok(read)) if read == length => Ok(bytes),
        _ => Err(Failure::new(
            "request_invalid",
            format!("{length} bytes were announced and did not come"),
            "try again",
        )),
    }
}

/// Answers one request, and cancels it when the asker hangs up meanwhile. Tells
/// the asker of a call what it waits for.
async fn answered(
    front: &Front,
    request: Request,
    bytes: &[u8],
    (reader, writer): (&mut BufReader<OwnedReadHalf>, &mut OwnedWriteHalf),
) -> Reply {
    let gone = CancellationToken::new();
    let (told, mut held) = mpsc::unbounded_channel();
    let live = Live { held: Some(told), ..Live::new(gone.clone()) };
    let answer = front.answer(request, bytes, live);
    tokio::pin!(answer);
    let answer = loop {
        tokio::select! {
            answer = &mut answer => break answer,
            Some(ask) = held.recv() => {
                // A write that fails shows at the reader as an end.
                if let Ok(ask) = front.held(&ask).await {
                    let _ = write(writer, &Reply::Held(ask)).await;
                }
            }
            // One request at a time: whatever is readable now is an end or an error.
            _ = tokio::io::AsyncBufReadExt::fill_buf(reader) => {
                gone.cancel();
                break answer.await;
            }
        }
    };
    match answer {
        Ok(value) => Reply::Ok(value),
        Err(failure) => Reply::Error(failure),
    }
}

async fn bridge(
    front: Arc<Front>,
    token: String,
    reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
    stop: CancellationToken,
) {
    // Said before the stream is MCP's, so that the bridge can explain itself.
    if let Err(error) = front.engine.authenticate(&token).await {
        let _ = write(&mut writer, &Reply::Error(error.into())).await;
        return;
    }
    if write(&mut writer, &Reply::Ok(serde_json::json!({ "mcp": true }))).await.is_err() {
        return;
    }
    let served = cambium_mcp::serve_stream(front.engine.clone(), token, reader, writer, stop);
    if let Err(error) = served.await {
        tracing::info!(%error, "a bridge ended");
    }
}

async fn write(writer: &mut OwnedWriteHalf, reply: &Reply) -> std::io::Result<()> {
    let mut text = serde_json::to_string(reply)?;
    text.push('\n');
    writer.write_all(text.as_bytes()).await
}
