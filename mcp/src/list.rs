//! `tools/list`: the fixed tools and exactly the agent's working set, in one
//! order. A tool whose schema a client could not take is listed with an open
//! one instead: one bad tool must never cost an agent its whole list. Pure.

use crate::dispatch::EXECUTE;
use cambium_engine::{Connection, ListedTool, LowLevel};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// Largest schema that is listed, bytes; a harness sends every one of them to
/// its model with each turn.
const SCHEMA_BYTES_MAX: usize = 32 * 1024;

/// The whole list of one agent.
pub(crate) fn tools(
    low_level: LowLevel,
    connections: &[Connection],
    mut promoted: Vec<ListedTool>,
) -> Vec<Tool> {
    promoted.sort_by_cached_key(|listed| listed.tool.to_string());
    promoted.dedup_by(|one, other| one.tool == other.tool);
    let mut tools: Vec<Tool> = crate::meta_tools::listed(low_level).cloned().collect();
    tools.extend(connections.iter().map(execute));
    tools.extend(promoted.into_iter().map(authored));
    tools
}

/// What a list of promoted tools costs a harness each turn beyond the fixed
/// tools: characters of its JSON, by four.
pub fn listed_tokens(promoted: Vec<ListedTool>) -> usize {
    let tools: Vec<Tool> = promoted.into_iter().map(authored).collect();
    serde_json::to_string(&tools).map_or(0, |text| text.chars().count() / 4)
}

/// The tool that sends one request over a connection.
fn execute(connection: &Connection) -> Tool {
    let Connection { slug, vendor, hosts, .. } = connection;
    let host = hosts.first().map_or("", |host| host.name.as_str());
    let description = format!(
        "Send one request to {vendor} over the connection {slug} ({host}), when no tool fits. GET \
         and HEAD go at once; anything else asks a person each time. The credential is added."
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "method": { "type": "string" },
            "path": { "type": "string", "description": "Begins with /." },
            "host": { "type": "string", "description": "Another host of the connection, by label." },
            "query": { "type": "object" },
            "headers": { "type": "object" },
            "body": { "type": ["object", "array", "string"], "description": "JSON, or text as it is." },
            "dryRun": { "type": "boolean" },
        },
        "required": ["method", "path"],
        "additionalProperties": false,
    });
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(format!("{EXECUTE}{slug}"), description, Arc::new(schema)).with_annotations(
        ToolAnnotations::new().read_only(false).destructive(true).open_world(true),
    )
}

/// The annotations of an authored tool.
pub(crate) fn annotations(listed: &ListedTool) -> ToolAnnotations {
    let annotations = ToolAnnotations::new()
        .read_only(listed.hints.read_only)
        .destructive(listed.hints.destructive)
        .open_world(true);
    match listed.idempotent {
        true => annotations.idempotent(true),
        // unsaid: it only ever follows from the methods
        false => annotations,
    }
}

fn authored(listed: ListedTool) -> Tool {
    let annotations = annotations(&listed);
    let (schema, description) = match listable(listed.input_schema) {
        Some(schema) => (schema, listed.description),
        None => {
            let mut open = JsonObject::new();
            open.insert("type".into(), Value::from("object"));
            let note = "[Its input schema could not be listed; read_tool_source shows it.]";
            (open, format!("{} {note}", listed.description))
        }
    };
    let tool = Tool::new(listed.tool.to_string(), description, Arc::new(schema))
        .with_annotations(annotations);
    match listed.title {
        Some(title) => tool.with_title(title),
        None => tool,
    }
}

/// The schema, when clients are known to take one like it.
fn listable(schema: Value) -> Option<JsonObject> {
    let Value::Object(schema) = schema else { return None };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    if ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| schema.contains_key(*key)) {
        return None;
    }
    let bytes = serde_json::to_vec(&schema).ok()?.len();
    (bytes <= SCHEMA_BYTES_MAX).then_some(schema)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use cambium_engine::ToolName;

    /// What twenty promoted tools of one vendor may cost a harness each turn.
    const PROMOTED_TOKENS_MAX: usize = 2_000;

    /// Twenty operations of GitHub as an agent would author them: a description
    /// of a sentence, the parameters the API names, each with a few words.
    const GITHUB: [(&str, &str, &str); 20] = [
        (
            "list-issues",
            "Lists the issues of a repository, newest first.",
            "owner repo state labels per_page",
        ),
        ("get-issue", "Reads one issue with its body.", "owner repo issue_number"),
        ("create-issue", "Opens an issue.", "owner repo title body labels"),
        (
            "update-issue",
            "Changes title, body, state or labels of an issue.",
            "owner repo issue_number title body state",
        ),
        (
            "comment-on-issue",
            "Adds a comment to an issue or a pull request.",
            "owner repo issue_number body",
        ),
        (
            "list-comments",
            "Lists the comments of an issue or a pull request.",
            "owner repo issue_number per_page",
        ),
        (
            "list-pull-requests",
            "Lists the pull requests of a repository.",
            "owner repo state base per_page",
        ),
        (
            "get-pull-request",
            "Reads one pull request with its branches and state.",
            "owner repo pull_number",
        ),
        (
            "list-pull-files",
            "Lists the files a pull request changes, with their patches.",
            "owner repo pull_number per_page",
        ),
        (
            "create-pull-request",
            "Opens a pull request from one branch into another.",
            "owner repo title head base body",
        ),
        ("merge-pull-request", "Merges a pull request.", "owner repo pull_number merge_method"),
        ("list-reviews", "Lists the reviews of a pull request.", "owner repo pull_number"),
        ("list-branches", "Lists the branches of a repository.", "owner repo per_page"),
        (
            "list-commits",
            "Lists the commits of a branch, newest first.",
            "owner repo sha path per_page",
        ),
        ("get-file", "Reads a file at a branch or commit.", "owner repo path ref"),
        ("search-code", "Searches code over all repositories the token can see.", "q per_page"),
        ("search-issues", "Searches issues and pull requests.", "q sort per_page"),
        ("list-releases", "Lists the releases of a repository.", "owner repo per_page"),
        (
            "list-workflow-runs",
            "Lists the runs of a workflow, newest first.",
            "owner repo workflow_id status per_page",
        ),
        ("rerun-workflow", "Starts a workflow run again.", "owner repo run_id"),
    ];

    fn promoted() -> Vec<ListedTool> {
        let tool = |(name, description, parameters): &(&str, &str, &str)| {
            let parameters: Vec<&str> = parameters.split(' ').collect();
            let property = |name: &&str| {
                let number = name.ends_with("_number") || name.ends_with("_page");
                let kind = if number { "integer" } else { "string" };
                ((*name).to_owned(), json!({ "type": kind }))
            };
            let properties: JsonObject = parameters.iter().map(property).collect();
            let required: Vec<_> = parameters.iter().take(2).collect();
            let reads = ["list", "get", "search"].iter().any(|verb| name.starts_with(verb));
            ListedTool {
                tool: ToolName::new("github", name).unwrap(),
                title: None,
                description: (*description).to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                }),
                hints: serde_json::from_value(json!({ "readOnly": reads, "destructive": false }))
                    .unwrap(),
                idempotent: reads,
            }
        };
        GITHUB.iter().map(tool).collect()
    }

    #[test]
    fn twenty_promoted_tools_stay_cheap() {
        let tokens = listed_tokens(promoted());
        assert!(tokens <= PROMOTED_TOKENS_MAX, "{tokens} tokens");
        assert!(tokens > 1_000, "the tools are not made of nothing: {tokens} tokens");
    }
}
