//! Behaviours I, the low-level set: who has it, what comes of a command's files,
//! what it may use, and whom a page is asked of.

use crate::house::{House, sent};
use cambium_engine::port::{Permission, ProposalState};
use cambium_engine::{
    Caller, Command, CommandEnd, CommandFault, Envelope, Event, Live, LowLevel, Readable, Status,
    Workbench, readable,
};
use cambium_proxy::{AuditKind, BoxFuture};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Plays how a command ends, and keeps what it was given.
#[derive(Default)]
pub(crate) struct Puppet {
    next: Mutex<Vec<Result<CommandEnd, CommandFault>>>,
    given: Mutex<Vec<Command>>,
    /// Told when a command has begun and has nothing to play.
    here: Notify,
}

impl Puppet {
    fn plays(&self, end: CommandEnd) {
        self.next.lock().unwrap().push(Ok(end));
    }
}

impl Workbench for Puppet {
    fn run<'a>(&'a self, command: &'a Command) -> BoxFuture<'a, Result<CommandEnd, CommandFault>> {
        Box::pin(async move {
            self.given.lock().unwrap().push(command.clone());
            let next = self.next.lock().unwrap().pop();
            match next {
                Some(end) => end,
                None => {
                    self.here.notify_one();
                    std::future::pending().await
                }
            }
        })
    }

    fn readable<'a>(&'a self, html: &'a [u8]) -> BoxFuture<'a, Result<Readable, String>> {
        Box::pin(async move { Ok(readable(html)) })
    }
}

async fn furnished() -> (House, Caller) {
    let house = House::new().await;
    let (agent, caller) = house.agent("claude").await;
    let person = house.console().await;
    house.engine.set_low_level(&person, &agent.id, LowLevel::All).await.unwrap();
    (house, caller)
}

fn live() -> Live {
    Live::new(CancellationToken::new())
}

async fn command(house: &House, caller: &Caller, text: &str) -> Envelope {
    house.engine.run_command(caller, text, None, live()).await.unwrap()
}

fn left(files: &[(&str, &[u8])]) -> CommandEnd {
    let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
    CommandEnd { code: 3, stdout: "out".into(), files, ..CommandEnd::default() }
}

#[tokio::test]
async fn b087_commands_and_pages_are_off_until_a_person_switches_them_on() {
    let house = House::new().await;
    let (agent, caller) = house.agent("claude").await;
    let refused = house.engine.run_command(&caller, "true", None, live()).await.unwrap_err();
    assert_eq!(refused.code(), "tool_not_found");
    let refused = house.engine.read_web_page(&caller, "https://a.example", live()).await;
    assert_eq!(refused.unwrap_err().code(), "tool_not_found");
    let person = house.console().await;
    house.engine.set_low_level(&person, &agent.id, LowLevel::All).await.unwrap();
    house.workbench.plays(CommandEnd::default());
    assert_eq!(command(&house, &caller, "true").await.status, Status::Ok);
    house.engine.set_low_level(&person, &agent.id, LowLevel::WriteFile).await.unwrap();
    let refused = house.engine.run_command(&caller, "true", None, live()).await.unwrap_err();
    assert_eq!(refused.code(), "tool_not_found");
}

#[tokio::test]
async fn b087_a_command_has_the_workspace_and_what_it_leaves_comes_back_as_far_as_it_fits() {
    let (house, caller) = furnished().await;
    house.engine.write_file(&caller, "a.ts", "one").await.unwrap();
    let long = vec![b'x'; 256 * 1024 + 1];
    house.workbench.plays(left(&[
        ("a.ts", b"two"),
        ("tools/b.ts", b"new"),
        ("../out", b"x"),
        ("/etc/x", b"x"),
        (".ssh/key", b"x"),
        ("n\nl", b"x"),
        ("bin", b"\xff\xfe"),
        ("long", &long),
    ]));
    let answer = command(&house, &caller, "make").await;
    let result = answer.result.unwrap();
    assert_eq!((&result["exitCode"], &result["stdout"]), (&json!(3), &json!("out")));
    assert_eq!(result["changedFiles"], json!(["a.ts", "tools/b.ts"]));
    assert!(answer.notes[0].contains("not brought back"), "{:?}", answer.notes);
    let given = house.workbench.given.lock().unwrap()[0].clone();
    assert_eq!(given.files, [("a.ts".to_owned(), "one".to_owned())]);
    assert_eq!((given.text.as_str(), given.wall), ("make", Duration::from_secs(60)));
    assert_eq!(house.engine.workspace_file(&caller, "a.ts").await.unwrap(), "two");
    let missing = house.engine.workspace_file(&caller, "bin").await.unwrap_err();
    assert!(missing.to_string().contains("it has a.ts, tools/b.ts"), "{missing}");
    // Another agent's workspace is its own.
    let (_, other) = house.agent("codex").await;
    assert!(house.engine.workspace_file(&other, "a.ts").await.is_err());
}

fn removed(code: i32, files: &[(&str, &[u8])], gone: &[&str]) -> CommandEnd {
    let gone = gone.iter().map(|path| (*path).to_owned()).collect();
    CommandEnd { code, gone, ..left(files) }
}

#[tokio::test]
async fn b087_a_path_is_a_file_or_a_folder_and_a_command_may_turn_one_into_the_other() {
    let (house, caller) = furnished().await;
    let write = |path: &'static str| house.engine.write_file(&caller, path, "x");
    write("a").await.unwrap();
    write("tools/b").await.unwrap();
    for path in ["a/b", "a/b/c", "tools"] {
        let refused = write(path).await.unwrap_err();
        assert_eq!(refused.code(), "argument_invalid", "{path}");
        assert!(refused.to_string().contains("cannot be a folder too"), "{refused}");
    }
    // Beside, not below.
    write("a.b").await.unwrap();
    write("tool").await.unwrap();
    let kept = write("a").await.unwrap().files;
    assert_eq!(kept, ["a", "a.b", "tool", "tools/b"]);
    // However it ended, what it left is not beside what it took the place of.
    let left: [(&str, &[u8]); 2] = [("a/b", b"new"), ("tools", b"file")];
    house.workbench.plays(removed(3, &left, &["a", "tools/b"]));
    let result = command(&house, &caller, "turn").await.result.unwrap();
    assert_eq!(result["changedFiles"], json!(["a/b", "tools"]));
    assert_eq!(result["removedFiles"], json!(["a", "tools/b"]));
    assert_eq!(write("z").await.unwrap().files, ["a.b", "a/b", "tool", "tools", "z"]);
    // What had no place is named.
    let unplaced = vec!["a/b".to_owned()];
    house.workbench.plays(CommandEnd { unplaced, ..CommandEnd::default() });
    let notes = command(&house, &caller, "true").await.notes;
    assert!(notes[0].contains("1 of the workspace's files, first `a/b`"), "{notes:?}");
}

#[tokio::test]
async fn b087_what_a_command_removed_is_removed_if_it_ended_well_and_makes_room() {
    let (house, caller) = furnished().await;
    for number in 0..200 {
        house.engine.write_file(&caller, &format!("f{number}"), "x").await.unwrap();
    }
    assert!(house.engine.write_file(&caller, "more", "x").await.is_err());
    house.workbench.plays(removed(1, &[], &["f0"]));
    let result = command(&house, &caller, "rm f0; false").await.result.unwrap();
    assert_eq!(result["removedFiles"], json!([]));
    assert!(house.engine.workspace_file(&caller, "f0").await.is_ok());
    // A file that is none of the agent's is none to remove.
    house.workbench.plays(removed(0, &[("0", b"new"), ("f1", b"edited")], &["f0", "other"]));
    let result = command(&house, &caller, "rm f0").await.result.unwrap();
    assert_eq!(result["removedFiles"], json!(["f0"]));
    assert_eq!(result["changedFiles"], json!(["f1", "0"]), "edits first");
    assert!(house.engine.workspace_file(&caller, "f0").await.is_err());
    assert_eq!(house.engine.workspace_file(&caller, "0").await.unwrap(), "new");
}

#[tokio::test]
async fn b087_a_command_whose_end_was_told_has_no_place_any_more() {
    let (house, caller) = furnished().await;
    house.workbench.plays(left(&[]));
    let run = command(&house, &caller, "true").await.run.unwrap();
    let again = house.engine.wait_for_process(&caller, &run, Duration::ZERO).await;
    assert_eq!(again.unwrap_err().code(), "run_not_found");
}

#[tokio::test]
async fn b087_a_command_is_recorded_before_it_runs_and_when_it_has_ended() {
    let (house, caller) = furnished().await;
    house.workbench.plays(left(&[]));
    let answer = command(&house, &caller, "echo hi").await;
    let rows = house.audited().await;
    let rows: Vec<_> = rows.iter().filter(|row| row.kind == AuditKind::Command).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].decision.as_str(), &rows[0].notes), ("run", &vec!["echo hi".to_owned()]));
    assert_eq!((rows[1].decision.as_str(), &rows[1].notes), ("ended", &vec!["exit:3".to_owned()]));
    assert!(rows.iter().all(|row| Some(&row.run) == answer.run.as_ref() && row.digest.is_some()));
    for (fault, code) in [
        (CommandFault::Timeout(Duration::from_secs(1)), "timeout"),
        (CommandFault::Output, "output_limit"),
        (CommandFault::Unavailable("user_namespace: no".into()), "sandbox_unavailable"),
    ] {
        house.workbench.next.lock().unwrap().push(Err(fault));
        assert_eq!(command(&house, &caller, "x").await.code, Some(code));
        assert_eq!(house.audited().await.last().unwrap().notes, [code]);
    }
}

#[tokio::test]
async fn b087_one_command_of_an_agent_runs_at_a_time_and_ends_with_its_caller_or_its_pause() {
    let (house, caller) = furnished().await;
    let cancel = CancellationToken::new();
    let (engine, as_caller) = (house.engine.clone(), caller.clone());
    let live = Live::new(cancel.clone());
    let first = tokio::spawn(async move {
        engine.run_command(&as_caller, "sleep 1000", Some(9_999), live).await
    });
    house.workbench.here.notified().await;
    assert_eq!(house.workbench.given.lock().unwrap()[0].wall, Duration::from_secs(600));
    let busy = house.engine.run_command(&caller, "true", None, Live::new(cancel.clone())).await;
    assert_eq!(busy.unwrap_err().code(), "busy");
    cancel.cancel();
    let run = first.await.unwrap().unwrap().run.unwrap();
    let ended = house.engine.wait_for_process(&caller, &run, Duration::from_secs(20)).await;
    assert_eq!(ended.unwrap().code, Some("cancelled"));

    let (engine, as_caller) = (house.engine.clone(), caller.clone());
    let second = tokio::spawn(async move {
        engine.run_command(&as_caller, "sleep", None, Live::new(CancellationToken::new())).await
    });
    house.workbench.here.notified().await;
    let person = house.console().await;
    let agent = &caller.agent().id;
    house.engine.set_agent(&person, agent, None, None, None, Some(true)).await.unwrap();
    assert_eq!(second.await.unwrap().unwrap().code, Some("cancelled"));
    let paused = house.engine.authenticate("no").await.unwrap_err();
    assert_eq!(paused.code(), "unauthenticated");
    // What another agent runs is not this one's to collect.
    let (_, other) = house.agent("codex").await;
    let foreign = house.engine.wait_for_process(&other, &run, Duration::ZERO).await.unwrap_err();
    assert_eq!(foreign.code(), "run_not_found");
}

#[tokio::test]
async fn b087_a_command_that_is_none_is_refused_by_its_argument() {
    let (house, caller) = furnished().await;
    for text in ["", "  ", "a\0b", &"x".repeat(16 * 1024 + 1)] {
        let refused = house.engine.run_command(&caller, text, None, live()).await.unwrap_err();
        assert_eq!(refused.code(), "argument_invalid");
    }
    assert!(house.workbench.given.lock().unwrap().is_empty());
}

async fn read(house: &House, caller: &Caller, url: &str) -> Result<Envelope, &'static str> {
    house.engine.read_web_page(caller, url, live()).await.map_err(|error| error.code())
}

#[tokio::test]
async fn b087_a_page_is_asked_for_once_a_host_and_the_yes_can_be_taken_back() {
    let (house, caller) = furnished().await;
    let mut events = house.engine.events();
    let first = read(&house, &caller, "https://docs.acme.com/a").await.unwrap();
    assert_eq!(first.status, Status::AwaitingApproval);
    let id = first.ask.as_ref().unwrap().id.clone();
    assert_eq!(sent(&mut events), [Event::Proposed(id.clone())]);
    // Another page of the host is the same question, another host another.
    assert_eq!(read(&house, &caller, "https://docs.acme.com/b").await.unwrap().ask, first.ask);
    assert_ne!(read(&house, &caller, "https://evil.acme.com/").await.unwrap().ask, first.ask);
    assert_eq!(house.let_go("GET").await, 0, "something was sent before the person's word");

    let person = house.console().await;
    house.engine.accept_permission(&person, &id).await.unwrap();
    assert_eq!(house.engine.proposal(&id).await.unwrap().state, ProposalState::Accepted);
    let settled = house.engine.accept_permission(&person, &id).await.unwrap_err();
    assert_eq!(settled.code(), "ask_settled");
    // It is asked no more; here the name leads to this machine, which the guard refuses.
    assert_eq!(read(&house, &caller, "https://docs.acme.com/a").await, Err("address_denied"));
    assert_eq!(house.let_go("GET").await, 1);
    let (_, other) = house.agent("codex").await;
    let allowed = house.engine.permissions(&other.agent().id).await.unwrap();
    assert_eq!(allowed, [], "the yes was for one agent");

    let house = house.restarted().await;
    let host = Permission::ReadPages { host: "docs.acme.com".into() };
    let agent = &caller.agent().id;
    assert_eq!(house.engine.permissions(agent).await.unwrap(), std::slice::from_ref(&host));
    let person = house.console().await;
    house.engine.withdraw_permission(&person, agent, &host).await.unwrap();
    house.clock.advance(1);
    let again = read(&house, &caller, "https://docs.acme.com/a").await.unwrap();
    assert_eq!(again.status, Status::AwaitingApproval);
    house.engine.refuse_proposal(&person, &again.ask.unwrap().id).await.unwrap();
    assert_eq!(read(&house, &caller, "https://docs.acme.com/").await, Err("proposal_refused"));
}

#[tokio::test]
async fn b087_an_address_that_is_none_asks_nobody() {
    let (house, caller) = furnished().await;
    for (url, code) in [
        ("http://docs.acme.com/", "url_invalid"),
        ("https://127.0.0.1/", "address_denied"),
        ("https://localhost/", "address_denied"),
        ("https://docs.acme.com:8443/", "url_invalid"),
    ] {
        assert_eq!(read(&house, &caller, url).await, Err(code), "{url}");
    }
    assert_eq!(house.engine.waiting().await.unwrap(), 0);
}

#[tokio::test]
async fn b087_pages_of_one_agent_have_a_pace() {
    let (house, caller) = furnished().await;
    let ask = read(&house, &caller, "https://docs.acme.com/").await.unwrap().ask.unwrap();
    house.engine.accept_permission(&house.console().await, &ask.id).await.unwrap();
    for _ in 0..20 {
        assert_eq!(read(&house, &caller, "https://docs.acme.com/").await, Err("address_denied"));
    }
    assert_eq!(read(&house, &caller, "https://docs.acme.com/").await, Err("rate_limited"));
    house.clock.advance(60_000);
    assert_eq!(read(&house, &caller, "https://docs.acme.com/").await, Err("address_denied"));
}

#[tokio::test]
async fn a_permission_cannot_be_entered_and_a_credential_cannot_be_allowed() {
    let (house, caller) = furnished().await;
    let shop = house.shop().await;
    let page = read(&house, &caller, "https://docs.acme.com/").await.unwrap().ask.unwrap();
    let asked = house.engine.propose_credential(&caller, shop.id.as_str(), "").await.unwrap();
    let person = house.person().await;
    let allowed = house.engine.accept_permission(&person, &asked.ask.unwrap().id).await;
    assert_eq!(allowed.unwrap_err().code(), "argument_invalid");
    let secret = cambium_proxy::Secret::new(b"x".to_vec());
    let entered = house.engine.accept_credential(&person, &page.id, secret, true).await;
    assert_eq!(entered.unwrap_err().code(), "argument_invalid");
    let view: Value = serde_json::to_value(house.engine.proposal(&page.id).await.unwrap()).unwrap();
    assert_eq!(view["wants"]["permission"], json!({ "to": "read_pages", "host": "docs.acme.com" }));
}
