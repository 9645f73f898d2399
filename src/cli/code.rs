//! `cambium code`: a one-time code for a person who has shown the passphrase,
//! to decide with in another terminal without typing it there.

use super::credential::PersonArgs;
use super::print::field;
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;

/// Arguments of `cambium code`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    person: PersonArgs,
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let who = self.person.credential()?;
        let made = context.ask(&Request::IssueCode { who }).await?;
        let text = format!("{}\nIt can be used once, within ten minutes.", field(&made, "code"));
        Ok(Said::new(text, made))
    }
}
