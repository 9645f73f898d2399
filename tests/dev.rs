//! `cambium dev` as a person uses it: a child process that looks at the file, a
//! real server and vendor behind it, and the file saved again and again.
#![allow(clippy::unwrap_used)]

mod support;

use cambium_sandbox_tests::vendor::{Script, Vendor, answer};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use support::{Home, Server, connect_shop};
use tokio::runtime::Runtime;

struct Shop {
    home: Home,
    vendor: Vendor,
    agent: String,
    _server: Server,
    _runtime: Runtime,
}

impl Shop {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let script: Script = Arc::new(|request| {
            if request.line().starts_with("GET /missing/") {
                return answer("404 Not Found", "", b"");
            }
            let thing = json!({ "id": "1", "name": "lamp" }).to_string();
            answer("200 OK", "content-type: application/json\r\n", thing.as_bytes())
        });
        let vendor = runtime.block_on(Vendor::start(&["localhost"], script));
        let home = Home::new();
        let server = home.set_up();
        connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
        let agent = home.run(&["agents", "create", "laptop"]).ok();
        let agent = agent["token"].as_str().unwrap().to_owned();
        Self { home, vendor, agent, _server: server, _runtime: runtime }
    }

    fn made(&self, arguments: &[&str]) -> PathBuf {
        let path = self.home.path().to_str().unwrap();
        let made = self.home.run(&[&["init-tool", "shop"], arguments, &["--path", path]].concat());
        made.ok()["module"].as_str().unwrap().into()
    }

    fn once(&self, module: &Path) -> support::Ended {
        let module = module.to_str().unwrap();
        self.home.run_as(&self.agent, &["dev", module, "--vendor", "shop", "--once"])
    }
}

/// A `cambium dev` that runs; killed when dropped.
struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Dev {
    fn start(shop: &Shop, module: &Path) -> Self {
        let mut command = shop.home.command(&["dev", module.to_str().unwrap(), "--vendor", "shop"]);
        command.env("CAMBIUM_TOKEN", &shop.agent);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn round(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A save as an editor does it: whole, and seen as one.
fn save(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn each_save_is_checked_and_dry_run() {
    let shop = Shop::open();
    let module = shop.made(&["get-thing"]);
    let source = std::fs::read_to_string(&module).unwrap();
    let mut dev = Dev::start(&shop, &module);
    let first = dev.round();
    assert_eq!((&first["ok"], &first["dryRun"]["status"]), (&json!(true), &json!("dry_run")));
    assert_eq!(first["dryRun"]["result"], json!({ "id": "1", "name": "lamp" }), "{first}");
    save(&module, &source.replace("const res", "enum Kind { A }\nconst res"));
    let broken = dev.round();
    assert_eq!((&broken["ok"], &broken["dryRun"]), (&json!(false), &Value::Null), "{broken}");
    save(&module, &source.replace("id, name };", "id };"));
    assert_eq!(dev.round()["dryRun"]["result"], json!({ "id": "1" }));
    save(&module, &source.replace("(`/things/", "(`/others/"));
    dev.round();
    assert_eq!(shop.vendor.heard().last().unwrap().line(), "GET /others/1 HTTP/1.1");
    std::fs::remove_file(&module).unwrap();
    assert_eq!(dev.round()["error"]["code"], "file_unreadable");
    save(&module, &source);
    assert_eq!(dev.round()["ok"], true, "and is there again");
    let test = module.with_extension("test.json");
    save(&test, r#"{"input": {"id": 7}, "expect": {}}"#);
    assert_eq!(dev.round()["dryRun"]["code"], "input_invalid");
    assert_eq!(shop.home.run(&["tools", "list"]).ok(), json!([]), "nothing is published");
}

#[test]
fn without_a_test_it_says_what_was_asked_and_answered_and_how_to_write_one() {
    let shop = Shop::open();
    let told = |module: &Path| {
        let module = module.to_str().unwrap();
        let mut dev = shop.home.plain(&["dev", module, "--vendor", "shop", "--once"]);
        support::ended(dev.env("CAMBIUM_TOKEN", &shop.agent).output().unwrap())
    };
    let module = shop.made(&["get-thing"]);
    let source = std::fs::read_to_string(&module).unwrap();
    let test = module.with_extension("test.json");
    assert!(told(&module).stdout.contains("test: as expected"));
    std::fs::remove_file(&test).unwrap();
    let alone = told(&module);
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    assert!(alone.stdout.contains(" was answered 200"), "{}", alone.stdout);
    assert!(alone.stdout.contains("GET /things/"), "{}", alone.stdout);
    assert!(!alone.stdout.contains("as expected"), "{}", alone.stdout);
    assert!(alone.stdout.contains(test.to_str().unwrap()), "{}", alone.stdout);

    save(&module, &source.replace("(`/things/", "(`/missing/"));
    let missing = told(&module);
    assert!(missing.stdout.contains("GET /missing/"), "{}", missing.stdout);
    assert!(missing.stdout.contains(" was answered 404"), "{}", missing.stdout);

    save(
        &module,
        &source.replace("const res", "if (input.id) throw new Error(\"no thing\");\n  const res"),
    );
    let threw = told(&module);
    assert_eq!((threw.code, threw.error().as_str()), (1, "tool_error"), "{}", threw.stdout);
    assert!(threw.stderr.contains("no thing"), "{}", threw.stderr);
    assert!(!threw.stderr.contains("what its test expects"), "{}", threw.stderr);
}

#[test]
fn a_new_tools_test_holds_and_one_that_does_not_says_where() {
    let shop = Shop::open();
    for arguments in [&["get-thing"][..], &["make-thing", "--write"]] {
        let module = shop.made(arguments);
        let once = shop.once(&module);
        assert_eq!(once.code, 0, "{}{}", once.stdout, once.stderr);
    }
    assert!(shop.vendor.heard().iter().all(|heard| heard.line().starts_with("GET ")));
    let module = shop.made(&["get-other"]);
    let test = module.with_extension("test.json");
    save(&test, r#"{"input": {"id": "1"}, "expect": {"result": {"name": "sofa"}}}"#);
    let failed = shop.once(&module);
    assert_eq!((failed.code, failed.error().as_str()), (1, "test_failed"));
    assert!(failed.stderr.contains("answer.result.name"), "{}", failed.stderr);
    save(&test, r#"{"input": {"id": 7}, "expect": {"status": "dry_run"}}"#);
    let unfit = shop.once(&module);
    assert_eq!((unfit.code, unfit.error().as_str()), (1, "test_failed"));
    for said in ["input_invalid", "does not fit the schema", "/id"] {
        assert!(unfit.stderr.contains(said), "{said}: {}", unfit.stderr);
    }
    save(&test, "{}");
    assert_eq!(shop.once(&module).error(), "file_unreadable");
    let mut alone = shop.home.plain(&["dev", module.to_str().unwrap(), "--once"]);
    let checked = support::ended(alone.env_remove("CAMBIUM_TOKEN").output().unwrap());
    assert_eq!(checked.code, 0, "without a vendor it only checks: {}", checked.stderr);
    assert!(checked.stdout.contains("not dry-run: with --vendor"), "{}", checked.stdout);
    let unnamed = shop.home.run(&["dev", module.to_str().unwrap(), "--vendor", "shop", "--once"]);
    assert_eq!((unnamed.code, unnamed.error().as_str()), (5, "token_missing"));
}
