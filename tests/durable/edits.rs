//! A hand in the database of the real server: without the vault's key nothing
//! it does lets a request go. What it may do to each table is in the store's
//! own tests; here it is what a person and a vendor see.

use crate::shop::Shop;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

/// Runs a statement with no trigger in its way, and puts them back.
fn edit(shop: &Shop, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let path = shop.home.data_dir().join("cambium.db");
        let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
        let mut on: SqliteConnection = options.connect().await.unwrap();
        let triggers = sqlx::query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'");
        let triggers = triggers.fetch_all(&mut on).await.unwrap();
        let before: i64 =
            sqlx::query_scalar("PRAGMA schema_version").fetch_one(&mut on).await.unwrap();
        let mut script = String::from("BEGIN IMMEDIATE;\n");
        for row in &triggers {
            script.push_str(&format!("DROP TRIGGER {};\n", row.get::<String, _>("name")));
        }
        script.push_str(&format!("{statement};\n"));
        for row in &triggers {
            script.push_str(&format!("{};\n", row.get::<String, _>("sql")));
        }
        script.push_str("COMMIT;");
        sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut on).await.unwrap();
        let back = format!("PRAGMA schema_version = {before}");
        sqlx::query(AssertSqlSafe(back)).execute(&mut on).await.unwrap();
        on.close().await.unwrap();
    });
}

fn refuses_to_start(shop: &Shop, what: &str) {
    let output = shop.home.command(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    let ended = crate::support::ended(output);
    assert_eq!((ended.code, ended.error().as_str()), (7, "database_tampered"), "{what}");
    assert!(ended.stderr.contains("cambium restore"), "{what}: {}", ended.stderr);
}

#[test]
fn m05_decision29_a_once_is_not_used_twice_whatever_the_database_says() {
    let mut shop = Shop::open();
    assert_eq!(shop.order("lamp").code, 6);
    shop.home.run(&["approvals", "allow", &shop.open_ask(), "--once"]).ok();
    shop.order("lamp").ok();
    assert_eq!(shop.orders().len(), 1);
    edit(&shop, "DELETE FROM permit_uses");
    let refused = shop.order("lamp");
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert_eq!(shop.orders().len(), 1, "while it runs");
    shop.stop();
    refuses_to_start(&shop, "a use taken back");
}

#[test]
fn m05_decision29_a_passphrase_or_session_of_somebody_else_decides_nothing() {
    let mut shop = Shop::open();
    assert_eq!(shop.order("lamp").code, 6);
    let ask = shop.open_ask();
    edit(&shop, "UPDATE persons SET passphrase = NULL");
    let refused = shop.home.run(&["approvals", "allow", &ask, "--once"]);
    assert_eq!(refused.error(), "store_unavailable", "{}", refused.stderr);
    let status = shop.home.run(&["status"]);
    assert_eq!(status.error(), "store_unavailable", "it does not ask for a first passphrase");
    shop.stop();
    refuses_to_start(&shop, "no passphrase");
    assert!(!shop.home.data_dir().join("first-code").exists());
    assert_eq!(shop.orders().len(), 0);
}

#[test]
fn j02_an_ask_that_shows_another_request_than_was_held_is_not_shown() {
    let mut shop = Shop::open();
    assert_eq!(shop.order("lamp").code, 6);
    let ask = shop.open_ask();
    edit(&shop, "UPDATE asks SET body = CAST(replace(body, 'lamp', 'sofa') AS BLOB)");
    for words in [
        &["approvals", "show", &ask][..],
        &["approvals", "list"],
        &["approvals", "allow", &ask, "--once"],
        &["approvals", "allow", &ask, "--from-now-on"],
    ] {
        let refused = shop.home.run(words);
        assert_eq!(refused.error(), "store_unavailable", "{words:?} {}", refused.stdout);
        assert!(refused.stderr.contains("another request than was held"), "{}", refused.stderr);
        assert!(!refused.stdout.contains("sofa"), "{words:?}");
    }
    shop.order("lamp");
    shop.order("sofa");
    assert_eq!(shop.orders().len(), 0);
    shop.stop();
}

#[test]
fn d16_a_key_of_another_vault_says_so_and_touches_nothing() {
    let mut shop = Shop::open();
    shop.read().ok();
    shop.stop();
    let path = shop.home.data_dir().join("vault.key");
    let right = std::fs::read(&path).unwrap();
    let database = shop.home.data_dir().join("cambium.db");
    let before = std::fs::read(&database).unwrap();
    let mut wrong = right.clone();
    wrong[20] ^= 1;
    std::fs::write(&path, &wrong).unwrap();
    let serve = || {
        let output = shop.home.command(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
        let ended = crate::support::ended(output);
        (ended.code, ended.error())
    };
    assert_eq!(serve(), (7, "vault_key_wrong".to_owned()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(serve(), (7, "vault_key".to_owned()));
    assert!(!path.exists(), "a key was made over a database that has one");
    assert_eq!(std::fs::read(&database).unwrap(), before);
    std::fs::write(&path, &right).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    shop.start();
    shop.read().ok();
    shop.stop();
}
