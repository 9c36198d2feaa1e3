"""docs/python-tasks.md: its table, and the code below each task."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "python-tasks.md"

_HEADING = re.compile(r"## (.+)")
_LABEL = re.compile(r"\*\*([\w-]+)\*\*")


def blocks() -> dict[str, dict[str, str]]:
    """The code by task, as the table names it, and by tool."""
    by_heading: dict[str, dict[str, str]] = {}
    heading = tool = ""
    code: list[str] | None = None
    for line in PAGE.read_text().splitlines():
        if line == "```":
            assert code is not None and tool not in by_heading[heading], (heading, tool)
            by_heading[heading][tool] = "\n".join(code) + "\n"
            code = None
        elif code is not None:
            code.append(line)
        elif line == "```py":
            assert heading and tool, "a block without a tool"
            by_heading.setdefault(heading, {})
            code = []
        elif found := _HEADING.fullmatch(line):
            heading, tool = found[1], ""
        elif found := _LABEL.fullmatch(line):
            tool = found[1]
        else:
            assert not line.startswith("```"), line
    anchors = {re.sub("[^a-z -]", "", heading.lower()).replace(" ", "-"): code for heading, code in by_heading.items()}
    named = re.findall(r"^\| \[(.+?)\]\(#(.+?)\)", PAGE.read_text(), re.MULTILINE)
    assert {anchor for _, anchor in named} == anchors.keys()
    return {task: anchors[anchor] for task, anchor in named}


def table() -> dict[str, dict[str, str]]:
    """The cells by task and tool."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("|")]
    heading = next(row for row in rows if row[0] == "task")
    tasks = [row for row in rows if row[0].startswith("[") and len(row) == len(heading)]
    return {row[0][1:].split("]")[0]: dict(zip(heading[1:], row[1:])) for row in tasks}


def lines(code: str) -> int:
    """Lines of code: without blank ones and comments."""
    return sum(1 for line in code.splitlines() if line.strip() and not line.strip().startswith("#"))


def body(code: str) -> str:
    """The code without its imports."""
    return "\n".join(line for line in code.splitlines() if not re.match("(import|from) ", line))
