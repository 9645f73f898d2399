//! `cambium tools …`: the toolbox, and the working sets as a person moves them.

use super::check::call_site;
use super::credential::{ActorArgs, PersonArgs};
use super::print::{field, table, time};
use super::publish::effect;
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::ToolName;
use serde_json::Value;
use std::fmt::Write as _;

/// Words of `cambium tools`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Every tool's current version
    List,
    /// A version's source, hints and call sites
    Source {
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
        /// Which version [default: the current one]
        #[arg(long = "version", alias = "number", value_name = "NUMBER")]
        number: Option<u32>,
    },
    /// All versions of a tool
    Versions {
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
    },
    /// Search, as the agent's find_tool does
    Find {
        /// What to look for
        query: String,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Make another version the current one; what was allowed for it asks again
    Rollback {
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
        /// The version's number
        number: u32,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Two versions, line by line
    Diff {
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
        /// From this version
        from: u32,
        /// To this one
        to: u32,
    },
    /// Calls, errors and times by tool (newest 10,000 runs), and what each agent's list costs
    Stats,
    /// Put a tool into an agent's working set
    Promote(Move),
    /// Take it out again
    Demote(Move),
}

/// Which tool moves for whom.
#[derive(clap::Args)]
pub(crate) struct Move {
    /// Vendor half
    vendor: String,
    /// Name half
    name: String,
    #[command(flatten)]
    actor: ActorArgs,
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::List => {
                let list = context.ask(&Request::ToolList {}).await?;
                Ok(Said::new(listed(&list), list))
            }
            Self::Source { vendor, name, number } => {
                let tool = ToolName::new(&vendor, &name)?;
                let found = context.ask(&Request::ToolSource { tool, version: number }).await?;
                Ok(Said::new(source(&found), found))
            }
            Self::Versions { vendor, name } => {
                let tool = ToolName::new(&vendor, &name)?;
                let list = context.ask(&Request::ToolVersions { tool }).await?;
                Ok(Said::new(versions(&list), list))
            }
            Self::Find { query, actor } => {
                let actor = actor.actor(context).await?;
                let found = context.ask(&Request::ToolFind { actor, query }).await?;
                Ok(Said::new(hits(&found), found))
            }
            Self::Rollback { vendor, name, number, person } => {
                let tool = ToolName::new(&vendor, &name)?;
                let who = person.credential(context).await?;
                let done = context.ask(&Request::Rollback { who, tool, version: number }).await?;
                let (tool, version) = (field(&done, "tool"), field(&done, "version"));
                let text = match done["unchanged"] == true {
                    true => format!("{tool} is at version {version} already"),
                    false => format!("{tool} is back at version {version}"),
                };
                Ok(Said::new(text, done))
            }
            Self::Diff { vendor, name, from, to } => {
                let tool = ToolName::new(&vendor, &name)?;
                let found = context.ask(&Request::ToolDiff { tool, from, to }).await?;
                let lines = found["diff"].as_str().unwrap_or_default().lines();
                let text = lines.map(visible).collect::<Vec<_>>().join("\n");
                Ok(Said::new(if text.is_empty() { "no difference".into() } else { text }, found))
            }
            Self::Stats => {
                let found = context.ask(&Request::Statistics {}).await?;
                Ok(Said::new(statistics(&found), found))
            }
            Self::Promote(moved) => {
                let (actor, tool) = moved.parts(context).await?;
                let done = context.ask(&Request::ToolPromote { actor, tool }).await?;
                Ok(Said::new(size(&done), done))
            }
            Self::Demote(moved) => {
                let (actor, tool) = moved.parts(context).await?;
                let done = context.ask(&Request::ToolDemote { actor, tool }).await?;
                Ok(Said::new(size(&done), done))
            }
        }
    }
}

impl Move {
    async fn parts(&self, context: &Context) -> Result<(crate::control::Actor, ToolName), Failure> {
        Ok((self.actor.actor(context).await?, ToolName::new(&self.vendor, &self.name)?))
    }
}

fn size(done: &Value) -> String {
    format!("the working set holds {} tools", field(done, "size"))
}

fn statistics(found: &Value) -> String {
    let of = |name: &str, columns: &[&str]| -> Vec<Vec<String>> {
        let rows = found[name].as_array().into_iter().flatten();
        rows.map(|row| columns.iter().map(|column| field(row, column)).collect()).collect()
    };
    let calls = of("tools", &["tool", "calls", "errors", "meanMs", "longestMs"]);
    let lists = of("lists", &["agent", "tools", "tokens"]);
    format!(
        "{}\n{}",
        table(&["TOOL", "CALLS", "ERRORS", "MEAN MS", "LONGEST MS"], &calls, "no calls yet\n"),
        table(&["AGENT", "PROMOTED", "TOKENS EACH TURN"], &lists, "no agents yet\n"),
    )
}

fn listed(list: &Value) -> String {
    let rows = list.as_array().into_iter().flatten().map(|tool| {
        vec![
            field(tool, "tool"),
            field(tool, "version"),
            effect(tool).to_owned(),
            field(tool, "description"),
        ]
    });
    let rows: Vec<_> = rows.collect();
    table(
        &["TOOL", "VERSION", "EFFECT", "THE AGENT'S ACCOUNT"],
        &rows,
        "no tools yet\nnext: cambium publish FILE --vendor V --name N",
    )
}

/// Characters of a hash that tell versions apart at a glance.
const HASH_START: usize = 12;

fn versions(list: &Value) -> String {
    let row = |version: &Value| {
        let by = match &version["publishedBy"] {
            Value::Null => "you".to_owned(),
            _ => field(version, "publishedBy"),
        };
        vec![
            field(version, "number"),
            field(version, "hash").chars().take(HASH_START).collect(),
            time(&version["publishedMs"]),
            if version["current"] == true { "yes" } else { "" }.to_owned(),
            by,
        ]
    };
    let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
    table(&["VERSION", "HASH", "PUBLISHED", "CURRENT", "BY"], &rows, "no versions")
}

fn source(found: &Value) -> String {
    let current = match found["version"] == found["current"] {
        true => "the current one".to_owned(),
        false => format!("version {} is current", field(found, "current")),
    };
    let mut text = format!(
        "{} version {} ({current}), published {}\nhash {}\n",
        field(found, "tool"),
        field(found, "version"),
        time(&found["publishedMs"]),
        field(found, "hash"),
    );
    for site in found["callSites"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "calls {}", call_site(site));
    }
    text.push('\n');
    for line in found["source"].as_str().unwrap_or_default().lines() {
        let _ = writeln!(text, "{}", visible(line));
    }
    text
}

fn hits(found: &Value) -> String {
    let rows: Vec<_> = found["hits"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|hit| {
            let promoted = if hit["promoted"] == true { "yes" } else { "no" };
            vec![
                field(hit, "wireName"),
                effect(hit).into(),
                promoted.into(),
                field(hit, "description"),
            ]
        })
        .collect();
    let nearest: Vec<&str> =
        found["nearest"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let nothing = match nearest.is_empty() {
        true => "nothing matches".to_owned(),
        false => format!("nothing matches; nearest by their words: {}", nearest.join(", ")),
    };
    table(&["TOOL", "EFFECT", "PROMOTED", "THE AGENT'S ACCOUNT"], &rows, &nothing)
}
