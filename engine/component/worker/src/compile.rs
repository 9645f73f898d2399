//! Compiles a component, in a jailed one-shot process: bytes in, an answer out.
//! What a component imports and exports is looked at here, so that one which
//! asks for more than a tool has is refused before anything runs.

use crate::RUN;
use crate::engine::engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Type};

/// Packages of WASI a component may name.
const PACKAGES: [&str; 7] = [
    "wasi:cli",
    "wasi:clocks",
    "wasi:filesystem",
    "wasi:http",
    "wasi:io",
    "wasi:random",
    "wasi:sockets",
];
/// First byte of an answer that is an artefact.
const DONE: u8 = 1;
/// First byte of an answer that is a reason.
const REFUSED: u8 = 0;

/// The function [`cambium_jail::Jail::oneshot`] names.
pub(crate) fn compile(component: &[u8]) -> Vec<u8> {
    match compiled(component) {
        Ok(artefact) => [&[DONE][..], &artefact].concat(),
        Err(reason) => [&[REFUSED][..], reason.as_bytes()].concat(),
    }
}

fn compiled(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let text = |error: wasmtime::Error| format!("{error:#}");
    let engine = engine().map_err(text)?;
    let component = Component::new(&engine, bytes).map_err(text)?;
    let kind = component.component_type();
    for (name, _) in kind.imports(&engine) {
        if !is_known(name) {
            return Err(format!(
                "it imports `{}`; a tool has WASI 0.2 and, of that, HTTP, clocks, randomness and \
                 standard output",
                name.chars().take(100).collect::<String>().escape_debug()
            ));
        }
    }
    let run = kind.get_export(&engine, RUN);
    let fits = match run.map(|found| found.ty) {
        Some(ComponentItem::ComponentFunc(run)) => {
            let takes_text = run.params().map(|(_, kind)| kind).eq([Type::String]);
            let gives = run.results().collect::<Vec<_>>();
            let text_or_text = matches!(&gives[..], [Type::Result(result)]
                if result.ok() == Some(Type::String) && result.err() == Some(Type::String));
            takes_text && text_or_text
        }
        _ => false,
    };
    if !fits {
        return Err(format!(
            "it exports no `{RUN}: func(input: string) -> result<string, string>`"
        ));
    }
    component.serialize().map_err(text)
}

/// Whether an import is of WASI 0.2. What of that a tool has not is a trap when it
/// is called: compilers import more than a program uses.
fn is_known(import: &str) -> bool {
    let Some((name, version)) = import.split_once('@') else { return false };
    let package = name.split('/').next().unwrap_or_default();
    PACKAGES.contains(&package) && version.starts_with("0.2.")
}
