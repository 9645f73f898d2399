//! SIGKILL of the server at random moments while tools are published, promoted,
//! approved and run; then a restart. Whatever a command was told had happened
//! must still be there, the audit's chain must hold, and no order may have
//! reached the vendor twice.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "../src/demo/vendor.rs"]
#[allow(dead_code, unreachable_pub)]
mod vendor;

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::Home;
use vendor::Vendor;

const CREATE: &str = include_str!("../examples/shop__create-order.ts");
/// How often the server is killed; `CAMBIUM_KILLS=200` is the long form.
fn kills() -> u32 {
    std::env::var("CAMBIUM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10)
}
/// The latest moment of a kill after the server is ready: a few tools' worth
/// of steps on an idle machine.
const LATEST: Duration = Duration::from_secs(4);

/// What the commands were told had happened.
#[derive(Default)]
struct Acknowledged {
    versions: Vec<(String, u64, String)>,
    promoted: BTreeSet<(String, String)>,
    decided: Vec<(String, String)>,
    ordered: Vec<String>,
    audit_rows: u64,
}

#[test]
fn b096_a_kill_at_any_moment_loses_nothing_acknowledged_and_sends_nothing_twice() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let vendor = runtime.block_on(Vendor::open("shop-token")).unwrap();
    let home = Arc::new(Home::new());
    let mut server = home.set_up();
    support::connect_shop(&home, vendor.address.port(), &vendor.ca_pem);
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));

    for round in 0..kills() {
        // One agent a round, since open asks of one agent are bounded; and a cap
        // so wide that the sweep at a restart takes nothing out by the rule.
        let made = home.run(&["agents", "create", &agent(round), "--cap", "500"]).ok();
        let token = made["token"].as_str().unwrap().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let work = std::thread::spawn({
            let (home, acknowledged, stop) = (home.clone(), acknowledged.clone(), stop.clone());
            move || work(round, &home, &token, &acknowledged, &stop)
        });
        // Some moment of the round: which one is the point of the test.
        std::thread::sleep(some(LATEST));
        server.kill();
        stop.store(true, Ordering::Relaxed);
        work.join().unwrap();
        server = home.serve();
        let orders = ordered(&vendor);
        verify(&home, &acknowledged.lock().unwrap(), &orders, round);
    }
    let seen = acknowledged.lock().unwrap();
    assert!(seen.audit_rows > 0 && !seen.decided.is_empty(), "the kills left no time for work");
    let mut orders = BTreeSet::new();
    for post in vendor.received().iter().filter(|request| request.method == "POST") {
        assert!(orders.insert(post.body.clone()), "sent twice: {}", post.body);
    }
    for name in &seen.ordered {
        let received = orders.iter().any(|body| body.contains(&format!("\"{name}\"")));
        assert!(received, "{name} was answered as ordered and never was");
    }
    assert_eq!(server.stop(), 0);
    runtime.block_on(vendor.close());
}

fn agent(round: u32) -> String {
    format!("agent-{round}")
}

/// The demo's steps, each with a tool and an order of its own, until a command
/// fails because its server is gone.
fn work(round: u32, home: &Arc<Home>, token: &str, seen: &Mutex<Acknowledged>, stop: &AtomicBool) {
    for step in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("order-{round}-{step}");
        let file = home.write(&format!("{name}.ts"), CREATE);
        let publish = [
            "publish",
            file.to_str().unwrap(),
            "--vendor",
            "shop",
            "--name",
            &name,
            "--agent",
            &agent(round),
        ];
        let Some(published) = told(home, home.run(&publish)) else { return };
        {
            let mut seen = seen.lock().unwrap();
            let tool = published["tool"].as_str().unwrap().to_owned();
            let hash = published["hash"].as_str().unwrap().to_owned();
            seen.promoted.insert((agent(round), tool.clone()));
            seen.versions.push((tool, published["version"].as_u64().unwrap(), hash));
        }
        let call = std::thread::spawn({
            let (home, token, name) = (home.clone(), token.to_owned(), name.clone());
            move || {
                let input = format!(r#"{{"item": "{name}", "quantity": 1}}"#);
                told(&home, home.run_as(&token, &["run", "shop", &name, "--input", &input]))
            }
        });
        let Some(ask) = open_ask(home, &format!("shop__{name}"), stop) else {
            call.join().unwrap();
            return;
        };
        if let Some(decided) = told(home, home.run(&["approvals", "allow", &ask, "--from-now-on"]))
        {
            let state = decided["state"].as_str().unwrap().to_owned();
            seen.lock().unwrap().decided.push((ask, state));
        }
        let answered = call.join().unwrap();
        if answered.is_none() {
            return;
        }
        seen.lock().unwrap().ordered.push(name.clone());
        // reads and moves between the writes; each ends where it began
        let dry = ["run", "shop", &name, "--input", r#"{"item": "a", "quantity": 1}"#, "--dry-run"];
        if told(home, home.run_as(token, &dry)).is_none() {
            return;
        }
        let moved = |word| told(home, home.run_as(token, &["tools", word, "shop", &name]));
        let tool = (agent(round), format!("shop__{name}"));
        seen.lock().unwrap().promoted.remove(&tool);
        if moved("demote").is_none() || moved("promote").is_none() {
            return;
        }
        seen.lock().unwrap().promoted.insert(tool);
        let Some(verified) = told(home, home.run(&["audit", "verify"])) else { return };
        seen.lock().unwrap().audit_rows = verified["rows"].as_u64().unwrap();
    }
}

/// What a command said, if its server lived to say it.
fn told(home: &Home, ended: support::Ended) -> Option<Value> {
    if ended.code == 0 {
        return Some(ended.ok());
    }
    let gone = |code: &str| ["no_server", "server_gone"].contains(&code);
    let error = ended.error();
    // The threads of a killed process do not end at one instant: workers follow
    // the one that started them, and another may still say so.
    let last_words = error == "crashed" && ended.stderr.contains("signal 9");
    assert!(gone(&error) || last_words, "{} {}", ended.stdout, ended.stderr);
    if last_words {
        let after = home.run(&["status"]);
        let (code, stderr, log) = (after.code, &after.stderr, home.log());
        assert!(
            gone(&after.error()),
            "killed under a living server; status {code} {stderr} log {log}"
        );
    }
    None
}

fn open_ask(home: &Home, tool: &str, stop: &AtomicBool) -> Option<String> {
    loop {
        let asks = told(home, home.run(&["approvals", "list", "--open"]))?;
        let ask = asks.as_array().unwrap().iter().find(|ask| ask["tool"] == tool);
        if let Some(ask) = ask {
            return Some(ask["id"].as_str().unwrap().to_owned());
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
}

/// The names in the orders the shop took.
fn ordered(vendor: &Vendor) -> Vec<String> {
    let posts = vendor.received().into_iter().filter(|request| request.method == "POST");
    let name = |body: String| {
        let order: Value = serde_json::from_str(&body).unwrap();
        order["item"].as_str().unwrap().to_owned()
    };
    posts.map(|post| name(post.body)).collect()
}

fn verify(home: &Home, seen: &Acknowledged, orders: &[String], round: u32) {
    let tools = home.run(&["tools", "list"]).ok();
    for (tool, version, hash) in &seen.versions {
        let kept = tools.as_array().unwrap().iter().find(|kept| kept["tool"] == tool.as_str());
        let kept = kept.unwrap_or_else(|| panic!("round {round}: {tool} is lost"));
        assert_eq!(kept["version"], *version, "round {round}: {tool}");
        assert_eq!(kept["hash"], hash.as_str(), "round {round}: {tool}");
    }
    for agent in seen.promoted.iter().map(|(agent, _)| agent).collect::<BTreeSet<_>>() {
        let shown = home.run(&["agents", "show", agent]).ok();
        let set = shown["workingSet"].as_array().unwrap();
        let name = |tool: &Value| format!("{}__{}", tool["vendor"], tool["name"]).replace('"', "");
        let mut replayed = BTreeSet::new();
        for row in shown["history"].as_array().unwrap().iter().rev() {
            match row["promoted"] == true {
                true => assert!(replayed.insert(name(&row["tool"])), "round {round}: {row}"),
                false => assert!(replayed.remove(&name(&row["tool"])), "round {round}: {row}"),
            }
        }
        let kept: BTreeSet<String> = set.iter().map(|entry| name(&entry["tool"])).collect();
        assert_eq!(replayed, kept, "round {round}: the history of {agent} is not its set");
        for (_, tool) in seen.promoted.iter().filter(|(of, _)| of == agent) {
            let (vendor, name) = tool.split_once("__").unwrap();
            let kept =
                |entry: &Value| entry["tool"]["vendor"] == vendor && entry["tool"]["name"] == name;
            assert!(set.iter().any(kept), "round {round}: {agent} lost {tool}");
        }
    }
    // Whatever reached the shop had an answer that allowed it.
    let asks = home.run(&["approvals", "list"]).ok();
    for name in orders.iter().filter(|name| name.starts_with(&format!("order-{round}-"))) {
        let allowed = |ask: &&Value| {
            ask["tool"] == format!("shop__{name}").as_str()
                && ask["state"].as_str().is_some_and(|state| state.starts_with("allowed"))
        };
        let found = asks.as_array().unwrap().iter().find(allowed);
        assert!(found.is_some(), "round {round}: {name} was sent without an answer");
    }
    for (ask, state) in &seen.decided {
        let kept = home.run(&["approvals", "show", ask]).ok();
        assert_eq!(kept["state"], state.as_str(), "round {round}: the answer to {ask} is lost");
    }
    let verified = home.run(&["audit", "verify"]).ok();
    let rows = verified["rows"].as_u64().unwrap();
    assert!(rows >= seen.audit_rows, "round {round}: {rows} audit rows of {}", seen.audit_rows);
}

/// A random part of a span.
fn some(latest: Duration) -> Duration {
    let mut random = [0; 4];
    getrandom::fill(&mut random).unwrap();
    latest.mul_f64(f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX))
}
