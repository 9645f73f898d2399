//! Ten thousand random steps against a model of the working set, the rule and
//! the approvals: after each, the engine says what the model says. The steps are
//! the same at every run; a failure names the step.

use crate::house::{DAY_MS, House, START_MS, code, module, posts, tool};
use cambium_engine::{Demotion, Event, Member, SetLimits, Status, plan};
use cambium_proxy::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STEPS: u32 = 10_000;
const TOOLS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A small generator of our own, so that the steps never change.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides).unwrap()
    }
}

/// What stands for a write tool.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stands {
    Allowed(String),
    Denied,
}

#[derive(Default)]
struct Model {
    /// Content hash of each published tool; even ones read, odd ones write.
    current: BTreeMap<usize, String>,
    promoted: BTreeMap<usize, i64>,
    used: BTreeMap<usize, i64>,
    stands: BTreeMap<usize, Stands>,
    /// The open ask of a tool: its content and when it was opened.
    open: BTreeMap<usize, (String, i64)>,
    once: BTreeSet<(usize, String)>,
    cap: u32,
    idle_days: u32,
    now: i64,
    sent: usize,
}

impl Model {
    fn members(&self) -> Vec<Member> {
        let member = |(at, promoted_ms): (&usize, &i64)| Member {
            tool: tool(TOOLS[*at]),
            promoted_ms: *promoted_ms,
            last_used_ms: self.used.get(at).copied(),
        };
        self.promoted.iter().map(member).collect()
    }

    fn names(&self) -> Vec<String> {
        self.promoted.keys().map(|at| format!("shop__{}", TOOLS[*at])).collect()
    }

    /// A no, or a yes that was withdrawn, takes every unused *once* with it.
    fn take_back(&mut self, at: usize) {
        self.stands.remove(&at);
        self.once.retain(|(other, _)| *other != at);
    }

    fn expire(&mut self) {
        let now = self.now;
        self.open.retain(|_, (_, opened)| *opened + DAY_MS > now);
    }
}

fn writes(at: usize) -> bool {
    at % 2 == 1
}

fn source(at: usize, text: usize) -> String {
    let call = if writes(at) { r#""/orders", { method: "POST" }"# } else { r#""/x""# };
    module(&format!("Tool {at}, text {text}."), call)
}

#[test]
fn b092_ten_thousand_steps_agree_with_the_model() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(walk());
}

async fn walk() {
    let house = House::waiting(Duration::ZERO).await;
    let (agent, caller) = house.furnished().await;
    for (at, name) in TOOLS.iter().enumerate().filter(|(at, _)| writes(*at)) {
        let _ = at;
        house.sandbox.plays(&format!("shop__{name}"), posts("{}"));
    }
    let mut model = Model { cap: 20, idle_days: 21, now: START_MS, ..Model::default() };
    let mut dice = Dice(7);
    let person = house.person().await;
    for step in 0..STEPS {
        let at = dice.roll(TOOLS.len() as u64);
        let name = tool(TOOLS[at]);
        let mut events = house.engine.events();
        let before = house.listed(&caller).await;
        let said = match dice.roll(12) {
            0 | 1 => {
                let published = house.publish(&caller, TOOLS[at], &source(at, dice.roll(3))).await;
                if !published.unchanged {
                    // what was allowed for a content that comes back asks again
                    // and a *once* ends with its version
                    if model.stands.get(&at) == Some(&Stands::Allowed(published.hash.clone()))
                        || model.once.iter().any(|(other, _)| *other == at)
                    {
                        model.take_back(at);
                    }
                    if model.open.get(&at).is_some_and(|(hash, _)| *hash != published.hash) {
                        model.open.remove(&at);
                    }
                    model.current.insert(at, published.hash);
                }
                model.promoted.entry(at).or_insert(model.now);
                "publish"
            }
            2 => {
                let done = house.engine.promote(&caller, &name).await;
                assert_eq!(done.is_ok(), model.current.contains_key(&at), "step {step}");
                if done.is_ok() {
                    model.promoted.entry(at).or_insert(model.now);
                }
                "promote"
            }
            3 => {
                let done = house.engine.demote(&caller, &name).await;
                assert_eq!(done.is_ok(), model.current.contains_key(&at), "step {step}");
                model.promoted.remove(&at);
                "demote"
            }
            4..=7 => {
                call(&house, &caller, &mut model, at, step).await;
                "call"
            }
            8 => {
                decide(&house, &person, &mut model, at, dice.roll(3), step).await;
                "decide"
            }
            9 => {
                let ms = (dice.roll(72) as i64) * 60 * 60 * 1000;
                house.clock.advance(ms);
                model.now += ms;
                "age"
            }
            10 => {
                let limits = SetLimits::new(model.cap, model.idle_days).unwrap();
                let out: Vec<Demotion> = plan(&model.members(), limits, model.now, false);
                assert_eq!(house.engine.sweep().await.unwrap(), out.len(), "step {step}");
                for demotion in out {
                    let gone = TOOLS.iter().position(|name| tool(name) == demotion.tool).unwrap();
                    model.promoted.remove(&gone);
                }
                model.expire();
                "sweep"
            }
            _ => {
                let (cap, days) = (1 + dice.roll(5) as u32, 1 + dice.roll(10) as u32);
                let set =
                    house.engine.set_agent(&person, &agent.id, None, Some(cap), Some(days), None);
                set.await.unwrap();
                (model.cap, model.idle_days) = (cap, days);
                "limits"
            }
        };
        let listed = house.listed(&caller).await;
        assert_eq!(listed, model.names(), "step {step}, {said}");
        if listed != before {
            let told = crate::house::sent(&mut events);
            let lists = told.iter().filter(|event| matches!(event, Event::ListChanged(_))).count();
            assert_eq!(lists, 1, "step {step}, {said}: one notice for one change");
        }
    }
    let mut replayed = BTreeSet::new();
    let history = house.engine.history(&agent.id).await.unwrap();
    assert!(history.len() >= 500, "the walk moves tools: {}", history.len());
    // the newest rows, replayed from a list that is unknown at their beginning
    for row in history.iter().rev() {
        let name = row.tool.to_string();
        if row.promoted {
            replayed.insert(name)
        } else {
            replayed.remove(&name)
        };
    }
    for name in model.names() {
        let moved = history.iter().any(|row| row.tool.to_string() == name);
        assert!(!moved || replayed.contains(&name), "{name}");
    }
    assert!(model.sent > 100, "the walk writes: {}", model.sent);
}

async fn call(
    house: &House,
    caller: &cambium_engine::Caller,
    model: &mut Model,
    at: usize,
    step: u32,
) {
    let envelope = house.call(caller, TOOLS[at]).await;
    let Some(hash) = model.current.get(&at).cloned() else {
        assert_eq!(code(&envelope), "tool_not_found", "step {step}");
        return;
    };
    if !writes(at) {
        assert_eq!(envelope.status, Status::Ok, "step {step}");
        model.used.insert(at, model.now);
        return;
    }
    if model.stands.get(&at) == Some(&Stands::Denied) {
        assert_eq!(code(&envelope), "tool_denied", "step {step}");
        return;
    }
    model.used.insert(at, model.now);
    let allowed = model.stands.get(&at) == Some(&Stands::Allowed(hash.clone()))
        || model.once.remove(&(at, hash.clone()));
    if allowed {
        // it was let go; the vendor's port is closed
        assert_ne!(envelope.status, Status::AwaitingApproval, "step {step}");
        model.sent += 1;
        return;
    }
    assert_eq!(envelope.status, Status::AwaitingApproval, "step {step} {envelope:?}");
    model.expire();
    if model.open.get(&at).is_none_or(|(open, _)| *open != hash) {
        model.open.insert(at, (hash, model.now));
    }
}

async fn decide(
    house: &House,
    person: &cambium_engine::PersonProof,
    model: &mut Model,
    at: usize,
    answer: usize,
    step: u32,
) {
    if !writes(at) || !model.current.contains_key(&at) {
        return;
    }
    if model.stands.get(&at).is_some_and(|stands| *stands == Stands::Denied) {
        let agent = house.engine.agent("claude").await.unwrap();
        house.engine.withdraw(person, &agent.id, &tool(TOOLS[at])).await.unwrap();
        model.take_back(at);
        return;
    }
    let wanted = format!("shop__{}", TOOLS[at]);
    let asks = house.engine.asks().await.unwrap();
    let ask = asks.into_iter().find(|ask| ask.state == "open" && ask.tool == wanted);
    let Some(ask) = ask else {
        model.expire();
        assert!(!model.open.contains_key(&at), "step {step}: the model has an open ask");
        return;
    };
    let answer = [Answer::Standing, Answer::Once, Answer::Deny][answer];
    let decided = house.decide_as(person, &ask, answer).await;
    model.expire();
    let Some((hash, _)) = model.open.remove(&at) else {
        assert_eq!(decided.unwrap_err().code(), "ask_settled", "step {step}: it had run out");
        return;
    };
    decided.unwrap();
    match answer {
        Answer::Standing => {
            model.stands.insert(at, Stands::Allowed(hash));
        }
        Answer::Once => {
            model.once.insert((at, hash));
        }
        Answer::Deny => {
            model.take_back(at);
            model.stands.insert(at, Stands::Denied);
        }
        Answer::Withdrawn => unreachable!(),
    }
}
