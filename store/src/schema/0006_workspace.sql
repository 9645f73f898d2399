-- workspace.rs: an agent's own files; they change
CREATE TABLE workspace_files (
    agent_id   TEXT    NOT NULL REFERENCES agents (agent_id),
    path       TEXT    NOT NULL,
    person_id  TEXT    NOT NULL REFERENCES persons (person_id),
    content    TEXT    NOT NULL,
    written_ms INTEGER NOT NULL,
    PRIMARY KEY (agent_id, path)
) STRICT;
