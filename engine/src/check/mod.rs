//! The static check: reads a module without running it and derives metadata,
//! hints, call sites, diagnostics and the JavaScript that runs. Pure; because
//! it parses hostile text, the root runs it in the jail behind [`Checker`].

use cambium_proxy::{BoxFuture, CallSite, Hints};
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
    /// Types stripped; absent when the module does not parse.
    pub javascript: Option<String>,
}

/// Runs the check where hostile text can do no harm.
pub trait Checker: Send + Sync {
    /// Checks one module. The error is a sentence for the operator.
    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<CheckReport, String>>;
}

/// Checks one module, in this process. Never panics on any input.
pub fn check_module(source: &str) -> CheckReport {
    let _ = source;
    CheckReport {
        ok: false,
        diagnostics: Vec::new(),
        title: None,
        description: None,
        input_schema: None,
        output_schema: None,
        example_input: None,
        hints: Hints { read_only: false, destructive: false },
        sites: Vec::new(),
        javascript: None,
    }
}
