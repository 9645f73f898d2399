//! A hostile guest: a worker that its attacker already owns. Told by its job, it
//! tries the system calls and the forgeries of the attack rows from inside the
//! locked process and reports what the kernel answered, if it still can. A job of
//! the isolate's driver it takes too: the module's text is then a script of what
//! to write to both sockets. As an ordinary command it is a small engine that a
//! test can kill.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs
)]

mod calls;
mod script;

use calls::{attack, call};
use cambium_jail::frames::{self, FrameLimits, FrameReader, FrameWriter};
use cambium_jail::{Guest, Jail, JailConfig, Payload, WorkerLimits, WorkerSide, role_main};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process::ExitCode;
use tokio::net::UnixStream;

const JOB: u8 = frames::GUEST_KINDS;
const ANSWER: u8 = frames::GUEST_KINDS + 1;
const LIMITS: FrameLimits = FrameLimits { payload: 1 << 20, frames: 1 << 20, bytes: 1 << 30 };

fn main() -> ExitCode {
    let oneshots: &[(&str, cambium_jail::OneshotFn)] =
        &[("reverse", reverse), ("spin", spin_on), ("flood", flood), ("deep", deep)];
    if let Some(code) = role_main::<Stub>(oneshots) {
        return code;
    }
    // `refusing LAYER COMMAND`: as on a kernel without that layer.
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().map(String::as_str) == Some("refusing") {
        let layer = arguments.nth(1).unwrap();
        cambium_sandbox_tests::refuse::refuse(&layer).unwrap();
    }
    let command = arguments.next();
    // What a driver asks of its binary before it starts workers.
    if command.as_deref() == Some("__snapshot") {
        print!("the payload");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if command.as_deref() == Some("doctor") {
        for report in runtime.block_on(cambium_jail::doctor(JailConfig::default())).unwrap() {
            println!("{} {}", report.layer, report.holds);
            if !report.holds {
                eprintln!("{report:?}");
            }
        }
        return ExitCode::SUCCESS;
    }
    runtime.block_on(engine())
}

struct Stub {
    payload: Payload,
}

impl Guest for Stub {
    fn boot(payload: Payload) -> Result<Self, String> {
        match payload.bytes() {
            b"refuse to boot" => Err("told to refuse".into()),
            _ => Ok(Self { payload }),
        }
    }

    fn run(self, worker: WorkerSide) -> i32 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let (job, fetch, lock) = worker.into_parts();
            let job = UnixStream::from_std(job).unwrap();
            let fetch = UnixStream::from_std(fetch).unwrap();
            let (job_in, job_out) = job.into_split();
            let (mut reader, mut writer) =
                (FrameReader::new(job_in, LIMITS), FrameWriter::new(job_out));
            let (fetch_in, fetch_out) = fetch.into_split();
            let mut fetch_out = FrameWriter::new(fetch_out);
            if lock.close().is_err() {
                return 99;
            }
            writer.send(frames::READY, b"").await.unwrap();
            while let Ok(Some(frame)) = reader.next().await {
                if frame.kind != JOB {
                    return 98;
                }
                let told = String::from_utf8(frame.payload.to_vec()).unwrap();
                if told.starts_with('{') {
                    let text = script::read(&told, &mut reader).await;
                    let (out, fetch_out) = (writer.into_inner(), fetch_out.into_inner());
                    return script::follow(&text, out, fetch_in, fetch_out).await;
                }
                let (what, rest) = told.split_once(' ').unwrap_or((&told, ""));
                let answer = match what {
                    "exit" => return rest.parse().unwrap(),
                    "payload" => String::from_utf8_lossy(&self.payload).into_owned(),
                    "fetch" => {
                        let (kind, body) = rest.split_once(' ').unwrap();
                        fetch_out.send(kind.parse().unwrap(), body.as_bytes()).await.unwrap();
                        "sent".into()
                    }
                    "forge" => {
                        let bytes: Vec<u8> =
                            rest.split(' ').map(|byte| byte.parse().unwrap()).collect();
                        call(
                            libc::SYS_write,
                            [3, bytes.as_ptr() as i64, bytes.len() as i64, 0, 0, 0],
                        );
                        std::future::pending().await
                    }
                    "alloc" => allocate(rest.parse().unwrap()),
                    "random" => random(),
                    _ => attack(what),
                };
                writer.send(ANSWER, answer.as_bytes()).await.unwrap();
            }
            0
        })
    }
}

fn allocate(bytes: usize) -> String {
    let mut block = Vec::<u8>::new();
    match block.try_reserve_exact(bytes) {
        Ok(()) => {
            block.resize(bytes, 1);
            format!("got {}", std::hint::black_box(&block).len())
        }
        Err(_) => "refused".into(),
    }
}

/// Every source of randomness a worker has.
fn random() -> String {
    let mut bytes = [0u8; 16];
    let got = call(libc::SYS_getrandom, [bytes.as_mut_ptr() as i64, 16, 0, 0, 0, 0]);
    assert_eq!(got, "got 16");
    format!("{bytes:?} {}", RandomState::new().hash_one(1))
}

fn reverse(input: &[u8]) -> Vec<u8> {
    input.iter().rev().copied().collect()
}

fn spin_on(_: &[u8]) -> Vec<u8> {
    loop {
        std::hint::spin_loop();
    }
}

fn flood(_: &[u8]) -> Vec<u8> {
    vec![0; 1 << 20]
}

/// Recursion without an end worth naming.
fn deep(input: &[u8]) -> Vec<u8> {
    if input == b"end" {
        return Vec::new();
    }
    let mut copy = std::hint::black_box(input.to_vec());
    copy.push(1);
    let deeper = deep(&copy[copy.len() - 1..]);
    std::hint::black_box(deeper)
}

/// A small engine: three workers (two of a zygote, one spinning, and one of the
/// exec path), whose pids it prints; then it waits to be killed.
async fn engine() -> ! {
    let config = JailConfig { pool: 0, ..JailConfig::default() };
    let warm = Jail::start(config.clone()).unwrap();
    let cold = Jail::start(JailConfig { zygote: false, ..config }).unwrap();
    let limits = WorkerLimits::default();
    let mut held = Vec::new();
    for (jail, job) in [(&warm, ""), (&warm, "spin"), (&cold, "")] {
        let worker = jail.take("agent", "version", limits).await.unwrap();
        let (reader, mut writer, fetch, leash) = worker.into_parts();
        if !job.is_empty() {
            writer.send(JOB, job.as_bytes()).await.unwrap();
        }
        println!("{}", leash.pid());
        held.push((reader, writer, fetch, leash));
    }
    println!("up");
    std::future::pending().await
}
