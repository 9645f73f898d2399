//! The toolbox: versions and pointers as the rest of the engine reads them.
//! Every row's MAC is checked here before it is believed; versions, which never
//! change, are then kept in memory, pointers are read at each use. Publishing
//! is in `publish.rs`.

use crate::canonical::{canonical, digest};
use crate::check::normalise_schema;
use crate::command::Caller;
use crate::find::{Document, HITS_MAX, Index, WordScore};
use crate::port::{Pointer, RunRow, Store, VersionRow};
use crate::{
    Engine, EngineError, FindHit, FindReply, ListedTool, ToolKind, ToolName, ToolSource, Version,
    VersionLine,
};
use cambium_proxy::{ContentHash, MethodPattern, PersonId, StoreFault, Vault};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Versions kept in memory.
const VERSIONS_KEPT: usize = 2_000;
/// Methods that may be repeated without another effect.
const IDEMPOTENT: [&str; 4] = ["GET", "HEAD", "PUT", "DELETE"];

/// A version whose MAC held, with what is derived from it once.
pub(crate) struct Loaded {
    /// The version.
    pub(crate) version: Version,
    /// As a list shows it; its schema is the plain one inputs are checked by.
    pub(crate) listed: ListedTool,
    /// What runs, shared with every job.
    pub(crate) javascript: Arc<str>,
}

/// Reads the toolbox of one person.
pub(crate) struct Toolbox {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    person: PersonId,
    kept: Mutex<HashMap<(ToolName, u32), Arc<Loaded>>>,
    index: RwLock<Index>,
}

impl Toolbox {
    /// Reads every current version and indexes it. A row that does not hold is
    /// left out and logged, so that one cannot take the others down.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        person: PersonId,
    ) -> Result<Self, StoreFault> {
        let toolbox = Self {
            store,
            vault,
            person,
            kept: Mutex::default(),
            index: RwLock::new(Index::default()),
        };
        // One after the other: a large toolbox is several times its index.
        for pointer in toolbox.store.pointers(&toolbox.person).await? {
            if let Some(loaded) = toolbox.held(&pointer).await? {
                toolbox.indexed(&loaded);
            }
        }
        Ok(toolbox)
    }

    /// The current version of a tool.
    pub(crate) async fn current(
        &self,
        tool: &ToolName,
    ) -> Result<Option<(Pointer, Arc<Loaded>)>, StoreFault> {
        let Some(pointer) = self.store.pointer(&self.person, tool).await? else {
            return Ok(None);
        };
        let loaded = self.at(&pointer).await?;
        Ok(Some((pointer, loaded)))
    }

    /// One version of a tool.
    pub(crate) async fn version(
        &self,
        tool: &ToolName,
        number: u32,
    ) -> Result<Option<Arc<Loaded>>, StoreFault> {
        let key = (tool.clone(), number);
        if let Some(loaded) = self.kept().get(&key) {
            return Ok(Some(loaded.clone()));
        }
        let Some(row) = self.store.version(&self.person, tool, number).await? else {
            return Ok(None);
        };
        let named = row.version.person == self.person
            && row.version.tool == *tool
            && row.version.number == number;
        if !named || !version_holds(&self.vault, &row) {
            tracing::error!(%tool, number, "a version's MAC does not hold");
            return Err(StoreFault::Corrupt(format!("version {number} of `{tool}`")));
        }
        let loaded = Arc::new(load(row.version));
        let mut kept = self.kept();
        if kept.len() >= VERSIONS_KEPT {
            kept.clear();
        }
        kept.insert(key, loaded.clone());
        Ok(Some(loaded))
    }

    /// The current version of every tool, by wire name.
    pub(crate) async fn all(&self) -> Result<Vec<(Pointer, Arc<Loaded>)>, StoreFault> {
        let mut all = Vec::new();
        for pointer in self.store.pointers(&self.person).await? {
            if let Some(loaded) = self.held(&pointer).await? {
                all.push((pointer, loaded));
            }
        }
        Ok(all)
    }

    /// What a pointer names; one that does not hold is logged and left out.
    async fn held(&self, pointer: &Pointer) -> Result<Option<Arc<Loaded>>, StoreFault> {
        match self.at(pointer).await {
            Ok(loaded) => Ok(Some(loaded)),
            Err(StoreFault::Corrupt(reason)) => {
                tracing::error!(tool = %pointer.tool, reason, "left out of the toolbox");
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Lets find_tool know of a version that is now current.
    pub(crate) fn indexed(&self, loaded: &Loaded) {
        let version = &loaded.version;
        self.index.write().unwrap_or_else(PoisonError::into_inner).upsert(Document {
            tool: &version.tool,
            title: version.title.as_deref(),
            description: &version.description,
            input_schema: &version.input_schema,
        });
    }

    /// Signs a version.
    pub(crate) fn sign(&self, version: Version) -> VersionRow {
        let mac = self.vault.mac("version", &refs(&version_fields(&version))).to_vec();
        VersionRow { version, mac }
    }

    /// Signs a pointer.
    pub(crate) fn sign_pointer(&self, mut pointer: Pointer) -> Pointer {
        pointer.mac = self.vault.mac("pointer", &refs(&pointer_fields(&pointer))).to_vec();
        pointer
    }

    async fn at(&self, pointer: &Pointer) -> Result<Arc<Loaded>, StoreFault> {
        let tool = &pointer.tool;
        let fields = pointer_fields(pointer);
        let holds = pointer.person == self.person
            && self.vault.mac_holds("pointer", &refs(&fields), &pointer.mac);
        if !holds {
            tracing::error!(%tool, "a pointer's MAC does not hold");
            return Err(StoreFault::Corrupt(format!("the pointer of `{tool}`")));
        }
        match self.version(tool, pointer.number).await? {
            Some(loaded) if loaded.version.hash == pointer.hash => Ok(loaded),
            _ => Err(StoreFault::Corrupt(format!("the pointer of `{tool}` names no version"))),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<(ToolName, u32), Arc<Loaded>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Every tool's current version, by wire name.
    pub async fn tools(&self) -> Result<Vec<Version>, EngineError> {
        let all = self.toolbox.all().await?;
        Ok(all.into_iter().map(|(_, loaded)| loaded.version.clone()).collect())
    }

    /// The newest runs with what was seen of their ends, for a person.
    pub async fn runs(&self, most: u32) -> Result<Vec<RunRow>, EngineError> {
        Ok(self.parts.store.newest_runs(&self.person, most).await?)
    }

    /// Searches the whole toolbox; never asks, never counts as a use.
    pub async fn find_tool(&self, caller: &Caller, query: &str) -> Result<FindReply, EngineError> {
        let findings =
            self.toolbox.index.read().unwrap_or_else(PoisonError::into_inner).search(query);
        let set = self.parts.store.set(&caller.agent.id).await?;
        let promoted: HashSet<ToolName> = set.into_iter().map(|row| row.tool).collect();
        let mut hits = Vec::with_capacity(findings.hits.len());
        for found in findings.hits.iter().take(HITS_MAX) {
            // a row that does not hold is not shown; it was logged where it was read
            if let Ok(Some((_, loaded))) = self.toolbox.current(&found.tool).await {
                hits.push(hit(&loaded, promoted.contains(&found.tool), found.partial));
            }
        }
        let mut reply = FindReply {
            hits,
            total: findings.total,
            more: findings.more.iter().map(ToString::to_string).collect(),
            nearest: findings.nearest.iter().map(ToString::to_string).collect(),
            next: None,
            connections: Vec::new(),
        };
        if reply.hits.is_empty() {
            let look = match reply.nearest.is_empty() {
                true => "",
                false => ", see whether one of `nearest` does it (find_tool by its name)",
            };
            reply.next = Some(format!(
                "nothing matches: try other words{look}, or call acquire to have the tool \
                 authored, or publish_tool with a module of your own"
            ));
            for connection in self.connections().await? {
                if self.usable(&connection, Some(&caller.agent.id)).await.is_ok() {
                    reply.connections.push(connection.slug);
                }
            }
        }
        Ok(reply)
    }

    /// What each word of a query gives a tool's score: why it is found, or not.
    pub fn explain_find(&self, query: &str, tool: &ToolName) -> Vec<WordScore> {
        self.toolbox.index.read().unwrap_or_else(PoisonError::into_inner).explain(query, tool)
    }

    /// Any version, of demoted tools and of revoked connections too.
    pub async fn read_tool_source(
        &self,
        tool: &ToolName,
        version: Option<u32>,
    ) -> Result<ToolSource, EngineError> {
        let (pointer, current) = self.known(tool).await?;
        let loaded = match version {
            None => current,
            Some(number) => self.toolbox.version(tool, number).await?.ok_or_else(|| {
                EngineError::VersionNotFound { tool: tool.to_string(), version: number }
            })?,
        };
        let version = &loaded.version;
        Ok(ToolSource {
            tool: tool.to_string(),
            version: version.number,
            current: pointer.number,
            hash: version.hash.to_string(),
            description: version.description.clone(),
            source: version.source.clone(),
            hints: version.hints,
            call_sites: version.sites.clone(),
            input_schema: version.input_schema.clone(),
            output_schema: version.output_schema.clone(),
            published_ms: version.published_ms,
        })
    }

    /// Every version of a tool, oldest first.
    pub async fn versions(&self, tool: &ToolName) -> Result<Vec<VersionLine>, EngineError> {
        let (pointer, _) = self.known(tool).await?;
        let agents = self.agents().await?;
        let mut lines = Vec::new();
        // Numbers have no gaps.
        for number in 1.. {
            let Some(loaded) = self.toolbox.version(tool, number).await? else { break };
            let version = &loaded.version;
            let by = version.published_by.as_ref();
            lines.push(VersionLine {
                number,
                hash: version.hash.to_string(),
                published_ms: version.published_ms,
                published_by: by.map(|by| {
                    let named = agents.iter().find(|agent| &agent.id == by);
                    named.map_or_else(|| by.to_string(), |agent| agent.name.clone())
                }),
                current: number == pointer.number,
            });
        }
        Ok(lines)
    }

    /// The current version, or `tool_not_found`.
    pub(crate) async fn known(
        &self,
        tool: &ToolName,
    ) -> Result<(Pointer, Arc<Loaded>), EngineError> {
        let found = self.toolbox.current(tool).await?;
        found.ok_or_else(|| EngineError::ToolNotFound(tool.to_string()))
    }
}

/// The hash of a version's content.
pub(crate) fn content_hash(version: &Version) -> ContentHash {
    let output = version.output_schema.as_ref().map(canonical).unwrap_or_default();
    let input = canonical(&version.input_schema);
    let bundled = bundled(version);
    let mut fields = vec![
        version.source.as_bytes(),
        input.as_bytes(),
        output.as_bytes(),
        version.javascript.as_bytes(),
    ];
    fields.extend(bundled.iter().map(Vec::as_slice));
    ContentHash(digest(&fields))
}

/// Every file that goes with a version, by its digest; none for a version of
/// one module, so that its hash is what it was before there were any.
fn bundled(version: &Version) -> Vec<Vec<u8>> {
    let mut fields = Vec::new();
    for sdk in &version.sdks {
        fields.push(format!("sdk {} {} {}", sdk.label(), sdk.integrity, sdk.digest).into_bytes());
    }
    if let Some(component) = version.component {
        fields.push(format!("component {component}").into_bytes());
    }
    fields
}

/// What is derived from a version once.
pub(crate) fn load(version: Version) -> Loaded {
    let idempotent = !version.sites.is_empty()
        && version.sites.iter().all(|site| match &site.method {
            MethodPattern::Exactly(method) => IDEMPOTENT.contains(&method.as_str()),
            MethodPattern::Any => false,
        });
    let listed = ListedTool {
        tool: version.tool.clone(),
        title: version.title.clone(),
        description: version.description.clone(),
        // it passed at publish; a later rule must not take an old tool down
        input_schema: normalise_schema(&version.input_schema)
            .unwrap_or_else(|_| serde_json::json!({ "type": "object" })),
        hints: version.hints,
        idempotent,
    };
    let javascript = version.javascript.as_str().into();
    Loaded { version, listed, javascript }
}

fn hit(loaded: &Loaded, promoted: bool, partial: bool) -> FindHit {
    let listed = &loaded.listed;
    FindHit {
        vendor: listed.tool.vendor().to_owned(),
        name: listed.tool.name().to_owned(),
        wire_name: listed.tool.to_string(),
        description: listed.description.clone(),
        promoted,
        read_only_hint: listed.hints.read_only,
        destructive_hint: listed.hints.destructive,
        input_schema: listed.input_schema.clone(),
        output_schema: loaded.version.output_schema.clone(),
        partial,
    }
}

fn version_holds(vault: &Vault, row: &VersionRow) -> bool {
    vault.mac_holds("version", &refs(&version_fields(&row.version)), &row.mac)
}

/// Every field of a version. The optional ones say whether they are there.
fn version_fields(version: &Version) -> Vec<Vec<u8>> {
    let optional = |text: Option<String>| match text {
        Some(text) => format!("+{text}"),
        None => "-".to_owned(),
    };
    let kind = match version.kind {
        ToolKind::Typescript => "typescript",
        ToolKind::Component => "component",
    };
    let hints = [version.hints.read_only, version.hints.destructive];
    let sites = serde_json::to_value(&version.sites).unwrap_or_default();
    let published_by = version.published_by.as_ref().map(ToString::to_string);
    let fields = [
        version.person.to_string(),
        version.tool.to_string(),
        version.number.to_string(),
        version.hash.to_string(),
        kind.to_owned(),
        optional(version.title.clone()),
        version.description.clone(),
        canonical(&version.input_schema),
        optional(version.output_schema.as_ref().map(canonical)),
        optional(version.example_input.as_ref().map(canonical)),
        version.source.clone(),
        version.javascript.clone(),
        format!("{hints:?}"),
        canonical(&sites),
        version.connection.to_string(),
        optional(published_by),
        version.published_ms.to_string(),
    ];
    let mut fields = fields.map(String::into_bytes).to_vec();
    fields.extend(bundled(version));
    fields
}

fn pointer_fields(pointer: &Pointer) -> Vec<Vec<u8>> {
    let fields = [
        pointer.person.to_string(),
        pointer.tool.to_string(),
        pointer.sequence.to_string(),
        pointer.number.to_string(),
        pointer.hash.to_string(),
        pointer.at_ms.to_string(),
    ];
    fields.map(String::into_bytes).to_vec()
}

fn refs(fields: &[Vec<u8>]) -> Vec<&[u8]> {
    fields.iter().map(Vec::as_slice).collect()
}
