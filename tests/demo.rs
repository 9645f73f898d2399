//! The demo itself: it verifies each of its steps, so it is a test by its exit
//! code; here its findings are held to what the README says.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Home, ended};

#[test]
fn the_demo_goes_as_said() {
    let home = Home::new();
    let told =
        ended(home.bare().args(["demo", "--json"]).env("TMPDIR", home.path()).output().unwrap());
    assert_eq!(told.code, 0, "{}\n{}", told.stdout, told.stderr);
    let found: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(found["posts"], 1);
    assert_eq!(found["calls"].as_array().unwrap().len(), 3);
    assert!(found["auditRows"].as_u64().unwrap() >= 6, "{found}");
    for call in found["calls"].as_array().unwrap() {
        assert!(call["workerUs"].as_u64().unwrap() > 0, "no worker time: {call}");
        assert!(call["proxyUs"].as_u64().unwrap() > 0, "no proxy time: {call}");
    }
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter().all(|name| !name.to_string_lossy().starts_with("cambium-demo")),
        "{left:?}"
    );
}
