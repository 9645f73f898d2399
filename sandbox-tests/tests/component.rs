//! Tools that are WebAssembly components, in the real jail with the binary that
//! `scripts/component` builds: written by hand as text, and one that hurts for each
//! limit. Without the binary these tests fail.
#![allow(clippy::unwrap_used)]

use cambium_component::{ComponentConfig, ComponentSandbox};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, Sandbox, ToolResult, Unfit};
use cambium_jail::{Jail, JailConfig, WorkerLimits};
use cambium_proxy::{AgentId, ContentHash, RunId, Session};
use cambium_sandbox_tests::bench::{Bench, Setup};
use cambium_sandbox_tests::rig::{thrown, value};
use cambium_sandbox_tests::vendor::answer;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where `scripts/component` puts what it makes.
fn built(name: &str) -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("CAMBIUM_CACHE").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("cambium")
    });
    let path = cache.join("component").join(name);
    assert!(path.is_file(), "{} is missing: run scripts/component --test", path.display());
    path
}

/// The component of `components/tool.wat` around the body of its `run`.
fn component(body: &str) -> String {
    include_str!("../components/tool.wat").replace("BODY))", &format!("{body}))"))
}

fn digest(component: &[u8]) -> ContentHash {
    let mut hasher = DefaultHasher::new();
    component.hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_le_bytes());
    ContentHash(digest)
}

struct House {
    sandbox: ComponentSandbox,
    bench: Bench,
}

impl House {
    async fn open(zygote: bool) -> Self {
        let config = ComponentConfig {
            exe: built("cambium-component"),
            zygote,
            allow_weak: false,
            show_stderr: true,
        };
        let sandbox = ComponentSandbox::start(config).unwrap();
        Self { sandbox, bench: Bench::start(Setup::default()).await }
    }

    async fn run(&self, component: &[u8], input: &str, session: Arc<Session>) -> RunReport {
        let cpu = Duration::from_secs(1);
        self.run_for(cpu, component, input, session).await
    }

    async fn run_for(
        &self,
        cpu: Duration,
        component: &[u8],
        input: &str,
        session: Arc<Session>,
    ) -> RunReport {
        let limits = RunLimits { wall: Duration::from_secs(60), cpu, ..RunLimits::default() };
        self.run_within(limits, component, input, session).await
    }

    async fn run_within(
        &self,
        limits: RunLimits,
        component: &[u8],
        input: &str,
        session: Arc<Session>,
    ) -> RunReport {
        let digest = digest(component);
        let job = Job {
            run: RunId::new("run"),
            agent: AgentId::new("agent"),
            version: digest,
            tool: "acme__tool".into(),
            javascript: "".into(),
            modules: Vec::new(),
            component: Some((digest, component.into())),
            input: input.into(),
            connection_slug: "acme".into(),
            vendor: "acme".into(),
            display_name: "Acme".into(),
            proxy_base: String::new(),
            limits,
        };
        self.sandbox.run(job, session).await
    }

    async fn reads(&self, body: &str, input: &str) -> RunReport {
        self.run(component(body).as_bytes(), input, self.bench.reader()).await
    }
}

const ECHO: &str = "(call $ok (local.get 0) (local.get 1))";
/// `GET /orders` of the primary host.
const ASKS: &str = "(call $ask (i32.const 0) (i32.const 7) (i32.const 7) (i32.const 0) \
    (i32.const 0) (i32.const 0) (i32.const 0))";
/// The same of the host whose authority is the input, a JSON string.
const ASKS_NAMED: &str = "(call $ask (i32.const 0) (i32.const 7) (i32.const 7) \
    (i32.add (local.get 0) (i32.const 1)) (i32.sub (local.get 1) (i32.const 2)) \
    (i32.const 0) (i32.const 0))";
/// `POST /orders` with three bytes.
const WRITES: &str = "(call $ask (i32.const 2) (i32.const 7) (i32.const 7) (i32.const 0) \
    (i32.const 0) (i32.const 0) (i32.const 3))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_takes_json_calls_its_vendor_and_gives_json() {
    for zygote in [true, false] {
        let house = House::open(zygote).await;
        let echo = house.reads(ECHO, r#"{"a":[1,"é"]}"#).await;
        assert_eq!(value(&echo), r#"{"a":[1,"é"]}"#, "{echo:?}");
        let logs = format!("(call $log (i32.const 7) (i32.const 7)) {ASKS}");
        let asked = house.reads(&logs, "1").await;
        assert_eq!(value(&asked), r#"{"ok":true}"#, "{asked:?}");
        assert_eq!(asked.logs, ["/orders"]);
        let heard = house.bench.vendor.heard();
        assert_eq!(heard.last().unwrap().line(), "GET /orders HTTP/1.1");
        assert!(!heard.last().unwrap().header("authorization").is_empty(), "the proxy adds it");
        house.sandbox.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_hurts_ends_as_what_it_is_and_the_next_call_is_fine() {
    let house = House::open(true).await;
    let ends = async |body: &str| {
        let report = house.reads(body, "1").await;
        assert_eq!(value(&house.reads(ECHO, "2").await), "2", "after {body}");
        report
    };
    let looping = ends("(loop $l (br $l)) (unreachable)").await;
    assert!(matches!(looping.outcome, Outcome::CpuLimit), "{looping:?}");
    let growing = "(loop $l (if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then (br $l)))) \
        (call $ok (local.get 0) (local.get 1))";
    // What it does without is its own affair, what it cannot do without is the limit.
    assert_eq!(value(&ends(growing).await), "1");
    let growing = format!("{growing} (unreachable)");
    assert_eq!(ends(&growing).await.outcome, Outcome::MemoryLimit);
    // Resources of the host's are memory of the same process.
    let hoarding = "(loop $l (drop (call $new-fields)) (br $l)) (unreachable)";
    assert!(thrown(&ends(hoarding).await).0.contains("free keys"));
    for (body, said) in [
        ("(unreachable)", "unreachable"),
        ("(drop (call $deep (i32.const 0))) (unreachable)", "stack"),
        ("(call $err (i32.const 7) (i32.const 7))", "/orders"),
        ("(call $ok (i32.const 7) (i32.const 7))", "not JSON"),
        ("(call $ok (i32.const 0) (i32.const -1))", "stopped"),
        ("(i32.store8 (i32.const 128) (i32.const 9)) (i32.const 128)", "stopped"),
        ("(drop (i32.load (i32.const -8))) (unreachable)", "out of bounds"),
        ("(call $socket) (unreachable)", "wasi:sockets"),
        ("(call $block (i32.const 77)) (unreachable)", "stopped"),
        // It waits for the reply to a request whose body it never finishes.
        (
            "(local.set 2 (call $new-request (call $new-fields))) \
             (call $request-body (local.get 2) (i32.const 256)) \
             (call $handle (local.get 2) (i32.const 0) (i32.const 0) (i32.const 256)) \
             (call $block (call $subscribe (i32.load (i32.const 264)))) (unreachable)",
            "never comes",
        ),
    ] {
        let report = ends(body).await;
        assert!(thrown(&report).0.contains(said), "{body}: {report:?}");
    }
    let chatty = "(loop $l (call $log (i32.const 7) (i32.const 7)) \
        (local.set 2 (i32.add (local.get 2) (i32.const 1))) \
        (br_if $l (i32.lt_u (local.get 2) (i32.const 60000)))) \
        (call $ok (local.get 0) (local.get 1))";
    let report = ends(chatty).await;
    assert!(matches!(&report.outcome, Outcome::Ok(ToolResult::Value(_))), "{:?}", report.outcome);
    assert!(report.logs_dropped > 0 && report.logs.len() < 10_000, "{}", report.logs_dropped);
    house.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a04_a_component_reaches_what_its_session_may_and_nothing_else() {
    let house = House::open(true).await;
    let port = house.bench.vendor.address.port();
    // Its own hosts, by authority, with the port they have.
    for host in ["api.acme.test", "files.acme.test"] {
        let report = house.reads(ASKS_NAMED, &format!("\"{host}:{port}\"")).await;
        assert_eq!(value(&report), r#"{"ok":true}"#, "{report:?}");
    }
    assert_eq!(house.bench.vendor.heard().len(), 2);
    let cloud = "169.254.169.254".to_owned();
    let other = format!("api.acme.test:{}", port ^ 1);
    for elsewhere in ["evil.test".to_owned(), cloud, other, "api.acme.test@evil.test".to_owned()] {
        let report = house.reads(ASKS_NAMED, &format!("\"{elsewhere}\"")).await;
        let (said, _) = thrown(&report);
        assert!(said.starts_with("host_not_in_connection"), "{elsewhere}: {said}");
    }
    let plain = "(call $ask (i32.const 0) (i32.const 7) (i32.const 7) (i32.const 0) \
        (i32.const 0) (i32.const 1) (i32.const 0))";
    assert!(thrown(&house.reads(plain, "1").await).0.contains("https only"));
    // An absolute URL where a path is expected: the text at 14 has no slash either.
    let odd = "(call $ask (i32.const 0) (i32.const 14) (i32.const 9) (i32.const 0) \
        (i32.const 0) (i32.const 0) (i32.const 0))";
    assert!(thrown(&house.reads(odd, "1").await).0.starts_with("path_not_relative"));
    let report = house.reads(WRITES, "1").await;
    assert_eq!(report.outcome, Outcome::PolicyDenied, "a reader does not write");
    assert_eq!(house.bench.vendor.heard().len(), 2, "nothing else went");
    house.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_component_of_our_world_is_refused_before_it_runs() {
    let house = House::open(true).await;
    let strange = "(component (import \"acme:files/disk@0.2.0\" (instance)) )";
    let later = "(component (import \"wasi:http/client@0.3.0\" (instance)) )";
    let other = component(ECHO).replace(
        "(func (export \"run\") (param \"input\" string)",
        "(func (export \"walk\") (param \"input\" string)",
    );
    let wrong = "(component (core module $m (func (export \"run\"))) (core instance $i \
        (instantiate $m)) (func (export \"run\") (canon lift (core func $i \"run\"))))";
    for (bytes, said) in [
        (&b"not a component"[..], ""),
        (b"", ""),
        (b"\0asm\x01\0\0\0", "component"),
        (b"\0asm\x0d\0\x01\0\xff\xff\xff\xff\xff", ""),
        (b"(module (func))", "component"),
        (strange.as_bytes(), "acme:files/disk"),
        (later.as_bytes(), "wasi:http/client"),
        (b"(component)", "exports no"),
        (other.as_bytes(), "exports no"),
        (wrong.as_bytes(), "exports no"),
    ] {
        let refused = house.sandbox.prepare(ContentHash([9; 32]), bytes).await;
        let Err(Unfit::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.contains(said), "{said}: {reason}");
    }
    let good = component(ECHO);
    house.sandbox.prepare(ContentHash([8; 32]), good.as_bytes()).await.unwrap();
    house.sandbox.shutdown().await;
}

/// What makes the compiler work takes its process's limits, never ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_is_a_burden_to_compile_ends_at_the_compilers_limits() {
    let house = House::open(true).await;
    let nested = format!("(component {}{})", "(component ".repeat(2_000), ")".repeat(2_000));
    let refused = house.sandbox.prepare(ContentHash([7; 32]), nested.as_bytes()).await;
    assert!(refused.is_err());
    // A memory that is declared beyond what a run has: it compiles, and never runs.
    let greedy = component(ECHO)
        .replace("(memory (export \"memory\") 2)", "(memory (export \"memory\") 60000)");
    let report = house.run(greedy.as_bytes(), "1", house.bench.reader()).await;
    assert_eq!(report.outcome, Outcome::MemoryLimit);
    assert_eq!(value(&house.reads(ECHO, "2").await), "2");
    house.sandbox.shutdown().await;
}

/// A run waits for its component no longer than it may take in all; the compiler
/// goes on, so that a later run finds it done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compiling_is_part_of_the_runs_time_and_is_not_begun_again() {
    let house = House::open(true).await;
    let orders = std::fs::read(built("orders.wasm")).unwrap();
    let brief = RunLimits { wall: Duration::from_millis(50), ..RunLimits::default() };
    for _ in 0..3 {
        let report = house.run_within(brief, &orders, "{}", house.bench.reader()).await;
        let Outcome::Unavailable(said) = &report.outcome else { panic!("{report:?}") };
        assert!(said.contains("still being compiled"), "{said}");
    }
    house.sandbox.prepare(digest(&orders), &orders).await.unwrap();
    // Compiled by now, which takes seconds: a look is all that is left of it.
    let report = house.run_within(brief, &orders, "{}", house.bench.reader()).await;
    assert!(!matches!(report.outcome, Outcome::Unavailable(_)), "{report:?}");
    house.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binary_of_another_version_says_so() {
    let exe = Some(built("cambium-component"));
    let payload = (*b"cambium-job-0 of 0.0.1").into();
    let jail = Jail::start(JailConfig { exe, payload, pool: 0, ..JailConfig::default() }).unwrap();
    let refused = jail.take("agent", "version", WorkerLimits::default()).await.unwrap_err();
    assert!(refused.to_string().contains("another version"), "{refused}");
    jail.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_made_of_javascript_runs_too() {
    let house = House::open(true).await;
    let orders = std::fs::read(built("orders.wasm")).unwrap();
    let port = house.bench.vendor.address.port();
    let base = format!("https://api.acme.test:{port}");
    house.sandbox.prepare(digest(&orders), &orders).await.unwrap();
    let report = house.run(&orders, &format!("{{\"base\":{base:?}}}"), house.bench.reader()).await;
    assert_eq!(value(&report), r#"{"status":200,"said":{"ok":true}}"#, "{report:?}");
    let heard = house.bench.vendor.heard();
    assert_eq!(heard.last().unwrap().line(), "GET /orders HTTP/1.1");
    assert_eq!(report.logs, ["listing"]);

    // Bodies beyond what may be under way at once, both ways.
    let cpu = Duration::from_secs(20);
    let large = format!("{{\"ok\":\"{}\"}}", "x".repeat(400_000));
    let script = large.clone();
    let json = "content-type: application/json\r\n";
    let bench = Bench::start(Setup::answering(move |_| answer("200 OK", json, script.as_bytes())));
    let bench = bench.await;
    let base = format!("https://api.acme.test:{}", bench.vendor.address.port());
    let asked = serde_json::json!({ "base": base }).to_string();
    let report = house.run_for(cpu, &orders, &asked, bench.reader()).await;
    assert_eq!(value(&report), format!("{{\"status\":200,\"said\":{large}}}"));
    let item = "y".repeat(300_000);
    let written = serde_json::json!({ "base": base, "item": item }).to_string();
    let report = house.run_for(cpu, &orders, &written, bench.dry()).await;
    assert!(value(&report).starts_with(r#"{"status":202,"said":"#), "{:?}", report.outcome);
    assert!(value(&report).contains("yyyyyyyy"));
    assert_eq!(bench.vendor.heard().len(), 1, "a dry run shows a write");
    house.sandbox.shutdown().await;
}
