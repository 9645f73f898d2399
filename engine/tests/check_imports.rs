//! What a module may import, as tables: listed packages by their plain name, and
//! what an import makes of the hints. Nothing else is imported whatever is listed.

use cambium_engine::{CheckReport, check_importing, check_module};

const HEAD: &str = "export const description = \"d\";\n\
    export const inputSchema = { type: \"object\" } as const;\n";

fn listed() -> Vec<String> {
    vec!["stripe".to_owned(), "@octokit/core".to_owned()]
}

fn module(imports: &str, body: &str) -> String {
    format!("{imports}\n{HEAD}export default async function (ctx, input) {{\n{body}\n}}")
}

fn codes(report: &CheckReport) -> Vec<&str> {
    report.diagnostics.iter().map(|found| found.code.as_str()).collect()
}

const BOUND: &str = "return new S(ctx.proxyKey, ctx.proxyBase);";

#[test]
fn b049_a_listed_package_is_imported_and_the_tool_is_a_write_on_any_path() {
    for (imports, packages) in [
        ("import S from \"stripe\";", &["stripe"][..]),
        ("import { S } from 'stripe';", &["stripe"]),
        ("import * as S from \"@octokit/core\";", &["@octokit/core"]),
        ("import S, { type Stripe } from \"stripe\";", &["stripe"]),
        ("import \"stripe\"; const S: any = 1;", &["stripe"]),
        (
            "import S from \"stripe\"; import * as O from \"@octokit/core\"; import { a } from \"stripe\";",
            &["stripe", "@octokit/core"],
        ),
    ] {
        let report = check_importing(&module(imports, BOUND), &listed());
        assert!(report.ok, "{imports}: {:?}", report.diagnostics);
        assert_eq!(report.imports, packages, "{imports}");
        assert!(!report.hints.read_only && !report.hints.destructive, "{imports}");
        let javascript = report.javascript.unwrap_or_default();
        assert!(javascript.contains("import"), "{javascript}");
        let read = format!("await ctx.fetch(\"/x\"); {BOUND}");
        let mixed = check_importing(&module(imports, &read), &listed());
        assert!(mixed.ok && !mixed.hints.read_only, "{imports}");
    }
    // A type is gone before the module runs.
    let types =
        module("import type { S } from \"stripe\";", "return (await ctx.fetch(\"/x\")).status;");
    let report = check_importing(&types, &listed());
    assert!(report.ok && report.hints.read_only && report.imports.is_empty(), "{report:?}");
    assert!(!report.javascript.unwrap_or_default().contains("import"));
}

#[test]
fn s11_to_s14_nothing_but_a_listed_package_is_imported() {
    for imports in [
        "import S from \"strip\";",
        "import S from \"stripe/lib\";",
        "import S from \"./stripe\";",
        "import S from \"Stripe\";",
        "import S from \"stripe\\0\";",
        "import S from \"npm:stripe\";",
        "import S from \"ext:core/mod.js\";",
        "import S from \"node:fs\";",
        "import S from \"\";",
        "import S from \"stripe\" with { type: \"json\" };",
        "import defer * as S from \"stripe\";",
        "import source S from \"stripe\";",
        "import type { S } from \"other\";",
    ] {
        let report = check_importing(&module(imports, BOUND), &listed());
        let refused = ["import_refused", "syntax_error"];
        assert!(codes(&report).iter().any(|code| refused.contains(code)), "{imports}: {report:?}");
        assert!(!report.ok, "{imports}");
    }
    for (source, code) in [
        (module("export * from \"stripe\";", BOUND), "export_from_refused"),
        (module("export { S } from \"stripe\";", BOUND), "export_from_refused"),
        (module("import S = require(\"stripe\");", BOUND), "syntax_import_equals"),
        (module("", "await import(\"stripe\"); return ctx.proxyBase;"), "dynamic_import_refused"),
    ] {
        let report = check_importing(&source, &listed());
        assert!(codes(&report).contains(&code), "{source}: {:?}", codes(&report));
    }
    let none = check_module(&module("import S from \"stripe\";", BOUND));
    assert!(codes(&none).contains(&"import_refused"), "nothing is listed");
    assert!(none.diagnostics[0].message.contains("imports nothing"));
}

#[test]
fn b049_an_sdk_nothing_binds_is_refused() {
    let imports = "import S from \"stripe\";";
    for body in [
        "return new S(\"sk_live\").customers.list();",
        "await ctx.fetch(\"/x\"); return S;",
        "return new S(input.proxy);",
    ] {
        let report = check_importing(&module(imports, body), &listed());
        assert_eq!(
            codes(&report).iter().filter(|code| **code == "sdk_unbound").count(),
            1,
            "{body}"
        );
    }
    for body in [
        BOUND,
        "const { proxyBase } = ctx; return new S(proxyBase);",
        "return new S({ fetch });",
        "return new S(ctx[\"proxyKey\"]);",
        "const made = (c) => new S(c.proxyKey); return made(ctx);",
    ] {
        let report = check_importing(&module(imports, body), &listed());
        assert!(report.ok, "{body}: {:?}", report.diagnostics);
        assert!(!report.hints.read_only, "{body}");
    }
    let global = check_module(&module("", "return await fetch(ctx.proxyBase + \"/a\");"));
    assert!(global.ok && !global.hints.read_only);
    let elsewhere = check_module(&module("", "return await fetch(\"https://api.example/v1\");"));
    assert!(!elsewhere.hints.read_only, "it reaches nothing, and counts as a write");
}
