//! `cambium approvals watch`: each question as it comes, in a terminal beside
//! the work. It only shows; answering takes the other words and a credential.

use super::{Context, Said, approvals, proposals};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;
use std::io::Write as _;

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
        (false, Some("proposal")) => format!("{BELL}{}", proposals::card(&one["proposal"])),
        (false, _) => format!("{BELL}{}", approvals::card(&one["ask"])),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()).map_err(|error| {
        Failure::new("output_closed", format!("nothing reads along: {error}"), "start it again")
    })
}
