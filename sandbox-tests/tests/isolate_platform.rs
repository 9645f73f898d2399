//! The web platform as a tool finds it: cases of our own, named after the
//! web-platform tests they follow, run in the real isolate. Which pass is a
//! golden file; a case that stops passing, or starts to, shows there.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use cambium_engine::RunLimits;
use cambium_sandbox_tests::rig::{Rig, value};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
const FILES: [&str; 7] = ["url", "headers", "bodies", "encoding", "events", "data", "streams"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_platform_cases_pass_as_the_golden_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("platform");
    let read = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.js"))).unwrap();
    let rig = Rig::start(WORKER).await;
    let limits = RunLimits { cpu: Duration::from_secs(30), ..RunLimits::default() };
    let (mut lines, mut passed, mut names) = (String::new(), 0, HashSet::new());
    for file in FILES {
        let module = format!("{}\n{}", read("harness"), read(file));
        let report = rig.run_source(&module, "{}", limits, rig.reads()).await;
        let results: Vec<(String, String)> = serde_json::from_str(value(&report)).unwrap();
        for (name, fault) in results {
            assert!(names.insert(name.clone()), "two cases are called {name}");
            if fault.is_empty() {
                passed += 1;
                lines += &format!("pass {file} {name}\n");
            } else {
                eprintln!("{file} {name}: {fault}");
                lines += &format!("FAIL {file} {name}\n");
            }
        }
    }
    rig.sandbox.shutdown().await;
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/isolate_platform.txt");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&golden, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(&golden).unwrap(), "{}", golden.display());
    assert!(passed >= 300, "{passed}");
}
