"""``telltale.my_processes`` and ``telltale.wait``."""

from __future__ import annotations

import os
import select
import time

from ._telltale import Process, Table, snapshot
from .errors import CollectError, QueryError

#: The largest number that the kernel takes for a pid.
_MAX_PID = 2**31 - 1
#: Seconds of one call of ``poll``, which takes milliseconds in 32 bits.
_MAX_WAIT = 86400.0

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


def my_processes(
    *, root: str | PathLike[str] | None = None, runtime_dir: str | PathLike[str] | None = None
) -> Table[Process]:
    """The processes of this process's user that have a device open or have recorded memory.

    One that was killed is not among them, though ``snapshot().processes`` has what it left behind.
    ``root`` and ``runtime_dir`` are those of :func:`telltale.snapshot`.
    """
    return snapshot(root=root, runtime_dir=runtime_dir, filter=f"uid == {os.getuid()} and state != dead").processes


def wait(pid: int, *, timeout: float | None = None) -> bool:
    """Waits until a process of this PID namespace ends, which need not be a child.

    Whether it has ended: false after ``timeout`` seconds. A process that is not there has ended.
    """
    if not 0 < pid <= _MAX_PID:
        raise QueryError(f"{pid} is no pid; give a number from 1 to {_MAX_PID}")
    if timeout is not None and timeout != timeout:
        raise QueryError("a timeout that is not a number; give seconds, or None to wait for as long as it takes")
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError as error:
        raise CollectError(f"cannot wait for process {pid}", error.strerror, error.errno) from error
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _MAX_WAIT if deadline is None else max(deadline - time.monotonic(), 0)
            if end.poll(min(left, _MAX_WAIT) * 1000):
                return True
            if left < _MAX_WAIT:
                return False
    finally:
        os.close(descriptor)
