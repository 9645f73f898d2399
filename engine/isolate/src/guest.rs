//! The worker's own side: boots the isolate (in the zygote, before the fork),
//! then takes one job, carries its frames and ends. The process is thrown away
//! afterwards, so nothing is cleaned up.

use crate::link::Link;
use crate::runtime::{Call, Runtime};
use cambium_jail::frames::fetch::{FETCH_BUDGET, FetchFrame};
use cambium_jail::frames::{FrameLimits, FrameReader, FrameWriter};
use cambium_jail::job::{EXIT_PANIC, Out, Received, receive};
use cambium_jail::{Guest, Lock, Payload, WorkerSide};
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
    let out = Rc::new(Out::new(job.try_clone().map_err(text)?));
    let (job_reader, job_writable) = UnixStream::from_std(job).map_err(text)?.into_split();
    let (fetch_reader, fetch_writer) = UnixStream::from_std(fetch).map_err(text)?.into_split();
    lock.close()?;
    out.ready().map_err(text)?;

    let Received { head, code, input, modules } = receive(job_reader).await?;
    let source = String::from_utf8(code).map_err(|error| error.to_string())?;
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
