//! The reviewer's tools on the command line.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::Home;

const WRITE: &str = include_str!("../examples/shop__create-order.ts");
const READ: &str = include_str!("../examples/shop__list-orders.ts");
const CASES: &str = include_str!("../examples/policy-cases.json");

#[test]
fn a_table_with_its_own_policy_needs_no_server() {
    let home = Home::new();
    let file = home.write("cases.json", CASES);
    let run = |path: &std::path::Path| home.run(&["policy", "test", path.to_str().unwrap()]);
    assert_eq!(run(&file).ok(), json!({ "cases": 7, "differ": [] }));
    let wrong = home.write("wrong.json", &CASES.replace("\"forward\"", "\"refuse\""));
    let ended = run(&wrong);
    assert_eq!((ended.code, ended.error().as_str()), (8, "policy_differs"));
    let said: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let one = &said["differ"][0];
    assert_eq!((&one["case"], &one["found"]), (&json!(1), &json!("forward")), "{said}");
    for (text, named) in [
        ("{\"cases\": []}", "policy"),
        ("{\"cases\": [], \"polcy\": 1}", "polcy"),
        (&CASES.replace("\"rule\"", "\"rul\""), "`rul`"),
        (&CASES.replace("/orders/send\", \"to\": \"write\"", "send\", \"to\": \"write\""), "send"),
    ] {
        let ended = run(&home.write("bad.json", text));
        assert_eq!(ended.code, 1, "{text}");
        assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn a_request_is_explained_and_what_is_recorded_is_replayed() {
    let home = Home::new();
    let _server = home.set_up();
    // A port nobody serves: requests are decided and recorded, and get no further.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (host, range) = (format!("localhost:{port}"), format!("127.0.0.1/32:{port}"));
    let add = ["connections", "add", "shop", "--host", &host, "--allow-private", &range];
    home.run_with(&add, "sk_live_12345678").ok();
    home.run(&["agents", "create", "laptop"]).ok();
    for (name, module) in [("create-order", WRITE), ("list-orders", READ)] {
        let file = home.write("tool.ts", module);
        let file = file.to_str().unwrap();
        home.run(&["publish", file, "--vendor", "shop", "--name", name, "--agent", "laptop"]).ok();
    }
    let explain = |rest: &[&str]| {
        let arguments = [&["policy", "explain", "--tool", "shop/create-order"][..], rest].concat();
        home.run(&arguments).ok()
    };
    let said = explain(&["--method", "POST", "--path", "/orders", "--body", "{}"]);
    assert_eq!(
        (&said["verdict"], &said["rule"]),
        (&json!("ask"), &json!("recorded_site_needs_permit"))
    );
    let said = explain(&["--method", "POST", "--path", "/orders", "--dry-run"]);
    assert_eq!(said["verdict"], "preview");
    let said = explain(&["--method", "DELETE", "--path", "/orders"]);
    assert_eq!(
        (&said["verdict"], &said["code"]),
        (&json!("refuse"), &json!("method_exceeds_hint"))
    );
    assert!(said["steps"].as_array().unwrap().len() > 3, "{said}");
    let gone = home.run(&[
        "policy",
        "explain",
        "--tool",
        "shop/create-order",
        "--number",
        "9",
        "--method",
        "GET",
        "--path",
        "/",
    ]);
    assert_eq!(gone.error(), "version_not_found");

    home.run(&["run", "shop", "list-orders", "--agent", "laptop"]);
    let replay = |rest: &[&str]| home.run(&[&["audit", "replay", "shop"][..], rest].concat()).ok();
    let same = replay(&[]);
    assert_eq!((&same["judged"], &same["flips"]), (&json!(1), &json!([])), "{same}");
    let flips = replay(&["--raise", "GET /orders=write"]);
    let flip = &flips["flips"][0];
    assert_eq!(
        (&flip["then"], &flip["now"], &flip["tool"]),
        (&json!("forward"), &json!("ask"), &json!("shop__list-orders")),
        "{flips}"
    );
    // Nothing was changed by looking.
    assert_eq!(home.run(&["connections", "show", "shop"]).ok()["generation"], 1);
}
