//! The audit beyond its database: anchors, exports, and what an older state put
//! back looks like to them.

use crate::shop::Shop;
use serde_json::Value;

#[test]
fn m05_anchors_find_an_older_state_put_back_whole() {
    let mut shop = Shop::open();
    let file = shop.home.path().join("anchors");
    let path = file.to_str().unwrap();
    shop.read().ok();
    let first = shop.home.run(&["audit", "anchor", "--to", path]).ok()["rows"].as_u64().unwrap();
    shop.stop();
    // Everything somebody could put back later: database and head together.
    let kept = ["cambium.db", "cambium.head"].map(|name| {
        let path = shop.home.data_dir().join(name);
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    });
    shop.start();
    shop.read().ok();
    let anchor = shop.home.run(&["audit", "anchor", "--to", path]).ok();
    // Before the request and after it.
    assert_eq!(anchor["rows"], first + 2, "{anchor}");
    let verify = ["audit", "verify", "--head", path];
    let verified = shop.home.run(&verify).ok();
    assert_eq!(
        (&verified["rows"], &verified["chains"][0]["anchors"]),
        (&anchor["rows"], &2.into())
    );
    shop.stop();
    // The same without a server.
    assert_eq!(shop.home.run(&verify).ok(), verified);

    for (path, bytes) in kept {
        std::fs::write(path, bytes).unwrap();
    }
    shop.home.run(&["audit", "verify"]).ok();
    let found = shop.home.run(&verify);
    assert_eq!((found.code, found.error().as_str()), (8, "audit_broken"), "{}", found.stderr);
    let row = format!("row {} of node local", first + 1);
    assert!(found.stderr.contains(&row), "{}", found.stderr);

    let foreign = shop.home.write("foreign", "not an anchor\n");
    let found = shop.home.run(&["audit", "verify", "--head", foreign.to_str().unwrap()]);
    assert_eq!((found.code, found.error().as_str()), (1, "anchor_invalid"));
    assert!(found.stderr.contains("line 1"), "{}", found.stderr);
}

#[test]
fn m05_an_export_is_whole_and_its_chain_can_be_followed() {
    let mut shop = Shop::open();
    for _ in 0..3 {
        shop.read().ok();
    }
    let rows = shop.home.run(&["audit", "verify"]).ok()["rows"].as_u64().unwrap();
    let printed = shop.home.run(&["audit", "export"]).stdout;
    let file = shop.home.path().join("export");
    let exported = shop.home.run(&["audit", "export", "--to", file.to_str().unwrap()]).ok();
    assert_eq!(exported["lines"], rows);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    let again = shop.home.run(&["audit", "export", "--to", file.to_str().unwrap()]);
    assert_eq!((again.code, again.error().as_str()), (1, "export_unwritten"));
    let mut previous = "0".repeat(64);
    for (number, line) in printed.lines().enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["sequence"], number as u64 + 1);
        assert_eq!(row["previous"], previous, "row {}", number + 1);
        assert_eq!(row["node"], "local");
        assert!(row["event"]["at_ms"].is_i64() && row["mac"].as_str().unwrap().len() == 64);
        previous = row["hash"].as_str().unwrap().to_owned();
    }
    assert_eq!(printed.lines().count() as u64, rows);
    assert!(!printed.contains(crate::shop::TOKEN));
    shop.stop();
    assert_eq!(shop.home.run(&["audit", "export"]).stdout, printed, "the same without a server");
}

#[test]
fn m05_a_server_anchors_by_itself_where_a_person_said() {
    let mut shop = Shop::open();
    shop.stop();
    let file = shop.home.path().join("anchors");
    let text = format!("[audit]\nanchor_file = {:?}\nkeep_days = 1\n", file.to_str().unwrap());
    shop.home.write("config.toml", &text);
    shop.start();
    shop.read().ok();
    shop.stop();
    let lines = std::fs::read_to_string(&file).unwrap();
    assert!(lines.lines().count() >= 2, "one at the start, one at the end: {lines}");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert!(last["rows"].as_u64().unwrap() > 0, "{last}");
    shop.home.run(&["audit", "verify", "--head", file.to_str().unwrap()]).ok();
    shop.home.write("config.toml", "[audit]\nkeep_days = 0\n");
    let refused = shop.home.run(&["status"]);
    assert_eq!((refused.code, refused.error().as_str()), (3, "config_invalid"));
}
