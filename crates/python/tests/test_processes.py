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


def test_a_signal_ends_a_wait() -> None:
    program = "import os, signal, telltale; signal.alarm(1); telltale.wait(os.getppid())"
    child = subprocess.run([sys.executable, "-c", program], timeout=30)
    assert child.returncode == -signal.SIGALRM
