-- What was wrong with a device, a part of the machine or a source, and events. JSON is as in a snapshot.
CREATE TABLE fault (
    id       INTEGER PRIMARY KEY,
    device   INTEGER,                   -- none of a part or a source
    part     TEXT NOT NULL,             -- the part or source; empty of a device
    kind     TEXT NOT NULL,             -- the rule, as in docs/health.md
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,                   -- none: it lasts, or its end was not seen
    detail   TEXT NOT NULL,
    evidence TEXT NOT NULL,             -- JSON
    mark     INTEGER NOT NULL           -- when it was last seen
);
CREATE INDEX fault_by_until ON fault (until_ms);

-- Since when faults are kept, at least: what is older is of a version that kept none, or was let go of.
CREATE TABLE faults_kept (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    since_ms INTEGER NOT NULL
);
INSERT INTO faults_kept (only, since_ms)
    SELECT 1, coalesce(max(end_ms) + 1, 0) FROM block;
