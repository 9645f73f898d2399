//! A canary for a credential: a vendor's token that goes through everything the
//! product does, with a vendor that echoes it, and is then looked for in all that
//! was said and in every file that was left.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use base64::Engine as _;
use std::path::Path;
use support::{Ended, Home};
use vendor::Vendor;

/// The token `connect_shop` hands over.
const CANARY: &str = "shop-token";
const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");

/// The forms a secret travels in.
fn forms() -> Vec<Vec<u8>> {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD;
    vec![
        CANARY.into(),
        hex.clone().into(),
        hex.to_uppercase().into(),
        base64.encode(CANARY).into(),
        base64.encode(format!("Bearer {CANARY}")).into(),
        CANARY.chars().rev().collect::<String>().into(),
        CANARY.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    ]
}

fn clean(place: &str, bytes: &[u8]) {
    for form in forms() {
        let found = bytes.windows(form.len()).any(|window| window == form);
        assert!(!found, "{place} holds the credential as {}", String::from_utf8_lossy(&form));
    }
}

fn said(what: &str, ended: &Ended) {
    clean(what, ended.stdout.as_bytes());
    clean(what, ended.stderr.as_bytes());
}

fn files(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.metadata() {
            Ok(found) if found.is_dir() => files(&path),
            Ok(found) if found.is_file() => {
                clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
            }
            // the socket, and what went away meanwhile
            _ => {}
        }
    }
}

#[test]
fn b094_a_canary_secret_is_in_no_output_log_or_file() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(Vendor::open(CANARY)).unwrap();
    let home = Home::new();
    home.write("config.toml", "wait_budget_seconds = 1\n[log]\nfilter = \"trace\"\n");
    let server = home.set_up();
    support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    let token = home.run(&["agents", "create", "one"]).ok()["token"].as_str().unwrap().to_owned();
    for (name, module) in [("list-orders", READ), ("create-order", WRITE)] {
        let file = home.write(&format!("{name}.ts"), module);
        let file = file.to_str().unwrap();
        let publish = ["publish", file, "--vendor", "shop", "--name", name, "--agent", "one"];
        said("publish", &home.run(&publish));
    }
    let order = r#"{"item": "oak chair", "quantity": 1}"#;
    said("a read", &home.run_as(&token, &["run", "shop", "list-orders"]));
    let write = ["run", "shop", "create-order", "--input", order];
    said("a dry run", &home.run_as(&token, &[&write[..], &["--dry-run"]].concat()));
    said("a write that waits", &home.run_as(&token, &write));
    let asks = home.run(&["approvals", "list", "--open"]);
    said("the ask", &asks);
    let ask = asks.ok()[0]["id"].as_str().unwrap().to_owned();
    said("its card", &home.run(&["approvals", "show", &ask]));
    said("the answer", &home.run(&["approvals", "allow", &ask, "--once"]));
    // the shop answers with the credential it was sent
    let sent = home.run_as(&token, &write);
    said("a write", &sent);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    for command in [
        &["connections", "list"][..],
        &["tools", "list"],
        &["tools", "stats"],
        &["sweep", "--plan"],
        &["audit", "list"],
        &["agents", "show", "one"],
        &["run", "shop", "list-orders", "--agent", "one", "--input", "{\"limit\": 9000}"],
    ] {
        said(&command.join(" "), &home.run(command));
    }
    let posts = vendor.received().into_iter().filter(|request| request.method == "POST");
    let with = posts.filter(|r| r.authorization.as_deref() == Some("Bearer shop-token")).count();
    assert_eq!(with, 1, "the credential went where it belongs");
    // while the server lives, with its write-ahead log, and once it is gone
    files(home.path());
    assert_eq!(server.stop(), 0);
    files(home.path());
    runtime.block_on(vendor.close());
}

/// A module that has its vendor's credential in clear, as one could that decodes
/// an echo in a way nobody foresaw.
const KNOWS: &str = r#"
export const description = "Lists the orders of the shop, and says more than it should.";
export const inputSchema = {
  type: "object",
  properties: { how: { type: "string" } },
  required: ["how"],
  additionalProperties: false,
} as const;
export const exampleInput = { how: "value" };

export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch("/orders?limit=1");
  await res.text();
  const token = ["shop", "token"].join("-");
  const hex = [...token].map((c) => c.charCodeAt(0).toString(16)).join("");
  const escaped = token.replace("-", "\\u002d");
  console.log(`it is ${token}, or ${btoa(token)}`);
  switch (input.how) {
    case "thrown":
      throw new Error(`it is ${token}, ${hex}`);
    case "passed on":
      return new Response(`it is ${token}`, { headers: { "content-type": "text/plain" } });
    case "image":
      return new Response(`it is ${token}`, { headers: { "content-type": "image/png" } });
    case "long":
      return `${"x".repeat(63_995)}${token}${"y".repeat(400_000)}${token}`;
    case "posted":
      return ctx.fetch("/orders", { method: "POST", body: token });
    default:
      return {
        token,
        [token]: [btoa(token), btoa(`x${token}`), btoa(`xy${token}`), hex],
        percent: token.replace("-", "%2d"),
        twice: JSON.stringify(JSON.stringify({ escaped })),
      };
  }
}
"#;

#[test]
fn h03_what_a_module_puts_together_itself_does_not_leave_its_run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(Vendor::open(CANARY)).unwrap();
    let home = Home::new();
    let server = home.set_up();
    support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    let token = home.run(&["agents", "create", "one"]).ok()["token"].as_str().unwrap().to_owned();
    let file = home.write("knows.ts", KNOWS);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "knows"];
    home.run(&[&publish[..], &["--agent", "one"]].concat()).ok();
    for how in ["value", "thrown", "passed on", "image", "long", "posted"] {
        let input = format!("{{\"how\": \"{how}\"}}");
        let ended = home.run_as(&token, &["run", "shop", "knows", "--input", &input, "--dry-run"]);
        said(how, &ended);
        let told = ended.stdout.contains("[REDACTED:shop]") || how == "image" || how == "long";
        assert!(told, "{how}: {} {}", ended.stdout, ended.stderr);
        for spelled in ["shop%2d", "shop\\u002d", "shop\\\\u002d", "c2hvcC10b2tl"] {
            assert!(!ended.stdout.contains(spelled), "{how}: {spelled}: {}", ended.stdout);
        }
    }
    files(home.path());
    assert_eq!(server.stop(), 0);
    files(home.path());
    runtime.block_on(vendor.close());
}

#[test]
fn d13_a_locked_vault_stays_locked_through_a_restart() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(Vendor::open(CANARY)).unwrap();
    let home = Home::new();
    let server = home.set_up();
    support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    home.run(&["agents", "create", "one"]).ok();
    let file = home.write("read.ts", READ);
    home.run(&["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "list-orders"])
        .ok();
    let call = || home.run(&["run", "shop", "list-orders", "--agent", "one"]);
    call().ok();
    let mut unproven = home.command(&["vault", "lock"]);
    let unproven = support::ended(unproven.env_remove("CAMBIUM_PASSPHRASE_FILE").output().unwrap());
    assert_ne!(unproven.code, 0);
    call().ok();
    home.run(&["vault", "lock"]).ok();
    assert_eq!(call().error(), "vault_locked");
    assert_eq!(server.stop(), 0);
    let server = home.serve();
    assert_eq!(call().error(), "vault_locked");
    assert_eq!(vendor.received().len(), 2, "what was locked went nowhere");
    home.run(&["vault", "unlock"]).ok();
    call().ok();
    assert_eq!(server.stop(), 0);
    runtime.block_on(vendor.close());
}
