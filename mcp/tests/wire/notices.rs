//! List-changed notices: to the agent whose list changed, and to no other.

use super::support::{Client, Era, Heard, Over, READ, TestAgent, World, connect, connect_stream};
use rmcp::model::{ServerNotification, SubscriptionFilter};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

async fn with_tools() -> World {
    let world = World::new().await;
    for name in ["one", "two", "three"] {
        world.publish("acme", name, READ).await;
    }
    world
}

async fn heard(client: &mut Client) {
    let heard = tokio::time::timeout(SOON, client.heard.recv()).await.unwrap().unwrap();
    assert!(matches!(heard, Heard::ListChanged), "{heard:?}");
}

/// A change of which the agent must hear, after which nothing said before it
/// can still be on its way.
async fn mark(world: &World, agent: &TestAgent, client: &mut Client) {
    world.promote(agent, "acme", "three").await;
    heard(client).await;
    assert!(client.heard.try_recv().is_err(), "one notice too many");
}

#[tokio::test]
async fn b008_a_change_is_told_to_every_session_of_that_agent_and_no_other() {
    for over in [Over::Http, Over::Stream] {
        let world = with_tools().await;
        let (one, two) = (world.agent("one").await, world.agent("two").await);
        let mut first = connect(&world, &one.token, over, Era::Initialize).await;
        let mut second = connect_stream(&world, &one.token, Era::Initialize).await;
        let mut other = connect(&world, &two.token, over, Era::Initialize).await;
        assert!(
            first.service.peer_info().unwrap().capabilities.tools.as_ref().unwrap().list_changed
                == Some(true)
        );

        first.call("promote", json!({"vendor": "acme", "name": "one"})).await;
        heard(&mut first).await;
        heard(&mut second).await;
        // the same again changes nothing and says nothing
        first.call("promote", json!({"vendor": "acme", "name": "one"})).await;
        first.call("demote", json!({"vendor": "acme", "name": "two"})).await;
        first.call("demote", json!({"vendor": "acme", "name": "one"})).await;
        heard(&mut first).await;
        heard(&mut second).await;

        mark(&world, &two, &mut other).await;
        mark(&world, &one, &mut first).await;
        for client in [first, second, other] {
            client.service.cancel().await.unwrap();
        }
        world.close().await;
    }
}

#[tokio::test]
async fn b008_a_subscription_of_the_newer_era_hears_its_own_agents_changes() {
    for over in [Over::Http, Over::Stream] {
        let world = with_tools().await;
        let (one, two) = (world.agent("one").await, world.agent("two").await);
        let client = connect(&world, &one.token, over, Era::Discover).await;
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.service.listen(filter).await.unwrap();

        world.promote(&two, "acme", "one").await;
        world.promote(&one, "acme", "one").await;
        let told = tokio::time::timeout(SOON, subscription.next()).await.unwrap().unwrap();
        assert!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))));
        world.promote(&one, "acme", "one").await;
        world.promote(&one, "acme", "two").await;
        let told = tokio::time::timeout(SOON, subscription.next()).await.unwrap().unwrap();
        assert!(told.is_some());
        // both of one's changes were told, and nothing of two's was
        let more = tokio::time::timeout(Duration::from_millis(50), subscription.next()).await;
        assert!(more.is_err(), "one notice too many: {more:?}");

        subscription.cancel().await.unwrap();
        client.service.cancel().await.unwrap();
        world.close().await;
    }
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b008_of_a_thousand_agents_with_open_sessions_only_the_right_ones_hear() {
    const AGENTS: usize = 1_000;
    /// Of one open session, both its ends in this process.
    const SESSION_BYTES: u64 = 256 * 1024;
    /// From a change to the last of all who are told of it.
    const TOLD_WITHIN: Duration = Duration::from_secs(1);
    let world = with_tools().await;
    let mut agents = Vec::new();
    for at in 0..AGENTS {
        agents.push(world.agent(&format!("agent-{at}")).await);
    }
    let before = resident();
    let mut clients = Vec::new();
    for agent in &agents {
        clients.push(connect_stream(&world, &agent.token, Era::Initialize).await);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < AGENTS as u64 * SESSION_BYTES, "{} bytes a session", grown / AGENTS as u64);
    for at in [0, 499, 999] {
        world.promote(&agents[at], "acme", "one").await;
        heard(&mut clients[at]).await;
    }
    // all of them, and after that nothing is left that was meant for another
    world.connection("other").await;
    let all = async {
        for client in &mut clients {
            heard(client).await;
        }
    };
    tokio::time::timeout(TOLD_WITHIN, all).await.expect("all are told within a second");
    for client in &mut clients {
        assert!(client.heard.try_recv().is_err(), "one notice too many");
    }
    for client in clients {
        client.service.cancel().await.unwrap();
    }
    world.close().await;
}
