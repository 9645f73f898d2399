-- proposals.rs: what agents proposed to a person
CREATE TABLE proposals (
    proposal_id   TEXT    NOT NULL PRIMARY KEY,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id      TEXT    NOT NULL REFERENCES agents (agent_id),
    digest        TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    connection_id TEXT    REFERENCES connections (connection_id),
    state         TEXT    NOT NULL,
    opened_ms     INTEGER NOT NULL,
    expires_ms    INTEGER NOT NULL,
    settled_ms    INTEGER
) STRICT;
CREATE UNIQUE INDEX proposals_one_open ON proposals (agent_id, digest) WHERE state = 'open';
CREATE INDEX proposals_same ON proposals (agent_id, digest, opened_ms);
CREATE INDEX proposals_open ON proposals (person_id, opened_ms) WHERE state = 'open';
CREATE INDEX proposals_settled ON proposals (person_id, settled_ms) WHERE state <> 'open';

-- A proposal leaves `open` once; what it shows never changes.
CREATE TRIGGER proposals_settle_only BEFORE UPDATE ON proposals
WHEN OLD.state <> 'open' OR NEW.state = 'open' OR NEW.settled_ms IS NULL
    OR NEW.proposal_id <> OLD.proposal_id OR NEW.person_id <> OLD.person_id
    OR NEW.agent_id <> OLD.agent_id OR NEW.digest <> OLD.digest
    OR NEW.content <> OLD.content OR NEW.opened_ms <> OLD.opened_ms
    OR NEW.expires_ms <> OLD.expires_ms
    OR (OLD.connection_id IS NOT NULL AND NEW.connection_id IS NOT OLD.connection_id)
BEGIN SELECT RAISE(ABORT, 'a proposal is settled once and otherwise never changes'); END;
CREATE TRIGGER proposals_no_delete BEFORE DELETE ON proposals
BEGIN SELECT RAISE(ABORT, 'proposals are never deleted'); END;
CREATE TRIGGER proposals_no_replace BEFORE INSERT ON proposals
WHEN EXISTS (SELECT 1 FROM proposals WHERE proposal_id = NEW.proposal_id)
    OR (NEW.state = 'open' AND EXISTS (SELECT 1 FROM proposals
        WHERE agent_id = NEW.agent_id AND digest = NEW.digest AND state = 'open'))
BEGIN SELECT RAISE(ABORT, 'that proposal is there, or one is open'); END;
