//! The engine's check, run where hostile text can do no harm: a one-shot
//! process of the jail parses the module, and what it answers is read as
//! foreign JSON. Where a type checker is configured, its findings are added.
//! OpenAPI documents are read the same way.

use crate::failure::Failure;
use crate::typescript::TypeScript;
use cambium_engine::{
    CheckReport, Checker, DocumentFault, Drafts, Wanted, check_all_bytes, check_bytes, check_input,
    draft_bytes, draft_input, readable_bytes,
};
use cambium_jail::{
    Jail, JailConfig, JailError, LayerReport, OneshotError, OneshotFn, OneshotLimits, WorkerLimits,
};
use cambium_proxy::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The functions jailed processes of this binary can be asked for.
pub(crate) const ONESHOTS: &[(&str, OneshotFn)] = &[
    (CHECK, check_bytes),
    (CHECK_ALL, check_all_bytes),
    (DRAFT, draft_bytes),
    (READABLE, readable_bytes),
];

/// Names of the check among them, of one module and of many, and of the reader
/// of OpenAPI documents.
const CHECK: &str = "check";
const CHECK_ALL: &str = "check-all";
const DRAFT: &str = "draft";
/// The name of what draws the text out of a page.
pub(crate) const READABLE: &str = "readable";
/// The smallest module that is read to its end.
const PROBE: &str = "export const description = \"\";";
/// A module of 256 KiB is checked in well under a second.
const WALL: Duration = Duration::from_secs(10);
/// Longest report, bytes: emitted code and 200 findings with room.
const REPORT_BYTES: usize = 4 * 1024 * 1024;

/// A few dozen modules are checked in a second; the largest document in public
/// use is read in two.
const MANY_WALL: Duration = Duration::from_secs(45);
/// A document takes some twenty times its size while it is read.
const MANY_BYTES: u64 = 1536 * 1024 * 1024;
/// Longest answer about many modules, bytes: some 4 KB each for a thousand, with
/// room.
const DRAFTS_BYTES: usize = 64 * 1024 * 1024;

/// Runs the check in the jail.
pub(crate) struct JailedChecker {
    jail: Jail,
    typescript: Option<TypeScript>,
    /// The type checker's failure was said.
    said: AtomicBool,
}

impl JailedChecker {
    /// Starts the jail and sends one small module through it, so that a machine
    /// on which a required layer does not hold is told so now.
    pub(crate) async fn start(
        zygote: bool,
        allow_weak: bool,
        typescript: Option<TypeScript>,
    ) -> Result<Self, Failure> {
        let config = JailConfig { zygote, allow_weak, pool: 0, ..JailConfig::default() };
        let jail = Jail::start(config).map_err(|error| refused(&error))?;
        let checker = Self { jail, typescript, said: AtomicBool::new(false) };
        match checker.report(PROBE, &[]).await {
            Ok(_) => Ok(checker),
            Err(OneshotError::Jail(error)) => Err(refused(&error)),
            Err(error) => Err(Failure::new(
                "sandbox_unavailable",
                format!("the jailed check does not work on this machine: {error}"),
                "run `cambium doctor`",
            )),
        }
    }

    /// Whether types are checked too.
    pub(crate) fn checks_types(&self) -> bool {
        self.typescript.is_some()
    }

    /// The layers the jail put in force.
    pub(crate) fn layers(&self) -> &[LayerReport] {
        self.jail.layers().unwrap_or_default()
    }

    /// Ends its processes.
    pub(crate) async fn shutdown(&self) {
        self.jail.shutdown().await;
    }

    async fn report(
        &self,
        source: &str,
        packages: &[String],
    ) -> Result<bytes::Bytes, OneshotError> {
        let limits =
            OneshotLimits { wall: WALL, output_bytes: REPORT_BYTES, ..OneshotLimits::default() };
        self.jail.oneshot(CHECK, &check_input(source, packages), limits).await
    }

    async fn many(&self, name: &str, input: &[u8]) -> Result<bytes::Bytes, OneshotError> {
        let usual = OneshotLimits::default();
        let worker = WorkerLimits { cpu: MANY_WALL, data_bytes: MANY_BYTES as _, ..usual.worker };
        let limits = OneshotLimits { worker, wall: MANY_WALL, output_bytes: DRAFTS_BYTES };
        self.jail.oneshot(name, input, limits).await
    }
}

impl Checker for JailedChecker {
    fn check<'a>(
        &'a self,
        source: &'a str,
        packages: &'a [String],
    ) -> BoxFuture<'a, Result<CheckReport, String>> {
        Box::pin(async move {
            let report = match self.report(source, packages).await {
                Ok(report) => report,
                Err(error @ (OneshotError::Ended(_) | OneshotError::Timeout(_))) => {
                    // The process is there to be ended by what it reads.
                    tracing::warn!(%error, "a module ended its check");
                    let message = "the check gave no answer on this module; simplify it";
                    return Ok(CheckReport::failed(source, message));
                }
                Err(error) => return Err(format!("the check did not answer: {error}")),
            };
            let mut report: CheckReport = serde_json::from_slice(&report)
                .map_err(|error| format!("the check's answer is not a report: {error}"))?;
            if let Some(typescript) = self.typescript.as_ref().filter(|_| report.ok)
                && let Err(error) = typescript.advise(&self.jail, source, &mut report).await
                && !self.said.swap(true, Ordering::Relaxed)
            {
                tracing::warn!(%error, "types are not checked: the type checker gave no answer");
            }
            Ok(report)
        })
    }

    fn check_all<'a>(
        &'a self,
        sources: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<CheckReport>, String>> {
        Box::pin(async move {
            let input = serde_json::to_vec(sources).map_err(|error| error.to_string())?;
            match self.many(CHECK_ALL, &input).await {
                Ok(reports) => serde_json::from_slice(&reports)
                    .map_err(|error| format!("the check's answer is no list of reports: {error}")),
                Err(OneshotError::Ended(_) | OneshotError::Timeout(_)) => {
                    // One of them ended it; which, only each by itself can say.
                    let mut reports = Vec::with_capacity(sources.len());
                    for source in sources {
                        reports.push(self.check(source, &[]).await?);
                    }
                    Ok(reports)
                }
                Err(error) => Err(format!("the check did not answer: {error}")),
            }
        })
    }

    fn draft<'a>(
        &'a self,
        document: &'a [u8],
        wanted: &'a Wanted,
    ) -> BoxFuture<'a, Result<Result<Drafts, DocumentFault>, String>> {
        Box::pin(async move {
            let input = draft_input(document, wanted);
            match self.many(DRAFT, &input).await {
                Ok(drafts) => serde_json::from_slice(&drafts)
                    .map_err(|error| format!("the reader's answer is not one: {error}")),
                Err(error @ (OneshotError::Ended(_) | OneshotError::Timeout(_))) => {
                    tracing::warn!(%error, "a document ended its reader");
                    Ok(Err(DocumentFault("it cannot be read; it is too large or too deep".into())))
                }
                Err(error) => Err(format!("the reader did not answer: {error}")),
            }
        })
    }
}

/// A jail that cannot start, as an operator reads it.
pub(crate) fn refused(error: &JailError) -> Failure {
    match error {
        JailError::Weak { .. } => Failure::new(
            "sandbox_weak",
            error.to_string(),
            "run `cambium doctor`; to start all the same, pass --allow-weak-sandbox",
        ),
        error => Failure::new("sandbox_unavailable", error.to_string(), error.next()),
    }
}
