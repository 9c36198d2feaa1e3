"""A watch gives one snapshot after another, to both kinds of loops."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
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


def test_other_tasks_run_meanwhile(emulated: Emulated) -> None:
    root = emulated("n150")

    async def watched() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        counting = asyncio.create_task(count())
        seen = 0
        async for snapshot in telltale.watch(0.1, root=root):
            assert len(snapshot.devices) == 1
            seen += 1
            if seen == 3:
                break
        counting.cancel()
        return turns

    assert asyncio.run(watched()) >= 3


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
