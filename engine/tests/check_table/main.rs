//! What the check says of one module after another: hints, call sites and
//! diagnostic codes (behaviours 41 to 50; sandbox rows 9 to 14, 54 to 57, 64).
//! A row is a body for the tool's function, or a whole module.
#![allow(clippy::unwrap_used)]

mod shapes;

use cambium_engine::{CheckReport, check_module};
use cambium_proxy::{MethodPattern, PathPattern};

const HEAD: &str = "export const description = \"d\";\n\
                    export const inputSchema = { type: \"object\" } as const;\n";

fn module(body: &str) -> String {
    if body.contains("export ") || body.contains("import ") {
        return body.to_owned();
    }
    format!("{HEAD}export default async function (ctx, input) {{\n{body}\n}}")
}

fn sites(report: &CheckReport) -> String {
    let sites = report.sites.iter().map(|site| {
        let method = match &site.method {
            MethodPattern::Exactly(method) => method.as_str(),
            MethodPattern::Any => "*",
        };
        let path = match &site.path {
            PathPattern::Template(path) => path.as_str(),
            PathPattern::Any => "*",
        };
        let host = site.host.as_ref().map(|host| format!("{host}:")).unwrap_or_default();
        format!("{method} {host}{path}")
    });
    sites.collect::<Vec<_>>().join(", ")
}

fn hints(report: &CheckReport) -> &'static str {
    match (report.hints.read_only, report.hints.destructive) {
        (true, false) => "read",
        (false, false) => "write",
        (false, true) => "destroy",
        (true, true) => "impossible",
    }
}

fn codes(report: &CheckReport) -> String {
    let codes: Vec<_> = report.diagnostics.iter().map(|found| found.code.as_str()).collect();
    codes.join(" ")
}

fn run(rows: &[(&str, &str, &str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (name, body, want_hints, want_sites, want_codes) in rows {
        let report = check_module(&module(body));
        let got = (hints(&report), sites(&report), codes(&report));
        if got != (*want_hints, (*want_sites).to_owned(), (*want_codes).to_owned()) {
            wrong.push(format!(
                "{name}\n  want {want_hints} | {want_sites} | {want_codes}\n  got  {} | {} | {}",
                got.0, got.1, got.2
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn b041_hints_follow_from_the_literal_methods() {
    run(&[
        ("no method", "return ctx.fetch('/a')", "read", "GET /a", ""),
        ("empty init", "return ctx.fetch('/a', {})", "read", "GET /a", ""),
        ("get", "return ctx.fetch('/a', { method: 'GET' })", "read", "GET /a", ""),
        ("head", "return ctx.fetch('/a', { method: 'HEAD' })", "read", "HEAD /a", ""),
        ("lower-case get", "return ctx.fetch('/a', { method: 'get' })", "read", "GET /a", ""),
        ("post", "return ctx.fetch('/a', { method: 'POST', body: input })", "write", "POST /a", ""),
        ("put", "return ctx.fetch('/a', { method: 'PUT' })", "write", "PUT /a", ""),
        ("options", "return ctx.fetch('/a', { method: 'OPTIONS' })", "write", "OPTIONS /a", ""),
        ("query method", "return ctx.fetch('/a', { method: 'QUERY' })", "write", "QUERY /a", ""),
        ("delete", "return ctx.fetch('/a', { method: 'DELETE' })", "destroy", "DELETE /a", ""),
        (
            "lower-case delete",
            "return ctx.fetch('/a', { method: 'dElEtE' })",
            "destroy",
            "DELETE /a",
            "",
        ),
        (
            "lower-case lock",
            "return ctx.fetch('/a', { method: 'lock' })",
            "write",
            "LOCK /a",
            "method_invalid",
        ),
        (
            "lower-case patch",
            "return ctx.fetch('/a', { method: 'patch' })",
            "write",
            "PATCH /a",
            "",
        ),
        ("trace", "return ctx.fetch('/a', { method: 'TRACE' })", "write", "* /a", "method_invalid"),
        ("space", "return ctx.fetch('/a', { method: 'GET ' })", "write", "* /a", "method_invalid"),
        ("as const", "return ctx.fetch('/a', { method: 'GET' as const })", "read", "GET /a", ""),
        ("template method", "return ctx.fetch('/a', { method: `GET` })", "read", "GET /a", ""),
        ("string key", "return ctx.fetch('/a', { 'method': 'POST' })", "write", "POST /a", ""),
        (
            "read and delete",
            "await ctx.fetch('/a'); return ctx.fetch('/b', { method: 'DELETE' })",
            "destroy",
            "GET /a, DELETE /b",
            "several_calls",
        ),
        ("host label", "return ctx.fetch('/a', { host: 'files' })", "read", "GET files:/a", ""),
        (
            "host computed",
            "return ctx.fetch('/a', { host: input.h })",
            "read",
            "GET /a",
            "host_not_literal",
        ),
        ("body on get", "return ctx.fetch('/a', { body: 'x' })", "read", "GET /a", "body_on_read"),
        (
            "unknown init key",
            "return ctx.fetch('/a', { redirect: 'x' })",
            "read",
            "GET /a",
            "init_key_unknown",
        ),
        ("no call", "return 1", "write", "", "no_vendor_call"),
        (
            "words in a comment",
            "// ctx.fetch('/a', { method: 'DELETE' })\nreturn ctx.fetch('/b')",
            "read",
            "GET /b",
            "",
        ),
        (
            "loop",
            "for (const id of [1, 2]) await ctx.fetch(`/a/${Number(id)}`)",
            "read",
            "GET /a/{}",
            "call_in_loop",
        ),
        (
            "callback",
            "return Promise.all([1].map((id) => ctx.fetch(`/a/${Number(id)}`)))",
            "read",
            "GET /a/{}",
            "call_in_loop",
        ),
        (
            "same site twice",
            "await ctx.fetch('/a'); return ctx.fetch('/a')",
            "read",
            "GET /a",
            "several_calls",
        ),
    ]);
}

#[test]
fn b043_what_is_followed_keeps_its_hints() {
    run(&[
        ("computed member", "return ctx['fetch']('/a')", "read", "GET /a", ""),
        ("template member", "return ctx[`fetch`]('/a')", "read", "GET /a", ""),
        ("escaped member", "return ctx.\\u0066etch('/a')", "read", "GET /a", ""),
        ("optional", "return ctx?.fetch?.('/a')", "read", "GET /a", ""),
        ("wrapped", "return ((ctx as any)!.fetch)('/a')", "read", "GET /a", ""),
        ("constant", "const f = ctx.fetch; return f('/a')", "read", "GET /a", ""),
        (
            "constant of constant",
            "const f = ctx.fetch; const g = f; return g('/a')",
            "read",
            "GET /a",
            "",
        ),
        ("renamed context", "const c = ctx; return c.fetch('/a')", "read", "GET /a", ""),
        ("destructured", "const { fetch } = ctx; return fetch('/a')", "read", "GET /a", ""),
        (
            "destructured, renamed",
            "const { fetch: f } = ctx; return f('/a', { method: 'POST' })",
            "write",
            "POST /a",
            "",
        ),
        (
            "closure",
            "const get = (id) => ctx.fetch(`/a/${+id}`); return get(1)",
            "read",
            "GET /a/{}",
            "",
        ),
        (
            "connection",
            "return ctx.fetch('/a', { headers: { a: ctx.connection.slug } })",
            "read",
            "GET /a",
            "",
        ),
        ("type only", "type C = typeof ctx; return ctx.fetch('/a')", "read", "GET /a", ""),
        (
            "constant init",
            "const init = { method: 'PUT' }; return ctx.fetch('/a', init)",
            "write",
            "PUT /a",
            "",
        ),
        (
            "constant init, read",
            "const init = { headers: {} }; return ctx.fetch('/a', init)",
            "read",
            "GET /a",
            "",
        ),
        (
            "this of a class",
            "class A { n = 1; get() { return this.n } } return ctx.fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
        (
            "shadowed name",
            "{ const ctx = { fetch(a, b) {} }; ctx.fetch('/b', { method: 'POST' }) } return ctx.fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
        (
            "destructured parameter",
            "export const description = 'd'; export const inputSchema = { type: 'object' };\n\
             export default async ({ fetch }, input) => fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
        (
            "context by another name",
            "export const description = 'd'; export const inputSchema = { type: 'object' };\n\
             export default async (vendor, input) => vendor.fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
        (
            "function expression",
            "export const description = 'd'; export const inputSchema = { type: 'object' };\n\
             export default (async function named(ctx, input) { return ctx.fetch('/a') })",
            "read",
            "GET /a",
            "",
        ),
        (
            "byte order mark",
            "\u{feff}export const description = 'd'; export const inputSchema = { type: 'object' };\n\
             export default async (ctx) => ctx.fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
        (
            "hashbang",
            "#!/usr/bin/env x\nexport const description = 'd'; export const inputSchema = { type: 'object' };\n\
             export default async (ctx) => ctx.fetch('/a')",
            "read",
            "GET /a",
            "",
        ),
    ]);
}

/// Behaviour 43: each of these hides a write; none may be read-only.
#[test]
fn b043_no_alias_passes_for_a_read() {
    let rows = [
        "const init = { method: 'GET' }; init.method = 'POST'; return ctx.fetch('/a', init)",
        "const init = {}; Object.assign(init, { method: 'POST' }); return ctx.fetch('/a', init)",
        "let init = {}; init = { method: 'POST' }; return ctx.fetch('/a', init)",
        "var init = {}; var init = { method: 'POST' }; return ctx.fetch('/a', init)",
        "const init = {}; const same = init; same.method = 'POST'; return ctx.fetch('/a', init)",
        "return ctx.fetch('/a', { ...input })",
        "return ctx.fetch('/a', { method: 'GET', ...input })",
        "return ctx.fetch('/a', { method: 'GET', method: 'POST' })",
        "return ctx.fetch('/a', { method: 'POST', method: input.m })",
        "return ctx.fetch('/a', { ['method']: 'POST' })",
        "return ctx.fetch('/a', { ['met' + 'hod']: 'POST' })",
        "return ctx.fetch('/a', { get method() { return 'POST' } })",
        "return ctx.fetch('/a', { method() { return 'POST' } })",
        "return ctx.fetch('/a', { __proto__: { method: 'POST' } })",
        "const method = 'POST'; return ctx.fetch('/a', { method })",
        "return ctx.fetch('/a', { method: input.method })",
        "return ctx.fetch('/a', { method: 'P' + 'OST' })",
        "return ctx.fetch('/a', { method: input.x ? 'GET' : 'POST' })",
        "return ctx.fetch('/a', input)",
        "return ctx.fetch('/a', input.x ? {} : { method: 'POST' })",
        "return ctx.fetch('/a', ...[{ method: 'POST' }])",
        "return ctx.fetch(...['/a', { method: 'POST' }])",
        "return ctx.fetch.call(ctx, '/a', { method: 'POST' })",
        "return ctx.fetch.apply(ctx, ['/a', { method: 'POST' }])",
        "return ctx.fetch.bind(ctx, '/a', { method: 'POST' })()",
        "return Reflect.apply(ctx.fetch, ctx, ['/a', { method: 'POST' }])",
        "return [ctx.fetch][0]('/a', { method: 'POST' })",
        "return { f: ctx.fetch }.f('/a', { method: 'POST' })",
        "const { fetch: f } = { fetch: ctx.fetch }; return f('/a', { method: 'POST' })",
        "const [f] = [ctx.fetch]; return f('/a', { method: 'POST' })",
        "let f; f = ctx.fetch; return f('/a', { method: 'POST' })",
        "let f = null; ({ fetch: f } = ctx); return f('/a', { method: 'POST' })",
        "let f; [f] = [ctx.fetch]; return f('/a', { method: 'POST' })",
        "const { ...all } = ctx; return all.fetch('/a', { method: 'POST' })",
        "const { ['fetch']: f } = ctx; return f('/a', { method: 'POST' })",
        "const k = 'fetch'; return ctx[k]('/a', { method: 'POST' })",
        "const k = 'fetch'; const { [k]: f } = ctx; return f('/a', { method: 'POST' })",
        "const { fetch = 1 } = ctx; return fetch('/a', { method: 'POST' })",
        "const c = { ...ctx }; return c.fetch('/a', { method: 'POST' })",
        "const c = Object.create(ctx); return c.fetch('/a', { method: 'POST' })",
        "const send = (c) => c.fetch('/a', { method: 'POST' }); return send(ctx)",
        "const send = (f) => f('/a', { method: 'POST' }); return send(ctx.fetch)",
        "const send = (f = ctx.fetch) => f('/a', { method: 'POST' }); return send()",
        "const send = ({ fetch } = ctx) => fetch('/a', { method: 'POST' }); return send()",
        "function send() { return arguments[0].fetch('/a', { method: 'POST' }) } return send(ctx)",
        "return arguments[0].fetch('/a', { method: 'POST' })",
        "globalThis.c = ctx; return c.fetch('/a', { method: 'POST' })",
        "class A { c = ctx } return new A().c.fetch('/a', { method: 'POST' })",
        "class A { static { this.f = ctx.fetch } } return A.f('/a', { method: 'POST' })",
        "class A extends ctx.fetch {} return new A()",
        "return (0, ctx.fetch)('/a', { method: 'POST' })",
        "return (input.x ? ctx.fetch : null)('/a', { method: 'POST' })",
        "return (ctx.fetch || null)('/a', { method: 'POST' })",
        "return (await ctx.fetch)('/a', { method: 'POST' })",
        "return ctx.fetch`/a`",
        "return new ctx.fetch('/a')",
        "return await ctx",
        "yieldIt(ctx); function yieldIt(c) { return c.fetch('/a', { method: 'POST' }) }",
        "throw ctx",
        "for (const c of [ctx]) await c.fetch('/a', { method: 'POST' })",
        "try { throw ctx } catch (c) { return c.fetch('/a', { method: 'POST' }) }",
        "using c = ctx; return c.fetch('/a', { method: 'POST' })",
        "switch (ctx) { default: return 1 }",
        "label: { const c = (ctx, ctx); return c.fetch('/a', { method: 'POST' }) }",
        "ctx = input; return ctx.fetch('/a')",
        "ctx.fetch = input.f; return ctx.fetch('/a')",
        "ctx['fet' + 'ch']('/a', { method: 'POST' })",
        "ctx.connection.x; return ctx.other('/a')",
        "return fetch(ctx.proxyBase + '/a', { method: 'POST' })",
        "return fetch('/a')",
        "return globalThis.fetch('/a', { method: 'POST' })",
        "return globalThis['fetch']('/a', { method: 'POST' })",
        "const { fetch: f } = globalThis; return f('/a', { method: 'POST' })",
        "return self.fetch('/a', { method: 'POST' })",
        "return window.fetch('/a', { method: 'POST' })",
        "return eval('fetch')('/a', { method: 'POST' })",
        "return (0, eval)('fetch')('/a', { method: 'POST' })",
        "return new Function('return fetch')()('/a', { method: 'POST' })",
        "return (() => {}).constructor('return fetch')()('/a', { method: 'POST' })",
        "return (() => {})['constructor']('return fetch')()('/a', { method: 'POST' })",
        "const { constructor: F } = () => {}; return F('return fetch')()('/a')",
        "setTimeout(function () { this.fetch('/a', { method: 'POST' }) }, 0); return ctx.fetch('/b')",
        "setTimeout(function () { const g = this; g.fetch('/a', { method: 'POST' }) }, 0); return ctx.fetch('/b')",
        "setTimeout(function () { this['fetch']('/a', { method: 'POST' }) }, 0); return ctx.fetch('/b')",
        "class A { go() { return this.globalThis.fetch('/a', { method: 'POST' }) } } setTimeout(new A().go); return ctx.fetch('/b')",
        "return [1].map(ctx.fetch)",
        "return Promise.resolve('/a').then(ctx.fetch)",
        "return { toJSON: () => ctx }",
        "return ctx.proxyKey",
        "const f = ctx.fetch; return f.call(null, '/a', { method: 'POST' })",
        "let f = ctx.fetch; f = input.f; return f('/a')",
        "const f = ctx.fetch; const g = { f }; return g.f('/a', { method: 'POST' })",
        "var ctx = ctx; return ctx.fetch('/a')",
        "function ctx() {} return ctx.fetch('/a')",
    ];
    let passed: Vec<_> =
        rows.iter().filter(|body| check_module(&module(body)).hints.read_only).collect();
    assert!(passed.is_empty(), "counted as reads: {passed:#?}");
    for body in rows {
        let report = check_module(&module(body));
        let parse = report.diagnostics.iter().any(|found| found.code == "syntax_error");
        assert!(
            report.sites.iter().any(|site| site.method != MethodPattern::Exactly("GET".into()))
                || parse,
            "{body}"
        );
    }
}

#[test]
fn b043_a_function_that_takes_the_default_ones_place_is_refused() {
    run(&[(
        "live binding",
        "export const description = 'd'; export const inputSchema = { type: 'object' };\n\
         export default async function tool(ctx, input) { return ctx.fetch('/a') }\n\
         tool = async (c) => c.fetch('/a', { method: 'POST' });",
        "read",
        "GET /a",
        "default_export_reassigned",
    )]);
}

#[test]
fn b046_paths_become_templates_or_faults() {
    run(&[
        ("plain", "return ctx.fetch('/v1/orders')", "read", "GET /v1/orders", ""),
        ("root", "return ctx.fetch('/')", "read", "GET /", ""),
        ("query dropped", "return ctx.fetch('/a?x=1')", "read", "GET /a", ""),
        ("query value", "return ctx.fetch(`/a?x=${input.x}`)", "read", "GET /a", ""),
        (
            "encoded hole",
            "return ctx.fetch(`/a/${encodeURIComponent(input.x)}/b`)",
            "read",
            "GET /a/{}/b",
            "",
        ),
        (
            "concatenation",
            "return ctx.fetch('/a/' + encodeURIComponent(input.x) + '?y=' + input.y)",
            "read",
            "GET /a/{}",
            "",
        ),
        (
            "two holes at once",
            "return ctx.fetch(`/a/${Number(input.x)}${Number(input.y)}`)",
            "read",
            "GET /a/{}",
            "",
        ),
        (
            "arithmetic",
            "return ctx.fetch(`/a/${input.x - 1}/${Math.floor(input.y)}`)",
            "read",
            "GET /a/{}/{}",
            "",
        ),
        (
            "choice of words",
            "return ctx.fetch(`/a/${input.x ? 'up' : 'down'}`)",
            "read",
            "GET /a/{}",
            "",
        ),
        ("constant", "const base = '/v1'; return ctx.fetch(`${base}/a`)", "read", "GET /v1/a", ""),
        (
            "constant template",
            "const p = `/a/${encodeURIComponent(input.x)}`; return ctx.fetch(p)",
            "read",
            "GET /a/{}",
            "",
        ),
        ("open hole", "return ctx.fetch(`/a/${input.x}`)", "read", "GET *", "path_not_followed"),
        (
            "open hole first",
            "return ctx.fetch(`${input.x}/a`)",
            "read",
            "GET *",
            "path_not_followed",
        ),
        (
            "sum",
            "return ctx.fetch('/a/' + (input.x + input.y))",
            "read",
            "GET *",
            "path_not_followed",
        ),
        (
            "choice of paths",
            "return ctx.fetch(`/a/${input.x ? 'b/c' : 'd'}`)",
            "read",
            "GET *",
            "path_not_followed",
        ),
        ("variable", "return ctx.fetch(input.path)", "read", "GET *", "path_not_followed"),
        (
            "changed variable",
            "let p = '/a'; p += input.x; return ctx.fetch(p)",
            "read",
            "GET *",
            "path_not_followed",
        ),
        (
            "shadowed encoder",
            "const encodeURIComponent = (x) => x; return ctx.fetch(`/a/${encodeURIComponent(input.x)}`)",
            "read",
            "GET *",
            "path_not_followed",
        ),
        (
            "replaced encoder",
            "encodeURIComponent = (x) => x; return ctx.fetch(`/a/${encodeURIComponent(input.x)}`)",
            "read",
            "GET *",
            "path_not_followed",
        ),
        ("literal braces", "return ctx.fetch('/a/{}')", "read", "GET /a/%7B%7D", ""),
        ("not ASCII", "return ctx.fetch('/caf\u{e9} x')", "read", "GET /caf%C3%A9%20x", ""),
        ("absolute", "return ctx.fetch('https://evil.test/x')", "read", "GET *", "host_in_path"),
        (
            "absolute in a constant",
            "const b = 'https://api.acme.test'; return ctx.fetch(`${b}/x`)",
            "read",
            "GET *",
            "literal_host host_in_path",
        ),
        ("scheme only", "return ctx.fetch('https:evil.test')", "read", "GET *", "host_in_path"),
        ("javascript", "return ctx.fetch('javascript:1')", "read", "GET *", "host_in_path"),
        ("two slashes", "return ctx.fetch('//evil.test/x')", "read", "GET *", "path_ambiguous"),
        ("two slashes inside", "return ctx.fetch('/a//b')", "read", "GET *", "path_ambiguous"),
        ("backslash", "return ctx.fetch('/\\\\evil.test')", "read", "GET *", "path_ambiguous"),
        ("backslashes", "return ctx.fetch('\\\\\\\\evil.test')", "read", "GET *", "path_ambiguous"),
        ("encoded backslash", "return ctx.fetch('/a%5Cb')", "read", "GET *", "path_ambiguous"),
        ("encoded slash", "return ctx.fetch('/a%2fb')", "read", "GET *", "path_ambiguous"),
        ("dot segment", "return ctx.fetch('/a/../b')", "read", "GET *", "path_ambiguous"),
        ("dot segment last", "return ctx.fetch('/a/.')", "read", "GET *", "path_ambiguous"),
        ("encoded dots", "return ctx.fetch('/a/.%2E/b')", "read", "GET *", "path_ambiguous"),
        ("dots in a name", "return ctx.fetch('/a/..b/c.d')", "read", "GET /a/..b/c.d", ""),
        ("relative", "return ctx.fetch('v1/x')", "read", "GET *", "path_not_relative"),
        ("at", "return ctx.fetch('@evil.test/x')", "read", "GET *", "path_not_relative"),
        ("empty", "return ctx.fetch('')", "read", "GET *", "path_not_relative"),
        ("query only", "return ctx.fetch('?q=1')", "read", "GET *", "path_not_relative"),
        ("missing", "return ctx.fetch()", "read", "GET *", "path_not_relative"),
        ("fragment", "return ctx.fetch('/a#b')", "read", "GET *", "path_invalid"),
        ("tab", "return ctx.fetch('/a\\tb')", "read", "GET *", "path_invalid"),
        ("line", "return ctx.fetch('/a\\r\\nX: y')", "read", "GET *", "path_invalid"),
        ("nul", "return ctx.fetch('/a\\0b')", "read", "GET *", "path_invalid"),
        ("encoded nul", "return ctx.fetch('/a%00')", "read", "GET *", "path_invalid"),
        ("bad escape", "return ctx.fetch('/a%zz')", "read", "GET *", "path_invalid"),
        ("URL in the query", "return ctx.fetch('/a?u=https://evil.test')", "read", "GET /a", ""),
        (
            "host elsewhere in the code",
            "const u = 'https://evil.test/x'; return ctx.fetch('/a', { headers: { a: u } })",
            "read",
            "GET /a",
            "literal_host",
        ),
    ]);
}
