//! The worker's own side: an interpreter brought up before the fork, then one
//! job: the artefact is loaded, linked with what a tool has, and its `run` is
//! called. Another engine made the artefact in another jailed process; if it is
//! hostile, it is loaded by a process that has nothing.
#![allow(unsafe_code)]

use crate::RUN;
use crate::engine::engine;
use crate::host::{Host, Terms, Wire, link};
use bytes::Bytes;
use cambium_jail::job::{
    EXIT_HEAP, EXIT_PANIC, Ended, Ending, Out, Received, WORDS, leave, receive,
};
use cambium_jail::{Guest, Payload, WorkerSide};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// Exit code of a worker that could not serve.
const EXIT_FAULT: i32 = 82;
/// Most of a message or a backtrace that is told, bytes.
const TOLD: usize = 4 * 1024;

/// An interpreter that is up.
pub(crate) struct ComponentGuest {
    engine: Engine,
}

impl Guest for ComponentGuest {
    fn boot(payload: Payload) -> Result<Self, String> {
        if *payload != *WORDS.as_bytes() {
            return Err(
                "cambium-component is of another version than cambium; build it anew".into()
            );
        }
        // A panic must not look like an allocation that failed.
        std::panic::set_hook(Box::new(|_| leave(EXIT_PANIC)));
        // What a thread sets up for its first call, which a locked worker may not.
        Engine::tls_eager_initialize();
        Ok(Self { engine: engine().map_err(|error| format!("{error:#}"))? })
    }

    fn run(self, worker: WorkerSide) -> i32 {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(tokio) = tokio else { return EXIT_FAULT };
        match serve(&self.engine, tokio, worker) {
            Ok(()) => 0,
            Err(_) => EXIT_FAULT,
        }
    }
}

fn serve(engine: &Engine, tokio: Runtime, worker: WorkerSide) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let (job, fetch, lock) = worker.into_parts();
    let out = Out::new(job.try_clone().map_err(text)?);
    let begun = tokio.block_on(async {
        let (reader, writable) = UnixStream::from_std(job).map_err(text)?.into_split();
        let fetch = UnixStream::from_std(fetch).map_err(text)?;
        lock.close()?;
        out.ready().map_err(text)?;
        Ok::<_, String>((receive(reader).await?, writable, fetch))
    });
    let (received, writable, fetch) = begun?;
    let Received { head, code, input, modules: _ } = received;
    let terms = Terms {
        log_bytes: head.log_bytes,
        memory_bytes: head.heap_bytes,
        proxy_base: head.proxy_base,
    };
    let host = Host::new(Wire::new(tokio, fetch), out, terms);
    let mut store = Store::new(engine, host);
    store.limiter(|host| host);
    let ended = called(engine, &mut store, code, &input, head.result_bytes);
    let (tokio, out) = store.into_data().end();
    out.end(ended, RUN);
    tokio.block_on(async {
        while !out.is_flushed() {
            writable.writable().await.map_err(text)?;
            out.flush();
        }
        Ok(())
    })
}

fn called(
    engine: &Engine,
    store: &mut Store<Host>,
    artefact: Vec<u8>,
    input: &str,
    most: usize,
) -> Ended {
    let threw = |message: &str| {
        let message = message[..message.floor_char_boundary(TOLD)].to_owned();
        (Ending::Threw { message, stack: String::new() }, Bytes::new())
    };
    match call(engine, store, artefact, input) {
        Ok(Ok(json)) if json.len() > most => (Ending::TooLarge, Bytes::new()),
        Ok(Ok(json)) => (Ending::Value { bytes: json.len() }, Bytes::from(json)),
        Ok(Err(message)) => threw(&message),
        Err(_) if store.data().wanted_more => leave(EXIT_HEAP),
        Err(error) => threw(&format!("the component was stopped: {:#}", error)),
    }
}

fn call(
    engine: &Engine,
    store: &mut Store<Host>,
    artefact: Vec<u8>,
    input: &str,
) -> wasmtime::Result<Result<String, String>> {
    // SAFETY: an artefact of our own compiler for this very engine, which is
    // checked; one that is not is loaded by a process that has nothing.
    let component = unsafe { Component::deserialize(engine, &artefact) }?;
    drop(artefact);
    let mut linker = Linker::new(engine);
    link(&mut linker, &component)?;
    let instance = linker.instantiate(&mut *store, &component)?;
    let run = instance.get_typed_func::<(&str,), (Result<String, String>,)>(&mut *store, RUN)?;
    let (answer,) = run.call(&mut *store, (input,))?;
    Ok(answer)
}
