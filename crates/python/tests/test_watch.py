"""A watch gives one snapshot after another, to both kinds of loops."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import telltale

Emulated = Callable[[str], Path]


def test_snapshots_come_one_a_period(emulated: Emulated) -> None:
    begin = time.monotonic()
    watch = telltale.watch(0.1, root=emulated("n150"))
    taken = [next(watch).taken_at for _ in range(3)]
    assert taken == sorted(taken)
    assert time.monotonic() - begin >= 0.2


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """A service that takes connections and never answers."""
    path = tmp_path / "silent.sock"
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()
        yield f"unix:{path}"


def test_snapshots_come_to_a_task(emulated: Emulated) -> None:
    root = emulated("n150")

    async def watched() -> list[int]:
        seen: list[int] = []
        async for snapshot in telltale.watch(0.05, root=root):
            seen.append(len(snapshot.devices))
            if len(seen) == 3:
                break
        return seen

    assert asyncio.run(watched()) == [1, 1, 1]


def test_other_tasks_run_while_a_snapshot_is_taken(silent: str) -> None:
    async def watched() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        counting = asyncio.create_task(count())
        # The first one is taken at once: all the time passes in the call.
        with pytest.raises(telltale.ServiceError):
            await anext(telltale.watch(host=silent, timeout=0.5))
        counting.cancel()
        return turns

    assert asyncio.run(watched()) >= 10


def test_ctrl_c_ends_a_task_that_waits_for_a_snapshot(silent: str) -> None:
    program = f"""
import asyncio, telltale
async def watched():
    print("waits", flush=True)
    async for _ in telltale.watch(host={silent!r}, timeout=50): pass
asyncio.run(watched())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline()
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    # The service is given up after 5 s.
    assert "KeyboardInterrupt" in errors and time.monotonic() - begun < 3


def test_a_task_that_is_cancelled_leaves_the_watch_usable(emulated: Emulated) -> None:
    watch = telltale.watch(0.01, root=emulated("n150"))

    async def cancelled() -> int:
        task = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return len((await anext(watch)).devices)

    assert asyncio.run(cancelled()) == 1
    # Also in another loop.
    assert asyncio.run(cancelled()) == 1


def test_the_thread_ends_with_its_watch(emulated: Emulated) -> None:
    async def one() -> None:
        await anext(telltale.watch(root=root))

    def threads() -> int:
        return sum(thread.name == "telltale watch" for thread in threading.enumerate())

    root, before = emulated("n150"), threads()
    for _ in range(3):
        asyncio.run(one())
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert threads() <= before


def test_a_period_is_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        telltale.watch(0)


def test_a_child_of_fork_collects_by_itself(emulated: Emulated) -> None:
    root = emulated("n150")
    before = telltale.snapshot(root=root)
    child = os.fork()
    if child == 0:
        os._exit(0 if len(telltale.snapshot(root=root).devices) == len(before.devices) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(telltale.snapshot(root=root).devices) == 1


def test_a_child_of_fork_goes_on_with_a_watch(emulated: Emulated) -> None:
    program = f"""
import asyncio, os, signal, telltale
watch = telltale.watch(0.01, root={str(emulated("n150"))!r})
async def one():
    return len((await anext(watch)).devices)
assert asyncio.run(one()) == 1
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if asyncio.run(one()) == 1 else 1)
print(os.waitpid(child, 0)[1], asyncio.run(one()))
"""
    # CPython 3.12 and later warn of any fork with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert printed.stdout == "0 1\n", printed
