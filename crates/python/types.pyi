"""The native half of the module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Literal, SupportsIndex, TypeVar, final, overload

__version__: str
"""The version of the module, which is that of the program ``telltale``."""

_Row = TypeVar("_Row", covariant=True)
_Default = TypeVar("_Default")
_Path = str | PathLike[str]
#: Text such as ``10m ago`` or a date, a ``datetime``, or a ``timedelta`` before now.
_Moment = str | datetime | timedelta

@final
class Device:
    """A device. Its attributes are the fields of the query language; ``None`` is a value that is absent."""

    @property
    def index(self) -> int:
        """Its place in the snapshot's devices."""
    @property
    def id(self) -> str:
        """How it is named: the id that other commands take."""
    @property
    def processes(self) -> Table[Process]:
        """The processes that have it open or have recorded memory there."""
    @property
    def memory(self) -> Table[MemoryPart]:
        """The parts of its memory, which add up to all that is in use."""
    def absence(self, name: str) -> str | None:
        """Why an attribute is ``None``; ``None`` where it has a value."""
    def to_dict(self) -> dict[str, Any]:
        """Everything that is known of it, as in the JSON of ``telltale smi --json``."""
    # The fields of devices.

@final
class Process:
    """A process. What differs by device is added up over its devices, where that makes sense."""

    @property
    def devices(self) -> list[Holding]:
        """What it has on each device that it holds."""
    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The metrics that its program registered, as in JSON: with ``metrics=True``."""
    def absence(self, name: str) -> str | None:
        """Why an attribute is ``None``; ``None`` where it has a value."""
    def to_dict(self) -> dict[str, Any]:
        """Everything that is known of it, as in the JSON of ``telltale smi --json``."""
    # The fields of processes.

@final
class Holding:
    """What a process has on one device."""

    @property
    def device(self) -> Device:
        """The device."""
    @property
    def process(self) -> Process:
        """The process."""
    def absence(self, name: str) -> str | None:
        """Why an attribute is ``None``; ``None`` where it has a value."""
    # The fields of processes.

@final
class MemoryPart:
    """A part of one kind of memory on a device. The parts of a device and kind add up to all that is in use."""

    @property
    def device(self) -> Device:
        """The device."""
    @property
    def process(self) -> Process | None:
        """The process that accounts for it; ``None`` for what no living process does."""
    @property
    def device_id(self) -> str:
        """The device's id."""
    @property
    def kind(self) -> str:
        """What the memory is for, such as ``dram``, ``trace`` or ``cb``."""
    @property
    def space(self) -> Literal["dram", "l1", "host"]:
        """Where memory of that kind is."""
    @property
    def holder(self) -> Literal["process", "unattributed", "ghost"]:
        """Who has it: a living process, no row of a region, or the rows of dead processes."""
    @property
    def pid(self) -> int | None:
        """The process's pid."""
    @property
    def name(self) -> str | None:
        """The process's short name."""
    @property
    def bytes(self) -> int:
        """Bytes in use."""
    @property
    def buffers(self) -> int | None:
        """Buffers in use, where the process recorded them."""
    @property
    def peak(self) -> int | None:
        """The most bytes there ever were, where the process recorded it."""
    @property
    def allocations(self) -> int | None:
        """Allocations so far, freed ones included."""
    @property
    def allocated_bytes(self) -> int | None:
        """Bytes of these allocations."""
    @property
    def failed(self) -> int | None:
        """Allocations that failed."""
    def to_dict(self) -> dict[str, Any]:
        """All its values."""

@final
class Table(Sequence[_Row], Generic[_Row]):
    """Rows of one kind: a sequence that prints as a table, in a terminal and in a notebook.

    Rows of one snapshot are equal that are the same device, process or part, so that ``in``, ``index`` and ``count``
    find them.
    """

    @overload
    def __getitem__(self, index: int, /) -> _Row: ...
    @overload
    def __getitem__(self, index: slice, /) -> Table[_Row]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_Row]: ...
    def index(self, value: object, start: int = 0, stop: int = ...) -> int:
        """The place of the first row that is this one; ``ValueError`` where none is."""
    def count(self, value: object) -> int:
        """How many rows are this one."""
    def to_dict(self) -> dict[str, list[Any]]:
        """The values by column: lists of one length, with ``None`` where a value is absent."""
    def to_arrow(self) -> Any:
        """An Arrow table of the columns. Needs pyarrow."""
    def to_pandas(self) -> Any:
        """A data frame of the columns. Needs pandas."""
    def _repr_html_(self) -> str: ...

@final
class Snapshot:
    """A host at one moment, which does not change. Printing it gives what ``telltale smi`` prints."""

    @property
    def taken_at(self) -> datetime:
        """When collecting began, in UTC."""
    @property
    def collected_in(self) -> float:
        """How many seconds collecting took."""
    @property
    def devices(self) -> Table[Device]:
        """The devices, in a stable order."""
    @property
    def processes(self) -> Table[Process]:
        """The processes that have a device open or have recorded memory."""
    @property
    def memory(self) -> Table[MemoryPart]:
        """The parts of the devices' memory, by kind and holder."""
    @property
    def faults(self) -> list[dict[str, Any]]:
        """What is wrong with parts of the host and with what reports of it, as in JSON."""
    @property
    def sources(self) -> list[dict[str, Any]]:
        """What was asked, how long each took, and what went wrong, as in JSON."""
    def filter(self, query: str) -> Snapshot:
        """The same with only the rows that a query of docs/query.md wants."""
    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``telltale smi --json`` prints it."""
    def to_json(self) -> str:
        """The same as a text of JSON, in one line."""
    @classmethod
    def from_json(cls, text: str, /) -> Snapshot:
        """The snapshot in such a text, which ``pickle`` uses too."""
    def _repr_html_(self) -> str: ...

@final
class Host:
    """A host and what it said."""

    @property
    def name(self) -> str:
        """As it was named."""
    @property
    def snapshot(self) -> Snapshot | None:
        """What it said last; ``None`` where it has said nothing."""
    @property
    def answered_at(self) -> datetime | None:
        """When it answered last, in UTC."""
    @property
    def reason(self) -> str | None:
        """Why it does not answer, such as that it has not yet; ``None`` where it does."""

_Rows = Literal["devices", "processes", "memory"]

@final
class Fleet:
    """Several hosts at one moment, in the order in which they were named.

    Iterating gives the hosts. Brackets take the name of one, its place, or a slice; ``in`` takes a name, or a host.
    """

    @property
    def hosts(self) -> list[Host]:
        """The hosts, in the order in which they were named."""
    @overload
    def __getitem__(self, index: str | int, /) -> Host: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Host]: ...
    def __contains__(self, item: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Host]: ...
    @overload
    def get(self, name: str) -> Host | None: ...
    @overload
    def get(self, name: str, default: _Default) -> Host | _Default:
        """The host with this name; without one, ``default``."""
    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``telltale smi --hosts … --json`` prints it."""
    def columns(self, rows: _Rows = "devices") -> dict[str, list[Any]]:
        """The rows of all hosts by column: lists of one length. ``host`` is the first, the host's name; what rows have
        by that name, bytes of the host's memory, is in ``host_memory``."""
    def to_arrow(self, rows: _Rows = "devices") -> Any:
        """An Arrow table of these columns. Needs pyarrow."""
    def to_pandas(self, rows: _Rows = "devices") -> Any:
        """A data frame of these columns. Needs pandas."""
    def _repr_html_(self) -> str: ...

@overload
def snapshot(
    *,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
    filter: str | None = None,
    usage: bool = False,
    metrics: bool = False,
    with_host: bool = False,
) -> Snapshot:
    """A host at one moment, or several hosts.

    Without arguments, this host: what its drivers, ledgers and endpoints say now. ``root`` reads the files below a
    directory instead, ``host`` asks the service of another host, or of several at the same time, and ``recording``
    reads a file of ``telltale record``. ``at`` is a past moment, of the history or of the recording.

    ``filter`` leaves only the rows that a query wants. ``usage`` reads what processes use of the host, ``metrics``
    asks each process for the metrics that its program registered, ``with_host`` shows the host as a device.
    ``timeout`` is in seconds, 2 without. ``token``, ``authority``, ``certificate`` and ``key`` are for services of
    other hosts: the token, and files of TLS. Arguments of two sources are refused.
    """

@overload
def snapshot(
    *,
    at: _Moment,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
    state_dir: _Path | None = None,
    filter: str | None = None,
) -> Snapshot: ...
@overload
def snapshot(*, recording: _Path, at: _Moment | None = None, filter: str | None = None) -> Snapshot: ...
@overload
def snapshot(
    *,
    host: str,
    filter: str | None = None,
    usage: bool = False,
    timeout: float | None = None,
    token: str | None = None,
    authority: _Path | None = None,
    certificate: _Path | None = None,
    key: _Path | None = None,
) -> Snapshot: ...
@overload
def snapshot(
    *,
    host: list[str] | tuple[str, ...],
    filter: str | None = None,
    usage: bool = False,
    timeout: float | None = None,
    token: str | None = None,
    authority: _Path | None = None,
    certificate: _Path | None = None,
    key: _Path | None = None,
) -> Fleet: ...

@final
class History:
    """Series of devices and processes over a span of time, in steps of one length."""

    @property
    def times(self) -> list[datetime]:
        """When each step begins, in UTC."""
    @property
    def series(self) -> list[dict[str, Any]]:
        """The series, as in the JSON of ``telltale history --json``."""
    def to_dict(self) -> dict[str, list[Any]]:
        """The steps of all series as columns: ``time``, ``metric``, ``unit``, ``label``, ``device``, ``pid``, ``name``,
        ``min``, ``mean`` and ``max``, with ``None`` where there was no value."""
    def to_arrow(self) -> Any:
        """An Arrow table of these columns. Needs pyarrow."""
    def to_pandas(self) -> Any:
        """A data frame of these columns. Needs pandas."""
    def to_json(self) -> str:
        """Everything, as ``telltale history --json`` prints it."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[dict[str, Any]]: ...

def history(
    *,
    devices: Sequence[str] = ...,
    processes: Sequence[int | str] = ...,
    metrics: Sequence[str] = ...,
    since: _Moment | None = None,
    until: _Moment | None = None,
    step: float | timedelta | None = None,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
    state_dir: _Path | None = None,
) -> History:
    """Series of devices and processes of this host, from ``since`` to ``until``, in steps of ``step``, which is in
    seconds or a ``timedelta``.

    ``devices`` are ids, ``processes`` pids or names, ``metrics`` names or parts of them; without, all devices and
    processes with their temperature, power, AI clock and memory. Without ``since`` it is the last hour, without
    ``step`` there are about 120 steps.
    """

@final
class Selection:
    """Devices that were chosen, and the variable by which a job's runtime gets them. As a text it is the value."""

    @property
    def devices(self) -> list[Device]:
        """The devices, the best first."""
    @property
    def variable(self) -> str:
        """The variable that the devices' runtime reads, such as ``TT_VISIBLE_DEVICES``."""
    @property
    def value(self) -> str:
        """What the variable must be."""
    @property
    def env(self) -> dict[str, str]:
        """The variable and its value, for the environment of a child process."""

def select_devices(
    count: int = 1,
    *,
    min_free: int | str = 0,
    max_processes: int | None = None,
    filter: str | None = None,
    root: _Path | None = None,
    runtime_dir: _Path | None = None,
) -> Selection:
    """Devices of one vendor that a job can have: those with the fewest processes, and of these with the most free
    memory; none that has failed, and none that a variable such as ``CUDA_VISIBLE_DEVICES`` hides.

    Each has ``min_free`` of free DRAM (bytes, or a text such as ``8GiB``) and at most ``max_processes`` processes,
    and ``filter``, a query, holds for it.
    """

_Kind = Literal[
    "dram",
    "l1",
    "l1_small",
    "trace",
    "cb",
    "kernel_application",
    "kernel_fabric",
    "kernel_dispatch",
    "system_memory",
]

_DataType = Literal["float32", "bfloat16", "float16", "uint8", "uint16", "uint32", "int32"]
_Layout = Literal["row_major", "tiled"]

@final
class Chip:
    """An emulated chip with its program cache. Closing it, or leaving its ``with`` block, frees all that it has."""

    def __new__(
        cls,
        machine: str = "n150",
        *,
        root: _Path | None = None,
        device: int = 0,
        chip: int = 0,
        cache: Literal["on", "off", "check"] | None = None,
        kernel_root: _Path | None = None,
        kernel_cache: _Path | None = None,
        kernel_timeout: float | None = None,
    ) -> Chip:
        """Opens a chip. Without arguments, one of an emulated machine of its own, which ends with it.

        ``machine`` is the kind of that machine; ``root`` opens a machine that is there already, of which ``device`` and
        ``chip`` choose a chip. ``cache`` is the mode of the program cache; without, what ``TELLTALE_PROGRAM_CACHE``
        says. Kernels' files are below ``kernel_root``, compiled kernels in ``kernel_cache``. A kernel may compute for
        ``kernel_timeout`` seconds.
        """
    @property
    def cache(self) -> ProgramCache:
        """Its program cache."""
    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of the cores that programs can use."""
    @property
    def root(self) -> Path:
        """The directory of the emulated machine's files: what ``telltale.snapshot`` takes as ``root``."""
    @property
    def is_open(self) -> bool:
        """Whether it can be used: it is not closed, and was opened by this process."""
    def tensor(self, values: Any, *, dtype: Any = None, layout: _Layout = "row_major") -> Tensor:
        """A tensor with the values of an array, or of what NumPy makes one of.

        ``dtype`` converts them: a name such as ``bfloat16``, or a NumPy type. Tiles have 32 rows and columns.
        """
    def empty(self, shape: Sequence[int], dtype: Any, *, layout: _Layout = "row_major") -> Tensor:
        """A tensor with whatever its memory held before."""
    def core(self, x: int, y: int) -> int:
        """The number by which the process knows a core: what kernels print there is in its debug stream."""
    def finish(self) -> None:
        """Waits until all that was enqueued is done, and raises what went wrong first since the last call."""
    def close(self) -> None:
        """Frees its tensors and programs, and ends its machine. Waits for what was enqueued.

        A chip that is dropped instead does the same; what Ctrl-C raises meanwhile goes to ``sys.unraisablehook``.
        """
    def __enter__(self) -> Chip: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Tensor:
    """A tensor on a chip. Its memory is given back when it is freed or dropped, or the chip is closed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions, outermost first."""
    @property
    def dtype(self) -> _DataType:
        """What its elements are."""
    @property
    def layout(self) -> _Layout:
        """How they follow each other."""
    def numpy(self) -> Any:
        """Its values as an array, once all that was enqueued so far is done. Those of bfloat16 come as float32.

        Raises what went wrong with the operation that should have written them.
        """
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def write(self, values: Any) -> None:
        """Overwrites it, after all that was enqueued so far."""
    def free(self) -> None:
        """Gives its memory back, once what was enqueued with it is done."""

@final
class ProgramCache:
    """The program cache of a chip. Its numbers are those of the moment when they are asked for."""

    @property
    def mode(self) -> Literal["on", "off", "check"]:
        """Whether programs are kept, and compared with a new description when they are found."""
    @property
    def hits(self) -> int:
        """Calls that found their program."""
    @property
    def misses(self) -> int:
        """Calls that did not."""
    @property
    def checks(self) -> int:
        """Hits that were compared with a new description."""
    @property
    def evictions(self) -> int:
        """Programs that were dropped to make room."""
    @property
    def programs(self) -> list[str]:
        """The operations of the programs that it holds, sorted."""
    def clear(self) -> None:
        """Drops all programs."""

def dispatch_operation(
    describe: Callable[..., dict[str, Any]],
    subject: object,
    name: str,
    number: int,
    operands: Sequence[Tensor | None],
    attributes: tuple[Any, ...],
    dynamics: Sequence[int],
) -> None:
    """Runs an operation: how ``telltale.operations`` calls the native half."""

def close_chips() -> None:
    """Closes the chips of this process. Python calls it before it ends."""

@final
class Runtime:
    """What a program that works with accelerators records of itself: device memory and metrics of its own, which
    ``telltale smi`` and the node service read. Nothing here fails or waits: what cannot be done is in ``problems``."""

    def __new__(cls, name: str) -> Runtime:
        """A runtime with this name, such as ``my engine 1.2``."""
    def open_device(self, number: int, *, pci: str | None = None) -> RecordedDevice:
        """Opens a device for recording. ``pci`` is its PCI address, by which readers find it again."""
    def counter(
        self, name: str, help: str = "", *, unit: str | None = None, labels: Mapping[str, str] = ...
    ) -> Counter:
        """A count that only grows. The same name and labels give the same counter."""
    def gauge(self, name: str, help: str = "", *, unit: str | None = None, labels: Mapping[str, str] = ...) -> Gauge:
        """A value that goes up and down. The same name and labels give the same gauge."""
    def histogram(
        self,
        name: str,
        bounds: Sequence[float],
        help: str = "",
        *,
        unit: str | None = None,
        labels: Mapping[str, str] = ...,
    ) -> Histogram:
        """Counts of observations up to each of ``bounds``, which ascend."""
    @property
    def problems(self) -> dict[str, int]:
        """How often something could not be done, by step; empty when all went well."""

@final
class RecordedDevice:
    """An open device of this process. Closing it, or leaving its ``with`` block, ends its accounting."""

    @property
    def is_recorded(self) -> bool:
        """Whether anything is recorded."""
    def allocate(self, size: int, address: int, *, kind: _Kind = "dram") -> None:
        """Records that ``size`` bytes were allocated at ``address``."""
    def free(self, address: int, *, kind: _Kind = "dram") -> None:
        """Records that the buffer at ``address`` was freed."""
    def allocation_failed(self, *, kind: _Kind = "dram") -> None:
        """Records that the allocator refused an allocation."""
    def close(self) -> None:
        """Ends its accounting. The last device that is closed removes what this process has shown."""
    def __enter__(self) -> RecordedDevice: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Counter:
    """A count that only grows."""

    def add(self, number: int = 1) -> None:
        """Adds to it."""

@final
class Gauge:
    """A value that goes up and down."""

    def set(self, value: float) -> None:
        """Sets it."""

@final
class Histogram:
    """Counts of observations by size."""

    def observe(self, value: float) -> None:
        """Counts a value."""

@final
class MemoryBlocks:
    """The blocks of this process that have begun and not ended: the native half of :func:`telltale.track`."""

    def __new__(cls) -> MemoryBlocks: ...
    def begin(self) -> int:
        """A block begins; the number that ends it."""
    def end(self, number: int) -> list[BlockMemory] | None:
        """A block ends; what it cost, or ``None`` where the process records no memory."""

@final
class BlockMemory:
    """What a block cost in one kind of memory of a device."""

    @property
    def device(self) -> str:
        """The device, as the process names it; ``host`` is the machine itself."""
    @property
    def kind(self) -> str:
        """The kind of memory, such as ``dram``."""
    @property
    def before(self) -> int:
        """Bytes in use when it began."""
    @property
    def after(self) -> int:
        """Bytes in use when it ended."""
    @property
    def peak(self) -> int:
        """The most bytes in use at a time."""
    @property
    def kept(self) -> int:
        """Bytes in use after it and not before it; negative where it freed more."""
    @property
    def peak_uncertainty(self) -> int:
        """How much more the peak may have been: 0 while one thread records, else 64 KiB for each."""
    @property
    def allocated(self) -> int:
        """Bytes of the allocations within."""
    @property
    def allocations(self) -> int:
        """Allocations within."""
    @property
    def failed(self) -> int:
        """Allocations within that failed."""

@final
class DebugTensor:
    """A tensor that a core printed. What is made of it without a copy shares its memory: do not write there."""

    @property
    def dtype(self) -> str:
        """Its data type by the stream's name, such as ``bfloat16`` or ``float8e4m3fn``."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, in elements."""
    @property
    def nbytes(self) -> int:
        """Bytes of its elements, without what fills the device's last unit."""
    @property
    def raw(self) -> Any:
        """A read-only array without a copy: of NumPy's type, or for a type that NumPy lacks of the codes, ``uint8``
        or ``uint16``. Needs NumPy, as what follows."""
    def numpy(self) -> Any:
        """The values: an array without a copy, whose type is NumPy's or that of ml_dtypes. Without ml_dtypes, a type
        that NumPy lacks is decoded to ``float32``."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What NumPy and others need to share the memory, for a type that NumPy has."""
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for ``torch.from_dlpack`` and others: of the memory itself from version 1 on, which can say that it
        is read-only, and of a copy without ``max_version``. ``BufferError`` for ``float4e2m1fn_x4``."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """The host's memory."""

@final
class DebugEvent:
    """What a kernel printed: a tensor, a text, or something of the runtime's own."""

    @property
    def core(self) -> int | None:
        """The logical core, where that is known."""
    @property
    def time(self) -> datetime | None:
        """When it was published, in UTC; ``None`` in a capture, and from a library that does not report it."""
    @property
    def time_ns(self) -> int | None:
        """The same in nanoseconds of ``CLOCK_MONOTONIC``, as in a capture."""
    @property
    def prefix(self) -> str:
        """What the kernel's author called it."""
    @property
    def iteration(self) -> int | None:
        """How many events of this core and prefix were before it, where that is known."""
    @property
    def sequence(self) -> int | None:
        """Its number among all events of its core, lost ones included, where that is known."""
    @property
    def kind(self) -> Literal["tensor", "text", "breakpoint", "user", "unknown"]:
        """What it is."""
    @property
    def type(self) -> int:
        """The number of its type."""
    @property
    def pipe(self) -> int:
        """0 if it wants to be printed to standard output; anything else is standard error."""
    @property
    def dtype(self) -> str | None:
        """The data type of a tensor. Nothing is read for it."""
    @property
    def shape(self) -> tuple[int, ...] | None:
        """The dimensions of a tensor. Nothing is read for it."""
    @property
    def nbytes(self) -> int:
        """Bytes of its data. Nothing is read for it."""
    @property
    def text(self) -> str | None:
        """The text, or the note of a breakpoint; ``None`` for another kind."""
    @property
    def tensor(self) -> DebugTensor | None:
        """The tensor, read once; ``None`` for another kind. ``FileError``, or ``StreamError`` for an event of a stream,
        if its parts do not fit together or the capture does not have its data."""
    @property
    def data(self) -> bytes:
        """A copy of its data, as it was published."""

@final
class DebugGap:
    """Something that is not in a capture."""

    @property
    def before(self) -> int:
        """The number of the event behind it, in the whole capture."""
    @property
    def events(self) -> int | None:
        """How many events; ``None`` where that is not known."""
    @property
    def core(self) -> int | None:
        """Their core, where that is known."""
    @property
    def reason(self) -> str:
        """Why: lost before they could be kept, not in the capture, or not readable."""

@final
class DebugCapture(Sequence[DebugEvent]):
    """Events of a capture, in order. Slices and selections are views; printing it gives the first events as a table."""

    @property
    def path(self) -> Path:
        """Where it is."""
    @property
    def losses(self) -> list[DebugGap]:
        """What the whole capture lacks, in its order."""
    def filter(self, text: str) -> DebugCapture:
        """A view of the events that a filter of docs/debug-stream.md wants."""
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> DebugEvent: ...
    @overload
    def __getitem__(self, index: slice, /) -> DebugCapture: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[DebugEvent]: ...

@final
class DebugStream:
    """The client of one core's stream; see ``telltale.debug.Stream``."""

    @property
    def core(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def lost(self) -> dict[str, int] | None: ...
    def read(self, timeout: float | None = None) -> DebugEvent | None:
        """Takes the next event that its filter wants. ``None`` once ``timeout`` is over and none of those that wait is
        wanted; 0 waits for none."""
    def fileno(self) -> int: ...
    def close(self) -> None: ...

def debug_open(path: _Path, *, filter: str | None = None) -> DebugCapture: ...
def debug_connect(core: int = 0, *, filter: str | None = None, library: _Path | None = None) -> DebugStream: ...
def debug_register_cores(count: int, /) -> None: ...
def debug_publish_tensor(
    core: int, prefix: str, dtype: str, shape: Sequence[int], data: bytes, pipe: int, /
) -> bool: ...
def debug_publish_text(core: int, prefix: str, text: str, pipe: int, /) -> bool: ...
