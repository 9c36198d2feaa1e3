"""Debug events of a stream, and what becomes of those who wait for one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import telltale
from conftest import run
from telltale import debug
from telltale.errors import QueryError, StreamError

numpy = pytest.importorskip("numpy")

NRT = os.environ["TELLTALE_NRT"]


@pytest.fixture
def stream() -> Iterator[debug.Stream]:
    debug.register_cores(2)
    with debug.connect(0) as stream:
        yield stream


def test_what_is_published_is_read(stream: debug.Stream) -> None:
    before = datetime.now(timezone.utc)
    assert debug.publish(0, "loss", 2.5) and debug.publish(0, "note", "begin", pipe=1)
    assert debug.publish(0, "loss", numpy.arange(4, dtype=numpy.uint16), dtype="bfloat16")
    first, second, third = (stream.read(1) for _ in range(3))
    assert first is not None and second is not None and third is not None
    assert (first.prefix, first.core, first.iteration, first.sequence is not None) == ("loss", 0, 0, True)
    assert first.time is not None and abs(first.time - before) < timedelta(seconds=5)
    assert first.tensor is not None and first.tensor is first.tensor and first.tensor.numpy() == numpy.float32(2.5)
    assert (second.kind, second.text, second.pipe, second.tensor) == ("text", "begin", 1, None)
    assert (third.iteration, third.dtype, third.shape) == (1, "bfloat16", (4,))
    assert stream.read(0) is None and stream.lost == {"events": 0, "bytes": 0, "memory": 0}
    begin = time.monotonic()
    assert stream.read(0.15) is None and time.monotonic() - begin >= 0.15


def test_each_type_of_numpy_is_published(stream: debug.Stream) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4", "float4_e2m1fn"):
        values = numpy.array([1, 2, -1], dtype=getattr(ml_dtypes, name))
        assert debug.publish(0, name, values)
        event = stream.read(1)
        assert event is not None and event.tensor is not None and event.tensor.numpy().dtype == values.dtype
        assert list(event.tensor.numpy().astype("f4")) == [1, 2, -1]
    assert debug.publish(0, "big", numpy.array([1, 2], dtype=">i4"))
    event = stream.read(1)
    assert event is not None and event.tensor is not None and list(event.tensor.numpy()) == [1, 2]
    with pytest.raises(QueryError, match="float64"):
        debug.publish(0, "x", numpy.zeros(2))
    with pytest.raises(QueryError, match="needs 24 bytes and there are 3"):
        debug.publish(0, "x", numpy.zeros(3, dtype=numpy.uint8), dtype="int64")
    with pytest.raises(QueryError, match="8 dimensions"):
        debug.publish(0, "x", numpy.zeros((1,) * 9, dtype=numpy.int8))


def test_publishing_without_numpy_says_what_to_install(stream: debug.Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert debug.publish(0, "x", 1.5) and debug.publish(0, "x", "text")
    with pytest.raises(telltale.MissingPackageError, match="numpy") as refused:
        debug.publish(0, "x", [1, 2])
    assert isinstance(refused.value, telltale.Error) and refused.value.remedy == "`pip install numpy`"
    assert refused.value.cause and isinstance(refused.value.__cause__, ImportError)


def test_a_filter_passes_over_the_others(stream: debug.Stream) -> None:
    stream.close()
    with debug.connect(0, filter="prefix=a*;max_bytes=4") as chosen:
        for prefix in ("a1", "b", "a2"):
            debug.publish(0, prefix, 1)
        debug.publish(0, "a", numpy.zeros(3, dtype=numpy.float32))
        assert debug.publish(0, "a3", numpy.int32(4))
        chosen_prefixes = [event.prefix for event in iter(lambda: chosen.read(0), None)]
        assert chosen_prefixes == ["a3"]
    with pytest.raises(QueryError):
        debug.connect(0, filter="prefix")


def test_a_read_that_does_not_wait_looks_through_all_events(stream: debug.Stream) -> None:
    stream.close()
    with debug.connect(0, filter="prefix=a*") as chosen:
        # More than are passed over at once.
        assert all(debug.publish(0, "b", 1) for _ in range(10_000))
        assert debug.publish(0, "a", 2)
        event = chosen.read(0)
        assert event is not None and event.prefix == "a"
        assert all(debug.publish(0, "b", 1) for _ in range(10_000))
        assert chosen.read(0) is None


def test_one_client_is_connected_at_a_time(stream: debug.Stream) -> None:
    with pytest.raises(StreamError, match="already"):
        debug.connect(0)
    stream.close()
    stream.close()
    with debug.connect(0) as other:
        assert debug.publish(0, "x", 1.0) and other.read(1) is not None
    assert not debug.publish(0, "x", 1.0)
    for call in (stream.read, stream.fileno):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert list(stream) == [] and repr(stream) == "<Stream core 0, closed>"


def test_a_core_that_is_not_there_says_so() -> None:
    printed = run(
        "import telltale\nfor call in (telltale.debug.connect, lambda: telltale.debug.publish(0, 'x', 'y')):\n"
        " try: call()\n except telltale.errors.StreamError as error: print(error.remedy)"
    )
    assert printed.stdout.splitlines() == [
        "open a device first, or load a library with Neuron's debug stream",
        "call register_cores first",
    ]
    with pytest.raises(StreamError, match="cannot load"):
        debug.connect(0, library="/none.so")
    with pytest.raises(StreamError, match="nrt_debug_client_connect"):
        debug.connect(0, library="libc.so.6")


def test_losses_are_counted() -> None:
    printed = run(
        "import telltale.debug as d\nd.register_cores()\nstream = d.connect()\n"
        "print([d.publish(0, 'x', 'y') for _ in range(4)], stream.lost, len([*iter(lambda: stream.read(0), None)]))",
        NEURON_RT_DEBUG_STREAM_BUFFER_SIZE="3",
    )
    assert printed.stdout.strip() == "[True, True, True, False] {'events': 1, 'bytes': 0, 'memory': 0} 3", printed


def test_threads_wait_and_publish_at_once(stream: debug.Stream) -> None:
    found: list[debug.Event] = []
    readers = [threading.Thread(target=lambda: found.extend(stream)) for _ in range(3)]
    for reader in readers:
        reader.start()
    writers = [threading.Thread(target=lambda: [debug.publish(0, "x", i) for i in range(500)]) for _ in range(2)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    deadline = time.monotonic() + 30
    while len(found) < 1000 and time.monotonic() < deadline:
        time.sleep(0.01)
    # They wait now; closing ends that.
    begin = time.monotonic()
    stream.close()
    for reader in readers:
        reader.join(10)
    assert len(found) == 1000 and time.monotonic() - begin < 2
    assert sorted(event.iteration or 0 for event in found) == list(range(1000))


def test_a_child_of_fork_has_no_stream(stream: debug.Stream) -> None:
    debug.publish(0, "x", 1.0)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            stream.read(0)
        except StreamError:
            stream.close()
            # A stream of its own is for the child to make.
            status = 0 if stream.closed else 2
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    event = stream.read(1)
    assert event is not None and event.prefix == "x"


def test_control_c_ends_a_wait() -> None:
    program = (
        "import telltale.debug as d, sys\nd.register_cores()\nstream = d.connect()\nprint('waits', flush=True)\n"
        "try:\n    stream.read()\nexcept KeyboardInterrupt:\n    print('interrupted', stream.closed)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    assert printed == "interrupted False\n" and process.returncode == 0


def test_the_interpreter_ends_while_a_thread_waits() -> None:
    printed = run(
        "import telltale.debug as d, threading, time\nd.register_cores()\nstream = d.connect()\n"
        "threading.Thread(target=stream.read, daemon=True).start()\ntime.sleep(0.2)\nprint('ends')"
    )
    assert (printed.stdout, printed.stderr, printed.returncode) == ("ends\n", "", 0)


# Libraries with Neuron's calls.

LIBRARY = """
import ctypes, sys, telltale.debug as d
nrt = ctypes.CDLL(sys.argv[1])
def publish(prefix, dtype, shape, data):
    sizes = (ctypes.c_uint64 * len(shape))(*shape)
    return nrt.telltale_debug_publish_tensor(
        0, prefix, 1, dtype, sizes, ctypes.c_size_t(len(shape)), data, ctypes.c_size_t(len(data)))
"""


@pytest.mark.parametrize("named", ["d.connect(0)", "d.connect(0, library=sys.argv[1])"])
def test_a_loaded_library_has_the_stream(named: str) -> None:
    program = f"""{LIBRARY}
stream = {named}
assert publish(b"act", b"bfloat16", (2,), bytes([0x80, 0x3f, 0, 0x40])) == 0
assert publish(b"act", b"float32", (), bytes(4)) == 0 and publish(b"act", b"nonsense", (1,), bytes(4)) == 0
first, second, third = stream.read(1), stream.read(1), stream.read(1)
print(first.prefix, first.core, first.iteration, first.pipe, first.time, first.shape, bytes(first.tensor.raw), stream.lost)
print(second.iteration, second.shape, second.tensor.numpy())
try: third.tensor
except d.StreamError as error: print(error)
try: d.connect(0)
except d.StreamError as error: print(error)
print(stream.read(0.1), stream.fileno() > 2)
stream.close()
print(publish(b"late", b"float32", (), bytes(4)), [*stream])
""".replace("d.StreamError", "__import__('telltale').errors.StreamError")
    printed = run(program, NRT)
    assert printed.returncode == 0, printed
    lines = printed.stdout.splitlines()
    assert lines[0] == r"act 0 0 1 None (2,) b'\x80?\x00@' {'events': 0, 'bytes': 0, 'memory': 0}"
    assert lines[1] == "1 () 0.0"
    assert "unknown data type" in lines[2] and "NRT_INVALID" in lines[3]
    assert lines[4:] == ["None True", "14 []"]


def test_the_default_consumer_of_a_library_writes_a_capture(tmp_path: Path) -> None:
    program = f"""{LIBRARY}
nrt.nrt_init(1, None, None)
for number in range(3): publish(b"loss", b"float32", (1,), bytes(4))
nrt.nrt_close()
"""
    assert run(program, NRT, NEURON_RT_DEBUG_OUTPUT_DIR=str(tmp_path / "dumps")).returncode == 0
    capture = debug.open_capture(tmp_path / "dumps")
    assert [event.iteration for event in capture] == [0, 1, 2]


def test_it_is_part_of_the_module() -> None:
    assert telltale.debug is debug
