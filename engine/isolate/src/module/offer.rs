//! What the run at hand lets its module import. A bundle was evaluated before as
//! a module without imports; its default export is the package, whose names
//! become those of a module that only holds values. Its code is as hostile as
//! the tool's and has what the tool has.

use super::{Thrown, caught, clip, throw};
use deno_core::v8;
use std::cell::RefCell;

/// Most names one package exports; Stripe's has 30.
const NAMES: u32 = 2_000;

thread_local! {
    /// By name. A process runs one job, on one thread.
    static OFFERED: RefCell<Vec<(String, v8::Global<v8::Module>)>> = const { RefCell::new(Vec::new()) };
}

/// Lets the run's module import what a bundle exports.
pub(crate) fn offer(
    scope: &mut v8::PinScope<'_, '_>,
    name: &str,
    bundle: v8::Local<'_, v8::Module>,
) -> Result<(), Thrown> {
    let unread = || Thrown::plain(format!("the package {name} cannot be read"));
    v8::tc_scope!(let tc, scope);
    let namespace =
        v8::Local::<v8::Object>::try_from(bundle.get_module_namespace()).map_err(|_| unread())?;
    let package = v8::String::new(tc, "default")
        .and_then(|key| namespace.get(tc, key.into()))
        .and_then(|package| v8::Local::<v8::Object>::try_from(package).ok())
        .ok_or_else(unread)?;
    let names = package
        .get_own_property_names(tc, v8::GetPropertyNamesArgs::default())
        .filter(|names| names.length() <= NAMES)
        .ok_or_else(unread)?;
    let mut exports = Vec::new();
    for index in 0..names.length() {
        let key = names.get_index(tc, index).ok_or_else(unread)?;
        let Ok(key) = v8::Local::<v8::String>::try_from(key) else { continue };
        let value = package.get(tc, key.into()).ok_or_else(unread)?;
        exports.push((key, value));
    }
    let specifier = v8::String::new(tc, name).ok_or_else(unread)?;
    let keys: Vec<v8::Local<v8::String>> = exports.iter().map(|(key, _)| *key).collect();
    let module = v8::Module::create_synthetic_module(tc, specifier, &keys, evaluated);
    if module.instantiate_module2(tc, resolve, super::no_source) != Some(true) {
        return Err(caught(tc));
    }
    for (key, value) in exports {
        module.set_synthetic_module_export(tc, key, value).ok_or_else(unread)?;
    }
    let module = v8::Global::new(tc, module);
    OFFERED.with_borrow_mut(|offered| offered.push((name.to_owned(), module)));
    Ok(())
}

/// Whether the run offers a module of this name.
pub(super) fn is_offered(name: &str) -> bool {
    OFFERED.with_borrow(|offered| offered.iter().any(|(known, _)| known == name))
}

/// Gives what is offered, and an error for all else.
pub(super) fn resolve<'s>(
    context: v8::Local<'s, v8::Context>,
    specifier: v8::Local<'s, v8::String>,
    _: v8::Local<'s, v8::FixedArray>,
    _: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Module>> {
    // SAFETY: V8 calls this with the context it links in, which is entered.
    v8::callback_scope!(unsafe scope, context);
    let name = specifier.to_rust_string_lossy(scope);
    let found = OFFERED.with_borrow(|offered| {
        offered.iter().find(|(known, _)| *known == clip(&name)).map(|(_, module)| module.clone())
    });
    match found {
        Some(module) => Some(v8::Local::new(scope, module)),
        None => {
            throw(scope);
            None
        }
    }
}

/// There is nothing to run: the values are there.
fn evaluated<'s>(
    context: v8::Local<'s, v8::Context>,
    _: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Value>> {
    // SAFETY: V8 calls this with the context it evaluates in, which is entered.
    v8::callback_scope!(unsafe scope, context);
    let resolver = v8::PromiseResolver::new(scope)?;
    let undefined = v8::undefined(scope);
    resolver.resolve(scope, undefined.into());
    Some(resolver.get_promise(scope).into())
}
