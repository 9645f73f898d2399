//! What strangers read says what the code does: the refusals, their tests and
//! the invariants of `docs/security.md`, and the digest of the files that decide.
#![allow(clippy::unwrap_used)]

use cambium_proxy::Refusal;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files the digest is over, in the order the page names them.
const DECIDE: &[&str] = &[
    "policy.rs",
    "judge.rs",
    "effect.rs",
    "effect/graphql.rs",
    "overrides.rs",
    "target.rs",
    "site.rs",
    "headers.rs",
    "grant.rs",
    "approval.rs",
    "address.rs",
    "resolve.rs",
    "session/send.rs",
    "session/hold.rs",
    "door/speak.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/security.md")).unwrap()
}

/// The lines between a heading and the next.
fn section(page: &str, heading: &str) -> String {
    let rest = page.split(&format!("\n## {heading}\n")).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("docs/security.md has no `{heading}`"));
    rest.split("\n## ").next().unwrap().to_owned()
}

/// Cells of the rows of a table, its head left out.
fn rows(section: &str) -> Vec<Vec<String>> {
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| {
        let line = line.trim_matches('|').replace("\\|", "\u{0}");
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    lines.skip(1).map(cells).collect()
}

/// Every test by name, with its text.
fn tests() -> BTreeMap<String, String> {
    let mut files = Vec::new();
    for directory in ["sandbox-tests/tests", "proxy/src", "engine/tests", "tests"] {
        collect(&root().join(directory), &mut files);
    }
    let mut found = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for part in text.split("#[test]\n").chain(text.split("#[tokio::test]\n")).skip(1) {
            let Some(rest) = part.split("fn ").nth(1) else { continue };
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let body = part.split("\n}\n").next().unwrap_or_default();
            let body = body.split("\n    }\n\n").next().unwrap_or_default();
            found.insert(name, body.to_owned());
        }
    }
    found
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// The names in back quotes of a cell.
fn named(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn codes_rows_and_tests_are_one_list() {
    let (page, tests) = (page(), tests());
    let rows = rows(&section(&page, "Refusal codes"));
    let codes: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(codes, Refusal::CODES, "docs/security.md and proxy/src/refusal.rs");
    for (row, code) in rows.iter().zip(&codes) {
        let shown = row.last().unwrap();
        let [test] = &named(shown)[..] else { panic!("`{code}` names no test") };
        let body = tests.get(test).unwrap_or_else(|| panic!("`{code}`: there is no test {test}"));
        assert!(body.contains(&format!("\"{code}\"")), "{test} does not show `{code}`");
    }
}

#[test]
fn every_invariant_has_its_tests() {
    let (page, tests) = (page(), tests());
    let rows = rows(&section(&page, "Invariants, each beside its test"));
    assert!(rows.len() > 10);
    for row in rows {
        let named: Vec<_> = named(&row[1]).into_iter().filter(|name| !name.contains('*')).collect();
        assert!(!named.is_empty(), "{}: no test", row[0]);
        for test in named {
            assert!(tests.contains_key(&test), "{}: there is no test {test}", row[0]);
        }
    }
}

#[test]
fn the_policy_is_the_one_this_page_was_written_for() {
    let mut hash = Sha256::new();
    let page = page();
    for name in DECIDE {
        assert!(page.contains(&format!("`{name}`")), "docs/security.md does not name {name}");
        let text = std::fs::read(root().join("proxy/src").join(name)).unwrap();
        for field in [name.as_bytes(), &text] {
            hash.update((field.len() as u64).to_be_bytes());
            hash.update(field);
        }
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let written = page.split("Policy digest: `").nth(1).unwrap().split('`').next().unwrap();
    if std::env::var_os("UPDATE_POLICY_DIGEST").is_some() {
        let renewed = page.replace(written, &digest);
        return std::fs::write(root().join("docs/security.md"), renewed).unwrap();
    }
    assert_eq!(
        written, digest,
        "a file that decides was changed: read docs/security.md against it, correct what is no \
         longer so, then renew the digest with \
         UPDATE_POLICY_DIGEST=1 cargo nextest run --workspace --test docs"
    );
}
