//! Components to artefacts: one compiler at a time, in a jailed one-shot process.
//! What came of it is kept in memory, never on a disk. A compilation is nobody's
//! in particular: whoever waits may go away, the next one finds it done.

use bytes::Bytes;
use cambium_engine::Unfit;
use cambium_jail::{Jail, OneshotError, OneshotLimits, WorkerLimits};
use cambium_proxy::ContentHash;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Name of the compiler among the binary's one-shot functions.
const COMPILE: &str = "compile";
/// Largest artefact, bytes: an engine for JavaScript with a tool in it has 40 MB.
const ARTEFACT_BYTES: usize = 64 * 1024 * 1024;
/// Artefacts kept in memory, bytes of all; the one used longest ago goes first.
const KEPT_BYTES: usize = 128 * 1024 * 1024;
/// Components waiting for the compiler: each may take a minute.
const WAITING: usize = 8;
/// A component of 12 MB, with a whole JavaScript engine in it, takes ten to twenty
/// seconds; a machine with other work takes its time.
const CPU: Duration = Duration::from_secs(60);
const WALL: Duration = Duration::from_secs(180);

/// First byte of the compiler's answer when an artefact follows; else a reason does.
const DONE: u8 = 1;

type Compiled = Result<Bytes, Unfit>;

/// By the digest of their component.
#[derive(Debug, Default)]
struct State {
    /// Artefacts, the one used last at the end.
    kept: VecDeque<(ContentHash, Bytes)>,
    /// What each compilation under way will come to.
    under_way: HashMap<ContentHash, watch::Receiver<Option<Compiled>>>,
}

#[derive(Debug)]
struct Inner {
    jail: Arc<Jail>,
    state: Mutex<State>,
    /// It takes hundreds of megabytes.
    alone: tokio::sync::Mutex<()>,
}

/// The compiler and what it made.
#[derive(Debug)]
pub(crate) struct Compiler {
    inner: Arc<Inner>,
    tasks: TaskTracker,
}

impl Compiler {
    pub(crate) fn new(jail: Arc<Jail>) -> Self {
        let inner = Inner { jail, state: Mutex::default(), alone: tokio::sync::Mutex::default() };
        Self { inner: Arc::new(inner), tasks: TaskTracker::new() }
    }

    /// Waits for what is under way; ends soon once the jail has been shut down.
    pub(crate) async fn stopped(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The artefact of a component. Dropping the future stops the waiting only.
    pub(crate) async fn artefact(&self, digest: ContentHash, component: &Arc<[u8]>) -> Compiled {
        let mut said = match self.inner.find_or_announce(digest)? {
            Found::Kept(artefact) => return Ok(artefact),
            Found::UnderWay(said) => said,
            Found::Missing(tell, said) => {
                let (inner, component) = (self.inner.clone(), component.clone());
                self.tasks.spawn(async move {
                    let compiled = inner.compile(&component).await;
                    inner.done(digest, &compiled);
                    let _ = tell.send(Some(compiled));
                });
                said
            }
        };
        match said.wait_for(Option::is_some).await.map(|said| said.clone()) {
            Ok(Some(compiled)) => compiled,
            _ => Err(Unfit::Unavailable("the compiler of components has stopped".to_owned())),
        }
    }
}

enum Found {
    Kept(Bytes),
    UnderWay(watch::Receiver<Option<Compiled>>),
    /// The caller is to compile it and tell.
    Missing(watch::Sender<Option<Compiled>>, watch::Receiver<Option<Compiled>>),
}

impl Inner {
    fn find_or_announce(&self, digest: ContentHash) -> Result<Found, Unfit> {
        let mut state = self.state();
        if let Some(at) = state.kept.iter().position(|(known, _)| *known == digest)
            && let Some(found) = state.kept.remove(at)
        {
            let artefact = found.1.clone();
            state.kept.push_back(found);
            return Ok(Found::Kept(artefact));
        }
        // One whose teller is gone ended badly, and is begun again.
        if let Some(said) = state.under_way.get(&digest)
            && said.has_changed().is_ok()
        {
            return Ok(Found::UnderWay(said.clone()));
        }
        if state.under_way.len() >= WAITING {
            let text = format!("{WAITING} components wait to be compiled already; call it again");
            return Err(Unfit::Unavailable(text));
        }
        let (tell, said) = watch::channel(None);
        state.under_way.insert(digest, said.clone());
        Ok(Found::Missing(tell, said))
    }

    fn done(&self, digest: ContentHash, compiled: &Compiled) {
        let mut state = self.state();
        state.under_way.remove(&digest);
        let Ok(artefact) = compiled else { return };
        let mut held: usize = state.kept.iter().map(|(_, artefact)| artefact.len()).sum();
        while held + artefact.len() > KEPT_BYTES
            && let Some((_, gone)) = state.kept.pop_front()
        {
            held -= gone.len();
        }
        state.kept.push_back((digest, artefact.clone()));
    }

    async fn compile(&self, component: &[u8]) -> Compiled {
        let _alone = self.alone.lock().await;
        let limits = OneshotLimits {
            worker: WorkerLimits {
                cpu: CPU,
                data_bytes: 1536 * 1024 * 1024,
                ..OneshotLimits::default().worker
            },
            wall: WALL,
            output_bytes: ARTEFACT_BYTES + 1,
        };
        let answer = self.jail.oneshot(COMPILE, component, limits).await;
        let answer = answer.map_err(|error| match error {
            OneshotError::Jail(error) => {
                Unfit::Unavailable(format!("the compiler of components cannot start: {error}"))
            }
            error => Unfit::Refused(format!("it could not be compiled: {error}")),
        })?;
        match answer.split_first() {
            Some((&DONE, _)) => Ok(answer.slice(1..)),
            Some((_, reason)) => {
                let reason = String::from_utf8_lossy(reason);
                // What a jailed process says is hostile.
                let plain = |c: char| if c.is_control() { ' ' } else { c };
                let reason = reason.chars().map(plain).take(500).collect();
                Err(Unfit::Refused(reason))
            }
            None => Err(Unfit::Refused("the compiler said nothing".to_owned())),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
