"""Where a snapshot comes from: which arguments go together, and what each host is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import telltale

Emulated = Callable[[str], Path]

#: As a program that is not checked may call it.
any_snapshot: Any = telltale.snapshot
any_history: Any = telltale.history
any_watch: Any = telltale.watch


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"root": "/", "host": "node7"}, "root= does not go with host="),
        ({"recording": "a.tt", "host": "node7"}, "recording= does not go with host="),
        ({"recording": "a.tt", "root": "/"}, "root= does not go with recording="),
        ({"at": "3m ago", "host": "node7"}, "at= does not go with host="),
        ({"at": "3m ago", "usage": True}, "usage= does not go with at="),
        ({"host": "node7", "metrics": True}, "metrics= does not go with host="),
        ({"recording": "a.tt", "state_dir": "/"}, "state_dir= does not go with recording="),
        ({"state_dir": "/"}, "state_dir= goes with at= alone"),
        ({"token": "secret"}, "token= goes with host= alone"),
        ({"timeout": 3.0}, "timeout= goes with host= alone"),
    ],
)
def test_arguments_of_two_sources_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(telltale.QueryError, match=message) as refused:
        any_snapshot(**arguments)
    assert refused.value.remedy


def test_a_watch_refuses_the_same() -> None:
    with pytest.raises(telltale.QueryError, match="root= does not go with host="):
        next(any_watch(host="node7", root="/"))


def test_files_of_tls_belong_together(tmp_path: Path) -> None:
    for arguments in ({"certificate": "c.pem"}, {"key": "k.pem"}, {"certificate": "c.pem", "key": "k.pem"}):
        with pytest.raises(telltale.QueryError, match="certificate= and key="):
            any_snapshot(host="node7", **arguments)
    with pytest.raises(telltale.ServiceError, match="none.pem") as refused:
        telltale.snapshot(host="node7", authority=tmp_path / "none.pem")
    assert refused.value.errno == 2


def test_one_host_is_one(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"unix:{tmp_path}/a.sock\nunix:{tmp_path}/b.sock\n")
    with pytest.raises(telltale.QueryError, match="names 2 hosts"):
        telltale.snapshot(host=f"@{hosts}")
    with pytest.raises(telltale.QueryError, match="names no host") as refused:
        telltale.snapshot(host="a, b")
    assert refused.value.remedy == 'ask several by a list: host=["a", "b"]'
    assert len(telltale.snapshot(host=[f"@{hosts}"])) == 2
    hosts.write_text(f"unix:{tmp_path}/a.sock\n")
    with pytest.raises(telltale.ServiceError, match="does not answer"):
        telltale.snapshot(host=f"@{hosts}")
    with pytest.raises(telltale.QueryError, match="no host is named") as none:
        telltale.snapshot(host=[])
    assert "--" not in str(none.value) and "host=" in str(none.value)


def test_rows_of_a_host_are_those_that_are_wanted(
    emulated: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's program, as a service of another version, may send all."""
    taken = tmp_path / "taken.json"
    taken.write_text(telltale.snapshot(root=emulated("n300")).to_json() + "\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text(f"#!/bin/sh\ncat '{taken}'\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    assert len(telltale.snapshot(host="ssh://node7", timeout=20).devices) == 2
    assert len(telltale.snapshot(host="ssh://node7", timeout=20, filter="temperature > 1C").devices) == 1
    fleet = telltale.snapshot(host=["ssh://node7"], timeout=20, filter="board == n150")
    assert [len(host.snapshot.devices) for host in fleet if host.snapshot] == [0]


def test_a_fleet_is_asked_by_name_and_by_place(tmp_path: Path) -> None:
    names = [f"unix:{tmp_path}/{name}.sock" for name in ("a", "b", "c")]
    fleet = telltale.snapshot(host=names)
    assert [host.name for host in fleet] == names
    assert fleet[names[1]] == fleet[1] == fleet[-2] and fleet[0] != fleet[1]
    assert [host.name for host in fleet[1:]] == names[1:]
    assert names[0] in fleet and "node9" not in fleet and 7 not in fleet
    assert fleet[0] in fleet and fleet[0] not in telltale.snapshot(host=names)
    assert fleet.get(names[2]) == fleet[2] and fleet.get("node9") is None and fleet.get("node9", 7) == 7
    with pytest.raises(KeyError):
        _ = fleet["node9"]
    with pytest.raises(IndexError):
        _ = fleet[3]


def test_columns_of_hosts_that_are_all_down_are_those_of_devices(tmp_path: Path) -> None:
    fleet = telltale.snapshot(host=[f"unix:{tmp_path}/none.sock"])
    empty = telltale.snapshot(root=tmp_path)
    for rows in ("devices", "processes", "memory"):
        table: Any = getattr(empty, rows)
        names = ["host_memory" if name == "host" else name for name in table.to_dict()]
        assert fleet.columns(rows) == {name: [] for name in ["host", *names]}
    with pytest.raises(telltale.QueryError, match="none of devices"):
        fleet.columns("rows")  # type: ignore[arg-type]


def test_an_empty_variable_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for name in ("TELLTALE_STATE_DIR", "TELLTALE_ROOT", "TELLTALE_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    asked: list[str] = []
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv("TELLTALE_STATE_DIR", value)
        with pytest.raises(telltale.HistoryError) as refused:
            telltale.history(root=tmp_path, runtime_dir=tmp_path)
        asked.append(str(refused.value))
    assert asked[0] == asked[1]
    assert "--" not in asked[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"since": datetime.min},
        {"since": object()},
        {"step": -1.0},
        {"step": 1e300},
        {"step": timedelta(days=-1)},
        {"step": object()},
        {"since": timedelta(0), "until": timedelta(hours=1)},
        {"since": "an hour"},
    ],
)
def test_moments_and_spans_that_are_none_are_errors_of_the_family(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(telltale.QueryError):
        any_history(root=tmp_path, runtime_dir=tmp_path, **arguments)
    if "step" not in arguments and len(arguments) == 1:
        with pytest.raises(telltale.QueryError):
            any_snapshot(root=tmp_path, at=arguments["since"])


def test_moments_that_are_some_reach_the_history(tmp_path: Path) -> None:
    for since in (timedelta(hours=1), timedelta.max, datetime(1, 1, 2, tzinfo=timezone.utc), "1d"):
        with pytest.raises(telltale.HistoryError):
            telltale.history(root=tmp_path, runtime_dir=tmp_path, since=since, step=timedelta(minutes=1))


@pytest.mark.parametrize("call", ["snapshot(runtime_dir=place, at='3m ago')", "history(runtime_dir=place)"])
def test_ctrl_c_ends_a_question_of_the_past(tmp_path: Path, call: str) -> None:
    """By a service that accepts and says nothing."""
    program = f"""
import os, socket, telltale
place = os.environ["PLACE"]
listening = socket.socket(socket.AF_UNIX)
listening.bind(place + "/telemetry.sock")
listening.listen()
os.environ["HOME"] = place
print(1, flush=True)
telltale.{call}
"""
    tmp_path.chmod(0o700)
    environment = {**os.environ, "PLACE": str(tmp_path), "TELLTALE_STATE_DIR": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None and process.stdout.readline()
    time.sleep(0.5)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors and time.monotonic() - begun < 3, errors


def test_rates_survive_calls_with_other_arguments(
    emulated: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    root = emulated("n150")
    pci = telltale.snapshot(root=root).devices[0].pci
    with telltale.Runtime("mine").open_device(0, pci=pci) as device:
        device.allocate(4096, address=0x1000)
        seen: list[float | None] = []
        for _ in range(2):
            taken = telltale.snapshot(root=root, runtime_dir=tmp_path, usage=True)
            seen += [process.cpu for process in taken.processes if process.pid == os.getpid()]
            telltale.my_processes(root=root, runtime_dir=tmp_path)
            time.sleep(0.5)
    assert seen[0] is None and seen[1] is not None, seen
