//! The editor's types and the type checker, with the real TypeScript 7 that
//! `scripts/clients` installs; without it these tests fail.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use support::{Home, ended};

/// The native package.
fn typescript() -> PathBuf {
    let cache = std::env::var_os("CAMBIUM_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        base.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"))
            .join("cambium")
    });
    let packages = cache.join("clients/node_modules/@typescript");
    let architecture = if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" };
    let package = packages.join(format!("typescript-linux-{architecture}"));
    assert!(package.is_dir(), "{} is missing: run scripts/clients", package.display());
    package
}

fn with_typescript() -> Home {
    let home = Home::new();
    home.write("config.toml", &format!("typescript = {:?}\n", typescript()));
    home
}

fn made(home: &Home, arguments: &[&str]) -> PathBuf {
    let path = home.path().to_str().unwrap();
    let made = home.run(&[&["init-tool"], arguments, &["--path", path]].concat()).ok();
    made["module"].as_str().unwrap().into()
}

fn type_errors(report: &Value) -> Vec<(u64, String)> {
    let found = report["diagnostics"].as_array().unwrap().iter();
    found
        .filter(|found| found["code"] == "type_error")
        .map(|found| (found["line"].as_u64().unwrap(), found["message"].as_str().unwrap().into()))
        .collect()
}

#[test]
fn a_new_tool_checks_and_its_types_hold_in_an_editor() {
    let home = with_typescript();
    for arguments in [&["shop", "get-thing"][..], &["shop", "make-thing", "--write"]] {
        let module = made(&home, arguments);
        let report = home.run(&["check", module.to_str().unwrap()]).ok();
        assert_eq!(report["diagnostics"], serde_json::json!([]), "{report}");
        // What an editor does: the folder's own tsconfig, and the library strictly too.
        let tsc = Command::new(typescript().join("lib/tsc"))
            .args(["--pretty", "false", "-p"])
            .arg(module.parent().unwrap())
            .output()
            .unwrap();
        assert!(tsc.status.success(), "{}", String::from_utf8_lossy(&tsc.stdout));
    }
    let again =
        home.run(&["init-tool", "shop", "get-thing", "--path", home.path().to_str().unwrap()]);
    assert_eq!((again.code, again.error().as_str()), (1, "already_there"));
    let bad = home.run(&["init-tool", "Shop", "../x"]);
    assert_eq!((bad.code, bad.error().as_str()), (1, "name_invalid"));
}

#[test]
fn a_type_error_is_advice_with_its_place_and_the_input_follows_the_schema() {
    let home = with_typescript();
    let module = made(&home, &["shop", "get-thing"]);
    let source = std::fs::read_to_string(&module).unwrap();
    let changed = source
        .replace(
            "id: { type: \"string\", description: \"Which one.\" }",
            "number: { type: \"integer\" }",
        )
        .replace("required: [\"id\"]", "required: [\"number\"]")
        .replace("{ id: \"1\" }", "{ number: 1 }");
    std::fs::write(&module, &changed).unwrap();
    let report = home.run(&["check", module.to_str().unwrap()]).ok();
    let errors = type_errors(&report);
    assert_eq!(errors.len(), 1, "{report}");
    let line = changed.lines().position(|line| line.contains("input.id")).unwrap() as u64 + 1;
    assert_eq!(errors[0].0, line);
    assert!(errors[0].1.contains("'id' does not exist on type"), "{errors:?}");
    assert_eq!(report["ok"], true, "advice refuses nothing");
    let types = std::fs::read_to_string(module.with_file_name("input.d.ts")).unwrap();
    assert_eq!(types, "type Input = {\n  \"number\": number;\n};\n");
}

#[test]
fn without_a_type_checker_it_is_said_and_nothing_else_changes() {
    let home = Home::new();
    let module = made(&home, &["shop", "get-thing"]);
    let mut command = home.bare();
    let config = home.path().join("config.toml");
    command.arg("--config").arg(config).arg("check").arg(&module);
    let told = ended(command.output().unwrap());
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(told.stdout.matches("types were not checked").count(), 1, "{}", told.stdout);
    home.write("config.toml", "typescript = \"/nowhere\"\n");
    let refused = home.run(&["check", module.to_str().unwrap()]);
    assert_eq!((refused.code, refused.error().as_str()), (3, "config_invalid"));
    assert!(refused.stderr.contains("/nowhere"), "{}", refused.stderr);
}

#[test]
fn a_module_cannot_use_the_type_checker_to_read_this_machine() {
    let home = with_typescript();
    let secret = home.write("secret.ts", "export const secret: 'TOP-SECRET' = 1;");
    let module = made(&home, &["shop", "get-thing"]);
    let source = std::fs::read_to_string(&module).unwrap();
    for line in [
        format!("/// <reference path=\"{}\" />", secret.display()),
        format!("type Stolen = typeof import(\"{}\");", secret.display()),
        "/// <reference types=\"../../../etc/passwd\" />".to_owned(),
    ] {
        std::fs::write(&module, format!("{line}\n{source}")).unwrap();
        let checked = home.run(&["check", module.to_str().unwrap()]);
        let all = format!("{}{}", checked.stdout, checked.stderr);
        assert!(!all.contains("TOP-SECRET"), "{line}: {all}");
    }
}
