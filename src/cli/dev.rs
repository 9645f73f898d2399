//! `cambium dev FILE`: checks a module each time it is saved and, where a server
//! and an agent's token are at hand, dry-runs it with its test's input. One screen
//! says everything; with --json each round is one line.

use super::check::{MODULE_BYTES, read_module, told};
use super::credential::token;
use super::print::{Said, failure as told_failure, field};
use super::run::{failed, reported};
use super::{Context, visible};
use crate::checker::JailedChecker;
use crate::control::{Actor, Request};
use crate::failure::Failure;
use crate::typescript::TypeScript;
use cambium_engine::{CheckReport, Checker, ToolName};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often the files are looked at: below what a person notices.
const LOOK: Duration = Duration::from_millis(150);
/// Clears a terminal and goes to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Arguments of `cambium dev`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The module; its test is beside it: tool.test.json for tool.ts
    file: PathBuf,
    /// The vendor it is for; with it the module is dry-run, too, by the running server
    #[arg(long)]
    vendor: Option<String>,
    /// Id or slug of the connection [default: the vendor's only one]
    #[arg(long, requires = "vendor")]
    connection: Option<String>,
    /// A file with the token of the agent that tries it [else: the token in CAMBIUM_TOKEN]
    #[arg(long, value_name = "FILE", requires = "vendor")]
    token_file: Option<PathBuf>,
    /// A package the connection lists (may be repeated)
    #[arg(long, value_name = "PACKAGE")]
    sdk: Vec<String>,
    /// One round, and an exit code that says how it went
    #[arg(long)]
    once: bool,
}

/// What a module is tried with, and what is expected of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    input: Value,
    /// What the dry run's answer must hold; it may hold more.
    expect: Value,
}

/// Where and as whom it is tried.
struct Place {
    tool: ToolName,
    connection: Option<String>,
    token: String,
}

impl Args {
    /// Goes round until it is interrupted.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let place = match &self.vendor {
            None => None,
            Some(vendor) => Some(Place {
                tool: ToolName::new(vendor, "draft")?,
                connection: self.connection.clone(),
                token: token(self.token_file.as_deref())?,
            }),
        };
        let typescript = context.config()?.typescript;
        let typescript = typescript.as_deref().map(TypeScript::at).transpose()?;
        // Checking only reads text: a machine with a missing layer may do it.
        let checker = JailedChecker::start(false, true, typescript).await?;
        let test = self.file.with_extension("test.json");
        let mut seen = None;
        let ended = loop {
            let now = [saved(&self.file), saved(&test)];
            if seen == Some(now) {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => continue,
                    _ = tokio::signal::ctrl_c() => break Ok(Said::default()),
                }
            }
            seen = Some(now);
            let said = self.round(context, &checker, &test, place.as_ref()).await;
            if self.once {
                break said;
            }
            show(said, context.json());
        };
        checker.shutdown().await;
        ended
    }

    async fn round(
        &self,
        context: &Context,
        checker: &JailedChecker,
        test: &Path,
        place: Option<&Place>,
    ) -> Result<Said, Failure> {
        let source = read_module(&self.file)?;
        let checked = checker.check(&source, &self.sdk).await.map_err(|reason| {
            Failure::new("sandbox_unavailable", reason, "run `cambium doctor`")
        })?;
        let mut said = told(&self.file, &checked, checker.checks_types());
        let Some(place) = place else {
            if checked.ok {
                said.text.push_str(
                    "not dry-run: with --vendor VENDOR and an agent's token its reads go to the \
                     vendor and its writes are shown\n",
                );
            }
            return Ok(said);
        };
        if !checked.ok {
            return Ok(said);
        }
        let (input, expect) = match read_test(test)? {
            Some(test) => (test.input, Some(test.expect)),
            None => (example(&checked), None),
        };
        let request = Request::Try {
            actor: Actor::Token(place.token.clone()),
            tool: place.tool.clone(),
            connection: place.connection.clone(),
            source,
            input: input.clone(),
        };
        let answer = context.ask(&request).await?;
        let shown = reported(context, &answer).await;
        said.text.push_str(&format!("dry run: {}\n{shown}", field(&answer, "status")));
        said.json["dryRun"] = answer.clone();
        match expect {
            Some(expect) => {
                said.failure = unexpected(&expect, &answer);
                if said.failure.is_none() {
                    said.text.push_str("test: as expected\n");
                }
            }
            None => {
                said.failure = failed(&answer).or_else(|| threw(&answer));
                said.text.push_str(&untested(test, &input, checked.example_input.is_some()));
            }
        }
        Ok(said)
    }
}

/// Why an answer is not what its test expects.
fn unexpected(expect: &Value, answer: &Value) -> Option<Failure> {
    let why = missing(expect, answer, "answer");
    let why = why.or_else(|| answer["code"].as_str().map(str::to_owned))?;
    // What went wrong says more than where the answer differs because of it.
    if answer["status"] == "error"
        && expect["status"] != "error"
        && let Some(ended) = failed(answer)
    {
        let why = format!("the dry run ended in {}: {}", ended.code, ended.message);
        return Some(Failure { code: "test_failed".to_owned(), message: why, ..ended });
    }
    Some(Failure::new(
        "test_failed",
        format!("the dry run is not as expected: {why}"),
        "correct the module, or what its test expects",
    ))
}

/// A module that threw, which a dry run only notes.
fn threw(answer: &Value) -> Option<Failure> {
    let thrown = answer["details"]["thrown"].as_str()?;
    Some(Failure::new(
        "tool_error",
        format!("the module threw: {thrown}"),
        "correct the module, or write a test with an input that the vendor knows",
    ))
}

/// What a round without a test was tried with, and how it gets one.
fn untested(test: &Path, input: &Value, own: bool) -> String {
    let whose = if own { "the module's exampleInput" } else { "for it has no exampleInput" };
    format!(
        "no test: the input was {}, {whose}\nnext: write {{\"input\": …, \
         \"expect\": {{…}}}} to {} to try it with one of your own\n",
        visible(&input.to_string()),
        test.display()
    )
}

/// When a file was last written; `None` when it is not there.
fn saved(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

fn example(report: &CheckReport) -> Value {
    report.example_input.clone().unwrap_or_else(|| json!({}))
}

fn read_test(path: &Path) -> Result<Option<Test>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = read_module(path)?;
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Failure::new(
            "file_unreadable",
            format!("{} is not a test: {error}", path.display()),
            format!("write {{\"input\": …, \"expect\": …}}, at most {MODULE_BYTES} bytes"),
        )
    })
}

/// What of the expectation an answer lacks: objects may hold more than expected,
/// everything else is compared whole.
fn missing(expect: &Value, found: &Value, at: &str) -> Option<String> {
    match (expect, found) {
        (Value::Object(expect), Value::Object(found)) => expect.iter().find_map(|(key, value)| {
            missing(value, found.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}"))
        }),
        (Value::Array(expect), Value::Array(found)) if expect.len() == found.len() => {
            let pairs = expect.iter().zip(found).enumerate();
            { pairs }.find_map(|(index, (e, f))| missing(e, f, &format!("{at}[{index}]")))
        }
        _ if expect == found => None,
        _ => Some(format!("{at} is {found}, not {expect}")),
    }
}

/// One screen, or one line for a program.
fn show(said: Result<Said, Failure>, json: bool) {
    let mut out = std::io::stdout().lock();
    // A closed pipe is the reader's choice, not an error of ours.
    let _ = match said {
        Ok(said) if json => writeln!(out, "{}", said.json),
        Err(failure) if json => writeln!(out, "{}", json!({ "error": failure })),
        said => {
            let clear = if out.is_terminal() { CLEAR } else { "" };
            let (text, failure) = match said {
                Ok(said) => {
                    let failure = said.apart();
                    (said.text, failure)
                }
                Err(failure) => (String::new(), Some(failure)),
            };
            let failure = failure.map(|failure| told_failure(&failure)).unwrap_or_default();
            writeln!(out, "{clear}{text}{failure}")
        }
    };
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_hold_more_than_is_expected_and_never_less_or_other() {
        let answer =
            json!({ "status": "dry_run", "result": { "a": [1, 2], "b": null }, "run": "x" });
        for good in
            [json!({}), json!({ "status": "dry_run" }), json!({ "result": { "a": [1, 2] } })]
        {
            assert_eq!(missing(&good, &answer, "answer"), None, "{good}");
        }
        for (bad, at) in [
            (json!({ "status": "ok" }), "answer.status"),
            (json!({ "result": { "a": [1] } }), "answer.result.a"),
            (json!({ "result": { "a": [1, 3] } }), "answer.result.a[1]"),
            (json!({ "result": { "c": 1 } }), "answer.result.c"),
        ] {
            let said = missing(&bad, &answer, "answer").unwrap_or_default();
            assert!(said.starts_with(&format!("{at} is ")), "{said}");
        }
    }
}
