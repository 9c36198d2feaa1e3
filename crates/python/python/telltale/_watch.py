"""``telltale.watch``: one snapshot after another."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from os import PathLike

from ._telltale import Snapshot, snapshot
from .errors import QueryError

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from queue import SimpleQueue
    from typing import Any, overload

    _Requests = SimpleQueue[tuple[AbstractEventLoop, Future[Snapshot]] | None]
else:

    def overload(function: object) -> object:
        """What ``typing`` has for type checkers."""
        return function

_Path = str | PathLike[str]


class Watch(Iterator[Snapshot], AsyncIterator[Snapshot]):
    """Snapshots of a host, the first at once and then one a period, for ``for`` and ``async for``.

    A snapshot that comes late is not made up for.
    """

    def __init__(self, period: float, take: Callable[[], Snapshot]) -> None:
        if not period > 0:
            raise QueryError(f"a period of {period} s; give a positive number")
        self._take = take
        self._period = period
        self._due: float | None = None
        self._requests: _Requests | None = None
        # A child of ``fork`` does not have the thread.
        self._pid = 0

    def __iter__(self) -> Watch:
        return self

    def __aiter__(self) -> Watch:
        return self

    def __next__(self) -> Snapshot:
        time.sleep(self._wait())
        return self._take()

    async def __anext__(self) -> Snapshot:
        # It takes longer to import than all the rest.
        import asyncio

        await asyncio.sleep(self._wait())
        loop = asyncio.get_running_loop()
        taken: Future[Snapshot] = loop.create_future()
        self._collector().put((loop, taken))
        return await taken

    def _collector(self) -> _Requests:
        """What the thread that collects takes its work from."""
        if self._requests is None or self._pid != os.getpid():
            import threading
            from queue import SimpleQueue

            # One thread for all of them: it keeps what it has opened. Python does not wait for it at its end.
            self._requests, self._pid = SimpleQueue(), os.getpid()
            arguments = (self._requests, self._take)
            threading.Thread(target=_collect, args=arguments, name="telltale watch", daemon=True).start()
        return self._requests

    def __del__(self) -> None:
        requests = getattr(self, "_requests", None)
        if requests is not None:
            requests.put(None)

    def _wait(self) -> float:
        """How long to wait for the next one, which then is due."""
        now = time.monotonic()
        due = now if self._due is None else max(self._due + self._period, now)
        self._due = due
        return due - now


def _collect(requests: _Requests, take: Callable[[], Snapshot]) -> None:
    """Takes a snapshot for each request, until the watch is gone."""
    while (request := requests.get()) is not None:
        loop, taken = request
        result: Snapshot | BaseException
        try:
            result = take()
        except BaseException as error:
            result = error
        try:
            loop.call_soon_threadsafe(_deliver, taken, result)
        except RuntimeError:
            # The loop is closed, so no task waits.
            pass
        # What was delivered belongs to the task alone.
        del request, loop, taken, result


def _deliver(taken: Future[Snapshot], result: Snapshot | BaseException) -> None:
    if taken.done():
        # The task was cancelled.
        return
    if isinstance(result, BaseException):
        taken.set_exception(result)
    else:
        taken.set_result(result)


@overload
def watch(
    period: float = 1.0,
    *,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
    filter: str | None = None,
    usage: bool = False,
    metrics: bool = False,
    with_host: bool = False,
) -> Watch: ...
@overload
def watch(
    period: float = 1.0,
    *,
    host: str,
    filter: str | None = None,
    usage: bool = False,
    timeout: float | None = None,
    token: str | None = None,
    authority: _Path | None = None,
    certificate: _Path | None = None,
    key: _Path | None = None,
) -> Watch: ...
def watch(
    period: float = 1.0,
    *,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
    host: str | None = None,
    filter: str | None = None,
    usage: bool = False,
    metrics: bool = False,
    with_host: bool = False,
    timeout: float | None = None,
    token: str | None = None,
    authority: _Path | None = None,
    certificate: _Path | None = None,
    key: _Path | None = None,
) -> Watch:
    """Snapshots of a host, the first at once and then one each ``period`` seconds.

    The other arguments are those of :func:`telltale.snapshot`, of which ``root`` and ``host`` exclude each other. The
    result is for ``for`` and for ``async for``.
    """
    # The native half checks which arguments go together.
    any_snapshot: Any = snapshot

    def take() -> Snapshot:
        return any_snapshot(
            root=root,
            runtime_dir=runtime_dir,
            host=host,
            filter=filter,
            usage=usage,
            metrics=metrics,
            with_host=with_host,
            timeout=timeout,
            token=token,
            authority=authority,
            certificate=certificate,
            key=key,
        )

    return Watch(period, take)
