//! Importing a document: pinned on its connection, and each operation published
//! as a tool or left out with a reason. What the jailed reader answers is
//! foreign: every module goes through the check, and no name, method or hint is
//! taken from the document alone.

use super::{DOCUMENT_BYTES, DOCUMENT_BYTES_MAX, Draft, Drafted, Drafts, Wanted};
use crate::port::DocumentRow;
use crate::{CheckReport, Engine, EngineError, PersonProof, Published, Publisher, ToolName};
use cambium_proxy::{
    AgentId, CallSite, Connection, ContentHash, MethodPattern, PathPattern, StoreFault,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::time::Duration;

/// How long reading a document may take, its worker's start included.
const READ_DEADLINE: Duration = Duration::from_secs(60);
/// How often a pin is tried again when another came between.
const PIN_TRIES: usize = 4;

/// A document to import.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// Id or slug.
    pub connection: String,
    /// In front of every path.
    pub base_path: String,
    /// Which operations; empty means all.
    pub operations: Vec<String>,
    /// Promoted for this agent, if one is named.
    pub promote_for: Option<AgentId>,
    /// A person's word that the document may be larger than usual.
    pub large: bool,
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The connection, by slug.
    pub connection: String,
    /// SHA-256 of the document, as it is pinned.
    pub digest: String,
    /// The document's own title.
    pub title: String,
    /// The path its servers begin with, if it is not the one that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_path: Option<String>,
    /// One for each operation, in the document's order.
    pub tools: Vec<ImportedTool>,
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedTool {
    /// `GET /repos/{owner}`.
    pub operation: String,
    /// `<vendor>__<name>`, unless it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Version now current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Identical content was current already.
    pub unchanged: bool,
    /// Annotation.
    pub read_only_hint: bool,
    /// Annotation.
    pub destructive_hint: bool,
    /// Why it became no tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Engine {
    /// Reads a document a person chose, pins it on the connection and publishes
    /// its operations. Nothing is published when the document is refused.
    pub async fn import_openapi(
        &self,
        _proof: &PersonProof,
        request: ImportRequest,
        document: &[u8],
    ) -> Result<Imported, EngineError> {
        let connection = self.connection(&request.connection).await?;
        self.usable(&connection, None).await?;
        let most = if request.large { DOCUMENT_BYTES_MAX } else { DOCUMENT_BYTES };
        if document.len() > most {
            let more = if request.large { "" } else { "; --large takes larger ones" };
            return Err(EngineError::DocumentRefused(format!(
                "it has {} bytes, more than {most}{more}",
                document.len()
            )));
        }
        let wanted = Wanted {
            vendor: connection.vendor.clone(),
            base_path: request.base_path,
            operations: request.operations,
        };
        let drafts = self.drafts(document, &wanted).await?;
        let digest = self.pin(&connection, &wanted.base_path, document).await?;
        let publisher = Publisher::Person { promote_for: request.promote_for };
        let tools = self.publish_drafts(&publisher, &connection, drafts.drafts).await?;
        Ok(Imported {
            connection: connection.slug,
            digest: digest.to_string(),
            title: drafts.title,
            servers_path: drafts.servers_path.filter(|path| *path != wanted.base_path),
            tools,
        })
    }

    /// Reads a document in the jail. What comes back names no other vendor and
    /// no tool twice.
    pub(crate) async fn drafts(
        &self,
        document: &[u8],
        wanted: &Wanted,
    ) -> Result<Drafts, EngineError> {
        let read = self.parts.checker.draft(document, wanted);
        let read = tokio::time::timeout(READ_DEADLINE, read).await;
        let mut drafts = match read {
            Ok(Ok(Ok(drafts))) => drafts,
            Ok(Ok(Err(fault))) => return Err(EngineError::DocumentRefused(fault.0)),
            Ok(Err(reason)) => return Err(EngineError::SandboxUnavailable(reason)),
            Err(_) => {
                return Err(EngineError::DocumentRefused("reading it took too long".into()));
            }
        };
        let mut names = HashSet::new();
        for draft in &mut drafts.drafts {
            if let Drafted::Module(module) = &draft.outcome
                && (module.tool.vendor() != wanted.vendor || !names.insert(module.tool.clone()))
            {
                draft.outcome = Drafted::Refused("its name is not its own".into());
            }
        }
        Ok(drafts)
    }

    async fn publish_drafts(
        &self,
        publisher: &Publisher,
        connection: &Connection,
        drafts: Vec<Draft>,
    ) -> Result<Vec<ImportedTool>, EngineError> {
        let mut tools = Vec::with_capacity(drafts.len());
        let (mut places, mut modules): (Vec<usize>, Vec<(ToolName, String)>) = Default::default();
        let mut methods = Vec::new();
        for draft in drafts {
            let mut tool = ImportedTool {
                operation: draft.operation,
                tool: None,
                version: None,
                unchanged: false,
                read_only_hint: false,
                destructive_hint: false,
                refused: None,
            };
            match draft.outcome {
                Drafted::Module(module) => {
                    places.push(tools.len());
                    methods.push(draft.method);
                    modules.push((module.tool, module.source));
                }
                Drafted::Refused(reason) => tool.refused = Some(reason),
            }
            tools.push(tool);
        }
        let agrees = |at: usize, report: &CheckReport| agrees(&methods[at], report);
        let published = self.publish_many(publisher, connection, modules, agrees).await?;
        for (place, outcome) in places.into_iter().zip(published) {
            match outcome {
                Ok(published) => tools[place].take(published),
                Err(error) => tools[place].refused = Some(error.to_string()),
            }
        }
        Ok(tools)
    }

    /// Stores which document the connection's tools are made from.
    async fn pin(
        &self,
        connection: &Connection,
        base_path: &str,
        document: &[u8],
    ) -> Result<ContentHash, EngineError> {
        let digest = ContentHash(Sha256::digest(document).into());
        self.parts.store.put_file(&self.person, &digest, document, self.now()).await?;
        let mut tries = 0;
        loop {
            let last = self.parts.store.document(&connection.id).await?;
            if last.as_ref().is_some_and(|row| row.digest == digest && row.base_path == base_path) {
                return Ok(digest);
            }
            let row = DocumentRow {
                connection: connection.id.clone(),
                sequence: last.map_or(0, |row| row.sequence) + 1,
                digest,
                base_path: base_path.to_owned(),
                at_ms: self.now(),
            };
            match self.parts.store.pin_document(&row).await {
                Err(StoreFault::Conflict(_)) if tries < PIN_TRIES => tries += 1,
                answer => {
                    answer?;
                    return Ok(digest);
                }
            }
        }
    }
}

impl ImportedTool {
    fn take(&mut self, published: Published) {
        self.tool = Some(published.tool);
        self.version = Some(published.version);
        self.unchanged = published.unchanged;
        self.read_only_hint = published.read_only_hint;
        self.destructive_hint = published.destructive_hint;
    }
}

/// Whether the check read the operation's method off the module, and nothing else.
fn agrees(method: &str, report: &CheckReport) -> Result<(), String> {
    let exactly = MethodPattern::Exactly(method.to_owned());
    let followed = |site: &CallSite| site.method == exactly && site.path != PathPattern::Any;
    let one = report.sites.len() == 1 && report.sites.iter().all(followed);
    let hints = report.hints;
    let fits = match method {
        "GET" | "HEAD" => hints.read_only && !hints.destructive,
        "DELETE" => hints.destructive && !hints.read_only,
        _ => !hints.read_only && !hints.destructive,
    };
    match one && fits {
        true => Ok(()),
        false => Err(format!("the check reads another call off it than {method}")),
    }
}
