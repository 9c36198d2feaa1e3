"""What this process records of itself is seen by others, and goes when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import telltale


def test_what_is_recorded_is_in_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    runtime = telltale.Runtime("engine 1.0")
    with runtime.open_device(0) as device:
        device.allocate(4096, 0x1000)
        device.allocate(512, 0x2000, kind="l1")
        runtime.counter("requests_total", "Requests", labels={"queue": "a"}).add(3)
        taken = telltale.snapshot(runtime_dir=tmp_path, metrics=True)
        (process,) = taken.processes
        assert (process.dram, process.l1, process.buffers) == (4096, 512, 2)
        assert {part.kind: part.bytes for part in taken.memory} == {"dram": 4096, "l1": 512}
        values = {metric["name"]: metric["value"] for metric in process.metrics}
        assert values["requests_total"] == {"counter": 3}
        device.free(0x1000)
        assert telltale.snapshot(runtime_dir=tmp_path).processes[0].dram == 0
    assert len(telltale.snapshot(runtime_dir=tmp_path).processes) == 0
    assert runtime.problems == {}
    with pytest.raises(ValueError, match="closed"):
        device.allocate(1, 1)


def test_gauges_and_histograms_are_in_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    runtime = telltale.Runtime("engine 1.0")
    with runtime.open_device(0):
        loss = runtime.gauge("loss", "Loss of the last step")
        loss.set(3.5)
        runtime.gauge("loss", "Loss of the last step").set(0.25)
        seconds = runtime.histogram("step_seconds", [0.1, 1.0], "Steps by length", unit="seconds")
        for value in (0.05, 0.5, 0.5, 7.0):
            seconds.observe(value)
        (process,) = telltale.snapshot(runtime_dir=tmp_path, metrics=True).processes
    values = {metric["name"]: metric["value"] for metric in process.metrics}
    assert values["loss"] == {"gauge": 0.25}
    assert values["step_seconds"] == {"histogram": {"bounds": [0.1, 1.0], "counts": [1, 2, 1], "sum": 8.05}}
    with pytest.raises(ValueError):
        runtime.histogram("descends", [1.0, 0.1])


def test_what_no_reader_would_understand_is_refused() -> None:
    runtime = telltale.Runtime("engine 1.0")
    with pytest.raises(ValueError, match="kind of memory"):
        runtime.open_device(0).allocate(1, 1, kind="hbm")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        runtime.counter("no name")
    with pytest.raises(ValueError, match="PCI address"):
        runtime.open_device(0, pci="slot 3")
