//! A hostile module in V8, outside deno_core's module map: it is compiled,
//! asked what it imports (refused unrun unless the run offers it), evaluated.
//! What a run offers is in `offer`; no other specifier ever resolves, static or
//! dynamic, whatever deno_core registered;
//! `import.meta` is empty; a stack trace is text before the module can see it,
//! so `Error.prepareStackTrace` is never called and no call site leaks.
#![allow(unsafe_code)]

mod offer;

use deno_core::v8;
pub(crate) use offer::offer;

/// Frames of a stack trace that are kept.
const FRAMES: u32 = 20;
/// Characters of a frame or of a message inside a stack that are kept.
const TEXT: usize = 2_000;

/// What was thrown, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thrown {
    pub(crate) message: String,
    pub(crate) stack: String,
}

impl Thrown {
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), stack: String::new() }
    }
}

/// Takes away every way of an isolate to load code.
pub(crate) fn seal(isolate: &mut v8::Isolate) {
    isolate.set_host_import_module_dynamically_callback(refuse_import);
    isolate.set_host_import_module_with_phase_dynamically_callback(refuse_phase_import);
    isolate.set_host_initialize_import_meta_object_callback(empty_import_meta);
    isolate.set_prepare_stack_trace_callback(stack_text);
}

/// Compiles and links a module that imports nothing but what is offered.
pub(crate) fn compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    specifier: &str,
    source: &str,
) -> Result<v8::Local<'s, v8::Module>, Thrown> {
    let too_large = || Thrown::plain("the module is too large");
    let name = v8::String::new(scope, specifier).ok_or_else(too_large)?;
    let text = v8::String::new(scope, source).ok_or_else(too_large)?;
    let origin =
        v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, true, None);
    v8::tc_scope!(let tc, scope);
    let mut source = v8::script_compiler::Source::new(text, Some(&origin));
    let Some(module) = v8::script_compiler::compile_module(tc, &mut source) else {
        return Err(caught(tc));
    };
    let requests = module.get_module_requests();
    for index in 0..requests.length() {
        let request = requests
            .get(tc, index)
            .and_then(|request| v8::Local::<v8::ModuleRequest>::try_from(request).ok());
        let named = request.map(|request| request.get_specifier().to_rust_string_lossy(tc));
        let plain = request.is_some_and(|request| {
            request.get_import_attributes().length() == 0
                && request.get_phase() == v8::ModuleImportPhase::kEvaluation
        });
        let named = named.unwrap_or_default();
        if !plain || !offer::is_offered(&named) {
            return Err(Thrown::plain(format!("a tool cannot import: {}", clip(&named))));
        }
    }
    if module.instantiate_module2(tc, offer::resolve, no_source) != Some(true) {
        return Err(caught(tc));
    }
    Ok(module)
}

/// The error of a compilation, with its place.
fn caught(tc: &mut v8::PinnedRef<'_, v8::TryCatch<'_, '_, v8::HandleScope<'_>>>) -> Thrown {
    let Some(message) = tc.message() else {
        return Thrown::plain("the module could not be compiled");
    };
    let text = message.get(tc).to_rust_string_lossy(tc);
    let line = message.get_line_number(tc).unwrap_or(0);
    let column = message.get_start_column() + 1;
    let text = text.strip_prefix("Uncaught ").unwrap_or(&text);
    Thrown::plain(format!("{} (line {line}, column {column})", clip(text)))
}

fn clip(text: &str) -> &str {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn no_source<'s>(
    context: v8::Local<'s, v8::Context>,
    _: v8::Local<'s, v8::String>,
    _: v8::Local<'s, v8::FixedArray>,
    _: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Object>> {
    // SAFETY: V8 calls this with the context it links in, which is entered.
    v8::callback_scope!(unsafe scope, context);
    throw(scope);
    None
}

fn import_error<'s>(scope: &mut v8::PinScope<'s, '_>) -> v8::Local<'s, v8::Value> {
    let text = v8::String::new(scope, "a tool cannot import");
    match text {
        Some(text) => v8::Exception::type_error(scope, text),
        None => v8::undefined(scope).into(),
    }
}

fn throw(scope: &mut v8::PinScope<'_, '_>) {
    let error = import_error(scope);
    scope.throw_exception(error);
}

fn refuse_import<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    _: v8::Local<'s, v8::Data>,
    _: v8::Local<'s, v8::Value>,
    _: v8::Local<'s, v8::String>,
    _: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refusal(scope)
}

fn refuse_phase_import<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    _: v8::Local<'s, v8::Data>,
    _: v8::Local<'s, v8::Value>,
    _: v8::Local<'s, v8::String>,
    _: v8::ModuleImportPhase,
    _: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refusal(scope)
}

/// A promise that is already rejected.
fn refusal<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let error = import_error(scope);
    resolver.reject(scope, error);
    Some(resolver.get_promise(scope))
}

extern "C" fn empty_import_meta(
    _: v8::Local<v8::Context>,
    _: v8::Local<v8::Module>,
    _: v8::Local<v8::Object>,
) {
}

/// The text of a stack. Name and message may be getters of the module's; what
/// they throw is swallowed. The call sites' own `toString` is out of the
/// module's reach, because it never gets to see a call site.
fn stack_text<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    let mut text = String::new();
    {
        v8::tc_scope!(let tc, scope);
        let part = |tc: &mut v8::PinnedRef<'_, v8::TryCatch<'_, '_, v8::HandleScope<'_>>>,
                    key: &str| {
            let object = v8::Local::<v8::Object>::try_from(error).ok()?;
            let key = v8::String::new(tc, key)?;
            let value = object.get(tc, key.into())?;
            value.is_string().then(|| value.to_rust_string_lossy(tc))
        };
        let name = part(tc, "name").unwrap_or_else(|| "Error".to_owned());
        let message = part(tc, "message").unwrap_or_default();
        text.push_str(clip(&name));
        if !message.is_empty() {
            text.push_str(": ");
            text.push_str(clip(&message));
        }
        for index in 0..sites.length().min(FRAMES) {
            let Some(frame) = frame(tc, sites, index) else { break };
            text.push_str("\n    at ");
            text.push_str(clip(&frame));
        }
        if tc.has_caught() && tc.can_continue() {
            tc.reset();
        }
    }
    match v8::String::new(scope, &text) {
        Some(text) => text.into(),
        None => v8::undefined(scope).into(),
    }
}

fn frame(
    scope: &mut v8::PinScope<'_, '_>,
    sites: v8::Local<'_, v8::Array>,
    index: u32,
) -> Option<String> {
    let site = v8::Local::<v8::Object>::try_from(sites.get_index(scope, index)?).ok()?;
    let key = v8::String::new(scope, "toString")?;
    let to_string = v8::Local::<v8::Function>::try_from(site.get(scope, key.into())?).ok()?;
    let text = to_string.call(scope, site.into(), &[])?;
    Some(text.to_rust_string_lossy(scope))
}
