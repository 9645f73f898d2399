//! `cambium export` and `cambium import`: tools as files, one module each, named
//! after the tool, and for an agent its working set beside them. What is
//! imported is published as a person's: checked anew, and asked about anew.

use super::credential::ActorArgs;
use super::print::field;
use super::{Context, Said};
use crate::control::{Actor, Request};
use crate::failure::Failure;
use cambium_engine::ToolName;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file that names an agent's promoted tools.
const SET_FILE: &str = "working-set.json";
/// Largest file read, bytes; the check refuses less.
const FILE_BYTES: u64 = 1024 * 1024;

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

/// Arguments of `cambium import`.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// A directory that `cambium export` wrote, or of modules named VENDOR__NAME.ts
    directory: PathBuf,
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
                let list = context.ask(&Request::ToolList {}).await?;
                for tool in list.as_array().into_iter().flatten() {
                    names.push(ToolName::parse(&field(tool, "tool"))?);
                }
            }
        }
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| unwritten(&self.directory, &error))?;
        let mut written = Vec::new();
        for tool in &names {
            let asked = Request::ToolSource { tool: tool.clone(), version: None };
            let found = context.ask(&asked).await?;
            let path = self.directory.join(format!("{tool}.ts"));
            write_new(&path, found["source"].as_str().unwrap_or_default())?;
            written.push(path.display().to_string());
        }
        if self.agent.is_some() {
            let promoted: Vec<String> = names.iter().map(ToString::to_string).collect();
            let path = self.directory.join(SET_FILE);
            write_new(&path, &format!("{:#}\n", json!({ "promoted": promoted })))?;
            written.push(path.display().to_string());
        }
        let text = format!("{} files written to {}", written.len(), self.directory.display());
        Ok(Said::new(text, json!({ "files": written })))
    }
}

impl Import {
    /// Publishes each module and promotes what the working set names.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let mut modules = Vec::new();
        let entries = std::fs::read_dir(&self.directory);
        for entry in entries.map_err(|error| unread(&self.directory, &error))? {
            let path = entry.map_err(|error| unread(&self.directory, &error))?.path();
            if path.extension().is_some_and(|end| end == "ts") {
                let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                modules.push((ToolName::parse(stem)?, read(&path)?));
            }
        }
        modules.sort_by_cached_key(|(tool, _)| tool.to_string());
        let promoted = match self.no_promote {
            true => Vec::new(),
            false => working_set(&self.directory)?,
        };
        let mut published = Vec::new();
        for (tool, source) in modules {
            let request =
                Request::Publish { tool: tool.clone(), connection: None, source, agent: None };
            let done = context.ask(&request).await.map_err(|mut failure| {
                failure.message = format!("{tool}: {}", failure.message);
                failure
            })?;
            published.push(done);
        }
        for tool in &promoted {
            let actor: Actor = self.actor.actor()?;
            context.ask(&Request::ToolPromote { actor, tool: tool.clone() }).await?;
        }
        let text = format!("{} published, {} promoted", published.len(), promoted.len());
        Ok(Said::new(text, json!({ "published": published, "promoted": promoted.len() })))
    }
}

fn working_set(directory: &Path) -> Result<Vec<ToolName>, Failure> {
    let path = directory.join(SET_FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let wrong = || {
        Failure::new(
            "file_invalid",
            format!("{} is not {{\"promoted\": [\"vendor__name\", …]}}", path.display()),
            "correct it, or pass --no-promote",
        )
    };
    let set: Value = serde_json::from_str(&read(&path)?).map_err(|_| wrong())?;
    let names = set["promoted"].as_array().ok_or_else(wrong)?;
    let parse = |name: &Value| Ok(ToolName::parse(name.as_str().ok_or_else(wrong)?)?);
    names.iter().map(parse).collect()
}

fn read(path: &Path) -> Result<String, Failure> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| unread(path, &error))?;
    file.take(FILE_BYTES).read_to_string(&mut text).map_err(|error| unread(path, &error))?;
    Ok(text)
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
