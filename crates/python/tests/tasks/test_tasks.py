"""What docs/python-tasks.md says of eight tasks: each block runs, and the tools agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from . import machine as machines, page
from .machine import Machine

BLOCKS = page.blocks()

#: What the blocks leave for the test.
ANSWERS = {
    "free memory": "free",
    "my processes": "sorted(pids)",
    "a device for a job": "__import__('os').environ['CUDA_VISIBLE_DEVICES']",
    "watch until an exit": "None",
    "a day's history": "[len(frame), sorted(set(frame.metric)), sorted(set(frame.device.dropna()))]",
    "peak of a block": "peak",
    "tensors from a kernel": "[[list(one.shape), str(one.dtype), one.min().item(), one.max().item()] for one in x]",
    "a first kernel": "None",
}
RUN = [(task, tool) for task, tools in BLOCKS.items() for tool in tools if (task, tool) not in machines.NOT_RUN]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("machine")) as machine:
        machine.record_history(3.0)
        machine.print_tensors()
        yield machine


def answer(machine: Machine, task: str, tool: str) -> Any:
    """What a block prints, a line each, and then what it leaves."""
    machine.hold()
    after = f"import json\nprint(json.dumps({ANSWERS[task]}))\n"
    *printed, left = machine.run(machines.BEFORE.get(task, "") + BLOCKS[task][tool] + after).splitlines()
    return printed if left == "null" else json.loads(left)


def expected(machine: Machine, task: str, tool: str) -> Any:
    gib = 1 << 30
    return {
        "free memory": [79 * gib, 79 * gib + gib // 4],
        "my processes": [machine.pid],
        "a device for a job": machine.uuid(1),
        "peak of a block": machines.PEAK >> 20 if tool == "nvitop" else machines.PEAK,
        "tensors from a kernel": [[[4, 32], "float32", float(number), float(number)] for number in range(12)],
        "a first kernel": str([[2.0] * 32] * 4).translate({ord(","): None}).replace(".0", "."),
    }[task]


@pytest.mark.parametrize(("task", "tool"), RUN)
def test_the_tools_agree(machine: Machine, task: str, tool: str) -> None:
    found = answer(machine, task, tool)
    if task == "watch until an exit":
        assert len(found) >= 2 and found[0] == found[1] == str(machines.HELD), found
    elif task == "a day's history":
        rows, metrics, devices = found
        assert rows > 0 and len(devices) == 2, found
        assert any("memory" in metric or "dram" in metric for metric in metrics), found
    elif task == "a first kernel":
        assert re.sub(r"\s+", " ", " ".join(found)).replace("[ ", "[") == expected(machine, task, tool)
    else:
        assert found == expected(machine, task, tool)


def test_each_tool_runs_where_it_has_code() -> None:
    assert len(BLOCKS) == len(ANSWERS) == 8
    assert BLOCKS.keys() == ANSWERS.keys()
    assert {tool for _, tool in RUN} == {"telltale", "nvitop", "pynvml", "NKI"}
    assert all(tool in BLOCKS[task] for task, tool in machines.NOT_RUN)


def test_lines_are_those_of_the_table() -> None:
    for task, cells in page.table().items():
        for tool, cell in cells.items():
            code = BLOCKS[task].get(tool)
            if code is None:
                assert cell == "-", (task, tool)
                continue
            stated = re.fullmatch(r"(\d+) lines(, [\d.]+ (ms|µs|s))?", cell)
            assert stated and int(stated[1]) == page.lines(code), (task, tool, cell, page.lines(code))
            assert bool(stated[2]) == ((task, tool) in RUN), (task, tool)
            assert all(len(line) <= 100 and ";" not in line for line in code.splitlines()), (task, tool)


def test_ours_is_never_the_longest() -> None:
    for task, tools in BLOCKS.items():
        ours = page.lines(tools["telltale"])
        assert all(ours <= page.lines(code) for code in tools.values()), task
