//! Starting the server from a bridge (decision 2): only where a person said so
//! with `cambium setup --bridge-starts-server yes`, one starter at a time, with
//! an environment of `HOME` alone and the configuration file that was in force
//! when the person said it. What the server then does is `serve`'s.

use super::Context;
use crate::control::Client;
use crate::data_dir::{DataDir, start_file, start_lock, start_log};
use crate::failure::Failure;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

/// A start warms V8 and opens the database: a second, with room for a slow disk.
const START: Duration = Duration::from_secs(30);
/// The part of the log read to learn why a start failed, bytes.
const LOG_TAIL: u64 = 64 * 1024;

/// Records that bridges may start the server, and with which configuration.
pub(crate) fn allow(data_dir: &Path, config: Option<&Path>) -> Result<(), Failure> {
    DataDir::make(data_dir)?;
    let path = start_file(data_dir);
    let config = config.map_or(String::new(), |path| path.display().to_string());
    let new = path.with_extension("new");
    let written = private(&new, OpenOptions::new().write(true).truncate(true))
        .and_then(|mut file| std::io::Write::write_all(&mut file, format!("{config}\n").as_bytes()))
        .and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|error| unusable(&path, &error))
}

/// Takes that back.
pub(crate) fn forbid(data_dir: &Path) -> Result<(), Failure> {
    let path = start_file(data_dir);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unusable(&path, &error)),
        _ => Ok(()),
    }
}

/// A connection to the server, which is started first if none runs and a
/// person allowed that.
pub(crate) async fn connect(context: &Context) -> Result<Client, Failure> {
    let data_dir = context.config()?.data_dir;
    let none = match Client::connect(&data_dir).await {
        Err(failure) if failure.code == "no_server" => failure,
        other => return other,
    };
    let Some(config) = allowed(&data_dir) else {
        return Err(Failure {
            next: "start one with `cambium serve`, or let bridges start it: `cambium setup \
                   --bridge-starts-server yes`"
                .into(),
            ..none
        });
    };
    let _turn = turn(&data_dir).await?;
    // Another bridge may have started it in the meantime.
    match Client::connect(&data_dir).await {
        Err(failure) if failure.code == "no_server" => {}
        other => return other,
    }
    start(&data_dir, &config).await?;
    Client::connect(&data_dir).await
}

/// The configuration a person named with the opt-in; `None` without one.
fn allowed(data_dir: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(start_file(data_dir)).ok()?;
    let path = text.trim_end_matches('\n');
    // Without a file then, none now: not whatever a default path holds meanwhile.
    Some(PathBuf::from(if path.is_empty() { "/dev/null" } else { path }))
}

/// Waits for the right to start, which ends with the file.
async fn turn(data_dir: &Path) -> Result<File, Failure> {
    let path = start_lock(data_dir);
    let locked = path.clone();
    let taken = tokio::task::spawn_blocking(move || {
        let file = private(&locked, OpenOptions::new().write(true))?;
        file.lock()?;
        Ok(file)
    });
    match tokio::time::timeout(START, taken).await {
        Ok(Ok(Ok(file))) => Ok(file),
        Ok(Ok(Err(error))) => Err(unusable(&path, &error)),
        Ok(Err(_)) | Err(_) => Err(not_ready(data_dir, "another bridge is still starting it")),
    }
}

async fn start(data_dir: &Path, config: &Path) -> Result<(), Failure> {
    let log_path = start_log(data_dir);
    let opened = private(&log_path, OpenOptions::new().append(true).read(true))
        .and_then(|mut log| Ok((log.seek(SeekFrom::End(0))?, log.try_clone()?, log)));
    let (from, stderr, mut log) = opened.map_err(|error| unusable(&log_path, &error))?;
    let own = std::env::current_exe()
        .map_err(|error| not_ready(data_dir, &format!("its program cannot be found: {error}")))?;
    let mut command = tokio::process::Command::new(own);
    command
        .env_clear()
        .args(["--json", "serve", "--own-session"])
        .arg("--config")
        .arg(config)
        .arg("--data-dir")
        .arg(data_dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr);
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    let mut child = command
        .spawn()
        .map_err(|error| not_ready(data_dir, &format!("it cannot be started: {error}")))?;
    let mut line = String::new();
    let heard = match child.stdout.take() {
        Some(stdout) => {
            tokio::time::timeout(START, BufReader::new(stdout).read_line(&mut line)).await
        }
        None => Ok(Ok(0)),
    };
    match heard {
        Ok(Ok(read)) if read > 0 => Ok(()),
        Ok(_) => {
            // It closed its stdout, so it has ended or is about to.
            let _ = tokio::time::timeout(START, child.wait()).await;
            Err(reason(&mut log, from).unwrap_or_else(|| not_ready(data_dir, "it ended at once")))
        }
        Err(_) => {
            let _ = child.kill().await;
            Err(not_ready(data_dir, "it was not ready in time"))
        }
    }
}

/// The error a server that could not start left as the last line of its log.
fn reason(log: &mut File, from: u64) -> Option<Failure> {
    log.seek(SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    log.take(LOG_TAIL).read_to_end(&mut text).ok()?;
    String::from_utf8_lossy(&text).lines().rev().find_map(|line| {
        let mut line: Value = serde_json::from_str(line).ok()?;
        serde_json::from_value(line["error"].take()).ok()
    })
}

fn private(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    // Nobody's link leads us to another file, and nobody's pipe or device is one.
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let file = options.create(true).mode(0o600).custom_flags(no_link).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::other("it is no regular file")),
    }
}

fn not_ready(data_dir: &Path, why: &str) -> Failure {
    Failure::new(
        "no_server",
        format!("no server runs on {}, and {why}", data_dir.display()),
        format!("look at {}, or start it with `cambium serve`", start_log(data_dir).display()),
    )
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        "data_dir_unwritable",
        format!("{} cannot be used: {error}", path.display()),
        "make it writable for this user",
    )
}
