"""Debug events of captures, and their tensors as other libraries take them."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import TELLTALE, run
from telltale import debug
from telltale.errors import FileError, QueryError

numpy = pytest.importorskip("numpy")

# The bytes of an element of each data type of the stream.
SIZES = {
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "bfloat16": 2,
    "float8e3m4": 1,
    "float8e4m3": 1,
    "float8e4m3fn": 1,
    "float8e5m2": 1,
    "float32r": 4,
    "float4e2m1fn_x4": 1,
    "float8e4m3fn_x4": 1,
    "float8e5m2_x4": 1,
}


def dump(root: Path, number: int, prefix: str, core: int, dtype: str, shape: Sequence[int], data: bytes) -> None:
    """Writes an event's directory, as the default consumer does."""
    place = root / prefix / f"core_{core}" / str(number)
    place.mkdir(parents=True)
    sizes = ", ".join(map(str, shape))
    facts = f"dtype = {dtype}\nshape = ({sizes})\ndata_size = {len(data)}\nkind = tensor\ntype = 1\n"
    facts += f"prefix = {prefix}\ncore = {core}\npipe = 0\ntime_ns = {1000 + number}\niteration = {number}\n"
    (place / "metadata.txt").write_text(facts)
    (place / "tensor_data.bin").write_bytes(data)


def convert(capture: Path, form: str) -> Path:
    """The same capture in another form."""
    to = capture.with_name(f"{capture.name}.{form}")
    command = [TELLTALE, "events", str(capture), "--convert", form, "--output", str(to)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return to


def listed(capture: Path) -> list[dict[str, Any]]:
    """What ``telltale events --json`` says of a capture."""
    command = [TELLTALE, "events", str(capture), "--json"]
    output = subprocess.run(command, capture_output=True, timeout=60).stdout
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Six events of two cores, and an event file's worth of time between them."""
    root = tmp_path / "dumps"
    for number in range(4):
        values = numpy.arange(6, dtype=numpy.float32) + number
        dump(root, number, "act.1", number % 2, "float32", (2, 3), values.tobytes())
    dump(root, 4, "loss", 0, "bfloat16", (2,), b"\x80\x3f\x00\x40")
    dump(root, 5, "codes", 1, "float8e4m3fn_x4", (5,), bytes([0x38, 0x40, 0x44, 0x48, 0xB8, 0, 0, 0]))
    return root


@pytest.fixture(params=["directory", "raw", "jsonl"])
def capture_path(request: pytest.FixtureRequest, dumps: Path) -> Path:
    return dumps if request.param == "directory" else convert(dumps, request.param)


def test_a_capture_is_a_sequence_whose_slices_are_views(capture_path: Path) -> None:
    capture = debug.open_capture(capture_path)
    assert isinstance(capture, Sequence) and len(capture) == 6 and capture.path == capture_path
    assert [event.prefix for event in capture] == ["act.1"] * 4 + ["loss", "codes"]
    assert [event.time_ns for event in capture] == list(range(1000, 1006))
    assert capture[-1].prefix == "codes" and capture[-1] == capture[5] and capture[0] != capture[1]
    assert [event.iteration for event in capture[1:5]] == [1, 2, 3, 4]
    assert [event.iteration for event in capture[::-2][1:]] == [3, 1]
    assert len(capture[4:2]) == 0 and len({*capture, *capture}) == 6
    assert capture[2] in capture and capture.index(capture[2]) == 2 and capture.count(capture[2]) == 1
    assert [event.iteration for event in reversed(capture)] == [5, 4, 3, 2, 1, 0]
    for wrong in (6, -7, 1 << 70, -1 << 70, sys.maxsize, -sys.maxsize - 1):
        with pytest.raises(IndexError, match=f"{wrong} is not among 6"):
            capture[wrong]
        with pytest.raises(IndexError):
            capture[1:3][wrong]
    assert capture[numpy.int64(-2)] == capture[4] and capture[True] == capture[1]
    for other in ("1", 1.0, None):
        with pytest.raises(TypeError):
            capture[other]  # type: ignore[call-overload]


@pytest.mark.parametrize("start", [None, 0, 2, 9, -1, -4, -9, 1 << 70, -1 << 70])
def test_slices_are_those_of_a_list(start: int | None, dumps: Path) -> None:
    capture = debug.open_capture(dumps)
    events = list(capture)
    for stop in (None, 0, 3, 6, 9, -2, -9, 1 << 70):
        for step in (None, 1, 2, -1, -3, 7, -7, sys.maxsize, -sys.maxsize):
            chosen = slice(start, stop, step)
            assert list(capture[chosen]) == events[chosen]
            for inner in (slice(None, None, -1), slice(1, None, 2), slice(None, -1)):
                assert list(capture[chosen][inner]) == events[chosen][inner]
    with pytest.raises(ValueError, match="zero"):
        _ = capture[::0]


def test_facts_of_an_event_are_those_of_its_directory(capture_path: Path) -> None:
    capture = debug.open_capture(capture_path)
    event = capture[1]
    assert (event.core, event.kind, event.dtype, event.shape, event.nbytes) == (1, "tensor", "float32", (2, 3), 24)
    assert event.time is None and event.text is None and event.data == event.tensor.raw.tobytes()  # type: ignore[union-attr]
    assert capture.losses == []


def test_a_filter_is_the_text_of_the_stream(capture_path: Path) -> None:
    capture = debug.open_capture(capture_path, filter="prefix=act*")
    assert len(capture) == 4
    assert [event.iteration for event in capture.filter("core=1")] == [1, 3]
    assert [event.iteration for event in capture.filter("core=1")[1:]] == [3]
    assert [event.iteration for event in capture.filter("every=2")] == [0, 1]
    whole = debug.open_capture(capture_path)
    assert [event.prefix for event in whole.filter("dtype=bfloat16,int8")] == ["loss"]
    assert len(whole.filter("max_bytes=8")) == 2 and len(whole[1:3].filter("core=1")) == 1
    with pytest.raises(QueryError, match="every"):
        capture.filter("every=0")


def test_it_prints_as_a_table(dumps: Path) -> None:
    text = repr(debug.open_capture(dumps))
    assert text.splitlines()[0].split() == ["TIME", "CORE", "PREFIX#ITERATION", "DTYPE", "SHAPE", "BYTES"]
    assert "loss#4" in text and "(2,3)" in text
    for number in range(6, 40):
        dump(dumps, number, "more", 0, "int8", (), b"\x01")
    assert "and 20 more" in repr(debug.open_capture(dumps))
    assert repr(debug.open_capture(dumps)[4]) == "<Event core 0 loss#4 bfloat16 (2)>"


def test_data_is_not_read_before_it_is_wanted(dumps: Path) -> None:
    raw = convert(dumps, "raw")
    capture, whole = debug.open_capture(raw), raw.read_bytes()
    # Neither file is read again for what is known of the events.
    for directory in (debug.open_capture(dumps), capture):
        assert len(directory.filter("core=0")) == 3
    for file in dumps.rglob("tensor_data.bin"):
        file.write_bytes(b"")
    assert len(debug.open_capture(dumps)) + len(debug.open_capture(dumps).losses) == 6
    # The bytes of the first tensor, and not those of the second.
    at = whole.index(numpy.arange(6, dtype=numpy.float32).tobytes())
    raw.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
    damaged = debug.open_capture(raw)
    assert len(damaged) == 6 and damaged[0].shape == (2, 3)
    with pytest.raises(FileError, match="its bytes are not those that were written"):
        _ = damaged[0].tensor
    assert damaged[1].tensor is not None


def test_what_is_torn_is_read_as_the_program_reads_it(dumps: Path, tmp_path: Path) -> None:
    def compare(bytes: bytes) -> None:
        torn = tmp_path / "torn"
        torn.write_bytes(bytes)
        expected = listed(torn)
        capture = debug.open_capture(torn)
        events = [line for line in expected if line["kind"] not in ("lost", "missing", "unreadable")]
        found = [(event.prefix, event.core, event.iteration, event.nbytes) for event in capture]
        assert found == [(line["prefix"], line["core"], line["iteration"], line["bytes"]) for line in events]
        reasons = [f"{line['place']}: {line['reason']}" for line in expected if line["kind"] == "unreadable"]
        assert [gap.reason for gap in capture.losses] == reasons

    whole = convert(dumps, "raw").read_bytes()
    mark = b"\xa5event\r\n"
    second = whole.index(mark, 17)
    for length in (17, 40, second, second + 5, second + 50, len(whole) - 1):
        compare(whole[:length])
    for at in (16, second, second + 9, second + 17, second + 33):
        compare(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    compare(whole[:second] + whole[second + 20 :])
    compare(whole[:second] + b"garbage" * 20_000 + whole[second:])
    lines = convert(dumps, "jsonl").read_bytes()
    for text in (lines[:-1], lines[:-20], b"no event\n\n" + lines, lines + b"{}\n", lines + b'{"version":9}'):
        compare(text)


def test_gaps_say_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    text = {"version": 1, "kind": "text", "type": 2, "core": 0, "prefix": "note", "text": "hé", "bytes": 3}
    lost = {"version": 1, "kind": "lost", "events": 3, "bytes": 0, "memory": 1}
    missing = {"version": 1, "kind": "missing", "core": 2, "events": 12}
    left_out = {**text, "kind": "tensor", "type": 1, "dtype": "float32", "shape": [1], "bytes": 4, "text": None}
    path.write_text("\n".join(map(json.dumps, (text, lost, missing, left_out))))
    capture = debug.open_capture(path)
    assert capture[0].text == "hé" and capture[0].tensor is None and capture[0].kind == "text"
    gaps = [(gap.before, gap.events, gap.core, gap.reason) for gap in capture.losses]
    assert gaps == [(1, 4, None, "lost: 3 full, 1 no memory"), (1, 12, 2, "not in this capture")]
    with pytest.raises(FileError, match="does not have its data"):
        _ = capture[1].tensor


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileError) as missing:
        debug.open_capture(tmp_path / "none")
    assert missing.value.remedy == "give what NEURON_RT_DEBUG_OUTPUT_DIR was set to"
    garbage = tmp_path / "garbage"
    garbage.write_bytes(bytes(range(256)))
    with pytest.raises(FileError, match="this is no capture"):
        debug.open_capture(garbage)
    garbage.write_bytes(b"\x89TTevts\n\x02\x00\x00\x00" + bytes(4))
    with pytest.raises(FileError, match="version 2"):
        debug.open_capture(garbage)
    garbage.write_bytes(b"")
    assert len(debug.open_capture(garbage)) == 0
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="neither a file nor a directory"):
        debug.open_capture(tmp_path / "pipe")


def test_control_c_ends_the_opening_of_a_large_file(tmp_path: Path) -> None:
    capture = tmp_path / "large"
    # A line without an end, most of which takes no space.
    with capture.open("wb") as file:
        file.write(b"{}\n{")
        file.truncate(64 << 30)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        debug.open_capture(capture)
    assert time.monotonic() - start < 3


def test_what_may_not_be_read_says_who_may(dumps: Path) -> None:
    raw = convert(dumps, "raw")
    raw.chmod(0)
    program = "import sys, os, telltale.debug as d\nif os.getuid() == 0: os.setuid(65534)\ntry: d.open_capture(sys.argv[1])"
    program += "\nexcept telltale.errors.FileError as error: print(error.remedy, '|', error.cause)"
    for directory in [raw.parent, *raw.parent.parents]:
        if directory.stat().st_uid == os.getuid() and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o055)
    printed = run("import telltale\n" + program, str(raw))
    assert printed.stdout.startswith("run this as a user who may read it | Permission denied"), printed


# Tensors.


def same_values(tensor: debug.Tensor, expected: Any) -> None:
    with numpy.errstate(invalid="ignore"):
        numpy.testing.assert_array_equal(tensor.numpy().astype("f8"), expected.astype("f8"))


@pytest.mark.parametrize("dtype", SIZES)
def test_values_are_those_of_other_decoders(dtype: str, dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    theirs = {
        "float32r": "float32",
        "float8e3m4": "float8_e3m4",
        "float8e4m3": "float8_e4m3",
        "float8e4m3fn": "float8_e4m3fn",
        "float8e4m3fn_x4": "float8_e4m3fn",
        "float8e5m2": "float8_e5m2",
        "float8e5m2_x4": "float8_e5m2",
        "float4e2m1fn_x4": "float4_e2m1fn",
    }.get(dtype, dtype)
    wanted = numpy.dtype(getattr(ml_dtypes, theirs, None) or theirs)
    codes = bytes(range(256)) * SIZES[dtype] if SIZES[dtype] == 1 else numpy.random.default_rng(7).bytes(4096)
    codes = bytes(code & 15 for code in codes) if dtype == "float4e2m1fn_x4" else codes
    shape = (4, len(codes) // SIZES[dtype] // 4)
    expected = numpy.frombuffer(codes, wanted).reshape(shape)
    dump(dumps, 9, "all", 0, dtype, shape, codes)
    tensor = debug.open_capture(dumps, filter="prefix=all")[0].tensor
    assert tensor is not None and (tensor.dtype, tensor.shape, tensor.nbytes) == (dtype, shape, len(codes))
    assert tensor.raw.tobytes() == codes and tensor.raw.ctypes.data % 64 == 0
    assert tensor.numpy().dtype == wanted
    same_values(tensor, expected)
    # Without a copy, and not to be written.
    assert tensor.numpy().ctypes.data == tensor.raw.ctypes.data and not tensor.numpy().flags.writeable
    assert numpy.asarray(tensor).dtype == wanted
    # The same without the package.
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    same_values(tensor, expected)
    assert numpy.asarray(tensor).dtype in (wanted, numpy.dtype("f4"))


def test_what_is_above_a_code_of_four_bits_means_nothing(dumps: Path) -> None:
    pytest.importorskip("ml_dtypes")
    dump(dumps, 9, "fp4", 0, "float4e2m1fn_x4", (3,), bytes([0xF2, 0x12, 0x0A, 0]))
    tensor = debug.open_capture(dumps, filter="prefix=fp4")[0].tensor
    assert tensor is not None and tensor.shape == (3,) and tensor.nbytes == 3
    assert list(tensor.numpy().astype("f4")) == [1.0, 1.0, -1.0] and list(tensor.raw) == [0xF2, 0x12, 0x0A]
    with pytest.raises(BufferError, match="packs"):
        tensor.__dlpack__()


def test_data_padded_to_whole_units_is_cut(dumps: Path) -> None:
    (event,) = debug.open_capture(dumps, filter="prefix=codes")
    assert event.tensor is not None and event.nbytes == 8 and event.tensor.nbytes == 5
    assert list(event.tensor.numpy().astype("f4")) == [1.0, 2.0, 3.0, 4.0, -1.0]
    assert numpy.array(event.tensor, dtype="f8").tolist() == [1.0, 2.0, 3.0, 4.0, -1.0]
    dump(dumps, 9, "short", 0, "float32", (3,), bytes(8))
    dump(dumps, 10, "unknown", 0, "float7", (8,), bytes(8))
    for prefix, reason in (("short", "needs 12 bytes and there are 8"), ("unknown", "unknown data type")):
        (event,) = debug.open_capture(dumps, filter=f"prefix={prefix}")
        with pytest.raises(FileError, match=reason):
            _ = event.tensor
        assert event.data == bytes(8)


def test_scalars_and_empty_tensors_are_tensors(dumps: Path) -> None:
    dump(dumps, 9, "scalar", 0, "int64", (), (7).to_bytes(8, "little"))
    dump(dumps, 10, "empty", 0, "float32", (0, 3), b"")
    scalar, empty = (event.tensor for event in debug.open_capture(dumps)[-2:])
    assert scalar is not None and empty is not None
    assert scalar.numpy().shape == () and int(scalar.numpy()) == 7 and numpy.from_dlpack(scalar).shape == ()
    assert empty.numpy().shape == (0, 3) and numpy.from_dlpack(empty).shape == (0, 3)


def test_torch_takes_the_values(dumps: Path) -> None:
    torch = pytest.importorskip("torch")
    capture = debug.open_capture(dumps)
    for event, dtype, expected in ((capture[1], torch.float32, [[1, 2, 3], [4, 5, 6]]), (capture[4], torch.bfloat16, [1, 2])):
        tensor = event.tensor
        assert tensor is not None and tensor.__dlpack_device__() == (1, 0)
        taken = torch.from_dlpack(tensor)
        assert taken.dtype == dtype and taken.tolist() == expected
        # It outlives everything else that has the memory.
        del tensor, event
        gc.collect()
        _ = [bytes(1 << 16) for _ in range(64)]
        assert taken.tolist() == expected
        # And is given back on another thread.
        holder = [taken]
        del taken
        thread = threading.Thread(target=holder.clear)
        thread.start()
        thread.join()
    with pytest.raises(BufferError):
        capture[0].tensor.__dlpack__(dl_device=(2, 0))  # type: ignore[union-attr]


def test_a_capsule_without_a_version_lends_a_copy(dumps: Path) -> None:
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = debug.open_capture(dumps)[4].tensor
    assert tensor is not None
    for capsule in (tensor.__dlpack__(), tensor.__dlpack__(copy=True), tensor.__dlpack__(max_version=(0, 8))):
        # DLManagedTensor begins with the pointer to the data.
        data = ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value
        assert data is not None and data % 64 == 0 and data != tensor.raw.ctypes.data
        assert ctypes.string_at(data, 4) == tensor.raw.tobytes()
        ctypes.memset(data, 0, 4)
        assert tensor.raw.tobytes() == b"\x80\x3f\x00\x40"
    with pytest.raises(BufferError, match="allow a copy"):
        tensor.__dlpack__(copy=False)


def test_a_versioned_capsule_says_that_it_is_not_to_be_written(dumps: Path) -> None:
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = debug.open_capture(dumps)[4].tensor
    assert tensor is not None

    class Versioned(ctypes.Structure):
        _fields_ = [
            ("version", ctypes.c_uint32 * 2),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
            ("flags", ctypes.c_uint64),
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("rank", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
        ]

    for copy, flags in ((None, 1), (True, 2)):
        capsule = tensor.__dlpack__(max_version=(1, 1), copy=copy)
        lent = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        assert (list(lent.version), lent.flags, list(lent.device), lent.rank) == ([1, 1], flags, [1, 0], 1)
        assert (lent.code, lent.bits, lent.lanes, lent.shape[0], lent.strides[0]) == (4, 16, 1, 2, 1)
        assert (lent.data == tensor.raw.ctypes.data) == (copy is None)
        del capsule
    assert "dltensor" in repr(tensor.__dlpack__()) and "versioned" not in repr(tensor.__dlpack__(max_version=(0, 8)))
