//! `cambium runs …`: how runs ended, with everything the server saw of their
//! processes. The agent was told one sentence.

use super::print::{field, table, time};
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;

/// How far back a run is looked for.
const LOOKED_BACK: u32 = 1_000;

/// Words of `cambium runs`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// The newest runs, newest first
    List {
        /// How many, 1 to 1000
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// One of the newest 1000 runs with what was seen of its end
    Show {
        /// The id an answer carries as `run`
        run: String,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::List { limit } => {
                let rows = context.ask(&Request::RunList { run: None, limit }).await?;
                let lines: Vec<_> = rows.as_array().into_iter().flatten().map(line).collect();
                let head = ["RUN", "BEGUN", "TOOL", "OUTCOME", "ENDED BY", "CPU ms", "PEAK MiB"];
                Ok(Said::new(table(&head, &lines, "nothing ran yet"), rows))
            }
            Self::Show { run } => {
                let asked = Request::RunList { run: Some(run.clone()), limit: LOOKED_BACK };
                let rows = context.ask(&asked).await?;
                match rows.as_array().and_then(|rows| rows.first()) {
                    Some(row) => Ok(Said::new(shown(row), row.clone())),
                    None => Err(Failure::new(
                        "run_not_found",
                        format!("no run `{run}` among the newest {LOOKED_BACK}"),
                        "take an id of `cambium runs list`",
                    )),
                }
            }
        }
    }
}

fn line(row: &Value) -> Vec<String> {
    let seen = &row["evidence"];
    vec![
        field(row, "run"),
        time(&row["begunMs"]),
        field(row, "tool"),
        field(row, "outcome"),
        ended_by(seen),
        field(seen, "cpuMs"),
        seen["maxRss"].as_u64().map_or_else(String::new, |bytes| (bytes >> 20).to_string()),
    ]
}

/// Who ended the process, in a reader's words.
fn ended_by(seen: &Value) -> String {
    match seen["endedBy"].as_str() {
        Some("us") => "cambium".to_owned(),
        _ => field(seen, "endedBy"),
    }
}

/// Every field on a line of its own, the evidence after the run.
fn shown(row: &Value) -> String {
    let fields = |value: &Value| -> Vec<Vec<String>> {
        let names = value.as_object().into_iter().flatten().map(|(name, _)| name);
        let shown = names.filter(|name| *name != "evidence" && !value[*name].is_null());
        let told = |name: &String| match name.strip_suffix("Ms") {
            // A moment; how long something took has the same ending, and stays.
            Some(of) if ["begun", "ended"].contains(&of) => vec![of.to_owned(), time(&value[name])],
            _ if name == "endedBy" => vec![name.clone(), ended_by(value)],
            _ => vec![name.clone(), field(value, name)],
        };
        shown.map(told).collect()
    };
    let mut lines = fields(row);
    lines.extend(fields(&row["evidence"]));
    table(&["WHAT", "VALUE"], &lines, "")
}
