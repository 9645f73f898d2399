//! The keeper of one zygote: a task that starts it, asks it for workers, keeps a
//! few ready, and at the end waits for the last child before it lets the zygote
//! go (its pid namespace ends with it). Who gets which zygote is in `jail.rs`.

use crate::control::{self, ANSWER_BYTES, Hello};
use crate::error::JailError;
use crate::jail::{Inner, Program, closed};
use crate::limits::{
    BOOT_DEADLINE, EXIT_DEADLINE, FORK_DEADLINE, HELLO_MAX, REAP_LOOK, TAKE_QUEUE, WorkerLimits,
};
use crate::process::Process;
use crate::worker::{Origin, Watch, Worker, leash};
use crate::{role, sys};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{Error, Result as IoResult};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as Pair;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

/// A way to a zygote. The zygote is let go when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    requests: mpsc::Sender<Request>,
    pub(crate) state: Arc<State>,
}

/// What is known of a zygote from outside its task.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// It said hello.
    pub(crate) up: AtomicBool,
    /// Its time has come; a fresh one takes over as soon as it is up.
    pub(crate) old: AtomicBool,
    /// A child crashed: it serves no more.
    pub(crate) crashed: Arc<AtomicBool>,
    /// Workers it was asked for.
    pub(crate) runs: AtomicU64,
}

struct Request {
    limits: WorkerLimits,
    reply: oneshot::Sender<Result<Worker, JailError>>,
}

impl Keeper {
    /// Starts the task of a new zygote.
    pub(crate) fn start(jail: &Arc<Inner>, program: Program, origin: Origin, pool: usize) -> Self {
        let (requests, receiver) = mpsc::channel(TAKE_QUEUE);
        let state = Arc::new(State::default());
        let keeper = Self { requests, state: state.clone() };
        jail.spawn(keep(jail.clone(), program, origin, pool, receiver, state));
        keeper
    }

    /// Asks for a worker; it may not be ready yet.
    pub(crate) async fn worker(&self, limits: WorkerLimits) -> Result<Worker, JailError> {
        let gone = || JailError::Boot("the zygote has ended".into());
        self.state.runs.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { limits, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// It can no longer answer.
    pub(crate) fn is_gone(&self) -> bool {
        self.requests.is_closed()
    }
}

async fn keep(
    jail: Arc<Inner>,
    program: Program,
    origin: Origin,
    pool: usize,
    mut requests: mpsc::Receiver<Request>,
    state: Arc<State>,
) {
    let zygote = match Zygote::start(&jail, &program, origin).await {
        Ok(zygote) => zygote,
        Err(error) => {
            tracing::warn!(%error, "no zygote");
            requests.close();
            while let Some(request) = requests.recv().await {
                let _ = request.reply.send(Err(error.clone()));
            }
            return;
        }
    };
    state.up.store(true, Ordering::Relaxed);
    let (alive, mut children) = mpsc::channel::<Infallible>(1);
    let maker = Maker { jail: &jail, zygote: &zygote, origin, crashed: &state.crashed, alive };
    serve(&maker, pool, &mut requests, &state).await;
    requests.close();
    while requests.recv().await.is_some() {}
    drop(maker);
    // Every watcher holds a sender; the channel ends with the last child.
    let _ = children.recv().await;
    zygote.let_go().await;
}

/// Answers requests until nobody can ask any more or the zygote fails.
async fn serve(
    maker: &Maker<'_>,
    pool: usize,
    requests: &mut mpsc::Receiver<Request>,
    state: &State,
) {
    let defaults = maker.jail.config.pool_limits;
    let mut ready: VecDeque<Worker> = VecDeque::new();
    let age = tokio::time::sleep(maker.jail.config.zygote_age);
    tokio::pin!(age);
    let mut closing = maker.jail.closing();
    loop {
        let request = tokio::select! {
            biased;
            _ = maker.zygote.process.ended() => {
                tracing::warn!(
                    pid = maker.zygote.process.pid(),
                    "a zygote ended by itself; its runs end with it and a fresh one takes over"
                );
                return;
            }
            () = closed(&mut closing) => return,
            request = requests.recv() => match request {
                Some(request) => request,
                None => return,
            },
            _ = &mut age, if !state.old.load(Ordering::Relaxed) => {
                state.old.store(true, Ordering::Relaxed);
                continue;
            }
            // Nobody waits: fill up.
            _ = std::future::ready(()), if ready.len() < pool => {
                match maker.make(&defaults).await {
                    Ok(worker) => ready.push_back(worker),
                    Err(_) => return,
                }
                continue;
            }
        };
        ready.retain(|worker| !worker.has_ended());
        let pooled = if request.limits == defaults { ready.pop_front() } else { None };
        let worker = match pooled {
            Some(worker) => Ok(worker),
            None => maker.make(&request.limits).await,
        };
        let failed = worker.is_err();
        // A caller that went away drops the worker, which kills it.
        let _ = request.reply.send(worker);
        if failed {
            return;
        }
    }
}

/// Makes workers of one zygote.
struct Maker<'a> {
    jail: &'a Arc<Inner>,
    zygote: &'a Zygote,
    origin: Origin,
    crashed: &'a Arc<AtomicBool>,
    alive: mpsc::Sender<Infallible>,
}

impl Maker<'_> {
    async fn make(&self, limits: &WorkerLimits) -> Result<Worker, JailError> {
        let text = |error: Error| JailError::Launch(error.to_string());
        let (job, their_job) = pair().map_err(text)?;
        let (fetch, their_fetch) = pair().map_err(text)?;
        let pidfd = self.zygote.fork(limits, &their_job, &their_fetch).await?;
        let process = Process::new(pidfd).map_err(text)?;
        let watch = Watch {
            jail: self.jail.clone(),
            limits: *limits,
            origin: self.origin,
            crashed: self.crashed.clone(),
            alive: self.alive.clone(),
            zygote: self.zygote.process.clone(),
        };
        let leash = leash(process, watch);
        let job = UnixStream::from_std(job).map_err(text)?;
        let fetch = UnixStream::from_std(fetch).map_err(text)?;
        Ok(Worker::new(job, fetch, leash))
    }
}

/// A connected pair, both ends non-blocking: the worker must not need the call
/// that makes them so.
fn pair() -> IoResult<(Pair, Pair)> {
    let (ours, theirs) = Pair::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    Ok((ours, theirs))
}

/// A zygote that said hello.
#[derive(Debug)]
struct Zygote {
    process: Arc<Process>,
    control: AsyncFd<OwnedFd>,
}

impl Zygote {
    async fn start(jail: &Inner, program: &Program, origin: Origin) -> Result<Self, JailError> {
        let text = |error: Error| JailError::Launch(error.to_string());
        let (ours, theirs) = sys::message_pair().map_err(text)?;
        nonblocking(&ours).map_err(text)?;
        let boot = match origin {
            Origin::Zygote => role::EARLY,
            Origin::Exec => role::LATE,
        };
        let pidfd = jail.launch(boot, program, theirs).await?;
        let process = Arc::new(Process::new(pidfd).map_err(text)?);
        let control = sys::watch(ours).map_err(text)?;
        let zygote = Self { process, control };
        let hello = tokio::time::timeout(BOOT_DEADLINE, zygote.hello()).await;
        let reason = match hello {
            Ok(Ok(Hello::Up(layers))) => match jail.judge(layers) {
                Ok(()) => return Ok(zygote),
                Err(weak) => weak,
            },
            Ok(Ok(Hello::Failed(reason))) => JailError::Boot(reason),
            Ok(Err(error)) => JailError::Boot(error.to_string()),
            Err(_) => {
                JailError::Deadline { what: "a zygote's boot", seconds: BOOT_DEADLINE.as_secs() }
            }
        };
        zygote.process.kill();
        let _ = zygote.process.reap().await;
        Err(reason)
    }

    async fn hello(&self) -> IoResult<Hello> {
        let mut bytes = vec![0; HELLO_MAX];
        let (length, _) = self.receive(&mut bytes).await?;
        if length == 0 {
            return Err(Error::other("it ended before it said hello"));
        }
        serde_json::from_slice(&bytes[..length]).map_err(Error::other)
    }

    async fn fork(
        &self,
        limits: &WorkerLimits,
        job: &Pair,
        fetch: &Pair,
    ) -> Result<OwnedFd, JailError> {
        let exchange = async {
            let request = control::fork_request(limits);
            self.send(&request, &[job.as_raw_fd(), fetch.as_raw_fd()]).await?;
            let mut answer = [0; ANSWER_BYTES];
            let (length, mut fds) = self.receive(&mut answer).await?;
            match (length, i32::from_le_bytes(answer), fds.pop()) {
                (ANSWER_BYTES, 0, Some(pidfd)) if fds.is_empty() => Ok(pidfd),
                (ANSWER_BYTES, errno, None) if errno != 0 => Err(Error::from_raw_os_error(errno)),
                _ => Err(Error::other("the zygote answered out of turn")),
            }
        };
        match tokio::time::timeout(FORK_DEADLINE, exchange).await {
            Ok(Ok(pidfd)) => Ok(pidfd),
            Ok(Err(error)) => Err(JailError::Launch(error.to_string())),
            Err(_) => Err(JailError::Deadline { what: "a fork", seconds: FORK_DEADLINE.as_secs() }),
        }
    }

    async fn send(&self, bytes: &[u8], fds: &[RawFd]) -> IoResult<()> {
        let send = |fd: &OwnedFd| sys::send_message(fd.as_fd(), bytes, fds);
        self.control.async_io(tokio::io::Interest::WRITABLE, send).await
    }

    async fn receive(&self, bytes: &mut [u8]) -> IoResult<(usize, Vec<OwnedFd>)> {
        loop {
            let mut ready = self.control.readable().await?;
            match ready.try_io(|fd| sys::receive_message(fd.get_ref().as_fd(), bytes)) {
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    /// Closes the control socket and waits for the end.
    async fn let_go(self) {
        drop(self.control);
        if tokio::time::timeout(EXIT_DEADLINE, self.process.ended()).await.is_err() {
            self.process.kill();
        }
        // A zygote that was killed between a fork and its answer leaves a worker
        // that nobody knows. Each zygote leads a process group, which its workers
        // are in; every known one is reaped by now. The zygote itself, which is
        // not yet, keeps the group's number ours.
        let reap = async {
            let _ = self.process.ended().await;
            loop {
                match sys::reap_of_group(self.process.pid()) {
                    Ok(true) => {}
                    Ok(false) => tokio::time::sleep(REAP_LOOK).await,
                    Err(_none_left) => return,
                }
            }
        };
        if tokio::time::timeout(EXIT_DEADLINE, reap).await.is_err() {
            tracing::error!(pid = self.process.pid(), "a zygote left a process that does not end");
        }
    }
}

fn nonblocking(fd: &OwnedFd) -> IoResult<()> {
    // The standard library offers this for its own socket types only.
    let socket = Pair::from(fd.try_clone()?);
    socket.set_nonblocking(true)
}
