//! The first steps on a fresh data directory: its first code, which is renewed when
//! it is spent and worth nothing once a passphrase is set, and what `setup` writes.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use support::{Home, PASSPHRASE};

/// What the control socket answers whoever reaches it.
fn asked(home: &Home, request: &Value) -> Value {
    let mut stream = UnixStream::connect(home.data_dir().join("control.sock")).unwrap();
    writeln!(stream, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// The file's code, which holds while it is the one in force.
fn in_file(home: &Home) -> String {
    let file = home.data_dir().join("first-code");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

#[test]
fn once_a_passphrase_is_set_no_first_code_is_given_or_taken() {
    let home = Home::new();
    let server = home.serve();
    let shown = home.run(&["code"]).ok();
    let first = shown["code"].as_str().unwrap();
    assert_eq!(in_file(&home), first, "one code, wherever it is read");
    assert_eq!(home.run(&["code"]).ok()["code"], first, "asking again makes no second");
    // It makes no code that would outlive it, and is spent by the try.
    let bred = asked(&home, &json!({ "do": "issue_code", "who": { "code": first } }));
    assert_eq!(bred["error"]["code"], "person_required", "{bred}");
    let again = ["agents", "create", "one", "--code", first];
    let spent = home.run(&again);
    assert_eq!((spent.code, spent.error().as_str()), (5, "person_required"));
    assert!(spent.stderr.contains("`cambium setup`"), "{}", spent.stderr);
    assert!(spent.stderr.contains("`cambium code`"), "{}", spent.stderr);

    let second = home.run(&["code"]).ok()["code"].as_str().unwrap().to_owned();
    assert_ne!(second, first, "a used code is renewed without a restart");
    assert_eq!(in_file(&home), second);
    home.run(&["setup", "--no-config"]).ok();
    assert!(!home.data_dir().join("first-code").exists());
    let refused = asked(&home, &json!({ "do": "first_code" }));
    assert_eq!(refused["error"]["code"], "already_set_up", "{refused}");
    for code in [first, &second] {
        let who = json!({ "code": code });
        let set = json!({ "do": "set_passphrase", "who": who, "passphrase": "battery staple" });
        assert_eq!(asked(&home, &set)["error"]["code"], "person_required");
        let refused = home.run(&["agents", "create", "one", "--code", code]);
        assert_eq!(refused.error(), "person_required", "{}", refused.stderr);
    }
    let unproved = support::ended(
        home.command(&["code"]).env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap(),
    );
    assert_eq!((unproved.code, unproved.error().as_str()), (5, "credential_missing"));
    assert!(unproved.stdout.is_empty());
    home.run_with(&["agents", "create", "one", "--passphrase-stdin"], PASSPHRASE).ok();
    assert_eq!(server.stop(), 0);
    let again = home.serve();
    assert!(!home.data_dir().join("first-code").exists(), "nor after a restart");
    assert_eq!(asked(&home, &json!({ "do": "first_code" }))["error"]["code"], "already_set_up");
    drop(again);
}

#[test]
fn a_used_first_code_is_no_dead_end() {
    let home = Home::new();
    let _server = home.serve();
    let first = in_file(&home);
    home.run(&["agents", "create", "one", "--code", &first]).ok();
    assert_eq!(home.run(&["agents", "create", "two", "--code", &first]).code, 5);
    let shown = home.run(&["code"]).ok();
    let (code, link) = (shown["code"].as_str().unwrap(), shown["link"].as_str().unwrap());
    assert!(link.ends_with(&format!("/login?code={code}")), "{shown}");
    assert!(shown["expiresMs"].is_i64(), "{shown}");
    home.run(&["setup", "--no-config"]).ok();
    home.run(&["agents", "create", "two"]).ok();
}

#[test]
fn setup_writes_no_flag_of_its_call_and_says_where_it_wrote() {
    let home = Home::new();
    let passphrase = home.path().join("passphrase");
    let set = |arguments: &[&str], data_dir: &str| {
        let mut command = home.bare();
        command.current_dir(home.path()).args(["--data-dir", data_dir, "setup"]).args(arguments);
        command.env("CAMBIUM_PASSPHRASE_FILE", &passphrase).env("CAMBIUM_LISTEN", "127.0.0.1:1");
        let ended = support::ended(command.output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let file = home.path().join(".config/cambium/config.toml");
    let said = set(&[], "data");
    assert!(said.contains(&format!("settings are in {}", file.display())), "{said}");
    // The next command finds what this one made.
    let data = home.path().join("data");
    assert!(said.contains(&format!("cambium serve --data-dir {}", data.display())), "{said}");
    let written = std::fs::read_to_string(&file).unwrap();
    let usual = home.path().join(".local/share/cambium");
    assert!(written.contains(&format!("data_dir = \"{}\"", usual.display())), "{written}");
    assert!(!written.contains("127.0.0.1:1\""), "a variable was written: {written}");
    std::fs::remove_file(&file).unwrap();
    let config = home.path().join("config.toml");
    set(&["--config", config.to_str().unwrap()], "other");
    assert!(!file.exists(), "a file that would not be read was written");
    // Where the person's home is a relative path, the file's is not.
    let mut command = home.bare();
    command.current_dir(home.path()).env("HOME", ".").env("CAMBIUM_PASSPHRASE_FILE", &passphrase);
    let ended = support::ended(command.arg("setup").output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains(&format!("settings are in {}", file.display())),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("--data-dir"), "{}", ended.stdout);
}

#[test]
fn a_code_that_is_given_is_looked_at_and_a_first_run_that_fails_leaves_nothing() {
    let home = Home::new();
    let given = ["setup", "--no-config", "--code", "totally-wrong"];
    let refused = home.run(&given);
    assert_eq!((refused.code, refused.error().as_str()), (5, "person_required"));
    assert!(refused.stderr.contains("while no server runs"), "{}", refused.stderr);
    assert!(!home.data_dir().exists(), "no server");
    let mut mute = home.command(&["setup", "--no-config"]);
    let mute = support::ended(mute.env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap());
    assert_eq!((mute.code, mute.error().as_str()), (5, "credential_missing"));
    assert!(mute.stderr.contains("pass --passphrase-stdin"), "{}", mute.stderr);
    assert!(!mute.stderr.contains("run `cambium setup`"), "{}", mute.stderr);
    assert!(!home.data_dir().exists(), "nothing was typed");

    let server = home.serve();
    let refused = home.run(&given);
    assert_eq!((refused.code, refused.error().as_str()), (5, "person_required"));
    assert!(refused.stderr.contains("the code is wrong, used or expired"), "{}", refused.stderr);
    assert_eq!(home.run(&["status"]).ok()["needsSetup"], true, "it set a passphrase");
    let address = server.url.strip_prefix("http://").unwrap();
    let second = home.run(&["serve", "--listen", address]);
    assert_eq!((second.code, second.error().as_str()), (7, "data_dir_locked"));
    let mut other = home.bare();
    other.args(["--json", "--data-dir"]).arg(home.path().join("other"));
    let other = support::ended(other.args(["serve", "--listen", address]).output().unwrap());
    assert_eq!((other.code, other.error().as_str()), (7, "listen_in_use"));
    assert_eq!(server.stop(), 0);
    // What a server left holds no code either.
    assert_eq!(home.run(&given).error(), "person_required");
    let server = home.serve();
    let code = in_file(&home);
    home.run(&["setup", "--no-config", "--code", &code]).ok();
    assert_eq!(home.run(&["status"]).ok()["needsSetup"], false);
    drop(server);
}

#[test]
fn a_person_is_asked_for_nothing_while_no_server_runs() {
    let home = Home::new();
    for words in [
        &["agents", "create", "one"][..],
        &["approvals", "allow", "00", "--once"],
        &["run", "shop", "list-orders", "--agent", "one"],
        &["backup", "file"],
    ] {
        // No passphrase is to be had here: asking for one would fail first.
        let mut command = home.command(words);
        let ended = support::ended(command.env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap());
        assert_eq!((ended.code, ended.error().as_str()), (4, "no_server"), "{}", ended.stderr);
    }
}
