"""``telltale.track``: what a block of code costs in device memory and time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator

from ._telltale import BlockMemory, MemoryBlocks

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
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
# Of what Tracks count, and of their lists.
_lock = threading.Lock()


def _renew() -> None:
    """In a child of ``fork``: what has begun is its parent's, and another thread may have held the lock."""
    global _blocks, _lock
    _blocks = MemoryBlocks()
    _lock = threading.Lock()


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
    """A block of code that is tracked: a context manager, and a decorator of functions, also of ``async`` ones and of
    generators.

    Each run is a :class:`Block`; ``with`` gives its own. Threads, tasks and generators may run it at the same time, and
    it may contain itself. The run of a generator lasts from its first value to its end, with what its caller does
    between them. A copy, such as that of another process, has the name and ``report``, and counts from 0.
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
        self._open: list[_Run] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Track, (self.name, self._report)

    def __enter__(self) -> Block:
        run = _Run(self.name)
        run.frame, run.strand = _caller(), _strand()
        with _lock:
            self._open.append(run)
        return run.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(self._taken(_caller()))

    def leave(self) -> None:
        """Leaves the block that was entered last, as if it had not been."""
        self._taken(_caller()).stop()

    def _taken(self, frame: FrameType) -> _Run:
        """The run that is left there, which is no longer among the open ones.

        It is that of this call, generator or coroutine. An ``ExitStack`` enters in one call and leaves in another: then
        it is the last of this task and thread.
        """
        strand = _strand()
        with _lock:
            ranks = [(run.frame is frame, run.strand == strand) for run in self._open]
            if not ranks:
                raise RuntimeError(f"the block {self.name!r} is left and was not entered; use it in a `with` statement")
            best = max(ranks)
            return self._open.pop(max(at for at, rank in enumerate(ranks) if rank == best))

    def __call__(self, function: _Function) -> _Function:
        import functools

        if not callable(function) or isinstance(function, type):
            raise TypeError(f"{function!r} is no function; decorate a function, and put this below @classmethod")
        made: Any = functools.wraps(function)(self._wrapped(function))
        return made

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the same kind, which is tracked from its first step to its end."""
        import inspect

        def is_kind(test: Callable[[object], bool]) -> bool:
            return test(function) or test(getattr(function, "__call__", None))

        async def awaited(*arguments: Any, **named: Any) -> Any:
            run = _Run(self.name)
            run.start()
            try:
                return await function(*arguments, **named)
            finally:
                self._end(run)

        def generated(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
            run = _Run(self.name)
            run.start()
            try:
                values: Generator[Any, Any, Any] = function(*arguments, **named)
                return (yield from values)
            finally:
                self._end(run)

        async def streamed(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
            run = _Run(self.name)
            run.start()
            try:
                values: AsyncGenerator[Any, Any] = function(*arguments, **named)
                value = await values.__anext__()
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await values.aclose()
                        raise
                    except BaseException as error:
                        value = await values.athrow(error)
                    else:
                        value = await values.asend(sent)
            except StopAsyncIteration:
                pass
            finally:
                self._end(run)

        def called(*arguments: Any, **named: Any) -> Any:
            run = _Run(self.name)
            run.start()
            try:
                return function(*arguments, **named)
            finally:
                self._end(run)

        if is_kind(inspect.iscoroutinefunction):
            return awaited
        if is_kind(inspect.isasyncgenfunction):
            return streamed
        return generated if is_kind(inspect.isgeneratorfunction) else called

    def _end(self, run: _Run) -> None:
        block = run.stop()
        with _lock:
            self.last = block
            self.runs += 1
            self.total_seconds += block.seconds
        if self._report is not None:
            self._report(block)


def _caller() -> FrameType:
    """Where the function that calls this was called. A generator has one frame for all its life."""
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]


def _strand() -> tuple[int, object]:
    """This thread and its task of asyncio."""
    current = getattr(sys.modules.get("asyncio"), "current_task", None)
    try:
        task = None if current is None else current()
    except RuntimeError:
        # No loop runs in this thread.
        task = None
    return threading.get_ident(), task


class _Run:
    """One run: what is read around it."""

    def __init__(self, name: str) -> None:
        self._block = Block(name)
        self._blocks = _blocks
        self._number = 0
        self._begun = 0.0
        #: Where a ``with`` statement entered it.
        self.frame: FrameType | None = None
        self.strand: tuple[int, object] | None = None

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

    ``report`` is called with the :class:`Block` after each run, such as ``print``. Time is that of the host: CUDA and
    operations of a chip are only enqueued within, unless the block waits for them. Memory is what this process records;
    without recording there is the time alone, and the reason. Memory of an ``operations.Chip`` is recorded on the
    chip's own machine, below ``chip.root``, and is not in a block.
    """
    return Track(name, report)
