//! `cambium skill …`: what an agent should know of Cambium, as a skill where
//! harnesses look for one. It is the server's own instructions, so that the two
//! never say different things, and what an agent does next in each case.

use super::Said;
use crate::failure::Failure;
use clap::ValueEnum;
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Folder of the skill; harnesses show it as its name.
const NAME: &str = "cambium";

/// What a harness reads before it opens the skill.
const HEAD: &str = "---
name: cambium
description: How to use the services a person has connected through Cambium. Use it whenever a task needs an \
outside service (issues, orders, mail, payments, calendars), when a cambium tool answers awaiting_approval, \
awaiting_connection, awaiting_credential or an error, or before writing a tool of your own.
---

# Cambium

";

/// What to do, case by case.
const CASES: &str = "

## In short

1. Search first: find_tool with the words of the task, then with the vendor's name. Only when nothing fits, have one
   made, or write one.
2. A hit can be run at once with run_tool {vendor, name, input}, whether or not it is in your list. Your list may be
   older than the toolbox; that a name is not in it means nothing.
3. Before a write you are unsure of: run_tool with dryRun.
4. awaiting_approval: stop, say in one sentence what would be sent and to whom, give the link, and wait for the person.
   Then make the same call with the same input. A changed input is a new question.
5. awaiting_connection, awaiting_credential: give the link. The person types the secret there. Do not ask for it, do
   not take it, do not put it into an argument.
6. outcome_unknown: read the service's state before you write again.
7. A refusal (tool_denied, proposal_refused, outside_call_sites, any no) ends that way. Do not try another tool, method,
   host or shell for the same end. Say what was refused and ask.
";

/// Words of `cambium skill`.
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Print the skill
    Print,
    /// Put the skill where harnesses look for it (needs no server)
    Install {
        /// Only for this harness [default: all that are known]
        #[arg(long = "for", value_enum)]
        harness: Option<Harness>,
        /// Into this project instead of your home
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
}

/// Harnesses whose places are documented.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Harness {
    /// .claude/skills
    ClaudeCode,
    /// .agents/skills, which others read too
    Codex,
}

impl Harness {
    fn folder(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude/skills",
            Self::Codex => ".agents/skills",
        }
    }
}

/// The whole text.
fn text() -> String {
    format!("{HEAD}{}{CASES}", cambium_mcp::INSTRUCTIONS)
}

impl Args {
    /// Writes files, or prints.
    pub(crate) fn run(self) -> Result<Said, Failure> {
        let (harness, project) = match self {
            Self::Print => return Ok(Said::new(text(), json!({ "skill": text() }))),
            Self::Install { harness, project } => (harness, project),
        };
        let root = match project {
            Some(folder) if folder.is_dir() => folder,
            Some(folder) => return Err(unwritable(&folder, "there is no such folder")),
            None => std::env::var_os("HOME")
                .filter(|home| !home.is_empty())
                .map(PathBuf::from)
                .ok_or_else(|| {
                    Failure::new("argument_invalid", "HOME is not set", "pass --project DIR")
                })?,
        };
        let mut files = Vec::new();
        for one in Harness::value_variants() {
            if harness.is_none_or(|wanted| wanted == *one) {
                files.push(put(&root.join(one.folder()).join(NAME))?);
            }
        }
        let lines: Vec<String> =
            files.iter().map(|file| format!("wrote {}", file.display())).collect();
        let next = "next: start the harness anew; it reads skills when it starts";
        Ok(Said::new(format!("{}\n{next}", lines.join("\n")), json!({ "files": files })))
    }
}

/// Written beside and moved into place: never half there. What a person put
/// there instead of a file or folder of ours is left alone.
fn put(folder: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| unwritable(folder, &error.to_string());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = folder.join("SKILL.md");
    if std::fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file()) {
        return Err(unwritable(&file, "it is there and is no plain file"));
    }
    let beside = folder.join(".SKILL.md.new");
    let written = std::fs::File::create(&beside)
        .and_then(|mut new| new.write_all(text().as_bytes()))
        .and_then(|()| std::fs::rename(&beside, &file));
    written.map_err(failed)?;
    Ok(file)
}

fn unwritable(path: &Path, why: &str) -> Failure {
    Failure::new(
        "file_unwritable",
        format!("{} cannot be written: {why}", path.display()),
        "name a folder this user can write",
    )
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_skill_says_what_the_server_says_and_is_short() {
        let text = text();
        assert!(text.starts_with("---\nname: cambium\ndescription: "));
        assert!(text.contains(cambium_mcp::INSTRUCTIONS));
        assert!(text.len() < 6_000, "{} bytes", text.len());
        let first = text.find("find_tool").unwrap_or(usize::MAX);
        assert!(first < text.find("awaiting_approval: stop").unwrap_or_default());
        let description = text.lines().nth(2).unwrap_or_default();
        // Both harnesses cut longer ones.
        assert!(description.len() < 1_024 && !description.contains('<'), "{description}");
    }
}
