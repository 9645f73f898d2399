//! The command line: one file per command, each with its arguments and its
//! `run`. This file holds the tree of words and hands over; what is printed
//! where, and with which exit code, is in `print`.

mod agents;
mod approvals;
mod audit;
mod authority;
mod backup;
mod check;
mod code;
mod completions;
mod connections;
mod credential;
mod dev;
mod doctor;
mod export;
mod import;
mod init_tool;
mod mcp;
mod overrides;
mod policy;
mod print;
mod proposals;
mod publish;
mod run;
mod runs;
mod sandbox;
mod sdk;
mod serve;
mod setup;
mod skill;
mod start;
mod status;
mod sweep;
mod tools;
mod vault;
mod watch;

use crate::config::{Config, Overrides};
use crate::demo;
use crate::failure::{EXIT_CODES, Failure};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use connections::range;
pub(crate) use print::{Said, visible};
pub(crate) use run::preview_text;
pub(crate) use setup::already;

/// Runs an agent's own tools in a sandbox, behind a proxy that asks before it writes.
#[derive(Parser)]
#[command(name = "cambium", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// The configuration file [env: CAMBIUM_CONFIG] [default: ~/.config/cambium/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the server keeps everything [env: CAMBIUM_DATA_DIR] [default: ~/.local/share/cambium]
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Answer in JSON, on stdout; errors too, on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Start the server: MCP, console and control socket, until SIGTERM
    Serve(serve::Args),
    /// Bridge a harness's stdio to the server
    Mcp(mcp::Args),
    /// Set the passphrase you decide with, and whether bridges start the server
    Setup(setup::Args),
    /// Make a one-time code to decide with in another terminal, or show the first one
    Code(code::Args),
    /// Run the main job end to end on this machine, and verify each step
    Demo(demo::Args),
    /// Make a folder with a module to start from and its types (needs no server)
    InitTool(init_tool::Args),
    /// Check a module without publishing it (needs no server)
    Check(check::Args),
    /// Check and dry-run a module each time it is saved
    Dev(dev::Args),
    /// Publish a module as a tool
    Publish(publish::Args),
    /// Call a tool as an agent
    Run(run::Args),
    /// The toolbox and working sets
    #[command(subcommand)]
    Tools(tools::Args),
    /// Harnesses with their own tokens
    #[command(subcommand)]
    Agents(agents::Args),
    /// Vendors, their hosts and credentials
    #[command(subcommand)]
    Connections(connections::Args),
    /// Questions to you, and your answers
    #[command(subcommand)]
    Approvals(approvals::Args),
    /// What the proxy would do with a request
    #[command(subcommand)]
    Policy(policy::Args),
    /// How runs ended, with what was seen of their processes
    #[command(subcommand)]
    Runs(runs::Args),
    /// What was decided and sent
    #[command(subcommand)]
    Audit(audit::Args),
    /// What the rule would take out of working sets, and when
    Sweep(sweep::Args),
    /// Write tools, or an agent's working set, as files
    Export(export::Export),
    /// Publish tools from files, or from a service's OpenAPI document
    Import(import::Args),
    /// The keys that secrets are sealed under
    #[command(subcommand)]
    Vault(vault::Args),
    /// Sessions for sandboxes of your own, such as a container
    #[command(subcommand)]
    Sandbox(sandbox::Args),
    /// Write everything into one sealed file, under your passphrase
    Backup(backup::BackupArgs),
    /// Make a data directory of a backup (needs no server)
    Restore(backup::RestoreArgs),
    /// What an agent should know, as a skill where harnesses look for one
    #[command(subcommand)]
    Skill(skill::Args),
    /// Which layers of the sandbox hold on this machine (needs no server)
    Doctor(doctor::Args),
    /// Whether a server runs, and where
    Status(status::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// What a command is given besides its own arguments.
pub(crate) struct Context {
    common: Common,
}

impl Context {
    /// The configuration, read when a command needs it.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        self.config_with(Overrides::default())
    }

    fn config_with(&self, mut overrides: Overrides) -> Result<Config, Failure> {
        overrides.config.clone_from(&self.common.config);
        overrides.data_dir.clone_from(&self.common.data_dir);
        Config::load(&overrides)
    }

    /// The configuration file in force, absolute.
    fn config_file(&self) -> Result<Option<PathBuf>, Failure> {
        Config::file(self.common.config.clone())
    }

    /// Whether programs read along.
    pub(crate) fn json(&self) -> bool {
        self.common.json
    }

    /// Whether a server runs, before anything is asked of a person.
    async fn reach(&self) -> Result<(), Failure> {
        crate::control::Client::connect(&self.config()?.data_dir).await.map(drop)
    }

    /// Asks the running server.
    async fn ask(&self, request: &crate::control::Request) -> Result<serde_json::Value, Failure> {
        crate::control::ask(&self.config()?.data_dir, request).await
    }

    /// Calls; `held` is told of each question to a person the call waits for.
    async fn call(
        &self,
        request: &crate::control::Request,
        held: impl FnMut(&serde_json::Value),
    ) -> Result<serde_json::Value, Failure> {
        crate::control::call(&self.config()?.data_dir, request, held).await
    }

    /// The same with bytes behind the request.
    async fn ask_with(
        &self,
        request: &crate::control::Request,
        bytes: &[u8],
    ) -> Result<serde_json::Value, Failure> {
        crate::control::ask_with(&self.config()?.data_dir, request, bytes).await
    }
}

/// The end of a process that has no runtime to run on.
pub(crate) fn broken(error: &std::io::Error) -> ExitCode {
    let failure = Failure::new(
        "runtime_unavailable",
        format!("no threads can be started: {error}"),
        "look at the limits of this user (`ulimit -a`)",
    );
    print::end(Err(failure), false)
}

/// The command line is wrong, or asks for help: clap's text, or JSON when that
/// is what the caller reads.
fn misread(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if !json || !error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let usage = lines.find(|line| line.starts_with("Usage:")).unwrap_or("Usage: cambium --help");
    let failure = Failure::new("usage", message, usage.replacen("Usage:", "use it as:", 1));
    print::complain(&failure, true);
    ExitCode::from(2)
}

/// Parses the command line, runs the command and says how it went.
pub(crate) async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let context = Context { common: cli.common };
    let done = match cli.command {
        Command::Serve(args) => args.run(&context).await,
        Command::Mcp(args) => args.run(&context).await,
        Command::Setup(args) => args.run(&context).await,
        Command::Code(args) => args.run(&context).await,
        Command::Demo(args) => args.run(&context).await,
        Command::InitTool(args) => args.run(),
        Command::Check(args) => args.run(&context).await,
        Command::Dev(args) => args.run(&context).await,
        Command::Publish(args) => args.run(&context).await,
        Command::Run(args) => args.run(&context).await,
        Command::Tools(args) => args.run(&context).await,
        Command::Agents(args) => args.run(&context).await,
        Command::Connections(args) => args.run(&context).await,
        Command::Approvals(args) => args.run(&context).await,
        Command::Policy(args) => args.run(&context).await,
        Command::Runs(args) => args.run(&context).await,
        Command::Audit(args) => args.run(&context).await,
        Command::Sweep(args) => args.run(&context).await,
        Command::Export(args) => args.run(&context).await,
        Command::Import(args) => args.run(&context).await,
        Command::Vault(args) => args.run(&context).await,
        Command::Sandbox(args) => args.run(&context).await,
        Command::Backup(args) => args.run(&context).await,
        Command::Restore(args) => args.run(&context).await,
        Command::Skill(args) => args.run(),
        Command::Doctor(args) => args.run(&context).await,
        Command::Status(args) => args.run(&context).await,
        Command::Completions(args) => args.run(),
    };
    print::end(done, context.common.json)
}
