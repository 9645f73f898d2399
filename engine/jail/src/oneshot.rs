//! One-shot jobs: a pure function over hostile bytes, run in a worker like any
//! other and killed after its one answer. Parsers of foreign text live there.

use crate::error::JailError;
use crate::exit::Verdict;
use crate::frames::{self, FrameError, FrameLimits};
use crate::jail::{Jail, Program};
use crate::limits::WorkerLimits;
use bytes::Bytes;
use std::time::Duration;

/// What a one-shot job may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneshotLimits {
    /// What its process may use.
    pub worker: WorkerLimits,
    /// From the first byte of input to the last of output.
    pub wall: Duration,
    /// Largest output, bytes.
    pub output_bytes: usize,
}

impl Default for OneshotLimits {
    fn default() -> Self {
        Self {
            worker: WorkerLimits {
                cpu: Duration::from_secs(5),
                data_bytes: 512 * 1024 * 1024,
                // Parsers recurse; a deep text must end as a diagnostic.
                stack_bytes: 64 * 1024 * 1024,
            },
            wall: Duration::from_secs(10),
            output_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Why a one-shot job gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OneshotError {
    /// No process could be made.
    #[error("{0}")]
    Jail(#[from] JailError),
    /// Wall time ran out.
    #[error("it took longer than {} s", .0.as_secs())]
    Timeout(Duration),
    /// It ended without an answer.
    #[error("it ended without an answer: {0:?}")]
    Ended(Verdict),
    /// Its answer was not one, or too large.
    #[error("its answer was refused: {0}")]
    Answer(FrameError),
}

impl Jail {
    /// Runs the function `name` of the binary's [`crate::role_main`] over `input`.
    pub async fn oneshot(
        &self,
        name: &str,
        input: &[u8],
        limits: OneshotLimits,
    ) -> Result<Bytes, OneshotError> {
        let program = Program::Oneshot(name.to_owned());
        let worker = self.inner().take(&program, "", "", limits.worker).await?;
        let (mut reader, mut writer, fetch, mut leash) = worker.into_parts();
        drop(fetch);
        let payload = limits.output_bytes;
        reader.set_limits(FrameLimits { payload, frames: 2, bytes: payload as u64 });
        let exchange = async {
            // A process that dies while it reads shows in the answer.
            let _ = writer.send(frames::ONESHOT_INPUT, input).await;
            reader.next().await
        };
        match tokio::time::timeout(limits.wall, exchange).await {
            Ok(Ok(Some(frame))) if frame.kind == frames::ONESHOT_OUTPUT => Ok(frame.payload),
            Ok(Ok(Some(frame))) => Err(OneshotError::Answer(FrameError::Kind(frame.kind))),
            Ok(Ok(None) | Err(FrameError::Io(_) | FrameError::Truncated)) => {
                // Keeps the evidence of a process that has ended, ends one that has not.
                leash.kill();
                Err(OneshotError::Ended(leash.ended().await.verdict()))
            }
            Ok(Err(error)) => Err(OneshotError::Answer(error)),
            Err(_) => Err(OneshotError::Timeout(limits.wall)),
        }
    }
}
