"""PyTorch's part, with the PyTorch that is here."""

from __future__ import annotations

import ast
import ctypes
import gc
import os
import subprocess
import sys
import types
import weakref
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import telltale
import telltale.torch

pytest.importorskip("torch")

_JOB = """
import sys, torch, torch.distributed as dist
import telltale.torch
telltale.torch.install()
telltale.torch.install()
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
value = torch.ones(4)
for _ in range(3):
    with telltale.torch.compute("mine"):
        value.mul_(1)
    dist.all_reduce(value)
    telltale.torch.step()
with telltale.torch.checkpoint():
    pass
telltale.torch.flush()
assert value.tolist() == [8.0] * 4, value
import telltale_ccl
assert telltale_ccl.counts().keys() == telltale.torch.counts().keys()
print(telltale.torch.counts())
dist.destroy_process_group()
"""


def test_a_job_runs_as_before_and_its_operations_are_counted(tmp_path: Path) -> None:
    # A name of the log turns reporting on; where no agent listens, what was seen is counted as dropped.
    environment = {**os.environ, "TELLTALE_LOG_CCL": f"unix:{tmp_path}/no-agent.sock"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _JOB, str(tmp_path / "store"), str(rank)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for rank in ranks:
        out, _ = rank.communicate(timeout=120)
        assert rank.returncode == 0, out
        counts = ast.literal_eval(out)
        assert counts["reported"] >= 3 and counts["spans"] >= 3 and counts["errors"] == 0, counts
        assert counts["posted"] == 0, "no agent listens"


def test_the_module_exports_what_allocates() -> None:
    exported = ctypes.CDLL(telltale._telltale.__file__)  # pyright: ignore[reportPrivateUsage]
    exported.telltale_torch_alloc.restype = ctypes.c_void_p
    assert exported.telltale_torch_alloc(ctypes.c_ssize_t(0), 0, None) is None
    exported.telltale_torch_free(None, ctypes.c_ssize_t(0), 0, None)


class _Made(types.SimpleNamespace):
    """Something of PyTorch's, to which there may be weak references."""


class _Cuda(types.SimpleNamespace):
    """PyTorch's CUDA as far as allocators and pools go, which frees nothing that it uses."""

    def __init__(self, *devices: int) -> None:
        super().__init__(memory=self, devices=[*devices], changes=[], pools=[], used=[])

    def CUDAPluggableAllocator(self, path: str, allocate: str, free: str) -> Any:
        exported = ctypes.CDLL(path)
        assert getattr(exported, allocate) and getattr(exported, free)
        return _Made(allocator=object)

    def change_current_allocator(self, chosen: Any) -> None:
        if self.changes:
            raise RuntimeError("Can't swap an already initialized allocator")
        self.changes.append(weakref.ref(chosen))

    def current_device(self) -> int:
        return self.devices.pop(0)

    def MemPool(self, allocator: object) -> Any:
        made = _Made(allocator=allocator)
        self.pools.append(weakref.ref(made))
        return made

    def use_mem_pool(self, pool: Any) -> AbstractContextManager[None]:
        self.used.append(id(pool))
        return nullcontext()


def _with(monkeypatch: pytest.MonkeyPatch, cuda: object) -> None:
    """PyTorch with this CUDA, of which nothing has been used."""
    monkeypatch.setattr(telltale.torch, "_torch", lambda: types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(telltale.torch, "_allocators", [])
    monkeypatch.setattr(telltale.torch, "_pools", {})
    monkeypatch.setattr(telltale.torch, "_is_allocating", False)


def test_a_pool_stays_while_its_tensors_may(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = _Cuda(0, 0, 1)
    _with(monkeypatch, cuda)
    for _ in range(3):
        with telltale.torch.pool():
            pass
    gc.collect()
    # One for each device.
    first, again, second = cuda.used
    assert first == again != second and len(cuda.pools) == 2
    # Also without the module's own references, as at the end of the interpreter.
    monkeypatch.setattr(telltale.torch, "_allocators", [])
    monkeypatch.setattr(telltale.torch, "_pools", {})
    gc.collect()
    assert [pool() for pool in cuda.pools].count(None) == 0


def test_an_allocator_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = _Cuda(0)
    _with(monkeypatch, cuda)
    for _ in range(2):
        telltale.torch.install(allocator=True)
    with telltale.torch.pool():
        pass
    gc.collect()
    (chosen,) = cuda.changes
    assert chosen() is not None


def test_a_torch_that_has_no_pools_says_which_one_has(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, types.SimpleNamespace())
    with pytest.raises(telltale.MissingPackageError, match="no pools of memory") as old:
        telltale.torch.pool()
    assert old.value.remedy and old.value.remedy.startswith("install torch 2.5 or later")
