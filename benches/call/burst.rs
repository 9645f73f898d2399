//! More at once than there is room for. The engine keeps no queue of calls: a
//! node has a bounded number of places, a call past them is told `busy` at once
//! and may come again, and those that have a place are each answered within
//! their own time, in no promised order. First twenty times the pool at once,
//! all within the places; then exactly as many as there are places, held by a
//! vendor that does not answer yet, and one more.

use crate::house::{House, list_orders, vendor_after};
use cambium_engine::{CallRequest, Caller, Envelope, Status};
use cambium_sandbox_tests::vendor::Step;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Runs of one agent, and of the node, as `docs/budget.md` says.
pub(crate) const AN_AGENT: usize = 8;
/// See above.
pub(crate) const A_NODE: usize = 32;
/// Times the pool at once.
const TIMES: usize = 20;
/// What a call of the burst may take: thirty-two of them fork on two cores.
const DEADLINE: Duration = Duration::from_secs(30);
/// A call whose vendor does not answer, seconds, and what its end may take.
const SHORT: u64 = 2;
const SLACK: Duration = Duration::from_secs(3);
/// Until a refusal is said: no process is started for it.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Fires both bursts; answers what was seen and what does not hold.
pub(crate) async fn run(pool: usize) -> (Value, Vec<String>) {
    let mut broken = Vec::new();
    let within = within_the_places(pool, &mut broken).await;
    let past = past_the_places(pool, &mut broken).await;
    (json!({ "within": within, "past": past }), broken)
}

async fn within_the_places(pool: usize, broken: &mut Vec<String>) -> Value {
    let count = TIMES * pool;
    let vendor = crate::house::vendor().await;
    let house = Arc::new(House::build(&vendor, pool, "burst").await);
    let agents = house.agents(count.div_ceil(AN_AGENT)).await;
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for number in 0..count {
        fire(&mut calls, &house, &agents[number % agents.len()], list_orders());
    }
    let answers = calls.join_all().await;
    let took = began.elapsed();
    expect(&answers, "ok", count, "of the first burst", broken);
    println!("burst of {count}, pool of {pool}: all answered in {:.2} s", took.as_secs_f64());
    close(house).await;
    json!({ "calls": count, "seconds": took.as_secs_f64() })
}

async fn past_the_places(pool: usize, broken: &mut Vec<String>) -> Value {
    let vendor = vendor_after(&[Step::Await]).await;
    let house = Arc::new(House::build(&vendor, pool, "past").await);
    let agents = house.agents(A_NODE / AN_AGENT + 1).await;
    let (one_more, agents) = agents.split_last().expect("agents");
    let short = CallRequest { timeout_seconds: Some(SHORT), ..list_orders() };
    let began = Instant::now();
    let ended = house.ask(one_more, short).await;
    if ended.code != Some("timeout") || began.elapsed() > Duration::from_secs(SHORT) + SLACK {
        broken.push(format!(
            "a call of {SHORT} s whose vendor is silent ended after {:.1} s as {:?}",
            began.elapsed().as_secs_f64(),
            ended.code
        ));
    }
    let mut calls = JoinSet::new();
    for number in 0..A_NODE {
        fire(&mut calls, &house, &agents[number % agents.len()], list_orders());
    }
    // One request each, and that of the call before.
    let full = tokio::time::timeout(DEADLINE, vendor.until_heard(A_NODE + 1)).await;
    if full.is_err() {
        broken.push(format!("{A_NODE} calls at once did not all reach the vendor"));
    }
    let mut refused = Vec::new();
    for agent in [one_more, &agents[0]] {
        let began = Instant::now();
        let envelope = house.ask(agent, list_orders()).await;
        refused.push(if began.elapsed() < AT_ONCE { said(&envelope) } else { "late".into() });
    }
    expect(&refused, "busy", refused.len(), "past the places", broken);
    vendor.release();
    let answers = calls.join_all().await;
    expect(&answers, "ok", A_NODE, "of the second burst", broken);
    let after = [said(&house.ask(one_more, list_orders()).await)];
    expect(&after, "ok", 1, "after the bursts", broken);
    println!("{A_NODE} held at once, one more of the node and one of an agent: {refused:?}");
    close(house).await;
    json!({ "held": A_NODE, "refused": refused })
}

fn fire(calls: &mut JoinSet<String>, house: &Arc<House>, caller: &Caller, request: CallRequest) {
    let (house, caller) = (house.clone(), caller.clone());
    calls.spawn(async move {
        match tokio::time::timeout(DEADLINE, house.ask(&caller, request)).await {
            Ok(envelope) => said(&envelope),
            Err(_) => "no answer".into(),
        }
    });
}

/// `ok`, or the code of what went wrong.
fn said(envelope: &Envelope) -> String {
    match (envelope.status, envelope.code) {
        (Status::Ok, _) => "ok".into(),
        (status, code) => code.map_or_else(|| format!("{status:?}"), str::to_owned),
    }
}

fn expect(answers: &[String], word: &str, count: usize, which: &str, broken: &mut Vec<String>) {
    let others: Vec<&String> = answers.iter().filter(|answer| *answer != word).collect();
    if answers.len() != count || !others.is_empty() {
        broken.push(format!("of {count} calls {which} these were not `{word}`: {others:?}"));
    }
}

async fn close(house: Arc<House>) {
    if let Ok(house) = Arc::try_unwrap(house) {
        house.close().await;
    }
}
