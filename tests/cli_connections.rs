//! `cambium connections`: what a person sets is shown, recorded and bounded.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::Home;

#[test]
fn a_persons_changes_are_kept_shown_and_recorded() {
    let home = Home::new();
    let _server = home.set_up();
    let add = ["connections", "add", "shop", "--host", "api.shop.example", "--rate", "60"];
    let made = home.run_with(&add, "1234").ok();
    assert_eq!(made["overrides"], json!({ "rate": 60 }));
    assert!(made["warnings"][0].as_str().unwrap().contains("under 8 bytes"), "{made}");
    let made = home.run_with(&["connections", "add", "b", "--host", "b.example"], "12345678").ok();
    assert_eq!(made["warnings"], json!([]));

    let set = home
        .run(&[
            "connections",
            "set",
            "shop",
            "--allow-header",
            "Sudo",
            "--encoded-slash",
            "on",
            "--raise",
            "GET /send/{}=write",
            "--graphql",
            "/graphql",
            "--allow-private",
            "10.0.0.0/8:443",
        ])
        .ok();
    assert_eq!(set["generation"], 2);
    let shown = home.run(&["connections", "show", "shop"]).ok();
    assert_eq!(shown, set);
    assert_eq!(
        shown["overrides"],
        json!({
            "headers": ["sudo"],
            "encoded_slash": true,
            "rate": 60,
            "graphql": "/graphql",
            "raise": [{ "method": "GET", "path": "/send/{}", "to": "write" }],
        })
    );
    let after = home.run(&["connections", "set", "shop", "--raise", "none", "--rate", "0"]).ok();
    assert_eq!((&after["generation"], &after["overrides"]["rate"]), (&json!(3), &json!(null)));
    let rows = home.run(&["audit", "list"]).ok();
    let changes: Vec<_> =
        rows.as_array().unwrap().iter().filter(|row| row["event"]["kind"] == "change").collect();
    let last = &changes.last().unwrap()["event"]["notes"];
    assert!(last.to_string().contains("no longer: GET /send/{} counts as a write"), "{last}");
    home.run(&["audit", "verify"]).ok();
}

#[test]
fn what_nobody_can_open_is_refused_with_the_value() {
    let home = Home::new();
    let server = home.set_up();
    home.run_with(&["connections", "add", "shop", "--host", "api.shop.example"], "12345678").ok();
    let port = server.url.rsplit_once(':').unwrap().1;
    let own = format!("127.0.0.0/8:{port}");
    for (option, value, code) in [
        ("--allow-header", "Host", "argument_invalid"),
        ("--allow-header", "Range", "argument_invalid"),
        ("--follow-downloads", "*.com", "argument_invalid"),
        ("--raise", "GET /x=read", "argument_invalid"),
        ("--raise", "GET", "argument_invalid"),
        ("--graphql", "graphql", "argument_invalid"),
        ("--rate", "60001", "argument_invalid"),
        ("--allow-private", own.as_str(), "self_address"),
    ] {
        let refused = home.run(&["connections", "set", "shop", option, value]);
        assert_eq!((refused.code, refused.error().as_str()), (1, code), "{}", refused.stderr);
        let said = refused.stderr.to_lowercase();
        let named = value.rsplit('=').next().unwrap().split(':').next().unwrap().to_lowercase();
        assert!(said.contains(&named), "{option} {value}: {said}");
    }
    assert_eq!(home.run(&["connections", "show", "shop"]).ok()["generation"], 1);
    let mut without = home.command(&["connections", "set", "shop", "--range", "on"]);
    without.env_remove("CAMBIUM_PASSPHRASE_FILE");
    let refused = support::ended(without.output().unwrap());
    assert_eq!(refused.code, 5, "{}", refused.stderr);
}

#[test]
fn a_known_vendor_needs_a_name_and_a_secret() {
    let home = Home::new();
    let _server = home.set_up();
    let list = home.run(&["connections", "presets"]).ok();
    assert!(list.as_array().unwrap().len() > 20);
    let made =
        home.run_with(&["connections", "add", "work", "--preset", "github"], "ghp-0123456789");
    let made = made.ok();
    assert_eq!((&made["vendor"], &made["display_name"]), (&json!("github"), &json!("GitHub")));
    assert_eq!(made["hosts"][1]["name"], "uploads.github.com");
    assert_eq!(made["overrides"]["headers"], json!(["x-github-api-version"]));
    let asks = home.run_with(&["connections", "add", "books", "--preset", "unleashed"], "key");
    assert!(asks.stderr.contains("--set key_id"), "{}", asks.stderr);
    let add = ["connections", "add", "books", "--preset", "unleashed", "--set", "key_id=me"];
    let made = home.run_with(&add, "0123456789").ok();
    assert_eq!(made["scheme"]["key_id"], "me");
    let unknown = home.run(&["connections", "presets", "nobody"]);
    assert_eq!(unknown.error(), "argument_invalid");
}

#[test]
fn b083_a_revoked_name_is_no_dead_end_and_a_secret_is_replaced() {
    let home = Home::new();
    let _server = home.set_up();
    let add = ["connections", "add", "shop", "--host", "api.shop.example"];
    home.run_with(&add, "0123456789").ok();
    home.run(&["connections", "revoke", "shop"]).ok();
    let again = home.run_with(&add, "0123456789");
    assert_eq!(again.error(), "connection_revoked");
    assert!(again.stderr.contains("connections reconnect"), "{}", again.stderr);
    let back = home.run(&["connections", "reconnect", "shop"]).ok();
    assert_eq!((&back["status"], &back["generation"]), (&json!("connected"), &json!(2)));
    let same = ["connections", "set", "shop", "--secret-stdin", "--same-account"];
    assert_eq!(home.run_with(&same, "abcdefghij").ok()["generation"], 2);
    let other = ["connections", "set", "shop", "--secret-stdin"];
    assert_eq!(home.run_with(&other, "klmnopqrst").ok()["generation"], 3);
    home.run(&["connections", "revoke", "shop"]).ok();
    let back = ["connections", "reconnect", "shop", "--secret-stdin"];
    assert_eq!(home.run_with(&back, "uvwxyzabcd").ok()["generation"], 4);
    let rows = home.run(&["audit", "list"]).ok();
    let changes: Vec<_> =
        rows.as_array().unwrap().iter().filter(|row| row["event"]["kind"] == "change").collect();
    let notes: String = changes.iter().map(|row| row["event"]["notes"].to_string()).collect();
    for note in ["now: reconnected", "another secret of the same account"] {
        assert!(notes.contains(note), "{notes}");
    }
    for secret in ["0123456789", "abcdefghij", "klmnopqrst", "uvwxyzabcd"] {
        assert!(!rows.to_string().contains(secret));
    }
}

#[test]
fn b078_b082_what_an_agent_asks_for_is_answered_from_the_command_line() {
    let home = Home::new();
    let _server = home.set_up();
    let made = home.run(&["agents", "create", "laptop"]).ok();
    let token = made["token"].as_str().unwrap();
    let bank = json!({
        "vendor": "bank", "primaryHost": "api.bank.example", "scheme": "bearer",
        "hosts": ["files.elsewhere.example"],
    });
    let ask = |name: &str, arguments| support::call_tool(&home, token, name, &arguments);
    let asked = ask("request_connection", bank.clone());
    let id = asked["ask"]["id"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let proposals = |word: &[&str], stdin: &str| {
        home.run_with(&[&["connections", "proposals"], word].concat(), stdin)
    };
    let list = proposals(&["list"], "").ok();
    assert_eq!((list[0]["id"].as_str(), list[0]["state"].as_str()), (Some(&*id), Some("open")));
    let shown = proposals(&["show", &id], "").ok();
    assert_eq!(shown["wants"]["hosts"][1]["flags"], json!(["outside `bank.example`"]));

    let some = ["accept", &*id, "--host", "api.bank.example"];
    let refused = proposals(&some, "0123456789");
    assert!(refused.stderr.contains("files.elsewhere.example"), "{}", refused.stderr);
    let all = [&some[..], &["--host", "files.elsewhere.example", "--slug", "my-bank"]].concat();
    assert_eq!(proposals(&all, "0123456789").ok()["slug"], "my-bank");
    assert_eq!(proposals(&all, "0123456789").error(), "ask_settled");
    assert_eq!(ask("request_connection", bank)["result"]["slug"], "my-bank");

    let asked = ask("request_credential", json!({ "connectionId": "my-bank", "reason": "401" }));
    let id = asked["ask"]["id"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let accept = ["accept", id, "--same-account"];
    assert_eq!(proposals(&accept, "abcdefghij").ok()["generation"], 1);

    let other = json!({ "vendor": "shop", "primaryHost": "api.shop.example", "scheme": "none" });
    let asked = ask("request_connection", other.clone());
    let id = asked["ask"]["id"].as_str().unwrap();
    proposals(&["refuse", id], "").ok();
    assert_eq!(ask("request_connection", other)["code"], "proposal_refused");
    assert_eq!(proposals(&["refuse", "nobody"], "").error(), "proposal_not_found");
    let rows = home.run(&["audit", "list"]).ok().to_string() + &home.log();
    assert!(!rows.contains("0123456789") && !rows.contains("abcdefghij"));
}
