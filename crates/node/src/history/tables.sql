-- The history of one machine. docs/history.md says what is in it and has queries to copy.
-- Times are milliseconds since 1970 by the wall clock. `mark` is recorded time instead:
-- milliseconds for which this history was being written; ages and order go by it, since the wall
-- clock may be set. JSON is as in a snapshot.

CREATE TABLE device (
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE,  -- the name, numbered where a machine has it twice
    name          TEXT NOT NULL,         -- as telltale smi shows it
    identity      TEXT NOT NULL,         -- JSON
    facts         TEXT NOT NULL,         -- JSON
    firmware      TEXT NOT NULL,         -- JSON
    first_seen_ms INTEGER NOT NULL,
    last_seen_ms  INTEGER NOT NULL,
    mark          INTEGER NOT NULL       -- when it was last seen
);

CREATE TABLE process (
    id             INTEGER PRIMARY KEY,
    -- Who it is: these four together, never the pid alone.
    boot_id        TEXT NOT NULL,
    pid_namespace  INTEGER NOT NULL,
    pid            INTEGER NOT NULL,     -- in that namespace
    start_ticks    INTEGER NOT NULL,     -- clock ticks after boot
    shown_pid      INTEGER,              -- in the service's namespace
    name           TEXT NOT NULL,
    command        TEXT,
    uid            INTEGER,
    user           TEXT,
    absences       TEXT,                 -- JSON: why command, uid or user is not known
    container      TEXT,                 -- JSON
    known_by       TEXT,                 -- ledger, endpoint or region
    recording_ms   INTEGER,              -- when its runtime began to record
    first_seen_ms  INTEGER NOT NULL,
    last_seen_ms   INTEGER NOT NULL,
    ended_ms       INTEGER,              -- when it was found to have ended, if somebody looked
    ending         TEXT,                 -- gone, killed, unseen or restart; none: it lives
    double_frees          INTEGER NOT NULL,
    unknown_frees         INTEGER NOT NULL,
    reused_live_addresses INTEGER NOT NULL,
    unrecorded_events     INTEGER NOT NULL,
    mark           INTEGER NOT NULL,     -- when it was last seen
    UNIQUE (boot_id, pid_namespace, pid, start_ticks)
);

-- What a process had of one kind of memory on one device, over its life.
CREATE TABLE usage (
    process           INTEGER NOT NULL,
    device            INTEGER NOT NULL,
    kind              TEXT NOT NULL,     -- dram, l1, ...
    live_bytes        INTEGER NOT NULL,  -- when it was last seen
    peak_bytes        INTEGER NOT NULL,
    peak_ms           INTEGER NOT NULL,  -- when the peak was first seen
    byte_seconds      INTEGER NOT NULL,  -- bytes times seconds, for the time it was watched
    byte_milliseconds INTEGER NOT NULL,  -- what is left over, below 1000
    watched_ms        INTEGER NOT NULL,
    PRIMARY KEY (process, device, kind)
) WITHOUT ROWID;

-- Whom series are about: a device, a process, a process on a device, or (id 1) the machine.
CREATE TABLE subject (
    id      INTEGER PRIMARY KEY,
    device  INTEGER,
    process INTEGER,
    UNIQUE (process, device)
);
INSERT INTO subject (id) VALUES (1);

-- A stretch of time without a gap.
CREATE TABLE block (
    id            INTEGER PRIMARY KEY,
    resolution_ms INTEGER NOT NULL,      -- 0: as sampled; else the length of its spans
    run           INTEGER NOT NULL,      -- blocks of one run follow each other without a gap
    start_ms      INTEGER NOT NULL,
    end_ms        INTEGER NOT NULL,
    mark          INTEGER NOT NULL,      -- its end
    first_sampled INTEGER NOT NULL,      -- the blocks as sampled that it stands for, by id
    last_sampled  INTEGER NOT NULL,
    has_finer     INTEGER NOT NULL,      -- whether the blocks that it was made from are still there
    bytes         INTEGER NOT NULL,      -- of its series
    times         BLOB NOT NULL          -- as sampled: milliseconds from sample to sample
);
CREATE INDEX block_by_start ON block (resolution_ms, start_ms);
CREATE INDEX block_by_mark ON block (mark);

-- The series of one subject in one block, packed.
CREATE TABLE part (
    block   INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    series  BLOB NOT NULL,
    PRIMARY KEY (block, subject)
) WITHOUT ROWID;
