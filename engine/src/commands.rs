//! `run_command`: a shell command over the agent's workspace, in a jail of its
//! own without a network, as a job that is waited for as long as a harness
//! waits and collected later. What it changed of the workspace's files is
//! written back when it has ended by itself.

use crate::command::Caller;
use crate::flight::RunGuard;
use crate::id::new_id;
use crate::low_level::{Command, CommandEnd, CommandFault, Workbench};
use crate::port::{WorkspaceFile, WorkspacePut};
use crate::workspace::{FILE_BYTES, ROOM, clash, workspace_path};
use crate::{Engine, EngineError, Envelope, Live, Status, process};
use cambium_proxy::{AgentId, CommandRecord, RunId};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The fixed tool's name.
pub(crate) const RUN_COMMAND: &str = "run_command";
/// Longest command, bytes.
const COMMAND_BYTES: usize = 16 * 1024;
/// Seconds a command may take, unasked and at most.
const SECONDS: (u64, u64) = (60, 600);
/// How long an answer is held; clients time out at 60 s.
const HELD: Duration = Duration::from_secs(50);
/// Commands of this node at the same time: each may fork and fill memory up to
/// its limits.
const AT_ONCE: usize = 2;
/// Characters of a command that its audit row keeps.
const RECORDED_CHARS: usize = 400;
/// Paths named in an answer.
const NAMED: usize = 50;

/// Which agents have a command running.
#[derive(Default)]
pub(crate) struct Commands(Mutex<BTreeSet<AgentId>>);

/// One running command; its place is free again when this drops.
struct Place {
    commands: Arc<Commands>,
    agent: AgentId,
}

impl Commands {
    /// One at a time for each agent: two would write over each other's files.
    fn enter(self: &Arc<Self>, agent: &AgentId) -> Result<Place, EngineError> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.len() >= AT_ONCE || !running.insert(agent.clone()) {
            return Err(EngineError::Busy);
        }
        Ok(Place { commands: self.clone(), agent: agent.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.commands.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.agent);
    }
}

/// What came of a command's files.
#[derive(Default)]
struct Brought {
    changed: Vec<String>,
    removed: Vec<String>,
    notes: Vec<String>,
}

/// One command under way, with everything that ends with it.
struct Underway {
    engine: Arc<Engine>,
    bench: Arc<dyn Workbench>,
    command: Command,
    digest: [u8; 32],
    run: RunId,
    guard: RunGuard,
    _place: Place,
}

impl Engine {
    /// Runs a command over the agent's workspace.
    pub async fn run_command(
        &self,
        caller: &Caller,
        text: &str,
        timeout_seconds: Option<u64>,
        live: Live,
    ) -> Result<Envelope, EngineError> {
        caller.active()?;
        let agent = &caller.agent.id;
        let bench = self.bench_for(agent, RUN_COMMAND).await?.workbench.clone();
        if text.trim().is_empty() || text.len() > COMMAND_BYTES || text.contains('\0') {
            let reason = format!("must be 1 to {COMMAND_BYTES} bytes without a zero byte");
            return Err(EngineError::ArgumentInvalid { name: "command".into(), reason });
        }
        let asked = timeout_seconds.unwrap_or(SECONDS.0);
        let wall = Duration::from_secs(asked.clamp(1, SECONDS.1));
        let place = self.commands.enter(agent)?;
        let guard = self.flights.begin(agent).await?;
        let files = self.workspace_files(agent).await?;
        let (begun_ms, digest) = (self.now(), Sha256::digest(text.as_bytes()).into());
        let run = RunId::new(new_id(begun_ms)?);
        let recorded = text.chars().take(RECORDED_CHARS).collect();
        self.record(&run, agent, "run", digest, vec![recorded]).await?;
        let engine = self.me.upgrade().ok_or(EngineError::Busy)?;
        let command = Command { text: text.to_owned(), files, wall };
        let underway =
            Underway { engine, bench, command, digest, run: run.clone(), guard, _place: place };
        let cancel = self.stop_runs.child_token();
        let done = self.jobs.add(run.clone(), agent.clone(), begun_ms, cancel.clone());
        self.tasks.spawn(async move {
            let envelope = underway.carry_out(cancel).await;
            done.send_replace(Some(Arc::new(envelope)));
        });
        // A caller who goes away takes the command along; one who is told that
        // it runs on does not.
        let collected = self.wait_for_process(caller, run.as_str(), HELD);
        match live.cancel.run_until_cancelled(collected).await {
            Some(answered) => {
                let runs_on = |envelope: &Envelope| envelope.status == Status::Running;
                if !answered.as_ref().is_ok_and(runs_on) {
                    // Its end is told here: there is nothing to collect.
                    self.jobs.forget(&run);
                }
                answered
            }
            None => {
                self.cancel_process(caller, run.as_str()).await?;
                Ok(process::running(&run))
            }
        }
    }

    async fn workspace_files(&self, agent: &AgentId) -> Result<Vec<(String, String)>, EngineError> {
        let mut files = Vec::new();
        for path in self.parts.store.workspace_paths(agent).await? {
            if let Some(content) = self.parts.store.workspace_file(agent, &path).await? {
                files.push((path, content));
            }
        }
        Ok(files)
    }

    async fn record(
        &self,
        run: &RunId,
        agent: &AgentId,
        decision: &'static str,
        digest: [u8; 32],
        notes: Vec<String>,
    ) -> Result<(), EngineError> {
        let said = CommandRecord { run, agent, decision, digest, notes };
        Ok(self.parts.proxy.record_command(said).await?)
    }

    /// Writes back what a command changed and, if it ended well, removes what it
    /// removed; notes what could not be written and why.
    async fn bring_back(
        &self,
        agent: &AgentId,
        before: &HashMap<&str, &str>,
        end: &CommandEnd,
    ) -> Result<Brought, EngineError> {
        let store = &self.parts.store;
        let mut brought = Brought::default();
        let mut left_out = usize::from(end.files_cut);
        let gone = end.gone.iter().map(String::as_str);
        let gone: Vec<&str> = gone.filter(|path| before.contains_key(*path)).collect();
        if end.code == 0 && !gone.is_empty() {
            store.remove_workspace_files(agent, &gone).await?;
            brought.removed.extend(gone.iter().map(|&path| path.to_owned()));
        }
        // An edit goes ahead of what is new, which may fill the workspace.
        let (edits, new): (Vec<_>, Vec<_>) =
            end.files.iter().partition(|(path, _)| before.contains_key(path.as_str()));
        for (path, bytes) in edits.into_iter().chain(new) {
            let text = std::str::from_utf8(bytes).ok();
            let (Ok(path), Some(text)) = (workspace_path(path), text) else {
                left_out += 1;
                continue;
            };
            if before.get(path) == Some(&text) {
                continue;
            }
            let file = WorkspaceFile {
                agent: agent.clone(),
                path: path.to_owned(),
                content: text.to_owned(),
                written_ms: self.now(),
            };
            if bytes.len() > FILE_BYTES {
                left_out += 1;
                continue;
            }
            // Where a file became a folder or a folder a file, the old one is over
            // however the command ended.
            let instead: Vec<&str> = gone.iter().copied().filter(|old| clash(old, path)).collect();
            match store.put_workspace_file(&file, &instead, ROOM).await? {
                WorkspacePut::Written => brought.changed.push(path.to_owned()),
                WorkspacePut::Full | WorkspacePut::Clash(_) => {
                    left_out += 1;
                    continue;
                }
            }
            for old in instead {
                if !brought.removed.iter().any(|removed| removed == old) {
                    brought.removed.push(old.to_owned());
                }
            }
        }
        if let Some(path) = end.unplaced.first() {
            brought.notes.push(format!(
                "{} of the workspace's files, first `{path}`, were not there for the command: \
                 another file has the name of their folder; move or remove that one",
                end.unplaced.len()
            ));
        }
        if left_out > 0 {
            brought.notes.push(
                "some of what the command left was not brought back: the workspace takes text \
                 files of plain names, 256 KiB each, 200 and 8 MiB in all"
                    .to_owned(),
            );
        }
        Ok(brought)
    }
}

impl Underway {
    async fn carry_out(self, cancel: CancellationToken) -> Envelope {
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            () = self.guard.stopped().cancelled() => None,
            ended = self.bench.run(&self.command) => Some(ended),
        };
        let answered = match ended {
            Some(Ok(end)) => self.answer(&end).await,
            Some(Err(fault)) => Err(failed(&fault)),
            None => Err(EngineError::RunFailed {
                code: "cancelled",
                message: "the command was ended: the caller gave up or the server stops".into(),
            }),
        };
        let how = match &answered {
            Ok(envelope) => format!("exit:{}", envelope.result.as_ref().map_or(0, exit_code)),
            Err(error) => error.code().to_owned(),
        };
        let agent = &self.guard.agent();
        if let Err(error) =
            self.engine.record(&self.run, agent, "ended", self.digest, vec![how]).await
        {
            tracing::error!(%error, run = %self.run, "the end of a command could not be recorded");
        }
        let mut envelope = answered.unwrap_or_else(|error| Envelope::from(&error));
        envelope.run = Some(self.run.to_string());
        envelope
    }

    async fn answer(&self, end: &CommandEnd) -> Result<Envelope, EngineError> {
        let before = self.command.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let before: HashMap<&str, &str> = before.collect();
        let brought = self.engine.bring_back(self.guard.agent(), &before, end).await?;
        let (changed, more_changed) = named(brought.changed);
        let (removed, more_removed) = named(brought.removed);
        let result = json!({
            "exitCode": end.code,
            "stdout": end.stdout,
            "stderr": end.stderr,
            "stdoutTruncated": end.stdout_cut,
            "stderrTruncated": end.stderr_cut,
            "changedFiles": changed,
            "moreChangedFiles": more_changed,
            "removedFiles": removed,
            "moreRemovedFiles": more_removed,
        });
        Ok(Envelope { result: Some(result), notes: brought.notes, ..Envelope::of(Status::Ok) })
    }
}

/// The paths that an answer names, and how many there are beside.
fn named(mut paths: Vec<String>) -> (Vec<String>, Option<usize>) {
    let more = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    (paths, (more > 0).then_some(more))
}

fn exit_code(result: &serde_json::Value) -> i64 {
    result["exitCode"].as_i64().unwrap_or_default()
}

fn failed(fault: &CommandFault) -> EngineError {
    let message = fault.to_string();
    match fault {
        CommandFault::Timeout(_) => EngineError::RunFailed { code: "timeout", message },
        CommandFault::Output => EngineError::RunFailed { code: "output_limit", message },
        CommandFault::Unavailable(_) => EngineError::SandboxUnavailable(message),
    }
}
