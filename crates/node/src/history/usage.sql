-- A row of `usage` whose process goes on having the same is not written again and again: what time
-- adds to it follows from the mark that it was written at and the process's own.
ALTER TABLE usage ADD COLUMN since_mark INTEGER; -- from when on it has had live_bytes, to the
                                                 -- process's mark; none: to no later time

-- The same with what time has added: what to ask for sums.
CREATE VIEW used AS
SELECT process, device, kind, live_bytes, peak_bytes, peak_ms,
    byte_seconds + (byte_milliseconds + live_bytes * added_ms) / 1000 AS byte_seconds,
    watched_ms + added_ms AS watched_ms
FROM (
    SELECT usage.*, max(coalesce(process.mark - since_mark, 0), 0) AS added_ms
    FROM usage JOIN process ON process.id = usage.process
);
