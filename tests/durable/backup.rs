//! `cambium backup` and `cambium restore`: everything comes back but what a
//! person may have taken back since.

use crate::shop::{Shop, TOKEN};
use crate::support::{Home, PASSPHRASE};
use std::os::unix::fs::PermissionsExt;

#[test]
fn d16_a_backup_comes_back_and_begins_a_new_epoch() {
    let mut shop = Shop::open();
    assert_eq!(shop.order("lamp").code, 6);
    shop.home.run(&["approvals", "allow", &shop.open_ask(), "--from-now-on"]).ok();
    shop.order("lamp").ok();
    assert_eq!(shop.orders().len(), 1);
    let file = shop.home.path().join("backup");
    let path = file.to_str().unwrap();

    let wrong = shop.home.run_with(&["backup", path, "--passphrase-stdin"], "another one\n");
    assert_eq!((wrong.code, wrong.error().as_str()), (5, "person_required"));
    assert!(!file.exists());
    let made = shop.home.run(&["backup", path]).ok();
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(made["bytes"], bytes.len());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read(shop.home.data_dir().join("vault.key")).unwrap();
    let clear = [TOKEN.as_bytes(), PASSPHRASE.as_bytes(), &key[16..48], &b"SQLite format"[..]];
    for secret in clear {
        let found = bytes.windows(secret.len()).any(|window| window == secret);
        assert!(!found, "{secret:?} is in the backup");
    }
    let again = shop.home.run(&["backup", path]);
    assert_eq!((again.code, again.error().as_str()), (1, "backup_exists"));
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "left as it was");
    assert!(!shop.home.data_dir().join("backup.copy").exists());
    shop.order("lamp").ok();
    shop.stop();

    let other = Home::new();
    other.write("config.toml", "wait_budget_seconds = 1\n");
    let restored = other.run(&["restore", path]).ok();
    assert_eq!(restored["ended"]["approvals"], 1, "{restored}");
    let full = other.run(&["restore", path]);
    assert_eq!((full.code, full.error().as_str()), (1, "data_dir_not_empty"));
    let server = other.serve();
    other.run_as(&shop.agent, &["run", "shop", "list-orders"]).ok();
    let input = r#"{"item": "lamp", "quantity": 1}"#;
    let create = ["run", "shop", "create-order", "--input", input];
    let asked = other.run_as(&shop.agent, &create);
    assert_eq!(asked.code, 6, "an approval is confirmed again: {}", asked.stdout);
    assert_eq!(shop.orders().len(), 2, "nothing more was sent");
    other.run(&["audit", "verify"]).ok();
    let asks = other.run(&["approvals", "list", "--open"]).ok();
    let ask = asks[0]["id"].as_str().unwrap().to_owned();
    other.run(&["approvals", "allow", &ask, "--once"]).ok();
    other.run_as(&shop.agent, &create).ok();
    assert_eq!(shop.orders().len(), 3);
    assert_eq!(server.stop(), 0);
}

#[test]
fn d16_a_wrong_passphrase_or_a_damaged_file_touches_nothing() {
    let mut shop = Shop::open();
    let file = shop.home.path().join("backup");
    let path = file.to_str().unwrap();
    shop.home.run(&["backup", path]).ok();
    shop.stop();
    let other = Home::new();
    let before = listed(&other);
    let untouched = |what: &str, code: i32, error: &str, ended: crate::support::Ended| {
        assert_eq!((ended.code, ended.error().as_str()), (code, error), "{what}");
        assert_eq!(listed(&other), before, "{what} left something");
    };
    let wrong = other.run_with(&["restore", path, "--passphrase-stdin"], "another one\n");
    untouched("another passphrase", 5, "backup_key_wrong", wrong);
    let whole = std::fs::read(&file).unwrap();
    let no_backup = shop.home.write("no-backup", "not one");
    untouched(
        "no backup",
        1,
        "backup_invalid",
        other.run(&["restore", no_backup.to_str().unwrap()]),
    );
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
        other.run(&["restore", path])
    };
    for (what, change) in [
        ("a changed byte", (|bytes| *bytes.last_mut().unwrap() ^= 1) as fn(&mut Vec<u8>)),
        ("a cut end", |bytes| bytes.truncate(bytes.len() - 1)),
        ("more at the end", |bytes| bytes.push(0)),
    ] {
        untouched(what, 8, "backup_damaged", changed(change));
    }
    let header = changed(|bytes| bytes[60] ^= 1);
    untouched("a changed header", 5, "backup_key_wrong", header);
    let none = other.run(&["restore", "/nowhere/backup"]);
    untouched("no file", 1, "backup_unreadable", none);
}

fn listed(home: &Home) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
