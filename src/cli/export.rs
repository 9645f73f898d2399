//! `cambium export` and `cambium import DIRECTORY`: tools as files, one module
//! each, named after the tool, and for an agent its working set beside them. What
//! is imported is published as a person's: checked anew, and asked about anew.
//! Either is done whole or not begun: what can be known beforehand is looked at
//! before the first file or version is written.

use super::check::read_module;
use super::credential::ActorArgs;
use super::print::field;
use super::{Context, Said};
use crate::checker::JailedChecker;
use crate::control::{Actor, Request};
use crate::failure::Failure;
use cambium_engine::{Checker as _, Diagnostic, Severity, ToolName};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file that names an agent's promoted tools.
const SET_FILE: &str = "working-set.json";
/// Arguments of `cambium export`.
#[derive(clap::Args)]
pub(crate) struct Export {
    /// An empty or new directory
    directory: PathBuf,
    /// One tool only, as VENDOR__NAME
    #[arg(long, value_name = "TOOL", conflicts_with = "agent")]
    tool: Option<String>,
    /// The working set of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// Arguments of `cambium import DIRECTORY`.
#[derive(clap::Args)]
pub(crate) struct Folder {
    /// A directory that `cambium export` wrote, or of modules named VENDOR__NAME.ts
    #[arg(required = true)]
    directory: Option<PathBuf>,
    /// Promote the tools its working set names for this agent
    #[command(flatten)]
    actor: ActorArgs,
    /// Publish only, promote nothing
    #[arg(long)]
    no_promote: bool,
}

impl Export {
    /// Reads from the running server and writes files.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let list = context.ask(&Request::ToolList {}).await?;
        let list: Vec<_> = list.as_array().into_iter().flatten().collect();
        let mut names = Vec::new();
        match (&self.tool, &self.agent) {
            (Some(tool), _) => names.push(ToolName::parse(tool)?),
            (None, Some(agent)) => {
                let shown = context.ask(&Request::AgentShow { agent: agent.clone() }).await?;
                for entry in shown["workingSet"].as_array().into_iter().flatten() {
                    let tool = &entry["tool"];
                    names.push(ToolName::new(&field(tool, "vendor"), &field(tool, "name"))?);
                }
            }
            (None, None) => {
                for tool in &list {
                    names.push(ToolName::parse(&field(tool, "tool"))?);
                }
            }
        }
        // A component is a file its author has; what is kept here is not read out.
        let component = |name: &ToolName| {
            let name = name.to_string();
            list.iter().any(|tool| tool["tool"] == name && tool["kind"] == "component")
        };
        let (components, names): (Vec<_>, Vec<_>) = names.into_iter().partition(component);
        let mut files = Vec::new();
        for tool in &names {
            let asked = Request::ToolSource { tool: tool.clone(), version: None };
            let found = context.ask(&asked).await?;
            let source = found["source"].as_str().unwrap_or_default().to_owned();
            files.push((self.directory.join(format!("{tool}.ts")), source));
        }
        if self.agent.is_some() {
            let promoted: Vec<String> = names.iter().map(ToString::to_string).collect();
            let text = format!("{:#}\n", json!({ "promoted": promoted }));
            files.push((self.directory.join(SET_FILE), text));
        }
        empty_directory(&self.directory)?;
        let mut written = Vec::new();
        for (path, text) in &files {
            write_new(path, text)?;
            written.push(path.display().to_string());
        }
        let files = if written.len() == 1 { "file" } else { "files" };
        let mut text = format!("{} {files} written to {}", written.len(), self.directory.display());
        let left: Vec<String> = components.iter().map(ToString::to_string).collect();
        if !left.is_empty() {
            text = format!("{text}; components are not exported: {}", left.join(", "));
        }
        Ok(Said::new(text, json!({ "files": written, "notExported": left })))
    }
}

impl Folder {
    /// Publishes each module and promotes what the working set names.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let directory = self.directory.unwrap_or_default();
        let mut modules = Vec::new();
        let entries = std::fs::read_dir(&directory);
        for entry in entries.map_err(|error| unread(&directory, &error))? {
            let path = entry.map_err(|error| unread(&directory, &error))?.path();
            if path.extension().is_some_and(|end| end == "ts") {
                let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                let tool = ToolName::parse(stem)?;
                regular(&path)?;
                modules.push((tool, read_module(&path)?));
            }
        }
        modules.sort_by_cached_key(|(tool, _)| tool.to_string());
        let promoted = match self.no_promote {
            true => Vec::new(),
            false => working_set(&directory)?,
        };
        let actor: Option<Actor> = match promoted.is_empty() {
            true => None,
            false => Some(self.actor.actor(context).await?),
        };
        let connections = context.ask(&Request::ConnectionList {}).await?;
        check(&modules, &connections).await?;
        let mut published = Vec::new();
        for (tool, source) in modules {
            let request =
                Request::Publish { tool: tool.clone(), connection: None, source, agent: None };
            let done = context.ask(&request).await.map_err(|failure| {
                about(&tool, failure, &format!("{} were published before", published.len()))
            })?;
            published.push(done);
        }
        for (done, tool) in promoted.iter().enumerate() {
            let Some(actor) = actor.clone() else { break };
            let promote = Request::ToolPromote { actor, tool: tool.clone() };
            context.ask(&promote).await.map_err(|failure| {
                let before = format!("{} were published and {done} promoted", published.len());
                about(tool, failure, &before)
            })?;
        }
        let unchanged = published.iter().filter(|done| done["unchanged"] == true).count();
        let text = format!(
            "{} published, {unchanged} were current already, {} promoted",
            published.len() - unchanged,
            promoted.len()
        );
        let json = json!({
            "published": published, "unchanged": unchanged, "promoted": promoted.len(),
        });
        Ok(Said::new(text, json))
    }
}

/// Checks every module here, before the server publishes the first.
async fn check(modules: &[(ToolName, String)], connections: &Value) -> Result<(), Failure> {
    // A vendor's tools may import what any connection of it lists; which of them
    // a tool gets is the server's to say.
    let packages = |vendor: &str| -> Vec<String> {
        let of = connections.as_array().into_iter().flatten();
        of.filter(|connection| connection["vendor"] == vendor)
            .filter_map(|connection| connection["overrides"]["sdks"].as_array())
            .flatten()
            .map(|sdk| field(sdk, "name"))
            .collect()
    };
    let checker = JailedChecker::start(false, true, None).await?;
    let mut faults = Vec::new();
    for (tool, source) in modules {
        match checker.check(source, &packages(tool.vendor())).await {
            Ok(report) if report.ok => {}
            Ok(report) => {
                let first =
                    report.diagnostics.iter().find(|found| found.severity == Severity::Error);
                let said = first.map(Diagnostic::summary).unwrap_or_default();
                faults.push(format!("{tool}: {said}"));
            }
            Err(reason) => faults.push(format!("{tool}: {reason}")),
        }
    }
    checker.shutdown().await;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(
            "check_failed",
            format!("nothing was published: {}", faults.join("; ")),
            "correct these modules, or take them out of the directory",
        )),
    }
}

fn about(tool: &ToolName, mut failure: Failure, before: &str) -> Failure {
    failure.message = format!("{tool}: {}; {before}", failure.message);
    failure
}

/// Makes the directory. One that holds something is refused: a half of another
/// export in it would be imported too.
fn empty_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| unwritten(path, &error))?;
    let mut entries = std::fs::read_dir(path).map_err(|error| unwritten(path, &error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Failure::new(
            "file_unwritable",
            format!("{} is not empty", path.display()),
            "name an empty or new directory",
        )),
    }
}

/// A link may lead out of the directory, and a pipe never ends.
fn regular(path: &Path) -> Result<(), Failure> {
    let found = std::fs::symlink_metadata(path).map_err(|error| unread(path, &error))?;
    match found.is_file() {
        true => Ok(()),
        false => Err(Failure::new(
            "file_unreadable",
            format!("{} is not a regular file", path.display()),
            "put the file itself into the directory",
        )),
    }
}

fn working_set(directory: &Path) -> Result<Vec<ToolName>, Failure> {
    let path = directory.join(SET_FILE);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(Vec::new());
    }
    regular(&path)?;
    let wrong = || {
        Failure::new(
            "file_invalid",
            format!("{} is not {{\"promoted\": [\"vendor__name\", …]}}", path.display()),
            "correct it, or pass --no-promote",
        )
    };
    let set: Value = serde_json::from_str(&read_module(&path)?).map_err(|_| wrong())?;
    let names = set["promoted"].as_array().ok_or_else(wrong)?;
    let parse = |name: &Value| Ok(ToolName::parse(name.as_str().ok_or_else(wrong)?)?);
    names.iter().map(parse).collect()
}

/// Never over a file that is there.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| unwritten(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "file_unreadable",
        format!("{} cannot be read: {error}", path.display()),
        "name a directory of modules",
    )
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "file_unwritable",
        format!("{} cannot be written: {error}", path.display()),
        "name an empty or new directory",
    )
}
