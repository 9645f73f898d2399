//! `cambium import`: tools from a directory of modules, or with `openapi FILE`
//! from a service's OpenAPI document: each operation becomes a tool on one
//! connection, or is listed with the reason why not.

use super::credential::PersonArgs;
use super::print::{field, table};
use super::publish::effect;
use super::{Context, Said, export};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::{DOCUMENT_BYTES, DOCUMENT_BYTES_MAX};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Published tools that are listed in text; `--json` has all of them.
const LISTED: usize = 40;

/// Arguments of `cambium import`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    from: Option<From>,
    #[command(flatten)]
    folder: export::Folder,
}

#[derive(clap::Subcommand)]
enum From {
    /// From a service's OpenAPI 3.0 or 3.1 document, JSON or YAML
    Openapi(Openapi),
}

/// Arguments of `cambium import openapi`.
#[derive(clap::Args)]
struct Openapi {
    /// The document; its servers and security are not read
    file: PathBuf,
    /// Id or slug of the connection the tools run on
    #[arg(long)]
    connection: String,
    /// Operation ids, tags or "GET /path", each may end in * [default: all]
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    operations: Vec<String>,
    /// In front of every path of the document, such as /api/v3
    #[arg(long, value_name = "PATH", default_value = "")]
    base_path: String,
    /// Promote every tool for this agent; without it nothing is promoted
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Take a document of more than 5 MB, up to 48 MB
    #[arg(long)]
    large: bool,
    #[command(flatten)]
    person: PersonArgs,
}

impl Args {
    /// Publishes through the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self.from {
            None => self.folder.run(context).await,
            Some(From::Openapi(openapi)) => openapi.run(context).await,
        }
    }
}

impl Openapi {
    async fn run(self, context: &Context) -> Result<Said, Failure> {
        let document = read(&self.file, self.large)?;
        let request = Request::ImportOpenapi {
            who: self.person.credential(context).await?,
            connection: self.connection,
            base_path: self.base_path,
            operations: self.operations,
            agent: self.agent,
            large: self.large,
            bytes: document.len(),
        };
        let done = context.ask_with(&request, &document).await?;
        Ok(Said::new(report(&done), done))
    }
}

/// What became of the operations: counted, then the refused, then the tools.
fn report(done: &Value) -> String {
    let all: Vec<&Value> = done["tools"].as_array().into_iter().flatten().collect();
    let (refused, tools): (Vec<&Value>, Vec<&Value>) =
        all.into_iter().partition(|tool| !tool["refused"].is_null());
    let unchanged = tools.iter().filter(|tool| tool["unchanged"] == true).count();
    let mut text = format!(
        "{} tools of {} on {}: {} published, {unchanged} unchanged, {} operations refused\n\
         document pinned, SHA-256 {}\n",
        tools.len(),
        field(done, "title"),
        field(done, "connection"),
        tools.len() - unchanged,
        refused.len(),
        field(done, "digest"),
    );
    if !done["serversPath"].is_null() {
        let path = field(done, "serversPath");
        let _ = writeln!(
            text,
            "the document's servers begin with {path}; if calls answer 404, import with --base-path {path}"
        );
    }
    let row = |tool: &&Value, last: String| vec![field(tool, "operation"), last];
    if !refused.is_empty() {
        let rows: Vec<_> = refused.iter().map(|tool| row(tool, field(tool, "refused"))).collect();
        text.push_str(&table(&["REFUSED", "WHY"], &rows, ""));
    }
    let listed = tools
        .iter()
        .take(LISTED)
        .map(|tool| vec![field(tool, "tool"), effect(tool).to_owned(), field(tool, "operation")]);
    text.push_str(&table(&["TOOL", "EFFECT", "OPERATION"], &listed.collect::<Vec<_>>(), ""));
    if tools.len() > LISTED {
        let _ = writeln!(text, "and {} more; --json lists them all", tools.len() - LISTED);
    }
    text
}

fn read(path: &Path, large: bool) -> Result<Vec<u8>, Failure> {
    let most = if large { DOCUMENT_BYTES_MAX } else { DOCUMENT_BYTES };
    let unread = |reason: String, next: &str| {
        Failure::new("file_unreadable", format!("{} {reason}", path.display()), next)
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| unread(format!("cannot be read: {error}"), "name an OpenAPI document"))?;
    if bytes.len() > most {
        let next = if large { "choose a smaller document" } else { "pass --large to take it" };
        return Err(unread(format!("has more than {most} bytes"), next));
    }
    Ok(bytes)
}
