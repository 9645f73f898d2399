//! SDKs in tools: the real `@octokit/core`, `@notionhq/client` and `stripe` that
//! `scripts/sdks` installs, bundled in the jail, listed by a person, imported by
//! a tool, against vendors that keep what arrives. Without them these tests fail.
#![allow(clippy::unwrap_used)]

mod support;

use cambium_sandbox_tests::vendor::{Heard, Script, Vendor, answer};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use support::{Home, Server, cache, ended};
use tokio::runtime::Runtime;

const SECRET: &str = "the-vendor-secret-4711";
const PLACEHOLDER: &str = "cambium-proxy-key";

/// Where `scripts/sdks` puts them.
fn sdks() -> PathBuf {
    let folder = cache().join("sdks");
    assert!(folder.join("ready").exists(), "{} is missing: run scripts/sdks", folder.display());
    folder
}

/// A vendor, its connection, and an agent.
struct Shop {
    home: Home,
    vendor: Vendor,
    agent: String,
    _server: Server,
    _runtime: Runtime,
}

impl Shop {
    fn open(slug: &str, answers: fn(&Heard) -> Value) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let script: Script = Arc::new(move |heard: &Heard| {
            let body = answers(heard).to_string();
            answer("200 OK", "content-type: application/json\r\n", body.as_bytes())
        });
        let vendor = runtime.block_on(Vendor::start(&["localhost"], script));
        let home = Home::new();
        home.write("config.toml", "wait_budget_seconds = 1\n");
        let server = home.set_up();
        let ca = home.write("ca.pem", &vendor.ca_pem);
        let port = vendor.address.port();
        let (host, range) = (format!("localhost:{port}"), format!("127.0.0.1/32:{port}"));
        let six = format!("::1/128:{port}");
        let ca = ca.to_str().unwrap();
        let add =
            ["connections", "add", slug, "--host", &host, "--ca", ca, "--allow-private", &range];
        home.run_with(&[&add[..], &["--allow-private", &six]].concat(), SECRET).ok();
        let agent = home.run(&["agents", "create", "laptop"]).ok();
        let agent = agent["token"].as_str().unwrap().to_owned();
        Self { home, vendor, agent, _server: server, _runtime: runtime }
    }

    fn list(&self, slug: &str, package: &str) -> Value {
        let from = sdks();
        let from = from.to_str().unwrap();
        self.home.run(&["connections", "sdk", "add", slug, package, "--from", from]).ok()
    }

    fn publish(&self, vendor: &str, name: &str, source: &str) -> support::Ended {
        let file = self.home.write(&format!("{name}.ts"), source);
        let file = file.to_str().unwrap();
        self.home.run(&["publish", file, "--vendor", vendor, "--name", name])
    }

    fn call(&self, words: &[&str]) -> support::Ended {
        self.home.run_as(&self.agent, &[&["run"], words].concat())
    }

    /// A write: asked for, allowed once, called again.
    fn call_allowed(&self, words: &[&str]) -> Value {
        let before = self.vendor.heard().len();
        let asked = self.call(words);
        assert_eq!(asked.code, 6, "{}{}", asked.stdout, asked.stderr);
        assert_eq!(self.vendor.heard().len(), before, "nothing goes before a person said so");
        let asks = self.home.run(&["approvals", "list", "--open"]).ok();
        let ask = asks[0]["id"].as_str().unwrap();
        let card = self.home.plain(&["approvals", "show", ask]).output().unwrap();
        let card = String::from_utf8(card.stdout).unwrap();
        assert!(card.contains("--once, or cambium approvals deny"), "{card}");
        assert!(!card.contains("--from-now-on"), "{card}");
        let standing = self.home.run(&["approvals", "allow", ask, "--from-now-on"]);
        assert_eq!(standing.error(), "argument_invalid", "{}", standing.stderr);
        self.home.run(&["approvals", "allow", ask, "--once"]).ok();
        self.call(words).ok()
    }
}

fn tool(imports: &str, properties: &str, body: &str) -> String {
    format!(
        "{imports}\nexport const description = \"Calls the vendor through its SDK.\";\n\
         export const inputSchema = {{ type: \"object\", properties: {{ {properties} }}, \
         additionalProperties: false }} as const;\n\
         export default async function (ctx: Context, input: Input) {{\n{body}\n}}\n"
    )
}

/// One credential, the proxy's, and nothing of the placeholder.
fn bears_the_secret(heard: &Heard) {
    assert_eq!(heard.header("authorization"), [format!("Bearer {SECRET}")], "{}", heard.head);
    let text = format!("{}{}", heard.head, String::from_utf8_lossy(&heard.body));
    assert!(!text.contains(PLACEHOLDER), "{text}");
    assert_eq!(heard.header("user-agent").len(), 1);
    assert!(heard.header("user-agent")[0].starts_with("cambium/"), "{}", heard.head);
}

#[test]
fn b049_octokit_reads_and_writes_through_the_proxy_only() {
    let shop = Shop::open("github", |heard| match heard.line() {
        line if line.starts_with("GET /repos/") => json!([{ "number": 7, "title": "A fault" }]),
        line if line.starts_with("POST /repos/") => json!({ "number": 8 }),
        _ => json!({}),
    });
    let list = tool(
        "import { Octokit } from \"@octokit/core\";",
        "",
        "const octokit = new Octokit({ baseUrl: ctx.proxyBase, auth: ctx.proxyKey });\n\
         const res = await octokit.request(\"GET /repos/{owner}/{repo}/issues\", \
         { owner: \"acme\", repo: \"shop\", per_page: 5 });\n\
         return res.data.map((issue) => issue.title);",
    );
    let refused = shop.publish("github", "list-issues", &list);
    assert_eq!(refused.error(), "check_failed");
    assert!(refused.stderr.contains("import_refused"), "{}", refused.stderr);

    let listed = shop.list("github", "@octokit/core@7.0.8");
    assert_eq!(listed["generation"], 2);
    assert_eq!(listed["sdks"][0]["version"], "7.0.8");
    let published = shop.publish("github", "list-issues", &list).ok();
    assert_eq!(published["readOnlyHint"], false, "every SDK call counts as a write");
    let read = shop.call(&["github", "list-issues"]).ok();
    assert_eq!(read["result"], json!(["A fault"]), "a read goes unasked: {read}");
    let heard = shop.vendor.heard();
    assert_eq!(heard[0].line(), "GET /repos/acme/shop/issues?per_page=5 HTTP/1.1");
    assert!(heard[0].header("accept")[0].contains("application/vnd.github"), "{}", heard[0].head);
    bears_the_secret(&heard[0]);

    let open = tool(
        "import { Octokit } from \"@octokit/core\";",
        "title: { type: \"string\" }",
        "const octokit = new Octokit({ baseUrl: ctx.proxyBase, auth: ctx.proxyKey });\n\
         const res = await octokit.request(\"POST /repos/{owner}/{repo}/issues\", \
         { owner: \"acme\", repo: \"shop\", title: input.title });\n\
         return res.data.number;",
    );
    shop.publish("github", "open-issue", &open).ok();
    let input = r#"{"title":"Broken"}"#;
    let dry = shop.call(&["github", "open-issue", "--input", input, "--dry-run"]).ok();
    assert_eq!(dry["preview"][0]["request"]["method"], "POST", "{dry}");
    let made = shop.call_allowed(&["github", "open-issue", "--input", input]);
    assert_eq!(made["result"], 8);
    let heard = shop.vendor.heard();
    let post = heard.last().unwrap();
    assert_eq!(post.line(), "POST /repos/acme/shop/issues HTTP/1.1");
    assert_eq!(post.body, br#"{"title":"Broken"}"#);
    bears_the_secret(post);

    let delete = tool(
        "import { Octokit } from \"@octokit/core\";",
        "",
        "const octokit = new Octokit({ baseUrl: ctx.proxyBase });\n\
         return (await octokit.request(\"DELETE /repos/{owner}/{repo}\", \
         { owner: \"acme\", repo: \"shop\" })).status;",
    );
    shop.publish("github", "delete-repo", &delete).ok();
    let count = shop.vendor.heard().len();
    let stopped = shop.call(&["github", "delete-repo"]);
    assert_ne!(stopped.code, 0, "{}", stopped.stdout);
    assert!(format!("{}{}", stopped.stdout, stopped.stderr).contains("DELETE"));
    assert_eq!(shop.vendor.heard().len(), count, "an SDK never deletes");
}

#[test]
fn b049_notion_is_sent_its_version_and_the_proxys_credential() {
    let shop = Shop::open("notion", |heard| match heard.line() {
        line if line.starts_with("POST /v1/pages") => json!({ "object": "page", "id": "p1" }),
        _ => json!({ "object": "user", "id": "u1", "name": "Ada" }),
    });
    shop.list("notion", "@notionhq/client@5.26.0");
    let head = "import { Client } from \"@notionhq/client\";";
    let made = "const notion = new Client({ auth: ctx.proxyKey, baseUrl: ctx.proxyBase, fetch });";
    let read = tool(
        head,
        "",
        &format!("{made}\nreturn (await notion.users.retrieve({{ user_id: \"u1\" }})).name;"),
    );
    shop.publish("notion", "get-user", &read).ok();
    assert_eq!(shop.call(&["notion", "get-user"]).ok()["result"], "Ada");
    let write = tool(
        head,
        "",
        &format!(
            "{made}\nconst page = await notion.pages.create({{ parent: {{ page_id: \"r\" }}, \
             properties: {{}} }});\nreturn page.id;"
        ),
    );
    shop.publish("notion", "add-page", &write).ok();
    assert_eq!(shop.call_allowed(&["notion", "add-page"])["result"], "p1");
    let heard = shop.vendor.heard();
    assert_eq!(heard[0].line(), "GET /v1/users/u1 HTTP/1.1");
    let post = heard.last().unwrap();
    assert_eq!(post.line(), "POST /v1/pages HTTP/1.1");
    let body: Value = serde_json::from_slice(&post.body).unwrap();
    assert_eq!(body["parent"]["page_id"], "r");
    for heard in [&heard[0], post] {
        assert_eq!(heard.header("notion-version").len(), 1, "{}", heard.head);
        bears_the_secret(heard);
    }
}

#[test]
fn b049_stripe_sends_its_forms_and_what_it_is_not_bound_to_reaches_nothing() {
    let shop = Shop::open("stripe", |heard| match heard.line() {
        line if line.starts_with("POST /v1/customers") => {
            json!({ "id": "cus_1", "object": "customer" })
        }
        _ => json!({ "object": "list", "data": [{ "id": "cus_0" }], "has_more": false }),
    });
    shop.list("stripe", "stripe@23.1.0");
    let head = "import Stripe from \"stripe\";";
    let made = "const base = new URL(ctx.proxyBase);\n\
        const stripe = new Stripe(ctx.proxyKey, { protocol: \"https\", host: base.hostname, \
        port: base.port || 443, maxNetworkRetries: 0, telemetry: false, \
        httpClient: Stripe.createFetchHttpClient(fetch) });";
    let body = format!("{made}\nreturn (await stripe.customers.list({{ limit: 3 }})).data[0].id;");
    shop.publish("stripe", "list-customers", &tool(head, "", &body)).ok();
    let read = shop.call(&["stripe", "list-customers"]).ok();
    assert_eq!(read["result"], "cus_0", "{read}");
    let body = format!(
        "{made}\nreturn (await stripe.customers.create({{ email: \"a@example.com\" }}, \
         {{ idempotencyKey: \"customer-a\" }})).id;"
    );
    shop.publish("stripe", "add-customer", &tool(head, "", &body)).ok();
    assert_eq!(shop.call_allowed(&["stripe", "add-customer"])["result"], "cus_1");
    let heard = shop.vendor.heard();
    assert_eq!(heard[0].line(), "GET /v1/customers?limit=3 HTTP/1.1");
    let post = heard.last().unwrap();
    assert_eq!(post.body, b"email=a%40example.com");
    assert_eq!(post.header("content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(post.header("idempotency-key"), ["customer-a"]);
    for heard in [&heard[0], post] {
        assert_eq!(heard.header("stripe-version").len(), 1, "{}", heard.head);
        bears_the_secret(heard);
    }

    let unbound = tool(head, "", "return (await new Stripe(\"sk\").customers.list()).data;");
    let refused = shop.publish("stripe", "unbound", &unbound);
    assert!(refused.stderr.contains("sdk_unbound"), "{}", refused.stderr);
    let count = shop.vendor.heard().len();
    let body = "const stripe = new Stripe(ctx.proxyKey, { maxNetworkRetries: 0 });\n\
        return (await stripe.customers.list()).data;";
    shop.publish("stripe", "elsewhere", &tool(head, "", body)).ok();
    let useless = shop.call(&["stripe", "elsewhere"]);
    assert_ne!(useless.code, 0, "{}", useless.stdout);
    assert_eq!(shop.vendor.heard().len(), count);
}

#[test]
fn decision13_a_listed_package_is_what_a_version_runs_with_or_it_does_not_run() {
    let shop = Shop::open("github", |_| json!([]));
    let listed = shop.list("github", "@octokit/core@7.0.8");
    let source = tool(
        "import { Octokit } from \"@octokit/core\";",
        "",
        "return (await new Octokit({ baseUrl: ctx.proxyBase }).request(\"GET /x\")).data;",
    );
    let published = shop.publish("github", "get-x", &source).ok();
    assert_eq!(shop.call(&["github", "get-x"]).ok()["result"], json!([]));

    // Off the list: refused, and the same package again is the same content.
    let gone = shop.home.run(&["connections", "sdk", "remove", "github", "@octokit/core"]).ok();
    assert_eq!((gone["generation"].as_u64(), &gone["sdks"]), (Some(3), &json!([])));
    let refused = shop.call(&["github", "get-x"]);
    assert_eq!(refused.error(), "sdk_not_listed", "{}", refused.stderr);
    let back = shop.list("github", "@octokit/core@7.0.8");
    assert_eq!(back["sdks"], listed["sdks"], "the bundler's output does not vary");
    assert_eq!(shop.call(&["github", "get-x"]).ok()["result"], json!([]));
    let again = shop.publish("github", "get-x", &source).ok();
    assert_eq!((&again["unchanged"], &again["hash"]), (&json!(true), &published["hash"]));

    // What was changed is on record, and only a person changes it.
    let audit = shop.home.run(&["audit", "list", "--limit", "200"]).ok().to_string();
    assert!(audit.contains("tools may import @octokit/core@7.0.8"), "{audit}");
    shop.home.write("passphrase", "wrong horse battery");
    let from = sdks();
    let add = ["connections", "sdk", "add", "github", "stripe@23.1.0", "--from"];
    let denied = shop.home.run(&[&add[..], &[from.to_str().unwrap()]].concat());
    assert_eq!(denied.error(), "person_required", "{}", denied.stderr);
}

#[test]
fn an_sdk_that_cannot_be_had_is_said_with_what_to_do() {
    let shop = Shop::open("github", |_| json!([]));
    let from = sdks();
    let from = from.to_str().unwrap();
    let add = |package: &str, more: &[&str]| {
        shop.home.run(&[&["connections", "sdk", "add", "github", package], more].concat())
    };
    for (package, more, code) in [
        ("stripe", &["--from", from][..], "argument_invalid"),
        ("stripe@^23.0.0", &["--from", from], "argument_invalid"),
        ("../stripe@23.1.0", &["--from", from], "argument_invalid"),
        ("stripe@23.0.0", &["--from", from], "sdk_unfetched"),
        ("nothing@1.0.0", &["--from", from], "sdk_unfetched"),
        ("stripe@23.1.0", &["--from", "/nowhere"], "sdk_unfetched"),
    ] {
        assert_eq!(add(package, more).error(), code, "{package}");
    }
    // A home has no PATH, so no npm.
    let add = ["connections", "sdk", "add", "github", "stripe@23.1.0"];
    let missing = ended(shop.home.command(&add).env("PATH", shop.home.path()).output().unwrap());
    assert_eq!(missing.error(), "npm_missing", "{}", missing.stderr);
    // A bundler that is not the one, and a package that needs Node.
    let fake = shop.home.path().join("fake/node_modules");
    let package = if cfg!(target_arch = "x86_64") { "linux-x64" } else { "linux-arm64" };
    let bundler = fake.join("@esbuild").join(package).join("bin");
    std::fs::create_dir_all(&bundler).unwrap();
    std::fs::create_dir_all(fake.join("needy")).unwrap();
    std::fs::write(bundler.join("esbuild"), "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::write(fake.join("needy/index.js"), "export * from 'fs';").unwrap();
    let entry = json!({ "version": "1.0.0", "integrity": "sha512-q83v" });
    let record = json!({ "packages": { "node_modules/needy": entry } });
    std::fs::write(fake.join(".package-lock.json"), record.to_string()).unwrap();
    let folder = shop.home.path().join("fake");
    let add = ["connections", "sdk", "add", "github", "needy@1.0.0", "--from"];
    let add = [&add[..], &[folder.to_str().unwrap()]].concat();
    let refused = shop.home.run(&add);
    assert_eq!(refused.error(), "sdk_unbundlable", "{}", refused.stderr);
    assert!(refused.stderr.contains("is not the bundler"), "{}", refused.stderr);
    let real = sdks().join("node_modules/@esbuild").join(package).join("bin/esbuild");
    std::fs::copy(real, bundler.join("esbuild")).unwrap();
    let refused = shop.home.run(&add);
    assert_eq!(refused.error(), "sdk_unbundlable", "{}", refused.stderr);
    assert!(refused.stderr.contains("fs"), "{}", refused.stderr);
    assert_eq!(shop.home.run(&["connections", "sdk", "list", "github"]).ok()["sdks"], json!([]));
}
