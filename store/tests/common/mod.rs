//! What the store's tests share: a directory of their own, and rows that fit
//! together.
#![allow(dead_code, unreachable_pub)]

use cambium_engine::port::{
    AgentStore, AskReason, AskRow, AskState, ConnectionStore, PersonRow, PersonStore, Pointer,
    PublishRow, RunRow, ToolStore, VersionRow,
};
use cambium_engine::{Agent, ToolKind, ToolName, Version};
use cambium_proxy::{
    AgentId, Answer, AskId, AuditRow, CallSite, Connection, ConnectionId, ConnectionStatus,
    ContentHash, DecisionRow, Effect, Hints, Host, MacKey, MethodPattern, PathPattern, PersonId,
    RunId, Scheme,
};
use cambium_store::Store;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes when it is dropped.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("cambium.db")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The key of every ledger here.
pub fn key() -> MacKey {
    MacKey::new([5; 32])
}

pub fn person() -> PersonId {
    PersonId::new("person-1")
}

pub fn agent_id(n: u32) -> AgentId {
    AgentId::new(format!("agent-{n}"))
}

pub fn connection_id(n: u32) -> ConnectionId {
    ConnectionId::new(format!("connection-{n}"))
}

pub fn tool(name: &str) -> ToolName {
    ToolName::new("shop", name).unwrap()
}

pub fn hash(n: u32) -> ContentHash {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    ContentHash(bytes)
}

pub fn agent(n: u32) -> Agent {
    Agent {
        id: agent_id(n),
        person: person(),
        name: format!("agent {n}"),
        cap: 20,
        idle_days: 21,
        paused: false,
        created_ms: i64::from(n),
    }
}

pub fn connection(n: u32) -> Connection {
    Connection {
        id: connection_id(n),
        person: person(),
        slug: format!("shop-{n}"),
        vendor: "shop".into(),
        display_name: "The shop".into(),
        hosts: vec![Host { label: "api".into(), name: "api.shop.test".into(), port: 443 }],
        scheme: Scheme::ApiKeyHeader { header: "x-key".into(), prefix: String::new() },
        exceptions: vec![cambium_proxy::Exception {
            cidr: "127.0.0.0/8".parse().unwrap(),
            port: 4,
        }],
        ca_pem: Some("pem".into()),
        overrides: cambium_proxy::Overrides::default(),
        generation: 1,
        status: ConnectionStatus::Connected,
    }
}

/// A person, agents 1 and 2, connections 1 and 2.
pub async fn fill(store: &Store) {
    let row = PersonRow { id: person(), passphrase: None, created_ms: 1 };
    store.insert_person(&row).await.unwrap();
    for n in [1, 2] {
        store.insert_agent(&agent(n), &[n as u8; 32]).await.unwrap();
        store.insert_connection(&connection(n), &[], 5).await.unwrap();
    }
}

pub async fn filled(directory: &Directory) -> Store {
    let store = Store::open(directory.database(), key()).await.unwrap();
    fill(&store).await;
    store
}

pub fn version(name: &str, number: u32, on: u32) -> VersionRow {
    VersionRow {
        version: Version {
            person: person(),
            tool: tool(name),
            number,
            hash: hash(number),
            kind: ToolKind::Typescript,
            title: Some("A title".into()),
            description: "Lists \"orders\" \u{202e}\u{0}'; DROP TABLE versions; --".into(),
            input_schema: json!({"type": "object", "properties": {"limit": {"maximum": 1.5}}}),
            output_schema: None,
            example_input: Some(json!({"limit": 1})),
            source: "export default async () => 1;".into(),
            javascript: "export default async () => 1;\n".into(),
            sdks: Vec::new(),
            component: None,
            hints: Hints { read_only: false, destructive: false },
            sites: vec![CallSite {
                method: MethodPattern::Exactly("POST".into()),
                host: None,
                path: PathPattern::Template("/orders/{}".into()),
            }],
            connection: connection_id(on),
            published_by: Some(agent_id(1)),
            published_ms: 1_000 + i64::from(number),
        },
        mac: vec![number as u8; 32],
    }
}

pub fn pointer(name: &str, sequence: u64, number: u32) -> Pointer {
    Pointer {
        person: person(),
        tool: tool(name),
        sequence,
        number,
        hash: hash(number),
        at_ms: 1_000 + i64::from(number),
        mac: vec![7; 32],
    }
}

pub fn publish(name: &str, number: u32, on: u32) -> PublishRow {
    PublishRow {
        version: Some(version(name, number, on)),
        pointer: pointer(name, u64::from(number), number),
        promote_for: Some(agent_id(1)),
    }
}

pub async fn published(store: &Store, name: &str, on: u32) {
    store.publish(&publish(name, 1, on)).await.unwrap();
}

pub fn ask(id: &str, name: &str) -> AskRow {
    AskRow {
        id: AskId::new(id),
        person: person(),
        agent: agent_id(1),
        tool: tool(name),
        version: hash(1),
        number: 1,
        connection: connection_id(1),
        generation: 1,
        reason: AskReason::FirstCall,
        run: RunId::new("run-1"),
        effect: Effect::Write,
        method: "POST".into(),
        authority: "api.shop.test".into(),
        target: "/orders?x=1".into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: vec![0, 159, 146, 150],
        digest: hash(99),
        state: AskState::Open,
        opened_ms: 100,
        expires_ms: 1_000,
        settled_ms: None,
    }
}

pub fn decision(ask: &AskRow, sequence: u64, answer: Answer) -> DecisionRow {
    DecisionRow {
        ask: ask.id.clone(),
        sequence,
        person: person(),
        agent: ask.agent.clone(),
        tool: ask.tool.to_string(),
        version: ask.version,
        connection: ask.connection.clone(),
        generation: ask.generation,
        digest: ask.digest,
        answer,
        channel: "console".into(),
        at_ms: 200 + i64::try_from(sequence).unwrap(),
        mac: vec![9; 32],
    }
}

pub fn run(id: &str, name: &str) -> RunRow {
    RunRow {
        id: RunId::new(id),
        person: person(),
        agent: agent_id(1),
        tool: tool(name),
        number: 1,
        version: hash(1),
        connection: connection_id(1),
        dry_run: true,
        detached: false,
        node: "node-1".into(),
        call_key: None,
        begun_ms: 10,
        outcome: None,
        ended_ms: None,
        evidence: None,
    }
}

pub fn audit(node: &str, sequence: u64) -> AuditRow {
    let link = |n: u64| [n.to_be_bytes(); 4].concat();
    AuditRow {
        node: node.into(),
        sequence,
        event: json!({"agent": "agent-1", "n": sequence}).to_string(),
        previous: link(sequence - 1),
        hash: link(sequence),
        mac: vec![3; 32],
    }
}
