//! Starting jails of the stub and talking to one worker.

use cambium_jail::frames::{self, Frame, FrameError, FrameLimits};
use cambium_jail::{Exit, Jail, JailConfig, JobReader, JobWriter, Leash, Origin, WorkerLimits};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;

pub(crate) const JOB: u8 = frames::GUEST_KINDS;
pub(crate) const ANSWER: u8 = frames::GUEST_KINDS + 1;

/// What a driver accepts on a job socket here.
pub(crate) const LIMITS: FrameLimits = FrameLimits { payload: 4096, frames: 100, bytes: 1 << 20 };

pub(crate) const PATHS: [Origin; 2] = [Origin::Zygote, Origin::Exec];

pub(crate) fn config(path: Origin) -> JailConfig {
    JailConfig {
        exe: Some(env!("CARGO_BIN_EXE_stub").into()),
        payload: Arc::from(*b"the payload"),
        zygote: path == Origin::Zygote,
        pool: 0,
        ..JailConfig::default()
    }
}

pub(crate) fn jail(path: Origin) -> Jail {
    Jail::start(config(path)).unwrap()
}

/// A worker's four parts.
pub(crate) struct Held {
    pub(crate) reader: JobReader,
    pub(crate) writer: JobWriter,
    pub(crate) fetch: UnixStream,
    pub(crate) leash: Leash,
}

pub(crate) async fn take(jail: &Jail, version: &str) -> Held {
    take_with(jail, version, WorkerLimits::default()).await
}

pub(crate) async fn take_with(jail: &Jail, version: &str, limits: WorkerLimits) -> Held {
    let worker = jail.take("agent", version, limits).await.unwrap();
    let (mut reader, writer, fetch, leash) = worker.into_parts();
    reader.set_limits(LIMITS);
    Held { reader, writer, fetch, leash }
}

impl Held {
    pub(crate) async fn tell(&mut self, job: &str) {
        self.writer.send(JOB, job.as_bytes()).await.unwrap();
    }

    /// The next frame or the end, within five seconds.
    pub(crate) async fn hear(&mut self) -> Result<Option<Frame>, FrameError> {
        within(self.reader.next()).await
    }

    /// The answer to a job, or how the worker ended over it.
    pub(crate) async fn ask(&mut self, job: &str) -> Result<String, Exit> {
        self.tell(job).await;
        match self.hear().await {
            Ok(Some(frame)) => {
                assert_eq!(frame.kind, ANSWER);
                Ok(String::from_utf8(frame.payload.to_vec()).unwrap())
            }
            Ok(None) | Err(_) => Err(self.end().await),
        }
    }

    /// As [`Self::ask`] of a worker that may be gone already.
    pub(crate) async fn try_ask(&mut self, job: &str) -> Result<String, Exit> {
        match self.writer.send(JOB, job.as_bytes()).await {
            Ok(()) => match self.hear().await {
                Ok(Some(frame)) => Ok(String::from_utf8(frame.payload.to_vec()).unwrap()),
                Ok(None) | Err(_) => Err(self.end().await),
            },
            Err(_) => Err(self.end().await),
        }
    }

    pub(crate) async fn end(&mut self) -> Exit {
        within(self.leash.ended()).await
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), future).await.expect("within five seconds")
}
