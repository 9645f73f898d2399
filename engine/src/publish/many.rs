//! Publishing many modules at once, as an import does: checked in few jailed
//! processes and stored in one transaction, each by the same rules as a single
//! publish. All of them are of one connection and one author, so that a module
//! that broke its checker could lie about its own kind only.

use super::{CHECK_DEADLINE, Draft, PUBLISH_TRIES, settled_report};
use crate::port::PublishRow;
use crate::toolbox::{Loaded, load};
use crate::{
    CheckReport, Engine, EngineError, Event, MoveCause, PublishRequest, Published, Publisher,
    ToolName,
};
use cambium_proxy::{AgentId, Connection, StoreFault};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Modules checked by one process.
const CHECKED_AT_ONCE: usize = 64;

/// What one draft comes to.
enum Step {
    /// A row of the transaction, by its place there.
    Row(usize, Option<Arc<Loaded>>, Arc<Loaded>),
    /// It is current as it is.
    Same(Arc<Loaded>),
}

impl Engine {
    /// Publishes each module or says why not. `agrees` has the last word on a
    /// report. An error of the whole means that nothing was stored.
    pub(crate) async fn publish_many(
        &self,
        publisher: &Publisher,
        connection: &Connection,
        modules: Vec<(ToolName, String)>,
        agrees: impl Fn(usize, &CheckReport) -> Result<(), String>,
    ) -> Result<Vec<Result<Published, EngineError>>, EngineError> {
        let (published_by, promote_for) = self.publishing(publisher).await?;
        let (tools, sources): (Vec<_>, Vec<_>) = modules.into_iter().unzip();
        let mut reports = Vec::with_capacity(sources.len());
        for sources in sources.chunks(CHECKED_AT_ONCE) {
            reports.extend(self.checked_all(sources).await?);
        }
        let mut drafts = Vec::with_capacity(reports.len());
        for (at, report) in reports.into_iter().enumerate() {
            let request = PublishRequest {
                tool: tools[at].clone(),
                connection: None,
                source: sources[at].clone(),
            };
            drafts.push(if !report.ok {
                Err(EngineError::CheckFailed(report.diagnostics))
            } else if let Err(reason) = agrees(at, &report) {
                Err(EngineError::DocumentRefused(reason))
            } else {
                self.draft(&request, report, connection, published_by.clone())
            });
        }
        let mut tries = 0;
        let steps = loop {
            match self.store_many(&drafts, connection, promote_for.as_ref()).await {
                Err(EngineError::Store(StoreFault::Conflict(_))) if tries < PUBLISH_TRIES => {
                    tries += 1;
                }
                answer => break answer?,
            }
        };
        let mut published = Vec::with_capacity(drafts.len());
        for (draft, step) in drafts.into_iter().zip(steps) {
            published.push(match (draft, step) {
                (Err(error), _) => Err(error),
                (Ok(draft), Some((version, unchanged, promoted))) => {
                    Ok(draft.published(&version.version, connection, unchanged, promoted))
                }
                (Ok(_), None) => Err(EngineError::Busy),
            });
        }
        Ok(published)
    }

    async fn checked_all(&self, sources: &[String]) -> Result<Vec<CheckReport>, EngineError> {
        let checked = self.parts.checker.check_all(sources);
        match tokio::time::timeout(CHECK_DEADLINE, checked).await {
            Ok(Ok(reports)) if reports.len() == sources.len() => {
                Ok(reports.into_iter().map(settled_report).collect())
            }
            Ok(Ok(_)) => Err(EngineError::SandboxUnavailable("some checks did not answer".into())),
            Ok(Err(reason)) => Err(EngineError::SandboxUnavailable(reason)),
            Err(_) => Err(EngineError::SandboxUnavailable("the check took too long".into())),
        }
    }

    /// One try: what is current is read anew, and all of it is stored or none.
    /// Answers for each draft its version, and whether it was there and promoted.
    #[allow(clippy::type_complexity)]
    async fn store_many(
        &self,
        drafts: &[Result<Draft, EngineError>],
        connection: &Connection,
        promote_for: Option<&AgentId>,
    ) -> Result<Vec<Option<(Arc<Loaded>, bool, bool)>>, EngineError> {
        let _deciding = self.approvals.deciding().await;
        self.usable(&self.connection(connection.id.as_str()).await?, None).await?;
        let (mut rows, mut steps): (Vec<PublishRow>, Vec<Option<Step>>) = Default::default();
        for draft in drafts {
            let Ok(draft) = draft else {
                steps.push(None);
                continue;
            };
            let tool = &draft.version.tool;
            let current = self.toolbox.current(tool).await?;
            if let Some((_, loaded)) = &current
                && loaded.version.hash == draft.version.hash
                && loaded.version.connection == connection.id
            {
                steps.push(Some(Step::Same(loaded.clone())));
                continue;
            }
            let newest = self.parts.store.newest_number(&self.person, tool).await?;
            if newest > 0 {
                self.ask_again(tool, draft.version.hash).await?;
            }
            let mut version = draft.version.clone();
            version.number = newest + 1;
            let sequence = current.as_ref().map_or(0, |(pointer, _)| pointer.sequence) + 1;
            let old = current.map(|(_, loaded)| loaded);
            steps.push(Some(Step::Row(rows.len(), old, Arc::new(load(version.clone())))));
            rows.push(self.publish_row(version, sequence, promote_for));
        }
        let promoted = self.parts.store.publish_all(&rows).await?;
        self.told_many(steps, &promoted, promote_for).await
    }

    #[allow(clippy::type_complexity)]
    async fn told_many(
        &self,
        steps: Vec<Option<Step>>,
        promoted: &[bool],
        promote_for: Option<&AgentId>,
    ) -> Result<Vec<Option<(Arc<Loaded>, bool, bool)>>, EngineError> {
        let mut told = BTreeSet::new();
        let mut answers = Vec::with_capacity(steps.len());
        for step in steps {
            answers.push(match step {
                None => None,
                Some(Step::Same(loaded)) => {
                    let promoted = match promote_for {
                        None => false,
                        Some(agent) => {
                            let (tool, now) = (&loaded.version.tool, self.now());
                            let store = &self.parts.store;
                            let moved = store.promote(agent, tool, MoveCause::Publish, now).await?;
                            moved.changed > 0
                        }
                    };
                    told.extend(promote_for.filter(|_| promoted).cloned());
                    Some((loaded, true, promoted))
                }
                Some(Step::Row(at, old, loaded)) => {
                    self.toolbox.indexed(&loaded);
                    let promoted = promoted.get(at).copied().unwrap_or(false);
                    let agent = promote_for.filter(|_| promoted);
                    told.extend(self.to_tell(&loaded, old.as_deref(), agent).await);
                    if old.is_some() {
                        let version = &loaded.version;
                        self.approvals.supersede(&self.person, &version.tool, version.hash).await;
                    }
                    Some((loaded, false, promoted))
                }
            });
        }
        self.send(Event::list_changed(told));
        Ok(answers)
    }
}
