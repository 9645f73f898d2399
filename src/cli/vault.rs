//! `cambium vault …`: the keys that secrets are sealed under.

use super::credential::PersonArgs;
use super::print::field;
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;

/// Words of `cambium vault`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Put a new sealing key in place and seal every secret anew
    Rotate {
        #[command(flatten)]
        person: PersonArgs,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Rotate { person } => {
                let who = person.credential()?;
                let done = context.ask(&Request::VaultRotate { who }).await?;
                let text = format!("{} secrets are sealed anew", field(&done, "resealed"));
                Ok(Said::new(text, done))
            }
        }
    }
}
