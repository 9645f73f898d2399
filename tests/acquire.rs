//! acquire through the binary: an agent's MCP session on one side, on the other a
//! scripted endpoint that speaks like OpenAI's, and a shop of the demo's. What a
//! model does right, wrong, forever or not at all, and a server that is killed
//! in the middle.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use support::{Home, Server, connect_shop};
use tokio::runtime::Runtime;
use vendor::Vendor;

const KEY: &str = "sk-the-key-of-the-model";
const GOOD: &str = r#"// name: list-orders
export const description = "Lists the orders.";
export const inputSchema = { type: "object", properties: {}, additionalProperties: false } as const;
export const exampleInput = {};
export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch("/orders");
  if (!res.ok) return res;
  return await res.json();
}
"#;

/// What the endpoint does with the next question.
enum Step {
    /// Answers with this text and counts so many tokens.
    Say(String, u64),
    /// Answers with a status and the key in its body.
    Fail(u16),
    /// Closes without an answer.
    Drop,
    /// Says nothing and keeps the connection.
    Hang,
}

#[derive(Default)]
struct Script {
    steps: VecDeque<Step>,
    /// Bodies as they came, and the credential of each.
    asked: Vec<(Value, String)>,
    held: Vec<TcpStream>,
}

/// The endpoint.
struct Model {
    port: u16,
    script: Arc<(Mutex<Script>, Condvar)>,
}

impl Model {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new((Mutex::new(Script::default()), Condvar::new()));
        let shared = script.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                answer(stream, &shared);
            }
        });
        Self { port, script }
    }

    fn will(&self, steps: impl IntoIterator<Item = Step>) {
        self.script.0.lock().unwrap().steps.extend(steps);
    }

    fn asked(&self) -> Vec<(Value, String)> {
        self.script.0.lock().unwrap().asked.clone()
    }

    fn until_asked(&self, count: usize) {
        let (script, news) = &*self.script;
        drop(news.wait_while(script.lock().unwrap(), |script| script.asked.len() < count).unwrap());
    }
}

fn answer(mut stream: TcpStream, shared: &(Mutex<Script>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut key, mut asked) = (0, String::new(), String::new());
    reader.read_line(&mut asked).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" | "x-api-key" => key = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut script = shared.0.lock().unwrap();
    script.asked.push((serde_json::from_slice(&body).unwrap(), key.clone()));
    let (status, said) = match script.steps.pop_front() {
        Some(Step::Say(text, tokens)) if asked.starts_with("POST /v1/messages ") => {
            let block = json!({ "type": "text", "text": text });
            let usage = json!({ "input_tokens": tokens, "output_tokens": 1 });
            (200, json!({ "content": [block], "usage": usage }).to_string())
        }
        Some(Step::Say(text, tokens)) => {
            assert!(asked.starts_with("POST /v1/chat/completions "), "{asked}");
            let choice = json!({ "message": { "role": "assistant", "content": text } });
            (200, json!({ "choices": [choice], "usage": { "total_tokens": tokens } }).to_string())
        }
        Some(Step::Fail(status)) => (status, format!("no: {key}")),
        Some(Step::Hang) | None => {
            script.held.push(stream);
            return shared.1.notify_all();
        }
        Some(Step::Drop) => return shared.1.notify_all(),
    };
    shared.1.notify_all();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", said.len());
    let _ = stream.write_all(format!("{head}{said}").as_bytes());
}

/// An agent's session over the bridge.
struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Agent {
    fn connect(home: &Home, token: &str) -> Self {
        let mut command = home.command(&["mcp"]);
        command.env("CAMBIUM_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self { child, stdin, stdout, calls: 0 };
        agent.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(agent.stdin, "{ready}").unwrap();
        agent
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let asked =
            json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        writeln!(self.stdin, "{asked}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the bridge ended");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["id"] == self.calls {
                return said["result"].clone();
            }
        }
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let called = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        called["structuredContent"].clone()
    }

    /// Follows a job to its end; its last answer with all of its progress.
    fn follow(&mut self, job: &Value) -> Value {
        let mut lines: Vec<Value> = Vec::new();
        loop {
            let status = self.call("acquire_status", json!({ "jobId": job, "after": lines.len() }));
            lines.extend(status["progress"].as_array().unwrap().clone());
            assert_eq!(status["after"], lines.len(), "{status}");
            if status["status"] == "succeeded" || status["status"] == "failed" {
                let mut whole = self.call("acquire_status", json!({ "jobId": job }));
                assert_eq!(whole["progress"], json!(lines), "progress only grows");
                whole["job"] = job.clone();
                return whole;
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Setting {
    home: Home,
    vendor: Vendor,
    model: Model,
    server: Option<Server>,
    token: String,
    _runtime: Runtime,
}

impl Setting {
    /// With a model that may be asked so often, for so many tokens.
    fn with_model(attempts: u32, tokens: u64) -> Self {
        let model = Model::open();
        let port = model.port;
        Self::open(model, |home| {
            let key = home.write("model-key", KEY);
            let text = format!(
                "[author]\nkind = \"openai\"\nurl = \"http://127.0.0.1:{port}/v1\"\nmodel = \"m\"\n\
                 key_file = {key:?}\nattempts = {attempts}\ntokens = {tokens}\ntimeout_seconds = 2\n"
            );
            home.write("config.toml", &text);
        })
    }

    fn open(model: Model, configure: impl FnOnce(&Home)) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let vendor = runtime.block_on(Vendor::open("shop-token")).unwrap();
        let home = Home::new();
        configure(&home);
        let server = Some(home.set_up());
        connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
        let made = home.run(&["agents", "create", "laptop"]).ok();
        let token = made["token"].as_str().unwrap().to_owned();
        Self { home, vendor, model, server, token, _runtime: runtime }
    }

    fn agent(&self) -> Agent {
        Agent::connect(&self.home, &self.token)
    }

    fn acquired(&self, goal: &str) -> Value {
        let mut agent = self.agent();
        let begun = self.begin(&mut agent, json!({ "connectionId": "shop", "goal": goal }));
        agent.follow(&begun["jobId"])
    }

    /// Begins a job, allowing it where this is the first of the agent.
    fn begin(&self, agent: &mut Agent, arguments: Value) -> Value {
        let first = agent.call("acquire", arguments.clone());
        let begun = match first["status"] == "awaiting_approval" {
            true => {
                self.allow();
                agent.call("acquire", arguments)
            }
            false => first,
        };
        assert_eq!(begun["status"], "queued", "{begun}");
        begun
    }

    /// The person says yes to the one thing that is asked.
    fn allow(&self) {
        let list = self.home.run(&["connections", "proposals", "list"]).ok();
        let open = list.as_array().unwrap().iter().find(|one| one["state"] == "open").unwrap();
        assert_eq!(open["wants"]["permission"]["to"], "make_tools", "{open}");
        let id = open["id"].as_str().unwrap();
        self.home.run(&["connections", "proposals", "accept", id]).ok();
    }

    fn log(&self) -> String {
        self.home.log()
    }
}

fn fenced(module: &str) -> String {
    format!("Here it is:\n```ts\n{module}```\n")
}

#[test]
fn b084_b086_a_model_writes_a_tool_that_is_checked_tried_published_and_promoted() {
    let setting = Setting::with_model(3, 10_000);
    setting.model.will([Step::Say(fenced(GOOD), 900)]);
    let done = setting.acquired("List the orders of the shop");
    assert_eq!(done["status"], "succeeded", "{done}");
    assert_eq!(done["tool"]["tool"], "shop__list-orders");
    assert_eq!(
        (&done["tool"]["promoted"], &done["tool"]["readOnlyHint"]),
        (&json!(true), &json!(true))
    );
    let [(asked, key)] = &setting.model.asked()[..] else { panic!("asked once") };
    assert_eq!((&asked["model"], key.as_str()), (&json!("m"), format!("Bearer {KEY}").as_str()));
    let said = asked.to_string();
    assert!(said.contains("List the orders of the shop") && !said.contains("shop-token"), "{said}");
    let ran = setting.agent().call("shop__list-orders", json!({}));
    assert_eq!(ran["status"], "ok", "{ran}");

    // Another agent's job is not there.
    let other = setting.home.run(&["agents", "create", "other"]).ok();
    let mut other = Agent::connect(&setting.home, other["token"].as_str().unwrap());
    let refused = other.call("acquire_status", json!({ "jobId": done["job"] }));
    assert_eq!(refused["code"], "job_not_found", "{refused}");
    assert!(!setting.log().contains(KEY));
}

#[test]
fn b068_acquire_asks_once_for_an_agent_and_a_connection() {
    let setting = Setting::with_model(3, 10_000);
    setting.model.will([Step::Say(fenced(GOOD), 10), Step::Say(fenced(GOOD), 10)]);
    let mut agent = setting.agent();
    let wanted = json!({ "connectionId": "shop", "goal": "List the orders" });
    let asked = agent.call("acquire", wanted.clone());
    assert_eq!(asked["status"], "awaiting_approval", "{asked}");
    assert!(asked["ask"]["link"].as_str().unwrap().contains("/handoff/"), "{asked}");
    // The same question, whatever the goal; nobody has been asked to write anything.
    let other = json!({ "connectionId": "shop", "goal": "Something else" });
    assert_eq!(agent.call("acquire", other)["ask"], asked["ask"]);
    assert!(setting.model.asked().is_empty());
    setting.allow();
    let done = setting.acquired("List the orders");
    assert_eq!(done["status"], "succeeded", "{done}");
    // Another agent's yes is its own.
    let second = setting.home.run(&["agents", "create", "second"]).ok();
    let mut second = Agent::connect(&setting.home, second["token"].as_str().unwrap());
    assert_eq!(second.call("acquire", wanted.clone())["status"], "awaiting_approval");
    let list = setting.home.run(&["connections", "proposals", "list"]).ok();
    let id = list[0]["id"].as_str().unwrap();
    setting.home.run(&["connections", "proposals", "refuse", id]).ok();
    assert_eq!(second.call("acquire", wanted)["code"], "proposal_refused");
}

#[test]
fn anthropics_messages_are_spoken_too() {
    let model = Model::open();
    let port = model.port;
    let setting = Setting::open(model, |home| {
        let key = home.write("model-key", KEY);
        let text = format!(
            "[author]\nkind = \"anthropic\"\nurl = \"http://127.0.0.1:{port}\"\nmodel = \"m\"\n\
             key_file = {key:?}\n"
        );
        home.write("config.toml", &text);
    });
    setting.model.will([Step::Say(fenced(GOOD), 900)]);
    let done = setting.acquired("List the orders of the shop");
    assert_eq!(done["status"], "succeeded", "{done}");
    let [(asked, key)] = &setting.model.asked()[..] else { panic!("asked once") };
    assert_eq!(key, KEY);
    assert!(asked["system"].as_str().unwrap().contains("ctx.fetch"), "{asked}");
    assert_eq!(asked["messages"][0]["role"], "user");
}

#[test]
fn an_endpoint_that_cannot_be_asked_is_refused_at_the_start() {
    let home = Home::new();
    let open = home.write("open-key", KEY);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&open, mode).unwrap();
    let open = format!("{open:?}");
    for (url, key) in [
        ("http://models.example/v1", None),
        ("ftp://models.example", None),
        ("https://user@models.example/v1", None),
        ("nonsense", None),
        ("https://models.example/v1", Some("\"/nowhere/key\"")),
        ("https://models.example/v1", Some(open.as_str())),
    ] {
        let key = key.map_or(String::new(), |key| format!("key_file = {key}\n"));
        let text = format!("[author]\nkind = \"openai\"\nurl = \"{url}\"\nmodel = \"m\"\n{key}");
        home.write("config.toml", &text);
        let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(refused.error(), "config_invalid", "{url}: {}", refused.stderr);
        assert!(!refused.stderr.contains(KEY));
    }
}

#[test]
fn b085_what_is_wrong_is_told_and_the_corrected_module_is_published() {
    let setting = Setting::with_model(4, 10_000);
    let host = GOOD.replace("\"/orders\"", "\"https://shop.example/orders\"");
    let gone = GOOD.replace("\"/orders\"", "\"/nothing-here\"");
    setting.model.will([
        Step::Say("I would rather not.".into(), 10),
        Step::Say(fenced(&host), 10),
        Step::Say(fenced(&gone), 10),
        Step::Say(fenced(GOOD), 10),
    ]);
    let done = setting.acquired("List the orders");
    assert_eq!(done["status"], "succeeded", "{done}");
    let asked = setting.model.asked();
    assert_eq!(asked.len(), 4);
    let last = |at: usize| {
        asked[at].0["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    };
    assert!(last(1).contains("no module"), "{}", last(1));
    assert!(last(2).contains("host_in_path"), "{}", last(2));
    assert!(last(3).contains("404"), "{}", last(3));
    // What the shop answered is not told to the model.
    assert!(!asked.iter().any(|(body, _)| body.to_string().contains("oak shelf")));
    assert_eq!(done["tool"]["version"], 1, "nothing that failed was ever current");
}

#[test]
fn b085_a_model_that_is_never_right_gives_up_and_publishes_nothing() {
    let setting = Setting::with_model(2, 10_000);
    let gone = GOOD.replace("\"/orders\"", "\"/nothing-here\"");
    setting.model.will([Step::Say(fenced(&gone), 10), Step::Say(fenced(&gone), 10)]);
    let done = setting.acquired("List the orders");
    assert_eq!(
        (&done["status"], &done["error"]["code"]),
        (&json!("failed"), &json!("author_gave_up"))
    );
    assert!(done["error"]["source"].as_str().unwrap().contains("nothing-here"), "{done}");
    assert_eq!(setting.home.run(&["tools", "list"]).ok(), json!([]));
}

#[test]
fn a_model_that_says_nothing_breaks_off_or_refuses_ends_at_its_tries_without_the_key_in_a_word() {
    let setting = Setting::with_model(4, 10_000);
    setting.model.will([Step::Hang, Step::Drop, Step::Fail(500), Step::Fail(401)]);
    let done = setting.acquired("List the orders");
    assert_eq!(done["error"]["code"], "author_gave_up", "{done}");
    let said = done["progress"].to_string();
    for word in ["no answer within 2 s", "connection", "answered 500", "refused the key (401)"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains(KEY) && !setting.log().contains(KEY), "{said}");
}

#[test]
fn a_model_that_costs_too_much_is_asked_no_more() {
    let setting = Setting::with_model(5, 1_000);
    setting.model.will([Step::Say("no module".into(), 1_200), Step::Say(fenced(GOOD), 10)]);
    let done = setting.acquired("List the orders");
    assert_eq!(done["error"]["code"], "author_over_budget", "{done}");
    assert_eq!(setting.model.asked().len(), 1);
}

#[test]
fn b084_a_job_goes_on_after_the_server_was_killed_and_gets_no_tries_back() {
    let mut setting = Setting::with_model(2, 10_000);
    setting.model.will([Step::Hang, Step::Say(fenced(GOOD), 10)]);
    let mut agent = setting.agent();
    let arguments = json!({ "connectionId": "shop", "goal": "List the orders" });
    let begun = setting.begin(&mut agent, arguments);
    setting.model.until_asked(1);
    drop(agent);
    setting.server.take().unwrap().kill();
    setting.server = Some(setting.home.serve());
    let done = setting.agent().follow(&begun["jobId"]);
    assert_eq!(done["status"], "succeeded", "{done}");
    let said = done["progress"].to_string();
    assert!(said.contains("after a restart") && said.contains("try 2 of 2"), "{said}");
    assert_eq!(setting.model.asked().len(), 2);
}

#[test]
fn b086_a_pinned_document_needs_no_model_and_neither_is_said_so() {
    let setting = Setting::open(Model::open(), |_| {});
    let mut agent = setting.agent();
    let refused = agent.call("acquire", json!({ "connectionId": "shop", "goal": "List orders" }));
    assert_eq!(refused["code"], "acquire_unconfigured", "{refused}");
    let said = refused.to_string();
    for way in ["OpenAPI", "author", "publish_tool"] {
        assert!(said.contains(way), "{way}: {said}");
    }
    let document = setting.home.write(
        "shop.yaml",
        r#"
openapi: 3.0.3
info: { title: Shop }
paths:
  /orders:
    get: { operationId: listOrders, summary: Lists the orders }
    post:
      operationId: createOrder
      summary: Places an order
      requestBody:
        content:
          application/json:
            schema: { type: object, required: [item], properties: { item: { type: string } } }
  /orders/{id}:
    get: { operationId: getOrder, summary: Shows one order, parameters: [{ name: id, in: path }] }
"#,
    );
    let import = ["import", "openapi", document.to_str().unwrap(), "--connection", "shop"];
    setting.home.run(&[&import[..], &["--operations", "getOrder"]].concat()).ok();
    let mut acquire = |arguments: Value| {
        let begun = setting.begin(&mut agent, arguments);
        agent.follow(&begun["jobId"])
    };

    let done = acquire(json!({ "connectionId": "shop", "goal": "list the orders" }));
    assert_eq!(done["tool"]["tool"], "shop__list-orders", "{done}");
    // A write is stopped in its dry run, and that is enough.
    let done = acquire(json!({ "connectionId": "shop", "goal": "place an order" }));
    assert_eq!(done["tool"]["tool"], "shop__create-order", "{done}");
    assert!(setting.vendor.received().iter().all(|request| request.method == "GET"));
    // A made-up id is not there: unverified, never current, and the source is shown.
    let done = acquire(json!({
        "connectionId": "shop", "goal": "one order", "hints": { "operation": "getOrder" },
    }));
    assert_eq!(done["error"]["code"], "dry_run_unverified", "{done}");
    assert!(done["error"]["source"].as_str().unwrap().contains("/orders/${"), "{done}");
    let done = acquire(json!({ "connectionId": "shop", "goal": "fly to the moon" }));
    assert_eq!(done["error"]["code"], "no_author_fits", "{done}");
    assert!(setting.model.asked().is_empty());
}
