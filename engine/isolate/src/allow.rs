//! The operations a module's process has. Everything deno_core or an extension
//! registers beyond this list is replaced by a function that throws, so an
//! operation that a new version brings is off until somebody adds it here; a
//! golden test names all of them.

use crate::error::IsolateError;
use crate::extension::extensions;
use crate::platform::platform;
use deno_core::{JsRuntime, OpDecl, RuntimeOptions};
use std::sync::mpsc;

/// Operations that work at run time, sorted.
pub const ALLOWED_OPS: &[&str] = &[
    "op_base64_atob",
    "op_base64_btoa",
    "op_blob_clone_part",
    "op_blob_create_part",
    "op_blob_read_part",
    "op_blob_remove_part",
    "op_blob_slice_part",
    "op_cambium_cancel",
    "op_cambium_chunk",
    "op_cambium_digest",
    "op_cambium_failed",
    "op_cambium_fetch",
    "op_cambium_head",
    "op_cambium_hmac",
    "op_cambium_log",
    "op_cambium_now",
    "op_cambium_random",
    "op_cambium_random_hex",
    "op_cambium_random_unit",
    "op_cambium_read_all",
    "op_decode",
    "op_defer",
    "op_destructure_error",
    "op_dispatch_exception",
    "op_drain_pending_rejections",
    "op_encode",
    "op_encoding_decode",
    "op_encoding_decode_single",
    "op_encoding_decode_utf8",
    "op_encoding_decode_utf8_ascii_only",
    "op_encoding_encode_into",
    "op_encoding_encode_into_fallback",
    "op_encoding_new_decoder",
    "op_encoding_normalize_label",
    "op_event_loop_has_more_work",
    "op_immediate_check",
    "op_is_any_array_buffer",
    "op_is_array_buffer",
    "op_is_array_buffer_view",
    "op_is_data_view",
    "op_is_date",
    "op_is_map",
    "op_is_native_error",
    "op_is_promise",
    "op_is_proxy",
    "op_is_set",
    "op_is_shared_array_buffer",
    "op_is_typed_array",
    "op_run_microtasks",
    "op_structured_clone",
    "op_timer_now",
    "op_timer_schedule",
    "op_timer_track",
    "op_timer_untrack",
    "op_url_get_serialization",
    "op_url_parse",
    "op_url_parse_search_params",
    "op_url_parse_with_base",
    "op_url_reparse",
    "op_url_stringify_search_params",
];

/// True for an operation of the list.
pub(crate) fn is_allowed(name: &str) -> bool {
    ALLOWED_OPS.binary_search(&name).is_ok()
}

/// Switches an operation off unless it is listed.
pub(crate) fn only_allowed(op: OpDecl) -> OpDecl {
    if is_allowed(op.name) { op } else { op.disable() }
}

/// Every operation the isolate registers, deno_core's own included, with
/// whether it works, sorted. Starts V8 in this process.
pub fn op_names() -> Result<Vec<(String, bool)>, IsolateError> {
    let failed = |error: &dyn std::fmt::Display| IsolateError::Snapshot(error.to_string());
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| failed(&error))?;
    let _entered = tokio.enter();
    let (sender, names) = mpsc::channel();
    let mut extensions = extensions(false);
    if let Some(last) = extensions.last_mut() {
        last.middleware_fn = Some(Box::new(move |op: OpDecl| {
            // The other end lives until the runtime is made.
            let _ = sender.send((op.name.to_owned(), is_allowed(op.name)));
            op
        }));
    }
    let runtime = JsRuntime::try_new(RuntimeOptions {
        extensions,
        v8_platform: Some(platform()),
        ..RuntimeOptions::default()
    })
    .map_err(|error| failed(&error))?;
    let mut names: Vec<(String, bool)> = names.try_iter().collect();
    drop(runtime);
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_nothing_on_it_is_unknown_to_the_glue() {
        assert!(ALLOWED_OPS.is_sorted());
        assert!(is_allowed("op_encode"));
        for forbidden in ["op_print", "op_load_ext_script", "op_lazy_load_esm", "op_eval_context"] {
            assert!(!is_allowed(forbidden), "{forbidden}");
        }
    }
}
