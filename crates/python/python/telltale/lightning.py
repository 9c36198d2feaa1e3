"""PyTorch Lightning: a callback that says what each step costs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._steps import StepCosts, metrics
from ._track import Block
from .errors import MissingPackageError


def _base() -> Any:
    causes: list[str] = []
    for package in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(package).Callback
        except ImportError as error:
            causes.append(f"{package}: {error}")
    raise MissingPackageError("lightning cannot be imported; `pip install lightning`", ", ".join(causes))


if TYPE_CHECKING:
    # Where it is not installed, checkers take it for a class of which they know nothing.
    from lightning.pytorch import Callback as _Callback  # pyright: ignore
else:
    _Callback = _base()


class TelltaleCallback(_Callback):  # pyright: ignore[reportUntypedBaseClass]
    """Tracks each training batch: ``Trainer(callbacks=[TelltaleCallback()])``.

    The trainer's logger gets ``telltale/step_seconds``, and where memory is recorded ``telltale/peak_bytes`` and
    ``telltale/kept_bytes``. The job's agent, where there is one, sees collectives and steps. ``report`` is called with
    the :class:`telltale.Block` of each step, such as ``print``.
    """

    def __init__(self, report: Callable[[Block], object] | None = None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.costs = StepCosts(report)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.costs.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        block = self.costs.end()
        if block is not None:
            pl_module.log_dict(metrics(block))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.costs.give_up()
