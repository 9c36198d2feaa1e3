"""What the service of a host knows beyond one look, and several hosts as one table."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import telltale

_TELLTALE = os.environ["TELLTALE"]
Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts the program, and ends it afterwards."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, ready: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [_TELLTALE, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if ready in line:
                return process
        raise AssertionError(f"{arguments} ended")

    yield start
    for process in running:
        process.terminate()
        process.communicate(timeout=20)


def _serve(started: Started, place: Path, machine: str, *more: str) -> Path:
    """An emulated machine and its service; the machine's root."""
    root = place / "root"
    started("emulate", "--machine", machine, "--root", root, *more, ready="An emulated ")
    arguments = ["serve", "--root", root, "--runtime-dir", place, "--state-dir", place / "state", "--http", "off"]
    started(*arguments, "--interval", "0.2", ready="collecting")
    return root


def test_a_chip_that_has_failed_is_not_chosen(started: Started, tmp_path: Path) -> None:
    root = _serve(started, tmp_path, "t3000", "--fault", "stop:0")
    command = [_TELLTALE, "select", "4", "--root", str(root), "--runtime-dir", str(tmp_path)]
    deadline = time.monotonic() + 60
    # One look cannot find it: the program has it of the service.
    while True:
        chosen = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if chosen.returncode != 0:
            break
        assert time.monotonic() < deadline, "a heartbeat that stands still is a failure after seconds"
        time.sleep(0.2)
    assert chosen.returncode == 2 and "3 of 4 devices fit" in chosen.stderr, chosen
    failed = telltale.snapshot(root=root, runtime_dir=tmp_path).devices[0].pci
    assert failed not in telltale.select_devices(3, root=root, runtime_dir=tmp_path).value.split(",")
    with pytest.raises(telltale.SelectionError):
        telltale.select_devices(4, root=root, runtime_dir=tmp_path)


def test_several_hosts_are_one_table(started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in ("a", "b")}
    for place, machine in zip(places.values(), ("n150", "n300")):
        place.mkdir(mode=0o700)
        _serve(started, place, machine)
    # Also by names that are relative to where the program is.
    monkeypatch.chdir(places["a"])
    names = ["unix:telemetry.sock", f"unix:{places['b']}/telemetry.sock", f"unix:{tmp_path}/none.sock"]
    fleet = telltale.snapshot(host=names)
    assert [host.reason is None for host in fleet] == [True, True, False]
    columns = fleet.columns()
    assert columns["host"] == [names[0], names[1], names[1]]
    assert columns["device"] == [device.id for host in fleet if host.snapshot for device in host.snapshot.devices]
    assert {len(values) for values in columns.values()} == {3}
    assert fleet.columns("memory")["host"] == []
    with pytest.raises(ValueError, match="none of devices, processes and memory"):
        fleet.columns("rows")  # type: ignore[arg-type]
    html = fleet._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert html.count("<h4>") == 3 and "no service" in html
    pandas = pytest.importorskip("pandas")
    frame = fleet.to_pandas()
    assert list(frame["host"]) == columns["host"] and isinstance(frame, pandas.DataFrame)


def test_a_past_moment_and_series_are_read_from_the_history(started: Started, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    root = _serve(started, tmp_path, "n150")
    places: dict[str, Any] = {"root": root, "runtime_dir": tmp_path, "state_dir": tmp_path / "state"}
    deadline = time.monotonic() + 60
    while True:
        begun = datetime.now(timezone.utc)
        try:
            past = telltale.snapshot(**places, at=begun - timedelta(seconds=1))
            break
        except telltale.HistoryError:
            assert time.monotonic() < deadline, "the service has kept nothing"
            time.sleep(0.2)
    assert past.taken_at < begun and begun - past.taken_at < timedelta(seconds=60)
    (device,) = past.devices
    assert device.temperature is not None and device.board == "n150"
    assert len(telltale.snapshot(**places, at="1s ago").devices) == 1
    with pytest.raises(telltale.HistoryError) as early:
        telltale.snapshot(**places, at="300d ago")
    assert early.value.remedy and isinstance(early.value, LookupError)
    series = telltale.history(**places, since="1m ago")
    columns, table = series.to_dict(), series.to_arrow()
    assert any(value is not None for value in columns["mean"])
    assert isinstance(table, pyarrow.Table) and table.column_names == list(columns)
    assert table.num_rows == len(columns["time"])


def test_a_past_moment_is_read_from_a_recording(started: Started, tmp_path: Path) -> None:
    root = tmp_path / "root"
    started("emulate", "--machine", "n150", "--root", root, ready="An emulated ")
    recording = tmp_path / "run.tt"
    command = [_TELLTALE, "record", str(recording), "--every", "0.1", "--for", "1", "--root", str(root)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    last = telltale.snapshot(recording=recording)
    at = last.taken_at - timedelta(seconds=0.5)
    past = telltale.snapshot(recording=recording, at=at)
    assert past.taken_at <= at < last.taken_at and len(past.devices) == 1
    with pytest.raises(telltale.FileError, match="begins at .*Z") as early:
        telltale.snapshot(recording=recording, at=at - timedelta(days=1))
    assert early.value.remedy


def test_a_history_that_is_not_kept_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(telltale.HistoryError) as absent:
        telltale.history(root=tmp_path, runtime_dir=tmp_path, state_dir=tmp_path / "state")
    assert isinstance(absent.value, LookupError) and isinstance(absent.value, telltale.Error)
    assert absent.value.remedy
