//! Making the snapshot: the isolate with every script of the glue evaluated. It
//! depends on the binary and its V8 only, takes about a tenth of a second, and
//! is made once at start in a process of its own, because V8 in snapshot mode
//! cannot run tools.

use crate::error::IsolateError;
use crate::extension::{MAIN, extensions};
use crate::platform::platform;
use deno_core::{JsRuntimeForSnapshot, RuntimeOptions, v8};

/// Makes the snapshot. Run it in a process that does nothing else with V8.
pub fn make_snapshot() -> Result<Box<[u8]>, IsolateError> {
    // Every function of the glue is compiled now, and none in a run.
    v8::V8::set_flags_from_string("--no-lazy");
    let failed = |error: &dyn std::fmt::Display| IsolateError::Snapshot(error.to_string());
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| failed(&error))?;
    let _entered = tokio.enter();
    let mut runtime = JsRuntimeForSnapshot::try_new(RuntimeOptions {
        extensions: extensions(true),
        v8_platform: Some(platform()),
        ..RuntimeOptions::default()
    })
    .map_err(|error| failed(&error))?;
    runtime.execute_script("ext:cambium/main.js", MAIN).map_err(|error| failed(&error))?;
    Ok(runtime.snapshot())
}
