"""PyTorch's part, with the PyTorch that is here."""

from __future__ import annotations

import ast
import ctypes
import os
import subprocess
import sys
from pathlib import Path

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
