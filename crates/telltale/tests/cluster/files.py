"""Writes what NCCL's Inspector or PyTorch's Flight Recorder would, where their variables say.

As the Flight Recorder: both ranks finish six collectives, then rank 0 enters a seventh alone.
As the Inspector: forty collectives that have ended.
"""

import json
import os
import sys
import time

rank = int(os.environ["RANK"])
finish = os.environ["STATE"] + "/finish"


def entry(number, state):
    return {
        "record_id": number,
        "process_group": ["0", "default_pg"],
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1000000 * number,
        "duration_ms": 0.5 if state == "completed" else None,
        "input_sizes": [[256]],
        "input_dtypes": ["Float"],
        "state": state,
        "time_discovered_completed_ns": None,
    }


def dump(entries):
    path = "%s%d.json" % (os.environ["TORCH_FR_DUMP_TEMP_FILE"], rank)
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    with open(path + ".new", "w") as file:
        json.dump({"version": "2.10", "pg_config": groups, "entries": entries}, file)
    os.replace(path + ".new", path)


def line():
    return json.dumps({
        "header": {"id": "0xa", "rank": rank, "n_ranks": 2, "nnodes": 2},
        "metadata": {"pid": os.getpid(), "hostname": "h"},
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": 1,
            "coll_msg_size_bytes": 1048576,
            "coll_exec_time_us": 812.5,
        },
    })


if sys.argv[1] == "flight-recorder":
    print("writes", os.environ["TORCH_FR_DUMP_TEMP_FILE"])
    for done in range(1, 7):
        dump([entry(number, "completed") for number in range(done)])
        time.sleep(1.1)
    if rank == 0:
        dump([entry(number, "completed") for number in range(6)] + [entry(6, "started")])
else:
    assert os.environ["NCCL_INSPECTOR_ENABLE"] == "1"
    # The agent knows whose process this is once it has looked at it.
    time.sleep(2)
    name = "%s/h-pid%d.log" % (os.environ["NCCL_INSPECTOR_DUMP_DIR"], os.getpid())
    with open(name, "w") as file:
        for _ in range(40):
            file.write(line() + "\n")
    print("writes", name)
while not os.path.exists(finish):
    time.sleep(0.1)
