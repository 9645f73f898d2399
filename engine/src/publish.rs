//! Publishing: check, name, connection, content, and one transaction that
//! stores the version, moves the pointer and promotes. Nothing is altered in
//! place; identical content is a no-op that says so.

mod many;

use crate::canonical::settled;
use crate::check::{normalise_schema, schema_validator};
use crate::command::Caller;
use crate::port::{Pointer, PublishRow};
use crate::toolbox::{Loaded, content_hash, load};
use crate::{
    CheckReport, Diagnostic, Engine, EngineError, Envelope, Event, Live, MoveCause, PersonProof,
    PublishRequest, Published, Publisher, Severity, ToolKind, ToolName, Version,
};
use cambium_proxy::{AgentId, Connection, ConnectionStatus, ContentHash, StoreFault};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Longest module, bytes. Longer ones never reach the checker.
const SOURCE_BYTES: usize = 256 * 1024;
/// How long a check may take, its worker's start included.
const CHECK_DEADLINE: Duration = Duration::from_secs(30);
/// How often a publish is tried again when another came between.
const PUBLISH_TRIES: usize = 4;

impl Engine {
    /// Checks a module without publishing it, as one of a connection's when the
    /// agent names one it may use.
    pub async fn check_tool(
        &self,
        caller: &Caller,
        source: &str,
        connection: Option<&str>,
    ) -> Result<CheckReport, EngineError> {
        let connection = match connection {
            Some(named) => Some(self.connection_for(&caller.agent.id, named).await?),
            None => None,
        };
        self.checked(source, connection.as_ref()).await
    }

    async fn checked(
        &self,
        source: &str,
        connection: Option<&Connection>,
    ) -> Result<CheckReport, EngineError> {
        let sdks = connection.map(|connection| connection.overrides.sdks.as_slice());
        let packages: Vec<String> =
            sdks.unwrap_or_default().iter().map(|sdk| sdk.name.clone()).collect();
        if source.len() > SOURCE_BYTES {
            return Err(EngineError::ArgumentInvalid {
                name: "source".into(),
                reason: format!(
                    "a module is at most {SOURCE_BYTES} bytes, this has {}",
                    source.len()
                ),
            });
        }
        let checked =
            tokio::time::timeout(CHECK_DEADLINE, self.parts.checker.check(source, &packages)).await;
        match checked {
            Ok(Ok(report)) => Ok(settled_report(report)),
            Ok(Err(reason)) => Err(EngineError::SandboxUnavailable(reason)),
            Err(_) => Err(EngineError::SandboxUnavailable("the check took too long".into())),
        }
    }

    /// Publishes a module as the next version of a tool.
    pub async fn publish(
        &self,
        publisher: &Publisher,
        request: PublishRequest,
    ) -> Result<Published, EngineError> {
        let (published_by, promote_for) = self.publishing(publisher).await?;
        let (draft, connection) = self.drafted(&request, published_by).await?;
        self.store_draft(&draft, &connection, promote_for.as_ref()).await
    }

    /// Dry-runs a module and publishes it when that did not fail; answers what
    /// the dry run said.
    pub async fn publish_tried(
        &self,
        caller: &Caller,
        request: PublishRequest,
        input: Value,
        live: Live,
    ) -> Result<(Published, Envelope), EngineError> {
        let (draft, tried) = self.try_request(caller, request, Some(input), live).await?;
        let failed = tried.is_error() || tried.details.is_some();
        if failed {
            let said = serde_json::to_value(&tried).unwrap_or_default();
            return Err(EngineError::DryRunFailed(Box::new(said)));
        }
        Ok((self.publish_draft(draft).await?, tried))
    }

    /// Dry-runs a module, with its own example when no input is given.
    pub(crate) async fn try_request(
        &self,
        caller: &Caller,
        request: PublishRequest,
        input: Option<Value>,
        live: Live,
    ) -> Result<(TriedDraft, Envelope), EngineError> {
        let publisher = Publisher::Agent(caller.clone());
        let (published_by, promote_for) = self.publishing(&publisher).await?;
        let (draft, connection) = self.drafted(&request, published_by).await?;
        let mut version = draft.version.clone();
        version.number = self.parts.store.newest_number(&self.person, &request.tool).await? + 1;
        let example = || version.example_input.clone().unwrap_or_else(|| serde_json::json!({}));
        let input = input.unwrap_or_else(example);
        let tried = self.try_draft(caller, Arc::new(load(version)), input, live).await;
        Ok((TriedDraft { draft, connection, promote_for }, tried))
    }

    /// Publishes what was tried.
    pub(crate) async fn publish_draft(&self, tried: TriedDraft) -> Result<Published, EngineError> {
        self.store_draft(&tried.draft, &tried.connection, tried.promote_for.as_ref()).await
    }

    /// Dry-runs a module without publishing it.
    pub async fn try_module(
        &self,
        caller: &Caller,
        request: PublishRequest,
        input: Value,
        live: Live,
    ) -> Result<Envelope, EngineError> {
        self.try_request(caller, request, Some(input), live).await.map(|(_, tried)| tried)
    }

    /// Moves the pointer back to a version that is there, or forward again. For
    /// approvals it is a publish: what was allowed for that content asks again.
    pub async fn rollback(
        &self,
        _proof: &PersonProof,
        tool: &ToolName,
        number: u32,
    ) -> Result<Published, EngineError> {
        let _deciding = self.approvals.deciding().await;
        let (pointer, current) = self.known(tool).await?;
        let wanted = self.toolbox.version(tool, number).await?.ok_or_else(|| {
            EngineError::VersionNotFound { tool: tool.to_string(), version: number }
        })?;
        let connection = self.connection(wanted.version.connection.as_str()).await?;
        let draft = Draft { version: wanted.version.clone(), advice: Vec::new() };
        if pointer.number == number {
            return Ok(draft.published(&wanted.version, &connection, true, false));
        }
        self.usable(&connection, None).await?;
        let hash = wanted.version.hash;
        let pointer = self.toolbox.sign_pointer(Pointer {
            person: self.person.clone(),
            tool: tool.clone(),
            sequence: pointer.sequence + 1,
            number,
            hash,
            at_ms: self.now(),
            mac: Vec::new(),
        });
        self.ask_again(tool, hash).await?;
        let row = PublishRow { version: None, pointer, promote_for: None };
        self.parts.store.publish(&row).await?;
        self.toolbox.indexed(&wanted);
        self.tell(&wanted, Some(&current), None).await;
        self.approvals.supersede(&self.person, tool, hash).await;
        Ok(draft.published(&wanted.version, &connection, false, false))
    }

    /// The difference between two versions of a tool, as a unified diff.
    pub async fn version_diff(
        &self,
        tool: &ToolName,
        from: u32,
        to: u32,
    ) -> Result<String, EngineError> {
        let (old, new) = (
            self.read_tool_source(tool, Some(from)).await?,
            self.read_tool_source(tool, Some(to)).await?,
        );
        let (old_name, new_name) =
            (format!("{tool} version {from}"), format!("{tool} version {to}"));
        Ok(crate::diff::unified((&old_name, &old.source), (&new_name, &new.source)))
    }

    /// Checks a module and names what it would be published as.
    async fn drafted(
        &self,
        request: &PublishRequest,
        published_by: Option<AgentId>,
    ) -> Result<(Draft, Connection), EngineError> {
        if request.tool.vendor() == "execute" {
            return Err(EngineError::NameInvalid {
                name: request.tool.to_string(),
                rule: "the vendor `execute` is reserved",
            });
        }
        // What may be imported is the connection's to say; a module at fault is
        // told of first.
        let bound =
            self.bound(&request.tool, request.connection.as_deref(), published_by.as_ref()).await;
        let report = self.checked(&request.source, bound.as_ref().ok()).await?;
        if !report.ok {
            return Err(EngineError::CheckFailed(report.diagnostics));
        }
        let connection = bound?;
        let draft = self.draft(request, report, &connection, published_by)?;
        Ok((draft, connection))
    }

    /// Stores a component's version; it has no findings.
    pub(crate) async fn store_component(
        &self,
        version: Version,
        connection: &Connection,
        promote_for: Option<&AgentId>,
    ) -> Result<Published, EngineError> {
        let draft = Draft { version, advice: Vec::new() };
        self.store_draft(&draft, connection, promote_for).await
    }

    async fn store_draft(
        &self,
        draft: &Draft,
        connection: &Connection,
        promote_for: Option<&AgentId>,
    ) -> Result<Published, EngineError> {
        let mut tries = 0;
        loop {
            match self.store_version(draft, connection, promote_for).await {
                Err(EngineError::Store(StoreFault::Conflict(_))) if tries < PUBLISH_TRIES => {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Who publishes, and for whom it is promoted.
    pub(crate) async fn publishing(
        &self,
        publisher: &Publisher,
    ) -> Result<(Option<AgentId>, Option<AgentId>), EngineError> {
        match publisher {
            Publisher::Agent(caller) => {
                caller.active()?;
                let agent = Caller::agent(caller).id.clone();
                Ok((Some(agent.clone()), Some(agent)))
            }
            Publisher::Person { promote_for: None } => Ok((None, None)),
            Publisher::Person { promote_for: Some(agent) } => {
                Ok((None, Some(self.agent_by_id(agent).await?.id)))
            }
        }
    }

    /// The connection a version is bound to.
    pub(crate) async fn bound(
        &self,
        tool: &ToolName,
        named: Option<&str>,
        publisher: Option<&AgentId>,
    ) -> Result<Connection, EngineError> {
        let vendor = tool.vendor();
        let wrong =
            |reason: String| EngineError::ArgumentInvalid { name: "connectionId".into(), reason };
        if let Some(named) = named {
            let connection = match publisher {
                Some(agent) => self.connection_for(agent, named).await?,
                None => self.connection(named).await?,
            };
            if connection.vendor != vendor {
                let slug = &connection.slug;
                return Err(wrong(format!(
                    "`{slug}` is a connection of `{}`, not of `{vendor}`",
                    connection.vendor
                )));
            }
            self.usable(&connection, publisher).await?;
            return Ok(connection);
        }
        let mut fitting = Vec::new();
        for connection in self.connections().await? {
            if connection.vendor == vendor
                && connection.status == ConnectionStatus::Connected
                && self.usable(&connection, publisher).await.is_ok()
            {
                fitting.push(connection);
            }
        }
        match (fitting.pop(), fitting.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => {
                Err(wrong(format!("`{vendor}` has several connections; name one of them")))
            }
            (None, _) => Err(EngineError::ConnectionNotFound(vendor.to_owned())),
        }
    }

    fn draft(
        &self,
        request: &PublishRequest,
        report: CheckReport,
        connection: &Connection,
        published_by: Option<AgentId>,
    ) -> Result<Draft, EngineError> {
        let missing = |what: &str| {
            EngineError::CheckFailed(vec![finding("export_missing", &format!("{what} is missing"))])
        };
        let labels: BTreeSet<&str> =
            connection.hosts.iter().map(|host| host.label.as_str()).collect();
        let unknown = report.sites.iter().filter_map(|site| site.host.as_deref());
        if let Some(host) = unknown.into_iter().find(|label| !labels.contains(label)) {
            let said = format!("`{host}` is no host label of `{}`", connection.slug);
            return Err(EngineError::CheckFailed(vec![finding("host_not_in_connection", &said)]));
        }
        let mut sdks = Vec::with_capacity(report.imports.len());
        for name in &report.imports {
            let listed = connection.overrides.sdks.iter().find(|sdk| sdk.name == *name);
            sdks.push(listed.cloned().ok_or_else(|| missing("an imported package"))?);
        }
        let mut version = Version {
            person: self.person.clone(),
            tool: request.tool.clone(),
            number: 0,
            hash: ContentHash([0; 32]),
            kind: ToolKind::Typescript,
            title: report.title,
            description: report.description.ok_or_else(|| missing("description"))?,
            input_schema: report.input_schema.ok_or_else(|| missing("inputSchema"))?,
            output_schema: report.output_schema,
            example_input: report.example_input,
            source: request.source.clone(),
            javascript: report.javascript.ok_or_else(|| missing("javascript"))?,
            sdks,
            component: None,
            hints: report.hints,
            sites: report.sites,
            connection: connection.id.clone(),
            published_by,
            published_ms: self.now(),
        };
        version.hash = content_hash(&version);
        Ok(Draft { version, advice: report.diagnostics })
    }

    /// One try: what is current is read anew, so that numbers follow on.
    async fn store_version(
        &self,
        draft: &Draft,
        connection: &Connection,
        promote_for: Option<&AgentId>,
    ) -> Result<Published, EngineError> {
        let tool = &draft.version.tool;
        // No revoke and no decision comes between what is read and what is stored.
        let _deciding = self.approvals.deciding().await;
        self.usable(&self.connection(connection.id.as_str()).await?, None).await?;
        let current = self.toolbox.current(tool).await?;
        if let Some((_, loaded)) = &current
            && loaded.version.hash == draft.version.hash
            && loaded.version.connection == connection.id
        {
            return self.unchanged(loaded, draft, connection, promote_for).await;
        }
        let mut version = draft.version.clone();
        version.number = self.parts.store.newest_number(&self.person, tool).await? + 1;
        let sequence = current.as_ref().map_or(0, |(pointer, _)| pointer.sequence) + 1;
        self.ask_again(tool, version.hash).await?;
        let row = self.publish_row(version.clone(), sequence, promote_for);
        let promoted = self.parts.store.publish(&row).await?;
        let loaded = load(version);
        self.toolbox.indexed(&loaded);
        let old = current.map(|(_, loaded)| loaded);
        self.tell(&loaded, old.as_deref(), promote_for.filter(|_| promoted)).await;
        self.approvals.supersede(&self.person, tool, loaded.version.hash).await;
        Ok(draft.published(&loaded.version, connection, false, promoted))
    }

    /// A signed version and the signed pointer that makes it current.
    fn publish_row(
        &self,
        version: Version,
        sequence: u64,
        promote_for: Option<&AgentId>,
    ) -> PublishRow {
        let pointer = self.toolbox.sign_pointer(Pointer {
            person: self.person.clone(),
            tool: version.tool.clone(),
            sequence,
            number: version.number,
            hash: version.hash,
            at_ms: version.published_ms,
            mac: Vec::new(),
        });
        let version = Some(self.toolbox.sign(version));
        PublishRow { version, pointer, promote_for: promote_for.cloned() }
    }

    async fn unchanged(
        &self,
        loaded: &Arc<Loaded>,
        draft: &Draft,
        connection: &Connection,
        promote_for: Option<&AgentId>,
    ) -> Result<Published, EngineError> {
        let tool = &loaded.version.tool;
        let mut promoted = false;
        if let Some(agent) = promote_for {
            let now = self.now();
            let moved = self.parts.store.promote(agent, tool, MoveCause::Publish, now).await?;
            promoted = moved.changed > 0;
            if promoted {
                self.send(Event::list_changed([agent.clone()]));
            }
        }
        Ok(draft.published(&loaded.version, connection, true, promoted))
    }

    /// Tells every agent whose list content changed.
    async fn tell(&self, new: &Loaded, old: Option<&Loaded>, promoted: Option<&AgentId>) {
        let agents = self.to_tell(new, old, promoted).await;
        // Nobody's list may show it, the toolbox does.
        self.send(Event::list_changed(agents));
    }

    /// Whose list content a publish changed.
    async fn to_tell(
        &self,
        new: &Loaded,
        old: Option<&Loaded>,
        promoted: Option<&AgentId>,
    ) -> BTreeSet<AgentId> {
        let mut agents: BTreeSet<AgentId> = promoted.cloned().into_iter().collect();
        if old.is_some_and(|old| old.listed != new.listed) {
            // It is published; who is told too few only lists later.
            match self.parts.store.holders(&self.person, &new.version.tool).await {
                Ok(holders) => agents.extend(holders),
                Err(fault) => tracing::warn!(%fault, "some agents were not told of a publish"),
            }
        }
        agents
    }
}

/// A module that was dry-run, ready to be published.
pub(crate) struct TriedDraft {
    draft: Draft,
    connection: Connection,
    promote_for: Option<AgentId>,
}

/// A version that is not numbered yet.
struct Draft {
    version: Version,
    advice: Vec<Diagnostic>,
}

impl Draft {
    fn published(
        &self,
        version: &Version,
        connection: &Connection,
        unchanged: bool,
        promoted: bool,
    ) -> Published {
        Published {
            tool: version.tool.to_string(),
            version: version.number,
            hash: version.hash.to_string(),
            unchanged,
            read_only_hint: version.hints.read_only,
            destructive_hint: version.hints.destructive,
            call_sites: version.sites.clone(),
            connection: connection.slug.clone(),
            promoted,
            advice: self.advice.clone(),
        }
    }
}

/// A report with what is asked of it besides.
fn settled_report(mut report: CheckReport) -> CheckReport {
    if report.ok {
        report.diagnostics.extend(beyond_the_check(&report));
        report.ok = report.diagnostics.iter().all(|found| found.severity != Severity::Error);
    }
    report
}

/// What is asked again of a report, which a jailed worker wrote: that its schema
/// is one, and that its literals read back as they were stored.
fn beyond_the_check(report: &CheckReport) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let schema = report.input_schema.as_ref();
    let plain = schema.map(normalise_schema);
    if let Some(Err(fault)) = plain.map(|plain| plain.and_then(|plain| schema_validator(&plain))) {
        found.push(finding(fault.code, &fault.message));
    }
    let literals = [
        ("inputSchema", schema),
        ("outputSchema", report.output_schema.as_ref()),
        ("exampleInput", report.example_input.as_ref()),
    ];
    for (name, value) in literals {
        if value.is_some_and(|value: &Value| settled(value).is_none()) {
            let said = format!("{name} holds a number with more digits than are kept");
            found.push(finding("number_too_precise", &said));
        }
    }
    found
}

fn finding(code: &str, said: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code.to_owned(),
        message: format!("{said}."),
        line: 1,
        column: 1,
        text: String::new(),
    }
}
