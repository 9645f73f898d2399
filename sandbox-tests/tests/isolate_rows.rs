//! The isolate's attack rows and what a tool can count on, each a guest file
//! with a test of the same name. A guest without a test, or the reverse, fails.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Outcome, RunLimits, ToolResult, check_module};
use cambium_jail::{OneshotError, OneshotLimits};
use cambium_sandbox_tests::bench::Setup;
use cambium_sandbox_tests::rig::{Rig, source, thrown, value};
use cambium_sandbox_tests::vendor::{Step, answer};
use serde_json::Value;
use std::time::{Duration, Instant};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// What a bomb may take beyond its limit.
const SLACK: Duration = Duration::from_millis(250);

macro_rules! guests {
    ($($guest:ident => $check:expr;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $guest() {
            let rig = Rig::start(WORKER).await;
            let check = $check;
            check(&rig, stringify!($guest)).await;
            rig.sandbox.shutdown().await;
        })*

        /// A test without its guest does not compile.
        const _: &[&str] =
            &[$(include_str!(concat!("../guests/", stringify!($guest), ".js"))),*];
    };
}

/// A guest without its test does not compile.
macro_rules! has_a_test {
    ($guest:ident) => {
        const _: fn() = $guest;
    };
}
include!(concat!(env!("OUT_DIR"), "/every_guest.rs"));
every_guest!(has_a_test);

guests! {
    s01_constructor_chain => finds_nothing;
    s02_eval => finds_nothing;
    s03_function_constructors => finds_nothing;
    s04_hidden_constructors => finds_nothing;
    s05_timers_with_a_string => finds_nothing;
    s06_probe_globals => finds_nothing;
    s08_op_leak => finds_nothing;
    s09_static_import_of_the_runtime => refused_and_never_loaded;
    s10_static_import_of_a_lazy_module => refused_and_never_loaded;
    s11_dynamic_import => async |rig: &Rig, guest: &str| {
        assert!(!check_module(&source(guest)).ok);
        finds_nothing(rig, guest).await;
    };
    s12_import_attributes => refused_and_never_loaded;
    s14_re_export => refused_and_never_loaded;
    s16_call_site_harvest => finds_nothing;
    s17_hostile_stack_parts => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        let (message, stack) = thrown(&report);
        assert!(message.len() < 100 && !stack.contains("inner"), "{message} {stack}");
    };
    s19_stack_overflow_in_the_glue => finds_nothing;
    s20_odd_throws => async |rig: &Rig, guest: &str| {
        for kind in ["nothing", "bare", "proxy", "revoked", "symbol", "fn", "frozen", "cyclic",
            "deep", "many", "long", "bigint"] {
            let report = rig.run(guest, &format!(r#"{{"kind":"{kind}"}}"#)).await;
            let (message, stack) = thrown(&report);
            assert!(!message.is_empty() && message.len() <= 16_384, "{kind}: {}", message.len());
            assert!(stack.len() <= 32_768, "{kind}: {}", stack.len());
        }
    };
    s21_looping_getter_in_an_error => runs_out_of_time;
    s22_rejection_flood => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        assert_eq!(thrown(&report).0, "Error: r0");
    };
    s23_looping_to_json => runs_out_of_time;
    s25_result_kinds => result_kinds;
    s26_huge_result_and_log => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        assert_eq!(report.outcome, Outcome::OutputLimit);
        let kept: usize = report.logs.iter().map(String::len).sum();
        assert!(kept <= RunLimits::default().log_bytes, "{kept}");
        assert!(kept > 32 * 1024, "{kept}");
        assert!(report.logs_dropped > 1_000_000, "{}", report.logs_dropped);
    };
    s27_duplicated_completion => async |rig: &Rig, guest: &str| {
        assert_eq!(value(&rig.run(guest, "{}").await), "\"first\"");
    };
    s28_prototype_pollution => async |rig: &Rig, guest: &str| {
        assert_eq!(value(&rig.run(guest, "{}").await), "[200,200]");
        for heard in rig.bench.vendor.heard() {
            assert!(heard.line().starts_with("GET /"), "{}", heard.head);
            assert!(!heard.head.contains("polluted") && heard.body.is_empty(), "{}", heard.head);
        }
        assert_eq!(rig.bench.vendor.heard().len(), 2);
    };
    s30_array_and_object_setters => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        let text = value(&report);
        assert!(text.starts_with("\"200 true"), "{text}");
        assert_eq!(rig.bench.vendor.heard()[0].line(), "GET /quiet?a=1 HTTP/1.1");
    };
    s31_overridden_builtins => async |rig: &Rig, guest: &str| {
        assert_eq!(value(&rig.run(guest, "{}").await), "200");
        assert_eq!(rig.bench.vendor.heard()[0].line(), "GET /built-ins HTTP/1.1");
    };
    s32_has_instance => async |rig: &Rig, guest: &str| {
        assert_eq!(value(&rig.run(guest, "{}").await), "200");
    };
    s33_getter_in_init => async |rig: &Rig, guest: &str| {
        finds_nothing(rig, guest).await;
        assert!(rig.bench.vendor.heard().is_empty());
    };
    s35_path_escapes => async |rig: &Rig, guest: &str| {
        finds_nothing(rig, guest).await;
        assert!(rig.bench.vendor.heard().is_empty());
    };
    s37_method_tricks => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        assert!(
            matches!(report.outcome, Outcome::PolicyDenied) || value(&report) == "[]",
            "{report:?}"
        );
        assert!(rig.bench.vendor.heard().is_empty());
    };
    s39_fetch_after_return => async |rig: &Rig, guest: &str| {
        let session = rig.reads();
        let report =
            rig.run_source(&source(guest), "{}", RunLimits::default(), session.clone()).await;
        assert_eq!(value(&report), "\"returned\"");
        let late = cambium_sandbox_tests::bench::request("GET", "/late");
        assert_eq!(session.send(late).await.unwrap_err().code(), "run_closed");
        assert!(rig.bench.vendor.heard().is_empty());
    };
    s40_fetch_flood => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        assert_eq!(value(&report), r#"{"answered":16,"refused":284}"#);
        assert_eq!(rig.bench.vendor.heard().len(), 16);
    };
    s41_response_bomb => response_bombs;
    s43_cross_run_state => async |rig: &Rig, guest: &str| {
        finds_nothing(rig, guest).await;
        finds_nothing(rig, guest).await;
    };
    s44_shared_objects => finds_nothing;
    s47_buffer_detached_while_sent => async |rig: &Rig, guest: &str| {
        let session = rig.dry();
        let report =
            rig.run_source(&source(guest), "{}", RunLimits::default(), session.clone()).await;
        assert_eq!(value(&report), "202");
        let shown = format!("{:?}", session.report());
        assert!(shown.contains("abcd") && !shown.contains("xxxx"), "{shown}");
    };
    s54_deep_nesting => deep_sources;
    s55_unicode_forms => unicode_forms;
    s57_not_erasable => async |rig: &Rig, guest: &str| {
        for part in source(guest).split("// ---\n") {
            let module = format!("{part}\nexport default async function (ctx) {{\n  return (await ctx.fetch('/x')).status;\n}}");
            assert!(!check_module(&module).ok, "{part}");
            let report =
                rig.run_source(&module, "{}", RunLimits::default(), rig.reads()).await;
            assert!(thrown(&report).0.contains("SyntaxError"), "{part}: {report:?}");
        }
        assert!(rig.bench.vendor.heard().is_empty());
    };
    s59_big_number_text => runs_out_of_time;
    s61_finally_swallows_the_end => runs_out_of_time;
    s62_generator_return_trap => runs_out_of_time;
    s63_top_level_await_never_settles => async |rig: &Rig, guest: &str| {
        assert_eq!(rig.run(guest, "{}").await.outcome, Outcome::NeverSettled);
    };
    s63_top_level_loop => runs_out_of_time;
    s63_top_level_throw => async |rig: &Rig, guest: &str| {
        assert_eq!(thrown(&rig.run(guest, "{}").await).0, "Error: at the top");
    };
    s64_export_shapes => async |rig: &Rig, guest: &str| {
        assert_eq!(value(&rig.run(guest, "{}").await), "\"called\"");
    };
    s64_no_default => async |rig: &Rig, guest: &str| {
        assert!(!check_module(&source(guest)).ok);
        let report = rig.run(guest, "{}").await;
        assert!(thrown(&report).0.contains("default export"));
    };
    s65_hostile_input => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, r#"{"__proto__":{"polluted":1}}"#).await;
        assert_eq!(value(&report), r#"{"own":true,"polluted":null,"plain":true}"#);
    };
    limit_heap => heap_limits;
    limit_result => result_limits;
    good_fetch => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, r#"{"id":"A 1"}"#).await;
        let expected = r#"{"status":200,"ok":true,"type":"application/json"}"#;
        assert_eq!(value(&report), expected);
        assert_eq!(report.logs, [r#"read { id: "A 1" } true"#]);
        let line = "GET /orders/A%201?expand=lines&expand=customer HTTP/1.1";
        assert_eq!(rig.bench.vendor.heard()[0].line(), line);
        assert!(report.times.run_us > 0 && report.times.max_rss > 0);
    };
    good_large_reply => async |_: &Rig, guest: &str| {
        let body = vec![b'x'; 3 * 1024 * 1024];
        let setup = Setup::answering(move |_| answer("200 OK", "content-type: text/plain\r\n", &body));
        let rig = Rig::with(WORKER, true, setup).await;
        // Credit for one piece comes back while later ones are still on their
        // way: a miscount kills the worker now and then, so it is tried often.
        for _ in 0..10 {
            let report = rig.run(guest, "{}").await;
            assert_eq!(value(&report), "[3145728,3145728]");
        }
        rig.sandbox.shutdown().await;
    };
    good_response => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        let Outcome::Ok(ToolResult::Response { status, content_type, body }) = report.outcome
        else {
            panic!("{report:?}");
        };
        assert_eq!((status, content_type.as_str()), (200, "application/json"));
        assert_eq!(&body[..], b"{\"ok\":true}");
    };
    good_no_fetch => async |rig: &Rig, _: &str| rig.still_works().await;
    good_error => async |rig: &Rig, guest: &str| {
        let report = rig.run(guest, "{}").await;
        let (message, stack) = thrown(&report);
        assert_eq!(message, "RangeError: too far");
        assert!(stack.starts_with("at inner (tool:acme__tool:2:"), "{stack}");
    };
    good_platform => async |rig: &Rig, guest: &str| {
        // An SDK's fetch counts as a write, so this is a dry run.
        let limits = RunLimits::default();
        let report = rig.run_source(&source(guest), "{}", limits, rig.dry()).await;
        assert_eq!(value(&report), "[]");
    };
    random_sources => async |rig: &Rig, guest: &str| {
        let first = rig.run(guest, "{}").await;
        let second = rig.run(guest, "{}").await;
        let parse = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap();
        for (one, other) in parse(value(&first)).iter().zip(parse(value(&second))) {
            assert_ne!(*one, other);
        }
    };
}

async fn finds_nothing(rig: &Rig, guest: &str) {
    let report = rig.run(guest, "{}").await;
    assert_eq!(value(&report), "[]", "logs {:?}", report.logs);
}

/// The check refuses it, and so does the loader when the check is passed by.
async fn refused_and_never_loaded(rig: &Rig, guest: &str) {
    assert!(!check_module(&source(guest)).ok);
    let report = rig.run(guest, "{}").await;
    let (message, _) = thrown(&report);
    assert!(message.contains("cannot import"), "{message}");
}

fn short() -> RunLimits {
    RunLimits {
        wall: Duration::from_millis(700),
        cpu: Duration::from_millis(300),
        ..RunLimits::default()
    }
}

/// What the parent saw goes to the person whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_end_carries_its_evidence() {
    let rig = Rig::start(WORKER).await;
    rig.still_works().await;
    let tool = |body: &str| format!("export default async function (ctx) {{ {body} }}");
    for (body, first, ended_by, code, signal) in [
        ("return 1;", "answered", "us", None, Some(libc::SIGKILL)),
        ("for (;;);", "gone", "cpu_limit", None, Some(libc::SIGKILL)),
        (
            "const a = []; for (;;) a.push(new Array(1e5).fill(0));",
            "gone",
            "itself",
            Some(85),
            None,
        ),
        (
            "await new Promise((r) => setTimeout(r, 1e6));",
            "wall_clock",
            "us",
            None,
            Some(libc::SIGKILL),
        ),
    ] {
        // A busy machine must not let the clock come before the CPU limit.
        let wall = Duration::from_secs(if first == "wall_clock" { 1 } else { 60 });
        // Filling the heap takes as long as the machine's pages do.
        let cpu = Duration::from_secs(if ended_by == "cpu_limit" { 1 } else { 20 });
        let limits = RunLimits { cpu, wall, ..RunLimits::default() };
        let report = rig.run_source(&tool(body), "{}", limits, rig.reads()).await;
        let seen = report.evidence.unwrap();
        // A worker that answered may be gone before it is killed.
        let by_itself = first == "answered" && seen.exit_code == Some(0);
        assert_eq!(seen.first, first, "{body}");
        if !by_itself {
            assert_eq!(
                (seen.ended_by, seen.exit_code, seen.signal),
                (ended_by, code, signal),
                "{body}"
            );
        }
        assert_eq!((seen.origin, seen.cpu_limit_ms), ("zygote", cpu.as_millis() as u64), "{body}");
        assert_eq!(seen.data_limit, limits.data_bytes as u64);
        assert!(seen.max_rss > 1 << 20 && seen.wall_ms < 60_000, "{seen:?}");
    }
    rig.sandbox.shutdown().await;
}

async fn runs_out_of_time(rig: &Rig, guest: &str) {
    // The zygote is up before the clock starts.
    rig.still_works().await;
    let began = Instant::now();
    let report = rig.run_source(&source(guest), "{}", short(), rig.reads()).await;
    let took = began.elapsed();
    assert!(matches!(report.outcome, Outcome::CpuLimit | Outcome::Timeout), "{:?}", report.outcome);
    assert!(took < short().wall + SLACK, "{took:?}");
    rig.still_works().await;
}

/// The heap is the job's own, below what the isolate booted with and above it.
async fn heap_limits(rig: &Rig, guest: &str) {
    const MIB: usize = 1024 * 1024;
    for (heap, hold, fits) in
        [(24, 12, true), (24, 40, false), (64, 40, true), (64, 90, false), (160, 110, true)]
    {
        let limits =
            RunLimits { heap_bytes: heap * MIB, data_bytes: 512 * MIB, ..RunLimits::default() };
        let input = format!(r#"{{"mib":{hold}}}"#);
        let report = rig.run_source(&source(guest), &input, limits, rig.reads()).await;
        match fits {
            true => assert_eq!(value(&report), hold.to_string(), "{heap} {hold}"),
            false => assert_eq!(report.outcome, Outcome::MemoryLimit, "{heap} {hold}"),
        }
    }
    rig.still_works().await;
}

/// A result over the cap is that, however much larger it is; whatever would fit
/// is never taken for too large.
async fn result_limits(rig: &Rig, guest: &str) {
    let limits = RunLimits { result_bytes: 100_000, ..RunLimits::default() };
    for kind in ["string", "inside", "bytes", "array", "holes", "response", "many"] {
        let input = format!(r#"{{"kind":"{kind}"}}"#);
        let report = rig.run_source(&source(guest), &input, limits, rig.reads()).await;
        assert_eq!(report.outcome, Outcome::OutputLimit, "{kind}");
    }
    for (kind, text) in [
        ("shortened", "\"short\""),
        ("inherited", "\"short\""),
        ("hidden", "{\"a\":1}"),
        ("symbol", "{}"),
        ("getter", "{\"a\":1}"),
        ("proxied", "\"short\""),
    ] {
        let input = format!(r#"{{"kind":"{kind}"}}"#);
        let report = rig.run_source(&source(guest), &input, limits, rig.reads()).await;
        assert_eq!(value(&report), text, "{kind}");
    }
    rig.still_works().await;
}

/// Row 41: the vendor streams without end, unpacks to a gigabyte, or drips.
async fn response_bombs(_: &Rig, guest: &str) {
    let packed = {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1024 * 1024];
        (0..1024).for_each(|_| std::io::Write::write_all(&mut packer, &zeros).unwrap());
        packer.finish().unwrap()
    };
    let setup = Setup::answering(move |heard| {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let piece = [b"10000\r\n".to_vec(), vec![b'x'; 65_536], b"\r\n".to_vec()].concat();
        match heard.line() {
            line if line.contains("/endless") => {
                vec![Step::Send(chunked), Step::Forever(piece)]
            }
            line if line.contains("/packed") => {
                answer("200 OK", "content-encoding: gzip\r\n", &packed)
            }
            _ => vec![Step::Send([chunked, b"1\r\nx\r\n".to_vec()].concat()), Step::Stall],
        }
    });
    let rig = Rig::with(WORKER, true, setup).await;
    rig.still_works().await;
    let before = resident();
    for (kind, whole) in
        [("endless", true), ("endless", false), ("packed", true), ("packed", false)]
    {
        let input = format!(r#"{{"kind":"{kind}","whole":{whole}}}"#);
        let report = rig.run(guest, &input).await;
        assert!(thrown(&report).0.contains("10485760 bytes"), "{kind} {report:?}");
        assert!(report.times.max_rss < 320 * 1024 * 1024, "{report:?}");
    }
    let input = r#"{"kind":"drip","whole":false}"#;
    let report = rig.run_source(&source(guest), input, short(), rig.reads()).await;
    assert_eq!(report.outcome, Outcome::Timeout);
    let grown = resident().saturating_sub(before);
    assert!(grown < 96 * 1024 * 1024, "the parent grew by {grown} bytes");
    rig.still_works().await;
    rig.sandbox.shutdown().await;
}

/// Resident memory of this process, bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Row 54: the check, jailed as the product has it, answers or is ended; a
/// source that gets by it ends its own run only.
async fn deep_sources(rig: &Rig, guest: &str) {
    let nested = |open: &str, middle: &str, close: &str, times: usize| {
        let text = format!("{}{middle}{}", open.repeat(times), close.repeat(times));
        source(guest).replace("/* nested */", &text)
    };
    let sources = [
        nested("(", "1", ")", 100_000),
        nested("[", "1", "]", 100_000),
        nested("`${", "1", "}`", 50_000),
        nested("x=>", "1", "", 80_000),
        nested("{a:", "1", "}", 60_000).replace("[{", "[({").replace("}]", "})]"),
        nested("-~", "1", "", 100_000),
        nested("a?", "1", ":b", 60_000),
        nested("1 /* ", "x", "", 40_000).replace("x]", "*/]"),
        nested("", "1", &",1".repeat(10), 50_000),
    ];
    for text in &sources {
        let name = &text[80..120];
        let limits = OneshotLimits::default();
        let checked = rig.sandbox.jail().oneshot("check", text.as_bytes(), limits).await;
        match checked {
            Ok(answer) => {
                let checked: Value = serde_json::from_slice(&answer).unwrap();
                assert!(checked["ok"].is_boolean(), "{name}");
            }
            Err(OneshotError::Ended(_) | OneshotError::Timeout(_)) => {}
            Err(error) => panic!("{name}: {error}"),
        }
        let report = rig.run_source(text, "{}", short(), rig.reads()).await;
        assert!(!matches!(report.outcome, Outcome::Unavailable(_)), "{name}: {:?}", report.outcome);
        rig.still_works().await;
    }
    let large = source(guest).replace("/* nested */", &" ".repeat(1024 * 1024));
    let limits = OneshotLimits::default();
    let answer = rig.sandbox.jail().oneshot("check", large.as_bytes(), limits).await.unwrap();
    let report: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(report["diagnostics"][0]["code"], "source_too_large");
}

/// Row 55: an escaped name is the name; marks around the code change nothing.
async fn unicode_forms(rig: &Rig, guest: &str) {
    let plain = source(guest)
        .replace("\\u0074", "t")
        .replace("\\u0066", "f")
        .replace("\\u0065", "e")
        .replace("\\u004f", "O")
        .replace("\\u{73}", "s");
    assert!(plain.contains(r#"ctx.fetch("/x", { method: "POST" })"#), "{plain}");
    let expected = check_module(&plain);
    assert!(expected.ok && !expected.hints.read_only, "{expected:?}");
    for text in [
        source(guest),
        format!("\u{feff}{}", source(guest)),
        format!("#!/usr/bin/env node\n{}", source(guest)),
        source(guest).replace(";\n", ";\u{2028}"),
        source(guest).replace(";\n", "; // \u{2029}\n"),
    ] {
        let report = check_module(&text);
        assert_eq!(report.hints, expected.hints, "{text}");
        assert_eq!(report.sites, expected.sites, "{text}");
        // What is labelled a write is one when it runs.
        let ran = rig.run_source(&text, "{}", RunLimits::default(), rig.dry()).await;
        assert_eq!(value(&ran), "202", "{text}");
        let ran = rig.run_source(&text, "{}", RunLimits::default(), rig.reads()).await;
        let refused = matches!(ran.outcome, Outcome::PolicyDenied | Outcome::ToolError { .. });
        assert!(refused, "{text}");
    }
    // A module has no comments of the HTML kind: the check and V8 agree.
    let comment = format!("<!-- x\n{}", source(guest));
    assert!(!check_module(&comment).ok);
    let ran = rig.run_source(&comment, "{}", RunLimits::default(), rig.dry()).await;
    assert!(thrown(&ran).0.contains("SyntaxError"), "{ran:?}");
    assert!(rig.bench.vendor.heard().is_empty());
}

async fn result_kinds(rig: &Rig, guest: &str) {
    for (kind, expected) in [
        ("nothing", "null"),
        ("nan", "null"),
        ("minus", "0"),
        ("date", "\"1970-01-01T00:00:00.000Z\""),
        ("map", "{}"),
        ("surrogate", "\"a\\ufffdb\""),
        ("proto", r#"{"__proto__":{"x":1},"y":2}"#),
    ] {
        let report = rig.run(guest, &format!(r#"{{"kind":"{kind}"}}"#)).await;
        assert_eq!(value(&report), expected, "{kind}");
    }
    for kind in ["bigint", "symbol", "fn", "cyclic", "deep", "nested"] {
        let report = rig.run(guest, &format!(r#"{{"kind":"{kind}"}}"#)).await;
        assert!(!thrown(&report).0.is_empty(), "{kind}");
    }
    let limits = short();
    let report = rig.run_source(&source(guest), r#"{"kind":"proxy"}"#, limits, rig.reads()).await;
    assert!(!matches!(report.outcome, Outcome::Ok(_)), "{report:?}");
}
