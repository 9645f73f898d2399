//! `cambium serve`: the server, until SIGTERM or SIGINT.

use super::{Context, Said};
use crate::assemble::Server;
use crate::config::Overrides;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::io::Write;
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of `cambium serve`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Loopback address and port; port 0 takes a free one [env: CAMBIUM_LISTEN]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Start each worker by exec instead of forking a warm one (slower)
    #[arg(long)]
    no_zygote: bool,
    /// For test runners on this machine: requests without a token act as this agent,
    /// which is made anew or gets a new token
    #[arg(long, value_name = "NAME")]
    dev_agent: Option<String>,
    /// Start although a layer of the sandbox is missing
    #[arg(long)]
    allow_weak_sandbox: bool,
    /// Leave the terminal's session, so that its end does not end the server
    #[arg(long)]
    own_session: bool,
}

impl Args {
    /// Starts, says where it listens, waits for a signal, drains.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let config = context.config_with(Overrides {
            listen: self.listen,
            dev_agent: self.dev_agent,
            no_zygote: self.no_zygote,
            allow_weak: self.allow_weak_sandbox,
            ..Overrides::default()
        })?;
        log_to_stderr(&config.log);
        if self.own_session {
            // Refused only to the leader of a group, which has what it asks for.
            let _ = rustix::process::setsid();
        }
        let unheard = |error: std::io::Error| {
            Failure::new("signals_unusable", format!("signals cannot be heard: {error}"), "")
        };
        // Before anything is made, so that no signal falls between.
        let mut terminate = signal(SignalKind::terminate()).map_err(unheard)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
        let server = Server::start(&config).await?;
        announce(&server, context.common.json);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        server.stop().await;
        Ok(Said::new("", Value::Null))
    }
}

/// One line on stdout once calls are taken: what a supervisor waits for.
fn announce(server: &Server, json: bool) {
    let (url, code) = (server.url(), server.first_code());
    let mut text = if json {
        json!({ "ready": true, "url": url, "dataDir": server.data_dir() }).to_string()
    } else {
        format!(
            "cambium listens\n  console  {url}\n  MCP      {url}/mcp\n  data     {}",
            server.data_dir().display()
        )
    };
    if let (false, Some(code)) = (json, code) {
        text.push_str(&format!(
            "\nfirst code {code}\n  good once, for ten minutes; afterwards `cambium code` shows the \
             next\nnext: open {url}/login?code={code} , or cambium setup",
        ));
    }
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}");
    let _ = stdout.flush();
}

fn log_to_stderr(log: &crate::config::Log) {
    let filter = tracing_subscriber::EnvFilter::try_new(&log.filter)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if log.json {
        lines.json().try_init()
    } else {
        lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "a log subscriber was already set");
    }
}
