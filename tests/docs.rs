//! What strangers read says what the code does: every refusal has its row.

use cambium_proxy::Refusal;

#[test]
fn every_refusal_code_has_a_row_in_the_security_page() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md")).unwrap();
    let page = page.split("\n## Refusal codes").nth(1).unwrap().split("\n## ").next().unwrap();
    let missing: Vec<_> =
        Refusal::CODES.iter().filter(|code| !page.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/security.md lacks {missing:?}");
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Refusal::CODES.len(), "docs/security.md has a row for a code that is gone");
}
