//! The lines that connect a harness, ready to paste. The token is named, never
//! printed: what a terminal shows ends up in its history.

/// Lines for Claude Code, Codex and Cursor against a server at `url`.
pub(crate) fn lines(url: &str) -> String {
    format!(
        r#"Claude Code
  claude mcp add --transport http cambium {url}/mcp --header "Authorization: Bearer $CAMBIUM_TOKEN"

Codex, in ~/.codex/config.toml
  [mcp_servers.cambium]
  url = "{url}/mcp"
  bearer_token_env_var = "CAMBIUM_TOKEN"

Cursor, in ~/.cursor/mcp.json
  {{"mcpServers": {{"cambium": {{"url": "{url}/mcp", "headers": {{"Authorization": "Bearer ${{env:CAMBIUM_TOKEN}}"}}}}}}}}

Any harness that starts a process
  CAMBIUM_TOKEN=… cambium mcp
"#
    )
}
