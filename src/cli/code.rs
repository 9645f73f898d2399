//! `cambium code`: a one-time code for a person who has shown the passphrase,
//! to decide with in another terminal without typing it there; before there is a
//! passphrase, the first code, which sets one.

use super::credential::PersonArgs;
use super::print::{field, time};
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
        if context.ask(&Request::Status {}).await?["needsSetup"] == true {
            let first = context.ask(&Request::FirstCode {}).await?;
            let (code, until) = (field(&first, "code"), time(&first["expiresMs"]));
            let text = format!(
                "{code}\nIt sets the first passphrase, once, until {until}.\nnext: open {} , or \
                 cambium setup",
                field(&first, "link"),
            );
            return Ok(Said::new(text, first));
        }
        let who = self.person.credential(context).await?;
        let made = context.ask(&Request::IssueCode { who }).await?;
        let text = format!("{}\nIt can be used once, within ten minutes.", field(&made, "code"));
        Ok(Said::new(text, made))
    }
}
