//! A tool that is a WebAssembly component, through the real server: published with
//! its manifest by a person, held to it by the proxy, asked for like any write.
//! `scripts/component --test` makes what this needs.
#![allow(clippy::unwrap_used)]

mod support;

use cambium_sandbox_tests::vendor::{Script, Vendor, answer};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use support::{Home, cache, connect_shop};

fn built(name: &str) -> PathBuf {
    let path = cache().join("component").join(name);
    assert!(path.is_file(), "{} is missing: run scripts/component --test", path.display());
    path
}

#[test]
fn a_component_is_published_held_to_its_claim_and_asked_for() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let script: Script = Arc::new(|heard| {
        let said = json!({ "line": heard.line() }).to_string();
        answer("200 OK", "content-type: application/json\r\n", said.as_bytes())
    });
    let vendor = runtime.block_on(Vendor::start(&["localhost"], script));
    let home = Home::new();
    let config =
        format!("wait_budget_seconds = 1\ncomponents = {:?}\n", built("cambium-component"));
    home.write("config.toml", &config);
    let _server = home.set_up();
    connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    let agent = home.run(&["agents", "create", "laptop"]).ok();
    let agent = agent["token"].as_str().unwrap();
    let orders = built("orders.wasm");
    let orders = orders.to_str().unwrap();
    let publish = |name: &str, manifest: &serde_json::Value, file: &str| {
        let manifest = home.write("manifest.json", &manifest.to_string());
        let manifest = manifest.to_str().unwrap();
        home.run(&["publish", file, "--manifest", manifest, "--vendor", "shop", "--name", name])
    };
    let base = format!("https://localhost:{}", vendor.address.port());
    let text = json!({ "type": "string" });
    let schema = json!({ "type": "object", "properties": { "base": text, "item": text } });
    let reads = json!({ "description": "Lists orders.", "inputSchema": schema,
        "outputSchema": { "type": "object" }, "methods": ["GET"], "paths": ["/orders"] });
    let published = publish("list", &reads, orders).ok();
    assert_eq!(published["readOnlyHint"], true, "{published}");
    let lists = json!({ "base": base }).to_string();
    let listed = home.run_as(agent, &["run", "shop", "list", "--input", &lists]).ok();
    assert_eq!(listed["result"]["said"]["line"], "GET /orders HTTP/1.1", "{listed}");
    let orders_one = json!({ "base": base, "item": "lamp" }).to_string();
    let input = orders_one.as_str();
    let exceeds = home.run_as(agent, &["run", "shop", "list", "--input", input]);
    assert_ne!(exceeds.code, 0, "{}", exceeds.stdout);
    assert_eq!(vendor.heard().len(), 1, "a claim to read is held to");

    let any = json!({ "description": "Lists or makes orders.", "inputSchema": schema });
    let published = publish("orders", &any, orders).ok();
    assert_eq!(published["readOnlyHint"], false);
    let shown = home.run_as(agent, &["run", "shop", "orders", "--dry-run", "--input", input]);
    assert!(shown.stdout.contains("lamp"), "{}{}", shown.stdout, shown.stderr);
    assert_eq!(vendor.heard().len(), 1, "a dry run shows a write");
    let elsewhere = r#"{"base":"https://evil.test"}"#;
    let elsewhere = home.run_as(agent, &["run", "shop", "orders", "--input", elsewhere]);
    assert_ne!(elsewhere.code, 0, "{}", elsewhere.stdout);
    assert_eq!(vendor.heard().len(), 1);
    let asked = home.run_as(agent, &["run", "shop", "orders", "--input", input]);
    assert_eq!(asked.code, 6, "{}{}", asked.stdout, asked.stderr);
    assert_eq!(vendor.heard().len(), 1);
    let asks = home.run(&["approvals", "list", "--open"]).ok();
    home.run(&["approvals", "allow", asks[0]["id"].as_str().unwrap(), "--once"]).ok();
    let made = home.run_as(agent, &["run", "shop", "orders", "--input", input]).ok();
    assert_eq!(made["result"]["status"], 200, "{made}");
    assert_eq!(vendor.heard().last().unwrap().body, br#"{"item":"lamp"}"#);

    let out = home.path().join("exported");
    let exported = home.run(&["export", out.to_str().unwrap()]).ok();
    assert_eq!(exported["notExported"], json!(["shop__list", "shop__orders"]), "{exported}");
    let again = home.run(&["audit", "verify"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("cambium-component"), "{}{}", doctor.stdout, doctor.stderr);
    let text = home.write("none.wasm", "not a component");
    let large = home.write("large.wasm", "");
    std::fs::File::options().write(true).open(&large).unwrap().set_len(25 << 20).unwrap();
    let hosts = json!({ "description": "x", "inputSchema": schema, "hosts": ["other"] });
    for (manifest, file, code) in [
        (&any, text.to_str().unwrap(), "component_refused"),
        (&any, large.to_str().unwrap(), "file_unreadable"),
        (&hosts, orders, "argument_invalid"),
        (&any, "/nowhere.wasm", "file_unreadable"),
        (&json!({ "description": "x" }), orders, "argument_invalid"),
        (
            &json!({ "description": "x", "inputSchema": schema, "hints": 1 }),
            orders,
            "argument_invalid",
        ),
    ] {
        let refused = publish("other", manifest, file);
        assert_eq!(refused.error(), code, "{}", refused.stderr);
    }
}

#[test]
fn a_server_without_the_binary_says_what_is_missing() {
    let home = Home::new();
    let missing = home.write("config.toml", "components = \"nowhere/cambium-component\"\n");
    let refused = home.run(&["doctor"]);
    assert!(refused.stderr.contains("nowhere"), "{}{}", refused.stdout, refused.stderr);
    assert_eq!(refused.error(), "config_invalid", "{}", refused.stderr);
    std::fs::write(missing, "").unwrap();
    let _server = home.set_up();
    home.run_with(&["connections", "add", "shop", "--host", "api.shop.test"], "token").ok();
    let manifest = json!({ "description": "x", "inputSchema": { "type": "object" } });
    let manifest = home.write("manifest.json", &manifest.to_string());
    let orders = home.write("orders.wasm", "(component)");
    let arguments = ["publish", orders.to_str().unwrap(), "--manifest", manifest.to_str().unwrap()];
    let refused = home.run(&[&arguments[..], &["--vendor", "shop", "--name", "list"]].concat());
    assert_eq!(refused.error(), "components_unavailable", "{}", refused.stderr);
    assert!(refused.stderr.contains("./dev components"), "{}", refused.stderr);
}
