//! `cambium approvals …`: the questions to a person, shown with the exact
//! request, and the answers, which take a person's credential.

use super::check::call_site;
use super::credential::PersonArgs;
use super::print::{field, table, time};
use super::run::done;
use super::{Context, Said, visible};
use crate::control::Request;
use crate::failure::Failure;
use cambium_engine::ToolName;
use cambium_proxy::Answer;
use serde_json::Value;
use std::fmt::Write as _;

/// Words of `cambium approvals`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Open questions, then the newest settled ones
    List {
        /// Only the open ones
        #[arg(long)]
        open: bool,
    },
    /// Show each question as it comes, until you end it
    Watch {
        /// End after the first one
        #[arg(long)]
        first: bool,
    },
    /// Every yes and no of yours that stands, and each once not used yet
    Standing,
    /// One question with the exact request
    Show {
        /// Its id
        ask: String,
    },
    /// Let it go: --once, or --from-now-on
    Allow {
        /// Its id
        ask: String,
        /// Only exactly the request shown
        #[arg(long, conflicts_with = "from_now_on")]
        once: bool,
        /// Every request that `show` says this covers, unasked, until you withdraw it
        #[arg(long)]
        from_now_on: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Refuse the tool until you change your mind
    Deny {
        /// Its id
        ask: String,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Put the question aside: neither a yes nor a no
    Dismiss {
        /// Its id
        ask: String,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Ask you about each write of a tool, or with --off about the first again
    EveryTime {
        /// Id or name of the agent
        agent: String,
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
        /// Ask only once again
        #[arg(long)]
        off: bool,
        #[command(flatten)]
        person: PersonArgs,
    },
    /// Take back what stands for a tool of an agent
    Withdraw {
        /// Id or name of the agent
        agent: String,
        /// Vendor half
        vendor: String,
        /// Name half
        name: String,
        #[command(flatten)]
        person: PersonArgs,
    },
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::List { open } => {
                let mut list = context.ask(&Request::AskList {}).await?;
                if let (true, Some(asks)) = (open, list.as_array_mut()) {
                    asks.retain(|ask| ask["state"] == "open");
                }
                let mut text = listed(&list);
                if !open {
                    let standing = context.ask(&Request::StandingList {}).await?;
                    text = format!("{}\n\n{}", text.trim_end(), stands(&standing));
                }
                Ok(Said::new(text, list))
            }
            Self::Watch { first } => super::watch::run(context, first).await,
            Self::Standing => {
                let list = context.ask(&Request::StandingList {}).await?;
                Ok(Said::new(stands(&list), list))
            }
            Self::Show { ask } => {
                let shown = context.ask(&Request::AskShow { ask }).await?;
                Ok(Said::new(card(&shown), shown))
            }
            Self::Allow { ask, once, from_now_on, person } => {
                let answer = match (once, from_now_on) {
                    (true, _) => Answer::Once,
                    (false, true) => Answer::Standing,
                    (false, false) => return Err(how_far(&ask)),
                };
                decide(context, ask, answer, &person).await
            }
            Self::Deny { ask, person } => decide(context, ask, Answer::Deny, &person).await,
            Self::Dismiss { ask, person } => {
                let who = person.credential(context).await?;
                let shown = context.ask(&Request::AskDismiss { who, ask }).await?;
                let text = format!(
                    "{} is put aside: nothing is sent, and {} is not refused",
                    field(&shown, "id"),
                    field(&shown, "tool")
                );
                Ok(Said::new(text, shown))
            }
            Self::EveryTime { agent, vendor, name, off, person } => {
                let tool = ToolName::new(&vendor, &name)?;
                let text = match off {
                    false => format!("each write of {tool} is put to you"),
                    true => format!("the next write of {tool} is put to you, then as you answer"),
                };
                let who = person.credential(context).await?;
                let set = Request::EveryTime { who, agent, tool, on: !off };
                Ok(Said::new(text, context.ask(&set).await?))
            }
            Self::Withdraw { agent, vendor, name, person } => {
                let tool = ToolName::new(&vendor, &name)?;
                let text = format!("what stood for {tool} is withdrawn");
                let who = person.credential(context).await?;
                context.ask(&Request::Withdraw { who, agent, tool }).await?;
                Ok(done(text))
            }
        }
    }
}

async fn decide(
    context: &Context,
    ask: String,
    answer: Answer,
    person: &PersonArgs,
) -> Result<Said, Failure> {
    let who = person.credential(context).await?;
    let shown = context.ask(&Request::AskDecide { who, ask, answer }).await?;
    let mut text =
        format!("{} is {}", field(&shown, "id"), field(&shown, "state").replace('_', " "));
    let (agent, tool) = (field(&shown, "agentName"), field(&shown, "tool"));
    let back = format!("cambium approvals withdraw {agent} {}", tool.replacen("__", " ", 1));
    match shown["state"].as_str() {
        Some("denied") => {
            let _ = write!(
                text,
                "\n{tool} is now refused to {agent}, until: {back}\n`approvals dismiss` would have \
                 put only this question aside"
            );
        }
        Some("allowed_standing") => {
            let _ = write!(text, "\nnext: {back} takes it back");
        }
        _ => {}
    }
    Ok(Said::new(text, shown))
}

/// A yes for good is never what somebody gets who only left a word out.
fn how_far(ask: &str) -> Failure {
    let ask = visible(ask);
    Failure::new(
        "usage",
        "say how far your yes goes: --once or --from-now-on",
        format!(
            "cambium approvals allow {ask} --once, for exactly the request that `cambium approvals \
             show {ask}` shows; --from-now-on where it says what that would cover"
        ),
    )
}

fn listed(list: &Value) -> String {
    let rows: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .map(|ask| {
            vec![
                field(ask, "id"),
                match ask["once"].as_str() {
                    None => field(ask, "state"),
                    Some(_) => format!("{}, {}", field(ask, "state"), field(ask, "once")),
                },
                field(ask, "agentName"),
                field(ask, "tool"),
                format!(
                    "{} {}{}",
                    field(ask, "method"),
                    field(ask, "authority"),
                    field(ask, "target")
                ),
                time(&ask["expiresMs"]),
            ]
        })
        .collect();
    table(&["ASK", "STATE", "AGENT", "TOOL", "REQUEST", "UNTIL"], &rows, "nobody asks anything")
}

/// What a person said for good, and how it is taken back.
fn stands(list: &Value) -> String {
    let row = |one: &Value| {
        let answer = match one["answer"].as_str() {
            Some("deny") => "denied".to_owned(),
            Some("once") => {
                let (request, excerpt) = (field(one, "request"), field(one, "excerpt"));
                format!("once, not used yet: {request} {excerpt}")
            }
            _ => "allowed from now on".to_owned(),
        };
        vec![
            field(one, "agentName"),
            field(one, "tool"),
            answer,
            field(one, "connectionSlug"),
            time(&one["atMs"]),
        ]
    };
    let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
    let text =
        table(&["AGENT", "TOOL", "STANDS", "CONNECTION", "SINCE"], &rows, "no answer stands");
    match rows.is_empty() {
        true => text,
        false => format!(
            "{}\nnext: cambium approvals withdraw AGENT VENDOR NAME takes one back",
            text.trim_end()
        ),
    }
}

/// Method, host and path first, in our own frame; what others wrote is quoted.
pub(super) fn card(ask: &Value) -> String {
    let warning = if ask["effect"] == "destroy" { "  THIS DESTROYS" } else { "" };
    let mut text = format!(
        "{} https://{}{}{warning}\n\n",
        field(ask, "method"),
        field(ask, "authority"),
        field(ask, "target"),
    );
    for header in ask["headers"].as_array().into_iter().flatten() {
        let part = |index: usize| visible(header[index].as_str().unwrap_or_default());
        let _ = writeln!(text, "  | {}: {}", part(0), part(1));
    }
    match ask["body"].as_str() {
        Some(body) => {
            let _ = writeln!(text, "  |");
            for line in body.split('\n') {
                let _ = writeln!(text, "  | {}", visible(line));
            }
        }
        None if ask["bodyBytes"] != 0 => {
            let _ = writeln!(text, "  | (a body that is not text)");
        }
        None => {}
    }
    let _ = writeln!(
        text,
        "\nbody     {} bytes, digest {}\nagent    {}\ntool     {} version {}, the agent's account: \"{}\"\nwhy      {}\nasked    {}, open until {}\nstate    {}",
        field(ask, "bodyBytes"),
        field(ask, "digest"),
        field(ask, "agentName"),
        field(ask, "tool"),
        field(ask, "version"),
        field(ask, "description"),
        field(ask, "reason"),
        time(&ask["openedMs"]),
        time(&ask["expiresMs"]),
        field(ask, "state"),
    );
    for line in ask["diff"].as_str().into_iter().flat_map(str::lines) {
        let _ = writeln!(text, "  {}", visible(line));
    }
    if ask["canStand"] == true {
        let _ = writeln!(text, "\"from now on\" would cover, on {}:", field(ask, "connectionSlug"));
        for site in ask["callSites"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {}", call_site(site));
        }
    } else {
        let _ = writeln!(
            text,
            "only --once can be given: not every call of it can be named beforehand"
        );
    }
    let id = field(ask, "id");
    if ask["state"] == "open" {
        let stand = if ask["canStand"] == true { " (or --from-now-on)" } else { "" };
        let _ = writeln!(
            text,
            "\nnext: cambium approvals allow {id} --once{stand}, or cambium approvals deny {id}"
        );
    }
    text
}
