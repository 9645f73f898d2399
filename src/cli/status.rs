//! `cambium status`.

use super::print::field;
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;

/// Arguments of `cambium status`.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    /// Asks the running server where it listens.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let status = context.ask(&Request::Status {}).await?;
        let text = format!(
            "cambium {} runs as process {}\nconsole  {}\nMCP      {}/mcp\ndata     {}",
            field(&status, "version"),
            field(&status, "pid"),
            field(&status, "url"),
            field(&status, "url"),
            field(&status, "dataDir"),
        );
        let next = if status["needsSetup"] == true { "\nnext: cambium setup" } else { "" };
        Ok(Said::new(text + next, status))
    }
}
