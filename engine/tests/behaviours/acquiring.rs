//! acquire's jobs once a person has taken back what they need: a model that says
//! what a test lets it say, when the test lets it.

use crate::house::{House, Step, posts, reads, tool, writes};
use cambium_engine::{AcquireHints, Acquired, Author, Caller, JobEnd, Said, Turn};
use cambium_proxy::BoxFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The model: says that it was asked, then waits for the word.
#[derive(Default)]
pub(crate) struct Writer {
    asked: AtomicUsize,
    here: Notify,
    word: Notify,
    says: Mutex<String>,
}

impl Author for Writer {
    fn ask<'a>(&'a self, _: &'a str, _: &'a [Turn]) -> BoxFuture<'a, Result<Said, String>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.here.notify_one();
            self.word.notified().await;
            Ok(Said { text: self.says.lock().unwrap().clone(), tokens: 1 })
        })
    }
}

impl Writer {
    fn will_say(&self, text: &str) {
        text.clone_into(&mut self.says.lock().unwrap());
    }
}

fn fenced(name: &str, module: &str) -> String {
    format!("```ts\n// name: {name}\n{module}```")
}

async fn acquire(house: &House, caller: &Caller) -> Acquired {
    let hints = AcquireHints::default();
    house.engine.acquire(caller, "shop", "Something with orders", hints).await.unwrap()
}

/// A job a person allowed, whose model has been asked and says nothing yet.
async fn begun(house: &House) -> (Caller, String) {
    let (_, caller) = house.furnished().await;
    let Acquired::Asked(asked) = acquire(house, &caller).await else { panic!("not asked") };
    let person = house.person().await;
    house.engine.accept_permission(&person, &asked.ask.unwrap().id).await.unwrap();
    let Acquired::Job(job) = acquire(house, &caller).await else { panic!("asked again") };
    house.writer.here.notified().await;
    (caller, job.job_id)
}

async fn withdraw(house: &House, caller: &Caller) {
    let agent = &caller.agent().id;
    let allowed = house.engine.permissions(agent).await.unwrap().remove(0);
    let person = house.person().await;
    house.engine.withdraw_permission(&person, agent, &allowed).await.unwrap();
}

async fn ended(house: &House, caller: &Caller, job: &str) -> JobEnd {
    let mut after = 0;
    loop {
        let view = house.engine.acquire_status(caller, job, Some(after)).await.unwrap();
        match view.ended {
            Some(end) => return end,
            None => after = view.after,
        }
    }
}

/// The code it failed with.
async fn failed(house: &House, caller: &Caller, job: &str) -> String {
    match ended(house, caller, job).await {
        JobEnd::Error(error) => error.code,
        JobEnd::Tool(tool) => panic!("published: {tool}"),
    }
}

/// What a person does while the model thinks.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Withdraw,
    Pause,
    Revoke,
}

#[tokio::test]
async fn b068_a_job_ends_when_the_person_takes_back_what_it_needs() {
    for (stop, code) in [
        (Stop::Withdraw, "permission_withdrawn"),
        (Stop::Pause, "agent_paused"),
        (Stop::Revoke, "connection_revoked"),
    ] {
        // A module that would hold, and an answer after which it would be asked again.
        for answer in [fenced("create", &writes()), "I would rather not.".into()] {
            let house = House::new().await;
            house.writer.will_say(&answer);
            house.sandbox.plays("shop__create", posts("{}"));
            let (caller, job) = begun(&house).await;
            let (person, agent) = (house.person().await, &caller.agent().id);
            match stop {
                Stop::Withdraw => withdraw(&house, &caller).await,
                Stop::Pause => {
                    let engine = &house.engine;
                    let paused = engine.set_agent(&person, agent, None, None, None, Some(true));
                    assert!(paused.await.unwrap().paused);
                }
                Stop::Revoke => {
                    let shop = house.engine.connection("shop").await.unwrap();
                    house.engine.revoke_connection(&person, &shop.id).await.unwrap();
                }
            }
            house.writer.word.notify_one();
            assert_eq!(failed(&house, &caller, &job).await, code, "{stop:?}: {answer}");
            assert_eq!(house.writer.asked.load(Ordering::SeqCst), 1, "{stop:?}: {answer}");
            assert!(house.sandbox.ran.lock().unwrap().is_empty(), "{stop:?}: a dry run was made");
            assert!(house.engine.read_tool_source(&tool("create"), None).await.is_err());
        }
    }
}

#[tokio::test]
async fn b068_a_permission_taken_back_in_the_dry_run_publishes_nothing() {
    for taken_back in [false, true] {
        let house = House::new().await;
        house.writer.will_say(&fenced("create", &writes()));
        let (here, word) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let steps = [vec![Step::Wait(here.clone(), word.clone())], posts("{}")].concat();
        house.sandbox.plays("shop__create", steps);
        let (caller, job) = begun(&house).await;
        house.writer.word.notify_one();
        here.notified().await;
        if taken_back {
            withdraw(&house, &caller).await;
        }
        word.notify_one();
        match ended(&house, &caller, &job).await {
            JobEnd::Tool(published) => assert!(!taken_back, "{published}"),
            JobEnd::Error(error) => {
                assert!(taken_back, "{error:?}");
                assert_eq!(error.code, "permission_withdrawn");
            }
        }
        let published = house.engine.read_tool_source(&tool("create"), None).await;
        assert_eq!(published.is_err(), taken_back);
    }
}

#[tokio::test]
async fn b084_a_job_taken_up_after_a_restart_reads_the_permission_anew() {
    let house = House::new().await;
    let (caller, job) = begun(&house).await;
    withdraw(&house, &caller).await;
    let house = house.restarted().await;
    house.writer.will_say(&fenced("list", &reads()));
    assert_eq!(failed(&house, &caller, &job).await, "permission_withdrawn");
    assert_eq!(house.writer.asked.load(Ordering::SeqCst), 0, "the model was asked again");
}
