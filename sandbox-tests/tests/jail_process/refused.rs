//! Users and kernels that are less than root on the newest: what does not hold
//! is said, by name and with a next step, and everything else holds and works.
//! As root and as an ordinary user; the refusals are filters on the test's own
//! child, so no switch of the machine is touched. Becoming a user needs root.

use crate::layers::EVERY_LAYER;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// What a process of the jail needs a user namespace for.
const NAMESPACES: [&str; 7] = [
    "network_namespace",
    "mount_namespace",
    "ipc_namespace",
    "uts_namespace",
    "cgroup_namespace",
    "empty_root",
    "pid_namespace",
];

/// A copy of a test binary where every user may start it.
pub(crate) struct Public(PathBuf);

impl Public {
    pub(crate) fn copy(binary: &str) -> Self {
        let name = std::thread::current().name().unwrap_or_default().replace("::", "-");
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let open = Permissions::from_mode(0o755);
        fs::set_permissions(&folder, open.clone()).unwrap();
        fs::copy(binary, folder.join("binary")).unwrap();
        fs::set_permissions(folder.join("binary"), open).unwrap();
        Self(folder)
    }

    /// Runs it as root or as a user nobody else is.
    pub(crate) fn run(&self, ordinary: bool, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.join("binary"));
        command.args(arguments).current_dir("/");
        if ordinary {
            command.uid(54_321).gid(54_321);
        }
        command.output().expect("becoming another user needs root")
    }
}

impl Drop for Public {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The layers that do not hold, and what doctor said of them.
fn missing(output: &Output) -> (Vec<String>, String) {
    let (said, why) = (String::from_utf8_lossy(&output.stdout), &output.stderr);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<(&str, &str)> = said.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(lines.iter().map(|(layer, _)| *layer).collect::<Vec<_>>(), EVERY_LAYER);
    let missing = lines.iter().filter(|(_, holds)| *holds == "false");
    (missing.map(|(layer, _)| (*layer).to_owned()).collect(), String::from_utf8_lossy(why).into())
}

#[test]
fn every_layer_holds_for_an_ordinary_user_too() {
    let stub = Public::copy(env!("CARGO_BIN_EXE_stub"));
    let (missing, why) = missing(&stub.run(true, &["doctor"]));
    assert!(missing.is_empty(), "{missing:?} {why}");
}

#[test]
fn a_layer_the_kernel_refuses_is_said_and_costs_no_other() {
    let stub = Public::copy(env!("CARGO_BIN_EXE_stub"));
    let alone = [
        "network_namespace",
        "ipc_namespace",
        "uts_namespace",
        "cgroup_namespace",
        "pid_namespace",
        "empty_root",
        "landlock",
    ];
    for layer in alone {
        for ordinary in [false, true] {
            let (missing, why) = missing(&stub.run(ordinary, &["refusing", layer, "doctor"]));
            assert_eq!(missing, [layer], "ordinary {ordinary}: {why}");
            assert!(why.contains("next: \"") && !why.contains("next: \"\""), "{why}");
        }
    }
    let (missing, why) = missing(&stub.run(true, &["refusing", "mount_namespace", "doctor"]));
    assert_eq!(missing, ["mount_namespace", "empty_root"], "{why}");
}

#[test]
fn without_user_namespaces_the_filter_landlock_and_limits_still_hold() {
    let stub = Public::copy(env!("CARGO_BIN_EXE_stub"));
    // Root has what it takes without one.
    let (without, why) = missing(&stub.run(false, &["refusing", "user_namespace", "doctor"]));
    assert_eq!(without, ["user_namespace"], "{why}");
    let (without, why) = missing(&stub.run(true, &["refusing", "user_namespace", "doctor"]));
    let mut expected = vec!["user_namespace"];
    expected.extend(NAMESPACES);
    // The bounding set takes a capability to empty; all others are empty.
    expected.push("capabilities");
    assert_eq!(without, expected, "{why}");
    assert!(why.contains("the bounding set stays"), "{why}");
}

#[test]
fn without_the_filter_nothing_starts_unless_told_and_doctor_says_so() {
    let stub = Public::copy(env!("CARGO_BIN_EXE_stub"));
    for ordinary in [false, true] {
        let (missing, why) = missing(&stub.run(ordinary, &["refusing", "seccomp", "doctor"]));
        assert_eq!(missing, ["seccomp", "locked_worker"], "{why}");
        assert!(why.contains("--allow-weak-sandbox"), "{why}");
    }
}

#[test]
fn a_tool_runs_for_every_user_and_without_each_layer() {
    let worker = Public::copy(env!("CARGO_BIN_EXE_worker"));
    let layers = ["user_namespace", "pid_namespace", "mount_namespace", "landlock"];
    for ordinary in [false, true] {
        for layer in [None, Some(layers[0]), Some(layers[1]), Some(layers[2]), Some(layers[3])] {
            let arguments: Vec<&str> = ["call"].into_iter().chain(layer).collect();
            let output = worker.run(ordinary, &arguments);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("Ok(Value(\"200\"))"), "{layer:?} {ordinary} {output:?}");
        }
        let refused = worker.run(ordinary, &["call", "seccomp"]);
        let said = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert!(said.contains("Unavailable") && said.contains("`seccomp`"), "{refused:?}");
        let weak = worker.run(ordinary, &["call", "seccomp", "weak"]);
        let said = String::from_utf8_lossy(&weak.stdout).into_owned();
        assert!(said.contains("Ok(Value(\"200\"))"), "{weak:?}");
    }
}
