//! `cambium check FILE`: the static check in the jail, on this machine, without
//! a server.

use super::print::field;
use super::{Context, Said, init_tool};
use crate::checker::JailedChecker;
use crate::failure::Failure;
use crate::typescript::TypeScript;
use cambium_engine::{CheckReport, Checker, input_types};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest module read, bytes; the check refuses less, this only bounds memory.
pub(crate) const MODULE_BYTES: u64 = 1024 * 1024;

/// Arguments of `cambium check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The module; `-` reads stdin
    file: PathBuf,
    /// A package its connection lists (may be repeated)
    #[arg(long, value_name = "PACKAGE")]
    sdk: Vec<String>,
}

impl Args {
    /// Checks and shows hints, call sites and findings.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let source = read_module(&self.file)?;
        let typescript = context.config()?.typescript;
        let typescript = typescript.as_deref().map(TypeScript::at).transpose()?;
        // Checking only reads text: a machine with a missing layer may do it.
        let checker = JailedChecker::start(false, true, typescript).await?;
        let types = checker.checks_types();
        let checked = checker.check(&source, &self.sdk).await;
        checker.shutdown().await;
        let report = checked.map_err(|reason| {
            Failure::new("sandbox_unavailable", reason, "run `cambium doctor`")
        })?;
        Ok(told(&self.file, &report, types))
    }
}

/// Hints, call sites and findings of a module; renews the types beside it.
pub(crate) fn told(file: &Path, report: &CheckReport, types: bool) -> Said {
    let json = serde_json::to_value(report).unwrap_or_default();
    let mut text = String::new();
    if report.ok {
        init_tool::renew_types(file, &input_types(report.input_schema.as_ref()));
        let effect = match (report.hints.destructive, report.hints.read_only) {
            (true, _) => "destroys: a person is asked at its first call",
            (false, true) => "reads: nobody is asked",
            (false, false) => "writes: a person is asked at its first call",
        };
        let _ = writeln!(text, "{}", effect);
        for site in json["sites"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {}", call_site(site));
        }
    }
    text.push_str(&diagnostics(&json["diagnostics"]));
    if report.ok && !types {
        text.push_str("types were not checked: no `typescript` is configured\n");
    }
    let ok = report.ok;
    let failing = report
        .diagnostics
        .iter()
        .filter(|found| matches!(found.severity, cambium_engine::Severity::Error));
    let count = failing.count();
    let mut shown = json;
    if let Some(object) = shown.as_object_mut() {
        // The emitted code is for the worker, not for a reader.
        object.remove("javascript");
    }
    Said::new(text, shown).or_failing(ok, || {
        let mut failure = Failure::new(
            "check_failed",
            match count {
                0 | 1 => "the module does not pass the check".to_owned(),
                _ => format!("the module does not pass the check, {count} errors"),
            },
            "correct the module and check it again",
        );
        failure.details = Some(Box::new(json!(report.diagnostics)));
        failure
    })
}

impl Said {
    fn or_failing(self, ok: bool, failure: impl FnOnce() -> Failure) -> Self {
        if ok { self } else { self.failing(failure()) }
    }
}

/// Reads a module from a file or, for `-`, from stdin.
pub(crate) fn read_module(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MODULE_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(MODULE_BYTES + 1).read_to_end(&mut bytes))
    };
    let refused = |reason: String| {
        Failure::new(
            "file_unreadable",
            format!("{} {reason}", path.display()),
            "name a TypeScript module of at most 256 KiB",
        )
    };
    read.map_err(|error| refused(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MODULE_BYTES {
        return Err(refused(format!("has more than {MODULE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused("is not UTF-8".into()))
}

/// Findings, one block each: where, what, and the quoted line.
pub(crate) fn diagnostics(list: &Value) -> String {
    let mut text = String::new();
    for found in list.as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "{}[{}] {}:{}: {}\n    {}",
            field(found, "severity"),
            field(found, "code"),
            field(found, "line"),
            field(found, "column"),
            field(found, "message"),
            field(found, "text"),
        );
    }
    text
}

/// `POST /orders/{} on the host label`.
pub(crate) fn call_site(site: &Value) -> String {
    let method = match &site["method"]["exactly"] {
        Value::String(method) => super::visible(method),
        _ => "any method but DELETE".into(),
    };
    let path = match &site["path"]["template"] {
        Value::String(path) => super::visible(path),
        _ => "any path".into(),
    };
    match &site["host"] {
        Value::String(host) => format!("{method} {path} at {}", super::visible(host)),
        _ => format!("{method} {path}"),
    }
}
