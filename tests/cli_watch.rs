//! `cambium approvals watch` beside a call that asks, and `cambium skill`.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use support::Home;

const WRITE: &str = include_str!("../examples/shop__create-order.ts");

#[test]
fn a_question_is_shown_as_it_comes() {
    let home = Home::new();
    home.write("config.toml", "wait_budget_seconds = 1\n");
    let _server = home.set_up();
    let add = ["connections", "add", "shop", "--host", "localhost:9"];
    let private = ["--allow-private", "127.0.0.1/32:9"];
    home.run_with(&[&add[..], &private].concat(), "0123456789").ok();
    let made = home.run(&["agents", "create", "laptop"]).ok();
    let token = made["token"].as_str().unwrap().to_owned();
    let file = home.write("create.ts", WRITE);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "create-order"];
    home.run(&[&publish[..], &["--agent", "laptop"]].concat()).ok();

    let watch = || {
        let mut command = home.command(&["approvals", "watch", "--first"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut early = watch();
    let order = r#"{"item": "chair", "quantity": 1}"#;
    let held = home.run_as(&token, &["run", "shop", "create-order", "--input", order]);
    assert_eq!(held.code, 6, "{}", held.stderr);
    // The one that waited, and one that comes later and finds it waiting.
    for child in [&mut early, &mut watch()] {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let shown: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(shown["ask"]["tool"], "shop__create-order");
        assert!(shown["link"].as_str().unwrap().contains("/asks/"), "{shown}");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn the_skill_is_put_where_harnesses_look() {
    let home = Home::new();
    let project = home.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let at = project.to_str().unwrap();
    let install = ["skill", "install", "--project", at];
    home.run(&install).ok();
    home.run(&install).ok();
    let printed = home.run(&["skill", "print"]).ok();
    for folder in [".claude", ".agents"] {
        let file = project.join(folder).join("skills/cambium/SKILL.md");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed["skill"].as_str().unwrap());
    }
    // What is there and is no plain file is somebody else's.
    let file = project.join(".agents/skills/cambium/SKILL.md");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    assert_eq!(home.run(&install).error(), "file_unwritable");
    assert_eq!(home.run(&["skill", "install", "--project", "/nowhere"]).error(), "file_unwritable");
}
