"""Takes snapshots when it is asked for so many on standard input, and answers what one takes in nanoseconds."""

import sys
import time

import telltale

root, expected = sys.argv[1], int(sys.argv[2])
for line in sys.stdin:
    count = int(line)
    begun = time.perf_counter_ns()
    for _ in range(count):
        snapshot = telltale.snapshot(root=root)
        # What every user asks for.
        used = sum(device.dram or 0 for device in snapshot.devices)
    took = time.perf_counter_ns() - begun
    assert len(snapshot.processes) == expected and used > 0
    print(took / count, flush=True)
