"""Chips, processes and threads: closing, fork, signals, the end of the interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import telltale
from some_operations import STORE, array, chip as chip, endless, kernel_cache as kernel_cache, scaled_sum, store
from telltale import operations as ops
from telltale.operations import Program, Spec


def test_a_closed_chip_is_refused() -> None:
    chip = ops.Chip()
    out, root = chip.empty((1, 1), "uint32"), Path(chip.root)
    store(out, value=1)
    assert root.exists()
    chip.close()
    chip.close()
    assert not root.exists() and not root.parent.exists()
    assert (chip.is_open, "closed" in repr(chip), "closed" in repr(chip.cache)) == (False, True, True)
    for use in (out.numpy, lambda: store(out, value=1), lambda: chip.empty((1, 1), "uint32"), chip.finish):
        with pytest.raises(telltale.OperationError, match="closed; open another"):
            use()


def test_tensors_of_several_chips_do_not_mix(chip: ops.Chip) -> None:
    with ops.Chip("p150") as other:
        a, b = chip.tensor(array(1, 2, 2)), other.tensor(array(2, 2, 2))
        with pytest.raises(telltale.OperationError, match="several chips"):
            scaled_sum(a, b, a, scale=1.0)


def test_a_machine_that_is_there_already_is_used(emulated: Any) -> None:
    root = emulated("n300")
    deadline = time.monotonic() + 30
    while not (root / "dev/tenstorrent/0").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    with ops.Chip(root=root) as first, ops.Chip(root=root, chip=1) as second:
        for chip in (first, second):
            out = chip.empty((1, 1), "uint32")
            store(out, value=8)
            assert out.numpy().item() == 8
        assert first.core(0, 0) != second.core(0, 0)
        (process,) = telltale.snapshot(root=root).processes
        assert (process.pid, len(process.devices)) == (os.getpid(), 2)
    assert root.exists()


def test_threads_share_a_chip(chip: ops.Chip) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for step in range(20):
                a, b = array(seed, 3, 8), array(step, 3, 8)
                x, y, z = chip.tensor(a), chip.tensor(b), chip.empty((3, 8), "float32")
                scaled_sum(x, y, z, scale=float(step))
                np.testing.assert_array_equal(z.numpy(), np.float32(step) * a + b)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert chip.cache.programs == ["scaled_sum"]
    assert chip.cache.hits + chip.cache.misses == 120


def test_an_exception_in_one_thread_is_no_other_threads(chip: ops.Chip) -> None:
    describing, raised = threading.Event(), threading.Event()

    @ops.operation
    def once(out: Spec) -> Program:
        if not raised.is_set():
            describing.set()
            time.sleep(0.2)
            raised.set()
            raise KeyError("mine")
        return Program([ops.Kernel(STORE, arguments=[out, 2])])

    out = chip.empty((1, 1), "uint32")
    errors: list[BaseException] = []

    def first() -> None:
        try:
            once(out)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert describing.wait(10)
    once(out)
    thread.join(10)
    assert out.numpy().item() == 2
    assert [type(error) for error in errors] == [KeyError]


def slow_compiler(tmp_path: Path, seconds: float) -> str:
    """A compiler that sleeps before it compiles a kernel."""
    script = tmp_path / "slow-cc"
    script.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) sleep {seconds};; esac\nexec cc "$@"\n')
    script.chmod(0o755)
    return str(script)


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_reaches_a_read_that_waits(chip: ops.Chip) -> None:
    out = chip.empty((1, 1), "uint32")
    endless(out)
    start = time.monotonic()
    interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        out.numpy()
    assert time.monotonic() - start < 1.5
    # The kernel is stopped by its timeout.
    with pytest.raises(telltale.OperationError, match="endless"):
        out.numpy()
    store(out, value=1)
    assert out.numpy().item() == 1


def test_ctrl_c_while_a_chip_is_dropped_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException] | None] = []

    def report(unraisable: Any) -> None:
        reported.append(unraisable.exc_type)

    monkeypatch.setattr(sys, "unraisablehook", report)
    ticks: list[float] = []

    def tick() -> None:
        for _ in range(100):
            ticks.append(time.monotonic())
            time.sleep(0.01)

    chip = ops.Chip(kernel_timeout=5.0)
    out = chip.empty((1, 1), "uint32")
    endless(out)
    thread = threading.Thread(target=tick)
    thread.start()
    interrupt_after(0.3)
    start = time.monotonic()
    del out, chip
    end = time.monotonic()
    thread.join()
    assert end - start < 3 and reported == [KeyboardInterrupt]
    assert len([at for at in ticks if start < at < end]) >= 5


CLOSES = """
import os, signal, threading
from telltale import operations as ops, _telltale

@ops.operation
def endless(out: ops.Spec) -> ops.Program:
    return ops.Program([ops.Kernel("KERNEL_MAIN { for (volatile int i = 0;; i++) {} }", arguments=[out])])

first, second = ops.Chip(kernel_timeout=5.0), ops.Chip()
endless(first.empty((1, 1), "uint32"))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    _telltale.close_chips()
except KeyboardInterrupt:
    print(first.is_open, second.is_open)
"""


def test_all_chips_are_closed_whatever_closing_one_raises() -> None:
    ran = subprocess.run([sys.executable, "-c", CLOSES], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "False False\n", ran.stdout + ran.stderr


def test_ctrl_c_reaches_a_call_that_waits_for_another_threads_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", slow_compiler(tmp_path, 4))
    monkeypatch.setenv("TELLTALE_KERNEL_CACHE", str(tmp_path / "kernels"))
    with ops.Chip() as chip:
        out, other = chip.empty((1, 1), "uint32"), chip.empty((1, 1), "uint32")
        thread = threading.Thread(target=store, args=(other,), kwargs={"value": 9})
        thread.start()
        time.sleep(0.5)
        start = time.monotonic()
        interrupt_after(0.3)
        with pytest.raises(KeyboardInterrupt):
            store(out, value=1)
        assert time.monotonic() - start < 2 and thread.is_alive()
        thread.join(30)
        assert other.numpy().item() == 9


def test_ctrl_c_reaches_a_chip_whose_compiler_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "hanging-cc"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    start = time.monotonic()
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        ops.Chip()
    assert time.monotonic() - start < 3


def test_ctrl_c_reaches_a_call_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", slow_compiler(tmp_path, 20))
    monkeypatch.setenv("TELLTALE_KERNEL_CACHE", str(tmp_path / "kernels"))
    with ops.Chip() as chip:
        out = chip.empty((1, 1), "uint32")
        start = time.monotonic()
        interrupt_after(0.3)
        with pytest.raises(KeyboardInterrupt):
            store(out, value=1)
        assert time.monotonic() - start < 3
        monkeypatch.delenv("CC")
        store(out, value=6)
        assert out.numpy().item() == 6


def test_ctrl_c_ends_no_other_threads_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", slow_compiler(tmp_path, 1))
    monkeypatch.setenv("TELLTALE_KERNEL_CACHE", str(tmp_path / "kernels"))
    with ops.Chip(kernel_timeout=2.0) as chip:
        out, other = chip.empty((1, 1), "uint32"), chip.empty((1, 1), "uint32")
        errors: list[BaseException] = []

        def work() -> None:
            try:
                store(other, value=9)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        interrupt_after(0.3)
        with pytest.raises(KeyboardInterrupt):
            endless(out)
        thread.join(20)
        assert errors == []
        assert other.numpy().item() == 9


def test_other_threads_run_while_a_program_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", slow_compiler(tmp_path, 0.5))
    monkeypatch.setenv("TELLTALE_KERNEL_CACHE", str(tmp_path / "kernels"))
    with ops.Chip() as chip:
        out = chip.empty((1, 1), "uint32")
        ticks = 0
        done = threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not done.wait(0.01):
                ticks += 1

        thread = threading.Thread(target=tick)
        thread.start()
        store(out, value=1)
        done.set()
        thread.join()
        assert ticks >= 10


def test_a_child_of_fork_is_refused_and_may_open_its_own(chip: ops.Chip) -> None:
    out = chip.empty((1, 1), "uint32")
    store(out, value=1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        result = b"unknown"
        try:
            try:
                out.numpy()
            except telltale.OperationError as error:
                result = str(error).encode()
            chip.close()
            out.free()
            with ops.Chip() as own:
                mine = own.empty((1, 1), "uint32")
                store(mine, value=7)
                result += b" %d" % mine.numpy().item()
        finally:
            os.write(writing, result)
            os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + 30
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert b"forked; open another one 7" in os.read(reading, 1000)
    os.close(reading)
    # The parent's is as it was.
    store(out, value=2)
    assert out.numpy().item() == 2


EXITS = f"""
import os, sys, threading
from telltale import OperationError, operations as ops
STORE = '''{STORE}'''

@ops.operation
def store(out: ops.Spec, *, value: ops.Dynamic[int]) -> ops.Program:
    return ops.Program([ops.Kernel(STORE, arguments=[out, value])])

chip = ops.Chip()
out = chip.empty((1, 1), "uint32")
store(out, value=1)
print(os.path.dirname(chip.root), flush=True)

def work():
    try:
        while True:
            store(out, value=3)
            out.numpy()
    except OperationError:
        pass  # It is closed when the process ends.

how = sys.argv[1]
if how == "thread":
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    while chip.cache.hits < 100:
        pass
if how == "fork":
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    store(out, value=3)
    assert out.numpy().item() == 3
if how == "raise":
    raise SystemExit("mine")
"""


@pytest.mark.parametrize(("how", "code"), [("plain", 0), ("thread", 0), ("fork", 0), ("raise", 1)])
def test_a_process_may_end_without_closing_its_chip(how: str, code: int) -> None:
    # CPython 3.12 and later warn of any fork with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", EXITS, how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.strip() == ("mine" if how == "raise" else "")
    assert not Path(ended.stdout.split()[0]).exists()


PRINTS = """
from telltale import operations as ops

@ops.operation
def prints(out: ops.Spec) -> ops.Program:
    kernel = ops.Kernel('KERNEL_MAIN { device_print_scalar("answer", 42); }', cores=[(1, 0)], arguments=[out])
    return ops.Program([kernel])

with ops.Chip() as chip:
    out = chip.empty((1, 1), "uint32")
    prints(out)
    chip.finish()
    print(chip.core(1, 0))
"""


def test_kernels_print_to_the_streams_of_the_process(tmp_path: Path) -> None:
    environment = {**os.environ, "NEURON_RT_DEBUG_OUTPUT_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PRINTS], capture_output=True, text=True, timeout=60, env=environment, check=True
    )
    assert "answer" in ran.stdout and "42" in ran.stdout, ran.stdout + ran.stderr


def test_the_module_is_imported_only_by_those_who_use_it() -> None:
    check = "import sys, telltale; assert 'telltale.operations' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
