//! The first author: the OpenAPI document a person pinned on the connection.
//! No model: the operation that fits the goal is found as find_tool finds, and
//! its module is the one an import would publish.

use super::{OWN_PEN, Short, Work, failed};
use crate::find::Document;
use crate::openapi::{Drafted, Drafts, Module, Wanted};
use crate::{EngineError, Index, Published, ToolName};
use cambium_proxy::StoreFault;
use sha2::{Digest, Sha256};

/// Operations that are looked at: those find_tool would show first.
const CANDIDATES: usize = 3;

impl Work<'_> {
    /// Makes the tool from the pinned document.
    pub(super) async fn by_document(&mut self) -> Result<Published, Short> {
        let store = &self.engine.parts.store;
        let Some(pin) = store.document(&self.connection.id).await? else {
            return Err(Short::NotMine("no document is pinned on the connection".into()));
        };
        let text = store.file(&self.engine.person, &pin.digest).await?;
        let text = text.filter(|text| Sha256::digest(text).as_slice() == pin.digest.0);
        let text = text
            .ok_or_else(|| EngineError::Store(StoreFault::Corrupt("the pinned document".into())))?;
        let wanted = Wanted {
            vendor: self.connection.vendor.clone(),
            base_path: pin.base_path,
            operations: self.hints.operation.clone().into_iter().collect(),
        };
        let drafts = match self.engine.drafts(&text, &wanted).await {
            Err(EngineError::DocumentRefused(reason)) => return Err(Short::NotMine(reason)),
            drafts => drafts?,
        };
        drop(text);
        let fitting = self.fitting(&drafts);
        self.references = fitting.iter().map(|module| module.source.clone()).collect();
        for module in fitting {
            let tool = self.free(module.tool.clone(), &module.source).await?;
            self.line(&format!("{} fits: trying it", module.tool)).await;
            let input = self.hints.example_input.clone().or_else(|| module.example_input.clone());
            match self.try_module(&tool, &module.source, input).await {
                Ok(published) => return Ok(published),
                Err(super::trial::Failing::Check(diagnostics)) => {
                    let first = diagnostics.first().map(|found| found.code.clone());
                    self.line(&format!("it does not pass the check: {first:?}")).await;
                }
                Err(super::trial::Failing::Trial(reason)) => {
                    let mut error = failed(
                        "dry_run_unverified",
                        format!("{tool} was not published: {reason}"),
                        "give hints.exampleInput with values that exist at the vendor and acquire \
                         again; or publish the source with publish_tool, or ask the person to",
                    );
                    error.source = Some(module.source.clone());
                    return Err(Short::Failed(error));
                }
                Err(super::trial::Failing::Over(short)) => return Err(short),
            }
        }
        Err(Short::NotMine("none of its operations fits the goal".into()))
    }

    /// The modules whose words are the goal's, best first.
    fn fitting<'d>(&self, drafts: &'d Drafts) -> Vec<&'d Module> {
        let modules: Vec<&Module> = drafts
            .drafts
            .iter()
            .filter_map(|draft| match &draft.outcome {
                Drafted::Module(module) => Some(&**module),
                Drafted::Refused(_) => None,
            })
            .collect();
        if self.hints.operation.is_some() {
            return modules.into_iter().take(CANDIDATES).collect();
        }
        let mut index = Index::default();
        for module in &modules {
            index.upsert(Document {
                tool: &module.tool,
                title: None,
                description: &module.description,
                input_schema: &module.input_schema,
            });
        }
        let hits = index.search(&self.row.goal).hits;
        let of = |tool: &ToolName| modules.iter().find(|module| module.tool == *tool).copied();
        hits.iter().take(CANDIDATES).filter_map(|hit| of(&hit.tool)).collect()
    }

    /// A name that replaces nothing: the one asked for, or one with a number. A
    /// tool of that name with this very source is the tool itself.
    pub(super) async fn free(&self, tool: ToolName, source: &str) -> Result<ToolName, Short> {
        for number in 1..10 {
            let name = match number {
                1 => tool.clone(),
                _ => {
                    let room = 46_usize.saturating_sub(tool.vendor().len() + 2);
                    let start = &tool.name()[..tool.name().len().min(room)];
                    let name = format!("{}-{number}", start.trim_end_matches('-'));
                    ToolName::new(tool.vendor(), &name)?
                }
            };
            match self.engine.toolbox.current(&name).await? {
                Some((_, loaded)) if loaded.version.source != source => {}
                _ => return Ok(name),
            }
        }
        Err(Short::Failed(failed("taken", format!("`{tool}` and its like are taken"), OWN_PEN)))
    }
}
