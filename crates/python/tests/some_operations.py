"""Operations for tests, and a chip to run them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from telltale import operations as ops
from telltale.operations import Dynamic, Program, Spec

_SCALED_SUM = r"""
KERNEL_MAIN {
  const float scale = get_arg_val_float(3);
  cb_reserve_back(0, 1);
  cb_reserve_back(1, 1);
  float *a = get_write_ptr(0), *b = get_write_ptr(1);
  for (uint32_t row = 0; row < NAMED_ARG(rows); row++) {
    noc_read_page(get_arg_val(0), row, ROW_BYTES, ROW_BYTES, a);
    noc_read_page(get_arg_val(1), row, ROW_BYTES, ROW_BYTES, b);
    for (uint32_t i = 0; i < ROW_BYTES / 4; i++) {
      a[i] = scale * a[i] + b[i];
      if (NAMED_ARG(rectify) && a[i] < 0) a[i] = 0;
    }
    noc_write_page(get_arg_val(2), row, ROW_BYTES, ROW_BYTES, a);
  }
}"""

STORE = """
KERNEL_MAIN {
  uint32_t word = get_arg_val(1);
  noc_write_bytes(get_arg_val(0), 0, 4, &word);
}"""

_ENDLESS = "KERNEL_MAIN { for (volatile int i = 0;; i++) {} }"


@ops.operation
def scaled_sum(a: Spec, b: Spec, out: Spec, *, scale: Dynamic[float], rectify: bool = False) -> Program:
    """out = scale * a + b."""
    kernel = ops.Kernel(
        _SCALED_SUM,
        arguments=[a, b, out, scale],
        named={"rows": a.shape[0], "rectify": rectify},
        defines={"ROW_BYTES": a.page_bytes},
    )
    return Program([kernel], [ops.CircularBuffer(index, a.page_bytes) for index in (0, 1)])


@ops.operation
def store(out: Spec, *, value: Dynamic[int], attribute: object = None) -> Program:
    """Writes one word. The attribute decides nothing but the key."""
    return Program([ops.Kernel(STORE, arguments=[out, value])])


@ops.operation
def endless(out: Spec) -> Program:
    return Program([ops.Kernel(_ENDLESS, arguments=[out])])


@pytest.fixture(autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLTALE_KERNEL_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
    monkeypatch.delenv("TELLTALE_PROGRAM_CACHE", raising=False)


@pytest.fixture
def chip() -> Iterator[ops.Chip]:
    with ops.Chip(cache="check", kernel_timeout=2.0) as chip:
        yield chip


def array(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
