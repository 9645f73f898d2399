//! `cambium approvals watch`: each question as it comes, in a terminal beside
//! the work. It only shows; answering takes the other words and a credential.

use super::{Context, Said, approvals, proposals, visible};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;
use std::io::{IsTerminal as _, Write as _};

/// Rung with each question when a person reads along.
const BELL: &str = "\u{7}";

/// Shows what comes until the command is ended, or with `first` the first.
pub(super) async fn run(context: &Context, first: bool) -> Result<Said, Failure> {
    let mut seen = Vec::new();
    loop {
        let found = context.ask(&Request::Watch { seen: seen.clone() }).await?;
        for one in found.as_array().into_iter().flatten() {
            let id = one["ask"]["id"].as_str().or(one["proposal"]["id"].as_str());
            seen.extend(id.map(str::to_owned));
            show(context, one)?;
            if first {
                return Ok(Said::default());
            }
        }
    }
}

fn show(context: &Context, one: &Value) -> Result<(), Failure> {
    let text = match (context.json(), one["kind"].as_str()) {
        (true, _) => one.to_string(),
        (false, Some("proposal")) => proposals::card(&one["proposal"]),
        (false, _) => approvals::card(&one["ask"]),
    };
    let text = match context.json() {
        true => text,
        false => {
            let link = one["link"].as_str().map(visible).unwrap_or_default();
            format!("{BELL}{}\nor in the console: {}", text.trim_end(), linked(&link))
        }
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()).map_err(|error| {
        Failure::new("output_closed", format!("nothing reads along: {error}"), "start it again")
    })
}

/// A link that a terminal opens by a click (OSC 8); elsewhere the address alone.
fn linked(link: &str) -> String {
    match std::io::stdout().is_terminal() {
        true => hyperlink(link),
        false => link.to_owned(),
    }
}

fn hyperlink(link: &str) -> String {
    format!("\u{1b}]8;;{link}\u{1b}\\{link}\u{1b}]8;;\u{1b}\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_opened_and_closed_and_says_where_it_leads() {
        let link = hyperlink("http://127.0.0.1:7171/asks/a");
        assert_eq!(link.matches("\u{1b}]8;;").count(), 2);
        assert_eq!(link.matches("http://127.0.0.1:7171/asks/a").count(), 2);
        assert!(link.ends_with("\u{1b}]8;;\u{1b}\\"));
    }
}
