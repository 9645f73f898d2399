//! Where tokens, passphrases and secrets come from: an environment variable
//! that names or holds one, a file, stdin, or the terminal with echo off. Never
//! the argument list, which every user of the machine can read (a one-time code
//! is the exception: it is spent before anyone could use it).

use super::Context;
use crate::control::{Actor, Person};
use crate::failure::Failure;
use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Longest secret taken, bytes: a private key in PEM with room.
const SECRET_BYTES: u64 = 64 * 1024;

/// How often a new passphrase may be typed in two ways.
const TRIES: u32 = 3;

/// How a person shows that they are there.
#[derive(Args)]
pub(crate) struct PersonArgs {
    /// A one-time code: the server's terminal shows the first, `cambium code` makes more
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Read the passphrase from stdin [else: the file CAMBIUM_PASSPHRASE_FILE names, or a prompt]
    #[arg(long, conflicts_with = "code")]
    passphrase_stdin: bool,
}

impl PersonArgs {
    /// Whether the passphrase is on stdin.
    pub(crate) fn on_stdin(&self) -> bool {
        self.passphrase_stdin
    }

    /// The one-time code, if that is how.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref().map(str::trim)
    }

    /// The credential for the running server, which is looked for first: nobody
    /// types a passphrase for nothing.
    pub(crate) async fn credential(&self, context: &Context) -> Result<Person, Failure> {
        context.reach().await?;
        self.given()
    }

    /// The credential, asked for on the terminal if it came no other way.
    pub(crate) fn given(&self) -> Result<Person, Failure> {
        if let Some(code) = self.code() {
            return Ok(Person::Code(code.to_owned()));
        }
        passphrase(self.passphrase_stdin, "Passphrase: ").map(Person::Passphrase)
    }
}

/// On whose behalf an agent's command is given.
#[derive(Args)]
pub(crate) struct ActorArgs {
    /// Act in this agent's place; takes your passphrase or a code
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    agent: Option<String>,
    /// A file with the agent's token [else: the token in CAMBIUM_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    person: PersonArgs,
}

impl ActorArgs {
    /// Whom a person acts in the place of.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The agent by its token, or a person in its place.
    pub(crate) async fn actor(&self, context: &Context) -> Result<Actor, Failure> {
        match &self.agent {
            Some(agent) => {
                let who = self.person.credential(context).await?;
                Ok(Actor::Person { agent: agent.clone(), who })
            }
            None => token(self.token_file.as_deref()).map(Actor::Token).map_err(|mut failure| {
                failure.next = format!(
                    "pass --agent NAME to act in the place of an agent of yours; as an agent: {}",
                    failure.next
                );
                failure
            }),
        }
    }
}

/// An agent's token: the file if one is named, else `CAMBIUM_TOKEN`.
pub(crate) fn token(path: Option<&Path>) -> Result<String, Failure> {
    let token = match path {
        Some(path) => {
            private(path)?;
            first_line(path, "token_missing")?
        }
        None => std::env::var("CAMBIUM_TOKEN").unwrap_or_default().trim().to_owned(),
    };
    if token.is_empty() {
        return Err(Failure::new(
            "token_missing",
            "no agent token was given",
            "set CAMBIUM_TOKEN, or pass --token-file; `cambium agents create` shows a token once, \
             `cambium agents rotate NAME` makes another",
        ));
    }
    Ok(token)
}

/// Refuses a token's file that others may read. One that is another user's to
/// close, or no file at all, is as its owner made it.
fn private(path: &Path) -> Result<(), Failure> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let (mode, uid) = (found.mode() & 0o777, rustix::process::getuid().as_raw());
    if mode & 0o077 == 0 || found.uid() != uid || !found.is_file() {
        return Ok(());
    }
    Err(Failure::new(
        "token_file_open_to_others",
        format!("{} has mode {mode:03o}; others on this machine can use the token", path.display()),
        format!("chmod 600 {}", path.display()),
    ))
}

/// A passphrase: stdin if asked for, else the named file, else the terminal.
pub(crate) fn passphrase(from_stdin: bool, prompt: &str) -> Result<String, Failure> {
    if from_stdin {
        return stdin_line();
    }
    if let Some(path) = std::env::var_os("CAMBIUM_PASSPHRASE_FILE") {
        return first_line(Path::new(&path), "credential_missing");
    }
    prompted(prompt)
}

/// A new passphrase; typed twice where it is typed. With `file`, the named file
/// may hold it.
pub(crate) fn new_passphrase(from_stdin: bool, file: bool) -> Result<String, Failure> {
    let piped = from_stdin && !std::io::stdin().is_terminal();
    let named = !from_stdin && file && std::env::var_os("CAMBIUM_PASSPHRASE_FILE").is_some();
    if piped || named {
        return passphrase(from_stdin, "");
    }
    twice(prompted)
}

/// Echo is off, so a slip would be noticed only when it locks its owner out.
fn twice(mut ask: impl FnMut(&str) -> Result<String, Failure>) -> Result<String, Failure> {
    for again in 0..TRIES {
        let prompt = if again == 0 { "New passphrase: " } else { "They differ. New passphrase: " };
        let chosen = ask(prompt)?;
        if ask("The same again: ")? == chosen {
            return Ok(chosen);
        }
    }
    Err(Failure::new(
        "passphrase_differs",
        format!("what was typed twice differed {TRIES} times; nothing was changed"),
        "start again, or keep it in a file of mode 0600 and pass that with --passphrase-stdin",
    ))
}

/// A secret from stdin, without the line end; asked for if stdin is a terminal.
pub(crate) fn secret(prompt: &str) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        return prompted(prompt);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(SECRET_BYTES + 1).read_to_string(&mut text);
    if read.is_err() || text.len() as u64 > SECRET_BYTES {
        return Err(missing(&format!("stdin must hold at most {SECRET_BYTES} bytes of UTF-8")));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(Failure::new(
            "secret_missing",
            "stdin held no secret",
            "pipe the vendor's secret in; is the variable it comes from empty?",
        ));
    }
    Ok(text.to_owned())
}

fn stdin_line() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        return prompted("Passphrase: ");
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(SECRET_BYTES).read_line(&mut text);
    let text = text.trim_end_matches(['\r', '\n']);
    match read {
        Ok(_) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(missing("stdin held no passphrase")),
    }
}

fn first_line(path: &Path, code: &str) -> Result<String, Failure> {
    let read = File::open(path).and_then(|file| {
        let mut text = String::new();
        BufReader::new(file.take(SECRET_BYTES)).read_line(&mut text)?;
        Ok(text)
    });
    match read {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Ok(_) => Err(Failure::new(
            code,
            format!("{} is empty", path.display()),
            "put it on the first line of the file",
        )),
        Err(error) => Err(Failure::new(
            code,
            format!("{} cannot be read: {error}", path.display()),
            "name a file this user can read",
        )),
    }
}

/// Puts the terminal back as it was, however the prompt ends.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Asked for on the terminal, echo off.
pub(crate) fn prompted(prompt: &str) -> Result<String, Failure> {
    let unheard = |_| missing("there is no terminal to ask on");
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").map_err(unheard)?;
    let before = tcgetattr(&terminal).map_err(|error| unheard(error.into()))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    terminal.write_all(prompt.as_bytes()).map_err(unheard)?;
    let mut text = String::new();
    let read = {
        tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(|e| unheard(e.into()))?;
        let quiet = Quiet { terminal: &terminal, before };
        BufReader::new(quiet.terminal.take(SECRET_BYTES)).read_line(&mut text)
    };
    let _ = terminal.write_all(b"\n");
    let text = text.trim_end_matches(['\r', '\n']);
    match read {
        Ok(_) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(missing("nothing was typed")),
    }
}

fn missing(reason: &str) -> Failure {
    Failure::new(
        "credential_missing",
        reason,
        "pass --code, --passphrase-stdin, set CAMBIUM_PASSPHRASE_FILE, or run it on a terminal; before the \
         first passphrase, run `cambium setup`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_passphrase_is_typed_twice_and_slips_are_asked_again_three_times_at_most() {
        let typed = |words: &[&str]| {
            let (mut left, mut asked) = (words.iter(), 0);
            let chosen = twice(|_| {
                asked += 1;
                left.next().map(|word| (*word).to_owned()).ok_or_else(|| missing("no more"))
            });
            (chosen.map_err(|failure| failure.code), asked)
        };
        assert_eq!(typed(&["one", "one"]), (Ok("one".into()), 2));
        assert_eq!(typed(&["one", "oen", "two", "two"]), (Ok("two".into()), 4));
        let slips = ["a", "b", "c", "d", "e", "f", "g", "g"];
        assert_eq!(typed(&slips), (Err("passphrase_differs".into()), 6));
        assert_eq!(typed(&["one"]), (Err("credential_missing".into()), 2));
    }
}
