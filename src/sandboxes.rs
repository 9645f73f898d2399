//! Both sandboxes behind the engine's one port: a version with a component goes
//! to the WebAssembly one, if its binary is there, everything else to the other.

use crate::checker::refused;
use crate::config::Config;
use crate::failure::Failure;
use cambium_component::{ComponentConfig, ComponentSandbox};
use cambium_driver::report;
use cambium_engine::{Job, Outcome, RunReport, Sandbox, Unfit};
use cambium_isolate::{IsolateConfig, IsolateError, IsolateSandbox};
use cambium_proxy::{BoxFuture, ContentHash, Session};
use std::path::PathBuf;
use std::sync::Arc;

/// The binary of `engine/component/worker`, beside this one.
const BINARY: &str = "cambium-component";
const NONE: &str = "this server runs no components: `cambium-component` is not beside it, and \
    `components` in the configuration names none";

/// The smallest component.
const PROBE: &str = r#"(component
  (core module $m (memory (export "m") 1)
    (func (export "run") (param i32 i32) (result i32) (i32.const 0))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "input" string) (result (result string (error string)))
    (canon lift (core func $i "run") (memory (core memory $i "m")) (realloc (core func $i "realloc")))))"#;

/// What runs tools.
pub(crate) struct Sandboxes {
    isolate: IsolateSandbox,
    component: Option<ComponentSandbox>,
}

impl Sandboxes {
    /// Starts both.
    pub(crate) async fn start(config: &Config) -> Result<Self, Failure> {
        let switches = &config.sandbox;
        let isolate = IsolateSandbox::start(IsolateConfig {
            zygote: switches.zygote,
            pool: switches.pool,
            allow_weak: switches.allow_weak,
            ..IsolateConfig::default()
        });
        let isolate = isolate.await.map_err(|error| match error {
            IsolateError::Jail(error) => refused(&error),
            error => Failure::new("sandbox_unavailable", error.to_string(), error.next()),
        })?;
        let component = binary(config)?.map(|exe| components(config, exe)).transpose()?;
        Ok(Self { isolate, component })
    }

    /// Kills what runs and waits until everything is reaped.
    pub(crate) async fn shutdown(&self) {
        self.isolate.shutdown().await;
        if let Some(component) = &self.component {
            component.shutdown().await;
        }
    }
}

fn components(config: &Config, exe: PathBuf) -> Result<ComponentSandbox, Failure> {
    let config = ComponentConfig {
        exe,
        zygote: config.sandbox.zygote,
        allow_weak: config.sandbox.allow_weak,
        show_stderr: false,
    };
    ComponentSandbox::start(config).map_err(|error| refused(&error))
}

/// Where the binary that runs components is, if it is there, once it has compiled
/// the smallest of them.
pub(crate) async fn try_components(config: &Config) -> Result<Option<PathBuf>, Failure> {
    let Some(exe) = binary(config)? else { return Ok(None) };
    let sandbox = components(config, exe.clone())?;
    let tried = sandbox.prepare(ContentHash([0; 32]), PROBE.as_bytes()).await;
    sandbox.shutdown().await;
    match tried {
        Ok(()) => Ok(Some(exe)),
        Err(Unfit::Refused(reason) | Unfit::Unavailable(reason)) => Err(Failure::new(
            "components_unavailable",
            format!("{} does not run components: {reason}", exe.display()),
            "build it anew with `./dev components`",
        )),
    }
}

/// The configured binary, which must be there, or one beside this one.
fn binary(config: &Config) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &config.components {
        if path.is_file() {
            return Ok(Some(path.clone()));
        }
        return Err(Failure::new(
            "config_invalid",
            format!("`components` {} is not there", path.display()),
            "name the binary of engine/component/worker; `./dev components` builds it",
        ));
    }
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(BINARY));
    Ok(beside.filter(|path| path.is_file()))
}

impl Sandbox for Sandboxes {
    fn run<'a>(&'a self, job: Job, session: Arc<Session>) -> BoxFuture<'a, RunReport> {
        match (&job.component, &self.component) {
            (None, _) => self.isolate.run(job, session),
            (Some(_), Some(component)) => component.run(job, session),
            (Some(_), None) => Box::pin(async { report(Outcome::Unavailable(NONE.to_owned())) }),
        }
    }

    fn prepare<'a>(
        &'a self,
        digest: ContentHash,
        component: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Unfit>> {
        match &self.component {
            Some(sandbox) => sandbox.prepare(digest, component),
            None => Box::pin(async { Err(Unfit::Unavailable(NONE.to_owned())) }),
        }
    }
}
