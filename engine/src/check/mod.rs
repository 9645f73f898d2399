//! The static check: reads a module without running it and derives metadata,
//! hints, call sites, diagnostics and the JavaScript that runs. Pure; because
//! it parses hostile text, the root runs it in the jail behind [`Checker`].

mod bounds;
mod calls;
mod emit;
mod exports;
mod findings;
mod imports;
mod literal;
mod path;
mod schema;
mod site;
mod syntax;

use crate::openapi::{DocumentFault, Drafts, Wanted};
use cambium_proxy::{BoxFuture, CallSite, Hints, MethodPattern};
use findings::Findings;
use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
pub(crate) use schema::{decoded_pointer, inlined, normalise_schema, schema_validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Publishing is refused.
    Error,
    /// Worth knowing.
    Advice,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// Error or advice.
    pub severity: Severity,
    /// Stable snake_case code.
    pub code: String,
    /// One sentence with the next step.
    pub message: String,
    /// Starts at 1.
    pub line: u32,
    /// Starts at 1, in UTF-16 units.
    pub column: u32,
    /// The quoted line, at most 200 characters.
    pub text: String,
}

impl Diagnostic {
    /// `code at line:column: message`.
    pub fn summary(&self) -> String {
        format!("{} at {}:{}: {}", self.code, self.line, self.column, self.message)
    }
}

/// What the check read off a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckReport {
    /// No diagnostic is an error.
    pub ok: bool,
    /// All findings, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// `export const title`.
    pub title: Option<String>,
    /// `export const description`.
    pub description: Option<String>,
    /// `export const inputSchema`.
    pub input_schema: Option<Value>,
    /// `export const outputSchema`.
    pub output_schema: Option<Value>,
    /// `export const exampleInput`.
    pub example_input: Option<Value>,
    /// Derived; a write where the check cannot follow.
    pub hints: Hints,
    /// Derived, in source order, without repeats.
    pub sites: Vec<CallSite>,
    /// Packages it imports, in source order, without repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// Types stripped; absent when the module does not parse.
    pub javascript: Option<String>,
}

/// Runs the check where hostile text can do no harm.
pub trait Checker: Send + Sync {
    /// Checks one module, which may import `packages`. The error is a sentence
    /// for the operator.
    fn check<'a>(
        &'a self,
        source: &'a str,
        packages: &'a [String],
    ) -> BoxFuture<'a, Result<CheckReport, String>>;

    /// Checks modules of one author, in their order; types are left out.
    fn check_all<'a>(
        &'a self,
        sources: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<CheckReport>, String>>;

    /// Reads an OpenAPI document.
    fn draft<'a>(
        &'a self,
        document: &'a [u8],
        wanted: &'a Wanted,
    ) -> BoxFuture<'a, Result<Result<Drafts, DocumentFault>, String>>;
}

/// Checks one module that may import nothing, in this process. Never panics on
/// any input.
pub fn check_module(source: &str) -> CheckReport {
    check_importing(source, &[])
}

/// Checks one module that may import `packages`, in this process. Never panics
/// on any input.
pub fn check_importing(source: &str, packages: &[String]) -> CheckReport {
    let stack = match bounds::stack(source) {
        Ok(stack) => stack,
        Err(refused) => return CheckReport::refused(source, refused),
    };
    // The parser's depth follows the source's; a thread of its own has the stack
    // for it, and keeps a fault of a dependency from becoming ours.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("check".to_owned()).stack_size(stack);
        let checked = thread
            .spawn_scoped(scope, || analyse(source, packages))
            .map(std::thread::ScopedJoinHandle::join);
        match checked {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => {
                CheckReport::failed(source, "the check failed on this module; simplify it")
            }
            Err(_) => CheckReport::failed(source, "the check found no memory to run in; try again"),
        }
    })
}

/// What [`check_bytes`] reads: the packages as a line of JSON, then the module.
pub fn check_input(source: &str, packages: &[String]) -> Vec<u8> {
    let mut input = serde_json::to_vec(packages).unwrap_or_default();
    input.push(b'\n');
    input.extend_from_slice(source.as_bytes());
    input
}

/// [`check_importing`] for a process that is handed bytes and hands bytes back:
/// [`check_input`] in, the report as JSON out. It stays on the thread it is called
/// on, since a locked process can start none: a source that recurses off its
/// stack ends that process, which is there to be ended.
pub fn check_bytes(input: &[u8]) -> Vec<u8> {
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (packages, source) = input.split_at(line);
    // Ours to write; if it is not what we write, nothing may be imported.
    let packages: Vec<String> = serde_json::from_slice(packages).unwrap_or_default();
    let report = match std::str::from_utf8(source.get(1..).unwrap_or_default()) {
        Ok(source) => match bounds::stack(source) {
            Ok(_) => analyse(source, &packages),
            Err(refused) => CheckReport::refused(source, refused),
        },
        Err(wrong) => {
            let mut findings = Findings::new("");
            let at = wrong.valid_up_to();
            findings.error(
                0,
                "source_not_utf8",
                format!("byte {at} is not UTF-8; save the module as UTF-8"),
            );
            CheckReport::unread(findings)
        }
    };
    serde_json::to_vec(&report).unwrap_or_default()
}

/// [`check_bytes`] for many modules: a JSON list of texts in, a JSON list of
/// reports out.
pub fn check_all_bytes(input: &[u8]) -> Vec<u8> {
    let sources: Vec<String> = serde_json::from_slice(input).unwrap_or_default();
    let report = |source: &String| match bounds::stack(source) {
        Ok(_) => analyse(source, &[]),
        Err(refused) => CheckReport::refused(source, refused),
    };
    let reports: Vec<CheckReport> = sources.iter().map(report).collect();
    serde_json::to_vec(&reports).unwrap_or_default()
}

impl CheckReport {
    fn refused(source: &str, refused: bounds::Refused) -> Self {
        let mut findings = Findings::new(source);
        findings.error(refused.offset, refused.code, refused.message);
        Self::unread(findings)
    }

    fn unread(findings: Findings<'_>) -> Self {
        Self {
            ok: !findings.has_errors(),
            diagnostics: findings.into_diagnostics(),
            title: None,
            description: None,
            input_schema: None,
            output_schema: None,
            example_input: None,
            hints: Hints { read_only: false, destructive: false },
            sites: Vec::new(),
            imports: Vec::new(),
            javascript: None,
        }
    }

    /// The report of a check that gave no answer on this module.
    pub fn failed(source: &str, message: &str) -> Self {
        let mut findings = Findings::new(source);
        findings.error(0, "check_failed", message);
        Self::unread(findings)
    }
}

fn analyse(source: &str, packages: &[String]) -> CheckReport {
    let mut findings = Findings::new(source);
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts()).parse();
    let parses = !parsed.panicked && parsed.diagnostics.is_empty();
    if !parses {
        match syntax::jsx(source) {
            Some(offset) => findings.error(
                offset,
                "syntax_jsx",
                "JSX is not erasable; build the value with plain code",
            ),
            None => syntax_errors(
                parsed.diagnostics.iter().map(|fault| {
                    (fault.labels.first().map_or(0, |at| at.offset()), fault.message.to_string())
                }),
                &mut findings,
            ),
        }
    }
    let program = allocator.alloc(parsed.program);
    let built = SemanticBuilder::new_compiler().with_build_nodes(true).build(program);
    let semantic = built.semantic;
    syntax::restrict(semantic.nodes(), &mut findings);
    imports::restrict(semantic.nodes(), packages, &mut findings);
    if !parses {
        // Of half a module, nothing more can be said.
        if !findings.has_errors() {
            findings.error(0, "syntax_error", "the module does not parse");
        }
        return CheckReport::unread(findings);
    }
    syntax_errors(
        built.diagnostics.iter().map(|fault| {
            (fault.labels.first().map_or(0, |at| at.offset()), fault.message.to_string())
        }),
        &mut findings,
    );
    let readable = !findings.has_errors();
    let metadata = exports::read(program, semantic.scoping(), &mut findings);
    let mut sites = calls::derive(program, &semantic, &mut findings);
    syntax::hosts(semantic.nodes(), &mut findings);
    if sites.is_empty() && exports::Entry::of(program).is_some() {
        findings.error(
            0,
            "no_vendor_call",
            "the tool never calls its vendor; call `ctx.fetch(path, init)`",
        );
    }
    // Of code that is no erasable TypeScript, nothing said about calls need hold
    // for what would run: it gets its diagnostics and nothing else.
    let mut javascript = None;
    let mut imported = Vec::new();
    if readable {
        imported = imports::packages(semantic.nodes());
        imports::bound(&semantic, &mut findings);
        javascript = emitted(source, &sites, &imported, &mut findings);
    } else {
        sites.clear();
    }
    CheckReport {
        ok: !findings.has_errors(),
        title: metadata.title,
        description: metadata.description,
        input_schema: metadata.input_schema,
        output_schema: metadata.output_schema,
        example_input: metadata.example_input,
        hints: hints(&sites),
        sites,
        imports: imported,
        javascript,
        diagnostics: findings.into_diagnostics(),
    }
}

/// Read-only when every call is GET or HEAD, destructive when DELETE is used.
fn hints(sites: &[CallSite]) -> Hints {
    let is = |site: &CallSite, names: &[&str]| match &site.method {
        MethodPattern::Exactly(method) => names.contains(&method.as_str()),
        MethodPattern::Any => false,
    };
    Hints {
        read_only: !sites.is_empty() && sites.iter().all(|site| is(site, &["GET", "HEAD"])),
        destructive: sites.iter().any(|site| is(site, &["DELETE"])),
    }
}

/// The JavaScript that will run, read again: what was derived from the source
/// must hold for it too, so that a fault of the printer cannot make a reader of
/// a writer.
fn emitted(
    source: &str,
    sites: &[CallSite],
    imported: &[String],
    findings: &mut Findings<'_>,
) -> Option<String> {
    let javascript = match emit::javascript(source) {
        Ok(javascript) => javascript,
        Err(reason) => {
            findings.error(0, "emit_failed", format!("the types cannot be stripped: {reason}"));
            return None;
        }
    };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &javascript, SourceType::mjs()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        findings.error(0, "emit_failed", "the types cannot be stripped; simplify the module");
        return None;
    }
    let program = allocator.alloc(parsed.program);
    let semantic = SemanticBuilder::new().with_build_nodes(true).build(program).semantic;
    let again = calls::derive(program, &semantic, &mut Findings::new(&javascript));
    if again != sites || imports::packages(semantic.nodes()) != imported {
        findings.error(
            0,
            "emit_failed",
            "the stripped module calls otherwise than the source; simplify it",
        );
        return None;
    }
    Some(javascript)
}

/// The parser's and the scope analysis' own findings.
fn syntax_errors(faults: impl Iterator<Item = (u32, String)>, findings: &mut Findings<'_>) {
    for (offset, message) in faults {
        findings.error(offset, "syntax_error", message);
    }
}
