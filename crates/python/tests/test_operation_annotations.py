"""Annotations of operations: which values are dynamic, also where names in them are only for type checkers."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import pytest
from some_operations import STORE, chip as chip, kernel_cache as kernel_cache
from telltale import operations as ops
from telltale.operations import Dynamic, Program, Spec

LAZY = """
from telltale.operations import Dynamic, Kernel, Program, Spec, operation
from telltale import operations as ops

@operation
def cell(out: Spec, *, value: ops.Dynamic[int], other: {missing} = None) -> Program:
    return Program([Kernel(STORE, arguments=[out, value])])
"""
# CPython 3.14 evaluates annotations when they are asked for, and others when the function is made.
FORMS = {"text": ("", "'Missing | None'"), "future": ("from __future__ import annotations", "Missing | None")}
if sys.version_info >= (3, 14):
    FORMS["lazy"] = ("", "Missing | None")


@pytest.mark.parametrize("form", FORMS)
def test_names_that_only_type_checkers_know_are_no_obstacle(chip: ops.Chip, form: str) -> None:
    future, missing = FORMS[form]
    program = LAZY.format(missing=missing)
    names: dict[str, Any] = {"STORE": STORE}
    exec(compile(f"{future}\n{program}", form, "exec", dont_inherit=True), names)
    out = chip.empty((1, 1), "uint32")
    for value in (3, 4):
        names["cell"](out, value=value)
        assert out.numpy().item() == value
    assert (chip.cache.hits, chip.cache.misses) == (1, 1)


@pytest.mark.parametrize("annotation", ["Dynamic[int] | None", "Optional[Dynamic[float]]", "list[Dynamic[int]]", "Dynamic"])
@pytest.mark.parametrize("missing", ["", " | Missing"])
def test_a_value_that_is_only_sometimes_dynamic_is_refused(annotation: str, missing: str) -> None:
    names: dict[str, Any] = {"Dynamic": Dynamic, "Optional": Optional}
    exec(compile(f"def cell(out, *, value: '{annotation}{missing}'): ...", "cell", "exec", dont_inherit=True), names)
    with pytest.raises(TypeError, match=r"value: .*Dynamic.*; write Dynamic\[float\] or Dynamic\[int\]"):
        ops.operation(names["cell"])


def test_a_dynamic_value_stands_behind_the_star() -> None:
    def before(out: Spec, value: Dynamic[int]) -> Program:
        return Program([])

    def annotated(out: Spec, *, value: Annotated[Dynamic[int], "a word"]) -> Program:
        return Program([ops.Kernel(STORE, arguments=[out, value])])

    with pytest.raises(TypeError, match="value: parameters before the star are operands"):
        ops.operation(before)
    with ops.Chip() as chip:
        out = chip.empty((1, 1), "uint32")
        ops.operation(annotated)(out, value=5)
        assert out.numpy().item() == 5
