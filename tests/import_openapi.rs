//! `cambium import openapi`, through the binary: the report, the pin, a call of
//! what was imported, and the whole of GitHub's document in a few seconds.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code)]
mod vendor;

use serde_json::json;
use std::path::PathBuf;
use support::{Home, connect_shop};

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: "Shop\u202e", version: "1" }
servers: [{ url: "https://shop.example/v2/" }]
paths:
  /orders:
    get:
      operationId: listOrders
      summary: Lists the orders
      tags: [orders]
    post:
      operationId: createOrder
      summary: Places an order
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [item]
              properties: { item: { type: string }, quantity: { type: integer } }
  /orders/{id}/photo:
    put:
      operationId: setPhoto
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      requestBody: { required: true, content: { image/png: {} } }
"#;

fn documents() -> PathBuf {
    let clients = support::clients();
    clients.parent().unwrap().join("data")
}

#[test]
fn a_document_becomes_tools_that_are_called_and_what_cannot_is_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(vendor::Vendor::open("shop-token")).unwrap();
    let home = Home::new();
    let _server = home.set_up();
    connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    home.run(&["agents", "create", "laptop"]).ok();
    let file = home.write("shop.yaml", DOCUMENT);
    let file = file.to_str().unwrap();
    let import = ["import", "openapi", file, "--connection", "shop", "--agent", "laptop"];

    let done = home.run(&import).ok();
    assert_eq!((&done["title"], &done["serversPath"]), (&json!("Shop"), &json!("/v2")));
    let tools = done["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    assert_eq!(tools[0]["tool"], "shop__list-orders");
    assert_eq!(
        (&tools[0]["readOnlyHint"], &tools[1]["readOnlyHint"]),
        (&json!(true), &json!(false))
    );
    assert!(tools[2]["refused"].as_str().unwrap().contains("image/png"), "{}", tools[2]);
    let again = home.run(&import).ok();
    assert_eq!(again["tools"][0]["unchanged"], true);
    assert_eq!(again["digest"], done["digest"]);

    let set = home.run(&["agents", "show", "laptop"]).ok();
    assert_eq!(set["workingSet"].as_array().unwrap().len(), 2);
    let ran = home.run(&["run", "shop", "list-orders", "--agent", "laptop"]).ok();
    assert_eq!(ran["vendor"]["status"], 200, "{ran}");
    let source = home.run(&["tools", "source", "shop", "create-order"]).ok();
    let source = source["source"].as_str().unwrap();
    assert!(
        source.contains("Vendor: Places an order") && source.contains("input.item"),
        "{source}"
    );

    // What is wrong is said before anything is published or pinned.
    let refused = |text: &str, more: &[&str]| {
        let file = home.write("bad.json", text);
        let mut command = vec!["import", "openapi", file.to_str().unwrap(), "--connection", "shop"];
        command.extend(more);
        home.run(&command).error()
    };
    assert_eq!(refused("{\"openapi\": \"2.0\"}", &[]), "document_refused");
    assert_eq!(refused("a: &x 1", &[]), "document_refused");
    assert_eq!(refused(DOCUMENT, &["--operations", "nothing"]), "document_refused");
    assert_eq!(refused(&" ".repeat(5 * 1024 * 1024 + 1), &[]), "file_unreadable");
    assert_eq!(refused(DOCUMENT, &["--code", "000000"]), "person_required");
    assert_eq!(home.run(&["tools", "list"]).ok().as_array().unwrap().len(), 2);
    home.run(&["audit", "verify"]).ok();
}

#[test]
fn githubs_whole_document_is_published_in_one_go() {
    let home = Home::new();
    let _server = home.set_up();
    home.run_with(&["connections", "add", "github", "--host", "api.github.com"], "github-token")
        .ok();
    let file = documents().join("github.json");
    let import = ["import", "openapi", file.to_str().unwrap(), "--connection", "github"];
    assert_eq!(
        home.run(&import).error(),
        "file_unreadable",
        "more than 5 MB is asked for by a flag"
    );
    let done = home.run(&[&import[..], &["--large"]].concat()).ok();
    let tools = done["tools"].as_array().unwrap();
    let refused = tools.iter().filter(|tool| !tool["refused"].is_null()).count();
    assert_eq!((tools.len(), refused), (1_223, 1));
    for tool in tools.iter().filter(|tool| tool["refused"].is_null()) {
        let method = tool["operation"].as_str().unwrap().split(' ').next().unwrap();
        assert_eq!(tool["readOnlyHint"], method == "GET", "{tool}");
        assert_eq!(tool["destructiveHint"], method == "DELETE", "{tool}");
    }
    assert_eq!(home.run(&["tools", "list"]).ok().as_array().unwrap().len(), 1_222);
}
