"""What kernels print: captures as sequences of events, and streams of this process.

``open_capture`` reads what ``telltale events`` reads. ``connect`` is the client of a core's debug stream, whose
publisher is in the same process.
"""

from __future__ import annotations

import os
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from ._telltale import (
    DebugCapture as Capture,
    DebugEvent as Event,
    DebugGap as Gap,
    DebugStream,
    DebugTensor as Tensor,
    debug_connect,
    debug_open,
    debug_publish_tensor,
    debug_publish_text,
    debug_register_cores,
)
from .errors import MissingPackageError, QueryError

if TYPE_CHECKING:
    from asyncio import Future

__all__ = [
    "Capture",
    "Event",
    "Gap",
    "Stream",
    "Tensor",
    "connect",
    "open_capture",
    "publish",
    "register_cores",
]

_Path = str | PathLike[str]

cast(Any, Sequence).register(Capture)

# What NumPy and ml_dtypes call the data types of the stream, where that differs.
_DTYPES = {
    "float8_e3m4": "float8e3m4",
    "float8_e4m3": "float8e4m3",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e5m2": "float8e5m2",
    "float4_e2m1fn": "float4e2m1fn_x4",
    "bool": "uint8",
}


def open_capture(path: _Path, *, filter: str | None = None) -> Capture:
    """The events of a capture: a directory of dumps, a file of JSON lines, or an event file.

    Data is read when an event is asked for it. ``filter`` leaves a view of the events that it wants, such as
    ``core=0;prefix=act*``. What the capture lacks is in ``losses``; what cannot be opened raises ``FileError``.
    """
    return debug_open(path, filter=filter)


def register_cores(count: int = 1) -> None:
    """Gives this process the logical cores 0 to ``count - 1``, for ``publish``. Cores that there are stay."""
    debug_register_cores(count)


def publish(core: int, prefix: str, value: Any, *, dtype: str | None = None, pipe: int = 0) -> bool:
    """Publishes a text or a tensor of a core of ``register_cores``, and returns whether its client gets it.

    ``value`` is a ``str``, a ``float``, which becomes a float32, or something of which NumPy makes an array. ``dtype``
    is the data type of the stream that the array's bytes are of, such as ``bfloat16`` for an array of ``uint16``;
    without it, the array's own.
    A client that is not connected gets nothing, and one that holds too many events loses this one. Without NumPy,
    ``str`` and ``float`` are published; anything else raises ``MissingPackageError``.
    """
    if isinstance(value, str):
        return debug_publish_text(core, prefix, value, pipe)
    if type(value) is float and dtype is None:
        return debug_publish_tensor(core, prefix, "float32", (), struct.pack("<f", value), pipe)
    try:
        import numpy
    except ImportError as error:
        message = "cannot publish an array: numpy cannot be imported; `pip install numpy`"
        raise MissingPackageError(message, str(error)) from error

    array: Any = numpy.asarray(value, order="C")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    own: str = array.dtype.name
    if dtype is None and own in ("float64", "complex64", "complex128"):
        raise QueryError(f"the debug stream has no {own}; convert the array to float32")
    name = dtype or _DTYPES.get(own, own)
    return debug_publish_tensor(core, prefix, name, array.shape, array.tobytes(), pipe)


class Stream(Iterator[Event], AsyncIterator[Event]):
    """The client of a core's debug stream, for ``with``, ``for`` and ``async for``.

    Any thread may use it; a child of ``fork`` may not.
    """

    def __init__(self, native: DebugStream) -> None:
        self._native = native
        # What tasks wait for, of any loop.
        self._waiting: set[Future[None]] = set()

    @property
    def core(self) -> int:
        """The logical core."""
        return self._native.core

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    @property
    def lost(self) -> dict[str, int] | None:
        """Events that were lost since it connected, by cause: too many ``events``, too many ``bytes``, no ``memory``.

        ``None`` if the library that has the stream does not count them.
        """
        return self._native.lost

    def read(self, timeout: float | None = None) -> Event | None:
        """Takes the next event, and waits for it ``timeout`` seconds, or without end; ``None`` if none came.

        With a filter, 0 seconds look through all events that wait.
        """
        return self._native.read(timeout)

    def fileno(self) -> int:
        """A descriptor that is readable while an event waits. Only wait for it; do not read or close it."""
        return self._native.fileno()

    def close(self) -> None:
        """Ends the connection; events that wait are lost. Who waits for an event stops waiting."""
        self._native.close()
        for ready in tuple(self._waiting):
            try:
                ready.get_loop().call_soon_threadsafe(_set, ready)
            except RuntimeError:
                # Its loop is closed, so no task waits there.
                self._waiting.discard(ready)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        try:
            event = self._native.read(None)
        except ValueError:
            if self.closed:
                raise StopIteration from None
            raise
        assert event is not None
        return event

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        try:
            while (event := self._native.read(0)) is None:
                await self._wait()
        except ValueError:
            if self.closed:
                raise StopAsyncIteration from None
            raise
        return event

    async def _wait(self) -> None:
        """Waits until an event may be there, or the stream is closed."""
        import asyncio

        loop = asyncio.get_running_loop()
        ready: Future[None] = loop.create_future()
        self._waiting.add(ready)
        try:
            # A copy for each task: its number stays this task's own when the stream is closed meanwhile, by any thread.
            descriptor = os.dup(self.fileno())
            try:
                loop.add_reader(descriptor, _set, ready)
                # One that closed it earlier did not see that this waits.
                if not self.closed:
                    await ready
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        except OSError:
            # Closed before the copy was made: the caller sees that it is.
            if not self.closed:
                raise
        finally:
            self._waiting.discard(ready)

    def __repr__(self) -> str:
        return f"<Stream core {self.core}{', closed' if self.closed else ''}>"


def _set(ready: Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def connect(core: int = 0, *, filter: str | None = None, library: _Path | None = None) -> Stream:
    """Connects to the debug stream of a logical core of this process.

    The core is one of ``register_cores`` or of a device that this module opened. Else the stream is that of a loaded
    library with Neuron's calls, such as ``libtelltale_nrt.so`` or ``libnrt.so``; ``library`` names its file, which is
    loaded if it is not. ``filter`` passes over other events, such as with ``prefix=act*``.

    Only one client may be connected to a core. ``StreamError`` says why it cannot be.
    """
    return Stream(debug_connect(core, filter=filter, library=library))
