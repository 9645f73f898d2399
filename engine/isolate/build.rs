//! Copies the scripts of the web extensions we use out of the locked
//! dependencies into `OUT_DIR`, so that the binary carries them: the extensions
//! themselves record only the path they had on the machine that built them.
//! Nothing of theirs is kept in this repository.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Crate, and the scripts of it that the snapshot loads.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("deno_webidl", &["00_webidl.js"]),
    (
        "deno_web",
        &[
            "00_infra.js",
            "00_url.js",
            "01_console.js",
            "01_dom_exception.js",
            "02_event.js",
            "02_structured_clone.js",
            "02_timers.js",
            "03_abort_signal.js",
            "05_base64.js",
            "06_streams.js",
            "08_text_encoding.js",
            "09_file.js",
            "13_message_port.js",
        ],
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CAMBIUM_CRATE_SOURCES");
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let lock = manifest.join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(&lock)
        .unwrap_or_else(|error| fail(&format!("{}: {error}", lock.display())));
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());

    let mut table = String::from("&[\n");
    for (name, files) in SCRIPTS {
        let version = locked_version(&lock, name);
        let source = source_of(name, &version);
        for file in *files {
            let from = source.join(file);
            let text = fs::read_to_string(&from)
                .unwrap_or_else(|error| fail(&format!("{}: {error}", from.display())));
            if !text.is_ascii() {
                fail(&format!("{} is not ASCII, which a snapshot needs", from.display()));
            }
            let to = out.join(format!("{name}_{file}"));
            fs::write(&to, text)
                .unwrap_or_else(|error| fail(&format!("{}: {error}", to.display())));
            let _ = writeln!(
                table,
                "    (\"ext:{name}/{file}\", include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}_{file}\"))),"
            );
        }
    }
    table.push(']');
    let to = out.join("scripts.rs");
    fs::write(&to, table).unwrap_or_else(|error| fail(&format!("{}: {error}", to.display())));
}

/// The version of a crate in `Cargo.lock`.
fn locked_version(lock: &str, name: &str) -> String {
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        if line == format!("name = \"{name}\"")
            && let Some(version) = lines.next().and_then(|line| line.strip_prefix("version = \""))
        {
            return version.trim_end_matches('"').to_owned();
        }
    }
    fail(&format!("Cargo.lock has no {name}"))
}

/// Where cargo unpacked that version: the registry of the cargo home, or a
/// vendored directory named by `CAMBIUM_CRATE_SOURCES`.
fn source_of(name: &str, version: &str) -> PathBuf {
    let wanted = format!("{name}-{version}");
    if let Some(vendored) = env::var_os("CAMBIUM_CRATE_SOURCES") {
        let vendored = Path::new(&vendored);
        for candidate in [vendored.join(&wanted), vendored.join(name)] {
            if candidate.is_dir() {
                return candidate;
            }
        }
    }
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
        .unwrap_or_default();
    let registries = home.join("registry/src");
    let found = fs::read_dir(&registries)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join(&wanted))
        .find(|candidate| candidate.is_dir());
    found.unwrap_or_else(|| {
        fail(&format!(
            "the source of {wanted} is not under {}; run `cargo fetch`, or set \
             CAMBIUM_CRATE_SOURCES to the directory `cargo vendor` filled",
            registries.display()
        ))
    })
}

fn fail(reason: &str) -> ! {
    println!("cargo::error=the scripts of the web extensions cannot be embedded: {reason}");
    process::exit(1)
}
