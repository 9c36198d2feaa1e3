"""Operations on the emulated accelerator: programs described in Python, cached, and run on a chip.

An operation is a function that describes its program. It is called only when the cache has no program for its key::

    @operation
    def double(a: Spec, out: Spec) -> Program:
        rows, columns = a.shape
        ...

Parameters before the star are operands, those behind it attributes, or dynamic values where the annotation is
``Dynamic[float]`` or ``Dynamic[int]``. Attributes and what a :class:`Spec` says of operands are the key; addresses and
dynamic values are written into the program at each call.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import operator
import os
import re
import struct
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, TypeVar, cast

from ._telltale import (
    Chip as Chip,
    ProgramCache as ProgramCache,
    Tensor as Tensor,
    dispatch_operation,
)

__all__ = [
    "Address",
    "Chip",
    "CircularBuffer",
    "Dynamic",
    "Kernel",
    "Operation",
    "Program",
    "ProgramCache",
    "Semaphore",
    "Spec",
    "Tensor",
    "elementwise",
    "grid",
    "operation",
]

_Number = TypeVar("_Number", int, float)

Core = tuple[int, int]
"""Column and row of a core."""

DataType = Literal["float32", "bfloat16", "float16", "uint8", "uint16", "uint32", "int32"]


@dataclass(frozen=True)
class Address:
    """Where an operand will be at a dispatch, plus an offset in bytes."""

    operand: int
    offset: int = 0


@dataclass(frozen=True)
class Spec:
    """What a program may depend on of an operand: everything but where it is and what is in it.

    As an argument of a kernel it stands for the operand's address.
    """

    shape: tuple[int, ...]
    dtype: DataType
    layout: Literal["row_major", "tiled"]
    page_bytes: int
    """Bytes of a row, or of a tile."""
    operand: int = field(compare=False)
    """Its position among the operands."""

    def at(self, offset: int) -> Address:
        """Its address plus ``offset`` bytes."""
        return Address(self.operand, offset)


class Dynamic(Generic[_Number]):
    """A value that is known only at each dispatch: an argument of a kernel, which no description can read."""

    __slots__ = ("index", "name")

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name

    def __repr__(self) -> str:
        return f"<dynamic {self.name}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self.name} is known only when the program runs; pass it among a kernel's arguments, "
            "or make it an attribute by another annotation"
        )

    __bool__ = __int__ = __float__ = __index__ = __eq__ = __ne__ = __hash__ = __format__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __abs__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse


Argument = Spec | Address | Dynamic[Any] | int | float
"""A word of a kernel's arguments: an address, a dynamic value, or a number that follows from the key."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: C in a text, or in a file where a path is given."""

    source: str | os.PathLike[str]
    cores: Sequence[Core] = ((0, 0),)
    arguments: Sequence[Argument] | Mapping[Core, Sequence[Argument]] = ()
    """``get_arg_val``: the same on each core, or by core."""
    common: Sequence[Argument] = ()
    """``get_common_arg_val``: words that all cores share."""
    named: Mapping[str, int] = field(default_factory=dict[str, int])
    """``NAMED_ARG``: constants by name."""
    constants: Sequence[int] = ()
    """``get_compile_time_arg_val``: constants by position."""
    defines: Mapping[str, str | float] = field(default_factory=dict[str, str | float])
    """Macros."""
    name: str = ""
    """What errors call it; the operation's name if it is empty."""
    kind: Literal["compute", "reader", "writer"] = "compute"
    optimization: Literal["O0", "O1", "O2", "O3", "Os"] | None = None


@dataclass(frozen=True)
class CircularBuffer:
    """A circular buffer, on all cores of the program's kernels unless cores are named."""

    index: int
    page_bytes: int
    pages: int = 1
    cores: Sequence[Core] | None = None
    dtype: DataType = "float32"
    on: Spec | Address | None = None
    """The operand in whose buffer it is; in the program's own memory without."""


@dataclass(frozen=True)
class Semaphore:
    """A semaphore, on all cores of the program's kernels unless cores are named."""

    id: int
    initial: int = 0
    cores: Sequence[Core] | None = None


@dataclass(frozen=True)
class Program:
    """What an operation runs."""

    kernels: Sequence[Kernel]
    buffers: Sequence[CircularBuffer] = ()
    semaphores: Sequence[Semaphore] = ()


def grid(columns: int, rows: int, start: Core = (0, 0)) -> list[Core]:
    """The cores of a rectangle, row by row."""
    return [(start[0] + x, start[1] + y) for y in range(rows) for x in range(columns)]


# === Operations ===

# A number for each version of a function and each class of attributes. None is used twice, as an id may be.
_numbers = itertools.count(1)
_classes: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class _Signature:
    """How a function is called."""

    code: types.CodeType
    number: int
    operands: tuple[inspect.Parameter, ...]
    takes_more: bool
    attributes: tuple[inspect.Parameter, ...]
    dynamics: tuple[tuple[inspect.Parameter, type], ...]


class Operation:
    """A function that describes a program. Calling it with tensors runs the program."""

    def __init__(self, function: Callable[..., Program]) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"{function!r} is no function; decorate one that returns a Program")
        self.function: types.FunctionType = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__: Callable[..., Program] = function
        self._signature = _read(function)

    def __repr__(self) -> str:
        return f"<operation {self.__name__}{inspect.signature(self.function)}>"

    def __call__(self, *operands: Tensor | None, **values: Any) -> None:
        """Runs the program with these operands: it is enqueued, and this returns.

        What goes wrong while it runs is reported when one of its tensors is read, or by :meth:`Chip.finish`.
        """
        signature = self._signature
        # A reloaded module may have given the function another body.
        if self.function.__code__ is not signature.code:
            self._signature = signature = _read(self.function)
        given = list(operands)
        for parameter in signature.operands[len(given) :]:
            given.append(_take(self, parameter, values))
        if len(given) > len(signature.operands) and not signature.takes_more:
            raise TypeError(f"{self.__name__} takes {len(signature.operands)} operands, not {len(given)}")
        attributes = tuple(_take(self, parameter, values) for parameter in signature.attributes)
        dynamics = [
            _dynamic_word(parameter.name, of, _take(self, parameter, values)) for parameter, of in signature.dynamics
        ]
        if values:
            raise TypeError(f"{self.__name__} has no parameter {next(iter(values))!r}")
        dispatch_operation(
            _describe, (self, signature), self.__name__, signature.number, given, attributes, dynamics
        )


def operation(function: Callable[..., Program]) -> Operation:
    """Makes an operation of a function that describes its program."""
    return Operation(function)


_ELEMENTWISE = """KERNEL_MAIN {
  for (uint32_t at = 0; at < NAMED_ARG(elements); at += 256) {
    const uint32_t count = NAMED_ARG(elements) - at < 256 ? NAMED_ARG(elements) - at : 256;
    float inputs[INPUTS][256], out[256];
    for (uint32_t i = 0; i < INPUTS; i++) noc_read_bytes(get_arg_val(i), at * 4ull, count * 4, inputs[i]);
    for (uint32_t i = 0; i < count; i++) {
      %s
      out[i] = %s;
    }
    noc_write_bytes(get_arg_val(INPUTS), at * 4ull, count * 4, out);
  }
}"""


def elementwise(expression: str) -> Operation:
    """An operation that computes each element of its last operand from those of the other operands at that place.

    ``expression`` is C on floats, with ``a``, ``b`` and so on for the others in order, 8 at most:
    ``elementwise("2 * a + b")(x, y, out)``. All operands are row-major float32 of one shape; the last may also be one
    of the others. One core runs it. Make the operation once: each has programs of its own in the cache.
    """

    @operation
    def elementwise(*operands: Spec) -> Program:
        *inputs, out = operands
        if not 1 <= len(inputs) <= 8:
            raise TypeError(f"elementwise takes 2 to 9 operands, not {len(operands)}")
        if any(spec != out for spec in inputs):
            raise ValueError(f"elementwise takes operands of one shape, data type and layout, not {operands}")
        if (out.dtype, out.layout) != ("float32", "row_major"):
            raise ValueError(f"elementwise takes row-major float32, not {out.layout} {out.dtype}")
        variables = " ".join(f"const float {name} = inputs[{i}][i];" for i, name in enumerate("abcdefgh"[: len(inputs)]))
        source = _ELEMENTWISE % (variables, expression)
        named, defines = {"elements": math.prod(out.shape)}, {"INPUTS": len(inputs)}
        return Program([Kernel(source, arguments=operands, named=named, defines=defines)])

    return elementwise


def _take(of: Operation, parameter: inspect.Parameter, values: dict[str, Any]) -> Any:
    """A parameter's value, which then is no longer among ``values``."""
    value = values.pop(parameter.name, parameter.default)
    if value is inspect.Parameter.empty:
        raise TypeError(f"{of.__name__} is called without {parameter.name!r}")
    return value


def _read(function: types.FunctionType) -> _Signature:
    parameters = _parameters(function)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        raise TypeError(f"{function.__name__} takes any keyword; name each attribute, since all are in the key")
    keywords = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    dynamics = [(one, _dynamic_type(one)) for one in keywords]
    for one in parameters:
        if one not in keywords and _dynamic_type(one) is not None:
            raise TypeError(f"{one.name}: parameters before the star are operands; put dynamic values behind it")
    return _Signature(
        code=function.__code__,
        number=next(_numbers),
        operands=tuple(one for one in parameters if one.kind in positional),
        takes_more=any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters),
        attributes=tuple(one for one, of in dynamics if of is None),
        dynamics=tuple((one, of) for one, of in dynamics if of is not None),
    )


def _parameters(function: types.FunctionType) -> list[inspect.Parameter]:
    """The parameters; annotations with names that only type checkers import are texts."""
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except NameError:
        pass
    if sys.version_info < (3, 14):
        return list(inspect.signature(function).parameters.values())
    # CPython evaluates them only now, and may know some.
    from annotationlib import ForwardRef, Format

    known, texts = (
        inspect.signature(function, annotation_format=format).parameters for format in (Format.FORWARDREF, Format.STRING)
    )
    return [texts[name] if isinstance(one.annotation, ForwardRef) else one for name, one in known.items()]


def _dynamic_type(parameter: inspect.Parameter) -> type | None:
    """``float`` or ``int`` where the annotation says that the value is dynamic."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        named = re.fullmatch(r"(?:\w+\.)*Dynamic\[(int|float)\]", annotation.strip())
        if named is None and re.search(r"\bDynamic\b", annotation):
            raise TypeError(_not_dynamic(parameter))
        return {"int": int, "float": float}[named[1]] if named else None
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is not Dynamic:
        if _mentions_dynamic(annotation):
            raise TypeError(_not_dynamic(parameter))
        return None
    (of,) = typing.get_args(annotation)
    if of is not int and of is not float:
        raise TypeError(_not_dynamic(parameter))
    return of


def _not_dynamic(parameter: inspect.Parameter) -> str:
    annotation = inspect.formatannotation(parameter.annotation)
    return (
        f"{parameter.name}: {annotation} is not one type of dynamic values, and a value is dynamic in each call or in "
        "none; write Dynamic[float] or Dynamic[int]"
    )


def _mentions_dynamic(annotation: object) -> bool:
    is_dynamic = annotation is Dynamic or typing.get_origin(annotation) is Dynamic
    return is_dynamic or any(_mentions_dynamic(part) for part in typing.get_args(annotation))


def _dynamic_word(name: str, of: type, value: Any) -> int:
    try:
        return _float_word(float(value)) if of is float else _int_word(operator.index(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"{name}: {error}") from None


def _float_word(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def _int_word(value: int) -> int:
    if not -(1 << 31) <= value < 1 << 32:
        raise ValueError(f"{value} does not fit a word of 32 bits")
    return value & 0xFFFF_FFFF


def key_parts(value: Any) -> tuple[int, tuple[Any, ...]]:
    """What is in the key for an attribute that is no plain value: its class and its fields."""
    of = cast(type[Any], type(value))
    parameters = vars(of).get("__dataclass_params__")
    if parameters is not None and parameters.frozen:
        number = _classes.get(of)
        if number is None:
            number = _classes.setdefault(of, next(_numbers))
        return number, tuple(getattr(value, one.name) for one in dataclasses.fields(value))
    advice = "pass a bool, int, float, str, None, a tuple or a frozen dataclass of these"
    if isinstance(value, Tensor):
        advice = "pass tensors before the star, as operands"
    elif parameters is not None:
        advice = "add frozen=True to the dataclass"
    elif isinstance(value, (list, set, dict, frozenset)):
        advice = "make a tuple of it, in an order that means something"
    elif isinstance(value, (bool, int, float, str)) or hasattr(value, "__index__") or hasattr(value, "__float__"):
        advice = "make it a plain number or text, such as float(x), int(x) or x.value"
    raise TypeError(f"{of.__qualname__} cannot be in the key of an operation; {advice}")


# === Descriptions ===


def _describe(
    subject: tuple[Operation, _Signature],
    specs: Sequence[tuple[Any, ...] | None],
    attributes: tuple[Any, ...],
) -> dict[str, Any]:
    """Calls the author's function, and puts its program into the form that the native half reads."""
    of, signature = subject
    operands = [None if spec is None else Spec(*spec, operand=index) for index, spec in enumerate(specs)]
    keywords = {one.name: value for one, value in zip(signature.attributes, attributes)}
    for index, (parameter, _) in enumerate(signature.dynamics):
        keywords[parameter.name] = Dynamic[Any](index, parameter.name)
    program = of.function(*operands, **keywords)
    if not isinstance(program, Program):
        raise TypeError(f"{of.__name__} returned {type(program).__qualname__}; return an operations.Program")
    every = list(dict.fromkeys(core for kernel in program.kernels for core in _cores(kernel.cores)))
    return {
        "kernels": [_kernel(of.__name__, kernel) for kernel in program.kernels],
        "buffers": [
            {
                "index": buffer.index,
                "page_bytes": buffer.page_bytes,
                "pages": buffer.pages,
                "cores": every if buffer.cores is None else _cores(buffer.cores),
                "dtype": buffer.dtype,
                "on": None if buffer.on is None else _word(buffer.on),
            }
            for buffer in program.buffers
        ],
        "semaphores": [
            (one.id, _int_word(one.initial), every if one.cores is None else _cores(one.cores))
            for one in program.semaphores
        ],
    }


def _kernel(operation: str, kernel: Kernel) -> dict[str, Any]:
    by_core = kernel.arguments
    if not isinstance(by_core, Mapping):
        by_core = {core: by_core for core in _cores(kernel.cores)}
    is_text = isinstance(kernel.source, str)
    return {
        "name": kernel.name or operation,
        "is_path": not is_text,
        "source": kernel.source if is_text else os.fspath(kernel.source),
        "kind": kernel.kind,
        "optimization": kernel.optimization,
        "cores": _cores(kernel.cores),
        "constants": [_int_word(operator.index(value)) for value in kernel.constants],
        "named": [(name, _int_word(operator.index(value))) for name, value in kernel.named.items()],
        "defines": [(name, _define(name, value)) for name, value in kernel.defines.items()],
        "arguments": [(core, _words(words)) for core, words in by_core.items() if words],
        "common": _words(kernel.common),
    }


def _cores(cores: Iterable[Core]) -> list[Core]:
    return [(operator.index(x), operator.index(y)) for x, y in cores]


def _define(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int)):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    raise TypeError(f"define {name} is {type(value).__qualname__}; give a text or a number")


def _words(values: Iterable[Argument]) -> list[tuple[int, int, int]]:
    return [_word(value) for value in values]


def _word(value: Any) -> tuple[int, int, int]:
    """What a word stands for: a number, an operand's address and an offset, or a dynamic value."""
    if isinstance(value, Spec):
        return 1, value.operand, 0
    if isinstance(value, Address):
        return 1, value.operand, _int_word(value.offset)
    if isinstance(value, Dynamic):
        return 2, value.index, 0
    if hasattr(value, "__index__"):
        return 0, _int_word(operator.index(value)), 0
    if hasattr(value, "__float__"):
        return 0, _float_word(float(value)), 0
    raise TypeError(
        f"{type(value).__qualname__} is no argument of a kernel; give an operand, a dynamic value or a number"
    )
