//! `cambium audit …`: what was decided and sent, and whether the chain holds.
//! `verify` works without a server too: it takes the data directory's lock and
//! reads the same chain.

use super::print::{field, table, time};
use super::{Context, Said};
use crate::assemble;
use crate::control::{Request, ask};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use serde_json::Value;

/// Words of `cambium audit`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// The newest rows, oldest first
    List {
        /// Rows after this number instead
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
        /// How many rows, 1 to 1000
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Walk the chain and name the first row that does not hold
    Verify,
    /// What a changed policy would do to the requests that are recorded
    Replay(Box<super::policy::Replay>),
}

impl Args {
    /// Asks the running server; `verify` reads the directory itself if none runs.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::List { after, limit } => {
                let rows = context.ask(&Request::AuditList { after, limit }).await?;
                Ok(Said::new(listed(&rows), rows))
            }
            Self::Replay(replay) => replay.run(context).await,
            Self::Verify => {
                let config = context.config()?;
                let verified = match ask(&config.data_dir, &Request::AuditVerify {}).await {
                    Err(failure) if failure.code == "no_server" => {
                        if !config.data_dir.is_dir() {
                            return Err(failure);
                        }
                        let data_dir = DataDir::lock(&config.data_dir)?;
                        assemble::verify_audit(&data_dir).await?
                    }
                    answered => answered?,
                };
                Ok(Said::new(
                    format!("{} rows, the chain holds", field(&verified, "rows")),
                    verified,
                ))
            }
        }
    }
}

fn listed(rows: &Value) -> String {
    let rows: Vec<_> = rows.as_array().into_iter().flatten().map(line).collect();
    table(
        &["ROW", "WHEN", "KIND", "TOOL", "REQUEST", "STATUS", "DECIDED BY", "VENDOR", "PROXY"],
        &rows,
        "nothing was asked for yet",
    )
}

fn line(row: &Value) -> Vec<String> {
    let event = &row["event"];
    let spent = |name: &str| match event[name].as_u64() {
        Some(us) => format!("{}.{:02} ms", us / 1000, us % 1000 / 10),
        None => String::new(),
    };
    vec![
        field(row, "sequence"),
        time(&event["at_ms"]),
        field(event, "kind"),
        field(event, "tool"),
        format!("{} {}{}", field(event, "method"), field(event, "host"), field(event, "path")),
        field(event, "status"),
        field(event, "rule"),
        spent("vendor_us"),
        spent("proxy_us"),
    ]
}
