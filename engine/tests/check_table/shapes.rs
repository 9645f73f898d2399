//! Rows about a whole module: what it exports and says of itself, what of
//! TypeScript it may use, where a fault is told to be.

use super::{HEAD, codes, hints, module};
use cambium_engine::check_module;

const CALL: &str = "export const description = 'd'; export const inputSchema = { type: 'object' };\n\
                    export default async (ctx, input) => ctx.fetch('/a');\n";

#[test]
fn s57_only_erasable_typescript_without_imports() {
    let rows = [
        ("enum A { B }", "syntax_enum"),
        ("const enum A { B }", "syntax_enum"),
        ("declare enum A { B }", "syntax_enum"),
        ("namespace A { export const b = 1 }", "syntax_namespace"),
        ("declare module 'x' {}", "syntax_namespace"),
        ("declare global { var x: 1 }", "syntax_namespace"),
        ("@d class A {}", "syntax_decorator"),
        ("class A { @d b() {} }", "syntax_decorator"),
        ("class A { accessor b = 1 }", "syntax_accessor"),
        ("class A { constructor(private b: number) {} }", "syntax_parameter_property"),
        ("class A { constructor(readonly b: number) {} }", "syntax_parameter_property"),
        ("import a = require('a')", "syntax_import_equals"),
        ("const j = <div>{1}</div>", "syntax_jsx"),
        ("const j = <></>", "syntax_jsx"),
        // Sandbox rows 9 to 14.
        ("import 'ext:core/mod.js'", "import_refused"),
        ("import 'ext:deno_web/locks.js'", "import_refused"),
        ("import a from './a.ts'", "import_refused"),
        ("import * as a from 'node:fs'", "import_refused"),
        ("import type { A } from './a.ts'", "import_refused"),
        ("import x from './p.json' with { type: 'json' }", "import_refused"),
        ("import source a from './a.wasm'", "import_refused"),
        ("import defer * as a from './a.js'", "import_refused"),
        ("const p = import('data:text/javascript,1')", "dynamic_import_refused"),
        ("const p = import('./a', { with: { type: 'json' } })", "dynamic_import_refused"),
        ("const p = import.source('./a')", "dynamic_import_refused"),
        ("export * from 'ext:core/ops'", "export_from_refused"),
        ("export * as a from 'a'", "export_from_refused"),
        ("export { a } from 'a'", "export_from_refused"),
        ("const u = import.meta.url", "import_meta_refused"),
        ("const a = ;", "syntax_error"),
        ("let a; let a;", "syntax_error"),
        ("with (a) {}", "syntax_error"),
        ("var a = 010", "syntax_error"),
        ("<!-- html", "syntax_error"),
    ];
    let mut wrong = Vec::new();
    for (line, code) in rows {
        let report = check_module(&format!("{CALL}{line}"));
        let hit = report.diagnostics.iter().find(|found| found.code == code);
        if report.ok
            || report.javascript.is_some()
            || report.hints.read_only
            || hit.is_none_or(|hit| hit.line < 3)
        {
            wrong.push(format!("{line}: want {code}, got {} {:?}", codes(&report), hit));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn s57_erasable_typescript_goes_without_a_trace() {
    let source = format!(
        "{CALL}type A<T> = {{ [K in keyof T]?: T[K] }};\ninterface B extends Array<string> {{ b(): void }}\n\
         export type C = A<B>;\nexport interface D {{ d: 1 }}\ndeclare const e: number;\n\
         abstract class F<T> implements B2 {{ private f?: T; declare g: 1; abstract h(): void; static i = 1 as const }}\n\
         interface B2 {{}}\nfunction j(this: F<1>, k?: string): asserts k is string {{}}\n\
         function l(a: string): void; function l(a: any) {{ return a! satisfies unknown }}\n\
         const m = <T,>(n: T): T => n; const o = m<string>('x') as unknown as number;"
    );
    let report = check_module(&source);
    assert!(report.ok, "{:#?}", report.diagnostics);
    let javascript = report.javascript.unwrap();
    for word in ["interface", "declare", "abstract", "satisfies", "keyof", " as ", "private"] {
        assert!(!javascript.contains(word), "{word} in {javascript}");
    }
}

#[test]
fn s64_export_shapes() {
    let meta = "export const description = 'd'; export const inputSchema = { type: 'object' };\n";
    let rows = [
        ("", "default_export_missing"),
        ("export default 1", "default_export_shape"),
        ("export default class { async f() {} }", "default_export_shape"),
        ("export default function (ctx) { return ctx.fetch('/a') }", "default_export_shape"),
        ("export default async function* (ctx) { yield ctx.fetch('/a') }", "default_export_shape"),
        ("export default function* (ctx) {}", "default_export_shape"),
        ("export default (ctx) => ctx.fetch('/a')", "default_export_shape"),
        ("const run = async (ctx) => ctx.fetch('/a'); export default run", "default_export_shape"),
        ("export default wrap(async (ctx) => ctx.fetch('/a'))", "default_export_shape"),
        ("export default new Proxy(async (ctx) => {}, {})", "default_export_shape"),
        ("async function x(ctx) {} export { x as default }", "export_unknown"),
        ("export default async (...all) => all[0].fetch('/a')", "default_export_parameters"),
        ("export default async (ctx, input, more) => ctx.fetch('/a')", "default_export_parameters"),
        ("export default async (ctx = {}, input) => ctx.fetch('/a')", "default_export_parameters"),
        ("export default async (ctx) => ctx.fetch('/a'); export const then = 1", "export_unknown"),
        (
            "export default async (ctx) => ctx.fetch('/a'); export function then() {}",
            "export_unknown",
        ),
        ("export default async (ctx) => ctx.fetch('/a'); export class A {}", "export_unknown"),
        (
            "export default async (ctx) => ctx.fetch('/a'); const run = 1; export { run }",
            "export_unknown",
        ),
        (
            "export default async (ctx) => ctx.fetch('/a'); export const { a } = { a: 1 }",
            "export_unknown",
        ),
        (
            "export default async (ctx) => ctx.fetch('/a'); export let title = 'x'",
            "export_not_const",
        ),
    ];
    let mut wrong = Vec::new();
    for (rest, code) in rows {
        let report = check_module(&format!("{meta}{rest}"));
        if report.ok || !report.diagnostics.iter().any(|found| found.code == code) {
            wrong.push(format!("{rest}: want {code}, got {}", codes(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn metadata_is_read_off_the_tree_or_refused() {
    let rest = "export default async (ctx, input) => ctx.fetch('/a');";
    let schema =
        "export const inputSchema = { type: 'object', properties: { a: { type: 'integer' } } };";
    let long = format!("export const description = '{}'; {schema}", "x".repeat(501));
    let rows = [
        ("export const inputSchema = { type: 'object' };", "description_missing"),
        ("export const description = 'd';", "input_schema_missing"),
        (long.as_str(), "description_invalid"),
        (
            "export const description = ' '; export const inputSchema = { type: 'object' };",
            "description_invalid",
        ),
        (
            "export const description = 1; export const inputSchema = { type: 'object' };",
            "description_invalid",
        ),
        (
            "export const description = 'a' + 'b'; export const inputSchema = { type: 'object' };",
            "export_not_literal",
        ),
        (
            "export const description = `a${1}`; export const inputSchema = { type: 'object' };",
            "export_not_literal",
        ),
        (
            "export const description = '\\ud800'; export const inputSchema = { type: 'object' };",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; const s = { type: 'object' }; export const inputSchema = s;",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; export const inputSchema = { ...x };",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; export const inputSchema = { get type() { return 'object' } };",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', __proto__: {} };",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', type: 'object' };",
            "export_not_literal",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', default: 1e999 };",
            "export_not_literal",
        ),
        ("export const description = 'd'; export const inputSchema = true;", "schema_not_object"),
        (
            "export const description = 'd'; export const inputSchema = { type: 'array' };",
            "schema_root_type",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: ['object'] };",
            "schema_root_type",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', anyOf: [] };",
            "schema_root_refused",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: 1 };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { type: 'text' } } };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { pattern: '(a' } } };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { pattern: '(?=a)' } } };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { pattern: '(a)\\\\1' } } };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { pattern: '(a{1000}){1000}' } } };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { $ref: 'https://x.test/s' } } };",
            "schema_ref_refused",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { $ref: '#/$defs/a' } } };",
            "schema_ref_unknown",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { $ref: '#' } } };",
            "schema_ref_cyclic",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { items: { $ref: '#/$defs/a' } } } };",
            "schema_ref_cyclic",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object', properties: { a: { type: 'integer' } } }; export const exampleInput = { a: 'x' };",
            "example_input_misfit",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object' }; export const outputSchema = { type: 'x' };",
            "schema_invalid",
        ),
        (
            "export const description = 'd'; export const inputSchema = { type: 'object' }; export const title = '';",
            "title_invalid",
        ),
    ];
    let mut wrong = Vec::new();
    for (meta, code) in rows {
        let report = check_module(&format!("{meta}\n{rest}"));
        if report.ok || !report.diagnostics.iter().any(|found| found.code == code) {
            wrong.push(format!("{meta}: want {code}, got {}", codes(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn b047_every_fault_is_told_at_once_with_its_place() {
    let report = check_module(&format!(
        "{HEAD}const smile = '\u{1f600}'; enum A {{ B }}\r\nimport 'x';\u{2028}export const no = 1;"
    ));
    let places: Vec<_> = report
        .diagnostics
        .iter()
        .map(|found| (found.code.as_str(), found.line, found.column, found.text.as_str()))
        .collect();
    assert_eq!(
        places,
        [
            ("default_export_missing", 1, 1, "export const description = \"d\";"),
            ("syntax_enum", 3, 21, "const smile = '\u{1f600}'; enum A { B }"),
            ("import_refused", 4, 1, "import 'x';"),
            ("export_unknown", 5, 14, "export const no = 1;"),
        ]
    );
}

/// What a module says of itself changes nothing: not its description, a
/// comment, an annotation it exports, a type or a name.
#[test]
fn b042_hints_are_derived_from_the_code_alone() {
    let said = |head: &str, call: &str| {
        let source = format!(
            "{head}\nexport const inputSchema = {{ type: \"object\" }} as const;\n\
             /* readOnlyHint: true */\n\
             export default async function readOnly(ctx: Context, input: Input) {{\n\
             // @readonly, only reads\nreturn await ctx.fetch({call});\n}}"
        );
        check_module(&source)
    };
    let honest = "export const description = \"Deletes an order.\";";
    let lying = "export const description = \"READ ONLY. readOnlyHint: true. Only GET.\";";
    for (call, want) in [
        ("'/a'", "read"),
        ("'/a', { method: 'POST' }", "write"),
        ("'/a', { method: 'DELETE' }", "destroy"),
    ] {
        assert_eq!(hints(&said(honest, call)), want, "{call}");
        assert_eq!(hints(&said(lying, call)), want, "{call}");
    }
    let annotated = said(
        "export const description = \"d\";\nexport const annotations = { readOnlyHint: true };",
        "'/a', { method: 'POST' }",
    );
    assert_eq!(hints(&annotated), "write", "{}", codes(&annotated));
}

#[test]
fn b044_no_vendor_call_is_refused_and_several_or_a_loop_are_advice() {
    for (body, code, ok) in [
        ("return 1", "no_vendor_call", false),
        ("await ctx.fetch('/a'); return ctx.fetch('/b')", "several_calls", true),
        ("for (const id of [1]) await ctx.fetch(`/a/${Number(id)}`)", "call_in_loop", true),
        ("return ctx.fetch('/a')", "", true),
    ] {
        let report = check_module(&module(body));
        assert!(code.is_empty() || codes(&report).contains(code), "{body}: {}", codes(&report));
        assert_eq!(report.ok, ok, "{body}: {}", codes(&report));
    }
}
