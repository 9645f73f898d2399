//! `cambium publish FILE --vendor V --name N`, for a module or a component.

use super::check::{diagnostics, read_module};
use super::print::field;
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::{COMPONENT_BYTES, ToolName};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Arguments of `cambium publish`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The module, or a WebAssembly component; `-` reads a module from stdin
    file: PathBuf,
    /// What a component says of itself, as JSON; makes FILE a component
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Vendor half of the tool's name, kebab-case
    #[arg(long)]
    vendor: String,
    /// Name half, kebab-case
    #[arg(long)]
    name: String,
    /// Id or slug of the connection it runs on [default: the vendor's only one]
    #[arg(long)]
    connection: Option<String>,
    /// Promote it for this agent; without it nothing is promoted
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

impl Args {
    /// Publishes through the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let tool = ToolName::new(&self.vendor, &self.name)?;
        let (connection, agent) = (self.connection, self.agent);
        let done = match &self.manifest {
            None => {
                let source = read_module(&self.file)?;
                context.ask(&Request::Publish { tool, connection, source, agent }).await?
            }
            Some(manifest) => {
                let (manifest, file) = (read_module(manifest)?, component(&self.file)?);
                let bytes = file.len();
                let request =
                    Request::PublishComponent { tool, connection, manifest, agent, bytes };
                context.ask_with(&request, &file).await?
            }
        };
        let mut text = format!(
            "{} version {} {} ({}) on {}",
            field(&done, "tool"),
            field(&done, "version"),
            if done["unchanged"] == true { "is already current" } else { "published" },
            effect(&done),
            field(&done, "connection"),
        );
        if done["promoted"] == true {
            text.push_str(", promoted");
        }
        text.push('\n');
        text.push_str(&diagnostics(&done["advice"]));
        Ok(Said::new(text, done))
    }
}

/// Reads a component.
fn component(path: &Path) -> Result<Vec<u8>, Failure> {
    let refused = |reason: String| {
        Failure::new(
            "file_unreadable",
            format!("{} {reason}", path.display()),
            format!("name a WebAssembly component of at most {COMPONENT_BYTES} bytes"),
        )
    };
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| refused(format!("cannot be read: {error}")))?;
    if bytes.len() > COMPONENT_BYTES {
        return Err(refused(format!("has more than {COMPONENT_BYTES} bytes")));
    }
    Ok(bytes)
}

/// What a version may do, in one word.
pub(crate) fn effect(value: &serde_json::Value) -> &'static str {
    if value["destructiveHint"] == true {
        "destroys"
    } else if value["readOnlyHint"] == true {
        "reads"
    } else {
        "writes"
    }
}
