"""``telltale.my_processes`` and ``telltale.wait``."""

from __future__ import annotations

import os
import select

from ._telltale import Process, Table, snapshot

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


def my_processes(
    *, root: str | PathLike[str] | None = None, runtime_dir: str | PathLike[str] | None = None
) -> Table[Process]:
    """The processes of this process's user that have a device open or have recorded memory.

    ``root`` and ``runtime_dir`` are those of :func:`telltale.snapshot`.
    """
    return snapshot(root=root, runtime_dir=runtime_dir, filter=f"uid == {os.getuid()}").processes


def wait(pid: int, *, timeout: float | None = None) -> bool:
    """Waits until a process of this PID namespace ends, which need not be a child.

    Whether it has ended: false after ``timeout`` seconds. A process that is not there has ended.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        return bool(end.poll(None if timeout is None else max(timeout, 0) * 1000))
    finally:
        os.close(descriptor)
