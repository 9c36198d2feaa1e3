"""What a block of code costs, against allocations whose sizes are known."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

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
