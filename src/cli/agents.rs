//! `cambium agents …`: harnesses, each with its own token.

use super::credential::PersonArgs;
use super::print::{field, table, time};
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;
use std::fmt::Write as _;

/// Words of `cambium agents`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// A new agent; its token is shown once
    Create {
        /// What you call it
        name: String,
        /// Most tools in its working set, 1 to 500
        #[arg(long, default_value_t = 20)]
        cap: u32,
        /// Days after which an unused tool leaves the set, 1 to 3650
        #[arg(long, default_value_t = 21)]
        idle_days: u32,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// All agents
    List,
    /// A new token; the old one is refused from then on
    Rotate {
        /// Id or name
        agent: String,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Change what is named
    Set {
        /// Id or name
        agent: String,
        /// A new name
        #[arg(long)]
        name: Option<String>,
        /// Most tools in its working set, 1 to 500
        #[arg(long)]
        cap: Option<u32>,
        /// Days after which an unused tool leaves the set, 1 to 3650
        #[arg(long)]
        idle_days: Option<u32>,
        /// Which of your answers its harness may pass on: off, once, standing,
        /// standing-and-destructive
        #[arg(long, value_name = "SETTING")]
        in_band: Option<String>,
        /// Which authoring tools it has beside those all have: none, write-file,
        /// all (run_command and read_web_page too)
        #[arg(long, value_name = "SETTING")]
        low_level: Option<String>,
        /// A host whose pages it may read no longer (may be repeated)
        #[arg(long, value_name = "HOST")]
        forget_host: Vec<String>,
        /// Refuse its calls until resumed
        #[arg(long, conflicts_with = "resume")]
        pause: bool,
        /// Take its calls again
        #[arg(long)]
        resume: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// One agent, its working set and its history
    Show {
        /// Id or name
        agent: String,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::Create { name, cap, idle_days, person } => {
                let who = person.credential(context).await?;
                let made = context.ask(&Request::AgentCreate { who, name, cap, idle_days }).await;
                let done = made.map_err(|failure| match failure.code.as_str() {
                    "taken" => Failure {
                        next: "choose another name; if its token is lost, `cambium agents rotate \
                               NAME` makes another"
                            .to_owned(),
                        ..failure
                    },
                    _ => failure,
                })?;
                Ok(Said::new(token(&done), done))
            }
            Self::List => {
                let list = context.ask(&Request::AgentList {}).await?;
                Ok(Said::new(listed(&list), list))
            }
            Self::Rotate { agent, person } => {
                let who = person.credential(context).await?;
                let done = context.ask(&Request::AgentRotate { who, agent }).await?;
                Ok(Said::new(token(&done), done))
            }
            Self::Set {
                agent,
                name,
                cap,
                idle_days,
                in_band,
                low_level,
                forget_host,
                pause,
                resume,
                person,
            } => {
                let who = person.credential(context).await?;
                let paused = (pause || resume).then_some(pause);
                let request = Request::AgentSet {
                    who,
                    agent,
                    name,
                    cap,
                    idle_days,
                    paused,
                    in_band,
                    low_level,
                    forget_hosts: forget_host,
                };
                let done = context.ask(&request).await?;
                Ok(Said::new(listed(&Value::Array(vec![done.clone()])), done))
            }
            Self::Show { agent } => {
                let shown = context.ask(&Request::AgentShow { agent }).await?;
                Ok(Said::new(page(&shown), shown))
            }
        }
    }
}

fn token(done: &Value) -> String {
    format!(
        "agent {} ({})\ntoken {}\nThe token is not shown again. Give it to the harness as CAMBIUM_TOKEN or in a file.",
        field(&done["agent"], "name"),
        field(&done["agent"], "id"),
        field(done, "token"),
    )
}

fn listed(list: &Value) -> String {
    let rows: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .map(|agent| {
            let state = if agent["paused"] == true { "paused" } else { "active" };
            vec![
                field(agent, "name"),
                field(agent, "cap"),
                field(agent, "idleDays"),
                time(&agent["createdMs"]),
                state.to_owned(),
                field(agent, "id"),
            ]
        })
        .collect();
    table(
        &["AGENT", "CAP", "IDLE DAYS", "CREATED", "STATE", "ID"],
        &rows,
        "no agents yet\nnext: cambium agents create NAME",
    )
}

fn page(shown: &Value) -> String {
    let mut text = listed(&Value::Array(vec![shown["agent"].clone()]));
    let _ = writeln!(text, "\nlow-level  {}", field(shown, "lowLevel"));
    for host in shown["permissions"].as_array().into_iter().flatten() {
        if let Some(host) = host["host"].as_str() {
            let _ = writeln!(text, "may read   pages of {}", visible(host));
        }
    }
    let set: Vec<_> = shown["workingSet"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            vec![
                wire(&entry["tool"]),
                field(entry, "promotedBy"),
                time(&entry["promotedMs"]),
                time(&entry["lastUsedMs"]),
            ]
        })
        .collect();
    let empty = "the working set is empty";
    let _ =
        write!(text, "\n{}", table(&["TOOL", "PROMOTED BY", "SINCE", "LAST USED"], &set, empty));
    let history: Vec<_> = shown["history"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let moved = if entry["promoted"] == true { "in" } else { "out" };
            vec![time(&entry["atMs"]), moved.into(), wire(&entry["tool"]), field(entry, "cause")]
        })
        .collect();
    let _ =
        write!(text, "\n{}", table(&["WHEN", "MOVED", "TOOL", "WHY"], &history, "no history yet"));
    text
}

fn wire(tool: &Value) -> String {
    format!("{}__{}", field(tool, "vendor"), field(tool, "name"))
}
