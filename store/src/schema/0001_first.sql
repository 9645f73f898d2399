-- The first schema. Times are milliseconds UTC, ids and digests text, MACs and
-- sealed bytes blobs, lists JSON text. `tool` is the wire name, `<vendor>__<name>`.
-- Nothing is deleted: a row ends by a column that says so. What may never change
-- at all is held by the triggers at the end.

-- people.rs
CREATE TABLE persons (
    person_id   TEXT    NOT NULL PRIMARY KEY,
    passphrase  TEXT,
    created_ms  INTEGER NOT NULL
) STRICT;

CREATE TABLE codes (
    code_hash   BLOB    NOT NULL PRIMARY KEY,
    person_id   TEXT    NOT NULL REFERENCES persons (person_id),
    expires_ms  INTEGER NOT NULL,
    used_ms     INTEGER
) STRICT;

CREATE TABLE sessions (
    session_hash BLOB    NOT NULL PRIMARY KEY,
    person_id    TEXT    NOT NULL REFERENCES persons (person_id),
    opened_ms    INTEGER NOT NULL,
    expires_ms   INTEGER NOT NULL,
    ended_ms     INTEGER
) STRICT;

-- agents.rs
CREATE TABLE agents (
    agent_id    TEXT    NOT NULL PRIMARY KEY,
    person_id   TEXT    NOT NULL REFERENCES persons (person_id),
    name        TEXT    NOT NULL,
    cap         INTEGER NOT NULL,
    idle_days   INTEGER NOT NULL,
    paused      INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    UNIQUE (person_id, name)
) STRICT;

CREATE TABLE agent_tokens (
    token_hash  BLOB    NOT NULL PRIMARY KEY,
    person_id   TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id    TEXT    NOT NULL REFERENCES agents (agent_id),
    revoked_ms  INTEGER
) STRICT;
CREATE INDEX agent_tokens_live ON agent_tokens (agent_id) WHERE revoked_ms IS NULL;

-- connections.rs
CREATE TABLE connections (
    connection_id TEXT    NOT NULL PRIMARY KEY,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    slug          TEXT    NOT NULL,
    vendor        TEXT    NOT NULL,
    display_name  TEXT    NOT NULL,
    hosts         TEXT    NOT NULL,
    scheme        TEXT    NOT NULL,
    exceptions    TEXT    NOT NULL,
    ca_pem        TEXT,
    overrides     TEXT    NOT NULL,
    generation    INTEGER NOT NULL,
    status        TEXT    NOT NULL,
    created_ms    INTEGER NOT NULL,
    UNIQUE (person_id, slug)
) STRICT;

CREATE TABLE connection_scopes (
    connection_id TEXT NOT NULL REFERENCES connections (connection_id),
    agent_id      TEXT NOT NULL REFERENCES agents (agent_id),
    person_id     TEXT NOT NULL REFERENCES persons (person_id),
    PRIMARY KEY (connection_id, agent_id)
) STRICT;

-- secrets.rs
CREATE TABLE secrets (
    connection_id TEXT    NOT NULL PRIMARY KEY REFERENCES connections (connection_id),
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    generation    INTEGER NOT NULL,
    wrapped_key   BLOB    NOT NULL,
    sealed        BLOB    NOT NULL
) STRICT;

-- tools.rs
CREATE TABLE versions (
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    tool          TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    hash          TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    title         TEXT,
    description   TEXT    NOT NULL,
    input_schema  TEXT    NOT NULL,
    output_schema TEXT,
    example_input TEXT,
    source        TEXT    NOT NULL,
    javascript    TEXT    NOT NULL,
    hints         TEXT    NOT NULL,
    sites         TEXT    NOT NULL,
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    published_by  TEXT    REFERENCES agents (agent_id),
    published_ms  INTEGER NOT NULL,
    mac           BLOB    NOT NULL,
    PRIMARY KEY (person_id, tool, number)
) STRICT;
CREATE INDEX versions_connection ON versions (connection_id, person_id, tool, number);

CREATE TABLE pointers (
    person_id TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    sequence  INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    hash      TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    mac       BLOB    NOT NULL,
    PRIMARY KEY (person_id, tool, sequence),
    FOREIGN KEY (person_id, tool, number) REFERENCES versions (person_id, tool, number)
) STRICT;

-- sets.rs: one row per agent and tool it ever had or used
CREATE TABLE members (
    agent_id     TEXT    NOT NULL REFERENCES agents (agent_id),
    tool         TEXT    NOT NULL,
    person_id    TEXT    NOT NULL REFERENCES persons (person_id),
    promoted     INTEGER NOT NULL,
    cause        TEXT,
    promoted_ms  INTEGER,
    last_used_ms INTEGER,
    PRIMARY KEY (agent_id, tool)
) STRICT;
CREATE INDEX members_promoted ON members (agent_id, tool) WHERE promoted = 1;
CREATE INDEX members_holders ON members (tool, person_id, agent_id) WHERE promoted = 1;

CREATE TABLE history (
    history_id INTEGER NOT NULL PRIMARY KEY,
    person_id  TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id   TEXT    NOT NULL REFERENCES agents (agent_id),
    tool       TEXT    NOT NULL,
    promoted   INTEGER NOT NULL,
    cause      TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX history_agent ON history (agent_id, history_id);

-- asks.rs
CREATE TABLE asks (
    ask_id        TEXT    NOT NULL PRIMARY KEY,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id      TEXT    NOT NULL REFERENCES agents (agent_id),
    tool          TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    generation    INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    effect        TEXT    NOT NULL,
    method        TEXT    NOT NULL,
    authority     TEXT    NOT NULL,
    target        TEXT    NOT NULL,
    headers       TEXT    NOT NULL,
    body          BLOB    NOT NULL,
    digest        TEXT    NOT NULL,
    opened_ms     INTEGER NOT NULL,
    expires_ms    INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    settled_ms    INTEGER
) STRICT;
CREATE UNIQUE INDEX asks_one_open ON asks (agent_id, tool) WHERE state = 'open';
CREATE INDEX asks_expiry ON asks (expires_ms) WHERE state = 'open';
CREATE INDEX asks_open ON asks (person_id, opened_ms) WHERE state = 'open';
CREATE INDEX asks_settled ON asks (person_id, settled_ms) WHERE state <> 'open';

-- decisions.rs
CREATE TABLE decisions (
    agent_id      TEXT    NOT NULL REFERENCES agents (agent_id),
    tool          TEXT    NOT NULL,
    sequence      INTEGER NOT NULL,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    ask_id        TEXT    NOT NULL REFERENCES asks (ask_id),
    version       TEXT    NOT NULL,
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    generation    INTEGER NOT NULL,
    digest        TEXT    NOT NULL,
    answer        TEXT    NOT NULL,
    channel       TEXT    NOT NULL,
    at_ms         INTEGER NOT NULL,
    mac           BLOB    NOT NULL,
    PRIMARY KEY (agent_id, tool, sequence)
) STRICT;
-- One ask has one answer, whoever asks twice.
CREATE UNIQUE INDEX decisions_answer ON decisions (ask_id) WHERE answer <> 'withdrawn';
CREATE INDEX decisions_once ON decisions (agent_id, digest, version) WHERE answer = 'once';
CREATE INDEX decisions_deny ON decisions (agent_id, version) WHERE answer = 'deny';
CREATE INDEX decisions_connection ON decisions (connection_id);

CREATE TABLE permit_uses (
    ask_id    TEXT NOT NULL PRIMARY KEY REFERENCES asks (ask_id),
    person_id TEXT NOT NULL REFERENCES persons (person_id)
) STRICT;

-- switches.rs
CREATE TABLE switches (
    agent_id  TEXT    NOT NULL REFERENCES agents (agent_id),
    name      TEXT    NOT NULL,
    sequence  INTEGER NOT NULL,
    person_id TEXT    NOT NULL REFERENCES persons (person_id),
    value     TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    mac       BLOB    NOT NULL,
    PRIMARY KEY (agent_id, name, sequence)
) STRICT;

-- runs.rs
CREATE TABLE runs (
    run_id        TEXT    NOT NULL PRIMARY KEY,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id      TEXT    NOT NULL REFERENCES agents (agent_id),
    tool          TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    version       TEXT    NOT NULL,
    connection_id TEXT    NOT NULL,
    dry_run       INTEGER NOT NULL,
    detached      INTEGER NOT NULL,
    node          TEXT    NOT NULL,
    call_key      TEXT,
    begun_ms      INTEGER NOT NULL,
    outcome       TEXT,
    ended_ms      INTEGER,
    evidence      TEXT
) STRICT;
CREATE INDEX runs_call ON runs (agent_id, call_key, begun_ms) WHERE call_key IS NOT NULL;
CREATE INDEX runs_ended ON runs (person_id, tool) WHERE outcome IS NOT NULL;
CREATE INDEX runs_newest ON runs (person_id, run_id);
CREATE INDEX runs_lasting ON runs (agent_id) WHERE outcome IS NULL;
CREATE INDEX runs_node ON runs (node) WHERE outcome IS NULL;

CREATE TABLE results (
    run_id    TEXT    NOT NULL PRIMARY KEY REFERENCES runs (run_id),
    person_id TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id  TEXT    NOT NULL REFERENCES agents (agent_id),
    mime_type TEXT    NOT NULL,
    text      TEXT    NOT NULL,
    stored_ms INTEGER NOT NULL
) STRICT;

-- ledger.rs: what every row that decides something was when we last wrote it
CREATE TABLE ledger (
    sequence  INTEGER NOT NULL PRIMARY KEY,
    table_name TEXT   NOT NULL,
    row_key   TEXT    NOT NULL,
    digest    BLOB    NOT NULL,
    mac       BLOB    NOT NULL
) STRICT;

-- audit.rs
CREATE TABLE audit (
    node      TEXT    NOT NULL,
    sequence  INTEGER NOT NULL,
    -- Empty when the event names no agent of ours.
    person_id TEXT    NOT NULL,
    event     TEXT    NOT NULL,
    previous  BLOB    NOT NULL,
    hash      BLOB    NOT NULL,
    mac       BLOB    NOT NULL,
    PRIMARY KEY (node, sequence)
) STRICT, WITHOUT ROWID;

-- What stands for rows that a person's retention setting let go.
CREATE TABLE audit_segments (
    node      TEXT    NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    previous  BLOB    NOT NULL,
    hash      BLOB    NOT NULL,
    from_ms   INTEGER NOT NULL,
    until_ms  INTEGER NOT NULL,
    at_ms     INTEGER NOT NULL,
    mac       BLOB    NOT NULL,
    PRIMARY KEY (node, first)
) STRICT, WITHOUT ROWID;

-- What may never change.
CREATE TRIGGER versions_no_update BEFORE UPDATE ON versions
BEGIN SELECT RAISE(ABORT, 'versions are append-only'); END;
CREATE TRIGGER versions_no_delete BEFORE DELETE ON versions
BEGIN SELECT RAISE(ABORT, 'versions are append-only'); END;
CREATE TRIGGER pointers_no_update BEFORE UPDATE ON pointers
BEGIN SELECT RAISE(ABORT, 'pointers are append-only'); END;
CREATE TRIGGER pointers_no_delete BEFORE DELETE ON pointers
BEGIN SELECT RAISE(ABORT, 'pointers are append-only'); END;
CREATE TRIGGER history_no_update BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER history_no_delete BEFORE DELETE ON history
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER permit_uses_no_update BEFORE UPDATE ON permit_uses
BEGIN SELECT RAISE(ABORT, 'permit uses are append-only'); END;
CREATE TRIGGER permit_uses_no_delete BEFORE DELETE ON permit_uses
BEGIN SELECT RAISE(ABORT, 'permit uses are append-only'); END;
CREATE TRIGGER switches_no_update BEFORE UPDATE ON switches
BEGIN SELECT RAISE(ABORT, 'switches are append-only'); END;
CREATE TRIGGER switches_no_delete BEFORE DELETE ON switches
BEGIN SELECT RAISE(ABORT, 'switches are append-only'); END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_segments
    WHERE node = OLD.node AND OLD.sequence BETWEEN first AND last)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_segments_no_update BEFORE UPDATE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'audit segments are append-only'); END;
CREATE TRIGGER audit_segments_no_delete BEFORE DELETE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'audit segments are append-only'); END;
CREATE TRIGGER audit_segments_no_replace BEFORE INSERT ON audit_segments
WHEN EXISTS (SELECT 1 FROM audit_segments WHERE node = NEW.node AND first = NEW.first)
BEGIN SELECT RAISE(ABORT, 'that audit segment is there'); END;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- INSERT OR REPLACE deletes without asking the triggers above.
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger WHERE sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'that ledger row is there'); END;
CREATE TRIGGER versions_no_replace BEFORE INSERT ON versions
WHEN EXISTS (SELECT 1 FROM versions
    WHERE person_id = NEW.person_id AND tool = NEW.tool AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'that version is there'); END;
CREATE TRIGGER pointers_no_replace BEFORE INSERT ON pointers
WHEN EXISTS (SELECT 1 FROM pointers
    WHERE person_id = NEW.person_id AND tool = NEW.tool AND sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'that pointer is there'); END;
CREATE TRIGGER history_no_replace BEFORE INSERT ON history
WHEN EXISTS (SELECT 1 FROM history WHERE history_id = NEW.history_id)
BEGIN SELECT RAISE(ABORT, 'that history row is there'); END;
CREATE TRIGGER decisions_no_replace BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions
        WHERE agent_id = NEW.agent_id AND tool = NEW.tool AND sequence = NEW.sequence)
    OR (NEW.answer <> 'withdrawn' AND EXISTS (SELECT 1 FROM decisions
        WHERE ask_id = NEW.ask_id AND answer <> 'withdrawn'))
BEGIN SELECT RAISE(ABORT, 'that decision is there'); END;
CREATE TRIGGER permit_uses_no_replace BEFORE INSERT ON permit_uses
WHEN EXISTS (SELECT 1 FROM permit_uses WHERE ask_id = NEW.ask_id)
BEGIN SELECT RAISE(ABORT, 'that permit is used'); END;
CREATE TRIGGER asks_no_replace BEFORE INSERT ON asks
WHEN EXISTS (SELECT 1 FROM asks WHERE ask_id = NEW.ask_id)
    OR (NEW.state = 'open' AND EXISTS (SELECT 1 FROM asks
        WHERE agent_id = NEW.agent_id AND tool = NEW.tool AND state = 'open'))
BEGIN SELECT RAISE(ABORT, 'that ask is there, or one is open'); END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE node = NEW.node AND sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'that audit row is there'); END;
-- A row joins its chain or is refused: two writers of one chain cannot fork it.
CREATE TRIGGER audit_chained BEFORE INSERT ON audit
WHEN NEW.sequence > 1
BEGIN
    SELECT RAISE(ABORT, 'the audit row does not follow the last one')
    WHERE NOT EXISTS (
        SELECT 1 FROM audit
        WHERE node = NEW.node AND sequence = NEW.sequence - 1 AND hash = NEW.previous
    );
END;

-- An ask leaves `open` once; what it shows never changes.
CREATE TRIGGER asks_settle_only BEFORE UPDATE ON asks
WHEN OLD.state <> 'open' OR NEW.state = 'open' OR NEW.settled_ms IS NULL
    OR NEW.ask_id <> OLD.ask_id OR NEW.person_id <> OLD.person_id
    OR NEW.agent_id <> OLD.agent_id OR NEW.tool <> OLD.tool OR NEW.version <> OLD.version
    OR NEW.number <> OLD.number OR NEW.connection_id <> OLD.connection_id
    OR NEW.generation <> OLD.generation OR NEW.reason <> OLD.reason
    OR NEW.run_id <> OLD.run_id OR NEW.effect <> OLD.effect OR NEW.method <> OLD.method
    OR NEW.authority <> OLD.authority OR NEW.target <> OLD.target
    OR NEW.headers <> OLD.headers OR NEW.body <> OLD.body OR NEW.digest <> OLD.digest
    OR NEW.opened_ms <> OLD.opened_ms OR NEW.expires_ms <> OLD.expires_ms
BEGIN SELECT RAISE(ABORT, 'an ask is settled once and otherwise never changes'); END;
CREATE TRIGGER asks_no_delete BEFORE DELETE ON asks
BEGIN SELECT RAISE(ABORT, 'asks are never deleted'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
BEGIN SELECT RAISE(ABORT, 'runs are never deleted'); END;
CREATE TRIGGER members_no_delete BEFORE DELETE ON members
BEGIN SELECT RAISE(ABORT, 'a working set changes by a move'); END;
CREATE TRIGGER agents_no_delete BEFORE DELETE ON agents
BEGIN SELECT RAISE(ABORT, 'agents are never deleted'); END;
CREATE TRIGGER connections_no_delete BEFORE DELETE ON connections
BEGIN SELECT RAISE(ABORT, 'connections are revoked, never deleted'); END;
