//! The first code where a person finds it: in its 0600 file of the data
//! directory, renewed there while nobody has set a passphrase, and gone with the
//! first one. Which code holds is the engine's to say.

use crate::data_dir::DataDir;
use crate::failure::Failure;
use cambium_engine::{Engine, FirstCode};
use cambium_proxy::Clock;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// A machine that slept, or a clock that jumped, leaves a lapsed code in the
/// file no longer than this.
const LOOK: Duration = Duration::from_secs(60);

/// The code and its file.
pub(crate) struct FirstCodes {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    data_dir: PathBuf,
    /// Held while the file is brought up to date.
    turn: Mutex<()>,
}

impl FirstCodes {
    pub(crate) fn new(engine: Arc<Engine>, clock: Arc<dyn Clock>, data_dir: PathBuf) -> Self {
        Self { engine, clock, data_dir, turn: Mutex::default() }
    }

    /// The code in force, which the file holds afterwards; `None`, and no file,
    /// once a passphrase is set.
    pub(crate) async fn current(&self) -> Result<Option<FirstCode>, Failure> {
        let _turn = self.turn.lock().await;
        let first = self.engine.first_code().await?;
        match &first {
            Some(first) => DataDir::write_code(&self.data_dir, &first.code)?,
            None => DataDir::remove_code(&self.data_dir),
        }
        Ok(first)
    }

    /// Keeps the file up to date until a passphrase is set or `stop` fires.
    pub(crate) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let left = match self.current().await {
                Ok(Some(first)) => first.expires_ms - self.clock.now_ms(),
                Ok(None) => return,
                Err(failure) => {
                    tracing::error!(reason = failure.message, "the first code was not renewed");
                    i64::MAX
                }
            };
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0)).min(LOOK);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.first_code_spent() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}
