//! `cambium publish FILE --vendor V --name N`.

use super::check::{diagnostics, read_module};
use super::print::field;
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::ToolName;
use std::path::PathBuf;

/// Arguments of `cambium publish`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The module; `-` reads stdin
    file: PathBuf,
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
        let source = read_module(&self.file)?;
        let request =
            Request::Publish { tool, connection: self.connection, source, agent: self.agent };
        let done = context.ask(&request).await?;
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
