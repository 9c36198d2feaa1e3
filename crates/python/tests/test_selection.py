"""Devices are chosen by who holds them and by what is free, and named as their runtime wants."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import telltale

Emulated = Callable[[str], Path]


def test_the_variable_names_pci_addresses_of_chips_that_can_be_opened(emulated: Emulated) -> None:
    root = emulated("n300")
    chosen = telltale.select_devices(root=root)
    assert chosen.variable == "TT_VISIBLE_DEVICES"
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", chosen.value)
    assert chosen.env == {"TT_VISIBLE_DEVICES": str(chosen)}
    assert [device.pci for device in chosen.devices] == [chosen.value]
    # The second chip of the board is reached through the first one.
    with pytest.raises(telltale.errors.SelectionError, match="1 of 1 devices fit, and 2 are wanted"):
        telltale.select_devices(2, root=root)


def test_what_does_not_fit_is_not_chosen(emulated: Emulated) -> None:
    root = emulated("t3000")
    assert len(telltale.select_devices(4, root=root, max_processes=0).devices) == 4
    with pytest.raises(telltale.errors.SelectionError) as refused:
        telltale.select_devices(root=root, min_free=1 << 50)
    assert refused.value.remedy == "ask for fewer, or for less of each"
    with pytest.raises(telltale.errors.SelectionError):
        telltale.select_devices(root=root, filter="temperature > 200C")


def test_a_host_without_accelerators_says_so(tmp_path: Path) -> None:
    with pytest.raises(telltale.errors.SelectionError, match="no accelerator"):
        telltale.select_devices(root=tmp_path)


def test_what_the_environment_hides_is_not_chosen(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    root = emulated("t3000")
    all_of_them = telltale.select_devices(4, root=root).value.split(",")
    monkeypatch.setenv("TT_VISIBLE_DEVICES", all_of_them[2])
    assert telltale.select_devices(root=root).value == all_of_them[2]
    with pytest.raises(telltale.SelectionError, match="1 of 1 devices fit, and 2 are wanted"):
        telltale.select_devices(2, root=root)
    monkeypatch.setenv("TT_VISIBLE_DEVICES", "0000:ff:1f.7")
    with pytest.raises(telltale.SelectionError, match="TT_VISIBLE_DEVICES leaves none of the 4 devices"):
        telltale.select_devices(root=root)


def test_no_device_is_no_choice(emulated: Emulated) -> None:
    with pytest.raises(telltale.QueryError, match="ask for 1 or more"):
        telltale.select_devices(0, root=emulated("n150"))
