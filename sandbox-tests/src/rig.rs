//! A sandbox on a running proxy: the fixture of the isolate's attack rows. A
//! guest is a file of `guests/`; its run goes through the real jail and a real
//! session to the raw vendor of [`crate::bench`].

use crate::bench::{Bench, Setup, WRITES, anywhere};
use cambium_engine::{Job, Outcome, RunLimits, RunReport, Sandbox, ToolResult};
use cambium_isolate::{IsolateConfig, IsolateSandbox};
use cambium_proxy::{AgentId, ContentHash, Grant, RunId, Session};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the guests are.
pub fn guests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("guests")
}

/// The source of a guest.
pub fn source(guest: &str) -> String {
    let path = guests().join(format!("{guest}.js"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A sandbox, a vendor and a proxy between them.
pub struct Rig {
    /// The sandbox.
    pub sandbox: IsolateSandbox,
    /// Vendor, proxy and ports.
    pub bench: Bench,
}

impl Rig {
    /// Starts one whose workers come from `worker` (the test binary of that
    /// name).
    pub async fn start(worker: &str) -> Self {
        Self::with(worker, true, Setup::default()).await
    }

    /// With a vendor of one's own, with or without the zygote.
    pub async fn with(worker: &str, zygote: bool, setup: Setup) -> Self {
        let config = IsolateConfig {
            exe: Some(worker.into()),
            zygote,
            pool: 0,
            show_stderr: true,
            ..IsolateConfig::default()
        };
        Self::of(config, setup).await
    }

    /// With a sandbox of one's own.
    pub async fn of(config: IsolateConfig, setup: Setup) -> Self {
        let sandbox = IsolateSandbox::start(config).await.expect("a sandbox");
        Self { sandbox, bench: Bench::start(setup).await }
    }

    /// A session that may read anything.
    pub fn reads(&self) -> Arc<Session> {
        self.bench.reader()
    }

    /// A dry run of a write version: reads go, writes are previewed.
    pub fn dry(&self) -> Arc<Session> {
        self.bench.open(WRITES, anywhere(&["GET", "HEAD", "POST"]), Grant::Preview)
    }

    /// Runs a guest as a read-only tool under the default limits.
    pub async fn run(&self, guest: &str, input: &str) -> RunReport {
        self.run_source(&source(guest), input, RunLimits::default(), self.reads()).await
    }

    /// Runs a source.
    pub async fn run_source(
        &self,
        javascript: &str,
        input: &str,
        limits: RunLimits,
        session: Arc<Session>,
    ) -> RunReport {
        self.run_importing(javascript, &[], input, limits, session).await
    }

    /// Runs a source that may import these modules.
    pub async fn run_importing(
        &self,
        javascript: &str,
        modules: &[(&str, &str)],
        input: &str,
        limits: RunLimits,
        session: Arc<Session>,
    ) -> RunReport {
        let host = &self.bench.connection.hosts[0];
        let job = Job {
            run: RunId::new("run"),
            agent: AgentId::new("agent"),
            version: ContentHash([1; 32]),
            tool: "acme__tool".into(),
            javascript: javascript.into(),
            modules: modules.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            component: None,
            input: input.into(),
            connection_slug: "acme".into(),
            vendor: "acme".into(),
            display_name: "Acme".into(),
            proxy_base: format!("https://{}:{}", host.name, host.port),
            limits,
        };
        self.sandbox.run(job, session).await
    }

    /// A small tool still answers.
    pub async fn still_works(&self) {
        let report = self.run("good_no_fetch", r#"{"a":1,"b":2}"#).await;
        assert_eq!(value(&report), r#"{"sum":3,"slug":"acme"}"#, "the next call");
    }
}

/// The JSON text of a run that gave a value.
pub fn value(report: &RunReport) -> &str {
    match &report.outcome {
        Outcome::Ok(ToolResult::Value(text)) => text,
        other => panic!("no value but {other:?}; logs {:?}", report.logs),
    }
}

/// Message and stack of a run that threw.
pub fn thrown(report: &RunReport) -> (&str, &str) {
    match &report.outcome {
        Outcome::ToolError { message, stack } => (message, stack),
        other => panic!("not thrown but {other:?}"),
    }
}
