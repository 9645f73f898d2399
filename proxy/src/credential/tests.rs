//! Who opens a secret, and who mints a permit, read from the sources.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn what_only_one_file_may_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    for (words, allowed) in [
        (".expose()", &["credential.rs"][..]),
        ("Grant::Write(", &["approval.rs"]),
        ("covers: Covers::", &["approval.rs", "grant.rs"]),
        ("TcpStream::connect", &["upstream/dial.rs"]),
        // K3 to K8: the door for sandboxes outside, which is off by default.
        ("Listener::bind", &["door.rs"]),
        ("SystemTime::now", &["clock.rs"]),
        ("Instant::now", &["clock.rs"]),
    ] {
        for path in &found {
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let says = code.into_iter().any(|line| line.contains(words));
            let may = allowed.iter().any(|name| path.ends_with(name));
            assert!(!says || may, "{} says `{words}`", path.display());
        }
    }
}
