"""Tables are sequences of rows that are the same where their place is, and columns whose types are declared."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import telltale

Emulated = Callable[[str], Path]


def test_a_table_is_a_sequence(emulated: Emulated) -> None:
    devices = telltale.snapshot(root=emulated("t3000")).devices
    assert isinstance(devices, Sequence)
    last = devices[-1]
    assert last in devices and devices.index(last) == 7 and devices.count(last) == 1
    with pytest.raises(ValueError):
        devices[:3].index(last)
    for beyond in (8, -9, 1 << 80):
        with pytest.raises(IndexError, match="among 8"):
            _ = devices[beyond]
    with pytest.raises(TypeError):
        _ = devices["0"]  # type: ignore[call-overload]
    assert len(devices[2:100:3]) == 2 and len(devices[5:2]) == 0


def test_rows_are_equal_by_their_place(emulated: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    root = emulated("n300")
    pci = telltale.snapshot(root=root).devices[0].pci
    with telltale.Runtime("mine").open_device(0, pci=pci) as device:
        device.allocate(4096, address=0x1000)
        device.allocate(64, address=0x1000, kind="l1")
        taken = telltale.snapshot(root=root, runtime_dir=tmp_path)
        again = telltale.snapshot(root=root, runtime_dir=tmp_path)
    tables: list[Any] = [taken.devices, taken.processes, taken.memory, taken.processes[0].devices]
    others: list[Any] = [again.devices, again.processes, again.memory, again.processes[0].devices]
    for table, other in zip(tables, others):
        rows = list(table)
        assert rows == list(table) and len({*rows, *table}) == len(rows) > 0
        assert all(one != two for one, two in zip(rows, other))
    (holding,) = taken.processes[0].devices
    assert holding.device == taken.devices[0] != taken.devices[1]
    assert holding.process == taken.processes[0] == taken.memory[0].process
    assert hash(holding.device) == hash(taken.devices[0])


def test_a_snapshot_can_be_pickled_and_its_rows_say_that_they_cannot(emulated: Emulated) -> None:
    taken = telltale.snapshot(root=emulated("n300"))
    for other in (pickle.loads(pickle.dumps(taken)), copy.deepcopy(taken)):
        assert isinstance(other, telltale.Snapshot)
        assert other.to_json() == taken.to_json()
    for row in (taken.devices[0], taken.devices):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(row)
    with pytest.raises(telltale.FileError, match="no snapshot"):
        telltale.Snapshot.from_json("{}")


def test_the_module_has_its_version() -> None:
    assert telltale.__version__.count(".") == 2


def test_types_of_columns_do_not_depend_on_data(emulated: Emulated, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    some = telltale.snapshot(root=emulated("n300"))
    none = telltale.snapshot(root=tmp_path)
    assert len(none.devices) == 0
    types = some.devices.to_pandas().dtypes
    assert types.equals(none.devices.to_pandas().dtypes)
    assert types["temperature"] == pandas.Float64Dtype() and types["dram_free"] == pandas.Int64Dtype()
    assert types["device"] == pandas.StringDtype()
    down = telltale.snapshot(host=[f"unix:{tmp_path}/none.sock"]).to_pandas()
    names = ["host_memory" if name == "host" else name for name in types.index]
    assert list(down.columns) == ["host", *names] and down["dram_free"].dtype == pandas.Int64Dtype()
    assert (down["host"].dtype, down["host_memory"].dtype) == (pandas.StringDtype(), pandas.Int64Dtype())
    pyarrow = pytest.importorskip("pyarrow")
    for name in ("devices", "processes", "memory"):
        tables: list[Any] = [getattr(some, name), getattr(none, name)]
        assert tables[0].to_arrow().schema == tables[1].to_arrow().schema
    assert some.devices.to_arrow().schema.field("power").type == pyarrow.float64()
