//! A session for a sandbox that is not ours: a person opens one for an agent and
//! a connection, and until it is closed whoever holds its token sends requests
//! as that run. It is a run like `execute__`'s, only longer: reads go, every
//! write asks for itself. Who listens is the root's and the proxy's.

use crate::canonical::digest;
use crate::command::Caller;
use crate::execute::Loose;
use crate::{Engine, EngineError, Live, PersonProof, Sandbox};
use cambium_proxy::{ContentHash, Hints, RunId};
use std::sync::Arc;
use std::time::Duration;

/// A working day: what is forgotten ends by itself.
const WALL: Duration = Duration::from_secs(8 * 60 * 60);
/// How long a write waits for a person; the client's own patience ends before.
const BUDGET: Duration = Duration::from_secs(60 * 60);
/// Requests of one session: far above what a day of an SDK makes, and an end
/// for one that loops.
const REQUESTS: usize = 10_000;

impl Engine {
    /// Opens a session; `sandbox` lets the outside in and returns when it is
    /// closed. Without `write` it only reads. Answers its run.
    pub async fn open_outside(
        &self,
        _proof: &PersonProof,
        caller: &Caller,
        connection: &str,
        write: bool,
        sandbox: Arc<dyn Sandbox>,
    ) -> Result<RunId, EngineError> {
        caller.active()?;
        let connection = self.connection(connection).await?;
        let loose = Loose {
            connection,
            content: ContentHash(digest(&[b"outside"])),
            hints: Hints { read_only: !write, destructive: write },
            dry_run: false,
            detached: true,
            wall: WALL,
            budget: BUDGET,
            requests: Some(REQUESTS),
            call_key: None,
            sandbox,
        };
        let mut run = None;
        self.run_loose(caller, loose, Live::new(Default::default()), &mut run).await?;
        run.ok_or_else(|| EngineError::SandboxUnavailable("the session has no run".into()))
    }
}
