"""An emulated host, and the program beside which the module is compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TELLTALE = os.environ["TELLTALE"]

# A shell that starts tests in the background has it ignored, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def smi(root: Path, *arguments: str) -> dict[str, Any]:
    """What ``telltale smi --json`` says of a host."""
    command = [TELLTALE, "smi", "--json", "--root", str(root), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in an interpreter of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes the files of a machine, and keeps them alive."""
    running: list[subprocess.Popen[str]] = []

    def start(machine: str) -> Path:
        root = tmp_path / machine
        process = subprocess.Popen(
            [TELLTALE, "emulate", "--machine", machine, "--root", str(root)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr is not None
        # It says so when all files are there.
        line = process.stderr.readline()
        assert line.startswith("An emulated "), line
        return root

    yield start
    for process in running:
        process.terminate()
        process.communicate(timeout=10)
