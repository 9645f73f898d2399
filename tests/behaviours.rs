//! Each line of the behaviours has a test that carries its number (`b036_…`), or
//! stands in a list here that names the test of another catalogue that holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Lines of the page.
const LINES: std::ops::RangeInclusive<u16> = 1..=97;

/// Held by tests under the names of other catalogues.
const HELD: &[(u16, &str)] =
    &[(48, "i01_a_read_goes_with_the_credential_and_is_marked"), (48, "h03_every_form")];

#[test]
fn each_behaviour_has_a_named_test() {
    let names = test_names();
    let mut tested = BTreeSet::new();
    for name in &names {
        tested.extend(numbers(name));
    }
    let strangers: Vec<_> = tested.iter().filter(|line| !LINES.contains(line)).collect();
    assert!(strangers.is_empty(), "no such line: {strangers:?}");
    let mut held = BTreeMap::<u16, Vec<&str>>::new();
    for (line, name) in HELD {
        assert!(names.contains(*name), "line {line} is said to be held by {name}, which is gone");
        held.entry(*line).or_default().push(name);
    }
    let open = |line: &u16| !tested.contains(line) && !held.contains_key(line);
    let missing: Vec<_> = LINES.filter(open).collect();
    assert!(missing.is_empty(), "no test carries the number of {missing:?}");
}

/// `b002_b007_every_agent` holds 2 and 7.
fn numbers(name: &str) -> impl Iterator<Item = u16> {
    name.split('_').map_while(|part| {
        let digits = part.strip_prefix('b').filter(|digits| digits.len() == 3)?;
        digits.parse().ok()
    })
}

/// The name of every function in the tree that follows a test attribute.
fn test_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["src", "tests", "proxy", "engine", "store", "mcp", "console", "sandbox-tests"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut names);
    }
    names
}

fn read(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
        let path = entry.unwrap_or_else(|error| panic!("{folder:?}: {error}")).path();
        if path.is_dir() {
            read(&path, names);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let mut test = false;
            for line in text.lines().map(str::trim) {
                test |= line.starts_with("#[") && line.contains("test]");
                let function = line.strip_prefix("async fn ").or(line.strip_prefix("fn "));
                if let (true, Some((name, _))) =
                    (test, function.and_then(|rest| rest.split_once('(')))
                {
                    names.insert(name.to_owned());
                }
                test &= line.starts_with("#[") || line.starts_with("///");
            }
        }
    }
}
