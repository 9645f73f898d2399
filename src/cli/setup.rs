//! `cambium setup`: the passphrase a person decides with, and a configuration
//! file to start from. Works on the running server with its first code, or
//! before any server runs, under the data directory's lock.

use super::credential::{PersonArgs, new_passphrase};
use super::print::field;
use super::{Context, Said, start};
use crate::assemble;
use crate::config::Config;
use crate::control::{Person, Request, ask};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// Shortest passphrase taken, characters.
const PASSPHRASE_CHARS: usize = 8;

/// Arguments of `cambium setup`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change a passphrase that is already set; takes the old one or a code. With
    /// --passphrase-stdin the old one is stdin's first line and the new one its second;
    /// otherwise the new one is asked for on the terminal
    #[arg(long)]
    change: bool,
    /// Write no configuration file
    #[arg(long)]
    no_config: bool,
    /// Whether `cambium mcp` may start the server when none runs, with the configuration
    /// file in force now; nothing else is changed
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no, conflicts_with_all = ["change", "no_config"])]
    bridge_starts_server: Option<bool>,
    #[command(flatten)]
    person: PersonArgs,
}

impl Args {
    /// Sets the passphrase and writes the file if there is none.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let config = context.config()?;
        if let Some(yes) = self.bridge_starts_server {
            return bridge_starts_server(context, &config, yes);
        }
        // Given for this call; the next commands take it again.
        let given = match context.common.data_dir {
            Some(_) => format!(" --data-dir {}", config.data_dir.display()),
            None => String::new(),
        };
        let mut next = format!("cambium serve{given}, then cambium agents create NAME{given}");
        match ask(&config.data_dir, &Request::Status {}).await {
            Ok(status) => {
                self.with_server(&config, status["needsSetup"] == true).await?;
                next = format!("cambium agents create NAME{given}");
            }
            Err(failure) if failure.code == "no_server" => {
                // Before anything is made: a first run that ends here leaves nothing behind.
                let chosen = match DataDir::is_new(&config.data_dir) {
                    true => Some(self.no_code().and_then(|()| self.chosen(None))?),
                    false => None,
                };
                let data_dir = DataDir::lock(&config.data_dir)?;
                let old = |first| match first {
                    true => self.no_code().map(|()| None),
                    false => self.person.given().map(|who| Some(who.into())),
                };
                let choose =
                    |in_force: Option<&str>| chosen.map_or_else(|| self.chosen(in_force), Ok);
                assemble::set_passphrase(&config, &data_dir, self.change, old, choose).await?;
            }
            Err(failure) => return Err(failure),
        }
        // A file that is named is there already, and no other would be read.
        let named = context.config_file()?;
        let written = if self.no_config || named.is_some() { None } else { written()? };
        let mut text = String::from("the passphrase is set\n");
        if let Some(path) = &written {
            text.push_str(&format!("settings are in {}\n", path.display()));
            if !given.is_empty() {
                text.push_str(
                    "they leave this call's --data-dir out; `data_dir` in them would name it\n",
                );
            }
        }
        if !self.change {
            text.push_str(&format!("next: {next}"));
        }
        Ok(Said::new(text, json!({ "done": true, "config": written })))
    }

    async fn with_server(&self, config: &Config, first: bool) -> Result<(), Failure> {
        if !first && !self.change {
            return Err(already());
        }
        let (who, passphrase) = if first {
            // The code last: it would lapse while a person thinks of a passphrase.
            let passphrase = self.chosen(None)?;
            let code = match self.person.code() {
                Some(given) => given.to_owned(),
                None => field(&ask(&config.data_dir, &Request::FirstCode {}).await?, "code"),
            };
            (Person::Code(code), passphrase)
        } else {
            let who = self.person.given()?;
            let in_force = match &who {
                Person::Passphrase(text) => Some(text.as_str()),
                Person::Code(_) => None,
            };
            let passphrase = self.chosen(in_force)?;
            (who, passphrase)
        };
        ask(&config.data_dir, &Request::SetPassphrase { who, passphrase }).await.map(drop)
    }

    /// First codes are a running server's; without one the lock is what counts.
    fn no_code(&self) -> Result<(), Failure> {
        match self.person.code() {
            None => Ok(()),
            Some(_) => Err(Failure::new(
                "person_required",
                "no code holds before the first passphrase while no server runs",
                "leave --code out, or start the server: `cambium serve`",
            )),
        }
    }

    fn chosen(&self, in_force: Option<&str>) -> Result<String, Failure> {
        // The file CAMBIUM_PASSPHRASE_FILE names holds the one that is in force.
        let chosen = new_passphrase(self.person.on_stdin(), !self.change);
        let chosen = chosen.map_err(|failure| match failure.code.as_str() {
            "credential_missing" => Failure { next: where_from(self.change), ..failure },
            _ => failure,
        })?;
        if in_force == Some(chosen.as_str()) {
            return Err(Failure::new(
                "passphrase_same",
                "the new passphrase is the old one; nothing was changed",
                "choose another one",
            ));
        }
        if chosen.chars().count() < PASSPHRASE_CHARS {
            return Err(Failure::new(
                "passphrase_short",
                format!("a passphrase has at least {PASSPHRASE_CHARS} characters"),
                "choose a longer one; four unrelated words are good",
            ));
        }
        Ok(chosen)
    }
}

/// Where a new passphrase can come from.
fn where_from(change: bool) -> String {
    let file = if change { "" } else { ", name a file with CAMBIUM_PASSPHRASE_FILE" };
    format!("pass --passphrase-stdin{file}, or run it on a terminal")
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("say yes or no".into()),
    }
}

fn bridge_starts_server(context: &Context, config: &Config, yes: bool) -> Result<Said, Failure> {
    let file = context.config_file()?;
    let text = if yes {
        start::allow(&config.data_dir, file.as_deref())?;
        let with = file.as_ref().map_or("the defaults".into(), |file| file.display().to_string());
        format!("cambium mcp starts the server when none runs, with {with}")
    } else {
        start::forbid(&config.data_dir)?;
        "cambium mcp only connects to a running server".to_owned()
    };
    Ok(Said::new(text, json!({ "bridgeStartsServer": yes, "config": file })))
}

/// The answer when a passphrase is there and `--change` was not said.
pub(crate) fn already() -> Failure {
    Failure::new("already_set_up", "a passphrase is already set", "pass --change to replace it")
}

/// Writes the file a person starts from, with the defaults: what this call was
/// told by flags or variables was for this call. Never over one that is there.
fn written() -> Result<Option<PathBuf>, Failure> {
    let (Some(path), Ok(defaults)) = (Config::default_file(), Config::defaults()) else {
        return Ok(None);
    };
    let failed = |error: &std::io::Error| {
        Failure::new(
            "config_unreadable",
            format!("{} cannot be written: {error}", path.display()),
            "make its directory writable, or pass --no-config",
        )
    };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| failed(&e))?;
    }
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path) {
        Ok(mut file) => {
            file.write_all(template(&defaults).as_bytes()).map_err(|error| failed(&error))?;
            Ok(Some(path))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

fn template(config: &Config) -> String {
    // JSON's string form is TOML's basic string form for what a path can hold.
    let quoted = |text: String| Value::String(text).to_string();
    format!(
        "# Settings of cambium; examples/config.toml has every one. docs/operations.md says more.\n\
         data_dir = {}\nlisten = {}\nwait_budget_seconds = {}\n\n\
         [sandbox]\npool = {}\nzygote = {}\n\n[log]\nfilter = {}\njson = {}\n",
        quoted(config.data_dir.display().to_string()),
        quoted(config.listen.to_string()),
        config.wait_budget.as_secs(),
        config.sandbox.pool,
        config.sandbox.zygote,
        quoted(config.log.filter.clone()),
        config.log.json,
    )
}
