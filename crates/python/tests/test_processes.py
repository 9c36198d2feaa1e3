"""The processes of a user, and waiting for the end of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import telltale


def test_processes_of_this_user(
    emulated: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    root = emulated("n150")
    pci = telltale.snapshot(root=root).devices[0].pci
    with telltale.Runtime("mine").open_device(0, pci=pci) as device:
        device.allocate(4096, address=0x1000)
        mine = telltale.my_processes(root=root, runtime_dir=tmp_path)
        assert os.getpid() in [process.pid for process in mine]
        assert {process.uid for process in mine} == {os.getuid()}


def test_a_process_that_was_killed_is_no_longer_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    program = """
import sys, telltale
device = telltale.Runtime("worker").open_device(0)
device.allocate(4096, 4096)
print(flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        assert child.pid in [process.pid for process in telltale.my_processes(runtime_dir=tmp_path)]
        child.kill()
    assert child.pid not in [process.pid for process in telltale.my_processes(runtime_dir=tmp_path)]
    (left,) = [process for process in telltale.snapshot(runtime_dir=tmp_path).processes if process.pid == child.pid]
    assert left.state == "dead"


def test_a_wait_ends_with_the_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    begin = time.monotonic()
    assert not telltale.wait(child.pid, timeout=0.1)
    assert 0.1 <= time.monotonic() - begin < 5
    assert not telltale.wait(child.pid, timeout=-1)
    threading.Timer(0.1, child.kill).start()
    # Also while nothing has reaped it.
    assert telltale.wait(child.pid)
    assert telltale.wait(child.pid, timeout=0)
    assert child.wait(10) == -signal.SIGKILL
    assert telltale.wait(child.pid)


def test_what_no_process_can_be_is_refused() -> None:
    for pid in (0, -1, 1 << 40):
        with pytest.raises(telltale.QueryError, match="is no pid") as refused:
            telltale.wait(pid)
        assert refused.value.remedy
    with pytest.raises(telltale.QueryError, match="timeout"):
        telltale.wait(1, timeout=float("nan"))


def test_a_wait_may_have_any_limit() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    for limit in (1e9, 1e300, float("inf")):
        threading.Timer(0.1, child.kill).start()
        assert telltale.wait(child.pid, timeout=limit)
    child.wait(10)


def test_the_handler_of_a_signal_runs_during_a_wait() -> None:
    program = """
import os, signal, telltale
def refuse(number, frame):
    raise InterruptedError("by the handler")
signal.signal(signal.SIGALRM, refuse)
signal.alarm(1)
try:
    telltale.wait(os.getppid(), timeout=20)
except InterruptedError as error:
    print(error)
"""
    child = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=30)
    assert (child.returncode, child.stdout) == (0, "by the handler\n")


def test_a_value_that_is_absent_has_its_reason(
    emulated: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    root = emulated("n150")
    pci = telltale.snapshot(root=root).devices[0].pci
    with telltale.Runtime("mine").open_device(0, pci=pci) as device:
        device.allocate(4096, address=0x1000)
        (process,) = telltale.my_processes(root=root, runtime_dir=tmp_path)
        (holding,) = process.devices
        for row in (process, holding):
            assert (row.dram, row.absence("dram")) == (4096, None)
            # Only a container has one, and only `usage` reads the other.
            for name in ("engine", "cpu"):
                assert getattr(row, name) is None and row.absence(name), name
            with pytest.raises(AttributeError, match="drum"):
                row.absence("drum")
    assert holding.device.pci == pci and holding.process.pid == os.getpid()
