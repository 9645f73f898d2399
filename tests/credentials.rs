//! A person's credential on the command line: one-time codes, a changed
//! passphrase, and an authority for a connection. Each case ends with what is in
//! force afterwards, not only with what was said.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Home, PASSPHRASE, ended};

/// Whether a decision may be made with this passphrase.
fn in_force(home: &Home, passphrase: &str) -> bool {
    home.write("passphrase", passphrase);
    let made = home.run(&["code"]);
    assert!(made.code == 0 || made.error() == "person_required", "{}", made.stderr);
    made.code == 0
}

#[test]
fn a_code_decides_once_and_only_after_the_passphrase() {
    let home = Home::new();
    let _server = home.set_up();
    let code = home.run(&["code"]).ok()["code"].as_str().unwrap().to_owned();
    let create = |name| {
        let mut command = home.command(&["agents", "create", name, "--code", &code]);
        ended(command.env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap())
    };
    create("one").ok();
    assert_eq!(create("two").error(), "person_required", "a code was taken twice");
    home.write("passphrase", "wrong horse battery");
    let wrong = home.run(&["code"]);
    assert_eq!(wrong.error(), "person_required");
    assert!(wrong.stderr.contains("the passphrase is wrong"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("code`"), "{}", wrong.stderr);
    let guessed = home.run(&["agents", "create", "three", "--code", "000000"]);
    assert_eq!((guessed.code, guessed.error().as_str()), (5, "person_required"));
    assert!(guessed.stderr.contains("used or expired"), "{}", guessed.stderr);
    assert_eq!(home.run(&["agents", "list"]).ok().as_array().unwrap().len(), 1);
}

#[test]
fn a_passphrase_is_changed_only_with_the_old_one_and_never_to_itself() {
    const NEW: &str = "another horse battery";
    for running in [true, false] {
        let home = Home::new();
        let server = home.set_up();
        let server = if running {
            Some(server)
        } else {
            assert_eq!(server.stop(), 0);
            None
        };
        let change = |stdin: &str| {
            home.run_with(&["setup", "--no-config", "--change", "--passphrase-stdin"], stdin)
        };
        let again = home.run(&["setup", "--no-config"]);
        assert_eq!(again.error(), "already_set_up", "{}", again.stderr);
        assert_eq!(change(&format!("not it\n{NEW}\n")).error(), "person_required", "{running}");
        assert_eq!(change(&format!("{PASSPHRASE}\n{PASSPHRASE}\n")).error(), "passphrase_same");
        assert_eq!(change(&format!("{PASSPHRASE}\nshort\n")).error(), "passphrase_short");
        assert_eq!(change(&format!("{PASSPHRASE}\n")).error(), "credential_missing");
        change(&format!("{PASSPHRASE}\n{NEW}\n")).ok();
        let _server = server.unwrap_or_else(|| home.serve());
        assert!(!in_force(&home, PASSPHRASE), "the old passphrase still decides");
        assert!(in_force(&home, NEW), "the new passphrase does not decide");
    }
}

#[test]
fn an_authority_that_is_none_is_refused_before_anything_is_kept() {
    let home = Home::new();
    let _server = home.set_up();
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in ["", "not PEM", garbled] {
        let file = home.write("ca.pem", text);
        let add = [
            "connections",
            "add",
            "shop",
            "--host",
            "shop.example",
            "--ca",
            file.to_str().unwrap(),
        ];
        let refused = home.run_with(&add, "secret-of-the-shop");
        assert_eq!((refused.code, refused.error().as_str()), (1, "argument_invalid"));
        assert!(refused.stderr.contains("authority"), "{}", refused.stderr);
    }
    // One that will fail at the first call is warned of when it is given.
    let mut params = rcgen::CertificateParams::new(vec!["shop.example".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let slip = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
    let slip = home.write("slip.pem", &slip);
    let slip = slip.to_str().unwrap();
    let add = ["connections", "add", "slip", "--host", "shop.example", "--ca", slip];
    let warnings = home.run_with(&add, "secret-of-the-shop").ok()["warnings"].to_string();
    assert!(warnings.contains("CA:TRUE") && warnings.contains("openssl"), "{warnings}");
    let set = home.run(&["connections", "set", "slip", "--ca", slip]).ok();
    assert!(set["warnings"].to_string().contains("CA:TRUE"), "{set}");
    let missing = ["connections", "add", "shop", "--host", "shop.example", "--ca", "/nowhere.pem"];
    let refused = home.run_with(&missing, "secret-of-the-shop");
    assert_eq!((refused.code, refused.error().as_str()), (1, "file_unreadable"));
    assert_eq!(home.run(&["connections", "list"]).ok().as_array().unwrap().len(), 1);
}
