"""Operations that are one expression."""

from __future__ import annotations

import numpy as np
import pytest
from some_operations import array, chip as chip, kernel_cache as kernel_cache
from telltale import operations as ops
from telltale.errors import OperationError


def test_values_are_those_of_numpy(chip: ops.Chip) -> None:
    weighted = ops.elementwise("2 * a + b")
    for shape in [(1, 1), (7, 5), (300,), (3, 2, 129)]:
        a, b = array(1, *shape), array(2, *shape)
        x, y, out = chip.tensor(a), chip.tensor(b), chip.empty(shape, np.float32)
        weighted(x, y, out)
        np.testing.assert_array_equal(out.numpy(), np.float32(2) * a + b)
        weighted(x, y, x)
        np.testing.assert_array_equal(x.numpy(), np.float32(2) * a + b)
    # One program for each shape.
    assert (chip.cache.hits, chip.cache.misses) == (4, 4)
    eight = [chip.tensor(array(seed, 4)) for seed in range(9)]
    ops.elementwise("a + b + c + d + e + f + g + h")(*eight)
    np.testing.assert_allclose(eight[-1].numpy(), sum(array(seed, 4) for seed in range(8)), rtol=1e-5)


def test_two_expressions_are_two_operations(chip: ops.Chip) -> None:
    x = chip.tensor(np.ones((4, 32), np.float32))
    ops.elementwise("2 * a")(x, x)
    ops.elementwise("a + 1")(x, x)
    assert (x.numpy() == 3).all()
    assert chip.cache.programs == ["elementwise"] * 2


def test_what_it_does_not_take_is_refused(chip: ops.Chip) -> None:
    double = ops.elementwise("2 * a")
    x = chip.empty((4, 32), np.float32)
    with pytest.raises(TypeError, match="2 to 9 operands, not 1"):
        double(x)
    with pytest.raises(ValueError, match="one shape"):
        double(x, chip.empty((4, 31), np.float32))
    with pytest.raises(ValueError, match="row-major float32, not row_major int32"):
        double(*[chip.empty((4, 32), "int32")] * 2)
    with pytest.raises(ValueError, match="row-major float32, not tiled float32"):
        double(*[chip.empty((32, 32), np.float32, layout="tiled")] * 2)
    with pytest.raises(OperationError, match="nonsense"):
        ops.elementwise("nonsense")(x, x)
        chip.finish()
