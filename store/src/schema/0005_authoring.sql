-- authoring.rs: jobs of acquire, and their progress
CREATE TABLE author_jobs (
    job_id        TEXT    NOT NULL PRIMARY KEY,
    person_id     TEXT    NOT NULL REFERENCES persons (person_id),
    agent_id      TEXT    NOT NULL REFERENCES agents (agent_id),
    connection_id TEXT    NOT NULL REFERENCES connections (connection_id),
    goal          TEXT    NOT NULL,
    hints         TEXT,
    status        TEXT    NOT NULL,
    attempts      INTEGER NOT NULL,
    tokens        INTEGER NOT NULL,
    result        TEXT,
    created_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX author_jobs_open ON author_jobs (job_id) WHERE status IN ('queued', 'running');
CREATE TRIGGER author_jobs_no_delete BEFORE DELETE ON author_jobs
BEGIN SELECT RAISE(ABORT, 'jobs are never deleted'); END;
CREATE TRIGGER author_jobs_end_once BEFORE UPDATE ON author_jobs
WHEN OLD.status IN ('succeeded', 'failed')
BEGIN SELECT RAISE(ABORT, 'a job ends once'); END;

CREATE TABLE author_lines (
    job_id    TEXT    NOT NULL REFERENCES author_jobs (job_id),
    sequence  INTEGER NOT NULL,
    person_id TEXT    NOT NULL REFERENCES persons (person_id),
    text      TEXT    NOT NULL,
    at_ms     INTEGER NOT NULL,
    PRIMARY KEY (job_id, sequence)
) STRICT;
CREATE TRIGGER author_lines_no_update BEFORE UPDATE ON author_lines
BEGIN SELECT RAISE(ABORT, 'progress only grows'); END;
CREATE TRIGGER author_lines_no_delete BEFORE DELETE ON author_lines
BEGIN SELECT RAISE(ABORT, 'progress only grows'); END;
