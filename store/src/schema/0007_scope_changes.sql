-- connections.rs: whom a connection is for, as a person changed it; the newest stands
-- in the place of `connection_scopes`, which says how it was made
CREATE TABLE scope_changes (
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    sequence      INTEGER NOT NULL,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    agents        TEXT    NOT NULL,
    at_ms         INTEGER NOT NULL,
    PRIMARY KEY (connection_id, sequence)
) STRICT;
CREATE TRIGGER scope_changes_no_update BEFORE UPDATE ON scope_changes
BEGIN SELECT RAISE(ABORT, 'changes of a scope are append-only'); END;
CREATE TRIGGER scope_changes_no_delete BEFORE DELETE ON scope_changes
BEGIN SELECT RAISE(ABORT, 'changes of a scope are append-only'); END;
CREATE TRIGGER scope_changes_no_replace BEFORE INSERT ON scope_changes
WHEN EXISTS (SELECT 1 FROM scope_changes
    WHERE connection_id = NEW.connection_id AND sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'that change of a scope is there'); END;
