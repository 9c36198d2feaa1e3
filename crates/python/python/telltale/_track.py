"""``telltale.track``: what a block of code costs in device memory and time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

from ._telltale import BlockMemory, MemoryBlocks

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

_UNRECORDED = (
    "this process records no device memory; start it with `telltale run`, or record with telltale.Runtime, "
    "whose `problems` say why nothing is recorded"
)


def _bytes(size: int) -> str:
    value = float(abs(size))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "TiB"
    number = f"{value:.0f}" if unit == "B" else f"{value:.1f}"
    return f"{'-' if size < 0 else ''}{number} {unit}"


_blocks = MemoryBlocks()


def _renew() -> None:
    """In a child of ``fork``: what has begun is its parent's."""
    global _blocks
    _blocks = MemoryBlocks()


os.register_at_fork(after_in_child=_renew)


class Block:
    """What one run of a block cost. While it runs, ``seconds`` is 0 and ``memory`` is empty."""

    name: str
    #: How long it took.
    seconds: float
    #: What it cost on each device and kind of memory; empty where nothing is recorded.
    memory: tuple[BlockMemory, ...]
    #: Why ``memory`` is empty, where the process records nothing.
    absence: str | None

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds = 0.0
        self.memory = ()
        self.absence = None

    @property
    def peak(self) -> int | None:
        """The most bytes in use at a time, over all devices and kinds; of several, the sum of their peaks."""
        return sum(part.peak for part in self.memory) if self._is_known else None

    @property
    def kept(self) -> int | None:
        """Bytes in use after the block and not before it; negative where it freed more."""
        return sum(part.kept for part in self.memory) if self._is_known else None

    @property
    def allocated(self) -> int | None:
        """Bytes of the allocations within."""
        return sum(part.allocated for part in self.memory) if self._is_known else None

    def to_dict(self) -> dict[str, Any]:
        """Its values, as a row of a table: name, seconds, and bytes."""
        names = ("name", "seconds", "peak", "kept", "allocated")
        return {name: getattr(self, name) for name in names}

    @property
    def _is_known(self) -> bool:
        return self.seconds > 0 and self.absence is None

    def __repr__(self) -> str:
        time = f"{self.name}: {self.seconds * 1e3:.3f} ms"
        if self.peak is None or self.kept is None:
            return f"{time}, memory unknown: {self.absence}" if self.absence else time
        kept = "nothing kept" if self.kept == 0 else f"{_bytes(self.kept)} kept"
        return f"{time}, peak {_bytes(self.peak)}, {kept}"


class Track:
    """A block of code that is tracked: a context manager, and a decorator of functions, also of ``async`` ones.

    Each run is a :class:`Block`; ``with`` gives its own. Threads may run it at the same time, and it may contain
    itself.
    """

    name: str
    #: The run that ended last.
    last: Block | None
    #: How many runs have ended.
    runs: int
    #: How long they took, in seconds.
    total_seconds: float

    def __init__(self, name: str, report: Callable[[Block], object] | None) -> None:
        self.name = name
        self.last = None
        self.runs = 0
        self.total_seconds = 0.0
        self._report = report
        self._lock = threading.Lock()
        # By task and thread: each leaves what it entered itself.
        self._open: ContextVar[tuple[_Run, ...]] = ContextVar("open", default=())

    def __enter__(self) -> Block:
        run = _Run(self.name)
        self._open.set((*self._open.get(), run))
        return run.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        *others, run = self._open.get()
        self._open.set(tuple(others))
        self._end(run)

    def leave(self) -> None:
        """Leaves the block that was entered last, as if it had not been."""
        *others, run = self._open.get()
        self._open.set(tuple(others))
        run.stop()

    def __call__(self, function: _Function) -> _Function:
        import functools
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                run = _Run(self.name)
                run.start()
                try:
                    return await function(*arguments, **named)
                finally:
                    self._end(run)

            made: Any = awaited
            return made

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            run = _Run(self.name)
            run.start()
            try:
                return function(*arguments, **named)
            finally:
                self._end(run)

        made = called
        return made

    def _end(self, run: _Run) -> None:
        block = run.stop()
        with self._lock:
            self.last = block
            self.runs += 1
            self.total_seconds += block.seconds
        if self._report is not None:
            self._report(block)


class _Run:
    """One run: what is read around it."""

    def __init__(self, name: str) -> None:
        self._block = Block(name)
        self._blocks = _blocks
        self._number = 0
        self._begun = 0.0

    def start(self) -> Block:
        self._number = self._blocks.begin()
        self._begun = time.perf_counter()
        return self._block

    def stop(self) -> Block:
        block = self._block
        block.seconds = time.perf_counter() - self._begun
        memory = self._blocks.end(self._number)
        if memory is None:
            block.absence = _UNRECORDED
        else:
            block.memory = tuple(memory)
        return block


def track(name: str, *, report: Callable[[Block], object] | None = None) -> Track:
    """Tracks what a block of code costs in device memory and time: ``with telltale.track("forward") as block:``, or
    ``@telltale.track("forward")`` above a function.

    ``report`` is called with the :class:`Block` after each run, such as ``print``. Memory is what this process
    records; without recording there is the time alone, and the reason.
    """
    return Track(name, report)
