-- Files that go with versions, by the SHA-256 of their bytes: bundled packages, components.
CREATE TABLE files (
    person_id TEXT    NOT NULL REFERENCES persons (person_id),
    digest    TEXT    NOT NULL,
    bytes     BLOB    NOT NULL,
    kept_ms   INTEGER NOT NULL,
    PRIMARY KEY (person_id, digest)
) STRICT;
CREATE TRIGGER files_no_update BEFORE UPDATE ON files
BEGIN SELECT RAISE(ABORT, 'a file is what its digest says'); END;
CREATE TRIGGER files_no_delete BEFORE DELETE ON files
BEGIN SELECT RAISE(ABORT, 'files go with versions, which are never deleted'); END;
CREATE TRIGGER files_no_replace BEFORE INSERT ON files
WHEN EXISTS (SELECT 1 FROM files WHERE person_id = NEW.person_id AND digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'that file is there'); END;
-- What a version imports, as JSON; the digest of its file if it is a component.
ALTER TABLE versions ADD COLUMN sdks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE versions ADD COLUMN component TEXT;
