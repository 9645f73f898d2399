//! A thousand first writes of twenty agents at once: as many are held as the
//! caps say, the rest are told that a person was asked, memory stays bounded,
//! and each answer releases exactly what it covers.

use crate::house::{House, Step, code, module, request};
use cambium_engine::{Caller, Engine, Envelope, Live, Status};
use cambium_proxy::{Answer, AuditEvent, AuditKind, AuditSink};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const AGENTS: usize = 20;
const CALLS: usize = 50;
/// Bytes of each body: a thousand of them would be 250 MiB.
const BODY: usize = 256 * 1024;
/// What the process may grow by, KiB: the held bodies (64), those at work (32),
/// each a few times over on its way into the database, and the asks that stay.
const GROWTH_KIB: u64 = 160 * 1024;
/// Held at most, on the node and of one agent.
const HELD: usize = 64;
const HELD_PER_AGENT: usize = 4;

/// Calls until it is not told that too much is going on.
async fn call(engine: Arc<Engine>, caller: Caller, name: String) -> Envelope {
    loop {
        let live = Live::new(CancellationToken::new());
        let envelope = engine.call(&caller, request(&name), live).await;
        if code(&envelope) != "busy" {
            return envelope;
        }
        // A harness that is told so waits before it calls again.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn j05_a_thousand_first_writes_of_twenty_agents() {
    let house = House::waiting(Duration::from_secs(600)).await;
    house.shop().await;
    let mut callers = Vec::new();
    for number in 0..AGENTS {
        let (_, caller) = house.agent(&format!("agent-{number}")).await;
        let name = format!("create-{number}");
        let source = module(&format!("Creates {number}."), r#""/orders", { method: "POST" }"#);
        house.publish(&caller, &name, &source).await;
        let body: &'static str = Box::leak(format!("{number:03}{}", "x".repeat(BODY)).into());
        house.sandbox.plays(&format!("shop__{name}"), vec![Step::Send("POST", "/orders", body)]);
        callers.push((caller, name));
    }
    let mut events = house.engine.events();
    let before = peak_kib();
    let mut calls = Vec::new();
    for (number, (caller, name)) in callers.iter().enumerate() {
        for _ in 0..CALLS {
            let (engine, caller, name) = (house.engine.clone(), caller.clone(), name.clone());
            calls.push((number, tokio::spawn(call(engine, caller, name))));
        }
    }
    // Every agent gets its ask; the first five hear yes once, the next five no,
    // the rest nothing.
    let mut asks = HashMap::new();
    while asks.len() < AGENTS {
        let ask = house.opened(&mut events).await;
        asks.insert(ask.tool.clone(), ask);
    }
    assert_eq!(house.let_go("POST").await, 0, "nothing goes before an answer");
    for number in 0..10 {
        let ask = &asks[&format!("shop__create-{number}")];
        let answer = if number < 5 { Answer::Once } else { Answer::Deny };
        house.decide(ask, answer).await.unwrap();
    }
    // Whoever is not held has been told at once; then the held ones are ended.
    let left = |number: Option<usize>| {
        let mine = calls.iter().filter(|(of, _)| number.is_none_or(|number| number == *of));
        mine.filter(|(_, call)| !call.is_finished()).count()
    };
    while left(None) > HELD || (0..AGENTS).any(|number| left(Some(number)) > HELD_PER_AGENT) {
        tokio::task::yield_now().await;
    }
    let proof = house.person().await;
    for (caller, _) in &callers {
        let agent = &caller.agent().id;
        house.engine.set_agent(&proof, agent, None, None, None, Some(true)).await.unwrap();
    }
    let mut ended: Vec<HashMap<String, usize>> = vec![HashMap::new(); AGENTS];
    let mut told = 0;
    for (number, call) in calls {
        let envelope = call.await.unwrap();
        let how = match envelope.status {
            Status::AwaitingApproval => "awaiting_approval",
            Status::Ok => "ok",
            _ => code(&envelope),
        };
        *ended[number].entry(how.to_owned()).or_default() += 1;
        told += 1;
    }
    assert_eq!(told, AGENTS * CALLS, "none is lost");
    let grown = peak_kib() - before;
    assert!(grown < GROWTH_KIB, "{grown} KiB");

    let rows = house.store.rows("node", 0, 1_000_000).await.unwrap();
    let events = rows.iter().map(|row| serde_json::from_str::<AuditEvent>(&row.event).unwrap());
    let mut sent: HashMap<String, usize> = HashMap::new();
    for event in events.filter(|event| event.kind == AuditKind::Intent) {
        *sent.entry(event.tool).or_default() += 1;
    }
    for (number, ended) in ended.iter().enumerate() {
        let sent = sent.get(&format!("shop__create-{number}")).copied().unwrap_or_default();
        let of = |how: &str| ended.get(how).copied().unwrap_or_default();
        match number {
            0..5 => {
                assert_eq!((sent, of("ok")), (1, 1), "once is once: {ended:?}");
                assert_eq!(of("awaiting_approval") + of("agent_paused"), CALLS - 1, "{ended:?}");
                assert!(of("agent_paused") <= HELD_PER_AGENT, "{ended:?}");
            }
            5..10 => {
                assert_eq!(sent, 0);
                assert!(of("tool_denied") > 0, "{ended:?}");
                // Those under way when their agent was paused had not got so far.
                let cut = of("agent_paused");
                let told = of("tool_denied") + of("awaiting_approval");
                assert_eq!(told + cut, CALLS, "{ended:?}");
                assert!(cut <= HELD_PER_AGENT, "{ended:?}");
            }
            _ => {
                assert_eq!(sent, 0);
                assert_eq!(of("awaiting_approval") + of("agent_paused"), CALLS, "{ended:?}");
                assert!(of("agent_paused") <= HELD_PER_AGENT, "{ended:?}");
            }
        }
    }
}
