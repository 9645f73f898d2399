//! The console in a real Chromium: each page wide, dark, as a phone and without
//! scripts, what a person does there, no word of axe-core's and none of the
//! Content-Security-Policy's. `scripts/browser` makes ready what this needs;
//! without it this fails and says so. `CAMBIUM_ARTEFACTS` keeps the screenshots.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use support::{Home, PASSPHRASE, cache, call_tool, clients};
use vendor::Vendor;

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");

fn chromium() -> PathBuf {
    if let Some(named) = std::env::var_os("CAMBIUM_CHROMIUM").filter(|name| !name.is_empty()) {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found =
        std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    found.find(|file| file.exists()).unwrap_or_else(|| {
        panic!("no Chromium is on the PATH; run scripts/browser, which says how to get one")
    })
}

#[test]
fn b088_b089_b090_b091_the_pages_hold_in_a_real_browser_with_and_without_scripts() {
    let (packages, node) = (cache().join("browser"), clients().join("node"));
    let at = packages.display();
    assert!(
        packages.join("ready").exists(),
        "nothing drives a browser in {at}; run scripts/browser"
    );
    let chromium = chromium();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(Vendor::open("shop-token")).unwrap();
    let home = Home::new();
    home.write("config.toml", "wait_budget_seconds = 1\n");
    let server = home.set_up();
    support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    let made = home.run(&["agents", "create", "laptop"]).ok();
    let token = made["token"].as_str().unwrap().to_owned();
    let changed = format!("{READ}\n// changed \u{202e} since\n");
    for (name, module) in
        [("list-orders", READ), ("create-order", WRITE), ("list-orders", &changed)]
    {
        let file = home.write(&format!("{name}.ts"), module);
        let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", name];
        home.run(&[&publish[..], &["--agent", "laptop"]].concat()).ok();
    }
    home.run_as(&token, &["run", "shop", "list-orders"]).ok();
    let order = r#"{"item": "oak <chair>", "quantity": 1}"#;
    let held = home.run_as(&token, &["run", "shop", "create-order", "--input", order]);
    assert_eq!(held.code, 6, "{}", held.stderr);
    let wanted = json!({
        "vendor": "bank", "primaryHost": "api.bank.example", "scheme": "bearer",
        "hosts": ["files.elsewhere.example"], "displayName": "The bank",
    });
    let asked = call_tool(&home, &token, "request_connection", &wanted);
    let link = asked["ask"]["link"].as_str().unwrap_or_else(|| panic!("{asked}"));

    home.run(&["agents", "set", "laptop", "--low-level", "all"]).ok();
    let page = json!({ "url": "https://docs.bank.example/api" });
    let asked = call_tool(&home, &token, "read_web_page", &page);
    let permission = asked["ask"]["link"].as_str().unwrap_or_else(|| panic!("{asked}"));

    let shots = std::env::var_os("CAMBIUM_ARTEFACTS").filter(|name| !name.is_empty());
    let shots = shots
        .map_or_else(|| home.path().join("screenshots"), |to| PathBuf::from(to).join("console"));
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pages.mjs");
    // As an agent calls while a page is open.
    let call = home.command(&["run", "shop"]);
    let words: Vec<_> = call.get_args().map(|word| word.to_str().unwrap()).collect();
    let done = Command::new(node)
        .arg(script)
        .env("CAMBIUM", call.get_program())
        .env("CALL", serde_json::to_string(&words).unwrap())
        .env("TOKEN", &token)
        .env("URL", &server.url)
        .env("PASSPHRASE", PASSPHRASE)
        .env("CHROMIUM", chromium)
        .env("SHOTS", &shots)
        .env("HOME_OF_PACKAGES", packages)
        .env("HANDOFF", link.strip_prefix(&server.url).unwrap())
        .env("PERMISSION", permission.strip_prefix(&server.url).unwrap())
        .env("AGENT", made["agent"]["id"].as_str().unwrap())
        .output()
        .unwrap();
    let (said, faults) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{faults}\n{}", home.log());
    assert!(std::fs::read_dir(&shots).unwrap().count() > 40, "screenshots are kept");
}
