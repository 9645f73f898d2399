//! Any text at all, and real modules with pieces cut, doubled and swapped: the
//! check answers with a report, and what it says holds together (row 54).
#![allow(clippy::unwrap_used)]

use cambium_engine::{CheckReport, Severity, check_module};
use cambium_proxy::MethodPattern;
use proptest::prelude::*;

const MODULES: [&str; 4] = [
    include_str!("check/read.ts"),
    include_str!("check/write.ts"),
    include_str!("check/faults.ts"),
    include_str!("check/unfollowed.ts"),
];
const PIECES: [&str; 40] = [
    "ctx",
    "ctx.fetch",
    "fetch",
    "input",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "`",
    "${",
    "'",
    "\"",
    "/",
    "//",
    "/*",
    "*/",
    "\\",
    "\n",
    "\u{2028}",
    "\u{feff}",
    "=>",
    "async ",
    "await ",
    "export ",
    "default ",
    "const ",
    "...",
    "<",
    ">",
    "?.",
    "!",
    " as ",
    "@",
    "#",
    "\u{1f600}",
    "method: 'POST'",
    "import ",
    ",",
];

fn holds_together(source: &str, report: &CheckReport) {
    let errors = report.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(report.ok, !errors);
    let lines = source.split(['\n', '\r', '\u{2028}', '\u{2029}']).count();
    for found in &report.diagnostics {
        assert_ne!(found.code, "check_failed", "{source}");
        assert!(found.line >= 1 && found.column >= 1);
        assert!(usize::try_from(found.line).unwrap() <= lines);
        assert!(found.text.chars().count() <= 200);
    }
    if report.hints.read_only {
        assert!(!report.hints.destructive);
        assert!(report.sites.iter().all(|site| {
            matches!(&site.method, MethodPattern::Exactly(name) if name == "GET" || name == "HEAD")
        }));
    }
    if report.ok {
        assert!(report.javascript.is_some() && !report.sites.is_empty());
        assert!(report.input_schema.is_some() && report.description.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_report(source in "\\PC{0,400}") {
        holds_together(&source, &check_module(&source));
    }

    #[test]
    fn any_pieces_get_a_report(pieces in prop::collection::vec(0..PIECES.len(), 0..120)) {
        let source: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        holds_together(&source, &check_module(&source));
    }

    #[test]
    fn a_mutated_module_gets_a_report(
        which in 0..MODULES.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, 0..PIECES.len()), 1..6),
    ) {
        let mut source: Vec<char> = MODULES[which].chars().collect();
        for (at, length, piece) in cuts {
            let at = at.index(source.len());
            let end = (at + length).min(source.len());
            source.splice(at..end, PIECES[piece].chars());
        }
        let source: String = source.into_iter().collect();
        holds_together(&source, &check_module(&source));
    }
}

#[test]
fn s54_a_source_over_the_cap_is_refused_unread() {
    let report = check_module(&" ".repeat(256 * 1024 + 1));
    assert_eq!(report.diagnostics[0].code, "source_too_large");
    assert!(!report.ok);
}
