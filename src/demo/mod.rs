//! `cambium demo`: the main job end to end on this machine, each step verified.
//! It starts its own binary as `serve` on a temporary directory and drives it
//! as a person (commands) and as a harness (MCP over HTTP) would: no second
//! assembly, no shortcut past the proxy. `story` holds the steps.

mod harness;
mod home;
mod story;
mod vendor;

use crate::cli::{Context, Said};
use crate::failure::Failure;
use std::fmt::Display;
use std::io::Write;

/// Arguments of `cambium demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave server and vendor running afterwards, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

/// A step that did not go as said.
#[derive(Debug)]
pub(crate) struct Differs {
    what: String,
    got: String,
}

impl Differs {
    /// What was expected, and what was there.
    pub(crate) fn new(what: &str, got: impl Display) -> Self {
        Self { what: what.to_owned(), got: got.to_string() }
    }
}

impl From<Differs> for Failure {
    fn from(differs: Differs) -> Self {
        Self::new(
            "demo_differs",
            format!("{}: {}", differs.what, differs.got),
            "run `cambium doctor`; if every layer holds, report this line",
        )
    }
}

/// Where the demo tells its story; nowhere under `--json`.
pub(crate) struct Teller {
    quiet: bool,
}

impl Teller {
    /// A step begins.
    pub(crate) fn step(&self, title: &str) {
        self.say(&format!("\n== {title}"));
    }

    /// A line, or several.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stdout().lock(), "{text}");
        }
    }
}

impl Args {
    /// Tells the story; Ctrl-C ends it and takes everything down.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let teller = Teller { quiet: context.json() };
        tokio::select! {
            told = story::tell(&teller, self.keep) => Ok(Said::new("", told?)),
            _ = tokio::signal::ctrl_c() => Err(Failure::new(
                "interrupted",
                "the demo was interrupted",
                "run it again; it leaves nothing behind",
            )),
        }
    }
}
