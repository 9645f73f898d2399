//! Which tables decide something, what names a row of each, and the text that
//! stands for all its columns. A column added to one of them must be added to
//! its text here: a test compares the two.

use crate::row::{to_word, whole};
use cambium_engine::ToolName;
use cambium_proxy::{AgentId, AskId, ConnectionId, DecisionRow, PersonId, StoreFault};

/// All columns of a row as one JSON array, made by the database, so that no
/// value can pass for another. An ask's body is left out: its digest is in.
macro_rules! seal {
    (persons) => {
        "json_array(person_id, passphrase, created_ms)"
    };
    (codes) => {
        "json_array(hex(code_hash), person_id, expires_ms, used_ms)"
    };
    (sessions) => {
        "json_array(hex(session_hash), person_id, opened_ms, expires_ms, ended_ms)"
    };
    (agents) => {
        "json_array(agent_id, person_id, name, cap, idle_days, paused, created_ms)"
    };
    (agent_tokens) => {
        "json_array(hex(token_hash), person_id, agent_id, revoked_ms)"
    };
    (connections) => {
        "json_array(connection_id, person_id, slug, vendor, display_name, hosts, scheme,
            exceptions, ca_pem, overrides, generation, status, created_ms)"
    };
    (connection_scopes) => {
        "json_array(connection_id, agent_id, person_id)"
    };
    (scope_changes) => {
        "json_array(connection_id, sequence, person_id, agents, at_ms)"
    };
    (asks) => {
        "json_array(ask_id, person_id, agent_id, tool, version, number, connection_id, generation,
            reason, run_id, effect, method, authority, target, headers, digest, opened_ms,
            expires_ms, state, settled_ms)"
    };
    (decisions) => {
        "json_array(agent_id, tool, sequence, person_id, ask_id, version, connection_id,
            generation, digest, answer, channel, at_ms, hex(mac))"
    };
    (permit_uses) => {
        "json_array(ask_id, person_id)"
    };
    (proposals) => {
        "json_array(proposal_id, person_id, agent_id, digest, content, connection_id, state,
            opened_ms, expires_ms, settled_ms)"
    };
    (switches) => {
        "json_array(agent_id, name, sequence, person_id, value, at_ms, hex(mac))"
    };
    (author_jobs) => {
        "json_array(job_id, person_id, agent_id, connection_id, goal, hints, status, attempts,
            tokens, result, created_ms)"
    };
    (documents) => {
        "json_array(connection_id, sequence, person_id, digest, base_path, at_ms)"
    };
    (audit_segments) => {
        "json_array(node, first, last, hex(previous), hex(hash), from_ms, until_ms, at_ms, hex(mac))"
    };
    (pointers) => {
        "json_array(person_id, tool, sequence, number, hash, at_ms, hex(mac))"
    };
}
pub(crate) use seal;

/// A table whose rows decide something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    Persons,
    Codes,
    Sessions,
    Agents,
    AgentTokens,
    Connections,
    ConnectionScopes,
    Asks,
    Decisions,
    PermitUses,
    Proposals,
    Switches,
    Pointers,
    AuditSegments,
    Documents,
    AuthorJobs,
    ScopeChanges,
}

impl Table {
    pub(crate) const ALL: [Self; 17] = [
        Self::Persons,
        Self::Codes,
        Self::Sessions,
        Self::Agents,
        Self::AgentTokens,
        Self::Connections,
        Self::ConnectionScopes,
        Self::Asks,
        Self::Decisions,
        Self::PermitUses,
        Self::Proposals,
        Self::Switches,
        Self::Pointers,
        Self::AuditSegments,
        Self::Documents,
        Self::AuthorJobs,
        Self::ScopeChanges,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Persons => "persons",
            Self::Codes => "codes",
            Self::Sessions => "sessions",
            Self::Agents => "agents",
            Self::AgentTokens => "agent_tokens",
            Self::Connections => "connections",
            Self::ConnectionScopes => "connection_scopes",
            Self::Asks => "asks",
            Self::Decisions => "decisions",
            Self::PermitUses => "permit_uses",
            Self::Proposals => "proposals",
            Self::Switches => "switches",
            Self::Pointers => "pointers",
            Self::AuditSegments => "audit_segments",
            Self::Documents => "documents",
            Self::AuthorJobs => "author_jobs",
            Self::ScopeChanges => "scope_changes",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// How many parts of a row's key say which set it belongs to: the number of
    /// rows of a set is known, so that one taken away is missed.
    pub(crate) fn set_parts(self) -> usize {
        match self {
            // Of a connection, of a node.
            Self::ConnectionScopes | Self::AuditSegments | Self::Documents | Self::ScopeChanges => {
                1
            }
            // Of an agent's switch, of a person's tool.
            Self::Switches | Self::Pointers => 2,
            Self::Persons
            | Self::Codes
            | Self::Sessions
            | Self::Agents
            | Self::AgentTokens
            | Self::Connections
            | Self::Asks
            | Self::Decisions
            | Self::PermitUses
            | Self::Proposals
            | Self::AuthorJobs => 0,
        }
    }

    /// Every row: its key and its text.
    pub(crate) fn every(self) -> &'static str {
        macro_rules! every {
            ($table:ident, $key:literal) => {
                concat!(
                    "SELECT ",
                    $key,
                    " AS row_key, ",
                    seal!($table),
                    " AS seal FROM ",
                    stringify!($table)
                )
            };
        }
        match self {
            Self::Persons => every!(persons, "person_id"),
            Self::Codes => every!(codes, "lower(hex(code_hash))"),
            Self::Sessions => every!(sessions, "lower(hex(session_hash))"),
            Self::Agents => every!(agents, "agent_id"),
            Self::AgentTokens => every!(agent_tokens, "lower(hex(token_hash))"),
            Self::Connections => every!(connections, "connection_id"),
            Self::ConnectionScopes => {
                every!(connection_scopes, "connection_id || '/' || agent_id")
            }
            Self::Asks => every!(asks, "ask_id"),
            Self::Decisions => every!(
                decisions,
                "agent_id || '/' || tool || '/' || sequence || '/' || version || '/' || answer"
            ),
            Self::PermitUses => every!(permit_uses, "ask_id"),
            Self::Proposals => every!(proposals, "proposal_id"),
            Self::Switches => every!(switches, "agent_id || '/' || name || '/' || sequence"),
            Self::Pointers => every!(pointers, "person_id || '/' || tool || '/' || sequence"),
            Self::AuditSegments => every!(audit_segments, "node || '/' || first"),
            Self::AuthorJobs => every!(author_jobs, "job_id"),
            Self::Documents => every!(documents, "connection_id || '/' || sequence"),
            Self::ScopeChanges => every!(scope_changes, "connection_id || '/' || sequence"),
        }
    }

    /// The text of one row, by the parts of its key.
    pub(crate) fn one(self) -> &'static str {
        macro_rules! one {
            ($table:ident, $key:literal) => {
                concat!(
                    "SELECT ",
                    seal!($table),
                    " AS seal FROM ",
                    stringify!($table),
                    " WHERE ",
                    $key
                )
            };
        }
        match self {
            Self::Persons => one!(persons, "person_id = $1"),
            Self::Codes => one!(codes, "code_hash = $1"),
            Self::Sessions => one!(sessions, "session_hash = $1"),
            Self::Agents => one!(agents, "agent_id = $1"),
            Self::AgentTokens => one!(agent_tokens, "token_hash = $1"),
            Self::Connections => one!(connections, "connection_id = $1"),
            Self::ConnectionScopes => {
                one!(connection_scopes, "connection_id = $1 AND agent_id = $2")
            }
            Self::Asks => one!(asks, "ask_id = $1"),
            Self::Decisions => one!(decisions, "agent_id = $1 AND tool = $2 AND sequence = $3"),
            Self::PermitUses => one!(permit_uses, "ask_id = $1"),
            Self::Proposals => one!(proposals, "proposal_id = $1"),
            Self::Switches => one!(switches, "agent_id = $1 AND name = $2 AND sequence = $3"),
            Self::Pointers => one!(pointers, "person_id = $1 AND tool = $2 AND sequence = $3"),
            Self::AuditSegments => one!(audit_segments, "node = $1 AND first = $2"),
            Self::AuthorJobs => one!(author_jobs, "job_id = $1"),
            Self::Documents => one!(documents, "connection_id = $1 AND sequence = $2"),
            Self::ScopeChanges => one!(scope_changes, "connection_id = $1 AND sequence = $2"),
        }
    }
}

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Bytes(Vec<u8>),
    Number(i64),
}

/// Names a row of one of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowName {
    pub(crate) table: Table,
    pub(crate) parts: Vec<Part>,
    /// What of the row the ledger names beside its key.
    pub(crate) more: Option<String>,
}

impl RowName {
    fn text(table: Table, id: &str) -> Self {
        Self { table, parts: vec![Part::Text(id.to_owned())], more: None }
    }

    fn bytes(table: Table, hash: &[u8]) -> Self {
        Self { table, parts: vec![Part::Bytes(hash.to_vec())], more: None }
    }

    pub(crate) fn person(id: &PersonId) -> Self {
        Self::text(Table::Persons, id.as_str())
    }

    pub(crate) fn code(hash: &[u8]) -> Self {
        Self::bytes(Table::Codes, hash)
    }

    pub(crate) fn session(hash: &[u8]) -> Self {
        Self::bytes(Table::Sessions, hash)
    }

    pub(crate) fn agent(id: &AgentId) -> Self {
        Self::text(Table::Agents, id.as_str())
    }

    pub(crate) fn token(hash: &[u8]) -> Self {
        Self::bytes(Table::AgentTokens, hash)
    }

    pub(crate) fn connection(id: &ConnectionId) -> Self {
        Self::text(Table::Connections, id.as_str())
    }

    pub(crate) fn scope(connection: &ConnectionId, agent: &AgentId) -> Self {
        let parts = [connection.as_str(), agent.as_str()];
        let parts = parts.map(|part| Part::Text(part.to_owned())).to_vec();
        Self { table: Table::ConnectionScopes, parts, more: None }
    }

    pub(crate) fn ask(id: &AskId) -> Self {
        Self::text(Table::Asks, id.as_str())
    }

    pub(crate) fn decision(row: &DecisionRow) -> Result<Self, StoreFault> {
        let sequence = whole(row.sequence)?;
        let mut name = Self::numbered(Table::Decisions, row.agent.as_str(), &row.tool, sequence);
        name.more = Some(format!("{}/{}", row.version, to_word(&row.answer)?));
        Ok(name)
    }

    pub(crate) fn permit_use(ask: &AskId) -> Self {
        Self::text(Table::PermitUses, ask.as_str())
    }

    pub(crate) fn proposal(id: &str) -> Self {
        Self::text(Table::Proposals, id)
    }

    pub(crate) fn switch(agent: &AgentId, name: &str, sequence: i64) -> Self {
        Self::numbered(Table::Switches, agent.as_str(), name, sequence)
    }

    pub(crate) fn pointer(person: &PersonId, tool: &ToolName, sequence: i64) -> Self {
        Self::numbered(Table::Pointers, person.as_str(), &tool.to_string(), sequence)
    }

    pub(crate) fn segment(node: &str, first: i64) -> Self {
        let parts = vec![Part::Text(node.to_owned()), Part::Number(first)];
        Self { table: Table::AuditSegments, parts, more: None }
    }

    pub(crate) fn author_job(id: &str) -> Self {
        Self::text(Table::AuthorJobs, id)
    }

    pub(crate) fn document(connection: &ConnectionId, sequence: i64) -> Self {
        let parts = vec![Part::Text(connection.as_str().to_owned()), Part::Number(sequence)];
        Self { table: Table::Documents, parts, more: None }
    }

    pub(crate) fn scope_change(connection: &ConnectionId, sequence: i64) -> Self {
        let parts = vec![Part::Text(connection.as_str().to_owned()), Part::Number(sequence)];
        Self { table: Table::ScopeChanges, parts, more: None }
    }

    fn numbered(table: Table, first: &str, second: &str, number: i64) -> Self {
        let (first, second) = (first.to_owned(), second.to_owned());
        let parts = vec![Part::Text(first), Part::Text(second), Part::Number(number)];
        Self { table, parts, more: None }
    }

    /// As the ledger has it; the same as [`Table::every`] makes.
    pub(crate) fn key(&self) -> String {
        let mut key = String::new();
        for part in &self.parts {
            if !key.is_empty() {
                key.push('/');
            }
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Bytes(bytes) => key.push_str(&crate::ledger::hex(bytes)),
                Part::Number(number) => key.push_str(&number.to_string()),
            }
        }
        if let Some(more) = &self.more {
            key.push('/');
            key.push_str(more);
        }
        key
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Table;
    use crate::Store;
    use sqlx::{AssertSqlSafe, Row};

    /// Tables without a seal, and why that is enough.
    const FREE: &[(&str, &str)] = &[
        ("schema_steps", "compared with this release's text at each start"),
        ("ledger", "the seals themselves, chained and MACed"),
        ("secrets", "sealed to their connection; one taken away opens nothing"),
        ("versions", "each MACed; one taken away does not run"),
        ("files", "each compared with the digest that a sealed or MACed row names"),
        ("members", "a list of names: promotes nothing to a right"),
        ("history", "shown, never relied upon"),
        ("runs", "a record; what was sent is in the audit"),
        ("results", "the agent's own text, kept for it"),
        ("workspace_files", "the agent's own text; what it publishes is checked"),
        ("author_lines", "shown, never relied upon"),
        ("audit", "chained and MACed by itself; its end is in the head"),
    ];

    #[tokio::test]
    async fn every_table_is_sealed_whole_or_is_free_for_a_reason() {
        let store = Store::in_memory().await.unwrap();
        let mut on = store.read().await.unwrap();
        let names = sqlx::query(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
        );
        for row in names.fetch_all(&mut *on).await.unwrap() {
            let name: String = row.get("name");
            let Some(table) = Table::of(&name) else {
                assert!(FREE.iter().any(|(free, _)| *free == name), "{name} is not sealed");
                continue;
            };
            let columns = format!("SELECT name FROM pragma_table_info('{name}')");
            let columns = sqlx::query(AssertSqlSafe(columns)).fetch_all(&mut *on).await.unwrap();
            for column in columns {
                let column: String = column.get("name");
                let named = table
                    .one()
                    .split_once(" AS seal")
                    .unwrap()
                    .0
                    .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .any(|word| word == column);
                assert!(named || (name == "asks" && column == "body"), "{name}.{column}");
            }
        }
    }
}
