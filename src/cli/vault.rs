//! `cambium vault …`: the keys that secrets are sealed under, and whether what
//! is sealed is used.

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
    /// Use no credential until you unlock it; runs under way end at their next request
    Lock {
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Use credentials again
    Unlock {
        #[command(flatten)]
        person: PersonArgs,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Rotate { person } => {
                let who = person.credential(context).await?;
                let done = context.ask(&Request::VaultRotate { who }).await?;
                let text = format!("{} secrets are sealed anew", field(&done, "resealed"));
                Ok(Said::new(text, done))
            }
            Self::Lock { person } => lock(context, person, true).await,
            Self::Unlock { person } => lock(context, person, false).await,
        }
    }
}

async fn lock(context: &Context, person: PersonArgs, locked: bool) -> Result<Said, Failure> {
    let who = person.credential(context).await?;
    let done = context.ask(&Request::VaultLock { who, locked }).await?;
    let text = match locked {
        true => "the vault is locked: no credential is used\nnext: cambium vault unlock",
        false => "the vault is unlocked",
    };
    Ok(Said::new(text, done))
}
