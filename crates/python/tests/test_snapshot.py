"""A snapshot says what `telltale smi --json` says, by name."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import telltale
from conftest import smi

Emulated = Callable[[str], Path]


def test_devices_are_those_of_smi(emulated: Emulated) -> None:
    root = emulated("n300")
    taken = telltale.snapshot(root=root)
    said = smi(root)
    assert [device.id for device in taken.devices] == [device["id"] for device in said["devices"]]
    for device, row in zip(taken.devices, said["devices"], strict=True):
        spaces = {space["space"]: space for space in row["spaces"]}
        assert device.dram_capacity == spaces["dram"]["capacity_bytes"].get("value")
        assert device.board == "n300"
        temperature = row["telemetry"]["temperature_celsius"]
        assert (device.temperature is None) == ("absent" in temperature)


def test_absence_has_a_reason(emulated: Emulated) -> None:
    devices = telltale.snapshot(root=emulated("n300")).devices
    remote = next(device for device in devices if device.temperature is None)
    assert remote.absence("temperature")
    local = next(device for device in devices if device.temperature is not None)
    assert local.absence("temperature") is None


def test_parts_of_memory_add_up(emulated: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    root = emulated("n150")
    pci = telltale.snapshot(root=root).devices[0].pci
    with telltale.Runtime("mine").open_device(0, pci=pci) as device:
        for number, (kind, size) in enumerate((("dram", 4096), ("dram", 512), ("trace", 64), ("l1", 128))):
            device.allocate(size, address=0x1000 * (number + 1), kind=kind)  # type: ignore[arg-type]
        taken = telltale.snapshot(root=root, runtime_dir=tmp_path)
    parts: Counter[tuple[str, str]] = Counter()
    for part in taken.memory:
        parts[part.device_id, part.kind] += part.bytes
    (only,) = taken.devices
    assert {kind: size for (_, kind), size in parts.items() if size} == {"dram": 4608, "trace": 64, "l1": 128}
    (said,) = taken.to_dict()["devices"]
    totals = {(only.id, kind["kind"]): kind["total_bytes"] for kind in said["kinds"]}
    assert {place: total for place, total in totals.items() if total} == +parts
    # Traces are in DRAM.
    assert (only.dram, only.l1) == (4608 + 64, 128)
    assert sum(part.bytes for part in only.memory) == sum(parts.values())


def test_columns_are_an_arrow_table(emulated: Emulated) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    devices = telltale.snapshot(root=emulated("n300")).devices
    table = devices.to_arrow()
    assert isinstance(table, pyarrow.Table) and table.num_rows == 2
    assert table.to_pydict() == devices.to_dict()


def test_arrow_that_is_not_installed_is_named(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = telltale.snapshot(root=emulated("n150")).devices
    for package, call in (("pyarrow", devices.to_arrow), ("pandas", devices.to_pandas)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(telltale.MissingPackageError, match=package) as missing:
            call()
        assert missing.value.remedy == f"`pip install {package}`"


def test_rows_are_a_sequence(emulated: Emulated) -> None:
    devices = telltale.snapshot(root=emulated("t3000")).devices
    assert len(devices) == 8
    assert devices[-1].id == devices[7].id == list(devices)[7].id
    assert [device.id for device in devices[::-2]] == [devices[at].id for at in (7, 5, 3, 1)]
    with pytest.raises(IndexError):
        _ = devices[8]
    columns = devices.to_dict()
    assert columns["device"] == [device.id for device in devices]
    assert {len(values) for values in columns.values()} == {8}
    assert repr(devices).count("\n") == 8
    assert "<table" in devices._repr_html_()


def test_a_filter_leaves_the_rows_that_it_wants(emulated: Emulated) -> None:
    taken = telltale.snapshot(root=emulated("n300"))
    assert len(taken.filter("temperature > 1C").devices) == 1
    assert len(telltale.snapshot(root=emulated("n150"), filter="board == n300").devices) == 0


def test_what_is_wrong_is_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(telltale.errors.QueryError) as refused:
        telltale.snapshot(root=tmp_path, filter="dram >")
    assert isinstance(refused.value, ValueError)
    with pytest.raises(telltale.errors.CollectError, match=str(tmp_path / "none")):
        telltale.snapshot(root=tmp_path / "none")
    nothing = tmp_path / "recording"
    nothing.write_text("notes of mine\n")
    with pytest.raises(telltale.errors.FileError) as foreign:
        telltale.snapshot(recording=nothing)
    assert foreign.value.remedy == "name a file that `telltale record` wrote"
    assert foreign.value.cause == "it is no recording of `telltale record`"
    with pytest.raises(telltale.errors.ServiceError) as silent:
        telltale.snapshot(host=f"unix:{tmp_path}/none.sock")
    assert "No such file" in str(silent.value)


def test_a_slip_in_a_name_is_answered_with_what_was_meant(emulated: Emulated) -> None:
    device = telltale.snapshot(root=emulated("n150")).devices[0]
    with pytest.raises(AttributeError, match='did you mean "temperature"'):
        getattr(device, "temprature")
