//! Many first writes at once while a person answers some of them, the server
//! killed in the middle, and begun again: every answer that was acknowledged is
//! there, and no order reached the vendor without its answer, or twice.

use crate::shop::Shop;
use crate::support::PASSPHRASE;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const AGENTS: usize = 4;
/// Connections of the control socket are bounded at 256.
const CALLERS: usize = 160;
const ROUNDS: usize = 2;
/// How many answers a round sees before its server is killed.
const ANSWERS: usize = 3;

/// One request on the control socket; `None` when the server is gone.
fn ask(data_dir: &Path, request: &Value) -> Option<Value> {
    let mut stream = UnixStream::connect(data_dir.join("control.sock")).ok()?;
    writeln!(stream, "{request}").ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

#[test]
fn j05_j18_a_flood_of_first_writes_survives_a_kill() {
    let mut shop = Shop::waiting(30);
    let mut tokens = vec![shop.agent.clone()];
    for number in 1..AGENTS {
        let made = shop.home.run(&["agents", "create", &format!("agent-{number}")]).ok();
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    let data_dir = shop.home.data_dir();
    // What was answered to an ask, as the command that answered it was told.
    let acknowledged: Mutex<BTreeMap<String, String>> = Mutex::default();
    let done: Mutex<BTreeSet<String>> = Mutex::default();
    for round in 0..ROUNDS {
        let (gone, decided) = (AtomicBool::new(false), AtomicUsize::new(0));
        let pid = shop.home.run(&["status"]).ok()["pid"].as_i64().unwrap();
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (token, data_dir) = (&tokens[caller % AGENTS], &data_dir);
                let (gone, done) = (&gone, &done);
                scope.spawn(move || {
                    let item = format!("r{round}-c{caller}");
                    let request = json!({
                        "do": "call",
                        "actor": { "token": token },
                        "tool": { "vendor": "shop", "name": "create-order" },
                        "input": { "item": item, "quantity": 1 },
                        "dry_run": false,
                        "timeout_seconds": null,
                    });
                    while !gone.load(Ordering::Relaxed) {
                        let Some(reply) = ask(data_dir, &request) else { return };
                        let envelope = &reply["ok"];
                        match (envelope["status"].as_str(), envelope["code"].as_str()) {
                            // A harness that is told so waits before it calls again.
                            (_, Some("busy")) => std::thread::sleep(Duration::from_millis(20)),
                            (Some("ok"), _) => {
                                done.lock().unwrap().insert(item.clone());
                                return;
                            }
                            _ => return,
                        }
                    }
                });
            }
            let (data_dir, gone, decided, acknowledged) =
                (&data_dir, &gone, &decided, &acknowledged);
            scope.spawn(move || {
                let mut seen = BTreeSet::new();
                while !gone.load(Ordering::Relaxed) {
                    let Some(asks) = ask(data_dir, &json!({ "do": "ask_list" })) else { return };
                    for open in asks["ok"].as_array().into_iter().flatten() {
                        let id = open["id"].as_str().unwrap().to_owned();
                        if open["state"] != "open" || !seen.insert(id.clone()) {
                            continue;
                        }
                        let answer = json!({
                            "do": "ask_decide",
                            "who": { "passphrase": PASSPHRASE },
                            "ask": id,
                            "answer": "once",
                        });
                        let Some(reply) = ask(data_dir, &answer) else { return };
                        if let Some(state) = reply["ok"]["state"].as_str() {
                            acknowledged.lock().unwrap().insert(id, state.to_owned());
                            decided.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            while decided.load(Ordering::Relaxed) < ANSWERS {
                std::thread::sleep(Duration::from_millis(5));
            }
            let memory = memory_kib(pid);
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::Kill).unwrap();
            gone.store(true, Ordering::Relaxed);
            assert!(memory < 512 * 1024, "round {round}: {memory} KiB");
        });
        drop(shop.server.take());
        let sent = shop.orders().len();
        shop.start();
        assert_eq!(shop.orders().len(), sent, "a restart sends nothing");
        check(&shop, &acknowledged.lock().unwrap(), &done.lock().unwrap());
    }
    shop.stop();
}

fn check(shop: &Shop, acknowledged: &BTreeMap<String, String>, done: &BTreeSet<String>) {
    let mut allowed = BTreeSet::new();
    for (id, state) in acknowledged {
        let kept = shop.home.run(&["approvals", "show", id]).ok();
        assert_eq!(kept["state"], state.as_str(), "the answer to {id} is lost");
    }
    for ask in shop.home.run(&["approvals", "list"]).ok().as_array().unwrap() {
        if ask["state"] == "allowed_once" {
            let body: Value = serde_json::from_str(ask["body"].as_str().unwrap()).unwrap();
            allowed.insert(body["item"].as_str().unwrap().to_owned());
        }
    }
    let mut sent = BTreeSet::new();
    for order in shop.orders() {
        let item = order["item"].as_str().unwrap().to_owned();
        assert!(allowed.contains(&item), "{item} was sent without its answer");
        assert!(sent.insert(item.clone()), "{item} was sent twice");
    }
    for item in done {
        assert!(sent.contains(item), "{item} was answered as done and never was");
    }
    shop.home.run(&["audit", "verify"]).ok();
}

fn memory_kib(pid: i64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
