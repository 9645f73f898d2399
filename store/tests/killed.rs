//! A child process writes without pause and says each row the store
//! acknowledged; it is killed at a random moment, thirty times over. After each
//! reopening every acknowledged row is there, and nothing is half there.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::MoveCause;
use cambium_engine::port::{AskState, AskStore, RunEnd, RunStore, SetStore, ToolStore};
use cambium_proxy::{Answer, ApprovalSource, AskId, AuditSink, RunId};
use cambium_store::Store;
use common::*;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const CHILD: &str = "CAMBIUM_TEST_WRITES_TO";
const KILLS: u32 = 30;
/// Rows a child may say before it is killed; it goes on writing meanwhile.
const ROWS_BEFORE: u64 = 60;

#[tokio::test]
async fn b096_a_kill_loses_nothing_that_was_acknowledged() {
    let directory = Directory::new();
    filled(&directory).await.close().await;
    let mut acknowledged = BTreeSet::new();
    for kill in 0..KILLS {
        let said = write_until_killed(&directory.database());
        // They may all be of a round that the last kill cut off: none need be new.
        assert!(!said.is_empty(), "the child wrote nothing in round {kill}");
        acknowledged.extend(said);
        let store = Store::open(directory.database(), key()).await.unwrap();
        for row in &acknowledged {
            assert!(is_there(&store, row).await, "{row} was lost by kill {kill}");
        }
        nothing_is_half_there(&store).await;
        store.close().await;
    }
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
}

/// Not a test of its own: what the killed process runs.
#[tokio::test]
async fn child_that_writes_until_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(path, key()).await.unwrap();
    let mut at = store.last("node-1").await.unwrap().map_or(0, |row| row.sequence);
    let mut said = std::io::stdout();
    loop {
        at += 1;
        let name = format!("t{at}");
        let mut say = |kind: &str| {
            said.write_all(format!("row {kind} {at}\n").as_bytes()).unwrap();
            said.flush().unwrap();
        };
        // A round that a kill cut off is written anew: its conflicts are fine.
        if store.publish(&publish(&name, 1, 1)).await.is_ok() {
            say("version");
        }
        let ask_row = ask(&format!("ask-{at}"), &name);
        if store.insert_ask(&ask_row).await.is_ok() {
            say("ask");
        }
        let yes = decision(&ask_row, 1, Answer::Standing);
        if store.settle(&ask_row.id, AskState::AllowedStanding, Some(&yes), 1).await.unwrap() {
            say("decision");
        }
        if store.begin_run(&run(&format!("run-{at}"), &name)).await.is_ok() {
            say("run");
        }
        let end = RunEnd {
            id: RunId::new(format!("run-{at}")),
            outcome: "ok".into(),
            used: true,
            ended_ms: 5,
            evidence: None,
        };
        store.end_run(&end).await.unwrap();
        say("use");
        let out = [(tool(&name), MoveCause::Agent)];
        store.demote(&agent_id(1), &out, 6).await.unwrap();
        say("demotion");
        store.append(&[audit("node-1", at)], at % 2 == 0).await.unwrap();
        say("audit");
    }
}

fn write_until_killed(path: &Path) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let rows = RandomState::new().build_hasher().finish() % ROWS_BEFORE + 1;
    let (mut said, mut line) = (Vec::new(), String::new());
    let mut killed = false;
    loop {
        line.clear();
        if lines.read_line(&mut line).unwrap() == 0 {
            break;
        }
        // Only a whole line was said.
        if let Some(row) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("row ")) {
            said.push(row.to_owned());
        }
        if !killed && said.len() as u64 >= rows {
            child.kill().unwrap();
            killed = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(killed, "the child ended by itself: {status}");
    said
}

async fn is_there(store: &Store, row: &str) -> bool {
    let (kind, at) = row.split_once(' ').unwrap();
    let name = format!("t{at}");
    let tool = tool(&name);
    match kind {
        "version" => store.pointer(&person(), &tool).await.unwrap() == Some(pointer(&name, 1, 1)),
        "ask" => store.ask(&AskId::new(format!("ask-{at}"))).await.unwrap().is_some(),
        "decision" => store.decision(&AskId::new(format!("ask-{at}"))).await.unwrap().is_some(),
        "run" => store.run(&RunId::new(format!("run-{at}"))).await.unwrap().is_some(),
        "use" => {
            let run = store.run(&RunId::new(format!("run-{at}"))).await.unwrap();
            run.is_some_and(|run| run.outcome.is_some())
        }
        "demotion" => store.set(&agent_id(1)).await.unwrap().iter().all(|row| row.tool != tool),
        "audit" => {
            let at: u64 = at.parse().unwrap();
            store.rows("node-1", at - 1, 1).await.unwrap() == [audit("node-1", at)]
        }
        other => panic!("{other}"),
    }
}

async fn nothing_is_half_there(store: &Store) {
    for pointer in store.pointers(&person()).await.unwrap() {
        let version = store.version(&person(), &pointer.tool, pointer.number).await.unwrap();
        assert!(version.is_some(), "a pointer to nothing");
    }
    for ask in store.asks(&person(), 10_000).await.unwrap() {
        let decided = store.decision(&ask.id).await.unwrap().is_some();
        assert_eq!(decided, ask.state == AskState::AllowedStanding, "{}", ask.id);
    }
    let mut set = BTreeSet::new();
    for entry in store.history(&agent_id(1), u32::MAX).await.unwrap().into_iter().rev() {
        let wire = entry.tool.to_string();
        assert!(if entry.promoted { set.insert(wire) } else { set.remove(&wire) });
    }
    let now = store.set(&agent_id(1)).await.unwrap();
    assert_eq!(now.iter().map(|row| row.tool.to_string()).collect::<BTreeSet<_>>(), set);
    let chain = store.rows("node-1", 0, u32::MAX).await.unwrap();
    assert!(chain.iter().zip(1..).all(|(row, at)| row.sequence == at));
}
