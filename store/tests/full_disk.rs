//! A disk that takes no more: a limit on the size of a file, set for a child
//! process, stands for it. The store refuses, loses nothing it acknowledged,
//! still reads, and writes again once there is room.
#![allow(clippy::unwrap_used)]

mod common;

use cambium_engine::port::{AskStore, PersonStore};
use cambium_proxy::{AskId, AuditSink, StoreFault};
use cambium_store::Store;
use common::*;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::Write;
use std::process::Command;

const CHILD: &str = "CAMBIUM_TEST_FILLS";
/// In blocks of 512 bytes: 4 MiB.
const BLOCKS: &str = "8192";

#[tokio::test]
async fn m02_a_full_disk_refuses_and_loses_nothing() {
    let directory = Directory::new();
    filled(&directory).await.close().await;
    // The signal is ignored, so that the write fails instead.
    let limited = format!("trap '' XFSZ; ulimit -S -f {BLOCKS}; exec \"$0\" \"$@\"");
    let output = Command::new("/bin/sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_fills_the_disk", "--nocapture"])
        .env(CHILD, directory.database())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("refused unavailable"), "{said}");
    let rows: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("row ")).collect();
    assert!(rows.len() > 3, "{said}");

    let store = Store::open(directory.database(), key()).await.unwrap();
    for id in rows {
        assert!(store.ask(&AskId::new(id)).await.unwrap().is_some(), "{id} was lost");
    }
    store.insert_ask(&ask("after", "after")).await.unwrap();
}

/// Not a test of its own: what runs under the limit.
#[tokio::test]
async fn child_that_fills_the_disk() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(path, key()).await.unwrap();
    let mut said = std::io::stdout();
    for at in 0..100 {
        let mut ask = ask(&format!("ask-{at}"), &format!("t{at}"));
        ask.body = vec![7; 200 * 1024];
        match store.insert_ask(&ask).await {
            Ok(()) => writeln!(said, "row {}", ask.id).unwrap(),
            Err(StoreFault::Unavailable(_)) => {
                writeln!(said, "refused unavailable").unwrap();
                // Reads go on; the refused row is not there.
                assert!(store.person().await.unwrap().is_some());
                assert!(store.ask(&ask.id).await.unwrap().is_none());
                // Room again: the same store writes, on each of its connections.
                let room = Rlimit { current: None, maximum: None };
                setrlimit(Resource::Fsize, room).unwrap();
                store.insert_ask(&ask).await.unwrap();
                writeln!(said, "row {}", ask.id).unwrap();
                store.append(&[audit("node", 1)], false).await.unwrap();
                return;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the limit was never met");
}
