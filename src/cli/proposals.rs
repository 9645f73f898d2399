//! `cambium connections proposals …`: what agents ask a person to connect, and
//! the answers. A host to be confirmed is written out by the person; a secret
//! comes by stdin or the terminal.

use super::credential::{PersonArgs, secret};
use super::print::{field, table, time};
use super::run::done;
use super::{Context, Said, visible};
use crate::control::{Accept, Request};
use crate::failure::Failure;
use cambium_proxy::Scheme;
use serde_json::Value;
use std::fmt::Write as _;

/// Words of `cambium connections proposals`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// What waits for you, then what you answered
    List,
    /// One, with each host and what to look at twice
    Show {
        /// Its id
        id: String,
    },
    /// Do what it asks for; the secret is read from stdin
    Accept(Box<AcceptArgs>),
    /// Say no: the agent is told, and told again for a day
    Refuse {
        /// Its id
        id: String,
        #[command(flatten)]
        person: PersonArgs,
    },
}

/// Arguments of `cambium connections proposals accept`.
#[derive(clap::Args)]
pub(crate) struct AcceptArgs {
    /// Its id
    id: String,
    /// A host you confirm; each one that `show` lists, written out (may be repeated)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Its slug [default: the vendor, or the next free name]
    #[arg(long)]
    slug: Option<String>,
    /// What you call it
    #[arg(long)]
    display_name: Option<String>,
    /// For this agent too (may be repeated) [default: the one that asks]
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// For all of your agents
    #[arg(long, conflicts_with = "agent")]
    all_agents: bool,
    /// The credential is of the same account: what was allowed stays
    #[arg(long)]
    same_account: bool,
    /// With --passphrase-stdin the passphrase is stdin's first line, the secret the rest
    #[command(flatten)]
    person: PersonArgs,
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        match self {
            Self::List => {
                let list = context.ask(&Request::ProposalList {}).await?;
                Ok(Said::new(listed(&list), list))
            }
            Self::Show { id } => {
                let shown = found(context, &id).await?;
                Ok(Said::new(card(&shown), shown))
            }
            Self::Accept(args) => {
                let who = args.person.credential(context).await?;
                let shown = found(context, &args.id).await?;
                let secret =
                    if takes_secret(&shown["wants"]) { Some(secret("Secret: ")?) } else { None };
                let accept = Accept {
                    slug: args.slug,
                    display_name: args.display_name,
                    agents: args.agent,
                    all_agents: args.all_agents,
                    hosts: args.host,
                    same_account: args.same_account,
                };
                let request = Request::ProposalAccept { who, id: args.id, accept, secret };
                let answered = context.ask(&request).await?;
                match shown["wants"]["kind"] == "permission" {
                    true => Ok(done(format!("{} is allowed", subject(&shown["wants"])))),
                    false => Ok(made(answered)),
                }
            }
            Self::Refuse { id, person } => {
                let who = person.credential(context).await?;
                let text = format!("proposal {} is refused", visible(&id));
                context.ask(&Request::ProposalRefuse { who, id }).await?;
                Ok(done(text))
            }
        }
    }
}

/// A connection that was made or changed, and the sign-in it waits for.
pub(super) fn made(connection: Value) -> Said {
    let slug = field(&connection, "slug");
    let text = match connection["authorize"].as_str() {
        Some(link) => format!("connection {slug} waits for you\nnext: sign in at {link}"),
        None => stored(&slug),
    };
    Said::new(text, connection)
}

/// A connection that is ready: nothing is sent before a tool asks for it.
pub(super) fn stored(slug: &str) -> String {
    format!(
        "connection {slug} is stored; the vendor was not asked yet\nnext: cambium publish FILE --vendor {slug} \
         --name NAME --agent AGENT"
    )
}

async fn found(context: &Context, id: &str) -> Result<Value, Failure> {
    let list = context.ask(&Request::ProposalList {}).await?;
    let mut all = list.as_array().cloned().unwrap_or_default().into_iter();
    all.find(|one| one["id"] == id).ok_or_else(|| {
        Failure::new(
            "proposal_not_found",
            format!("no proposal `{}`", visible(id)),
            "list them with `cambium connections proposals list`",
        )
    })
}

fn takes_secret(wants: &Value) -> bool {
    let read = |scheme: &Value| serde_json::from_value::<Scheme>(scheme.clone());
    match wants["kind"].as_str() {
        Some("credential") => read(&wants["connection"]["scheme"])
            .is_ok_and(|s| s.takes_secret() && !s.needs_sign_in()),
        Some("permission") => false,
        _ => read(&wants["scheme"]).is_ok_and(|scheme| scheme.takes_secret()),
    }
}

fn subject(wants: &Value) -> String {
    match wants["kind"].as_str() {
        Some("credential") => format!("the credential of {}", field(&wants["connection"], "slug")),
        Some("permission") => match wants["permission"]["host"].as_str() {
            Some(host) => format!("to read pages of {}", visible(host)),
            None => {
                format!("to have tools made against {}", field(&wants["connection"], "slug"))
            }
        },
        _ => format!("{} at {}", field(wants, "vendor"), field(&wants["hosts"][0], "name")),
    }
}

fn listed(list: &Value) -> String {
    let row = |one: &Value| {
        vec![
            field(one, "id"),
            field(one, "state"),
            field(one, "agentName"),
            subject(&one["wants"]),
            time(&one["expiresMs"]),
        ]
    };
    let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
    table(&["PROPOSAL", "STATE", "AGENT", "WANTS", "UNTIL"], &rows, "no agent asks for anything")
}

/// One, with what to look at twice.
pub(super) fn card(one: &Value) -> String {
    let wants = &one["wants"];
    let mut text = format!(
        "proposal  {}\nstate     {}, open until {}\nagent     {}\nwants     {}\n",
        field(one, "id"),
        field(one, "state"),
        time(&one["expiresMs"]),
        field(one, "agentName"),
        subject(wants),
    );
    if wants["kind"] == "credential" {
        let _ = writeln!(text, "reason    the agent's words: \"{}\"", field(wants, "reason"));
    } else if wants["kind"] == "connection" {
        let _ = writeln!(text, "scheme    {}", visible(&wants["scheme"].to_string()));
        for host in wants["hosts"].as_array().into_iter().flatten() {
            let _ = writeln!(
                text,
                "host      {}:{} ({}), registered as {}",
                field(host, "name"),
                field(host, "port"),
                field(host, "usedFor"),
                host["domain"].as_str().map_or("nothing".to_owned(), visible),
            );
            if let Some(reads_as) = host["readsAs"].as_str() {
                let _ = writeln!(text, "          reads as {}", visible(reads_as));
            }
            for flag in host["flags"].as_array().into_iter().flatten() {
                let flag = visible(flag.as_str().unwrap_or_default());
                let _ = writeln!(text, "          LOOK TWICE: {flag}");
            }
        }
    }
    if one["state"] == "open" {
        let mut accept = format!("cambium connections proposals accept {}", field(one, "id"));
        for _ in wants["hosts"].as_array().into_iter().flatten() {
            accept.push_str(" --host NAME");
        }
        let _ = writeln!(text, "next: {accept}, or open {}", field(one, "link"));
    }
    text
}
