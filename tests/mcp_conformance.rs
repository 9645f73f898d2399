//! The protocol's own conformance suites against the product's server. What a
//! suite can only see with fixtures of its own (tools, prompts and resources with
//! names it knows) is listed as an expected failure, and the suites hold the list
//! to be exact: a scenario that passes must not be on it.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::{Home, clients};

fn conformance(package: &str, arguments: &[&str], expected: &str) {
    let clients = clients();
    let home = Home::new();
    let server = home.serve_with(&["--dev-agent", "conformance"]);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let output = Command::new(clients.join("node"))
        .arg(clients.join("node_modules").join(package).join("dist/index.js"))
        .args(["server", "--url", &format!("{}/mcp", server.url)])
        .args(arguments)
        .arg("--expected-failures")
        .arg(tests.join(expected))
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let summary = out.rsplit_once("=== SUMMARY ===").map_or(&*out, |(_, summary)| summary);
    assert!(output.status.success(), "{summary}\n{err}");
    assert_eq!(server.stop(), 0);
}

#[test]
fn the_released_suite_fails_only_for_want_of_fixtures() {
    conformance("conformance-released", &["--suite", "active"], "conformance-active.yml");
}

#[test]
fn the_requirements_of_2025_11_25_fail_only_for_want_of_fixtures() {
    let requirements = ["--requirements", "2025-11-25"];
    conformance("conformance-next", &requirements, "conformance-2025-11-25.yml");
}

#[test]
fn the_requirements_of_2026_07_28_fail_only_for_want_of_fixtures() {
    let requirements = ["--requirements", "2026-07-28"];
    conformance("conformance-next", &requirements, "conformance-2026-07-28.yml");
}
