//! `cambium sandbox …`: sessions for sandboxes of your own, a container whose SDK
//! is to reach one vendor without holding its credential.

use super::credential::PersonArgs;
use super::print::{field, table};
use super::run::done;
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;

/// Words of `cambium sandbox`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Open a session; prints its base URL and token, once
    Open {
        /// On behalf of this agent
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Id or slug
        #[arg(long)]
        connection: String,
        /// Let it write too: each write asks you; without it a write ends the session
        #[arg(long)]
        write: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// The runs of open sessions
    List,
    /// Close one; its token is worth nothing from then on
    Close {
        /// The run `open` printed
        run: String,
        #[command(flatten)]
        person: PersonArgs,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Open { agent, connection, write, person } => {
                let who = person.credential(context).await?;
                let request = Request::SandboxOpen { who, agent, connection, write };
                let made = context.ask(&request).await?;
                let socket = match made["socket"].as_str() {
                    Some(path) => format!("\n  socket   {}", visible(path)),
                    None => String::new(),
                };
                let text = format!(
                    "a session is open\n  base URL {}{socket}\n  token    {}\n  run      {}\n\
                     send the token as the vendor's bearer token or key; unused for {} minutes it \
                     ends\nnext: cambium sandbox close {}",
                    field(&made, "baseUrl"),
                    field(&made, "token"),
                    field(&made, "run"),
                    field(&made, "idleMinutes"),
                    field(&made, "run"),
                );
                Ok(Said::new(text, made))
            }
            Self::List => {
                let list = context.ask(&Request::SandboxList {}).await?;
                let runs = list.as_array().into_iter().flatten().filter_map(|run| run.as_str());
                let rows: Vec<_> = runs.map(|run| vec![visible(run)]).collect();
                Ok(Said::new(table(&["RUN"], &rows, "no session is open"), list))
            }
            Self::Close { run, person } => {
                let who = person.credential(context).await?;
                let text = format!("session {} is closed", visible(&run));
                context.ask(&Request::SandboxClose { who, run }).await?;
                Ok(done(text))
            }
        }
    }
}
