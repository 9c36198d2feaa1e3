"""What goes wrong elsewhere is an exception of one family, with its cause and what to do."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import telltale

Emulated = Callable[[str], Path]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[[bytes | None], str]]:
    """A service that sends these bytes to who connects, or nothing at all; its name."""
    opened: list[socket.socket] = []

    def start(answer: bytes | None) -> str:
        path = tmp_path / f"{len(opened)}.sock"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()
        opened.append(listening)

        def serve() -> None:
            kept: list[socket.socket] = []
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    break
                if answer is None:
                    kept.append(connection)
                else:
                    with closing(connection):
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"unix:{path}"

    yield start
    for one in opened:
        one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n{}", os.urandom(4096), b"\0\0\4\4" + bytes(1000)])
def test_a_service_that_answers_something_else_is_an_error_of_the_service(
    service: Callable[[bytes | None], str], answer: bytes
) -> None:
    with pytest.raises(telltale.ServiceError, match="does not answer") as refused:
        telltale.snapshot(host=service(answer))
    assert refused.value.cause
    assert isinstance(refused.value, ConnectionError)


def test_one_service_that_is_silent_does_not_keep_the_others(
    service: Callable[[bytes | None], str], tmp_path: Path
) -> None:
    begun = time.monotonic()
    fleet = telltale.snapshot(host=[service(None), f"unix:{tmp_path}/none.sock"], timeout=0.3)
    assert time.monotonic() - begun < 5
    assert [host.snapshot for host in fleet] == [None, None]
    assert all(host.reason for host in fleet)


def test_ctrl_c_ends_a_call_that_waits(service: Callable[[bytes | None], str]) -> None:
    program = f"import telltale; print(1, flush=True); telltale.snapshot(host={service(None)!r}, timeout=60)"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline()
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors and time.monotonic() - begun < 10


def test_other_threads_run_while_a_call_waits(service: Callable[[bytes | None], str]) -> None:
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.wait(0.01):
            turns += 1

    counting = threading.Thread(target=count)
    counting.start()
    with pytest.raises(telltale.ServiceError):
        telltale.snapshot(host=service(None), timeout=0.5)
    done.set()
    counting.join()
    assert turns >= 10


def test_a_program_ends_while_its_threads_collect(emulated: Emulated) -> None:
    program = f"""
import threading, time, telltale
def collect():
    while True:
        telltale.snapshot(root={str(emulated("n150"))!r})
for _ in range(4):
    threading.Thread(target=collect, daemon=True).start()
time.sleep(0.5)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_torn_recording_is_read_as_far_as_it_goes_or_refused(emulated: Emulated, tmp_path: Path) -> None:
    recording = tmp_path / "run.tt"
    command = [os.environ["TELLTALE"], "record", str(recording), "--every", "0.1", "--for", "0.5"]
    subprocess.run([*command, "--root", str(emulated("n150"))], check=True, capture_output=True, timeout=60)
    whole = recording.read_bytes()
    assert len(telltale.snapshot(recording=recording).devices) == 1
    taken = telltale.snapshot(recording=recording).taken_at
    # Without its last byte, the last snapshot is none, and those before it are.
    recording.write_bytes(whole[:-1])
    assert telltale.snapshot(recording=recording).taken_at < taken
    for length in (0, 3, 40):
        recording.write_bytes(whole[:length])
        with pytest.raises(telltale.FileError) as short:
            telltale.snapshot(recording=recording)
        assert str(recording) in str(short.value), length
    recording.write_bytes(b"something else\n" * 100)
    with pytest.raises(telltale.FileError) as refused:
        telltale.snapshot(recording=recording)
    assert isinstance(refused.value, OSError)


def test_what_may_not_be_read_is_absent_with_its_reason(emulated: Emulated, tmp_path: Path) -> None:
    with pytest.raises(telltale.CollectError) as refused:
        telltale.snapshot(root=tmp_path / "nowhere")
    assert "nowhere" in str(refused.value)
    assert refused.value.errno == errno.ENOENT
    assert refused.value.remedy == "pass an existing directory to root="
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (str(copy), copy.errno, type(copy)) == (str(refused.value), errno.ENOENT, telltale.CollectError)
    if os.getuid() != 0:
        pytest.skip("needs root, to become another user")
    root = emulated("n150")
    for file in root.rglob("temp1_input"):
        file.chmod(0)
    for directory in [tmp_path, *tmp_path.parents]:
        if directory.stat().st_uid == 0 and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o055)
    program = f"""
import os, telltale
os.setuid(65534)
(device,) = telltale.snapshot(root={str(root)!r}).devices
print(device.temperature, device.absence("temperature"))
"""
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("None ") and "permi" in said.stdout, said.stdout


def test_a_mistake_in_a_query_names_what_was_meant() -> None:
    with pytest.raises(telltale.QueryError, match="temperature") as refused:
        telltale.snapshot(filter="temperatur > 60C")
    assert isinstance(refused.value, ValueError)
    with pytest.raises(telltale.QueryError, match="is neither|is no|not a"):
        telltale.snapshot(at="soonish")


def test_a_remedy_may_be_that_of_the_cause() -> None:
    assert telltale.Error("it failed; try again").remedy == "try again"
    assert telltale.Error("it failed", "no room; make some").remedy == "make some"
    assert telltale.Error("it failed", "no room").remedy is None
    assert telltale.FileError("it failed", "no room").errno is None


def test_what_is_recorded_by_wrong_names_is_an_error_of_the_family() -> None:
    runtime = telltale.Runtime("tests 3")
    with pytest.raises(telltale.QueryError, match="is no PCI address"):
        runtime.open_device(0, pci="here")
    with pytest.raises(telltale.QueryError):
        runtime.counter("no name")
    with runtime.open_device(0) as device:
        with pytest.raises(telltale.QueryError, match="is no kind of memory"):
            device.allocate(1, 1, kind="paper")  # type: ignore[arg-type]
    with pytest.raises(telltale.QueryError, match="is closed"):
        device.allocate(1, 1)
