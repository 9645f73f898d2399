//! The demo's temporary home: a directory of mode 0700 that goes away with it,
//! the server it starts there, and its own binary's commands run on it, each as
//! a child process with a cleaned environment. Nothing of the person's own
//! configuration is read.

use super::Differs;
use serde_json::Value;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// A server that is not ready by then will not be.
const READY: Duration = Duration::from_secs(30);
/// One command; the slowest hashes a passphrase and waits for the server.
const COMMAND: Duration = Duration::from_secs(30);
/// Draining takes ten seconds at most.
const STOPPED: Duration = Duration::from_secs(20);

/// The directory and what is in it.
pub(crate) struct Home {
    path: PathBuf,
    program: PathBuf,
}

impl Home {
    /// Makes it. `passphrase` is the demo person's.
    pub(crate) fn make(passphrase: &str) -> Result<Self, Differs> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Differs::new("no randomness", error))?;
        let name = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let path = std::env::temp_dir().join(format!("cambium-demo-{name}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Differs::new("no temporary directory", error))?;
        let program = std::env::current_exe()
            .map_err(|error| Differs::new("this program's own file is not known", error))?;
        let home = Self { path, program };
        home.write("passphrase", passphrase)?;
        home.write("config.toml", "[log]\nfilter = \"warn\"\n")?;
        Ok(home)
    }

    /// A private file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Differs> {
        let path = self.path.join(name);
        OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Differs::new("a file of the demo cannot be written", error))?;
        Ok(path)
    }

    /// The server's data directory in it.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path.join("data")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--config")
            .arg(self.path.join("config.toml"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .arg("--json")
            .args(arguments)
            .env_clear()
            .env("HOME", &self.path)
            .env("CAMBIUM_PASSPHRASE_FILE", self.path.join("passphrase"))
            .kill_on_drop(true);
        command
    }

    /// Runs one command and answers what it said. `stdin` is given to it.
    pub(crate) async fn run(&self, arguments: &[&str], stdin: &str) -> Result<Value, Differs> {
        let said = arguments.join(" ");
        let failed = |error: std::io::Error| Differs::new(&format!("`{said}` did not run"), error);
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A command that does not read its stdin closes it early.
            let _ = pipe.write_all(stdin.as_bytes()).await;
        }
        let ended = tokio::time::timeout(COMMAND, child.wait_with_output()).await;
        let ended = ended
            .map_err(|_| Differs::new(&format!("`{said}` did not end"), format!("{COMMAND:?}")))?
            .map_err(failed)?;
        if !ended.status.success() {
            let stderr = String::from_utf8_lossy(&ended.stderr);
            return Err(Differs::new(
                &format!("`{said}` failed ({})", ended.status),
                stderr.trim(),
            ));
        }
        serde_json::from_slice(&ended.stdout)
            .map_err(|error| Differs::new(&format!("`{said}` did not answer in JSON"), error))
    }

    /// Starts the server and waits until it says where it listens.
    pub(crate) async fn serve(&self) -> Result<Served, Differs> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.path.join("server.log"))
            .map_err(|error| Differs::new("the server's log cannot be written", error))?;
        let mut child = self
            .command(&["serve", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| Differs::new("the server did not start", error))?;
        let stdout = child.stdout.take().map(BufReader::new);
        let first = tokio::time::timeout(READY, async {
            let mut line = String::new();
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_line(&mut line).await;
            }
            line
        });
        let line = first.await.unwrap_or_default();
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        match ready["url"].as_str() {
            Some(url) => Ok(Served { url: url.to_owned(), child }),
            None => Err(Differs::new("the server did not become ready", self.log())),
        }
    }

    /// What the server logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path.join("server.log")).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A running server; dropping it kills it.
pub(crate) struct Served {
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    child: Child,
}

impl Served {
    /// Asks it to end as a supervisor would, and waits until it has drained.
    pub(crate) async fn stop(mut self) -> Result<(), Differs> {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::Term);
        }
        match tokio::time::timeout(STOPPED, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(Differs::new("the server ended badly", status)),
            Ok(Err(error)) => Err(Differs::new("the server's end is not known", error)),
            Err(_) => Err(Differs::new("the server did not drain", format!("{STOPPED:?}"))),
        }
    }
}
