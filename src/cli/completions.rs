//! `cambium completions SHELL`.

use super::{Cli, Said};
use crate::failure::Failure;
use clap::CommandFactory;
use serde_json::json;

/// Arguments of `cambium completions`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

impl Args {
    /// Prints the script.
    pub(crate) fn run(self) -> Result<Said, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "cambium", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Ok(Said { json: json!({ "script": script }), text: script, failure: None })
    }
}
