//! Lists the guests, so that a guest without a test of its name does not
//! compile: `every_guest!` calls a macro once for each file of `guests/`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=guests");
    let mut names: Vec<String> = fs::read_dir("guests")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let mut text = String::from("macro_rules! every_guest { ($each:ident) => {\n");
    for name in names {
        let _ = writeln!(text, "    $each!({name});");
    }
    text.push_str("} }\n");
    let to = env::var_os("OUT_DIR").unwrap_or_default();
    if let Err(error) = fs::write(Path::new(&to).join("every_guest.rs"), text) {
        println!("cargo::error=the list of guests cannot be written: {error}");
    }
}
