-- Under which boot of the machine this was written last: whoever lived then and is gone after another
-- boot ended with it. Processes' own boot ids do not tell, since system containers have theirs.
CREATE TABLE machine (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    boot_id TEXT NOT NULL
);
