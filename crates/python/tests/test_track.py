"""What a block of code costs, against allocations whose sizes are known."""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import telltale


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[telltale.RecordedDevice]:
    """A device that this process records."""
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    with telltale.Runtime("tests 1").open_device(0) as opened:
        yield opened


def test_a_block_has_its_time_its_peak_and_what_it_kept(device: telltale.RecordedDevice) -> None:
    with telltale.track("nothing yet") as block:
        assert block.peak is None, "it goes on"
    assert (block.peak, block.kept, block.absence) == (0, 0, None)
    device.allocate(1000, 0x1000)
    with telltale.track("grow") as block:
        device.allocate(4 << 20, 0x100000)
        device.allocate(8 << 20, 0x800000)
        device.free(0x800000)
        time.sleep(0.01)
    assert block.seconds >= 0.01
    (part,) = block.memory
    assert (part.device, part.kind) == ("device 0", "dram")
    assert (part.before, part.after) == (1000, 1000 + (4 << 20))
    assert part.peak == block.peak == 1000 + (12 << 20)
    assert (block.kept, block.allocated, part.allocations, part.failed) == (4 << 20, 12 << 20, 2, 0)
    assert str(block).endswith("ms, peak 12.0 MiB, 4.0 MiB kept")


def test_a_device_that_is_opened_again_within_a_block_counts_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    runtime = telltale.Runtime("tests 2")
    first = runtime.open_device(0)
    first.allocate(1000, 0x1000)
    with telltale.track("reopen") as block:
        first.allocate(64 << 20, 0x100000)
        first.free(0x100000)
        first.free(0x1000)
        first.close()
        second = runtime.open_device(0)
        second.allocate(4 << 20, 0x100000)
    (part,) = block.memory
    assert (part.allocated, part.allocations) == (68 << 20, 2)
    assert part.peak == 1000 + (64 << 20)
    assert (part.before, part.after) == (1000, 4 << 20)
    second.close()


def test_a_peak_below_the_process_s_own_is_exact_and_others_still_see_the_higher_one(
    device: telltale.RecordedDevice, tmp_path: Path
) -> None:
    device.allocate(64 << 20, 0x1000)
    device.free(0x1000)
    for _ in range(2):
        with telltale.track("outer") as outer:
            device.allocate(3 << 20, 0x9000)
            with telltale.track("inner") as inner:
                device.allocate(1 << 20, 0x1000)
                device.free(0x1000)
            device.allocate(4 << 20, 0x1000)
            device.free(0x1000)
            with telltale.track("nothing") as nothing:
                pass
            device.free(0x9000)
        assert (inner.peak, outer.peak, nothing.peak) == (4 << 20, 7 << 20, 3 << 20)
        assert outer.memory[0].peak_uncertainty == 0
        assert str(nothing).endswith("peak 3.0 MiB, nothing kept")
    (part,) = telltale.snapshot(runtime_dir=tmp_path).memory
    assert part.peak == 64 << 20


def test_functions_are_tracked_also_async_ones_and_in_several_threads(device: telltale.RecordedDevice) -> None:
    reports: list[telltale.Block] = []
    track = telltale.track("work", report=reports.append)

    @track
    def work(depth: int) -> int:
        """Docs."""
        return depth if depth == 0 else work(depth - 1)

    @track
    async def waits() -> str:
        await asyncio.sleep(0.02)
        return "done"

    assert work(2) == 0 and work.__doc__ == "Docs." and work.__name__ == "work"
    threads = [threading.Thread(target=work, args=(0,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def both() -> list[str]:
        return list(await asyncio.gather(waits(), waits()))

    assert asyncio.run(both()) == ["done", "done"]
    assert track.runs == len(reports) == 3 + 4 + 2
    assert track.total_seconds >= 0.04 and track.last is reports[-1]
    with pytest.raises(ZeroDivisionError), track:
        print(1 / 0)
    assert track.runs == 10, "a block that raises ends as well"


def test_generators_that_take_turns_have_their_own_runs() -> None:
    track = telltale.track("turns")
    blocks: dict[str, telltale.Block] = {}

    def take(name: str) -> Iterator[None]:
        with track as blocks[name]:
            yield
            yield

    first = take("first")
    next(first)
    time.sleep(0.1)
    second = take("second")
    next(second)
    # The one that was entered first is left first.
    assert [*first] == [None]
    assert track.last is blocks["first"] and blocks["first"].seconds >= 0.1 and blocks["second"].seconds == 0
    assert [*second] == [None]
    assert track.last is blocks["second"] and blocks["second"].seconds < 0.1 and track.runs == 2


def test_a_block_may_be_left_in_another_thread_than_it_was_entered() -> None:
    track = telltale.track("threads")
    blocks: dict[int, telltale.Block] = {}

    def take(number: int) -> Iterator[None]:
        with track as blocks[number]:
            yield

    async def turns() -> None:
        takes = [take(number) for number in range(4)]
        for one in takes:
            await asyncio.to_thread(next, one)
        for number, one in enumerate(takes):
            await asyncio.to_thread(next, one, None)
            assert track.last is blocks[number]
        with track as outer:
            await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))
        assert track.last is outer

    def work() -> None:
        with track as mine:
            time.sleep(0.01)
        assert mine.seconds >= 0.01

    asyncio.run(turns())
    assert track.runs == 9


def test_an_exit_stack_leaves_the_block_of_its_task() -> None:
    track = telltale.track("stack")

    async def task(delay: float) -> float:
        async with AsyncExitStack() as stack:
            block = stack.enter_context(track)
            await asyncio.sleep(delay)
        return block.seconds

    async def both() -> tuple[float, float]:
        return await asyncio.gather(task(0.02), task(0.2))

    short, long = asyncio.run(both())
    assert 0.02 <= short < long and long >= 0.2
    with pytest.raises(RuntimeError, match="was not entered"):
        track.__exit__(None, None, None)


def test_generators_are_tracked_to_their_end(device: telltale.RecordedDevice) -> None:
    track = telltale.track("generator")

    @track
    def halves(number: int) -> Generator[int, int, str]:
        device.allocate(4096, 0x1000)
        sent = yield number
        yield sent // 2
        device.free(0x1000)
        return "done"

    values = halves(8)
    assert track.runs == 0 and inspect.isgeneratorfunction(halves)
    assert (next(values), values.send(6)) == (8, 3)
    time.sleep(0.01)
    with pytest.raises(StopIteration) as ended:
        next(values)
    assert ended.value.value == "done" and track.runs == 1
    assert track.last is not None and track.last.seconds >= 0.01
    assert (track.last.peak, track.last.kept) == (4096, 0)
    closed = halves(1)
    next(closed)
    closed.close()
    assert track.runs == 2
    with pytest.raises(TypeError):
        next(halves())  # type: ignore[call-arg]
    assert track.runs == 3


def test_async_generators_are_tracked_to_their_end() -> None:
    track = telltale.track("stream")
    seen: list[str] = []

    @track
    async def echoes(first: str) -> AsyncGenerator[str, str]:
        value = first
        try:
            while value != "end":
                await asyncio.sleep(0.01)
                try:
                    value = yield value
                except KeyError:
                    value = "caught"
        finally:
            seen.append("closed")

    async def talk() -> None:
        values = echoes("a")
        assert track.runs == 0 and inspect.isasyncgenfunction(echoes)
        assert [await anext(values), await values.asend("b"), await values.athrow(KeyError())] == ["a", "b", "caught"]
        with pytest.raises(StopAsyncIteration):
            await values.asend("end")
        assert track.runs == 1 and track.last is not None and track.last.seconds >= 0.03
        early = echoes("x")
        assert await anext(early) == "x"
        await early.aclose()
        assert track.runs == 2 and seen == ["closed"] * 2
        failing = echoes("y")
        await anext(failing)
        with pytest.raises(ZeroDivisionError):
            await failing.athrow(ZeroDivisionError())

    asyncio.run(talk())
    assert track.runs == 3 and seen == ["closed"] * 3


def test_callable_objects_are_tracked_and_classes_are_refused() -> None:
    track = telltale.track("call")

    class Waits:
        async def __call__(self) -> int:
            await asyncio.sleep(0.02)
            return 3

    waits = track(Waits())
    assert asyncio.run(waits()) == 3
    assert track.last is not None and track.last.seconds >= 0.02
    wrong: list[Any] = [Waits, classmethod(print)]
    for one in wrong:
        with pytest.raises(TypeError, match="decorate a function"):
            track(one)


def test_a_track_reaches_another_process() -> None:
    track = telltale.track("step", report=print)
    with track:
        pass
    copied: telltale.Track = pickle.loads(pickle.dumps(track))
    assert (copied.name, copied.runs, copied.last) == ("step", 0, None)
    with copied:
        pass
    assert (copied.runs, track.runs) == (1, 1)


def test_memory_of_a_chip_is_not_in_a_block(device: telltale.RecordedDevice) -> None:
    pytest.importorskip("numpy")
    with telltale.track("chip") as block, telltale.operations.Chip() as chip:
        chip.empty((64, 1024), "float32")
    assert (block.peak, block.allocated) == (0, 0)


def test_a_child_of_fork_may_count_while_a_thread_of_its_parent_did() -> None:
    program = """
import os, signal, threading, telltale
track = telltale.track("x")
def count():
    while True:
        with track: pass
for _ in range(4):
    threading.Thread(target=count, daemon=True).start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        with track: pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    # CPython 3.12 and later warn of any fork with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    assert subprocess.run(command, timeout=60).returncode == 0


def test_a_device_that_is_opened_again_within_counts(device: telltale.RecordedDevice) -> None:
    with telltale.track("whole") as block:
        device.close()
        with telltale.Runtime("tests 2").open_device(1) as other:
            other.allocate(2 << 20, 0x1000)
            with telltale.track("inner") as inner:
                other.allocate(2 << 20, 0x900000)
    assert {part.device: part.peak for part in inner.memory}["device 1"] == 4 << 20
    assert {part.device: part.peak for part in block.memory}["device 1"] == 4 << 20


def test_a_process_that_records_nothing_has_its_time_and_the_reason(tmp_path: Path) -> None:
    program = "import telltale\nwith telltale.track('x') as block: pass\nprint(block)\nassert block.peak is None"
    environment = {**os.environ, "TT_METRICS_SOCKET_DIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert "memory unknown: this process records no device memory; start it with `telltale run`" in said.stdout, said


def test_a_child_of_fork_leaves_the_block_of_its_parent(device: telltale.RecordedDevice) -> None:
    with telltale.track("fork") as block:
        child = os.fork()
        if child == 0:
            # What the child does must end; the parent's thread is not there.
            with telltale.track("child"):
                pass
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        device.allocate(4096, 0x9000)
    assert block.kept == 4096
