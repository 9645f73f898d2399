//! Whole reports, as the one-shot process hands them back. `UPDATE_GOLDENS=1`
//! writes what the check says now; read the difference before keeping it.
#![allow(clippy::unwrap_used)]

use cambium_engine::{check_bytes, check_input};
use std::path::Path;

#[test]
fn b050_reports_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let source = entry.unwrap().path();
        if source.extension().is_none_or(|kind| kind != "ts") {
            continue;
        }
        seen += 1;
        let report = check_bytes(&check_input(&std::fs::read_to_string(&source).unwrap(), &[]));
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let golden = source.with_extension("json");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            let text = serde_json::to_string_pretty(&report).unwrap() + "\n";
            std::fs::write(&golden, text).unwrap();
        }
        // As values: whether an object keeps its order depends on which crates
        // are built together, and means nothing.
        let recorded = std::fs::read_to_string(&golden).unwrap();
        let recorded: serde_json::Value = serde_json::from_str(&recorded).unwrap();
        assert_eq!(report, recorded, "{}", source.display());
    }
    assert_eq!(seen, 4);
}

#[test]
fn bytes_that_are_no_text_are_a_report_too() {
    let report: serde_json::Value = serde_json::from_slice(&check_bytes(b"[]\na\xff")).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["diagnostics"][0]["code"], "source_not_utf8");
}
