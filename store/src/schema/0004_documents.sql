-- documents.rs: pins; the bytes are in `files`, by their digest
CREATE TABLE documents (
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    sequence      INTEGER NOT NULL,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    digest        TEXT    NOT NULL,
    base_path     TEXT    NOT NULL,
    at_ms         INTEGER NOT NULL,
    PRIMARY KEY (connection_id, sequence),
    FOREIGN KEY (person_id, digest) REFERENCES files (person_id, digest)
) STRICT;
CREATE TRIGGER documents_no_update BEFORE UPDATE ON documents
BEGIN SELECT RAISE(ABORT, 'documents are append-only'); END;
CREATE TRIGGER documents_no_delete BEFORE DELETE ON documents
BEGIN SELECT RAISE(ABORT, 'documents are append-only'); END;
CREATE TRIGGER documents_no_replace BEFORE INSERT ON documents
WHEN EXISTS (SELECT 1 FROM documents
    WHERE connection_id = NEW.connection_id AND sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'that document is there'); END;
