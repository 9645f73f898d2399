//! The optional type checker: TypeScript's own native compiler, run in the jail
//! on one module, the context's types and the `Input` generated from its schema.
//! What it finds is advice: the check decides what may be published, and decides
//! it the same on a machine without a type checker.

use crate::failure::Failure;
use cambium_engine::{CONTEXT_TYPES, CheckReport, Diagnostic, Severity, input_types};
use cambium_jail::{Jail, Program, ProgramLimits, Shown};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Type checks at the same time: each takes two threads and a hundred megabytes.
const AT_ONCE: usize = 2;
/// More findings than this are noise.
const FINDINGS_MAX: usize = 50;
/// A tool is checked in a tenth of a second.
const WALL: Duration = Duration::from_secs(10);
/// The module, as the type checker names it.
const MODULE: &str = "tool.ts";

/// A type checker that is there.
#[derive(Debug)]
pub(crate) struct TypeScript {
    /// The folder with `tsc` and the declarations of the language.
    folder: PathBuf,
    turns: Semaphore,
}

impl TypeScript {
    /// The one in a folder: the native package of npm's `typescript` 7, or its `lib`.
    pub(crate) fn at(folder: &Path) -> Result<Self, Failure> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let found = [folder.clone(), folder.join("lib")]
            .into_iter()
            .find(|folder| folder.join("tsc").is_file() && folder.join("lib.d.ts").is_file());
        found.map(|folder| Self { folder, turns: Semaphore::new(AT_ONCE) }).ok_or_else(|| {
            Failure::new(
                "config_invalid",
                format!("`typescript` {} holds no `tsc` and `lib.d.ts`", folder.display()),
                "name the folder of npm's @typescript/typescript-linux-x64 (or -arm64), version 7",
            )
        })
    }

    /// Adds what it finds to the report of a module that passed the check.
    pub(crate) async fn advise(
        &self,
        jail: &Jail,
        source: &str,
        report: &mut CheckReport,
    ) -> Result<(), String> {
        let _turn = self.turns.acquire().await.map_err(|error| error.to_string())?;
        let mut input = input_types(report.input_schema.as_ref());
        // Their own declarations are not here: whatever they export may be used.
        for package in &report.imports {
            input.push_str(&format!("declare module {package:?};\n"));
        }
        let end = jail.program(&self.program(source, &input), b"").await;
        let end = end.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&end.stdout);
        let found = findings(&text, source);
        // Exit codes 1 and 2 are for findings; anything else is its own failure.
        if !matches!(end.code, 0..=2) || (end.code != 0 && text.trim().is_empty()) {
            let error = String::from_utf8_lossy(&end.stderr);
            return Err(format!("it ended with {}: {}", end.code, error.trim()));
        }
        report.diagnostics.extend(found);
        report.diagnostics.sort_by_key(|found| (found.line, found.column));
        Ok(())
    }

    fn program(&self, source: &str, input: &str) -> Program {
        let exe = PathBuf::from("/ts/tsc");
        let file =
            |name: &str, text: &str| (Path::new("/tool").join(name), text.as_bytes().to_vec());
        let switches = "--noEmit --pretty false --strict --noImplicitAny false --skipLibCheck \
                        --target esnext --module esnext --moduleDetection force --lib esnext";
        let files = ["/tool/tool.ts", "/tool/cambium.d.ts", "/tool/input.d.ts"];
        Program {
            arguments: switches.split_whitespace().chain(files).map(str::to_owned).collect(),
            environment: Vec::new(),
            shown: vec![Shown { from: self.folder.clone(), at: "/ts".into() }],
            // It looks for the language's declarations beside itself.
            links: vec![("/proc/self/exe".into(), exe.clone())],
            files: vec![
                file(MODULE, source),
                file("cambium.d.ts", CONTEXT_TYPES),
                file("input.d.ts", input),
            ],
            scratch: "/work".into(),
            seeds: Vec::new(),
            limits: ProgramLimits { wall: WALL, ..ProgramLimits::default() },
            exe,
        }
    }
}

/// Reads `../tool/tool.ts(3,43): error TS2339: …`; a line that begins with a
/// space goes on with the message before it.
fn findings(text: &str, source: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for line in text.lines() {
        if line.starts_with(' ') {
            if let Some(last) = found.last_mut() {
                last.message.push(' ');
                last.message.push_str(line.trim());
            }
            continue;
        }
        if found.len() == FINDINGS_MAX {
            break;
        }
        let Some((line, column, message)) = located(line) else { continue };
        let text = source.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default();
        found.push(Diagnostic {
            severity: Severity::Advice,
            code: "type_error".to_owned(),
            message: message.to_owned(),
            line,
            column,
            text: text.chars().take(200).collect(),
        });
    }
    found
}

fn located(line: &str) -> Option<(u32, u32, &str)> {
    let (place, message) = line.split_once("): error ")?;
    let (file, position) = place.rsplit_once('(')?;
    let (row, column) = position.split_once(',')?;
    let ours = Path::new(file).file_name().is_some_and(|name| name == MODULE);
    ours.then(|| Some((row.parse().ok()?, column.parse().ok()?, message)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_with_their_place_and_continuation() {
        let text = "../tool/tool.ts(2,3): error TS2322: Type 'a'\n  is not 'b'.\n\
                    ../tool/input.d.ts(1,1): error TS1: not the module's\nerror TS5: no place\n";
        let found = findings(text, "one\ntwo\nthree");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].summary(), "type_error at 2:3: TS2322: Type 'a' is not 'b'.");
        assert_eq!(found[0].text, "two");
    }
}
