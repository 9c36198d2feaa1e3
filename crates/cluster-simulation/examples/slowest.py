#!/usr/bin/env python3
"""A detector for straggler-suite: the rank that computes longest, and the link that receives longest, if a tenth over the median."""

import json
import statistics
import sys

job = json.loads(sys.stdin.readline())
computed, received, now = {}, {}, 0
for line in sys.stdin:
    heard = json.loads(line)
    now = heard["at"]
    for record in heard["records"]:
        if "endTime" not in record:
            continue
        rank, time = record["global_rank"], record["endTime"] - record["startTime"]
        if record["opType"] == "compute":
            computed.setdefault(rank, []).append(time)
        elif record["opType"] == "recv":
            received.setdefault((record["remoteRank"], rank), []).append(time)

nodes = [node for node in job["nodes"] for _ in range(job["workers_per_node"])]


def slowest(times):
    means = {key: statistics.mean(all) for key, all in times.items()}
    if not means:
        return None
    most = max(means, key=means.get)
    return most if means[most] > 1.1 * statistics.median(means.values()) else None


rank, link = slowest(computed), slowest(received)
if rank is not None:
    print(json.dumps({"at": now, "suspects": [{"node": nodes[rank]}]}))
if link is not None:
    print(json.dumps({"at": now, "suspects": [{"from": nodes[link[0]], "to": nodes[link[1]]}]}))
