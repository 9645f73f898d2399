//! What a run offers for import: a bundle's default export by its names, under
//! the plain name only. A bundle is as hostile as a tool: it has what the tool
//! has, ends as a tool ends, and gets no further.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Outcome, RunLimits, RunReport};
use cambium_sandbox_tests::rig::{Rig, thrown, value};
use std::time::Duration;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// A package as a bundler leaves it.
const GOOD: &str = "class Client { constructor(given) { this.given = given; } \
    async list() { return await (await fetch(`${this.given.base}/list`, { method: 'POST', body: 'x' })).text(); } }\n\
    export default { Client, one: 1, default: Client };";

async fn run(rig: &Rig, source: &str, modules: &[(&str, &str)]) -> RunReport {
    let limits = RunLimits { wall: Duration::from_secs(5), ..RunLimits::default() };
    rig.run_importing(source, modules, "{}", limits, rig.dry()).await
}

fn tool(head: &str, body: &str) -> String {
    format!("{head}\nexport default async (ctx, input) => {{ {body} }};")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_is_imported_by_its_plain_name_in_every_form() {
    let rig = Rig::start(WORKER).await;
    for (head, body) in [
        ("import { Client, one } from 'acme';", "return [new Client(one).given, typeof Client];"),
        ("import Client from 'acme';", "return [new Client(1).given, typeof Client];"),
        ("import * as acme from 'acme';", "return [acme.one, typeof acme.Client];"),
        ("import A, { Client as B } from 'acme';", "return [+(A === B), typeof B];"),
        ("import 'acme';", "return [1, 'function'];"),
    ] {
        let report = run(&rig, &tool(head, body), &[("acme", GOOD)]).await;
        assert_eq!(value(&report), r#"[1,"function"]"#, "{head}");
    }
    let two = "import { one } from 'acme'; import { two } from '@acme/more';";
    let more = ("@acme/more", "export default { two: 2 };");
    let report = run(&rig, &tool(two, "return one + two;"), &[("acme", GOOD), more]).await;
    assert_eq!(value(&report), "3");
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s09_to_s14_nothing_but_the_plain_name_is_found() {
    let rig = Rig::start(WORKER).await;
    for head in [
        "import x from 'acm';",
        "import x from 'acme/lib';",
        "import x from './acme';",
        "import x from 'Acme';",
        "import x from 'acme\\0';",
        "import x from 'ext:core/mod.js';",
        "import x from 'sdk:acme';",
        "import x from 'tool:acme__tool';",
        "import x from 'acme' with { type: 'json' };",
        "import defer * as x from 'acme';",
        "import source x from 'acme';",
        "import { missing } from 'acme';",
        "export * from 'other'; import 'acme';",
    ] {
        let report = run(&rig, &tool(head, "return 'ran';"), &[("acme", GOOD)]).await;
        assert!(matches!(report.outcome, Outcome::ToolError { .. }), "{head}: {report:?}");
    }
    let dynamic =
        "try { await import('acme'); return 'loaded'; } catch (error) { return error.message; }";
    let report = run(&rig, &tool("import 'acme';", dynamic), &[("acme", GOOD)]).await;
    assert_eq!(value(&report), r#""a tool cannot import""#);
    // A run that offers nothing.
    let report = run(&rig, &tool("import { one } from 'acme';", "return one;"), &[]).await;
    assert_eq!(thrown(&report).0, "a tool cannot import: acme");
    // Offered to the run before, in another process.
    rig.still_works().await;
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_package_ends_its_run_and_nothing_else() {
    let rig = Rig::start(WORKER).await;
    let report = async |bundle: &str| {
        let source = tool("import * as acme from 'acme';", "return Object.keys(acme).length;");
        run(&rig, &source, &[("acme", bundle)]).await
    };
    for bundle in [
        "import fs from 'node:fs'; export default { fs };",
        "import x from 'acme'; export default { x };",
        "export default 7;",
        "export const one = 1;",
        "throw new Error('at once');",
        "export default { get a() { throw new Error('later'); } };",
        "export default new Proxy({}, { ownKeys() { throw new Error('keys'); } });",
        "const many = {}; for (let i = 0; i < 3000; i++) many['k' + i] = i; export default many;",
        "not JavaScript",
    ] {
        let ended = report(bundle).await;
        assert!(matches!(ended.outcome, Outcome::ToolError { .. }), "{bundle}: {ended:?}");
    }
    for (bundle, ends) in [
        ("for (;;);", Outcome::Timeout),
        ("export default new Proxy({}, { ownKeys() { for (;;); } });", Outcome::Timeout),
        ("await new Promise(() => {}); export default {};", Outcome::NeverSettled),
    ] {
        let ended = report(bundle).await;
        let cpu = ends == Outcome::Timeout && ended.outcome == Outcome::CpuLimit;
        assert!(cpu || ended.outcome == ends, "{bundle}: {ended:?}");
    }
    let then = "export default { then(done) { done({}); }, [Symbol('x')]: 1, __proto__: null };";
    assert_eq!(value(&report(then).await), "1", "a name like any other");
    rig.still_works().await;
    rig.sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b049_what_a_package_sends_goes_to_the_primary_host_as_a_write_or_not_at_all() {
    let rig = Rig::start(WORKER).await;
    let source = tool(
        "import { Client } from 'acme';",
        "return await new Client({ base: ctx.proxyBase }).list();",
    );
    let modules = [("acme", GOOD)];
    let limits = RunLimits::default();
    let dry = rig.run_importing(&source, &modules, "{}", limits, rig.dry()).await;
    assert!(value(&dry).contains("stopped") || value(&dry).contains("dry"), "{dry:?}");
    let reader = rig.run_importing(&source, &modules, "{}", limits, rig.reads()).await;
    assert_eq!(reader.outcome, Outcome::PolicyDenied, "a reader has no SDK");
    let elsewhere = source.replace("ctx.proxyBase", "'https://api.vendor.example'");
    let unbound = rig.run_importing(&elsewhere, &modules, "{}", limits, rig.dry()).await;
    assert!(thrown(&unbound).0.contains("ctx.proxyBase only"), "{unbound:?}");
    // What a bundle does to the globals is its own tool's affair.
    let spoils = "Object.prototype.method = 'DELETE'; Promise.prototype.then = () => {}; \
        Array.prototype[Symbol.iterator] = null; export default { one: 1 };";
    let source =
        tool("import { one } from 'acme';", "return (await ctx.fetch('/x')).status + one;");
    let spoiled = rig.run_importing(&source, &[("acme", spoils)], "{}", limits, rig.reads()).await;
    assert_eq!(value(&spoiled), "201");
    assert!(rig.bench.vendor.heard().iter().all(|heard| heard.line().starts_with("GET /x")));
    rig.still_works().await;
    rig.sandbox.shutdown().await;
}
