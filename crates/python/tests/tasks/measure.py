"""Prints the cells of docs/python-tasks.md with the times of this machine, and how far they spread.

``TELLTALE=… PYTHONPATH=… python -m tasks.measure`` in ``crates/python/tests``, as root. One process for each tool runs a task's block once, and then 20
times without its imports. A watch is the processor time of one look; a peak is what comes on top of ``work()``.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from . import machine as machines, page
from .machine import Machine

RUNS = 20

_MEASURE = """
import contextlib
import io
import json
import sys
import time

before, whole, body, runs, task = json.loads(sys.stdin.read())
seconds = []
with contextlib.redirect_stdout(io.StringIO()) as printed:
    for run in range(runs + 1):
        names = {}
        exec(before, names)
        code = compile(body if run else whole, task, "exec")
        if run:
            names.update({name: value for name, value in imported.items() if name not in names})
        looks = len(printed.getvalue().splitlines())
        begin, begin_processor = time.perf_counter(), time.thread_time()
        exec(code, names)
        took, took_processor = time.perf_counter() - begin, time.thread_time() - begin_processor
        if task == "watch until an exit":
            took = took_processor / (len(printed.getvalue().splitlines()) - looks + 1)
        if task == "peak of a block":
            took -= names["worked"]
        if run:
            seconds.append(took)
        else:
            imported = names.copy()
print(json.dumps(seconds), file=sys.__stdout__)
"""


def measured(machine: Machine, task: str, tool: str, code: str) -> list[float]:
    """How long a task took, for each run."""
    machine.hold()
    given = json.dumps([machines.BEFORE.get(task, ""), code, page.body(code), RUNS, task])
    return json.loads(machine.run(_MEASURE, given).splitlines()[-1])


def text(seconds: float) -> str:
    """A time, to two digits."""
    scaled, unit = (seconds * 1e6, "µs") if seconds < 1e-3 else (seconds * 1e3, "ms")
    return f"{float(f'{scaled:.2g}'):g} {unit}"


def main() -> None:
    blocks = page.blocks()
    tools = list(next(iter(page.table().values())))
    spread: list[str] = []
    with tempfile.TemporaryDirectory() as place, Machine(Path(place)) as machine:
        machine.record_history(11.0)
        machine.print_tensors()
        for task, code in blocks.items():
            cells: list[str] = []
            for tool in tools:
                if tool not in code:
                    cells.append("-")
                    continue
                cell = f"{page.lines(code[tool])} lines"
                if (task, tool) not in machines.NOT_RUN:
                    seconds = measured(machine, task, tool, code[tool])
                    cell += f", {text(statistics.median(seconds))}"
                    low, _, high = statistics.quantiles(seconds, n=4)
                    spread.append(f"{task}, {tool}: quartiles {text(low)} and {text(high)}, most {text(max(seconds))}")
                cells.append(cell)
            print(f"| {task} | {' | '.join(cells)} |", flush=True)
    print("\n".join(spread), file=sys.stderr)


if __name__ == "__main__":
    main()
