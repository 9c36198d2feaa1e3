"""Operations that are described in Python, run on an emulated chip."""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import telltale
from some_operations import STORE, array, chip as chip, kernel_cache as kernel_cache, scaled_sum, store
from telltale import operations as ops
from telltale.operations import Dynamic, Program, Spec


def test_values_are_those_of_numpy(chip: ops.Chip) -> None:
    for seed, shape in enumerate([(4, 32), (1, 1), (7, 5)]):
        a, b = array(seed, *shape), array(seed + 9, *shape)
        x, y, z = chip.tensor(a), chip.tensor(b), chip.empty(shape, np.float32)
        scaled_sum(x, y, z, scale=2.0)
        np.testing.assert_array_equal(z.numpy(), np.float32(2) * a + b)
        scaled_sum(x, y, out=z, scale=-1, rectify=True)
        np.testing.assert_array_equal(np.asarray(z), np.maximum(b - a, 0))
    assert (chip.cache.hits, chip.cache.misses) == (0, 6)
    assert repr(chip.cache) == "<ProgramCache 0 hits, 6 misses, 6 programs, check>"
    assert chip.cache.programs == ["scaled_sum"] * 6


def test_a_hit_writes_addresses_and_dynamic_values_and_calls_no_function() -> None:
    calls: list[Spec] = []

    @ops.operation
    def counted(out: Spec, *, value: Dynamic[int]) -> Program:
        calls.append(out)
        return Program([ops.Kernel(STORE, arguments=[out, value])])

    with ops.Chip() as chip:
        outs = [chip.empty((1, 1), "int32") for _ in range(3)]
        for value, out in enumerate(outs):
            counted(out, value=-value)
        assert [out.numpy().item() for out in outs] == [0, -1, -2]
        counted(outs[0], value=2**31 - 1)
        assert outs[0].numpy().item() == 2**31 - 1
        assert len(calls) == 1
        assert (chip.cache.hits, chip.cache.misses, chip.cache.checks) == (3, 1, 0)
        chip.cache.clear()
        counted(outs[0], value=5)
        assert (len(calls), chip.cache.misses) == (2, 2)
        for wrong in (2**32, -(2**31) - 1):
            with pytest.raises(ValueError, match="value: .* 32 bits"):
                counted(outs[0], value=wrong)
        with pytest.raises(TypeError, match="value: "):
            counted(outs[0], value=1.5)


@dataclass(frozen=True)
class Window:
    size: int
    name: str = "full"


def make_window() -> type:
    @dataclass(frozen=True)
    class Window:
        size: int
        name: str = "full"

    return Window


OTHER = make_window()
NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        (1, "1"),
        (None, 0),
        (None, ""),
        ((1, 2), (1, (2,))),
        ((), None),
        (("ab", "c"), ("a", "bc")),
        (2**63, -(2**63)),
        (2**70, 2**70 + 1),
        (1e300, NAN),
        (Window(3), Window(4)),
        (Window(3), (3, "full")),
        (Window(3), OTHER(3)),
        ((Window(1), 2), (Window(2), 1)),
    ],
)
def test_each_value_of_an_attribute_is_in_the_key(chip: ops.Chip, one: object, other: object) -> None:
    out = chip.empty((1, 1), "uint32")
    for attribute in (one, other, one, other):
        store(out, value=1, attribute=attribute)
    assert (chip.cache.hits, chip.cache.misses) == (2, 2)


def test_what_has_no_canonical_form_is_no_attribute(chip: ops.Chip) -> None:
    @dataclass
    class Thawed:
        size: int

    class Derived(Window):
        pass

    out = chip.empty((1, 1), "uint32")
    for attribute, advice in [
        ([1], "tuple"),
        ({"a": 1}, "tuple"),
        ({1}, "tuple"),
        (np.float64(1), r"float\(x\)"),
        (np.int32(1), r"int\(x\)"),
        (Thawed(1), "frozen=True"),
        (Derived(1), "frozen dataclass"),
        (out, "operands"),
        ((1, [2]), "tuple"),
        (object(), "bool, int, float"),
    ]:
        with pytest.raises(TypeError, match=f"cannot be in the key of an operation; .*{advice}"):
            store(out, value=1, attribute=attribute)
    deep: tuple[Any, ...] = ()
    for _ in range(40):
        deep = (deep,)
    with pytest.raises(ValueError, match="levels"):
        store(out, value=1, attribute=deep)
    with pytest.raises(ValueError, match="1 MiB"):
        store(out, value=1, attribute="x" * (2 << 20))


def test_specifications_of_operands_are_in_the_key(chip: ops.Chip) -> None:
    outs = [
        chip.empty((2, 2), "uint32"),
        chip.empty((2, 2), "int32"),
        chip.empty((4, 1), "uint32"),
        chip.empty((2, 2), "uint32", layout="tiled"),
    ]
    for _ in range(2):
        for out in outs:
            store(out, value=7)
            assert out.numpy().flat[0] == 7
    assert (chip.cache.hits, chip.cache.misses) == (4, 4)


def test_a_function_that_is_defined_again_is_another_operation(chip: ops.Chip) -> None:
    out = chip.empty((1, 1), "uint32")

    def define(value: int) -> ops.Operation:
        @ops.operation
        def cell(out: Spec) -> Program:
            return Program([ops.Kernel(STORE, arguments=[out, value])])

        return cell

    for value in (3, 4):
        define(value)(out)
        assert out.numpy().item() == value
    assert chip.cache.hits == 0

    # As a reloader does it: the same function with another body.
    def first(out: Spec) -> Program:
        return Program([ops.Kernel(STORE, arguments=[out, 5])])

    def second(out: Spec, *, value: int = 6) -> Program:
        return Program([ops.Kernel(STORE, arguments=[out, value])])

    reloaded = ops.operation(first)
    reloaded(out)
    assert out.numpy().item() == 5
    first.__code__, first.__kwdefaults__ = second.__code__, second.__kwdefaults__
    reloaded(out)
    assert out.numpy().item() == 6


FACTOR = 2


@ops.operation
def forgetful(out: Spec) -> Program:
    """Wrong: the number of another cell decides what it is."""
    return Program([ops.Kernel(STORE, arguments=[out, 1], defines={"FACTOR": FACTOR})])


def test_checking_finds_what_is_not_in_the_key(chip: ops.Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    out = chip.empty((1, 1), "uint32")
    forgetful(out)
    forgetful(out)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    with pytest.raises(telltale.OperationError) as found:
        forgetful(out)
    error = found.value
    assert isinstance(error, telltale.Error) and isinstance(error, RuntimeError)
    assert "forgetful" in error.message and "attribute" in (error.remedy or "")
    assert error.cause is not None
    assert 'define 0: the program has ("FACTOR", "2"), the new description ("FACTOR", "3")' in error.cause

    # A number in a closure, among the arguments.
    number = 1

    @ops.operation
    def closing(out: Spec) -> Program:
        return Program([ops.Kernel(STORE, arguments=[out, number])])

    closing(out)
    number = 2
    with pytest.raises(telltale.OperationError, match=r"argument 1: the program has Word\(1\)"):
        closing(out)
    chip.finish()


def test_the_environment_chooses_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLTALE_PROGRAM_CACHE", "off")
    with ops.Chip() as chip:
        out = chip.empty((1, 1), "uint32")
        store(out, value=1)
        store(out, value=1)
        assert (chip.cache.mode, chip.cache.hits, chip.cache.misses) == ("off", 0, 2)
    with ops.Chip(cache="on") as chip:
        assert chip.cache.mode == "on"
    monkeypatch.setenv("TELLTALE_PROGRAM_CACHE", "yes")
    with pytest.raises(telltale.OperationError, match="TELLTALE_PROGRAM_CACHE"):
        ops.Chip()


def test_an_exception_of_the_function_comes_as_it_is(chip: ops.Chip) -> None:
    class Mine(Exception):
        pass

    fails = True

    @ops.operation
    def picky(out: Spec) -> Program:
        if fails:
            raise Mine("a matrix is needed")
        return Program([ops.Kernel(STORE, arguments=[out, 1])])

    out = chip.empty((1, 1), "uint32")
    with pytest.raises(Mine, match="a matrix is needed") as raised:
        picky(out)
    frames = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert frames[-1] == "picky"
    fails = False
    picky(out)
    assert out.numpy().item() == 1
    # Checking describes again.
    fails = True
    with pytest.raises(Mine):
        picky(out)


def test_a_dynamic_value_cannot_be_read(chip: ops.Chip) -> None:
    out = chip.empty((1, 1), "uint32")

    def read(how: Any) -> None:
        @ops.operation
        def reads(out: Spec, *, value: Dynamic[int]) -> Program:
            how(value)
            return Program([ops.Kernel(STORE, arguments=[out, value])])

        reads(out, value=1)

    ways: list[Callable[[Any], object]] = [
        *(bool, int, float, hash, abs),
        lambda value: value == 1,
        lambda value: value + 1,
        lambda value: 2 * value,
        lambda value: f"{value}",
    ]
    for how in ways:
        with pytest.raises(TypeError, match="value is known only when the program runs; pass it"):
            read(how)
    read(repr)


def test_calls_that_do_not_fit_the_function_are_refused(chip: ops.Chip) -> None:
    out = chip.empty((1, 1), "uint32")
    for call, message in [
        (lambda: store(value=1), "without 'out'"),
        (lambda: store(out), "without 'value'"),
        (lambda: store(out, out, value=1), "takes 1 operands, not 2"),
        (lambda: store(out, value=1, scale=2), "no parameter 'scale'"),
        (lambda: store(np.ones(1), value=1), "ndarray is no operand; make a Tensor"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(TypeError, match=message):
            call()

    def any_keyword(out: Spec, **any: int) -> Program:
        return Program([])

    def no_program(out: Spec) -> Any:
        return 3

    def elsewhere(out: Spec) -> Program:
        return Program([ops.Kernel(STORE, arguments=[ops.Address(7), 1])])

    with pytest.raises(TypeError, match="name each attribute"):
        ops.operation(any_keyword)
    with pytest.raises(TypeError, match="returned int; return"):
        ops.operation(no_program)(out)
    with pytest.raises(telltale.OperationError, match="address of operand 7, which was not given"):
        ops.operation(elsewhere)(out)


def test_an_operand_may_be_absent_and_several_may_follow(chip: ops.Chip) -> None:
    seen: list[tuple[bool, int]] = []

    @ops.operation
    def several(out: Spec, bias: Spec | None = None, *rest: Spec) -> Program:
        seen.append((bias is None, len(rest)))
        last = rest[-1] if rest else out
        return Program([ops.Kernel(STORE, arguments=[last, 9])])

    out, other = chip.empty((1, 1), "uint32"), chip.empty((1, 1), "uint32")
    several(out)
    several(out, None, out, other)
    assert (out.numpy().item(), other.numpy().item()) == (9, 9)
    assert seen == [(True, 0), (True, 2)]


def test_a_kernel_that_does_not_compile_is_shown_with_its_line(chip: ops.Chip) -> None:
    @ops.operation
    def broken(out: Spec) -> Program:
        return Program([ops.Kernel("\nKERNEL_MAIN {\n  float x = undeclared;\n}", arguments=[out])])

    with pytest.raises(telltale.OperationError) as refused:
        broken(chip.empty((1, 1), "uint32"))
    text = str(refused.value)
    assert "broken:3:" in text and "'undeclared' undeclared" in text
    assert "3 |   float x = undeclared;" in text
    assert chip.cache.programs == []


def test_a_fault_of_a_kernel_is_reported_by_what_reads_its_tensor(chip: ops.Chip) -> None:
    @ops.operation
    def wild(out: Spec) -> Program:
        return Program([ops.Kernel("KERNEL_MAIN { *(volatile int *)8 = 1; }", arguments=[out])])

    out, good = chip.empty((1, 1), "uint32"), chip.empty((1, 1), "uint32")
    wild(out)
    store(good, value=3)
    assert good.numpy().item() == 3
    with pytest.raises(telltale.OperationError, match=r"operation wild failed: kernel wild on core \(0, 0\)"):
        out.numpy()
    with pytest.raises(telltale.OperationError):
        chip.finish()
    store(out, value=4)
    assert out.numpy().item() == 4


def test_without_a_compiler_no_chip_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(telltale.OperationError, match="/nowhere/cc") as missing:
        ops.Chip()
    assert missing.value.remedy == "install one, such as gcc, or name it in the variable CC"


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    for arguments in ({"machine": "h100"}, {"device": 9}, {"chip": 5}, {"cache": "yes"}, {"root": tmp_path}):
        with pytest.raises(telltale.OperationError):
            ops.Chip(**arguments)  # type: ignore[arg-type]


def test_tensors_keep_values_of_each_format(chip: ops.Chip) -> None:
    for dtype in ("float32", "float16", "uint8", "uint16", "uint32", "int32"):
        values: Any = np.array(range(35 * 40)).astype(dtype)
        values = values.reshape(35, 40)
        for layout in ("row_major", "tiled"):
            tensor = chip.tensor(values, layout=layout)
            assert (tensor.shape, tensor.dtype, tensor.layout) == ((35, 40), dtype, layout)
            np.testing.assert_array_equal(tensor.numpy(), values)
            assert tensor.numpy().dtype == values.dtype
    fine = array(1, 33, 7)
    coarse = chip.tensor(fine, dtype="bfloat16")
    assert coarse.dtype == "bfloat16"
    np.testing.assert_allclose(coarse.numpy(), fine, rtol=2**-8)
    coarse.write(fine[::-1] * 2)
    np.testing.assert_allclose(coarse.numpy(), fine[::-1] * 2, rtol=2**-8)
    np.testing.assert_array_equal(chip.tensor(fine.T).numpy(), fine.T)
    np.testing.assert_array_equal(chip.tensor(fine.astype(">f4")).numpy(), fine)
    assert chip.tensor(5.0, dtype="float32").numpy().shape == ()
    for refused in (np.zeros((2, 2)), np.zeros(3, complex), ["a"]):
        with pytest.raises(TypeError, match="give dtype"):
            chip.tensor(refused)
    with pytest.raises(TypeError):
        chip.tensor(fine, dtype="int32")
    with pytest.raises(ValueError, match="do not fit"):
        coarse.write(fine.T)
    with pytest.raises(telltale.OperationError):
        chip.empty((2, 0), "float32")


def test_memory_is_recorded_and_given_back(chip: ops.Chip) -> None:
    def dram() -> int:
        chip.finish()
        (process,) = telltale.snapshot(root=chip.root).processes
        assert process.pid == os.getpid()
        return process.dram or 0

    def settles(expected: int) -> None:
        deadline = time.monotonic() + 10
        while dram() != expected and time.monotonic() < deadline:
            time.sleep(0.01)
        assert dram() == expected

    before = dram()
    one, other = chip.empty((64, 1024), "float32"), chip.empty((32, 1024), "float32")
    assert dram() - before == 96 * 4096
    other.free()
    other.free()
    with pytest.raises(telltale.OperationError, match="freed"):
        other.numpy()
    settles(before + 64 * 4096)
    store(one, value=1)
    del one
    gc.collect()
    settles(before)
