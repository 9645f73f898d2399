//! A run as the engine asks for it and as a sandbox answers. The sandboxes
//! (`isolate`, `component`) implement [`Sandbox`].

use bytes::Bytes;
use cambium_proxy::{AgentId, BoxFuture, ContentHash, RunId, Session};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// What one run may use. `Default` is what the docs promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Wall time without the time held for a person.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// V8 heap, bytes: the soft limit.
    pub heap_bytes: usize,
    /// RLIMIT_DATA of the worker, bytes: the hard limit.
    pub data_bytes: usize,
    /// Largest result, bytes.
    pub result_bytes: usize,
    /// Most console output kept, bytes.
    pub log_bytes: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(5),
            heap_bytes: 64 * 1024 * 1024,
            data_bytes: 256 * 1024 * 1024,
            result_bytes: 10 * 1024 * 1024,
            log_bytes: 64 * 1024,
        }
    }
}

/// One execution of one version.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its id.
    pub run: RunId,
    /// Which agent: a zygote serves one agent only.
    pub agent: AgentId,
    /// The version's content.
    pub version: ContentHash,
    /// `<vendor>__<name>`, for the module's specifier in stack traces.
    pub tool: String,
    /// The emitted JavaScript.
    pub javascript: Arc<str>,
    /// What it may import, by name: a module without imports of its own whose
    /// default export is the package.
    pub modules: Vec<(String, Arc<str>)>,
    /// Of a component: its file and the file's SHA-256.
    pub component: Option<(ContentHash, Arc<[u8]>)>,
    /// The input as JSON text.
    pub input: Arc<str>,
    /// `ctx.connection`.
    pub connection_slug: String,
    /// `ctx.connection`.
    pub vendor: String,
    /// `ctx.connection`.
    pub display_name: String,
    /// `ctx.proxyBase`: `https://` and the primary host, with its port unless
    /// that is 443. Only a name to the module; the session decides.
    pub proxy_base: String,
    /// What it may use.
    pub limits: RunLimits,
}

/// What a module returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolResult {
    /// A plain value as JSON text; `undefined` is `null`.
    Value(String),
    /// A `Response`, passed on.
    Response {
        /// Vendor status.
        status: u16,
        /// Its `content-type`, lower case, empty when none.
        content_type: String,
        /// The whole body.
        body: Bytes,
    },
}

/// How a run ended, by the evidence the parent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Ok(ToolResult),
    /// It threw: bounded text, never a credential.
    ToolError {
        /// Name and message.
        message: String,
        /// Frames inside the module, one a line.
        stack: String,
    },
    /// Wall time ran out.
    Timeout,
    /// CPU time ran out.
    CpuLimit,
    /// Heap or DATA ran out.
    MemoryLimit,
    /// The result was too large.
    OutputLimit,
    /// The worker died by a signal nobody of ours sent.
    Crashed {
        /// Signal number; SIGSYS is an escape attempt.
        signal: i32,
    },
    /// The module's promise can never settle.
    NeverSettled,
    /// The proxy ended the run.
    PolicyDenied,
    /// The caller went away.
    Cancelled,
    /// No worker could be made.
    Unavailable(String),
}

/// Where the time of a run went, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Until a worker was ready.
    pub take_us: u64,
    /// From the job's first byte to the result's last.
    pub run_us: u64,
    /// Worker CPU time, user and system.
    pub cpu_us: u64,
    /// Worker peak resident set, bytes.
    pub max_rss: u64,
}

/// What the parent saw of a worker's end: for a person, kept with the run. The
/// agent is told one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What ended the run first: `answered`, `gone`, `forged`, `wall_clock`, `session`.
    pub first: &'static str,
    /// What the worker did wrong, when it did.
    pub reason: Option<String>,
    /// Who ended the process: `itself`, `cpu_limit`, `us`, `shutdown`, `zygote_gone`.
    pub ended_by: &'static str,
    /// Exit code, when it exited.
    pub exit_code: Option<i32>,
    /// Signal, when it was ended by one; SIGSYS is an escape attempt.
    pub signal: Option<i32>,
    /// How the process came to be: `zygote` or `exec`.
    pub origin: &'static str,
    /// CPU time used, milliseconds.
    pub cpu_ms: u64,
    /// CPU time allowed, milliseconds.
    pub cpu_limit_ms: u64,
    /// Peak resident set, bytes.
    pub max_rss: u64,
    /// Heap allowed, bytes.
    pub heap_limit: u64,
    /// RLIMIT_DATA, bytes.
    pub data_limit: u64,
    /// From the job's first byte to the end, milliseconds.
    pub wall_ms: u64,
}

/// What a sandbox answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// How it ended.
    pub outcome: Outcome,
    /// Console lines, capped.
    pub logs: Vec<String>,
    /// Bytes of console output dropped at the cap.
    pub logs_dropped: u64,
    /// Where the time went.
    pub times: StageTimes,
    /// What is known of the process's end; absent when there was none.
    pub evidence: Option<Evidence>,
}

/// Why a component cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Because of what it is. A sentence.
    Refused(String),
    /// Nothing here compiles or runs one. A sentence.
    Unavailable(String),
}

/// Runs a module in a process that has nothing but its session.
pub trait Sandbox: Send + Sync {
    /// Runs one job to its end. Dropping the future kills the worker. The
    /// sandbox ends the run when [`Session::ended`] resolves, stops the wall
    /// clock while [`Session::holding`] is true, and never outlives it.
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport>;

    /// Whether it could run this component, by compiling it where its bytes can
    /// do no harm.
    fn prepare<'a>(
        &'a self,
        _digest: ContentHash,
        _component: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Unfit>> {
        Box::pin(async { Err(Unfit::Unavailable("this sandbox runs no components".to_owned())) })
    }
}
