//! Each request of the control socket, handed to the engine, and its answer as
//! JSON. Nothing is decided here.

use super::{Actor, Audit, Change, Person, Request};
use crate::data_dir::DataDir;
use crate::failure::{Failure, unproved};
use crate::first_code::FirstCodes;
use crate::outside::Outside;
use cambium_engine::port::RunRow;
use cambium_engine::{
    CallRequest, Caller, ConnectionChange, DecideRequest, Engine, EngineError, ImportRequest, Live,
    NewConnection, NewSdk, PersonCredential, PersonProof, PublishRequest, Publisher, Replay,
    ToolName, Version,
};
use cambium_proxy::{
    AskId, AuditEvent, Connection, ConnectionStatus, Overrides, Proxy, Secret, Vault,
};
use cambium_store::Store;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// What the control socket speaks for.
pub(crate) struct Front {
    /// Carries everything out.
    pub(crate) engine: Arc<Engine>,
    /// Rotates the vault's key.
    pub(crate) proxy: Arc<Proxy>,
    /// Whose keys go into a backup.
    pub(crate) vault: Arc<Vault>,
    /// Whose rows do.
    pub(crate) store: Arc<Store>,
    /// Held by a backup under way.
    pub(crate) backing_up: tokio::sync::Mutex<()>,
    /// Sessions for sandboxes outside, where a door is configured.
    pub(crate) outside: Option<Arc<Outside>>,
    /// Answers for the audit.
    pub(crate) audit: Audit,
    /// `http://127.0.0.1:7171`.
    pub(crate) url: String,
    /// Where everything is kept.
    pub(crate) data_dir: PathBuf,
    /// What proves a person before the first passphrase.
    pub(crate) first_codes: Arc<FirstCodes>,
}

/// Said when a secret is entered that is not looked for in answers.
const SHORT_SECRET: &str = "the secret is under 8 bytes: it is not searched for in answers, since that \
     would hide innocent text; a vendor that echoes it shows it to the agent";

/// Audit rows read at a time while replaying.
const REPLAY_PAGE: u32 = 500;

pub(super) type Answered = Result<Value, Failure>;

impl Front {
    /// Carries one request out, given what followed its line. `live` says when
    /// the asker hangs up, and is told what a call waits for.
    pub(crate) async fn answer(&self, request: Request, bytes: &[u8], live: Live) -> Answered {
        let engine = &self.engine;
        match request {
            Request::Status {} => self.status().await,
            Request::SetPassphrase { who, passphrase } => {
                let proof = self.proof(who).await?;
                engine.set_passphrase(&proof, PersonCredential::Passphrase(passphrase)).await?;
                // Its file has done its work, and goes before this is answered.
                self.first_codes.current().await?;
                done()
            }
            Request::FirstCode {} => self.first_code().await,
            Request::IssueCode { who } => {
                self.proof(who).await?;
                if engine.needs_setup().await? {
                    // It would outlive the first passphrase, as no first code does.
                    return Err(EngineError::PersonRequired.into());
                }
                Ok(json!({ "code": engine.issue_code().await? }))
            }
            Request::Rollback { who, tool, version } => {
                let proof = self.proof(who).await?;
                value(engine.rollback(&proof, &tool, version).await?)
            }
            Request::ToolDiff { tool, from, to } => {
                Ok(json!({ "diff": engine.version_diff(&tool, from, to).await? }))
            }
            Request::Statistics {} => self.statistics().await,
            Request::SweepPlan {} => value(engine.sweep_plan().await?),
            Request::ToolList {} => {
                let list = engine.tools().await?;
                Ok(list.iter().map(summary).collect())
            }
            Request::ToolSource { tool, version } => {
                value(engine.read_tool_source(&tool, version).await?)
            }
            Request::ToolVersions { tool } => value(engine.versions(&tool).await?),
            Request::ToolFind { actor, query } => {
                let caller = self.caller(actor).await?;
                let mut found = value(engine.find_tool(&caller, &query).await?)?;
                for hit in found["hits"].as_array_mut().into_iter().flatten() {
                    let name = hit["wireName"].as_str().unwrap_or_default();
                    if let Ok(tool) = ToolName::parse(name) {
                        hit["why"] = value(engine.explain_find(&query, &tool))?;
                    }
                }
                Ok(found)
            }
            Request::ToolPromote { actor, tool } => {
                let caller = self.caller(actor).await?;
                let (size, listed) = engine.promote(&caller, &tool).await?;
                Ok(json!({ "size": size, "tool": listed }))
            }
            Request::ToolDemote { actor, tool } => {
                let caller = self.caller(actor).await?;
                Ok(json!({ "size": engine.demote(&caller, &tool).await? }))
            }
            Request::Publish { tool, connection, source, agent } => {
                let publisher = self.publisher(agent).await?;
                let request = PublishRequest { tool, connection, source };
                value(engine.publish(&publisher, request).await?)
            }
            Request::PublishComponent { tool, connection, manifest, agent, .. } => {
                let publisher = self.publisher(agent).await?;
                let named = connection.as_deref();
                value(engine.publish_component(&publisher, &tool, named, &manifest, bytes).await?)
            }
            Request::Try { actor, tool, connection, source, input } => {
                let caller = self.caller(actor).await?;
                let request = PublishRequest { tool, connection, source };
                value(engine.try_module(&caller, request, input, live).await?)
            }
            Request::ImportOpenapi {
                who, connection, base_path, operations, agent, large, ..
            } => {
                let proof = self.proof(who).await?;
                let promote_for = match agent {
                    Some(agent) => Some(engine.agent(&agent).await?.id),
                    None => None,
                };
                let request =
                    ImportRequest { connection, base_path, operations, promote_for, large };
                value(engine.import_openapi(&proof, request, bytes).await?)
            }
            Request::Call { actor, tool, input, dry_run, timeout_seconds } => {
                let caller = self.caller(actor).await?;
                let request =
                    CallRequest { tool, input, dry_run, detached: false, timeout_seconds };
                value(engine.call(&caller, request, live).await)
            }
            request @ (Request::AgentList {}
            | Request::AgentShow { .. }
            | Request::AgentCreate { .. }
            | Request::AgentRotate { .. }
            | Request::AgentSet { .. }) => super::agents::answer(self, request).await,
            request @ (Request::ConnectionList {}
            | Request::ConnectionAdd { .. }
            | Request::ConnectionShow { .. }
            | Request::ConnectionSet { .. }
            | Request::ConnectionAgents { .. }
            | Request::SdkAdd { .. }
            | Request::SdkRemove { .. }
            | Request::ConnectionReconnect { .. }
            | Request::ConnectionRevoke { .. }) => self.connections(request).await,
            Request::Watch { seen } => super::watch::unseen(engine, &seen, &live.cancel).await,
            request @ (Request::ProposalList {}
            | Request::ProposalAccept { .. }
            | Request::ProposalRefuse { .. }) => super::proposals::answer(self, request).await,
            request @ (Request::AskList {}
            | Request::StandingList {}
            | Request::AskShow { .. }
            | Request::AskDecide { .. }
            | Request::AskDismiss { .. }
            | Request::EveryTime { .. }
            | Request::Withdraw { .. }) => self.approvals(request).await,
            Request::PolicyExplain { tool, version, asked, overrides } => {
                value(engine.explain(&tool, version, &asked, overrides).await?)
            }
            Request::AuditReplay { connection, overrides } => {
                self.replay(&connection, overrides).await
            }
            Request::RunList { run, limit } => {
                let rows = engine.runs(limit).await?;
                let wanted = |row: &&RunRow| run.as_ref().is_none_or(|run| row.id.as_str() == run);
                Ok(rows.iter().filter(wanted).map(run_row).collect())
            }
            Request::Audit { ask } => self.audit.answer(ask).await,
            Request::VaultRotate { who } => {
                self.proof(who).await?;
                let rotated = self.proxy.rotate_vault().await;
                value(rotated.map_err(EngineError::Store)?)
            }
            Request::VaultLock { who, locked } => {
                self.proof(who).await?;
                self.lock(locked)
            }
            Request::SandboxOpen { who, agent, connection, write } => {
                let outside = self.outside()?;
                let proof = self.proof(who).await?;
                let agent = engine.agent(&agent).await?;
                let caller = engine.stand_in(&proof, &agent.id).await?;
                let (sandbox, told) = outside.session();
                let opened = engine.open_outside(&proof, &caller, &connection, write, sandbox);
                let run = opened.await?;
                let token = told.await.map_err(|_| {
                    let why = "the session ended before it was open";
                    Failure::from(EngineError::SandboxUnavailable(why.into()))
                })?;
                Ok(outside.pass(&run, &token))
            }
            Request::SandboxList {} => value(self.outside()?.list()),
            Request::SandboxClose { who, run } => {
                let outside = self.outside()?;
                self.proof(who).await?;
                if !outside.close(&run).await {
                    let shown: String = run.chars().take(64).collect();
                    return Err(Failure::new(
                        "run_not_found",
                        format!("no open session `{shown}`"),
                        "take one of `cambium sandbox list`",
                    ));
                }
                done()
            }
            Request::Backup { passphrase, file } => self.backup(passphrase, file).await,
            Request::Bridge { .. } => Err(Failure::new(
                "request_invalid",
                "a bridge is agreed at the start of a connection",
                "send `bridge` as the first line",
            )),
        }
    }

    async fn status(&self) -> Answered {
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "url": self.url,
            "dataDir": self.data_dir,
            "needsSetup": self.engine.needs_setup().await?,
        }))
    }

    /// A question that a call waits for, as it is put to the person.
    pub(super) async fn held(&self, ask: &AskId) -> Answered {
        let shown = self.engine.ask(ask).await?;
        Ok(json!({
            "id": shown.id,
            "link": self.engine.ask_link(&shown.id),
            "agentName": shown.agent_name,
            "tool": shown.tool,
            "method": shown.method,
            "authority": shown.authority,
            "target": shown.target,
            "expiresMs": shown.expires_ms,
        }))
    }

    /// Whoever reaches this socket may read the code's file as well.
    async fn first_code(&self) -> Answered {
        let first = self.first_codes.current().await?.ok_or_else(crate::cli::already)?;
        Ok(json!({
            "code": first.code,
            "expiresMs": first.expires_ms,
            "link": format!("{}/login?code={}", self.url, first.code),
        }))
    }

    /// Locks at once and unlocks last, so that a file that cannot be written or
    /// removed leaves the vault locked.
    fn lock(&self, locked: bool) -> Answered {
        if locked {
            self.proxy.lock_vault();
            DataDir::write_lock(&self.data_dir)?;
        } else {
            DataDir::remove_lock(&self.data_dir)?;
            self.proxy.unlock_vault();
        }
        tracing::warn!(locked, "the vault was locked or unlocked");
        Ok(json!({ "locked": locked }))
    }

    fn outside(&self) -> Result<&Outside, Failure> {
        self.outside.as_deref().ok_or_else(|| {
            Failure::new(
                "sandbox_listener_off",
                "this server has no listener for sandboxes outside",
                "set `sandbox.listen` in the configuration and start the server again",
            )
        })
    }

    async fn statistics(&self) -> Answered {
        let engine = &self.engine;
        let mut lists = Vec::new();
        for agent in engine.agents().await? {
            let listed = engine.listed(&agent.id).await?;
            let tools = listed.len();
            lists.push(json!({
                "agent": agent.name,
                "tools": tools,
                "tokens": cambium_mcp::listed_tokens(listed),
            }));
        }
        Ok(json!({ "tools": engine.statistics().await?, "lists": lists }))
    }

    async fn publisher(&self, agent: Option<String>) -> Result<Publisher, Failure> {
        let promote_for = match agent {
            Some(agent) => Some(self.engine.agent(&agent).await?.id),
            None => None,
        };
        Ok(Publisher::Person { promote_for })
    }

    /// A connection with the names of the agents it is for; none means all.
    async fn whom(&self, connection: Connection) -> Answered {
        let mut names = Vec::new();
        for agent in self.engine.scope_of(&connection.id).await? {
            names.push(self.engine.agent(agent.as_str()).await?.name);
        }
        let mut shown = value(connection)?;
        shown["agents"] = json!(names);
        Ok(shown)
    }

    async fn connections(&self, request: Request) -> Answered {
        let engine = &self.engine;
        match request {
            Request::ConnectionAdd { who, connection, secret } => {
                let proof = self.proof(who).await?;
                let mut agents = Vec::with_capacity(connection.agents.len());
                for agent in &connection.agents {
                    agents.push(engine.agent(agent).await?.id);
                }
                let new = NewConnection {
                    slug: connection.slug,
                    vendor: connection.vendor,
                    display_name: connection.display_name,
                    hosts: connection.hosts,
                    scheme: connection.scheme,
                    exceptions: connection.exceptions,
                    ca_pem: connection.ca_pem,
                    overrides: connection.overrides,
                    agents,
                };
                let secret = secret.map(|text| Secret::new(text.into_bytes()));
                let short = secret.as_ref().is_some_and(Secret::is_too_short_to_hide);
                let made = engine.create_connection(&proof, new, secret).await?;
                let mut made = self.with_link(made)?;
                made["warnings"] = json!(if short { vec![SHORT_SECRET] } else { Vec::new() });
                Ok(made)
            }
            Request::ConnectionShow { connection } => {
                let connection = engine.connection(&connection).await?;
                self.whom(connection).await
            }
            Request::ConnectionAgents { who, connection, agents } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                let mut ids = Vec::with_capacity(agents.len());
                for agent in &agents {
                    ids.push(engine.agent(agent).await?.id);
                }
                engine.change_scope(&proof, &connection.id, &ids).await?;
                self.whom(connection).await
            }
            Request::ConnectionSet { who, connection, change, secret, same_account } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                let Change { exceptions, overrides, ca_pem } = change;
                let ca_pem = ca_pem.map(|pem| (!pem.is_empty()).then_some(pem));
                let change = ConnectionChange { exceptions, overrides, ca_pem };
                let mut after = engine.change_connection(&proof, &connection.id, change).await?;
                if let Some(secret) = secret {
                    let secret = Secret::new(secret.into_bytes());
                    after = engine.enter_secret(&proof, &after.id, secret, same_account).await?;
                }
                self.whom(after).await
            }
            Request::SdkAdd { who, connection, name, version, integrity, bundle } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                let new = NewSdk { name, version, integrity, bundle };
                value(engine.add_sdk(&proof, &connection.id, new).await?)
            }
            Request::SdkRemove { who, connection, name } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                value(engine.remove_sdk(&proof, &connection.id, &name).await?)
            }
            Request::ConnectionRevoke { who, connection } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                engine.revoke_connection(&proof, &connection.id).await?;
                done()
            }
            Request::ConnectionReconnect { who, connection, secret } => {
                let proof = self.proof(who).await?;
                let connection = engine.connection(&connection).await?;
                let secret = secret.map(|text| Secret::new(text.into_bytes()));
                let made = engine.reconnect_connection(&proof, &connection.id, secret).await?;
                self.with_link(made)
            }
            _ => value(engine.connections().await?),
        }
    }

    /// A connection, with the way to its sign-in while it waits for one.
    pub(super) fn with_link(&self, made: Connection) -> Answered {
        let waits = made.status == ConnectionStatus::Pending;
        let link = waits.then(|| format!("{}/connections/{}/authorize", self.url, made.slug));
        let mut made = value(made)?;
        if let Some(link) = link {
            made["authorize"] = link.into();
        }
        Ok(made)
    }

    async fn approvals(&self, request: Request) -> Answered {
        let engine = &self.engine;
        match request {
            Request::StandingList {} => value(engine.standing_answers().await?),
            Request::AskShow { ask } => value(engine.ask(&AskId::new(ask)).await?),
            Request::AskDecide { who, ask, answer } => {
                let proof = self.proof(who).await?;
                let request =
                    DecideRequest { ask: AskId::new(ask), answer, channel: "cli".to_owned() };
                value(engine.decide(&proof, request).await?)
            }
            Request::AskDismiss { who, ask } => {
                let proof = self.proof(who).await?;
                value(engine.dismiss(&proof, &AskId::new(ask)).await?)
            }
            Request::EveryTime { who, agent, tool, on } => {
                let proof = self.proof(who).await?;
                let agent = engine.agent(&agent).await?;
                engine.set_every_time(&proof, &agent.id, &tool, on).await?;
                Ok(json!({ "agent": agent.name, "tool": tool.to_string(), "everyTime": on }))
            }
            Request::Withdraw { who, agent, tool } => {
                let proof = self.proof(who).await?;
                let agent = engine.agent(&agent).await?;
                engine.withdraw(&proof, &agent.id, &tool).await?;
                done()
            }
            _ => value(engine.asks().await?),
        }
    }

    async fn backup(&self, passphrase: String, file: PathBuf) -> Answered {
        self.proof(Person::Passphrase(passphrase.clone())).await?;
        let _alone = self.backing_up.try_lock().map_err(|_| {
            Failure::new("busy", "another backup is being made", "wait for it, then try again")
        })?;
        let copy = DataDir::copy(&self.data_dir);
        // Left from a crash.
        let _ = std::fs::remove_file(&copy);
        let copied = self.store.snapshot(&copy).await;
        copied.map_err(|fault| Failure::from(EngineError::Store(fault)))?;
        let (vault, from, to) = (self.vault.clone(), copy.clone(), file.clone());
        let sealed = tokio::task::spawn_blocking(move || {
            crate::backup::write(&vault, &passphrase, &from, &to)
        });
        let sealed = sealed.await.unwrap_or_else(|_| {
            Err(Failure::new("backup_unwritten", "sealing the backup failed", "look at the log"))
        });
        let _ = std::fs::remove_file(&copy);
        Ok(json!({ "file": file, "bytes": sealed? }))
    }

    /// The whole chain, page by page, so that its length takes no memory.
    async fn replay(&self, connection: &str, overrides: Overrides) -> Answered {
        let unread = |fault| Failure::from(cambium_engine::EngineError::Store(fault));
        let mut connection = self.engine.connection(connection).await?;
        connection.overrides = overrides;
        let (mut after, mut whole) = (0, Replay::default());
        loop {
            let rows =
                self.audit.sink.rows(&self.audit.node, after, REPLAY_PAGE).await.map_err(unread)?;
            let Some(last) = rows.last() else { break };
            after = last.sequence;
            let events: Vec<AuditEvent> =
                rows.iter().filter_map(|row| serde_json::from_str(&row.event).ok()).collect();
            let page = self.engine.replay(&connection, &events).await?;
            whole.judged += page.judged;
            whole.skipped += page.skipped;
            whole.flips.extend(page.flips);
        }
        value(whole)
    }

    pub(super) async fn proof(&self, who: Person) -> Result<PersonProof, Failure> {
        let passphrase = matches!(who, Person::Passphrase(_));
        match self.engine.prove_person(who.into()).await {
            Ok(proof) => Ok(proof),
            Err(error) => {
                let unknown = error == EngineError::PersonRequired;
                let first = unknown && self.engine.needs_setup().await?;
                Err(unproved(error, passphrase, first))
            }
        }
    }

    async fn caller(&self, actor: Actor) -> Result<Caller, Failure> {
        match actor {
            Actor::Token(token) => Ok(self.engine.authenticate(&token).await?),
            Actor::Person { agent, who } => {
                let proof = self.proof(who).await?;
                let agent = self.engine.agent(&agent).await?;
                Ok(self.engine.stand_in(&proof, &agent.id).await?)
            }
        }
    }
}

fn summary(version: &Version) -> Value {
    json!({
        "tool": version.tool.to_string(),
        "version": version.number,
        "hash": version.hash,
        "kind": version.kind,
        "title": version.title,
        "description": version.description,
        "readOnlyHint": version.hints.read_only,
        "destructiveHint": version.hints.destructive,
        "callSites": version.sites,
        "connection": version.connection,
        "publishedMs": version.published_ms,
    })
}

fn run_row(row: &RunRow) -> Value {
    let evidence = row.evidence.as_deref().and_then(|text| serde_json::from_str(text).ok());
    json!({
        "run": row.id,
        "agent": row.agent,
        "tool": row.tool.to_string(),
        "version": row.number,
        "dryRun": row.dry_run,
        "begunMs": row.begun_ms,
        "endedMs": row.ended_ms,
        "outcome": row.outcome,
        "evidence": evidence.unwrap_or(Value::Null),
    })
}

pub(super) fn value(answer: impl Serialize) -> Answered {
    serde_json::to_value(answer).map_err(|error| {
        Failure::new("answer_unshowable", format!("the answer has no JSON form: {error}"), "")
    })
}

pub(super) fn done() -> Answered {
    Ok(json!({ "done": true }))
}
