//! `cambium mcp`: bridges a harness's stdio to the server, which it starts only
//! where a person allowed that (`start`). No state lives here, so a harness may
//! start as many as it likes.
//! What was stdout at start carries the protocol and nothing else: descriptor 1
//! is pointed at stderr before anything could print.

use super::credential::token;
use super::{Context, Said, start};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use tokio::io::AsyncWriteExt;

/// Arguments of `cambium mcp`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file with the agent's token [else: the token in CAMBIUM_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Args {
    /// Bridges until either side ends.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let protocol = take_stdout()?;
        let token = token(self.token_file.as_deref())?;
        let mut client = start::connect(context).await?;
        client.ask(&Request::Bridge { token }).await?;
        let (mut from_server, mut to_server) = client.into_parts();
        let mut stdout = tokio::fs::File::from_std(protocol);
        let mut stdin = tokio::io::stdin();
        let outward = async {
            let copied = tokio::io::copy(&mut stdin, &mut to_server).await;
            // The harness closed its end: let the server answer what is open.
            let _ = to_server.shutdown().await;
            copied
        };
        let inward = async {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let read = tokio::io::AsyncReadExt::read(&mut from_server, &mut buffer).await?;
                if read == 0 {
                    return std::io::Result::Ok(());
                }
                stdout.write_all(&buffer[..read]).await?;
                stdout.flush().await?;
            }
        };
        tokio::pin!(outward, inward);
        tokio::select! {
            _ = &mut outward => {
                let _ = inward.await;
                Ok(Said::new("", Value::Null))
            }
            _ = &mut inward => Err(Failure::new(
                "server_gone",
                "the server ended the connection",
                "start it again with `cambium serve`, then reconnect the harness",
            )),
        }
    }
}

/// The old stdout; descriptor 1 becomes stderr.
fn take_stdout() -> Result<File, Failure> {
    let taken = std::io::stdout().as_fd().try_clone_to_owned().and_then(|kept| {
        rustix::stdio::dup2_stdout(std::io::stderr().as_fd())?;
        Ok(File::from(kept))
    });
    taken.map_err(|error| {
        Failure::new(
            "stdout_unusable",
            format!("stdout cannot be kept for the protocol: {error}"),
            "start the bridge with stdin, stdout and stderr open",
        )
    })
}
