//! The jail: hands out workers. One zygote serves one group (an agent) with one
//! program; the least recently used goes beyond a cap, an old one is replaced
//! once its successor is up, one whose child crashed at once. A version that
//! crashed a worker, or a machine where forking fails, gets the exec path.

use crate::error::JailError;
use crate::keeper::Keeper;
use crate::launch::{Launch, launcher};
use crate::layers::LayerReport;
use crate::limits::{SUSPECTS, WorkerLimits, ZYGOTE_AGE, ZYGOTE_RUNS};
use crate::role;
use crate::sys;
use crate::worker::{Origin, Worker};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// How a jail works.
#[derive(Debug, Clone)]
pub struct JailConfig {
    /// The binary whose `main` calls [`crate::role_main`]; `None` is this one.
    pub exe: Option<PathBuf>,
    /// Handed to every [`crate::Guest::boot`], such as a snapshot.
    pub payload: Arc<[u8]>,
    /// Fork workers from warm zygotes; without, each is started afresh.
    pub zygote: bool,
    /// Workers kept ready per agent.
    pub pool: usize,
    /// Limits the ready ones are made with; others are forked on demand.
    pub pool_limits: WorkerLimits,
    /// Zygotes alive at the same time, one an agent.
    pub zygotes_max: usize,
    /// Runs a zygote serves before a fresh one takes over.
    pub zygote_runs: u64,
    /// Age at which a zygote is replaced.
    pub zygote_age: Duration,
    /// Go on without the system-call filter.
    pub allow_weak: bool,
    /// Let jailed processes write to this process's standard error; for
    /// finding faults in a guest's boot.
    pub show_stderr: bool,
}

impl Default for JailConfig {
    fn default() -> Self {
        Self {
            exe: None,
            payload: Arc::from([]),
            zygote: true,
            pool: 1,
            pool_limits: WorkerLimits::default(),
            zygotes_max: 16,
            zygote_runs: ZYGOTE_RUNS,
            zygote_age: ZYGOTE_AGE,
            allow_weak: false,
            show_stderr: false,
        }
    }
}

/// Hands out workers.
#[derive(Debug)]
pub struct Jail {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Jail {
    /// Starts the launcher. Zygotes start when they are first needed.
    pub fn start(config: JailConfig) -> Result<Self, JailError> {
        let text = |error: std::io::Error| JailError::Launch(error.to_string());
        let payload = sys::sealed_memfd(c"payload", &config.payload).map_err(text)?;
        let (sender, thread) = launcher().map_err(text)?;
        let inner = Arc::new(Inner {
            config,
            payload,
            launcher: Mutex::new(Some(sender)),
            tasks: Mutex::new(JoinSet::new()),
            closing: watch::channel(false).0,
            groups: Mutex::new(Groups::default()),
            suspects: Mutex::new(Suspects::default()),
            layers: OnceLock::new(),
        });
        Ok(Self { inner, thread: Mutex::new(Some(thread)) })
    }

    /// A locked, ready worker for one run of `version` by `group` (an agent).
    pub async fn take(
        &self,
        group: &str,
        version: &str,
        limits: WorkerLimits,
    ) -> Result<Worker, JailError> {
        let worker = self.inner.take(&Program::Guest, group, version, limits).await?;
        worker.leash().serve(version);
        Ok(worker)
    }

    /// Starts an agent's zygote (and its ready workers) ahead of its first run.
    pub fn warm(&self, group: &str) {
        if self.inner.config.zygote {
            let _ = self.inner.keeper(&Program::Guest, group);
        }
    }

    /// The layers of the first zygote that came up.
    pub fn layers(&self) -> Option<&[LayerReport]> {
        self.inner.layers.get().map(Vec::as_slice)
    }

    /// Kills what runs and waits until everything is reaped.
    pub async fn shutdown(&self) {
        self.inner.closing.send_replace(true);
        lock(&self.inner.groups).clear();
        loop {
            let mut tasks = std::mem::take(&mut *lock(&self.inner.tasks));
            if tasks.is_empty() {
                break;
            }
            while tasks.join_next().await.is_some() {}
        }
        drop(lock(&self.inner.launcher).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // Keepers end with their last handle; each drains its own children, and
        // the launcher ends with the last of them.
        self.inner.closing.send_replace(true);
        lock(&self.inner.groups).clear();
    }
}

/// What a zygote serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Program {
    /// The binary's guest.
    Guest,
    /// A one-shot function by name.
    Oneshot(String),
}

/// What the jail's tasks share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: JailConfig,
    payload: OwnedFd,
    launcher: Mutex<Option<mpsc::Sender<Launch>>>,
    tasks: Mutex<JoinSet<()>>,
    closing: watch::Sender<bool>,
    groups: Mutex<Groups>,
    suspects: Mutex<Suspects>,
    layers: OnceLock<Vec<LayerReport>>,
}

impl Inner {
    /// A worker by the zygote, else by the exec path.
    pub(crate) async fn take(
        self: &Arc<Self>,
        program: &Program,
        group: &str,
        version: &str,
        limits: WorkerLimits,
    ) -> Result<Worker, JailError> {
        let suspect = lock(&self.suspects).known.contains(version);
        if self.config.zygote && !suspect {
            // Twice: a ready worker or a zygote may have ended unseen.
            for _ in 0..2 {
                if *self.closing.borrow() {
                    return Err(JailError::Closed);
                }
                let keeper = self.keeper(program, group);
                let ready = match keeper.worker(limits).await {
                    Ok(worker) => worker.ready().await,
                    Err(error) => Err(error),
                };
                match ready {
                    Ok(worker) => return Ok(worker),
                    Err(error @ JailError::Weak { .. }) => return Err(error),
                    Err(error) => tracing::warn!(%error, group, "a zygote gave no worker"),
                }
            }
        }
        if *self.closing.borrow() {
            return Err(JailError::Closed);
        }
        let keeper = Keeper::start(self, program.clone(), Origin::Exec, 0);
        keeper.worker(limits).await?.ready().await
    }

    /// The group's zygote, made or replaced as needed.
    fn keeper(self: &Arc<Self>, program: &Program, group: &str) -> Keeper {
        let pool = match program {
            Program::Guest => self.config.pool,
            Program::Oneshot(_) => 0,
        };
        let start = || Keeper::start(self, program.clone(), Origin::Zygote, pool);
        let key = (program.clone(), group.to_owned());
        let mut groups = lock(&self.groups);
        groups.uses += 1;
        let now = groups.uses;
        if let Some(entry) = groups.entries.get_mut(&key) {
            entry.used = now;
            entry.rotate(self.config.zygote_runs, start);
            return entry.current.clone();
        }
        if groups.entries.len() >= self.config.zygotes_max.max(1) {
            let oldest = groups.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                groups.entries.remove(&oldest);
            }
        }
        let current = start();
        groups.entries.insert(key, Entry { current: current.clone(), next: None, used: now });
        current
    }

    /// Starts a zygote.
    pub(crate) async fn launch(
        &self,
        boot: &str,
        program: &Program,
        control: OwnedFd,
    ) -> Result<OwnedFd, JailError> {
        let length = self.config.payload.len().to_string();
        let mut arguments: Vec<OsString> = vec![role::ZYGOTE.into(), boot.into(), length.into()];
        if let Program::Oneshot(name) = program {
            arguments.push(name.into());
        }
        let payload = self.payload.try_clone();
        let payload = payload.map_err(|error| JailError::Launch(error.to_string()))?;
        self.start(arguments, control, payload).await
    }

    /// Starts a process of the binary in the role its first argument names.
    pub(crate) async fn start(
        &self,
        arguments: Vec<OsString>,
        control: OwnedFd,
        payload: OwnedFd,
    ) -> Result<OwnedFd, JailError> {
        // The magic link holds on to the running binary while an upgrade
        // replaces the file.
        let exe = self.config.exe.clone().unwrap_or_else(|| "/proc/self/exe".into());
        let (reply, started) = oneshot::channel();
        let show_stderr = self.config.show_stderr;
        let launch = Launch { exe, arguments, control, payload, show_stderr, reply };
        let sent = lock(&self.launcher).as_ref().map(|launcher| launcher.send(launch).is_ok());
        if sent != Some(true) {
            return Err(JailError::Closed);
        }
        let started = started.await.map_err(|_| JailError::Closed)?;
        started.map_err(|error| JailError::Launch(error.to_string()))
    }

    /// Whether a zygote with these layers may serve.
    pub(crate) fn judge(&self, layers: Vec<LayerReport>) -> Result<(), JailError> {
        let broken = layers.iter().find(|layer| layer.layer == "seccomp" && !layer.holds);
        if let Some(layer) = broken.filter(|_| !self.config.allow_weak) {
            let (layer, reason) = (layer.layer.clone(), layer.detail.clone());
            return Err(JailError::Weak { layer, reason });
        }
        if self.layers.get().is_none() {
            for layer in layers.iter().filter(|layer| !layer.holds) {
                let (name, reason, next) = (&layer.layer, &layer.detail, &layer.next);
                tracing::warn!(layer = name, reason, next, "a layer of the sandbox does not hold");
            }
        }
        let _ = self.layers.set(layers);
        Ok(())
    }

    /// Sends a version to the exec path from now on.
    pub(crate) fn suspect(&self, version: &str) {
        let mut suspects = lock(&self.suspects);
        if suspects.known.insert(version.to_owned()) {
            suspects.order.push_back(version.to_owned());
        }
        if suspects.order.len() > SUSPECTS
            && let Some(oldest) = suspects.order.pop_front()
        {
            suspects.known.remove(&oldest);
        }
    }

    /// Starts a task the jail owns.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// True once the jail shuts down.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}

/// Resolves once the jail shuts down.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means the jail itself is gone, which is the same.
    let _ = closing.wait_for(|closing| *closing).await.map(drop);
}

#[derive(Debug, Default)]
struct Groups {
    entries: HashMap<(Program, String), Entry>,
    uses: u64,
}

impl Groups {
    fn clear(&mut self) {
        self.entries.clear();
    }
}

#[derive(Debug)]
struct Entry {
    current: Keeper,
    next: Option<Keeper>,
    used: u64,
}

impl Entry {
    fn rotate(&mut self, most: u64, start: impl Fn() -> Keeper) {
        let state = &self.current.state;
        if self.current.is_gone() || state.crashed.load(Ordering::Relaxed) {
            self.current = self.next.take().unwrap_or_else(start);
            return;
        }
        let old = state.old.load(Ordering::Relaxed) || state.runs.load(Ordering::Relaxed) >= most;
        if !old {
            return;
        }
        match self.next.take() {
            Some(next) if next.state.up.load(Ordering::Relaxed) => self.current = next,
            Some(next) if !next.is_gone() => self.next = Some(next),
            Some(_) | None => self.next = Some(start()),
        }
    }
}

#[derive(Debug, Default)]
struct Suspects {
    known: HashSet<String>,
    order: VecDeque<String>,
}

/// Locks; a panic elsewhere leaves these maps usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn seccomp(holds: bool) -> Vec<LayerReport> {
        let (layer, detail) = ("seccomp".into(), "no such system call".into());
        vec![LayerReport { layer, holds, detail, next: String::new() }]
    }

    #[test]
    fn without_the_filter_a_zygote_serves_only_when_told_to() {
        let strict = Jail::start(JailConfig::default()).unwrap();
        let refused = strict.inner().judge(seccomp(false)).unwrap_err();
        assert_eq!(refused.code(), "jail_weak");
        assert!(strict.layers().is_none());
        assert!(strict.inner().judge(seccomp(true)).is_ok());
        let weak = Jail::start(JailConfig { allow_weak: true, ..JailConfig::default() }).unwrap();
        assert!(weak.inner().judge(seccomp(false)).is_ok());
        assert!(!weak.layers().unwrap()[0].holds, "and says so");
    }

    #[test]
    fn only_so_many_suspects_are_remembered() {
        let jail = Jail::start(JailConfig::default()).unwrap();
        for version in 0..=SUSPECTS {
            jail.inner().suspect(&version.to_string());
            jail.inner().suspect(&version.to_string());
        }
        let suspects = lock(&jail.inner().suspects);
        assert_eq!(suspects.known.len(), SUSPECTS);
        assert!(!suspects.known.contains("0"));
        assert!(suspects.known.contains(&SUSPECTS.to_string()));
    }
}
