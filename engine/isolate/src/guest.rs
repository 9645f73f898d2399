//! The worker's own side: boots the isolate (in the zygote, before the fork),
//! then takes one job, carries its frames and ends. The process is thrown away
//! afterwards, so nothing is cleaned up.

use crate::job::{
    ENDING, EXIT_PANIC, Ended, Ending, JOB, JOB_LIMITS, JOB_PIECE, JobHead, LOG, PIECE,
    RESULT_PIECE,
};
use crate::link::Link;
use crate::runtime::{Call, Runtime};
use bytes::Bytes;
use cambium_jail::frames::fetch::{FETCH_BUDGET, FetchFrame};
use cambium_jail::frames::{self, FrameLimits, FrameReader, FrameWriter};
use cambium_jail::{Guest, Lock, Payload, WorkerSide};
use std::cell::RefCell;
use std::io::{ErrorKind, Write};
use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;
use tokio::net::UnixStream;

/// Exit code of a worker that could not serve.
const EXIT_FAULT: i32 = 82;
/// What the parent sends on the fetch socket is ours; the sizes still hold.
const REPLY_LIMITS: FrameLimits =
    FrameLimits { payload: FETCH_BUDGET.payload, frames: u64::MAX, bytes: u64::MAX };

/// A booted isolate. Never dropped: V8's own teardown is slow, and the process
/// ends anyway.
pub struct IsolateGuest {
    runtime: ManuallyDrop<Runtime>,
}

impl Guest for IsolateGuest {
    fn boot(payload: Payload) -> Result<Self, String> {
        // A panic must not look like an allocation that failed.
        std::panic::set_hook(Box::new(|_| std::process::exit(EXIT_PANIC)));
        // Without io: an epoll made here would be shared by all children.
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| error.to_string())?;
        let _entered = tokio.enter();
        let mut runtime = ManuallyDrop::new(Runtime::boot(payload.bytes())?);
        tokio.block_on(runtime.warm())?;
        Ok(Self { runtime })
    }

    fn run(mut self, worker: WorkerSide) -> i32 {
        let (job, fetch, lock) = worker.into_parts();
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(tokio) = tokio else { return EXIT_FAULT };
        let code = match tokio.block_on(serve(&mut self.runtime, job, fetch, lock)) {
            Ok(()) => 0,
            Err(_) => EXIT_FAULT,
        };
        std::mem::forget(tokio);
        code
    }
}

async fn serve(
    runtime: &mut Runtime,
    job: StdStream,
    fetch: StdStream,
    lock: Lock,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut out = job.try_clone().map_err(text)?;
    let (job_reader, job_writable) = UnixStream::from_std(job).map_err(text)?.into_split();
    let (fetch_reader, fetch_writer) = UnixStream::from_std(fetch).map_err(text)?.into_split();
    lock.close()?;
    out.write_all(&[1, 0, 0, 0, frames::READY]).map_err(text)?;

    let out = Rc::new(Out { socket: out, backlog: RefCell::default() });
    let mut job_reader = FrameReader::new(job_reader, JOB_LIMITS);
    let Job { head, source, input, modules } = read_job(&mut job_reader).await?;
    let say = {
        let out = out.clone();
        move |line: &str, dropped: u64| out.log(line, dropped)
    };
    let link = Rc::new(Link::new(head.log_bytes, Box::new(say)));
    runtime.attach(link.clone());
    runtime.limit_heap(head.heap_bytes);

    let specifier = format!("tool:{}", head.tool);
    let call = Call {
        specifier: &specifier,
        source: &source,
        modules: &modules,
        input: &input,
        slug: &head.slug,
        vendor: &head.vendor,
        display_name: &head.display_name,
        proxy_base: &head.proxy_base,
        result_bytes: head.result_bytes,
    };
    let mut reader = FrameReader::new(fetch_reader, REPLY_LIMITS);
    let mut writer = FrameWriter::new(fetch_writer);
    let receive = async {
        while let Some(frame) = reader.next().await.map_err(|error| error.to_string())? {
            let (stream, frame) = FetchFrame::parse(frame).map_err(|error| error.to_string())?;
            if !link.accept(stream, frame) {
                return Err("a frame only a worker sends".to_owned());
            }
        }
        Err("the fetch socket was closed".to_owned())
    };
    let send = async {
        loop {
            let (stream, frame) = link.outgoing().await;
            if let Err(error) = frame.send(stream, &mut writer).await {
                return error.to_string();
            }
        }
    };
    let lost: Result<(), String>;
    let ended = tokio::select! {
        biased;
        result = receive => { lost = result; return lost }
        error = send => return Err(error),
        ended = runtime.run(&call, &link) => ended,
    };
    if link.unsaid() > 0 {
        out.log("", link.unsaid());
    }
    out.end(ended, &specifier);
    while !out.is_flushed() {
        job_writable.writable().await.map_err(text)?;
        out.flush();
    }
    Ok(())
}

/// A whole job.
struct Job {
    head: JobHead,
    source: String,
    input: String,
    modules: Vec<(String, String)>,
}

async fn read_job(
    reader: &mut FrameReader<tokio::net::unix::OwnedReadHalf>,
) -> Result<Job, String> {
    let mut next = async || match reader.next().await {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err("no job".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let first = next().await?;
    if first.kind != JOB {
        return Err("not a job".to_owned());
    }
    let head: JobHead =
        serde_json::from_slice(&first.payload).map_err(|error| error.to_string())?;
    let modules: usize = head.modules.iter().map(|(_, bytes)| bytes).sum();
    let whole = head.source_bytes + head.input_bytes + modules;
    let mut bytes = Vec::with_capacity(whole);
    while bytes.len() < whole {
        let piece = next().await?;
        if piece.kind != JOB_PIECE || piece.payload.is_empty() {
            return Err("not a piece of a job".to_owned());
        }
        bytes.extend_from_slice(&piece.payload);
    }
    if bytes.len() > whole {
        return Err("more than the job has".to_owned());
    }
    let mut next = |length: usize| {
        let rest = bytes.split_off(length.min(bytes.len()));
        let text = std::mem::replace(&mut bytes, rest);
        String::from_utf8(text).map_err(|error| error.to_string())
    };
    let (source, input) = (next(head.source_bytes)?, next(head.input_bytes)?);
    let mut modules = Vec::with_capacity(head.modules.len());
    for (name, length) in &head.modules {
        modules.push((name.clone(), next(*length)?));
    }
    Ok(Job { head, source, input, modules })
}

/// The job socket, written at once as far as it takes it: what a tool logged
/// before it was killed must be out.
struct Out {
    socket: StdStream,
    backlog: RefCell<Vec<u8>>,
}

impl Out {
    fn frame(&self, kind: u8, parts: &[&[u8]]) {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let mut backlog = self.backlog.borrow_mut();
        backlog.extend_from_slice(&u32::try_from(size + 1).unwrap_or(1).to_le_bytes());
        backlog.push(kind);
        parts.iter().for_each(|part| backlog.extend_from_slice(part));
    }

    fn log(&self, line: &str, dropped: u64) {
        let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
        self.frame(LOG, &[&dropped.to_le_bytes(), line.as_bytes()]);
        self.flush();
    }

    fn end(&self, (ending, bytes): Ended, specifier: &str) {
        let ending = match ending {
            Ending::Threw { message, stack } => {
                Ending::Threw { message, stack: own_frames(&stack, specifier) }
            }
            other => other,
        };
        let head = serde_json::to_vec(&ending).unwrap_or_default();
        self.frame(ENDING, &[&head]);
        for piece in pieces(&bytes) {
            self.frame(RESULT_PIECE, &[piece]);
        }
        self.flush();
    }

    fn is_flushed(&self) -> bool {
        self.backlog.borrow().is_empty()
    }

    fn flush(&self) {
        let mut backlog = self.backlog.borrow_mut();
        let mut written = 0;
        while written < backlog.len() {
            match (&self.socket).write(&backlog[written..]) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The parent is gone; so is this process in a moment.
                Err(_) => written = backlog.len(),
            }
        }
        backlog.drain(..written);
    }
}

fn pieces(bytes: &Bytes) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(PIECE)
}

/// The frames of a stack that lie in the module.
fn own_frames(stack: &str, specifier: &str) -> String {
    let frames: Vec<&str> = stack
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("at ") && line.contains(specifier))
        .collect();
    frames.join("\n")
}
