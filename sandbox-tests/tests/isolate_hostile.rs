//! Rows 45 and 49 to 51 against the driver of the isolate: the worker is the
//! stub, its module a script of bytes. Whatever it writes to its two sockets, the
//! run ends, the process is gone, nothing reaches the vendor that the session
//! would not send, and the next run works.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Outcome, RunLimits, RunReport};
use cambium_sandbox_tests::bench::Setup;
use cambium_sandbox_tests::rig::{Rig, thrown, value};
use cambium_sandbox_tests::vendor::Step;
use std::fmt::Write as _;
use std::time::Duration;

const STUB: &str = env!("CARGO_BIN_EXE_stub");

// The kinds of both sockets, as numbers: a forger has no header file.
const READY: u8 = 1;
const LOG: u8 = 32;
const ENDING: u8 = 33;
const PIECE: u8 = 34;
const REQUEST: u8 = 1;
const REQUEST_CHUNK: u8 = 2;
const REQUEST_END: u8 = 3;
const RESPONSE: u8 = 4;
const RESPONSE_CHUNK: u8 = 5;
const RESPONSE_END: u8 = 6;
const CREDIT: u8 = 7;
const CANCEL: u8 = 8;
const ERROR: u8 = 9;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A whole frame of the job socket as a step.
fn job(kind: u8, payload: &[u8]) -> String {
    format!("job {}\n", hex(&framed(kind, payload)))
}

/// A whole frame of the fetch socket as a step.
fn fetch(kind: u8, stream: u32, payload: &[u8]) -> String {
    format!("fetch {}\n", hex(&framed(kind, &[&stream.to_le_bytes(), payload].concat())))
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).unwrap();
    [&length.to_le_bytes()[..], &[kind], payload].concat()
}

fn head(method: &str, target: &str, body: bool) -> Vec<u8> {
    format!(r#"{{"method":"{method}","target":"{target}","body":{body}}}"#).into_bytes()
}

fn get(stream: u32) -> String {
    fetch(REQUEST, stream, &head("GET", "/x", false))
}

fn post(stream: u32) -> String {
    fetch(REQUEST, stream, &head("POST", "/x", true))
}

/// The same frames in one write: the last is there before the vendor can answer
/// the first, after which it would only be late.
fn at_once(steps: String) -> String {
    steps.replace("\nfetch ", "")
}

fn short() -> RunLimits {
    RunLimits { wall: Duration::from_millis(600), ..RunLimits::default() }
}

async fn run(rig: &Rig, script: &str) -> RunReport {
    let limits = RunLimits { wall: Duration::from_secs(20), ..RunLimits::default() };
    rig.run_source(script, "{}", limits, rig.reads()).await
}

async fn still_works(rig: &Rig) {
    let report = run(rig, &format!("{}read 5\ncall getpid\nend\n", get(1))).await;
    assert!(value(&report).contains("got "), "{report:?}");
}

/// Every script ends as a forgery: the worker is killed at once.
async fn are_forgeries(rows: &[(&str, String)]) {
    let rig = Rig::start(STUB).await;
    still_works(&rig).await;
    let heard = rig.bench.vendor.heard().len();
    for (name, script) in rows {
        let report = run(&rig, script).await;
        assert_eq!(report.outcome, Outcome::Crashed { signal: libc::SIGKILL }, "{name}");
        assert!(report.times.run_us < 15_000_000, "{name} was waited for");
    }
    for heard in &rig.bench.vendor.heard()[heard..] {
        assert_eq!(heard.line(), "GET /x HTTP/1.1");
    }
    still_works(&rig).await;
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_forged_frames_of_the_job_socket_end_the_run() {
    let value = |bytes: usize| format!(r#"{{"end":"value","bytes":{bytes}}}"#).into_bytes();
    are_forgeries(&[
        ("no kind", "job 00000000\n".into()),
        ("four gigabytes", "job ffffffff20\n".into()),
        (
            "over the payload",
            format!("job {}\n", hex(&[&98_306_u32.to_le_bytes()[..], &[LOG]].concat())),
        ),
        ("kind 0", job(0, b"")),
        ("kind 255", job(255, b"x")),
        ("ready again", job(READY, b"")),
        ("a job", job(16, b"{}")),
        ("a piece before its ending", job(PIECE, b"1")),
        ("a line without its count", job(LOG, b"abc")),
        ("an ending that is no JSON", job(ENDING, b"{")),
        ("an ending that is not UTF-8", job(ENDING, b"{\"end\":\"\xff\"}")),
        ("an unknown end", job(ENDING, br#"{"end":"granted"}"#)),
        ("an unknown field", job(ENDING, br#"{"end":"value","bytes":1,"grant":true}"#)),
        ("a negative size", job(ENDING, br#"{"end":"value","bytes":-1}"#)),
        (
            "a status beyond 16 bits",
            job(ENDING, br#"{"end":"response","status":70000,"content_type":"","bytes":0}"#),
        ),
        ("another ending for a piece", job(ENDING, &value(3)) + &job(ENDING, &value(3))),
        ("a line for a piece", job(ENDING, &value(3)) + &job(LOG, b"\0\0\0\0x")),
        ("an empty piece", job(ENDING, &value(3)) + &job(PIECE, b"")),
        ("more than announced", job(ENDING, &value(3)) + &job(PIECE, b"1234")),
        ("a flood of lines", format!("100000* {}", job(LOG, b"\0\0\0\0x"))),
        ("a flood of empty lines", format!("100000* {}", job(LOG, b"\0\0\0\0"))),
        ("a flood of large lines", format!("1000* {}", job(LOG, &[b'x'; 90_000]))),
        ("a deep ending", job(ENDING, &[b'['; 90_000])),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_forged_frames_of_the_fetch_socket_end_the_run() {
    let chunk = |stream, size| fetch(REQUEST_CHUNK, stream, &vec![b'x'; size]);
    let long = format!(r#"{{"method":"GET","target":"/{}"}}"#, "x".repeat(98_400));
    let headers: Vec<String> = (0..257).map(|n| format!(r#"["a{n}","b"]"#)).collect();
    let many = format!(r#"{{"method":"GET","target":"/x","headers":[{}]}}"#, headers.join(","));
    are_forgeries(&[
        ("no kind", "fetch 00000000\n".into()),
        ("four gigabytes", "fetch ffffffff01\n".into()),
        ("no stream", format!("fetch {}\n", hex(&framed(REQUEST, b"\x01\0\0")))),
        ("kind 0", fetch(0, 1, b"")),
        ("kind 99", fetch(99, 1, b"abcd")),
        ("a head that is no JSON", fetch(REQUEST, 1, b"{")),
        ("a method that is no text", fetch(REQUEST, 1, br#"{"method":1,"target":"/x"}"#)),
        ("a head without a target", fetch(REQUEST, 1, br#"{"method":"GET"}"#)),
        ("a claim", fetch(REQUEST, 1, br#"{"method":"GET","target":"/x","approved":true}"#)),
        (
            "a header beyond a byte",
            fetch(
                REQUEST,
                1,
                "{\"method\":\"GET\",\"target\":\"/x\",\"headers\":[[\"a\",\"\u{100}\"]]}"
                    .as_bytes(),
            ),
        ),
        ("too many headers", fetch(REQUEST, 1, many.as_bytes())),
        ("a head too long", fetch(REQUEST, 1, long.as_bytes())),
        ("a deep head", fetch(REQUEST, 1, &[b'['; 90_000])),
        ("stream 0", get(0)),
        ("a stream twice", get(1) + &get(1)),
        ("a stream that falls", get(5) + &get(4)),
        ("nine at once", (1..=9).map(post).collect()),
        ("a chunk for no stream", chunk(7, 1)),
        ("a chunk for another stream", post(2) + &chunk(3, 1)),
        ("a chunk of a request without a body", at_once(get(1) + &chunk(1, 1))),
        // A read: a write would be refused at its end, before the chunk is seen.
        (
            "a chunk after the end",
            at_once(
                fetch(REQUEST, 1, &head("GET", "/x", true))
                    + &fetch(REQUEST_END, 1, b"")
                    + &chunk(1, 1),
            ),
        ),
        ("an empty chunk", post(1) + &fetch(REQUEST_CHUNK, 1, b"")),
        ("a chunk too large", post(1) + &chunk(1, 65_537)),
        ("a body without end", post(1) + &format!("200* {}", chunk(1, 65_536))),
        ("an end with a tail", post(1) + &fetch(REQUEST_END, 1, b"x")),
        ("an end for no stream", fetch(REQUEST_END, 3, b"")),
        ("credit over the window", post(1) + &fetch(CREDIT, 1, &1_u32.to_le_bytes())),
        ("credit of four gigabytes", post(1) + &fetch(CREDIT, 1, &u32::MAX.to_le_bytes())),
        ("credit of three bytes", post(1) + &fetch(CREDIT, 1, b"\x01\0\0")),
        ("credit for no stream", fetch(CREDIT, 9, &1_u32.to_le_bytes())),
        ("a cancel with a tail", post(1) + &fetch(CANCEL, 1, b"x")),
        ("a cancel of no stream", fetch(CANCEL, 1, b"")),
        ("its own answer", post(1) + &fetch(RESPONSE, 1, br#"{"status":200}"#)),
        ("an answer for another stream", post(1) + &fetch(RESPONSE, 2, br#"{"status":200}"#)),
        ("an answer's body", post(1) + &fetch(RESPONSE_CHUNK, 1, b"x")),
        ("an answer's end", post(1) + &fetch(RESPONSE_END, 1, b"")),
        ("an error of ours", post(1) + &fetch(ERROR, 1, br#"{"code":"x","message":"y"}"#)),
        (
            "an answer to a closed stream",
            post(1) + &fetch(CANCEL, 1, b"") + &fetch(RESPONSE_END, 1, b""),
        ),
        (
            "a flood of credit",
            post(1) + &format!("500000* {}", fetch(CREDIT, 1, &0_u32.to_le_bytes())),
        ),
        (
            "a flood of cancelled chunks",
            post(1) + &fetch(CANCEL, 1, b"") + &format!("4000* {}", chunk(1, 65_536)),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_what_a_worker_says_of_its_end_is_bounded_text() {
    let rig = Rig::start(STUB).await;
    let ends = |ending: &str, piece: &[u8]| {
        let pieces = if piece.is_empty() { String::new() } else { job(PIECE, piece) };
        job(ENDING, ending.as_bytes()) + &pieces
    };
    let report = run(&rig, &ends(r#"{"end":"value","bytes":104857600}"#, b"")).await;
    assert_eq!(report.outcome, Outcome::OutputLimit);
    for (name, text) in [("no JSON", &b"{"[..]), ("not UTF-8", b"\"\xff\""), ("deep", &[b'['; 101])]
    {
        let ending = format!(r#"{{"end":"value","bytes":{}}}"#, text.len());
        let report = run(&rig, &ends(&ending, text)).await;
        assert!(thrown(&report).0.contains("the result"), "{name}");
    }
    let long = "x".repeat(95_000);
    let report =
        run(&rig, &ends(&format!(r#"{{"end":"threw","message":"{long}","stack":""}}"#), b"")).await;
    assert!(thrown(&report).0.len() <= 16_384, "{}", thrown(&report).0.len());
    let report =
        run(&rig, &ends(&format!(r#"{{"end":"threw","message":"","stack":"{long}"}}"#), b"")).await;
    assert!(thrown(&report).1.len() <= 32_768, "{}", thrown(&report).1.len());
    let odd = r#"{"end":"response","status":999,"content_type":"a\r\nset-cookie: x","bytes":0}"#;
    let report = run(&rig, &ends(odd, b"")).await;
    let shown = format!("{:?}", report.outcome);
    assert!(!shown.contains("set-cookie") && !shown.contains("999"), "{shown}");
    // Lines it counted as dropped are a number, whatever the number.
    let script = job(LOG, b"\xff\xff\xff\xffa") + &job(LOG, b"\xff\xff\xff\xff\x1b[2J") + "end\n";
    let report = run(&rig, &script).await;
    assert_eq!(report.logs_dropped, 2 * u64::from(u32::MAX));
    still_works(&rig).await;
    rig.sandbox.shutdown().await;
}

/// Half of what it owes, then silence or its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_a_worker_that_stops_half_way_ends_in_time() {
    let rig = Rig::start(STUB).await;
    still_works(&rig).await;
    let half = job(ENDING, br#"{"end":"value","bytes":5}"#) + &job(PIECE, b"12");
    for (script, expected) in [
        ("job 0500\nhang\n".to_owned(), Outcome::Timeout),
        ("fetch 0500\nhang\n".to_owned(), Outcome::Timeout),
        ("shut fetch\nhang\n".to_owned(), Outcome::Timeout),
        (half.clone() + "hang\n", Outcome::Timeout),
        (post(1) + "hang\n", Outcome::Timeout),
    ] {
        let report = rig.run_source(&script, "{}", short(), rig.reads()).await;
        assert_eq!(report.outcome, expected, "{script}");
    }
    for script in [
        "exit 0\n".to_owned(),
        "exit 7\n".to_owned(),
        half + "exit 0\n",
        "job 0500\nexit 0\n".into(),
    ] {
        let report = run(&rig, &script).await;
        assert!(matches!(report.outcome, Outcome::Unavailable(_)), "{script}: {report:?}");
    }
    still_works(&rig).await;
    rig.sandbox.shutdown().await;
}

/// What it asks for is judged by its session, whatever it says of itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_a_forger_reaches_the_vendor_with_reads_only() {
    let rig = Rig::start(STUB).await;
    for head in [
        r#"{"method":"DELETE","target":"/x"}"#,
        r#"{"method":"POST","target":"/x"}"#,
        r#"{"method":"GET","target":"//evil.test/"}"#,
        r#"{"method":"GET","target":"https://evil.test/","sdk":true}"#,
        r#"{"method":"GET","host":"evil.test","target":"/x"}"#,
        r#"{"method":"GET\r\nx: y","target":"/x"}"#,
        r#"{"method":"GET","target":"/x","headers":[["host","evil.test"],["authorization","Bearer mine"]]}"#,
    ] {
        let script = fetch(REQUEST, 1, head.as_bytes()) + "read 5\nend\n";
        let report = run(&rig, &script).await;
        let ended = matches!(report.outcome, Outcome::Ok(_) | Outcome::PolicyDenied);
        assert!(ended, "{head}: {report:?}");
    }
    for heard in rig.bench.vendor.heard() {
        assert!(heard.line().starts_with("GET /x "), "{}", heard.head);
        assert!(
            !heard.head.contains("evil.test") && !heard.head.contains("mine"),
            "{}",
            heard.head
        );
    }
    rig.sandbox.shutdown().await;
}

/// A thousand requests are no tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_a_flood_of_requests_ends_the_run() {
    let rig = Rig::start(STUB).await;
    let script: String = (1..=1_200).map(|n| get(n) + &fetch(CANCEL, n, b"")).collect();
    let report = run(&rig, &format!("drain\n{script}")).await;
    assert_eq!(report.outcome, Outcome::PolicyDenied);
    assert!(rig.bench.vendor.heard().len() <= 16);
    still_works(&rig).await;
    rig.sandbox.shutdown().await;
}

/// Eight endless replies that nobody reads cost the parent their windows only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s45_replies_that_are_never_read_cost_their_window() {
    let setup = Setup::answering(|_| {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let piece = [b"10000\r\n".to_vec(), vec![b'x'; 65_536], b"\r\n".to_vec()].concat();
        vec![Step::Send(head), Step::Forever(piece)]
    });
    let rig = Rig::with(STUB, true, setup).await;
    let warm = rig.run_source("call getpid\nend\n", "{}", short(), rig.reads()).await;
    assert!(value(&warm).contains("got "));
    let before = resident();
    let script: String = (1..=8).map(get).chain(["hang\n".to_owned()]).collect();
    let report = rig.run_source(&script, "{}", short(), rig.reads()).await;
    assert_eq!(report.outcome, Outcome::Timeout);
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "the parent grew by {grown} bytes");
    rig.sandbox.shutdown().await;
}

/// Resident memory of this process, bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Every class of system calls, on both paths, as the parent reports it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s49_s50_s51_system_calls_of_a_run_are_refused_and_reported() {
    for zygote in [true, false] {
        let rig = Rig::with(STUB, zygote, Setup::default()).await;
        for call in
            ["openat", "openat_proc_mem", "openat_proc_fd", "statx", "mmap_exec", "mprotect_exec"]
        {
            let report = run(&rig, &format!("call {call}\nend\n")).await;
            assert_eq!(value(&report), "\"errno 1\"", "{call}");
        }
        for call in [
            "socket",
            "connect",
            "sendto_address",
            "execve",
            "ptrace_traceme",
            "process_vm_readv",
            "io_uring_setup",
            "mmap_shared",
            "kill_parent",
            "tgkill_other",
            "prctl_dumpable",
            "clone_process",
            "clone_thread",
            "clone3",
            "unshare_user",
            "setuid",
            "mount",
        ] {
            let report = run(&rig, &format!("call {call}\nend\n")).await;
            let expected = Outcome::Crashed { signal: libc::SIGSYS };
            assert_eq!(report.outcome, expected, "{call}");
        }
        still_works(&rig).await;
        rig.sandbox.shutdown().await;
    }
}
