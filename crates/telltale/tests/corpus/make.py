#!/usr/bin/env python3
"""Makes an entry of the corpus: files and answers of one version of telltale, and what that version
printed of them. README.md says when. Needs curl; runs on Linux, best as root.

    python3 make.py PROGRAM DIRECTORY
"""

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEADLINE_SECONDS = 60
# What is larger than this is kept compressed.
PLAIN_BYTES = 24 << 10


class Maker:
    def __init__(self, program, target):
        # Command lines are in snapshots: they must look the same wherever this runs.
        self.place = Path(tempfile.mkdtemp(prefix="telltale-corpus-"))
        self.program = self.place / "telltale"
        shutil.copy(program, self.program)
        self.target = target
        # What is kept, as it was before it was compressed; commands look there.
        self.entry = self.place / "entry"
        self.running = []
        self.commands = []
        clean = ("PATH", "HOME", "LANG")
        self.environment = {name: os.environ[name] for name in clean if name in os.environ}

    def run(self, *arguments, **more):
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, env=self.environment, capture_output=True, **more)
        return done.stdout

    def start(self, *arguments, **variables):
        command = [self.program, *map(str, arguments)]
        environment = self.environment | {name: str(value) for name, value in variables.items()}
        log = open(self.place / "log", "ab")
        started = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.running.append(started)
        return started

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_SECONDS)
        self.running.remove(process)

    def keep(self, name, data):
        data = data if isinstance(data, bytes) else Path(data).read_bytes()
        assert data, f"{name} would be empty; see {self.place}/log"
        path, plain = self.target / name, self.entry / name
        for folder in (path.parent, plain.parent):
            folder.mkdir(parents=True, exist_ok=True)
        plain.write_bytes(data)
        if len(data) > PLAIN_BYTES:
            path, data = path.with_name(path.name + ".gz"), gzip.compress(data, mtime=0)
        path.write_bytes(data)

    def tell(self, *arguments):
        """Keeps what a command prints of what is kept; {entry} is where that is."""
        printed = self.run(*[word.format(entry=self.entry) for word in arguments])
        lines = [json.loads(line) for line in printed.splitlines()]
        assert lines, f"{arguments} prints nothing"
        self.commands.append({"arguments": arguments, "printed": lines})

    def machine(self, kind, *faults):
        root = self.place / kind
        words = [word for fault in faults for word in ("--fault", fault)]
        self.start("emulate", "--machine", kind, "--root", root, *words)
        wait(f"{kind} to be there", lambda: self.snapshot(root)["devices"])
        return root

    def snapshot(self, root):
        return json.loads(self.run("smi", "--root", root, "--json") or '{"devices": []}')

    def clear_away(self):
        for process in reversed(self.running):
            process.terminate()
            process.wait(DEADLINE_SECONDS)
        shutil.rmtree(self.place)


def wait(what, condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} takes too long")
        time.sleep(0.1)


def recorded(maker, root, count):
    """Whether so many processes have memory there."""
    processes = maker.snapshot(root)["processes"]
    has = [one for one in processes if any(held["kinds"] for held in one["devices"])]
    return len(has) >= count


def snapshots(maker, n300):
    p150 = maker.machine("p150")
    t3000 = maker.machine("t3000", "reset:1", "missing:2:tt_aiclk", "garbage:3:temp1_input")
    maker.start("replay", "train", "--loop", "--device", 0, "--root", p150)
    wait("a workload", lambda: recorded(maker, p150, 1))
    for root in (n300, p150, t3000):
        maker.keep(f"{root.name}.json", maker.run("smi", "--json", "--root", root))
    recording = maker.place / "recording.tt"
    maker.run("record", recording, "--every", 0.2, "--for", 1, "--root", n300)
    maker.keep("recording.tt", recording)
    maker.tell("smi", "--replay", "{entry}/recording.tt", "--json", "-w")


def endpoint(maker, n300):
    """One process's ledger, and its answer to a query for everything."""
    processes = maker.snapshot(n300)["processes"]
    pid = next(one["pid"] for one in processes if "replay" in one["command"]["value"])
    ledger = next((n300 / "run/tt").glob(f"ledger_{pid}_*.tt"))
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(n300 / f"run/tt/metrics_{pid}.sock"))
        query = bytes([8, 1, 16, 0xFF, 1])
        asked.sendall(len(query).to_bytes(4, "little") + query)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "little"):
            answer += asked.recv(1 << 16)
    maker.keep("endpoint.bin", answer[4:])
    maker.keep("ledger.tt", ledger)


def call(maker, path, method, message=b""):
    """The first message that a method of the service answers."""
    framed = b"\0" + len(message).to_bytes(4, "big") + message
    command = ["curl", "--silent", "--max-time", "3", "--http2-prior-knowledge", "--data-binary", "@-"]
    command += ["--unix-socket", path, "-H", "content-type: application/grpc", "-H", "te: trailers"]
    command += [f"http://node/telltale.telemetry.v1.Telemetry/{method}"]
    answer = subprocess.run(command, input=framed, capture_output=True).stdout
    length = int.from_bytes(answer[1:5], "big")
    assert answer[:1] == b"\0" and len(answer) >= 5 + length, f"{method}: {answer!r}"
    return answer[5 : 5 + length]


def fixed64(number, value):
    return bytes([number << 3 | 1]) + value.to_bytes(8, "little")


def text(number, value):
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def service(maker, n300):
    """The history of some seconds, and the answers of the service that wrote it."""
    arguments = ["--root", n300, "--http", "off", "--interval", 0.5]
    running = maker.start("serve", *arguments, TELLTALE_HISTORY_WRITE_SECONDS=1)
    begun = time.time_ns()
    path = n300 / "run/tt/telemetry.sock"
    wait("the service", path.exists)
    # What is kept of a process is written when it was seen for some time.
    time.sleep(8)
    span = fixed64(1, begun) + fixed64(2, time.time_ns())
    asked = {"QueryHistory": span, "ReportProcess": text(1, "telltale")}
    for method in ("GetSnapshot", "ListDevices", "ListProcesses", "Watch", "ListMetrics", "ListAlerts"):
        asked[method] = b""
    for method, message in asked.items():
        if answer := call(maker, path, method, message):
            maker.keep(f"grpc/{method}.bin", answer)
    maker.end(running)
    maker.keep("history/history.db", n300 / "var/lib/telltale/history.db")

    def moment(seconds_ago):
        seconds = time.time_ns() // 10**9 - seconds_ago
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

    past = ["--state-dir", "{entry}/history", "--json"]
    span = ["--since", moment(300), "--until", moment(-300), "--step", "1"]
    maker.tell("history", *past, *span, "--metric", "power", "--metric", "live_bytes")
    maker.tell("smi", *past, "--at", moment(4))
    maker.tell("report", "telltale", *past)


def journal(maker):
    """A job of two nodes that was restarted twice, once by an operator, and is over."""
    state, address = maker.place / "job", f"unix:{maker.place / 'coordinator.sock'}"
    configuration = maker.place / "coordinator.toml"
    configuration.write_text(
        f'[job]\nname = "corpus"\nnodes = 2\n[listen]\ngrpc = ["{address}"]\nhttp = []\n'
        f'[store]\njournal = "{state / "journal"}"\n'
    )
    state.mkdir()
    coordinator = maker.start("coordinator", "--config", configuration)
    work = 'if [ $TELLTALE_EPOCH = 1 ] && [ $RANK = 1 ]; then exit 3; fi; while ! [ -e "$ALL" ]; do sleep 0.1; done'
    for node in ("a", "b"):
        agent = ["--node", node, "--address", "127.0.0.1", "--state", state / node]
        agent += ["--coordinator", address, "--node-service", "off", "--stay", "--", "sh", "-c", work]
        maker.start("agent", *agent, ALL=state / "all")

    def cluster(*arguments):
        found = maker.run("cluster", "--coordinator", address, *arguments, "--json")
        return json.loads(found) if found else {}

    def runs_epoch(epoch):
        status = cluster("status")
        return status.get("epoch") == epoch and status.get("phase") == "committed"

    wait("the second epoch", lambda: runs_epoch(2))
    maker.run("cluster", "--coordinator", address, "restart")
    wait("the third epoch", lambda: runs_epoch(3))
    (state / "all").touch()
    wait("the end", lambda: cluster("status").get("phase") == "over")
    # What a coordinator that is started with the journal knows of the job.
    known = ("job", "phase", "outcome", "epoch", "slots", "restarts", "counted_restarts", "mode")
    status = {key: value for key, value in cluster("status").items() if key in known}
    told = {"configuration": configuration.read_text(), "status": status}
    told["incidents"] = cluster("incidents")
    maker.end(coordinator)
    for path in sorted((state / "journal").iterdir()):
        if path.is_file() and path.stat().st_size:
            maker.keep(f"journal/{path.name}", path)
    maker.keep("journal.json", json.dumps(told).encode())


def events(maker):
    """What two steps of a training printed, in each form of a capture."""
    dumps, raw = maker.place / "dumps", maker.place / "dumps.events"
    sizes = ["--layers", 1, "--heads", 1, "--width", 16, "--context", 8, "--batch", 1, "--steps", 3]
    maker.run("gpt", *sizes, "--print", "logits", "--debug-output-dir", dumps)
    maker.run("events", dumps, "--convert", "raw", "-o", raw)
    maker.keep("dumps.events", raw)
    maker.keep("dumps.jsonl", maker.run("events", dumps, "--convert", "jsonl", "-o", "-"))
    for path in sorted(dumps.glob("loss/core_*/*/*")):
        maker.keep(f"dumps/{path.relative_to(dumps)}", path)
    for capture in ("dumps", "dumps.events", "dumps.jsonl"):
        maker.tell("events", "{entry}/" + capture, "--json", "--stats")


def main():
    program, target = sys.argv[1:]
    maker = Maker(program, Path(target))
    try:
        n300 = maker.machine("n300")
        maker.start("replay", "train", "--loop", "--device", 0, "--root", n300)
        maker.start("gpt", "--device", 1, "--pace", 0.2, "--root", n300)
        wait("the workloads", lambda: recorded(maker, n300, 2))
        snapshots(maker, n300)
        endpoint(maker, n300)
        service(maker, n300)
        events(maker)
        journal(maker)
        maker.keep("commands.json", json.dumps(maker.commands).encode())
    finally:
        maker.clear_away()


main()
