//! `cambium backup FILE` and `cambium restore FILE`. A backup takes the person's
//! passphrase, never a code: the vault's keys in it are wrapped under it.

use super::credential::passphrase;
use super::print::field;
use super::{Context, Said};
use crate::backup;
use crate::control::Request;
use crate::failure::Failure;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `cambium backup`.
#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to make; never one that is there
    file: PathBuf,
    /// Read the passphrase from stdin [else: the file CAMBIUM_PASSPHRASE_FILE names, or a prompt]
    #[arg(long)]
    passphrase_stdin: bool,
}

impl BackupArgs {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        context.reach().await?;
        let passphrase = passphrase(self.passphrase_stdin, "Passphrase: ")?;
        let file = std::path::absolute(&self.file).map_err(|error| {
            let reason = format!("{} is no path: {error}", self.file.display());
            Failure::new("backup_unwritten", reason, "name a file")
        })?;
        let done = context.ask(&Request::Backup { passphrase, file }).await?;
        let text = format!(
            "{} bytes are in {}; it opens with the passphrase of today",
            field(&done, "bytes"),
            field(&done, "file"),
        );
        Ok(Said::new(text, done))
    }
}

/// Arguments of `cambium restore`.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// A file that `cambium backup` made
    file: PathBuf,
    /// Read the passphrase from stdin [else: the file CAMBIUM_PASSPHRASE_FILE names, or a prompt]
    #[arg(long)]
    passphrase_stdin: bool,
}

impl RestoreArgs {
    /// Makes the data directory, which must be empty or not there.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let config = context.config()?;
        let passphrase = passphrase(self.passphrase_stdin, "Passphrase of the backup: ")?;
        let ended = backup::restore(&self.file, &passphrase, &config.data_dir).await?;
        let text = format!(
            "{} is restored\n{} approvals ended and are asked for again, {} questions and {} \
             sessions and codes ended\nnext: replace tokens and a passphrase you changed since the \
             backup, then cambium serve",
            config.data_dir.display(),
            ended.approvals,
            ended.asks,
            ended.sessions,
        );
        Ok(Said::new(text, json!({ "dataDir": config.data_dir, "ended": ended })))
    }
}
