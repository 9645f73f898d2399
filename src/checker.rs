//! The engine's check, run where hostile text can do no harm: a one-shot
//! process of the jail parses the module, and what it answers is read as
//! foreign JSON. Where a type checker is configured, its findings are added.

use crate::failure::Failure;
use crate::typescript::TypeScript;
use cambium_engine::{CheckReport, Checker, check_bytes, check_input};
use cambium_jail::{
    Jail, JailConfig, JailError, LayerReport, OneshotError, OneshotFn, OneshotLimits,
};
use cambium_proxy::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The functions jailed processes of this binary can be asked for.
pub(crate) const ONESHOTS: &[(&str, OneshotFn)] = &[(CHECK, check_bytes)];

/// Name of the check among them.
const CHECK: &str = "check";
/// The smallest module that is read to its end.
const PROBE: &str = "export const description = \"\";";
/// A module of 256 KiB is checked in well under a second.
const WALL: Duration = Duration::from_secs(10);
/// Longest report, bytes: emitted code and 200 findings with room.
const REPORT_BYTES: usize = 4 * 1024 * 1024;

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
