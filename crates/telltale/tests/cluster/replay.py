"""A rank of a recorded job: what it did goes the way of the Python module, through its queue and its posts.

`$STATE/rank-N.json` has the members of each group, and what the rank did in each step. `$STATE/steps` has the number
of steps that are to be posted by now.
"""

import json
import os
import sys
import time

from telltale_ccl import _record, _spans

STATE = os.environ["STATE"]
RANK, RANKS = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
TRANSFERS = ("send", "recv")


def wanted():
    """How many steps are to be posted; `None` once the job may end."""
    if os.path.exists(STATE + "/finish"):
        return None
    with open(STATE + "/steps") as file:
        return int(file.read())


def queue_step(recorder, groups, number, records):
    for record in records:
        start_ns, end_ns = record["startTime"] * 1000, record["endTime"] * 1000
        if record["opType"] == "compute":
            recorder.queue.append((record["name"], start_ns, end_ns, number))
            recorder.measured.count += 1
            continue
        name, peer = record["opType"], record.get("remoteRank")
        group = groups[record.get("group") or None]
        entry = recorder.began(group, name, peer if name in TRANSFERS else None, record["bytes"])
        entry[_record.START_NS] = start_ns
        entry[_record.STEP] = number
        entry[_record.END_NS] = end_ns


def main():
    with open(f"{STATE}/rank-{RANK}.json") as file:
        recorded = json.load(file)
    recorder, spans = _record.recorder(), _spans.spans()
    spans.start(RANK)
    groups = {None: _record.Group(RANK, RANKS, None, None, True)}
    for name, members in recorded["groups"].items():
        if RANK in members:
            groups[name] = _record.Group(members.index(RANK), len(members), name, members, True)
    for group in groups.values():
        recorder.numbered(group)
    # An operation is queued when it begins. So that the recorder's thread sees all of it, that does not run meanwhile.
    usual = sys.getswitchinterval()
    done = 0
    while (until := wanted()) is not None:
        for number in range(done, min(until, len(recorded["steps"]))):
            sys.setswitchinterval(60)
            queue_step(recorder, groups, number, recorded["steps"][number])
            sys.setswitchinterval(usual)
            done = number + 1
            assert recorder.flush(60)
        time.sleep(0.02)
    counts = recorder.counts()
    assert counts["dropped"] == counts["errors"] == counts["refused_posts"] == 0, counts


main()
