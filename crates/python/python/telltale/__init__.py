"""What accelerators, processes and ranks are doing.

``telltale.snapshot()`` is this host now: its devices, the processes on them, and what their memory is made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import errors as errors
from ._processes import my_processes as my_processes, wait as wait
from ._telltale import (
    __version__ as __version__,
    BlockMemory as BlockMemory,
    Counter as Counter,
    Device as Device,
    Fleet as Fleet,
    Gauge as Gauge,
    Histogram as Histogram,
    History as History,
    Holding as Holding,
    Host as Host,
    MemoryPart as MemoryPart,
    Process as Process,
    RecordedDevice as RecordedDevice,
    Runtime as Runtime,
    Selection as Selection,
    Snapshot as Snapshot,
    Table as Table,
    history as history,
    select_devices as select_devices,
    snapshot as snapshot,
)
from ._track import Block as Block, Track as Track, track as track
from ._watch import Watch as Watch, watch as watch
from .errors import (
    CollectError as CollectError,
    Error as Error,
    FileError as FileError,
    HistoryError as HistoryError,
    MissingPackageError as MissingPackageError,
    OperationError as OperationError,
    QueryError as QueryError,
    SelectionError as SelectionError,
    ServiceError as ServiceError,
    StreamError as StreamError,
)

#: True for type checkers alone: ``typing`` takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import debug as debug, operations as operations, torch as torch

# Its class is native, and cannot have it as its base.
_sequence: Any = Sequence
_sequence.register(Table)

#: What is imported when it is first used.
_LATE = ("debug", "operations", "torch")


def __getattr__(name: str) -> object:
    if name in _LATE:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
