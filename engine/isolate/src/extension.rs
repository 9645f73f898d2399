//! The extensions of the isolate, in one order for making and for using the
//! snapshot: web interfaces from deno_web with their scripts embedded by our
//! build script, and our own operations and glue. Nothing is registered that a
//! module could import.

use crate::allow::only_allowed;
use crate::ops;
use deno_core::{Extension, ExtensionFileSource};
use std::borrow::Cow;

/// Scripts of the dependencies: specifier and source.
const SCRIPTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// Our own scripts, loaded by name from [`MAIN`].
const GLUE: &[(&str, &str)] = &[
    ("ext:cambium/base.js", include_str!("../js/base.js")),
    ("ext:cambium/headers.js", include_str!("../js/headers.js")),
    ("ext:cambium/body.js", include_str!("../js/body.js")),
    ("ext:cambium/fetch.js", include_str!("../js/fetch.js")),
    ("ext:cambium/console.js", include_str!("../js/console.js")),
    ("ext:cambium/crypto.js", include_str!("../js/crypto.js")),
];

/// Run once while the snapshot is made.
pub(crate) const MAIN: &str = include_str!("../js/main.js");

deno_core::extension!(
    cambium,
    deps = [deno_web],
    ops = [
        ops::op_cambium_cancel,
        ops::op_cambium_chunk,
        ops::op_cambium_digest,
        ops::op_cambium_failed,
        ops::op_cambium_fetch,
        ops::op_cambium_head,
        ops::op_cambium_hmac,
        ops::op_cambium_log,
        ops::op_cambium_now,
        ops::op_cambium_random,
        ops::op_cambium_random_hex,
        ops::op_cambium_random_unit,
        ops::op_cambium_read_all,
    ],
);

/// The extensions. With `scripts` for the process that makes the snapshot,
/// where every operation works; without for a run, where only the listed ones
/// do.
pub(crate) fn extensions(scripts: bool) -> Vec<Extension> {
    let mut extensions = whole();
    for extension in &mut extensions {
        let prefix = format!("ext:{}/", extension.name);
        let files: Vec<ExtensionFileSource> = SCRIPTS
            .iter()
            .chain(GLUE)
            .filter(|(specifier, _)| scripts && specifier.starts_with(&prefix))
            .map(|&(specifier, source)| ExtensionFileSource::new_computed(specifier, source.into()))
            .collect();
        extension.lazy_loaded_js_files = Cow::Owned(files);
        // A static import of a registered script would succeed although the
        // loader refuses it.
        extension.lazy_loaded_esm_files = Cow::Borrowed(&[]);
        extension.esm_files = Cow::Borrowed(&[]);
        extension.synthetic_esm_modules = Cow::Borrowed(&[]);
        let console_only: Vec<_> =
            extension.objects.iter().filter(|object| object.name.0 == "Console").copied().collect();
        extension.objects = Cow::Owned(console_only);
    }
    if !scripts && let Some(last) = extensions.last_mut() {
        last.middleware_fn = Some(Box::new(only_allowed));
    }
    extensions
}

/// The extensions as they come, with everything they register.
fn whole() -> Vec<Extension> {
    let blobs = deno_web::BlobStore::default_arc();
    let channel = deno_web::InMemoryBroadcastChannel::default();
    vec![
        deno_webidl::deno_webidl::init(),
        deno_web::deno_web::init(blobs, None, false, channel),
        cambium::init(),
    ]
}

/// What the extensions register beside operations, before any of it is taken
/// out: scripts, modules, objects, middleware; sorted. A golden test names all of
/// it, so that what a new version brings is looked at first.
pub fn registered() -> Vec<String> {
    let mut found = Vec::new();
    for extension in whole() {
        let name = extension.name;
        let mut add = |kind: &str, what: &str| found.push(format!("{name} {kind} {what}"));
        for (kind, files) in [
            ("js", &extension.js_files),
            ("esm", &extension.esm_files),
            ("lazy_esm", &extension.lazy_loaded_esm_files),
            ("lazy_js", &extension.lazy_loaded_js_files),
        ] {
            files.iter().for_each(|file| add(kind, file.specifier));
        }
        extension.synthetic_esm_modules.iter().for_each(|(module, _)| add("synthetic", module));
        extension.esm_entry_point.iter().for_each(|entry| add("entry", entry));
        extension.objects.iter().for_each(|object| add("object", object.name.0));
        for (kind, there) in [
            ("template_middleware", extension.global_template_middleware.is_some()),
            ("object_middleware", extension.global_object_middleware.is_some()),
        ] {
            if there {
                add(kind, "");
            }
        }
    }
    found.sort();
    found
}
