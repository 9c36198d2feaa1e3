"""The callbacks, with packages that stand in for the trainers'."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import telltale

_LIGHTNING = """
class Trainer: ...
class Callback:
    def on_train_batch_start(self, trainer: Trainer, pl_module: object, batch: object, batch_idx: int) -> None: ...
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: object, outputs: object, batch: object, batch_idx: int
    ) -> None: ...
    def on_exception(self, trainer: Trainer, pl_module: object, exception: BaseException) -> None: ...
"""
_TRANSFORMERS = """
class TrainerCallback:
    def on_step_begin(self, args: object, state: object, control: object, **kwargs: object) -> None: ...
    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None: ...
    def on_log(self, args: object, state: object, control: object, **kwargs: object) -> None: ...
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of packages that are found first; what is imported within is forgotten. PyTorch is not needed."""
    reporting = types.SimpleNamespace(install=lambda: None, step=lambda: None)
    monkeypatch.setattr(telltale.torch, "_ccl", lambda: reporting)
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    before = dict(sys.modules)
    names = ("lightning", "pytorch_lightning", "transformers", "telltale.lightning", "telltale.transformers")
    for name in before:
        if name in names or name.startswith(tuple(f"{one}." for one in names)):
            del sys.modules[name]
    yield tmp_path
    for name in set(sys.modules) - set(before):
        if name in names or name.startswith(tuple(f"{one}." for one in names)):
            del sys.modules[name]
    sys.modules.update(before)


def _package(packages: Path, name: str, text: str) -> None:
    place = packages.joinpath(*name.split("."))
    place.mkdir(parents=True)
    for directory in (place, *place.parents):
        if directory == packages:
            break
        (directory / "__init__.py").touch()
    (place / "__init__.py").write_text(text)


def test_either_package_of_lightning_has_the_base(packages: Path) -> None:
    _package(packages, "lightning.pytorch", "raise ImportError('no compatible torch')")
    _package(packages, "pytorch_lightning", _LIGHTNING)
    module: Any = importlib.import_module("telltale.lightning")
    assert module.TelltaleCallback.__mro__[1].__module__ == "pytorch_lightning"


def test_a_trainer_that_cannot_be_imported_keeps_its_causes(packages: Path) -> None:
    _package(packages, "lightning.pytorch", "raise ImportError('no compatible torch')")
    _package(packages, "pytorch_lightning", "raise ImportError('too old')")
    _package(packages, "transformers", "raise ImportError('no tokenizers')")
    with pytest.raises(telltale.MissingPackageError, match="lightning cannot be imported") as lightning:
        importlib.import_module("telltale.lightning")
    assert lightning.value.cause == "lightning.pytorch: no compatible torch, pytorch_lightning: too old"
    assert lightning.value.remedy == "`pip install lightning`"
    with pytest.raises(telltale.MissingPackageError) as transformers:
        importlib.import_module("telltale.transformers")
    assert transformers.value.cause == "no tokenizers"


def test_loggers_of_transformers_get_the_values_once_the_callback_is_first(packages: Path) -> None:
    _package(packages, "transformers", _TRANSFORMERS)
    module: Any = importlib.import_module("telltale.transformers")
    logged: list[list[str]] = []

    class Board:
        def on_log(self, args: object, state: object, control: object, logs: dict[str, float]) -> None:
            logged.append(sorted(logs))

    board, callback = Board(), module.TelltaleCallback()
    handler = types.SimpleNamespace(callbacks=[board, callback])
    state = types.SimpleNamespace(log_history=[{"loss": 1.0}])

    def log() -> None:
        logs = {"loss": 1.0}
        for one in handler.callbacks:
            one.on_log(None, state, None, logs=logs)

    callback.on_step_begin(None, state, None)
    callback.on_step_end(None, state, None)
    log()
    for _ in range(2):
        callback.put_first(types.SimpleNamespace(callback_handler=handler))
    log()
    assert handler.callbacks == [callback, board]
    assert logged[0] == ["loss"] and "telltale/step_seconds" in logged[1]
    assert "telltale/step_seconds" in state.log_history[0]


def test_a_callback_reaches_the_processes_that_a_trainer_starts(packages: Path) -> None:
    _package(packages, "lightning.pytorch", _LIGHTNING)
    module: Any = importlib.import_module("telltale.lightning")
    callback = module.TelltaleCallback(report=print)
    callback.on_train_batch_start(None, None, None, 0)
    logged: dict[str, float] = {}
    callback.on_train_batch_end(None, types.SimpleNamespace(log_dict=logged.update), None, None, 0)
    assert callback.costs.steps == 1 and logged["telltale/step_seconds"] > 0
    assert pickle.loads(pickle.dumps(callback)).costs.steps == 0


_TYPED = """
from lightning.pytorch import Callback
from telltale.lightning import TelltaleCallback
from telltale.transformers import TelltaleCallback as Other
from transformers import TrainerCallback

callbacks: list[Callback] = [TelltaleCallback()]
others: list[TrainerCallback] = [Other(print)]
"""


def test_trainers_take_the_callbacks_for_theirs_by_type(tmp_path: Path) -> None:
    checker: Any = pytest.importorskip("basedpyright")
    packages = tmp_path / "packages"
    _package(packages, "lightning.pytorch", _LIGHTNING)
    _package(packages, "transformers", _TRANSFORMERS)
    program = tmp_path / "program.py"
    program.write_text(_TYPED)
    sources = Path(str(telltale.__file__)).parents[1]
    settings = {"include": [str(program)], "extraPaths": [str(packages), str(sources)], "typeCheckingMode": "strict"}
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    command = [sys.executable, "-m", checker.__name__, "--project", str(project)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout
    program.write_text(_TYPED.replace("list[Callback]", "list[int]"))
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 1 and "TelltaleCallback" in refused.stdout, refused.stdout
