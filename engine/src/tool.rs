//! What the toolbox holds: versions of tools, agents, and a tool as a list
//! shows it.

use crate::ToolName;
use cambium_proxy::{AgentId, CallSite, ConnectionId, ContentHash, Hints, PersonId, Sdk};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a version is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A TypeScript module.
    Typescript,
    /// A WebAssembly component.
    Component,
}

/// One version of a tool. Never altered, never deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Whose toolbox.
    pub person: PersonId,
    /// The tool.
    pub tool: ToolName,
    /// 1, 2, 3, ….
    pub number: u32,
    /// SHA-256 over source, schema, emitted JavaScript and bundled files.
    pub hash: ContentHash,
    /// TypeScript or component.
    pub kind: ToolKind,
    /// Shown by clients; optional.
    pub title: Option<String>,
    /// The agent's account of what it does.
    pub description: String,
    /// As written in the module.
    pub input_schema: Value,
    /// As written in the module.
    pub output_schema: Option<Value>,
    /// For dry runs and docs.
    pub example_input: Option<Value>,
    /// The module as published.
    pub source: String,
    /// What runs.
    pub javascript: String,
    /// The packages it imports, as its connection listed them then.
    pub sdks: Vec<Sdk>,
    /// Of a component: the SHA-256 of its file, which the store keeps.
    pub component: Option<ContentHash>,
    /// Derived by the check.
    pub hints: Hints,
    /// Derived by the check.
    pub sites: Vec<CallSite>,
    /// The connection it runs on.
    pub connection: ConnectionId,
    /// The agent that published it; `None` for a person.
    pub published_by: Option<AgentId>,
    /// Milliseconds UTC.
    pub published_ms: i64,
}

/// A harness with its own token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Whose agent.
    pub person: PersonId,
    /// What a person calls it.
    pub name: String,
    /// 1..=500, default 20.
    pub cap: u32,
    /// 1..=3650 days, default 21.
    pub idle_days: u32,
    /// A paused agent's calls are refused.
    pub paused: bool,
    /// Milliseconds UTC.
    pub created_ms: i64,
}

/// A promoted tool as `tools/list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The tool.
    pub tool: ToolName,
    /// Title, if it has one.
    pub title: Option<String>,
    /// The agent's account.
    pub description: String,
    /// Normalised at publish: root `type: object`, no root anyOf/oneOf/allOf.
    pub input_schema: Value,
    /// Annotations.
    pub hints: Hints,
    /// Follows from the methods: all of GET, HEAD, PUT, DELETE.
    pub idempotent: bool,
}

/// Why a tool moved in or out of a working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveCause {
    /// The agent asked.
    Agent,
    /// Published by the agent.
    Publish,
    /// A person moved it.
    Person,
    /// Unused past the idle window.
    Idle,
    /// Over the working-set cap.
    Cap,
    /// Its connection was revoked.
    Revoke,
    /// Its connection came back.
    Reconnect,
}
