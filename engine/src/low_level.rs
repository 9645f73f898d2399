//! The low-level set: what a person lets an agent have beside the tools all
//! have, and who carries it out. Files are `workspace.rs`'s, commands
//! `commands.rs`'s, pages `pages.rs`'s.

use crate::readable::Readable;
use crate::{Engine, EngineError, PersonProof};
use cambium_proxy::{AgentId, BoxFuture, PageReach};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// The switch's name.
const LOW_LEVEL: &str = "low_level";

/// Which authoring tools a person lets an agent have, beside those all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LowLevel {
    /// None.
    None,
    /// write_file.
    #[default]
    WriteFile,
    /// write_file, run_command and read_web_page.
    All,
}

impl LowLevel {
    /// Every setting.
    pub const ALL: [Self; 3] = [Self::None, Self::WriteFile, Self::All];

    /// As it is stored and typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WriteFile => "write-file",
            Self::All => "all",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.as_str() == text)
    }

    /// Whether write_file is there.
    pub fn writes_files(self) -> bool {
        match self {
            Self::None => false,
            Self::WriteFile | Self::All => true,
        }
    }

    /// Whether run_command and read_web_page are there.
    pub fn runs_and_reads(self) -> bool {
        match self {
            Self::None | Self::WriteFile => false,
            Self::All => true,
        }
    }
}

/// A command with the files it starts among.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// For a shell.
    pub text: String,
    /// Path and text of each file of the workspace.
    pub files: Vec<(String, String)>,
    /// It is ended after that.
    pub wall: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit code; 128 and the number of the signal that ended it.
    pub code: i32,
    /// What it wrote to standard output, from the beginning.
    pub stdout: String,
    /// What it wrote to standard error, from the beginning.
    pub stderr: String,
    /// There was more of the first.
    pub stdout_cut: bool,
    /// There was more of the second.
    pub stderr_cut: bool,
    /// Plain files it made or changed: path and bytes, both foreign.
    pub files: Vec<(String, Vec<u8>)>,
    /// Files it was given that are there no more.
    pub gone: Vec<String>,
    /// Files it could not be given: they have no place beside the others.
    pub unplaced: Vec<String>,
    /// There was more, or something that is no plain file.
    pub files_cut: bool,
}

/// Why a command has no end of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    /// It took too long and was ended with all it had started.
    #[error("the command took longer than {} s and was ended", .0.as_secs())]
    Timeout(Duration),
    /// It wrote without an end and was ended with all it had started.
    #[error("the command wrote without an end and was ended")]
    Output,
    /// This machine cannot jail it.
    #[error("a command cannot be jailed on this machine: {0}")]
    Unavailable(String),
}

/// Carries commands out and reads pages where neither can do harm.
pub trait Workbench: Send + Sync {
    /// Runs a command in the jail to its end. Dropping the future kills it and
    /// all it started.
    fn run<'a>(&'a self, command: &'a Command) -> BoxFuture<'a, Result<CommandEnd, CommandFault>>;
    /// What is readable in a page of HTML.
    fn readable<'a>(&'a self, html: &'a [u8]) -> BoxFuture<'a, Result<Readable, String>>;
}

/// Who carries the low-level set out, and what a person lifted for pages.
#[derive(Clone)]
pub struct LowLevelParts {
    /// In a jail.
    pub workbench: Arc<dyn Workbench>,
    /// Where pages may be read from, beside public hosts.
    pub reach: PageReach,
}

impl Engine {
    /// Which authoring tools the agent has beside those all have.
    pub async fn low_level(&self, agent: &AgentId) -> Result<LowLevel, EngineError> {
        let value = self.switch(agent, LOW_LEVEL).await?;
        // A value of another release is the narrower thing.
        Ok(value.map_or_else(LowLevel::default, |value| {
            LowLevel::parse(&value).unwrap_or(LowLevel::None)
        }))
    }

    /// Gives an agent an authoring tool, or takes it back.
    pub async fn set_low_level(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
        setting: LowLevel,
    ) -> Result<(), EngineError> {
        self.set_switch(agent, LOW_LEVEL, setting.as_str()).await?;
        self.send(crate::Event::list_changed([agent.clone()]));
        Ok(())
    }

    /// What carries a low-level tool out, where the agent has it.
    pub(crate) async fn bench_for(
        &self,
        agent: &AgentId,
        tool: &str,
    ) -> Result<&LowLevelParts, EngineError> {
        if !self.low_level(agent).await?.runs_and_reads() {
            return Err(EngineError::ToolNotFound(tool.to_owned()));
        }
        self.parts.low_level.as_ref().ok_or_else(|| {
            EngineError::SandboxUnavailable(format!("{tool} is not carried out by this server"))
        })
    }
}
