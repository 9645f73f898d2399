//! The door for sandboxes of a person's own, where one is configured: opens
//! sessions behind it, keeps what is open by its run, and closes it. What a
//! session may do is the engine's and the proxy's.

use crate::config::SandboxListen;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use cambium_engine::{Job, Outcome, RunReport, Sandbox, StageTimes, ToolResult};
use cambium_proxy::{BoxFuture, Door, DoorAt, DoorFrame, RunId, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// An unused session ends after this: a container that is gone says nothing.
const IDLE: Duration = Duration::from_secs(15 * 60);

/// Binds the door, if one is configured.
pub(crate) async fn bind(
    listen: Option<SandboxListen>,
    data_dir: &DataDir,
) -> Result<Option<DoorFrame>, Failure> {
    let at = match listen {
        None => return Ok(None),
        Some(SandboxListen::Loopback(address)) => DoorAt::Loopback(address),
        Some(SandboxListen::Socket) => DoorAt::Socket(data_dir.door()),
    };
    DoorFrame::bind(&at).await.map(Some).map_err(|error| {
        Failure::new(
            "listen_refused",
            format!("the sandbox listener {at:?} cannot be opened: {error}"),
            "change `sandbox.listen`, or leave it out",
        )
    })
}

/// How a sandbox reaches the door.
#[derive(Clone)]
enum Way {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

/// Open sessions by their runs.
type Open = Arc<Mutex<BTreeMap<String, Ending>>>;

/// How one open session ends.
#[derive(Clone, Default)]
struct Ending {
    /// Asks it to.
    close: CancellationToken,
    /// It has: its token is worth nothing.
    over: CancellationToken,
}

/// The open sessions.
pub(crate) struct Outside {
    door: Arc<Door>,
    way: Way,
    open: Open,
}

impl Outside {
    /// What is behind a served door. `None` when the frame says neither where it
    /// listens nor what its file is.
    pub(crate) fn new(
        frame: (Option<SocketAddr>, Option<PathBuf>),
        door: Arc<Door>,
    ) -> Option<Self> {
        let way = match frame {
            (Some(address), _) => Way::Tcp(address),
            (None, Some(path)) => Way::Socket(path),
            (None, None) => return None,
        };
        Some(Self { door, way, open: Arc::default() })
    }

    /// A session's sandbox, and where its token will be.
    pub(crate) fn session(&self) -> (Arc<dyn Sandbox>, oneshot::Receiver<String>) {
        let (tell, told) = oneshot::channel();
        let sandbox = Waiting {
            door: self.door.clone(),
            open: self.open.clone(),
            tell: Mutex::new(Some(tell)),
        };
        (Arc::new(sandbox), told)
    }

    /// What a person gives their sandbox.
    pub(crate) fn pass(&self, run: &RunId, token: &str) -> Value {
        let (url, socket) = match &self.way {
            Way::Tcp(address) => (format!("http://{address}"), None),
            Way::Socket(path) => ("http://localhost".to_owned(), Some(path)),
        };
        json!({
            "run": run,
            "baseUrl": url,
            "socket": socket,
            "token": token,
            "idleMinutes": IDLE.as_secs() / 60,
        })
    }

    /// Runs whose sessions are open.
    pub(crate) fn list(&self) -> Vec<String> {
        held(&self.open).keys().cloned().collect()
    }

    /// Closes all.
    pub(crate) fn close_all(&self) {
        held(&self.open).values().for_each(|ending| ending.close.cancel());
    }

    /// Closes one, and waits until its token lets nobody in; false when there is
    /// none.
    pub(crate) async fn close(&self, run: &str) -> bool {
        let Some(ending) = held(&self.open).get(run).cloned() else { return false };
        ending.close.cancel();
        ending.over.cancelled().await;
        true
    }
}

/// Stands where a sandbox would run a module: lets requests in until the session
/// is closed, ended or unused.
struct Waiting {
    door: Arc<Door>,
    open: Open,
    tell: Mutex<Option<oneshot::Sender<String>>>,
}

impl Sandbox for Waiting {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let outcome = self.wait(job.run.to_string(), session).await;
            let times = StageTimes::default();
            RunReport { outcome, logs: Vec::new(), logs_dropped: 0, times, evidence: None }
        })
    }
}

impl Waiting {
    async fn wait(&self, run: String, session: Arc<Session>) -> Outcome {
        // First, so that it is given up last: then the token is gone.
        let place = Place::take(&self.open, run);
        let mut pass = match self.door.admit(session.clone()) {
            Ok(pass) => pass,
            Err(error) => return Outcome::Unavailable(format!("no token could be made: {error}")),
        };
        let tell = held(&self.tell).take();
        if tell.is_none_or(|tell| tell.send(pass.token().to_owned()).is_err()) {
            // Who asked is gone, so nobody has the token.
            return Outcome::Cancelled;
        }
        let closed =
            |how: &str| Outcome::Ok(ToolResult::Value(json!({ "closed": how }).to_string()));
        tokio::select! {
            biased;
            () = session.ended() => Outcome::PolicyDenied,
            () = place.ending.close.cancelled() => closed("by a person"),
            () = pass.unused_for(IDLE) => closed("unused"),
        }
    }
}

/// A session's entry among the open ones.
struct Place {
    open: Open,
    run: String,
    ending: Ending,
}

impl Place {
    fn take(open: &Open, run: String) -> Self {
        let ending = Ending::default();
        held(open).insert(run.clone(), ending.clone());
        Self { open: open.clone(), run, ending }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        held(&self.open).remove(&self.run);
        self.ending.over.cancel();
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
